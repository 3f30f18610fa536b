"""The hidden block in an issue's body in which a handoff travels with its work item.

It is a marker like any other of accord, whose values cannot end it (``accord.github.body_copy``). The document is
packed (zlib, base64), because bodies have 65,536 characters. All other text of the body stays as it is, byte for byte.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.github.body_copy import take_copy, with_copy
from accord.kernel.documents import MAX_BYTES, read_object
from accord.kernel.errors import BrokenContract

if TYPE_CHECKING:
    from collections.abc import Mapping


class Block(NamedTuple):
    """What a block says: the commit that vouches for it, and the document; None where it did not fit or is spoiled."""

    commit: str
    task: dict[str, Any] | None


def read_block(body: str) -> Block | None:
    """Read the first block of a body; None where there is none. It proves nothing by itself."""
    fields, _ = take_copy(body)
    return Block(fields["commit"], _unpacked(fields.get("data", ""))) if fields else None


def with_block(body: str, task: Mapping[str, Any], commit: str) -> str:
    """Put the block into a body, in the place of those that are there.

    Where the document does not fit, the block only names the commit that holds it; where that does not, there is none.
    """
    packed = base64.b64encode(zlib.compress(_text(task).encode(), 9)).decode()
    return with_copy({"commit": commit, "data": packed}, without_block(body))


def is_in_step(body: str, task: Mapping[str, Any], commit: str) -> bool:
    """Tell whether the block of a body says what it should. One without the document may have had no room for it."""
    fields, _ = take_copy(body)
    if fields is None:
        return with_block(body, task, commit) == body
    return fields["commit"] == commit and ("data" not in fields or _unpacked(fields["data"]) == task)


def without_block(body: str) -> str:
    """Return what the body holds besides blocks."""
    return take_copy(body)[1]


def _unpacked(data: str) -> dict[str, Any] | None:
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(data, validate=True), MAX_BYTES)
        return read_object(raw).value if raw and unpacking.eof else None
    except (ValueError, zlib.error, BrokenContract):
        return None


def _text(task: Mapping[str, Any]) -> str:
    return json.dumps(task, ensure_ascii=False, separators=(",", ":"))
