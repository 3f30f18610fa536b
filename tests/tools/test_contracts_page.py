"""The page of the contracts names a proof that exists for each statement, or counts the statement as open."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPEN = 0
"""Statements that hold nowhere, or that nothing proves. This number only falls."""

NAMED = re.compile(r"`(?:(test_\w+\.py)::)?(test_\w+)`")
DECISION = re.compile(r"\(decisions/([\w-]+\.md)\)")


@cache
def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@cache
def modules_of_tests() -> dict[str, set[str]]:
    """Map the name of each test to the modules that have it."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, set()).add(path.name)
    return found


def rows() -> list[list[str]]:
    """Return number, statement, what enforces it if the page names it, and proof of each row."""
    lines = [line for line in page("contracts.md").splitlines() if re.match(r"\| [A-Z]\d", line)]
    return [[cell.strip() for cell in line.strip("| ").split(" |")] for line in lines]


@cache
def is_known(name: str) -> bool:
    """Whether what enforces a statement exists: a command, an option or a finding."""
    if " " in name:
        return f"# {name}\n" in page("cli.md")
    return f"`{name}" in page("cli.md") if name.startswith("-") else f'<a id="{name}">' in page("findings.md")


def is_one_test(module: str, name: str) -> bool:
    found = modules_of_tests().get(name, set())
    return module in found if module else len(found) == 1


def faults(row: list[str]) -> list[str]:
    """Name what a row says and nothing has."""
    _, statement, enforced, proof = row
    tests, decisions = NAMED.findall(proof), DECISION.findall(f"{enforced} {proof}")
    has_proof = bool(tests or decisions)
    return [
        *(f"{name} is not one test" for module, name in tests if not is_one_test(module, name)),
        *(f"{name} does not exist" for name in re.findall(r"`([^`]+)`", enforced) if not is_known(name)),
        *(f"{name} does not exist" for name in decisions if not (ROOT / "docs/decisions" / name).exists()),
        *(["either a proof or `open`"] if has_proof == (proof == "open") else []),
        *(["more than 12 words"] if len(statement.split()) > 12 else []),
    ]


def test_every_statement_names_proofs_that_exist() -> None:
    assert {row[0]: found for row in rows() if (found := faults(row))} == {}


def test_statements_of_each_contract_are_numbered() -> None:
    letters = [row[0][0] for row in rows()]
    assert [row[0] for row in rows()] == [
        f"{letter}{i}" for letter in "WRAMH" for i in range(1, letters.count(letter) + 1)
    ]
    assert min(map(letters.count, "WRAMH")) > 20


def test_open_statements_become_fewer() -> None:
    assert len([row for row in rows() if row[3] == "open"]) == OPEN, "lower OPEN with each statement that gets a proof"


GOOD = ["W1", "It holds.", "`schema`, `accord check`, `--debug`", "`test_statements_of_each_contract_are_numbered`"]


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        (2, "`schema`", []),
        (2, "`no-such-code`", ["no-such-code does not exist"]),
        (2, "`accord nothing`", ["accord nothing does not exist"]),
        (2, "`--nothing`", ["--nothing does not exist"]),
        (2, "[0001](decisions/0001-x.md)", ["0001-x.md does not exist"]),
        (3, "`test_nothing`", ["test_nothing is not one test"]),
        (3, "later", ["either a proof or `open`"]),
        (1, "word " * 13, ["more than 12 words"]),
    ],
)
def test_a_row_that_names_what_is_not_there_is_a_fault(place: int, text: str, expected: list[str]) -> None:
    assert faults([*GOOD[:place], text, *GOOD[place + 1 :]]) == expected
