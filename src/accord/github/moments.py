"""Moments as GitHub writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(text: str) -> datetime:
    """Read a moment. Raises ValueError for what is none."""
    return datetime.fromisoformat(text).astimezone(UTC)


def moment_if_any(text: str | None) -> datetime | None:
    """Read a moment; None where GitHub gives none. Raises ValueError for what is no moment."""
    return moment(text) if text else None
