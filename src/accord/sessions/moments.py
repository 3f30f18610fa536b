"""Timestamps as sessions have them: ISO-8601 in every spelling that tools write, checked and never rewritten."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from accord.core.findings import Finding, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

_WITH_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?\Z")
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")


def moment_findings(text: str | None, path: str) -> Iterator[Finding]:
    """Check one timestamp; any number of fractional digits is fine, a missing time or zone is a warning."""
    if text is None:
        return
    if not is_moment(text):
        message = "This is no ISO-8601 timestamp. Write it like 2026-01-31T09:30:00Z."
        yield Finding("timestamp-invalid", message, path)
    elif _DAY.match(text) or not re.search(r"(Z|[+-]\d\d:?\d\d)\Z", text):
        message = "The timestamp has no time or no zone, so its order among others is not known. Write it with Z."
        yield warning("timestamp-vague", message, path)


def is_moment(text: str) -> bool:
    """Tell whether a text is a date, or a date with a time, that exists."""
    return read_moment(text) is not None


def read_moment(text: str) -> datetime | None:
    """Read a date, or a date with a time, with or without a zone; None where there is no such moment."""
    if not (_WITH_TIME.match(text) or _DAY.match(text)):
        return None
    try:
        return datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None


def is_before(moment: str, other: str) -> bool:
    """Tell whether a timestamp is earlier than another; where only one has a zone, it is left out of account.

    What is no timestamp is not earlier than any, and none is earlier than it.
    """
    first, second = read_moment(moment), read_moment(other)
    if first is None or second is None:
        return False
    if (first.tzinfo is None) != (second.tzinfo is None):
        first, second = first.replace(tzinfo=None), second.replace(tzinfo=None)
    return first < second
