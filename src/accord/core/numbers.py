"""Numbers of documents, as JSON Schema defines them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def _without_fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(_without_fraction)]
"""A whole number, also when it is written as ``3.0`` or ``3e0``: strict models would refuse these."""
