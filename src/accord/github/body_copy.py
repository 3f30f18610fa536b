"""The marker that stands first in an issue's body and repeats there what is kept at a ref: the copy of a handoff.

Where other text needs the room, the copy gives way: first its data, which the commit holds that it names, then all of
it. Whoever writes a body keeps the copy in its place: there no open code fence of the body can show it.
"""

from __future__ import annotations

import re

from accord.github.limits import BODY_CHARS
from accord.github.markers import find_markers, write_marker

_NAME = "handoff"
_COPY = re.compile(rf"^<!-- accord:{_NAME} commit=[0-9a-f]{{40,64}}(?: data=[^\s>]*)? -->(?:\r?\n)?", re.MULTILINE)
_LONGEST_SHA = "0" * 64


def write_copy(commit: str, data: str = "") -> str:
    """Write the marker; ``data`` is what the commit holds."""
    return write_marker(_NAME, commit=commit, **({"data": data} if data else {}))


def take_copy(body: str) -> tuple[dict[str, str] | None, str]:
    """Split a body into the fields of its first copy, None where there is none, and the text without any."""
    found = _COPY.search(body)
    fields = find_markers(found.group(), _NAME)[0] if found else None
    return fields, _COPY.sub("", body)


def with_copy(fields: dict[str, str] | None, text: str) -> str:
    """Put a copy before a text that holds none: all of it, without its data, or none of it, as there is room."""
    if fields is None:
        return text
    for copy in (write_copy(**fields), write_copy(fields["commit"])):
        if len(copy) + 1 + len(text) <= BODY_CHARS:
            return f"{copy}\n{text}"
    return text


COPY_ROOM = len(write_copy(_LONGEST_SHA)) + 1
"""The characters that a copy without its data takes."""
