"""Taking secrets out of what a program prints, while it prints it, in constant memory.

No token contains a line break, and of a known secret every line is known, so a line is the unit: it is passed on as
soon as it is whole. Of a longer line, and of a private key, so much is held back as a secret may still need to be seen
whole. Bytes that are no UTF-8 stay as they are.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.kernel.redaction import merged, without

if TYPE_CHECKING:
    from accord.kernel.redaction import Redactor, Secret

_HELD_CHARS = 8 * 1024
"""How much of an unfinished line is held back: longer than any token."""

_KEY_CHARS = 16 * 1024
"""How long a private key may be; what goes on longer without an end is none."""

_BEGIN = r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"
_KEY = re.compile(
    rf'{_BEGIN}(?:(?:\\.|[^"\\]){{0,{_KEY_CHARS}}}?-----END (?:[A-Z]+ )*PRIVATE KEY-----'
    r"|(?:\\[nrt]|[A-Za-z0-9+/=\s])*)",
    re.DOTALL,
)
"""A key to its end, or what looks like the inside of one. A bare quotation mark ends it: it ends a text of JSON."""

_UNFINISHED = re.compile(rf'{_BEGIN}(?:\\.|[^"\\])*\\?\Z', re.DOTALL)


class RedactedStream:
    """Feed it what a program printed, piece by piece; it gives back the same without secrets, a little later."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""
        self._held_chars = max([_HELD_CHARS, *map(len, redactor.values)])

    def feed(self, data: bytes) -> bytes:
        """Take the next piece; return what can be passed on by now."""
        text = self._decoder.decode(data)
        self._held += text
        is_worth_a_look = "\n" in text or len(self._held) > 2 * self._held_chars
        return self._pass_on(is_end=False) if is_worth_a_look else b""

    def end(self) -> bytes:
        """Return what was held back."""
        self._held += self._decoder.decode(b"", final=True)
        return self._pass_on(is_end=True)

    def _pass_on(self, *, is_end: bool) -> bytes:
        text = self._held
        secrets = self._secrets(text)
        cut = len(text) if is_end else self._cut(text, secrets)
        self._held = text[cut:]
        ready = without([secret for secret in secrets if secret.start < cut], text[:cut])
        return ready.encode("utf-8", "surrogateescape")

    def _secrets(self, text: str) -> list[Secret]:
        """Find secrets; of a private key no more than belongs to it, and then what stands behind that."""
        found: list[Secret] = []
        start: int | None = 0
        while start is not None:
            offset, start = start, None
            for hit in self._redactor.find(text[offset:]):
                secret = replace(hit, start=hit.start + offset, end=hit.end + offset)
                key = _KEY.match(text, secret.start) if secret.kind == "private-key" else None
                if key and key.end() < secret.end:
                    found.append(replace(secret, end=key.end()))
                    start = key.end()
                    break
                found.append(secret)
        return merged(found)

    def _cut(self, text: str, secrets: list[Secret]) -> int:
        """Return up to where the text is final: nothing that comes later can make a secret of it."""
        whole_lines = text.rfind("\n") + 1
        cut = max(whole_lines, len(text) - self._held_chars)
        open_key = _UNFINISHED.search(text, max(0, len(text) - _KEY_CHARS))
        if open_key:
            cut = min(cut, open_key.start())
        for secret in secrets:
            if secret.start < cut < secret.end or (secret.start < cut and secret.end == len(text)):
                is_final = secret.end < len(text) or len(text) - secret.start > self._held_chars + _KEY_CHARS
                cut = secret.end if is_final else secret.start
        return cut
