"""Every error of a contract says how to fix it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).parents[2] / "src" / "accord"

PASSED_ON = ("error.message", "text", "self.unreadable", "session.parts[name].unreadable", "found.message")
"""Messages that other code wrote, with its hint."""


def errors_without_hint(file: Path) -> Iterator[str]:
    for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "Finding" and len(call.args) > 1):
            continue
        code, message = (ast.unparse(argument) for argument in call.args[:2])
        is_exempt = message in PASSED_ON or "problem" in message
        if not is_exempt and not any(word.arg == "hint" for word in call.keywords):
            yield f"{file.name}:{call.lineno}: {code} {message}"


@pytest.mark.slow
def test_every_error_has_a_hint() -> None:
    assert [found for file in sorted(SOURCES.rglob("*.py")) for found in errors_without_hint(file)] == []
