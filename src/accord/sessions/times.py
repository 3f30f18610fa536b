"""Timestamps of sessions, as tools write them. All pure.

Source: global agent contract, "status.json - minimal schema": times are ISO-8601.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from accord.core.findings import Finding, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

_WITH_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?\Z")
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)\Z")


@lru_cache(maxsize=4096)
def parse_lenient_timestamp(text: str) -> datetime | None:
    """Return an ISO-8601 date, with or without a time and an offset, as tools write it; None for any other text."""
    if not (_WITH_TIME.match(text) or _DAY.match(text)):
        return None
    try:
        return datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None


def is_before(timestamp: str, other: str) -> bool:
    """Return whether a timestamp is earlier; offsets count if both have one, and other texts are never earlier."""
    first, second = parse_lenient_timestamp(timestamp), parse_lenient_timestamp(other)
    if first is None or second is None:
        return False
    if (first.tzinfo is None) != (second.tzinfo is None):
        first, second = first.replace(tzinfo=None), second.replace(tzinfo=None)
    return first < second


def timestamp_findings(text: str | None, path: str) -> Iterator[Finding]:
    """Check one timestamp: any number of fractional digits is fine, a missing time or offset is a warning."""
    if text is None:
        return
    if parse_lenient_timestamp(text) is None:
        message = "The value is not an ISO-8601 timestamp."
        yield Finding("timestamp-invalid", message, path, hint="Write it like `2026-01-31T09:30:00Z`.")
    elif not _ZONE.search(text) or _DAY.match(text):
        message = "The timestamp lacks a time or an offset, so its order is unknown."
        yield warning("timestamp-vague", message, path, hint="Write it like `2026-01-31T09:30:00Z`.")
