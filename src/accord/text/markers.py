"""Hidden markers: how accord finds again what it made, in the only place GitHub keeps for it, the body.

A marker is an HTML comment ``<!-- accord:NAME key=value … -->`` with percent-encoded values. Where GitHub is reported
to strip those (bodies of reviews) it is written a second time as a link reference definition, which shows as little:
``[accord:NAME]: # "key=value …"``. It proves nothing by itself: callers count it only on what their own identity
wrote, and untrusted text is defused before it is posted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

REVIEW = "review"
"""The marker of a review: ``asks`` is its verdict, also where GitHub accepts it as a comment only."""

REVIEW_GONE = "review-gone"
"""The marker of a reply that the finding of a review's thread is gone; ``done`` is what happened to the thread."""

REVISION = "revision"
"""The marker of an implementor's pull request: ``item`` is its work item."""

_ANY = re.compile(r"<!--\s*accord:([a-z-]+)((?:\s+[a-z]+=[^\s<>]*)*)\s*-->")
_REFERENCE = re.compile(r'^\[accord:([a-z-]+)\]: # "((?:[a-z]+=[^\s"]*(?: |(?=")))*)"\s*$', re.MULTILINE)
_IMITATION = re.compile(r"<!--(?=[\s/]*accord:)", re.IGNORECASE)
_IMITATED_REFERENCE = re.compile(r"\[(?=\s{0,1000}accord:[^\]\n]{0,1000}\]:)", re.IGNORECASE)
_TOKEN_CHARS = 20


def write_marker(name: str, **fields: str) -> str:
    """Write a marker; values may hold anything, they cannot end the comment."""
    return f"<!-- {' '.join([f'accord:{name}', *_encode_fields(fields)])} -->"


def write_twice(name: str, **fields: str) -> str:
    """Write a marker in both forms, for bodies that may lose one of them."""
    return f'{write_marker(name, **fields)}\n[accord:{name}]: # "{" ".join(_encode_fields(fields))}"'


def _encode_fields(fields: Mapping[str, str]) -> list[str]:
    return [f"{key}={quote(value, safe='')}" for key, value in fields.items()]


def find_markers(text: str, name: str) -> list[dict[str, str]]:
    """Return the fields of every marker of this name; one that is written twice is there twice."""
    found = []
    for match in (*_ANY.finditer(text), *_REFERENCE.finditer(text)):
        if match.group(1) == name:
            pairs = (field.partition("=") for field in match.group(2).split())
            found.append({key: unquote(value) for key, _, value in pairs})
    return found


def take_markers(text: str) -> tuple[str, list[str]]:
    """Split a text into the text without markers, and the markers verbatim."""
    return _ANY.sub("", text), [match.group() for match in _ANY.finditer(text)]


def strip_markers(text: str) -> str:
    """Return a text without markers of either form."""
    return _REFERENCE.sub("", _ANY.sub("", text))


def defuse(text: str) -> tuple[str, int]:
    """Make what imitates a marker visible and void; return how many there were."""
    text, comments = _IMITATION.subn("&lt;!--", text)
    text, references = _IMITATED_REFERENCE.subn("&#91;", text)
    return text, comments + references


def run_token(repository: str, run_key: str) -> str:
    """Derive the word by which a run's items are searched: one alphanumeric token, however the key is spelled.

    GitHub's search splits text at punctuation, so a key is found reliably only when it has none.
    """
    import hashlib

    digest = hashlib.sha256(f"{repository.lower()}\n{run_key}".encode()).hexdigest()
    return f"accord{digest[:_TOKEN_CHARS]}"


_NAME = "handoff"
_COPY = re.compile(rf"^<!-- accord:{_NAME} commit=[0-9a-f]{{40,64}}(?: data=[^\s>]*)? -->(?:\r?\n)?", re.MULTILINE)
_LONGEST_SHA = "0" * 64


def write_copy(commit: str, data: str = "") -> str:
    """Write the marker; ``data`` is what the commit holds."""
    return write_marker(_NAME, commit=commit, **({"data": data} if data else {}))


def take_copy(body: str) -> tuple[dict[str, str] | None, str]:
    """Split a body into the fields of its first copy, None without a copy, and the text without copies."""
    found = _COPY.search(body)
    fields = find_markers(found.group(), _NAME)[0] if found else None
    return fields, _COPY.sub("", body)


def with_copy(fields: dict[str, str] | None, text: str, limit: int) -> str:
    """Put a copy before a text that holds none: all of it, without its data, or none of it, as the limit allows.

    ``limit`` is the most characters of the body.
    """
    if fields is None:
        return text
    for copy in (write_copy(**fields), write_copy(fields["commit"])):
        if len(copy) + 1 + len(text) <= limit:
            return f"{copy}\n{text}"
    return text


COPY_ROOM = len(write_copy(_LONGEST_SHA)) + 1
"""The characters that a copy without its data takes."""
