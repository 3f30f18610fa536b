"""Texts that stand where an author should have written one."""

from __future__ import annotations

import re

_PLACEHOLDER = re.compile(r"[\W_]*|<[^<>]*>|\{+[^{}]*\}+|(?:todo|tbd|tba|fixme|text)\W*", re.IGNORECASE)


def is_placeholder(text: str) -> bool:
    """Tell whether a text is blank or a place for another one, such as ``...``, ``<summary>`` or ``TODO``."""
    return bool(_PLACEHOLDER.fullmatch(text.strip()))
