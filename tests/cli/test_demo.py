"""The demo is the first thing that people see of accord, and its examples are what they copy."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord

ROOT = Path(__file__).parents[2]
RESULTS = ["planner-result", "implementor-result", "reviewer-result"]
PULL = re.compile(r"^Pull request: +http://127\.0\.0\.1:\d+(/accord/sandbox/pull/\d+)$", re.MULTILINE)
AGAIN = re.compile(r"^and again: (\w+) \(\d+ reads, (\d+) writes\)$", re.MULTILINE)


def example(kind: str) -> Any:
    return json.loads((ROOT / "examples" / f"{kind}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", RESULTS)
def test_the_examples_are_what_their_contract_asks_for(accord: Accord, kind: str) -> None:
    checked = accord("check", "--format", "json", ROOT / "examples" / f"{kind}.json")
    (document,) = checked.document["documents"]
    assert (document["kind"], document["findings"]) == (kind, [])


def test_everything_the_demo_reads_is_shipped_with_the_package() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in [*(f"{kind}.json" for kind in RESULTS), "sandbox-seed.yml", "repositories"]:
        assert f'"examples/{name}" = "accord/examples/{name}"' in settings


@pytest.mark.slow
def test_the_demo_applies_each_result_once_however_often_it_is_applied(accord: Accord) -> None:
    shown = accord("demo", "--no-stay", "--dir", accord.home / "sandbox")
    assert shown.code == 0, shown.err
    assert [line for line in shown.out.splitlines() if line.startswith("applied to accord/sandbox: ")] == [
        "applied to accord/sandbox: 24 done (6 reads, 29 writes)",
        "applied to accord/sandbox: 3 done (5 reads, 10 writes)",
        "applied to accord/sandbox: 3 done (7 reads, 8 writes)",
    ]
    assert AGAIN.findall(shown.out) == [("unchanged", "0")] * 3
    other = accord("demo", "--no-stay", "--dir", accord.home / "sandbox")
    assert other.code == 0, other.err
    assert "applied to" not in other.out
    (page,) = PULL.findall(shown.out)
    assert PULL.findall(other.out) == [page]


@pytest.mark.parametrize("at", [0, 1])
def test_a_suggestion_of_the_example_review_fixes_its_line(at: int) -> None:
    """GitHub puts the suggestion in the place of that line when a person presses the button."""
    comment = example("reviewer-result")["review"]["comments"][at]
    added = example("implementor-result")["patch"].split(f"+++ b/{comment['path']}\n")[1].split("\ndiff --git")[0]
    old = [line[1:] for line in added.splitlines() if line.startswith("+")][comment["line"] - 1]
    (new,) = re.findall(r"```suggestion\n(.*)\n```", comment["body"])
    assert new != old
    assert new.partition("=")[0] == old.partition("=")[0]
