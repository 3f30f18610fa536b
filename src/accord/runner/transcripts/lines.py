"""Lines of JSON from any input: bounded in length, and never an error, as the printing process may be killed.

A transcript can have warnings between its events, a line that was cut when the process died, bytes that are not UTF-8,
and values of any type anywhere. Everything that is not an event is skipped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from accord.text.hidden import as_seen

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Longer lines are skipped. CLIs shorten the output of commands long before that."""

LINE_CHARS = 300
_CHUNK_BYTES = 64 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_OPENING = frozenset((b"{", b"["))
_BEGINS_EVENT = re.compile(rb'\{\s{0,99}"|\[\s{0,99}\{')
"""Begins an object or a list of objects, not a line of a log such as ``[INFO] …``."""

_MAX_NESTING = 100
_NOISE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\s]+")
_WORD_END = re.compile(r"(?<![\w+/=.~-])[\w+/=.~-]+$")


def lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of a stream; of one that is too long None if it begins an event, and otherwise nothing."""
    line = stream.readline(MAX_LINE_BYTES + 1).removeprefix(b"\xef\xbb\xbf")
    while line:
        if len(line) <= MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
        else:
            is_event = _BEGINS_EVENT.match(line) is not None
            while line and not line.endswith(b"\n"):
                line = stream.readline(_CHUNK_BYTES)
            yield None if is_event else b""
        line = stream.readline(MAX_LINE_BYTES + 1)


def indented_objects(found: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """Yield the objects of indented JSON, alone or in a list, each in one line; None for one that is too long.

    An object begins with a line ``{`` and ends with the next line ``}`` of the same indentation.
    """
    block: list[bytes] | None = None
    end, size = b"", 0
    for line in found:
        text = (line or b"").rstrip().removesuffix(b",")
        if block is None:
            if text.strip() == b"{":
                block, end, size = [b"{"], text.replace(b"{", b"}"), 0
            continue
        size += len(line) if line is not None else MAX_LINE_BYTES + 1
        if text == end:
            yield b"".join(block) + b"}\n" if size <= MAX_LINE_BYTES else None
            block = None
        elif size <= MAX_LINE_BYTES:
            block.append((line or b"").strip())


def cut(text: str, limit: int) -> str:
    """Return a text as one line of at most ``limit`` characters; no word is cut, as it could be half a secret."""
    line = _NOISE.sub(" ", as_seen(text[: 4 * limit])).strip()
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    start = line[: limit - 1]
    return (_WORD_END.sub("", start).rstrip() or start[:20]) + "…"


def evidence_line(line: bytes | str) -> str:
    """Shorten a line of a transcript for use as evidence."""
    text = line[: 8 * LINE_CHARS].decode("utf-8", "replace") if isinstance(line, bytes) else line
    return cut(text, LINE_CHARS)


def _no_number(name: str) -> None:
    """Parse NaN and Infinity, which JSON does not have, as null."""


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_number)


def json_value(line: bytes) -> Any:
    """Parse a line as JSON; None if it is invalid."""
    text = line.decode("utf-8", "replace").strip(" \t\n\r")
    try:
        value, end = _DECODER.raw_decode(text)
        value = whole_text(value) if _SURROGATE.search(line) else value
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) else None


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
    """Return an HTTP status field, a number or its digits, or None."""
    value = int(text) if len(text := text_of(event, key)) == 3 and text.isdecimal() else integer_of(event, key)
    return value if value is not None and 100 <= value <= 599 else None
