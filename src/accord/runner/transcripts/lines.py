"""Lines of JSON from any input: bounded in length, and never an error, as the printing process may be killed.

A transcript can have warnings between its events, a line that was cut when the process died, bytes that are not UTF-8,
and values of any type anywhere. Everything that is not an event is skipped.
"""

from __future__ import annotations

import json
import math
import re
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Longer lines are shortened. CLIs come near this only with the output of a command."""

_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_OPENING = frozenset((b"{", b"["))
_BLANKS = re.compile(r"[ \t\n\r]*")
_MAX_NESTING = 100
_OPEN_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*((?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?)\Z")
_LONGEST_ESCAPE = 12
_MOST_TEXTS = 10_000
"""With more texts than this, an event is long because of their number."""


class LongLine(bytes):
    """A JSON object longer than ``MAX_LINE_BYTES``, with its long texts cut, or only its beginning."""


def lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream, a long one as ``LongLine``."""
    first = stream.readline(MAX_LINE_BYTES + 1).removeprefix(b"\xef\xbb\xbf")
    line = first
    while line:
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            yield _long_line(line, stream)
        else:
            yield line
        line = stream.readline(MAX_LINE_BYTES + 1)


def _long_line(beginning: bytes, stream: IO[bytes]) -> bytes:
    """Read a line to its end and cut its long texts: the fields around them say how the run ended."""
    shortened = _Shortened(MAX_LINE_BYTES // 2)
    kept, end = bytearray(), b""
    is_bounded = True
    for chunk in _chunks_of_line(beginning, stream):
        end = (end + chunk[-16:])[-16:]
        if is_bounded:
            kept += shortened.of(chunk)
            is_bounded = len(kept) <= MAX_LINE_BYTES and shortened.quotes <= 2 * _MOST_TEXTS
            kept = kept if is_bounded else kept[:_HEAD_BYTES]
    if end.rstrip().endswith(b"}"):
        return LongLine(kept)
    return bytes(kept) if is_bounded else b""


def _chunks_of_line(beginning: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    for start in range(0, len(beginning), _CHUNK_BYTES):
        yield beginning[start : start + _CHUNK_BYTES]
    while chunk := stream.readline(_CHUNK_BYTES):
        yield chunk
        if chunk.endswith(b"\n"):
            return


class _Shortened:
    """JSON in chunks, with every text in it cut to ``limit`` bytes, never within an escape."""

    def __init__(self, limit: int) -> None:
        self._limit = self._room = limit
        self._is_in_text = False
        self._unfinished = b""
        self.quotes = 0

    def of(self, chunk: bytes) -> bytes:
        """Return the shortened next chunk."""
        data, self._unfinished = _without_open_escape(self._unfinished + chunk)
        quoted = data.replace(rb"\\", b"__").replace(rb"\"", b"__")  # the quotes left in it begin and end texts
        kept = []
        at = 0
        while at < len(data):
            quote = quoted.find(b'"', at)
            end = len(data) if quote < 0 else quote
            kept.append(self._text(data, at, end) if self._is_in_text else data[at:end])
            if quote >= 0:
                kept.append(b'"')
                self.quotes += 1
                self._is_in_text, self._room = not self._is_in_text, self._limit
            at = end + 1
        return b"".join(kept)

    def _text(self, data: bytes, start: int, end: int) -> bytes:
        """Return the part of a text that is kept."""
        room, self._room = self._room, max(0, self._room - (end - start))
        if end - start <= room:
            return data[start:end]
        return _without_open_escape(data[start : start + room])[0]


def _without_open_escape(data: bytes) -> tuple[bytes, bytes]:
    """Split off an unfinished escape at the end."""
    start = len(data[: max(0, len(data) - _LONGEST_ESCAPE)].rstrip(b"\\"))  # not within an escape
    hit = _OPEN_ESCAPE.search(data, start)
    at = hit.start(1) if hit else len(data)
    return data[:at], data[at:]


def _no_number(name: str) -> None:
    """Parse NaN and Infinity, which JSON does not have, as null."""


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_number)


def json_value(line: bytes) -> Any:
    """Parse a line as JSON; None if it is invalid. Of a ``LongLine`` that breaks off, the readable part."""
    text = line.decode("utf-8", "replace").strip(" \t\n\r")
    try:
        value, end = _DECODER.raw_decode(text)
        if end != len(text):
            raise ValueError
    except (ValueError, RecursionError):
        if not isinstance(line, LongLine):
            return None
        value = _members(text, _BLANKS.match(text, 0).end())[0]  # type: ignore[union-attr]
    return whole_text(value) if _SURROGATE.search(line) else value


def json_value_of(text: str) -> Any:
    """Parse a text as JSON; None if it is invalid."""
    return json_value(text.encode("utf-8", "replace"))


def json_prefix(text: str) -> Any:
    """Parse the JSON value at the beginning of a text; None without one."""
    try:
        return _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def events_in(line: bytes) -> list[dict[str, Any]]:
    """Return the objects of a line: one, or all of an array, as some CLIs print in their document mode."""
    value = json_value(line) if line.lstrip()[:1] in _OPENING else None
    if isinstance(value, dict):
        return [value]
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _members(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Parse the members of an object that breaks off; also return the position after them."""
    found: dict[str, Any] = {}
    position = start + 1
    while True:
        position = _skip(text, position, ",")
        try:
            key, position = _DECODER.raw_decode(text, position)
            position = _skip(text, position, ":")
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            if text[position : position + 1] == "{" and len(found) < _MAX_NESTING and isinstance(key, str):
                found[key] = _members(text, position)[0]
            return found, position
        if not isinstance(key, str):
            return found, position
        found[key] = value


def _skip(text: str, position: int, sign: str) -> int:
    position = _BLANKS.match(text, position).end()  # type: ignore[union-attr]
    if text[position : position + 1] == sign:
        position = _BLANKS.match(text, position + 1).end()  # type: ignore[union-attr]
    return position


def whole_text(value: Any) -> Any:
    """Replace half surrogates, which UTF-8 cannot encode, in every text of a JSON value."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    if isinstance(value, dict):
        return {whole_text(key): whole_text(child) for key, child in value.items()}
    if isinstance(value, list):
        return [whole_text(child) for child in value]
    return value


def is_shallow(value: Any, levels: int = _MAX_NESTING) -> bool:
    """Return whether a JSON value nests no deeper than any JSON writer can handle."""
    if levels < 0:
        return False
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(is_shallow(child, levels - 1) for child in children)


def text_of(event: dict[str, Any], key: str) -> str:
    """Return a text field; empty if it is missing or of another type."""
    value = event.get(key)
    return value if isinstance(value, str) else ""


def object_of(event: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object field; empty if it is missing or of another type."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def objects_of(event: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects of a list field."""
    value = event.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def integer_of(event: dict[str, Any], key: str) -> int | None:
    """Return a 64-bit integer field, or None."""
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def number_of(event: dict[str, Any], key: str) -> float | None:
    """Return a finite number field, or None."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def status_of(event: dict[str, Any], key: str) -> int | None:
    """Return an HTTP status field, or None."""
    value = integer_of(event, key)
    return value if value is not None and 100 <= value <= 599 else None
