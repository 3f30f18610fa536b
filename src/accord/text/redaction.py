"""Secrets leave no trace: every text that accord posts, prints, logs or encodes goes through ``Redactor`` first.

Two kinds of evidence: what a token of a known issuer looks like, and the values that this process holds itself.
A shape is documented by its issuer; only long, unmistakable ones are listed, because a false hit destroys text.
"""

from __future__ import annotations

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any
from urllib.parse import quote, quote_plus

from accord.text.views import Edit, View

_PERCENT = re.compile("%[0-9A-F]{2}")


def encoded_forms(text: str) -> Iterator[str]:
    """Yield the text in base64 (at any offset of the encoded data), in hexadecimal digits and in URLs."""
    data = text.encode("utf-8", "surrogatepass")
    for before in range(3):
        middle = _base64_within(data, before)
        yield from (middle, middle.replace("+", "-").replace("/", "_"))
    yield from (data.hex(), data.hex().upper(), data.hex(" "), data.hex(" ").upper())
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield from (quoted, _PERCENT.sub(lambda hit: hit.group().lower(), quoted))


def _base64_within(data: bytes, before: int) -> str:
    """Return the characters that data alone decides, when ``before`` bytes (modulo 3) are encoded ahead of it."""
    whole = base64.b64encode(b"\0" * before + data).decode()
    first = -(-before * 8 // 6)
    end = (before + len(data)) * 8 // 6
    return whole[first:end]


_SHAPES = {
    "github-token": (
        r"(?<![A-Za-z0-9])(?:ghs_[A-Za-z0-9._-]{36,}|gh[pour]_[A-Za-z0-9]{36,255}"
        r"|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})"
    ),
    "anthropic-key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
    "openai-key": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}",
    "google-key": r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|\bAQ\.[A-Za-z0-9_-]{40,}",
    "google-token": r"\bya29\.[A-Za-z0-9_-]{20,}",
    "slack-token": r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}",
    "webhook": (
        r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"
        r"|(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_-]{20,})"
    ),
    "service-token": (
        r"(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|gl(?:pat|ptt|soat|rt|cbt|dt)-[A-Za-z0-9_.-]{20,}"
        r"|hf_[A-Za-z0-9]{30,}|[sr]k_(?:live|test)_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"
        r"|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}|hv[sb]\.[A-Za-z0-9_-]{24,}|do[opr]_v1_[a-f0-9]{64}|gsk_[A-Za-z0-9]{40,}"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{50,70})"
    ),
    "password": (
        r"(?<=://)[^\s:/?#@\"'<>\[\]{}$]{1,100}:[^\s:/?#@\"'<>\[\]{}$]{3,200}(?=@[A-Za-z0-9.-])"
        r"|(?i:(?<=AccountKey=)[A-Za-z0-9+/]{40,120}={0,2}"
        r"|(?<=aws_secret_access_key)[\"']?\s{0,4}[=:]\s{0,4}[\"']?[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/]))"
    ),
    "aws-key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "json-web-token": (
        r"(?:(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}|(?<=-)eyJ[A-Za-z0-9_-]{10,400})"
        r"\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    ),
}
"""An agent can print the beginning of a shape over and over, so none may search far from each place where it begins."""

KEY_BEGIN = r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
KEY_END = r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_KEY = rf"{KEY_BEGIN}[\s\S]*?(?:{KEY_END}|\Z)"
_SHAPE = "|".join(f"(?P<{name.replace('-', '_')}>{shape})" for name, shape in _SHAPES.items())
_BEGINNING_WORDS = """
ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ sk- aiza aq. ya29. xox xapp- akia asia eyj -----begin npm_ pypi- glpat- glptt-
glsoat- glrt- glcbt- gldt- hf_ sk_ rk_ sg. dckr_ hvs. hvb. _v1_ gsk_ age-secret hooks.slack discord accountkey=
aws_secret
"""
_BEGINNINGS = tuple(_BEGINNING_WORDS.split())
"""How each of the shapes begins, in lower case: a text without any of these is passed over many times as fast."""

_USERINFO = re.compile(r"://[^\s/@]*@")

_SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PRIVATE|CREDENTIAL|AUTH(?!OR)|API_?KEY|ACCESS_?KEY|CLAUDE_API)", re.IGNORECASE
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

_ESCAPES = re.compile(
    r"(?<!\\)(?:\\+x[0-9A-Fa-f]{2})+|(?<!\\)(?:\\+u(?:[0-9A-Fa-f]{4}|\{[0-9A-Fa-f]{1,6}\}))+"
    r"|(?<!\\)(?:\\+[0-3][0-7]{2})+|(?:%[0-9A-Fa-f]{2})+|&(?:#[0-9]{1,8}|#[xX][0-9A-Fa-f]{1,8}|[A-Za-z]{2,8});"
)
"""Characters as strings of programs, addresses and HTML write them. Bytes side by side are read as UTF-8."""

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


@dataclass(frozen=True)
class Redactor:
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
        found = self._found(text, keys_in or private_keys)
        if "[" in text and _COLOURS.search(text):
            plain = _decoded(text, _COLOURS, lambda _: "")
            secrets = self._found(plain.text, lambda _: ())
            found += (Secret(*plain.span(secret.start, secret.end), secret.kind) for secret in secrets)
        if not found:
            return []
        placeholders = [hit.span() for hit in _PLACEHOLDER.finditer(text)]
        return merge_overlaps(secret for secret in found if not _is_within(secret, placeholders))

    def _found(self, text: str, keys_in: Callable[[str], Iterable[Secret]]) -> list[Secret]:
        """Return secrets as they are, or with escaped characters."""
        found: list[Secret] = []
        if _may_have_shape(text):
            found = [Secret(*hit.span(), _kind(hit)) for hit in re.finditer(_SHAPE, text)]
            found += keys_in(text)
        if self.values:
            found += (Secret(*span, _KNOWN) for span in self._known(text))
            if any(sign in text for sign in _ESCAPED):
                plain = _decoded(text, _ESCAPES, _unescaped)
                found += (Secret(*plain.span(*span), _KNOWN) for span in self._known(plain.text))
        return found

    def _known(self, text: str) -> Iterator[tuple[int, int]]:
        lines = joined(text) if any(sign in text for sign in _WRAPPED) else ""
        for value in self.values:
            yield from ((start, start + len(value)) for start in _places(value, text))
            if lines and value.replace(" ", "") in lines:
                yield from (hit.span() for hit in re.finditer(_broken(value), text))

    def redact(self, text: str) -> tuple[str, int]:
        """Return the text without secrets, and how many were taken out."""
        secrets = self.find(text)
        return without_secrets(secrets, text), len(secrets)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self.redact(text)[0]


def _decoded(text: str, pattern: re.Pattern[str], decode: Callable[[str], str]) -> View:
    """Return a text in which everything that matches a pattern is decoded."""
    return View(text, (Edit(*hit.span(), decode(hit[0])) for hit in pattern.finditer(text)))


def _may_have_shape(text: str) -> bool:
    """Return whether a text has how any of the shapes begins; a loop takes half the time of ``any``."""
    lowered = text.lower()
    for sign in _BEGINNINGS:
        if sign in lowered:
            return True
    return "@" in text and _USERINFO.search(text) is not None


def private_keys(text: str) -> Iterator[Secret]:
    """Say where private keys are; one without an end goes on to the end of the text."""
    return (Secret(*hit.span(), PRIVATE_KEY) for hit in re.finditer(_KEY, text))


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


def _kind(hit: re.Match[str]) -> str:
    return (hit.lastgroup or "").replace("_", "-")


def _places(value: str, text: str) -> Iterator[int]:
    start = text.find(value)
    while start >= 0:
        yield start
        start = text.find(value, start + len(value))


def _broken(value: str) -> str:
    """Write a value as a pattern that finds it however it is wrapped."""
    words = (f"(?:{_WRAP})?".join(map(re.escape, word)) for word in value.split(" "))
    return f"(?:{_WRAP}| )".join(words)


def joined(text: str) -> str:
    """Return a text without the breaks and blanks that wrap a value."""
    return _BREAK.sub("", text).replace(" ", "")


def _unescaped(escapes: str) -> str:
    """Return what one of ``_ESCAPES`` stands for."""
    if escapes.startswith("&"):
        return html.unescape(escapes)
    if "u" in escapes:
        return "".join(chr(min(int(code, 16), 0x10FFFF)) for code in _CODE.findall(escapes))
    if "x" in escapes or "%" in escapes:
        return bytes(int(code, 16) for code in _CODE.findall(escapes)).decode("utf-8", "replace")
    return bytes(int(code, 8) for code in _OCTAL.findall(escapes)).decode("utf-8", "replace")


def _is_within(secret: Secret, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a secret is inside one of these spans, which are in order."""
    i = bisect_right(spans, secret.start, key=itemgetter(0)) - 1
    return i >= 0 and secret.end <= spans[i][1]


def redact_json(value: Any, redact: Callable[[str], str]) -> Any:
    """Redact every text of a JSON document, keys too; afterwards escapes could hide a secret from the search."""
    clean: dict[str, str] = {}

    def redacted(value: Any) -> Any:
        if isinstance(value, str):
            if value not in clean:
                clean[value] = redact(value)
            return clean[value]
        if isinstance(value, dict):
            return {redacted(key): redacted(child) for key, child in value.items()}
        if isinstance(value, (list, tuple)):
            return [redacted(child) for child in value]
        return value

    return redacted(value)


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
