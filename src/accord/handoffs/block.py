"""The hidden block in an issue's body in which a handoff travels with its work item.

It is a marker like any other of accord (``accord.github.markers``): one HTML comment whose values cannot end it. The
document is packed (zlib, base64), because bodies have 65,536 characters. It stands first, where no open code fence of
the body can show it; all other text of the body stays as it is, byte for byte.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.github.limits import BODY_CHARS
from accord.github.markers import find_markers, write_marker
from accord.kernel.documents import MAX_BYTES, read_object
from accord.kernel.errors import BrokenContract

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER = "handoff"
_BLOCK = re.compile(r"^<!-- accord:handoff commit=[0-9a-f]{40,64}(?: data=[^\s>]*)? -->(?:\r?\n)?", re.MULTILINE)


class Block(NamedTuple):
    """What a block says: the commit that vouches for it, and the document; None where it did not fit or is spoiled."""

    commit: str
    task: dict[str, Any] | None


def read_block(body: str) -> Block | None:
    """Read the first block of a body; None where there is none. It proves nothing by itself."""
    found = _BLOCK.search(body)
    if found is None:
        return None
    (fields,) = find_markers(found.group(), MARKER)
    return Block(fields["commit"], _unpacked(fields.get("data", "")))


def with_block(body: str, task: Mapping[str, Any], commit: str) -> str:
    """Put the block into a body, in the place of those that are there.

    Where the document does not fit, the block only names the commit that holds it.
    """
    visible = without_block(body)
    packed = base64.b64encode(zlib.compress(_text(task).encode(), 9)).decode()
    whole = f"{write_marker(MARKER, commit=commit, data=packed)}\n{visible}"
    return whole if len(whole) <= BODY_CHARS else f"{write_marker(MARKER, commit=commit)}\n{visible}"


def without_block(body: str) -> str:
    """Return what the body holds besides blocks."""
    return _BLOCK.sub("", body)


def _unpacked(data: str) -> dict[str, Any] | None:
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(data, validate=True), MAX_BYTES)
        return read_object(raw).value if raw and unpacking.eof else None
    except (ValueError, zlib.error, BrokenContract):
        return None


def _text(task: Mapping[str, Any]) -> str:
    return json.dumps(task, ensure_ascii=False, separators=(",", ":"))
