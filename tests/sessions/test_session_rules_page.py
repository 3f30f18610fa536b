"""The page of rules names tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for line in (ROOT / "docs/session-rules.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| Rule", "| ---"))
]


@cache
def names_in(name: str) -> set[str]:
    """Name the tests of a module, which is in one of the folders of tests."""
    (path,) = (ROOT / "tests").rglob(name)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {part.name for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=[row[2:60] for row in ROWS])
def test_every_rule_names_a_test_that_is_there(row: str) -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row)
    assert named
    assert [test for module, test in named if test not in names_in(module)] == []
