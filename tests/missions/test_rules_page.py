"""The page that maps rules to tests names tests that are there, and a test for every rule."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "mission-rules.md"


def functions_of(name: str) -> set[str]:
    path = next(path for path in (TESTS / "missions" / name, TESTS / "cli" / name) if path.is_file())
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def test_every_rule_of_the_contracts_names_tests_that_are_there() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rules = [line for line in rows if not line.startswith(("| Rule |", "| --- |"))]
    assert len(rules) > 35
    for rule in rules:
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", rule)
        assert named, rule
        assert [test for file, test in named if test not in functions_of(file)] == []
