"""Hidden markers: how accord finds again what it made, in the only place GitHub keeps for it, the body.

A marker is an HTML comment ``<!-- accord:NAME key=value … -->`` with percent-encoded values. It proves nothing by
itself: callers count it only on what their own identity wrote, and text of others is defused before it is posted.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

_ANY = re.compile(r"<!--\s*accord:([a-z-]+)((?:\s+[a-z]+=[^\s>]*)*)\s*-->")
_IMITATION = re.compile(r"<!--(?=[\s/]*accord:)", re.IGNORECASE)
_TOKEN_CHARS = 20


def write_marker(name: str, **fields: str) -> str:
    """Write a marker; values may hold anything, they cannot end the comment."""
    encoded = "".join(f" {key}={quote(value, safe='')}" for key, value in fields.items())
    return f"<!-- accord:{name}{encoded} -->"


def find_markers(text: str, name: str) -> list[dict[str, str]]:
    """Return the fields of every marker of this name, in order."""
    found = []
    for match in _ANY.finditer(text):
        if match.group(1) == name:
            pairs = (field.partition("=") for field in match.group(2).split())
            found.append({key: unquote(value) for key, _, value in pairs})
    return found


def take_markers(text: str) -> tuple[str, list[str]]:
    """Split a text into what is no marker, and the markers as they stand."""
    return _ANY.sub("", text), [match.group() for match in _ANY.finditer(text)]


def defuse(text: str) -> tuple[str, int]:
    """Make comments that imitate a marker visible and void; return how many there were."""
    return _IMITATION.subn("&lt;!--", text)


def run_token(repository: str, run_key: str) -> str:
    """Derive the word by which a run's items are searched: one alphanumeric token, however the key is spelled.

    GitHub's search splits text at punctuation, so a key is found reliably only when it has none.
    """
    digest = hashlib.sha256(f"{repository.lower()}\n{run_key}".encode()).hexdigest()
    return f"accord{digest[:_TOKEN_CHARS]}"
