"""Secrets in what a program prints, taken out while it comes, however it is cut into pieces."""

from __future__ import annotations

import codecs
import re

from accord.text.redaction import DUMPED, PRIVATE_KEY, Redactor, Secret, unwrapped_text, without_secrets
from accord.text.secret_shapes import KEY_BEGIN, KEY_END

_HELD_CHARS = 8 * 1024
"""How much of an unfinished line is held back: longer than any token."""

_NAME_CHARS = 100
"""So far ahead of a value can the name begin that says that it is a secret."""

_KEY_CHARS = 16 * 1024
"""The longest private key; a longer text without an end is not a key."""

_BEGIN = re.compile(KEY_BEGIN)
_END = re.compile(KEY_END)
_ON = re.compile(rf'[^"\\-]*(?:(?:\\.|-(?!{KEY_END[1:]}))[^"\\-]*)*', re.DOTALL)
"""All up to where a key can end: its last line, or a bare quotation mark, which ends a text of JSON."""

_INSIDE = re.compile(r"[A-Za-z0-9+/=\s]*(?:\\[nrt][A-Za-z0-9+/=\s]*)*")
"""The inside of a key; it is removed from a key without an end."""


class RedactedStream:
    """Feed it what a program printed, piece by piece; it gives back the same without secrets, a little later."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""
        self._next_look = 0
        """So much is there before what is held back is looked through again; else each piece would cost all of it."""
        self._held_chars = max([_HELD_CHARS, *map(len, redactor.values)])
        self._values = [value.replace(" ", "") for value in redactor.values]
        self._beginnings = "\0".join(value[:-1] for value in self._values)

    def feed(self, data: bytes) -> bytes:
        """Take the next piece; return what can be passed on by now."""
        text = self._decoder.decode(data)
        self._held += text
        is_worth_a_look = "\n" in text or len(self._held) > 2 * self._held_chars
        return self._pass_on(is_end=False) if is_worth_a_look and len(self._held) >= self._next_look else b""

    def end(self) -> bytes:
        """Return what was held back."""
        self._held += self._decoder.decode(b"", final=True)
        return self._pass_on(is_end=True)

    def _pass_on(self, *, is_end: bool) -> bytes:
        text = self._held
        keys, open_key = _keys(text)
        secrets = self._redactor.find(text, keys_in=lambda _: keys)
        cut = len(text) if is_end else self._cut(text, secrets, open_key)
        self._held = text[cut:]
        is_stuck = "\n" in self._held or len(self._held) > self._held_chars
        self._next_look = len(self._held) * 3 // 2 if is_stuck else 0
        ready = without_secrets([secret for secret in secrets if secret.start < cut], text[:cut])
        return ready.encode("utf-8", "surrogateescape")

    def _cut(self, text: str, secrets: list[Secret], open_key: int | None) -> int:
        """Return up to where the text is final: nothing that comes later can make a secret of it."""
        whole_lines = self._before_wrapped(text, self._before_dump(text, text.rfind("\n") + 1))
        cut = max(whole_lines, len(text) - self._held_chars)
        if open_key is not None:
            cut = min(cut, open_key)
        name_chars = _NAME_CHARS if cut > whole_lines else 0
        for secret in secrets:
            start = max(0, secret.start - name_chars)
            if start < cut < secret.end or (secret.start < cut and secret.end == len(text)):
                is_final = secret.end < len(text) or len(text) - secret.start > self._held_chars + _KEY_CHARS
                cut = secret.end if is_final else start
        return cut

    def _before_dump(self, text: str, end: int) -> int:
        """Return the end of these lines, less those at their end in which a dump shows bytes, and may go on below."""
        first = max(0, end - self._held_chars) if self._values else end
        while end > first and DUMPED.match(text, start := text.rfind("\n", 0, end - 1) + 1, end):
            end = start
        return end

    def _before_wrapped(self, text: str, end: int) -> int:
        """Return the end of these lines, less those that end like the beginning of a value that may go on below."""
        if "".join(text[max(0, end - 64) : end].split()).replace(">", "")[-3:] not in self._beginnings:
            return end
        first = max(0, end - self._held_chars)
        tail = unwrapped_text(text[first:end])
        sizes = (size for value in self._values for size in range(3, len(value)) if tail.endswith(value[:size]))
        longest = max(sizes, default=0)
        start = end
        while start > first and len(unwrapped_text(text[start:end])) < longest:
            start = max(first, text.rfind("\n", first, start - 1) + 1)
        return start


def _keys(text: str) -> tuple[list[Secret], int | None]:
    """Say where private keys are, each no longer than what belongs to it, and where one begins that may yet end.

    One pass: where a key can end is looked for once, however many begin before it.
    """
    keys = []
    open_key = None
    stop = 0
    begin = _BEGIN.search(text)
    while begin:
        inside = begin.end()
        stop = stop if stop >= inside else _ON.match(text, inside).end()  # type: ignore[union-attr]
        last = _END.match(text, stop) if stop - inside <= _KEY_CHARS else None
        is_open = stop >= len(text) - 1 and text[stop:] in ("", "\\") and len(text) - inside <= _KEY_CHARS
        if is_open and open_key is None:
            open_key = begin.start()
        end = (last or _INSIDE.match(text, inside)).end()  # type: ignore[union-attr]
        keys.append(Secret(begin.start(), end, PRIVATE_KEY))
        begin = _BEGIN.search(text, end)
    return keys, open_key
