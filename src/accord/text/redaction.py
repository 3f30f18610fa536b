"""Secrets leave no trace: every text that accord posts, prints, logs or encodes goes through ``Redactor`` first.

Two kinds of evidence: what a token of a known issuer looks like, and the values that this process holds itself.
"""

from __future__ import annotations

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any
from urllib.parse import quote, quote_plus

from accord.core.frozen import Frozen
from accord.text.secret_shapes import ANY_WORD, BEGINNINGS, KEY, LONG_WORD, SHAPES
from accord.text.views import Edit, View

_PERCENT = re.compile("%[0-9A-F]{2}")


def encoded_forms(text: str) -> Iterator[str]:
    """Yield the text as base64 (once and twice), base32, hexadecimal digits and URLs have it, wherever it stands."""
    data = text.encode("utf-8", "surrogatepass")
    for before in range(3):
        middle = _encoded_within(data, before, 6)
        twice = (_encoded_within(middle.encode(), again, 6) for again in range(3))
        yield from (middle, middle.replace("+", "-").replace("/", "_"), *twice)
    for middle in (_encoded_within(data, before, 5) for before in range(5)):
        yield from (middle, middle.lower())
    pairs = (data.hex(" ", -2), f"{data[:1].hex()} {data[1:].hex(' ', -2)}")
    for digits in (data.hex(), data.hex(" "), data.hex(":"), *pairs):
        yield from (digits, digits.upper())
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield from (quoted, _PERCENT.sub(lambda hit: hit.group().lower(), quoted))


def _encoded_within(data: bytes, before: int, bits: int) -> str:
    """Return the characters of base64 or base32 (6 or 5 bits) that data decides alone, behind other bytes."""
    encode = base64.b64encode if bits == 6 else base64.b32encode
    whole = encode(bytes(before) + data).decode()
    return whole[-(-before * 8 // bits) : (before + len(data)) * 8 // bits]


_SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PRIVATE|CREDENTIAL|AUTH(?!OR(?!IZATION))|API[_-]?KEY|ACCESS_?KEY|CLAUDE_API)",
    re.IGNORECASE,
)
_SHORTEST_VALUE = 8
"""Shorter values occur in ordinary text, and masking them would garble it."""

_SHORTEST_LEAF = 16
"""Not every text of a JSON document is a secret; the short ones are names of modes and kinds."""

_WRAP = r"[ \t]*(?:[\r\n]|(?<!\\)\\+[rn])[\s>]*(?:\\+[rnt][\s>]*)*(?![\s>]|\\+[rnt])"
_WRAPPED = ("\n", "\r", "\\n", "\\r")
_ESCAPED = ("\\x", "\\u", "\\0", "\\1", "\\2", "\\3", "%", "&")
_CODE = re.compile(r"[0-9A-Fa-f]{2,6}|(?<=\{)[0-9A-Fa-f]")
_OCTAL = re.compile("[0-3][0-7]{2}")
BREAK = rf"(?<![ \t]){_WRAP}"
"""Where a text is wrapped, or says so as a text of JSON does, also of JSON in JSON; quotes have ``>`` in each line. A
known secret is found across it, while a shape would run on into the next line.
"""

_BREAK = re.compile(BREAK)
_PLAIN_BREAK = re.compile(r"[\r\n][\s>]*")

_ESCAPES = re.compile(
    r"(?<!\\)(?:\\+x[0-9A-Fa-f]{2})+|(?<!\\)(?:\\+u(?:[0-9A-Fa-f]{4}|\{[0-9A-Fa-f]{1,6}\}))+"
    r"|(?<!\\)(?:\\+[0-3][0-7]{2})+|(?:%[0-9A-Fa-f]{2})+|&(?:#[0-9]{1,8}|#[xX][0-9A-Fa-f]{1,8}|[A-Za-z]{2,8});"
)
"""Characters as strings of programs, addresses and HTML write them. Bytes side by side are read as UTF-8."""

DUMPED = re.compile(
    r"[0-9A-Fa-f](?:(?<![0-9A-Za-z].)|(?<=\\n.))[0-9A-Fa-f]{3,15}:?[ \t]{1,2}([0-9A-Fa-f]{2}(?: ?[0-9A-Fa-f]{2}){0,31}"
    r"(?:  [0-9A-Fa-f]{2}(?: [0-9A-Fa-f]{2}){0,7}(?=  ))?)(?=[ \t\r\n]|\\|\Z)(?:(?!\\n)[^\n]){0,100}(?:\n|\\n|\Z)"
)
"""A line of a dump, as xxd, hexdump -C and od write them: an address, bytes, and often their characters."""

_COLOURS = re.compile(r"(?:\x1b|(?<!\\)\\+(?:u001[bB]|x1[bB]|033|e))\[[0-9;:?]{0,32}[A-Za-z]")
"""Colours of a terminal, also as strings of programs and of JSON write them."""

_KNOWN = "secret of the environment"
PRIVATE_KEY = "private-key"
_PLACEHOLDER = re.compile(r"\[redacted: [a-z -]{1,40}\]")


@dataclass(frozen=True, slots=True)
class Secret:
    """The place of a secret in a text, and its kind; never its value."""

    start: int
    end: int
    kind: str


class Redactor(Frozen):
    """Replaces secrets by ``[redacted: kind]``. ``values`` are known secrets, longest first; never printed."""

    values: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Redactor({len(self.values)} known values)"

    def and_knows(self, other: Redactor) -> Redactor:
        """Return one that knows the values of both."""
        return replace(self, values=tuple(sorted({*self.values, *other.values}, key=len, reverse=True)))

    def find(self, text: str, *, keys_in: Callable[[str], Iterable[Secret]] | None = None) -> list[Secret]:
        """Return the places of secrets, in order and without overlap. Placeholders are not secrets.

        ``keys_in`` finds private keys, for callers that know better where one ends.
        """
        found = self._secrets_in(text, keys_in or private_keys)
        if ("\x1b[" in text or "\\" in text) and _COLOURS.search(text):
            plain = _decoded_view(text, _COLOURS, lambda _: "")
            secrets = self._secrets_in(plain.text, lambda _: ())
            found += (Secret(*plain.span(secret.start, secret.end), secret.kind) for secret in secrets)
        if not found:
            return []
        placeholders = [hit.span() for hit in _PLACEHOLDER.finditer(text)]
        places = [bisect_right(placeholders, secret.start, key=itemgetter(0)) - 1 for secret in found]
        return merge_overlaps(
            secret for i, secret in zip(places, found, strict=True) if i < 0 or placeholders[i][1] < secret.end
        )

    def _secrets_in(self, text: str, keys_in: Callable[[str], Iterable[Secret]]) -> list[Secret]:
        """Return secrets as they are, or with escaped characters."""
        found = [*_secrets_by_shape(text), *keys_in(text)]
        if self.values:
            found += (Secret(*span, _KNOWN) for span in self._known_spans(text))
            if any(sign in text for sign in _ESCAPED):
                plain = _decoded_view(text, _ESCAPES, lambda hit: _unescaped_text(hit[0]))
                found += (Secret(*plain.span(*span), _KNOWN) for span in self._known_spans(plain.text))
            if DUMPED.search(text):
                found += self._dumped_secrets(text)
        return found

    def _dumped_secrets(self, text: str) -> Iterator[Secret]:
        plain = _decoded_view(text, DUMPED, lambda hit: bytes.fromhex(hit[1]).decode("utf-8", "replace"))
        for span in self._known_spans(plain.text):
            start, end = plain.span(*span)
            lines = text[start:end].removesuffix("\n")
            is_escaped = lines.endswith("\\n")
            yield Secret(start, start + len(lines[:-1].rstrip("\\") if is_escaped else lines), _KNOWN)

    def _known_spans(self, text: str) -> Iterator[tuple[int, int]]:
        lines = unwrapped_text(text) if any(sign in text for sign in _WRAPPED) else ""
        for value in self.values:
            if value in text:
                yield from (hit.span() for hit in re.finditer(re.escape(value), text))
            if lines and value.replace(" ", "") in lines:
                yield from (hit.span() for hit in re.finditer(_wrapped_pattern(value), text))

    def redact(self, text: str) -> tuple[str, int]:
        """Return the text without secrets, and how many were taken out."""
        secrets = self.find(text)
        return without_secrets(secrets, text), len(secrets)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self.redact(text)[0]


def _decoded_view(text: str, pattern: re.Pattern[str], decode: Callable[[re.Match[str]], str]) -> View:
    return View(text, (Edit(*hit.span(), decode(hit)) for hit in pattern.finditer(text)))


def _secrets_by_shape(text: str) -> Iterator[Secret]:
    """Yield what looks like a secret. Words in small letters rule most patterns out, many times as fast."""
    lowered = text.encode("utf-8", "surrogatepass").lower()
    is_escaped = "\\" in text or "%" in text
    has_word = ANY_WORD.search(lowered)
    likely = [shape for shape in SHAPES for word in shape[1] if word in lowered] if has_word else []
    if LONG_WORD.search(text) and re.search(BEGINNINGS, text):
        likely += (shape for shape in SHAPES if not shape[1])
    for kind, _, patterns in dict.fromkeys(likely):
        for pattern in patterns[: 1 + is_escaped]:
            yield from (Secret(*hit.span(hit.lastindex or 0), kind) for hit in re.finditer(pattern, text))


def private_keys(text: str) -> Iterator[Secret]:
    """Say where private keys are; one without an end goes on to the end of the text."""
    return (Secret(*hit.span(), PRIVATE_KEY) for hit in re.finditer(KEY, text))


def merge_overlaps(found: Iterable[Secret]) -> list[Secret]:
    """Put in order, and make one of those that overlap."""
    apart: list[Secret] = []
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if apart and secret.start < apart[-1].end:
            apart[-1] = replace(apart[-1], end=max(apart[-1].end, secret.end))
        else:
            apart.append(secret)
    return apart


def without_secrets(secrets: Iterable[Secret], text: str) -> str:
    """Put a placeholder in the place of each of these secrets, which are in order and apart."""
    return View(text, (Edit(secret.start, secret.end, f"[redacted: {secret.kind}]") for secret in secrets)).text


def _wrapped_pattern(value: str) -> str:
    words = (f"(?:{_WRAP})?".join(map(re.escape, word)) for word in value.split(" "))
    return f"(?:{_WRAP}| )".join(words)


def unwrapped_text(text: str) -> str:
    """Return a text without the breaks and blanks that wrap a value."""
    return (_BREAK if "\t" in text or "\\" in text else _PLAIN_BREAK).sub("", text).replace(" ", "")


def _unescaped_text(escapes: str) -> str:
    if escapes.startswith("&"):
        return html.unescape(escapes)
    if "u" in escapes:
        return "".join(chr(min(int(code, 16), 0x10FFFF)) for code in _CODE.findall(escapes))
    if "x" in escapes or "%" in escapes:
        return bytes(int(code, 16) for code in _CODE.findall(escapes)).decode("utf-8", "replace")
    return bytes(int(code, 8) for code in _OCTAL.findall(escapes)).decode("utf-8", "replace")


def redact_json(value: Any, redact: Callable[[str], str]) -> Any:
    """Redact every text of a JSON document, keys too; afterwards escapes could hide a secret from the search."""
    clean: dict[str, str] = {}

    def redact_value(value: Any, key: str = "") -> Any:
        if isinstance(value, str) and is_secret_name(key):
            named = f'"{key}":"'
            text = redact(f'{named}{value}"')
            return text[len(named) :].removesuffix('"') if text.startswith(named) else redact(value)
        if isinstance(value, str):
            if value not in clean:
                clean[value] = redact(value)
            return clean[value]
        if isinstance(value, dict):
            return {redact_value(key): redact_value(child, str(key)) for key, child in value.items()}
        if isinstance(value, (list, tuple)):
            return [redact_value(child) for child in value]
        return value

    return redact_value(value)


def is_secret_name(name: str) -> bool:
    """Return whether a variable of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def redactor_for(environment: Mapping[str, str], *, certain: Iterable[str] = ()) -> Redactor:
    """Know the secrets of this process: the values of variables whose names say that they hold one.

    Variables named in ``certain`` surely do, whatever their names or values look like.
    """
    declared = frozenset(certain)
    values = {
        form
        for name, value in environment.items()
        if name in declared or (is_secret_name(name) and not value.startswith("/"))
        for form in _forms(value.strip())
    }
    return Redactor(tuple(sorted(values, key=len, reverse=True)))


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret, what it is made of, and all as JSON or Python quote them, and as anybody can encode them."""
    for text in {secret, *_parts(secret)}:
        if len(text) >= _SHORTEST_VALUE:
            yield from (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
            yield from encoded_forms(text)


def _parts(secret: str) -> Iterator[str]:
    """Yield each line (GitHub masks them one by one too); of a JSON document its texts instead."""
    try:
        leaves = [json.loads(secret)] if secret.startswith("{") else []
    except (ValueError, RecursionError):
        leaves = []
    if not leaves:
        yield from (line.strip() for line in secret.splitlines())
    while leaves:
        leaf = leaves.pop()
        if isinstance(leaf, (dict, list)):
            leaves += leaf.values() if isinstance(leaf, dict) else leaf
        elif isinstance(leaf, str) and len(leaf) >= _SHORTEST_LEAF:
            yield leaf
