"""Faults of a text as a whole: a placeholder for another text, and line ends that were escaped twice."""

from __future__ import annotations

import re

from accord.core.findings import Finding

_PLACEHOLDER = re.compile(r"[\W_]*|<[^<>]*>|\{+[^{}]*\}+|(?:todo|tbd|tba|fixme|text)\W*", re.IGNORECASE)


def is_placeholder(text: str) -> bool:
    """Tell whether a text is blank or a place for another one, such as ``...``, ``<summary>`` or ``TODO``."""
    return bool(_PLACEHOLDER.fullmatch(text.strip()))


def line_end_findings(text: str, path: str) -> list[Finding]:
    r"""Find a text on one line that has ``\n`` as two characters where its lines should end; ``path`` points at it."""
    if "\n" in text.strip() or text.count("\\n") < 2:
        return []
    message = "The text has `\\n` as two characters where its lines should end, so it is one line."
    return [Finding("line-ends-escaped", message, path, hint="In JSON, escape each line end once: `\\n`, not `\\\\n`.")]
