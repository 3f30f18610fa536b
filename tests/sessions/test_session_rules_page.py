"""The pages of rules of sessions and missions name existing tests for every rule."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["session-rules.md", "mission-rules.md"]


@cache
def names_in(name: str) -> set[str]:
    """Return the test functions of a module in a folder of tests."""
    (path,) = (ROOT / "tests").rglob(name)
    return {part.name for part in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(part, ast.FunctionDef)}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_rule_names_existing_tests(page: str) -> None:
    lines = (ROOT / "docs" / page).read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith(("| Rule", "| ---"))]
    assert len(rows) > 35
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row)
        assert named, row
        assert [test for module, test in named if test not in names_in(module)] == [], row
