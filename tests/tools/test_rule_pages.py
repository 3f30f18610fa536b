"""The pages of rules of sessions, missions and handoffs name existing tests for every rule."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"`(?:(test_\w+\.py)::)?(test_\w+)`")


@cache
def functions_of_tests() -> dict[str, set[str]]:
    """Map each module of tests to its functions, and the name "" to those of all modules."""
    found = {
        path.name: {part.name for part in ast.parse(path.read_bytes()).body if isinstance(part, ast.FunctionDef)}
        for path in TESTS.rglob("test_*.py")
    }
    return {"": set().union(*found.values()), **found}


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((TESTS / "rules").iterdir()), ids=lambda page: page.stem)
def test_every_rule_names_existing_tests(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith(("| Rule", "| ---"))]
    assert len(rows) > 30
    for row in rows:
        named = NAMED.findall(row)
        assert named, row
        assert [test for module, test in named if test not in functions_of_tests().get(module, set())] == [], row
