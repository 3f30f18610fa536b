"""Read the document of an agent: bytes in, exactly one JSON object out, or findings that say what is wrong."""

from __future__ import annotations

import json
import math
import os
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer
from accord.core.frozen import Frozen

MAX_BYTES = 64 * 1024 * 1024
"""Larger than any plan GitHub would take (1,000 bodies of 65,536 characters) or a patch of 20 MB in base85."""

MAX_DEPTH = 200
"""No contract nests deeper than a dozen levels; Python's parser gives up at about a thousand."""

_SHOWN_CHARS = 80
_LOCATABLE_CHARS = 32 * 1024 * 1024
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = r'"[^"\\]*(?:"|.*?(?<!\\)(?:\\\\)*(?:"|\\?\Z))'
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\],:]|[^\s{{}}\[\],:\"]+", re.DOTALL)
_BRACKET = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_BARE_KEY = r"(?:[A-Za-z_][\w-]{0,60}|'[^'\n]{1,60}')\s{0,9}:"
OBJECT_BEGIN = re.compile(
    rf"""\{{\s*(?:\}}|"(?:[^"\\]|\\.){{0,200}}"\s*:|{_BARE_KEY}\s{{0,9}}["'\[{{\dtfnTFN-])""", re.DOTALL
)
"""Where an object begins in prose: a brace with a key behind it. Braces of other texts are not tried at all.

A key without double quotes begins one that is not JSON, so that no object inside it counts as the document.
"""

_MOST_OBJECTS = 10
_MOST_BROKEN = 20
"""Each failure of Python's parser counts the lines before it, so a text full of failures would take hours."""


class Document(Frozen):
    """One JSON object, the text it was read from, its offset there, and whether only white space is around it."""

    value: dict[str, Any]
    text: str
    start: int = 0
    is_alone: bool = True

    @cached_property
    def lines(self) -> dict[str, int]:
        """Map every JSON pointer of the object to the line (from 1) where its key or element begins."""
        return _walk(self.text, self.start)[0] if len(self.text) <= _LOCATABLE_CHARS else {}


def read_object(raw: bytes) -> Document:
    """Read the one JSON object in ``raw``, in prose or a code fence. Raises BrokenContract with the reason as code."""
    if len(raw) > MAX_BYTES:
        raise _broken_contract("too-large", f"The document is larger than {MAX_BYTES // 1_048_576} MiB.", "Split it.")
    text = decode_text(raw, "not-json")
    start, is_alone = 0, True
    try:
        value, repeated, _ = _parse(text)
    except json.JSONDecodeError as problem:
        (value, repeated, start), is_alone = _object_in_prose(text, problem), False
    except BrokenContract:
        if text.lstrip().startswith(("{", "[")):
            raise
        missing = json.JSONDecodeError("no JSON value", text, 0)
        (value, repeated, start), is_alone = _object_in_prose(text, missing), False
    if not isinstance(value, dict):
        message = f"Found {_name(value)} where one JSON object is expected."
        hint = "Write one object."
        if isinstance(value, list) and value and all(isinstance(entry, dict) and "role" in entry for entry in value):
            hint = "Remove `[` and `]`." if len(value) == 1 else "Write each entry as one object, in a file of its own."
        raise _broken_contract("not-json", message, hint, line=1)
    document = Document(value, text, start, is_alone)
    if repeated:
        places = _walk(text, start)[1] if len(text) <= _LOCATABLE_CHARS else []
        said = 'The key "{}" is written twice in one object, so one value would be lost.'
        findings = [
            Finding("duplicate-key", said.format(short_name(key)), path, line=line, hint="Keep one.")
            for path, key, line in places or [("", key, None) for key in repeated]
        ]
        raise BrokenContract("A key is repeated.", findings=findings)
    if not is_utf8(json.dumps(value, ensure_ascii=False)):
        message = "The text holds half of a surrogate pair (such as \\ud83d alone), which is not a character."
        raise _broken_contract("not-json", message, "Write the whole character, or its complete pair of escapes.")
    return document


def _broken_contract(code: str, message: str, hint: str, *, line: int | None = None) -> BrokenContract:
    return BrokenContract.of(Finding(code, message, line=line, hint=hint))


def is_utf8(text: str) -> bool:
    """Return whether a text can be written as UTF-8; bytes that were not were kept as surrogates."""
    return not _LONE_SURROGATE.search(text)


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def decode_text(raw: bytes, code: str = "not-text", name: str = "") -> str:
    """Return a text in UTF-8, without its mark. Raises BrokenContract with the place for another encoding."""
    try:
        text, start = raw.decode("utf-8-sig"), raw.find(b"\0") if code == "not-text" else -1
    except UnicodeDecodeError as problem:
        start = problem.start
    if start < 0:
        return text
    is_wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in raw
    line = raw.count(b"\n", 0, start) + 1
    message = "The text is not UTF-8, but perhaps UTF-16." if is_wide else f"Byte {start} is not UTF-8."
    message = f"Line {line} of `{name}`: {message}" if name else message
    raise _broken_contract(code, message, "Save the document as UTF-8.", line=line)


def _parse(text: str, start: int | None = None) -> tuple[Any, list[str], int]:
    """Parse all of ``text``, or the one value at ``start``; return it, the keys that are repeated in it, its end."""
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            repeated.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return found

    decoder = json.JSONDecoder(object_pairs_hook=collect, parse_constant=_number, parse_float=_number)
    try:
        value, end = (decoder.decode(text), len(text)) if start is None else decoder.raw_decode(text, start)
        if _depth_exceeds(value, MAX_DEPTH):
            raise RecursionError
    except RecursionError:
        message = f"The document nests deeper than {MAX_DEPTH} levels."
        raise _broken_contract("too-large", message, "Flatten it.") from None
    except json.JSONDecodeError:
        raise
    except ValueError as problem:
        said = "A number has too many digits." if "digits" in str(problem) else str(problem)
        raise _broken_contract("not-json", said, "Write it as a string, or leave it out.") from None
    return value, repeated, end


class WrittenNumber(float):
    """A number with a fraction or an exponent, and the text that it was read from."""

    text: str


def _number(text: str) -> WrittenNumber:
    number = WrittenNumber(text)
    if not math.isfinite(number):
        raise ValueError(f"`{text[:20]}` is not a JSON number.")
    number.text = text
    return number


def write_json(value: Any, **form: Any) -> str:
    """Write a document as JSON; a number that was read from a text keeps it, as 1.10 may be a version."""
    mark = os.urandom(16).hex()  # the encoder calls nothing for a number

    def with_marks(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: with_marks(child) for key, child in value.items()}
        if isinstance(value, (list, tuple)):
            return [with_marks(child) for child in value]
        return f"{mark}{value.text}{mark}" if isinstance(value, WrittenNumber) else value

    text = json.dumps(with_marks(value), ensure_ascii=False, **form)
    return text.replace(f'"{mark}', "").replace(f'{mark}"', "")


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, (dict, list)))
        level = [child for children in inner for child in children]
        if not level:
            return False
    return True


def _object_in_prose(text: str, problem: json.JSONDecodeError) -> tuple[dict[str, Any], list[str], int]:
    """Find the only JSON object in a text that is not JSON as a whole; parts of a broken object do not count."""
    found: list[tuple[dict[str, Any], list[str], int]] = []
    broken: list[json.JSONDecodeError] = []
    cut_at = 0
    begin = OBJECT_BEGIN.search(text)
    while begin and len(found) < _MOST_OBJECTS and len(broken) < _MOST_BROKEN:
        start = begin.start()
        try:
            value, repeated, end = _parse(text, start)
            found.append((value, repeated, start))
        except json.JSONDecodeError as miss:
            broken.append(miss)
            end = _end_of_broken(text, start)
            cut_at = _line_at(text, start) if end == len(text) else cut_at
        begin = OBJECT_BEGIN.search(text, end)
    if len(found) == 1 and not cut_at:
        return found[0]
    if len(found) == 1:
        message = f"Line {cut_at} begins a second, incomplete JSON object."
        raise _broken_contract("several-objects", message, "Write one object, to its end.", line=cut_at)
    if found:
        lines = [_line_at(text, start) for _, _, start in found]
        places = ", ".join(map(str, lines))
        message = f"Found {len(found)} JSON objects (at lines {places}) where exactly one is expected."
        raise _broken_contract("several-objects", message, "Keep one.", line=lines[1])
    if not text.strip():
        raise _broken_contract("not-json", "The document is empty.", "Write one JSON object.", line=1)
    problem = broken[0] if broken else problem
    reason, hint = _reason(problem)
    message = f"No complete JSON object found. Line {problem.lineno}, column {problem.colno}: {reason}."
    raise _broken_contract("not-json", message, hint, line=problem.lineno)


def _reason(problem: json.JSONDecodeError) -> tuple[str, str]:
    text, at = problem.doc, problem.pos
    rest = text[at : at + 20].lstrip()
    before = text[max(0, at - _SHOWN_CHARS) : at].rstrip()[-1:]
    if (before == "," and rest[:1] in {"]", "}"}) or re.match(r",\s*[\]}]", text[at : at + _SHOWN_CHARS]):
        return "a comma before a closing bracket", "Remove the comma, or run `accord check --fix FILE`."
    if rest.startswith(("//", "/*", "#")):
        return "a comment, which JSON does not have", "Remove the comment."
    if rest[:1] == "'":
        return "a string in single quotes", 'Write strings in double quotes: `"text"`.'
    if word := re.match(r"(True|False|None)\b", rest):
        return f"`{word[1]}` is Python", f"Write `{'null' if word[1] == 'None' else word[1].lower()}`."
    if problem.msg.startswith("Invalid control character"):
        return "a line break or tab in a string", "Write `\\n` or `\\t` instead."
    if problem.msg.startswith("Invalid \\"):
        return "a backslash that begins no escape of JSON", "Write `\\\\` for a backslash."
    if problem.msg.startswith("Expecting property name") and re.match(_BARE_KEY, text[at : at + _SHOWN_CHARS].lstrip()):
        return "a key without quotes", 'Write keys in double quotes: `"role"`.'
    if problem.msg.startswith("Unterminated string") or not rest:
        return "the document ends before the object does", "Write the object to its end."
    return problem.msg, "Write one JSON object."


def _end_of_broken(text: str, start: int) -> int:
    """Return where the brackets of a broken object close; the end of the text when they do not."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        sign = match.group()
        depth += (sign in "{[") - (sign in "}]")
        if depth == 0 or depth > MAX_DEPTH:
            return match.end() if depth == 0 else len(text)
    return len(text)


def _name(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def short_name(name: str) -> str:
    """Name a key in a message: short ones as they are; of long ones no part, since it might be a part of a secret."""
    return name if len(name) <= _SHOWN_CHARS else f"({len(name)} characters)"


@dataclass
class _Level:
    path: str
    is_object: bool
    index: int = 0
    key: str | None = None


def _walk(text: str, start: int) -> tuple[dict[str, int], list[tuple[str, str, int | None]]]:
    """Walk valid JSON; return the line of every pointer, and (pointer, key, line) of each repeated key."""
    breaks = [match.start() for match in re.finditer("\n", text)]
    lines: dict[str, int] = {}
    repeated: list[tuple[str, str, int | None]] = []
    levels: list[_Level] = []
    for match in _TOKEN.finditer(text, start):
        sign = match.group()
        if sign == ",":
            levels[-1].index += 1
            levels[-1].key = None
        elif sign in "}]":
            levels.pop()
        elif sign != ":":
            level = levels[-1] if levels else None
            line = bisect_right(breaks, match.start()) + 1
            if level and level.is_object and level.key is None:
                level.key = json.loads(sign)
                path = level.path + pointer(level.key or "")
                if path in lines:
                    repeated.append((path, level.key or "", line))
                lines[path] = line
                continue
            path = level.path + pointer(level.key or "" if level.is_object else level.index) if level else ""
            lines.setdefault(path, line)
            if sign in "{[":
                levels.append(_Level(path, sign == "{"))
        if not levels:
            break
    return lines, repeated
