"""Lengths of time in words."""

from spans.writing import format_span

__all__ = ["format_span"]
