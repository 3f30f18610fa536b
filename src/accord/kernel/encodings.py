"""How a secret looks in the encodings that every shell has a command for, so that it is known in these too.

GitHub's runner masks the base64 forms of a secret for the same reason: ``Authorization: Basic`` holds one, and printing
it encoded is the first thing that somebody tries who wants to get past a mask.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterator

_PERCENT = re.compile("%[0-9A-F]{2}")


def encoded_forms(text: str) -> Iterator[str]:
    """Yield the text in base64, wherever it stands in what was encoded, in hexadecimal digits and as part of a URL."""
    data = text.encode("utf-8", "surrogatepass")
    for before in range(3):
        middle = _base64_within(data, before)
        yield from (middle, middle.replace("+", "-").replace("/", "_"))
    yield from (data.hex(), data.hex().upper())
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield from (quoted, _PERCENT.sub(lambda hit: hit.group().lower(), quoted))


def _base64_within(data: bytes, before: int) -> str:
    """Return the characters that data alone decides, when ``before`` bytes (modulo 3) are encoded ahead of it."""
    whole = base64.b64encode(b"\0" * before + data).decode()
    first = -(-before * 8 // 6)
    end = (before + len(data)) * 8 // 6
    return whole[first:end]
