"""Every finding says what to do about it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).parents[2] / "src" / "accord"

CONSTRUCTORS = ("Finding", "warning")
"""``finding_of`` takes the hint out of its text."""


STATEMENT = re.compile(r"(?:The|It|Only|Ask|Tell|Read)\b[^.,:`]*\.")
"""A sentence that states something or leaves it to talk, where an edit or a command could be copied."""


def findings_without_hint(file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    for call in ast.walk(ast.parse(text)) if any(f"{name}(" in text for name in CONSTRUCTORS) else ():
        is_finding = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CONSTRUCTORS
        hints = [ast.unparse(word.value)[1:-1] for word in call.keywords if word.arg == "hint"] if is_finding else []
        if is_finding and (not hints or STATEMENT.fullmatch(hints[0])):
            yield f"{file.name}:{call.lineno}: {ast.unparse(call)}"


@pytest.mark.slow
def test_every_finding_has_a_hint() -> None:
    assert [found for file in sorted(SOURCES.rglob("*.py")) for found in findings_without_hint(file)] == []
