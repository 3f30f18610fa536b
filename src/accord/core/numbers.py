"""Numbers of documents, as JSON Schema defines them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def _without_fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(_without_fraction)]
"""A whole number, also when it is written as ``3.0`` or ``3e0``: strict models would refuse these."""


def issue_number(value: object) -> int:
    """Read the number of an issue from a document: 12, ``12`` or ``#12``; 0 for anything else."""
    text = "" if isinstance(value, bool) else str(value).strip().removeprefix("#")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else 0


_MOST_DIGITS = 18
