"""Spans as text, by docs/spec.md."""

from datetime import timedelta

UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""Seconds by unit, from the largest to the smallest."""


def format_span(span: timedelta) -> str:
    """Return a span such as ``1h 30m``."""
    left, parts = int(span.total_seconds()), []
    for unit, seconds in UNITS.items():
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"
