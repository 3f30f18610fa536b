"""The pages about handoffs match the code: each rule has a test, and each role exists."""

import ast
import re
from pathlib import Path

from accord.handoffs.rules import ROLES

ROOT = Path(__file__).parents[2]


def named_tests() -> set[str]:
    """The names of all tests about handoffs."""
    others = [*(ROOT / "tests/cli").glob("test_handoff_*.py"), ROOT / "tests/github/test_state.py"]
    return {
        node.name
        for path in [*(ROOT / "tests/handoffs").glob("test_*.py"), *others]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_rule_of_the_page_has_tests_and_each_of_them_exists() -> None:
    page = (ROOT / "docs/handoff-rules.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| Rule", "| ---"))]
    assert len(rows) > 30
    known = named_tests()
    for row in rows:
        tests = re.findall(r"`(test_\w+)`", row)
        assert tests, row
        assert set(tests) <= known, set(tests) - known


def test_the_page_lists_every_role() -> None:
    page = (ROOT / "docs/handoffs.md").read_text(encoding="utf-8")
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    assert set(listed) == set(ROLES)
