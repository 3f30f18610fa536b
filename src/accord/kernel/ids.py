"""Identifiers that sort by the time they were made."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(moment: datetime, entropy: int | None = None) -> str:
    """Return a ULID: 48 bits of milliseconds and 80 of chance, as 26 letters. Source: github.com/ulid/spec."""
    chance = secrets.randbits(80) if entropy is None else entropy
    number = (int(moment.timestamp() * 1000) << 80) | chance
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))
