"""GitHub's limits, each where it is documented, or reported where it is not. Nothing else in accord states one."""

import re

BODY_CHARS = 65_536
"""Issue, pull request, comment and review bodies; 422 above (REST answers say so)."""

TITLE_CHARS = 256
"""Issue and pull request titles by the API (reported)."""

LABEL_NAME_CHARS = 50
LABEL_DESCRIPTION_CHARS = 100
LABELS_PER_ITEM = 100

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def has_address(name: str) -> bool:
    """Return whether an address can carry a name: servers and clients resolve `.` and `..`, and drop empty ones."""
    return name not in ("", ".", "..") and not _CONTROL.search(name)


DEPENDENCIES_PER_DIRECTION = 50
"""Issues that one issue may be blocked by, and that it may block (reported)."""

PAGE_SIZE = 100
"""The most entries a page of a listing holds."""

SEARCH_RESULTS = 1_000
"""A search never returns more than this, whatever it counts."""

SEARCH_LAG_SECONDS = 600
"""How far the search index may lie behind (eventually consistent, no figure documented; minutes are reported)."""

POINTS_PER_MINUTE = 900
"""Secondary limit of the REST API: a GET costs 1 point, a write 5 ("Rate limits for the REST API")."""

READ_POINTS = 1
WRITE_POINTS = 5
CONTENT_PER_MINUTE = 80
CONTENT_PER_HOUR = 500
"""Requests that create content: issues, comments, reviews, pull requests ("Rate limits for the REST API")."""

SECONDARY_WAIT_SECONDS = 60
"""What to wait at least on a secondary limit that gives no hint ("Best practices for using the REST API")."""

PULL_FILES = 3_000
"""The files API of a pull request never lists more ("List pull requests files")."""

COMPARED_FILES = 300
"""The comparison of two commits never lists more files ("Compare two commits")."""

BLOB_BYTES = 25 * 1024 * 1024
"""The largest file that accord sends over the API (40 MB are reported to be refused; base64 adds a third)."""

TREE_TEXT_BYTES = 1_000_000
TREE_ENTRIES = 500
"""The texts and the entries in one request for a tree; larger requests are reported to time out."""

COMMIT_REQUESTS = 40
"""The most requests that one commit may need over the API: half of what a minute allows (``CONTENT_PER_MINUTE``)."""
