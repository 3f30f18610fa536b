"""A weak agent breaks its contract in ten ways. With the tools it hears why and ends valid; without, it seldom does."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.implementations import completed
from support.plans import plan, refinement, task
from support.reviews import approve, comment, needs_changes

from accord.core.errors import BrokenContract
from accord.core.findings import has_errors
from accord.core.fixes import fix_text
from accord.core.kinds import check_document
from accord.mcp import tools
from accord.mcp.workspace import Role, Workspace

OPTIONS = [
    {"choice": "Wait.", "trade_off": "late, but sure"},
    {"choice": "Guess.", "trade_off": "soon, but maybe wrong"},
]
BLOCKER = {"type": "external-dependency", "description": "The service refuses every request.", "options": OPTIONS}


def renamed(result: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {
        **result,
        "create": [{new if key == old else key: value for key, value in item.items()} for item in result["create"]],
    }


def without_label(result: dict[str, Any], label: str) -> dict[str, Any]:
    create = [{**item, "labels": [each for each in item["labels"] if each != label]} for item in result["create"]]
    return {**result, "create": create}


GOOD = plan(task("one"), task("two", "one"))
BROKEN: dict[str, tuple[Role, dict[str, Any], str, dict[str, Any]]] = {
    "a cycle": ("planner", plan(task("one", "two"), task("two", "one")), "dependency-cycle", GOOD),
    "a name twice": ("planner", plan(task("one"), task("one", in_scope="- src/b.py")), "duplicate-temp-id", GOOD),
    "no criteria": ("planner", plan(task("one", criteria="It works")), "criteria-missing", plan(task("one"))),
    "one option": ("planner", plan(refinement("a", options="1. **One** is cheap")), "options-too-few",
        plan(refinement("a"))),
    "no complexity": ("planner", without_label(GOOD, "complexity:low"), "label-missing", GOOD),
    "a misspelt key": ("planner", renamed(GOOD, "tempID", "tempId"), "schema", GOOD),
    "no status": ("planner", without_label(GOOD, "status:pending"), "label-missing", GOOD),
    "no finding": ("reviewer", needs_changes(), "needs-changes-without-finding", needs_changes(comment("a.py", 3))),
    "approval with a finding": ("reviewer", approve(comment("a.py", 3)), "approve-with-finding",
        needs_changes(comment("a.py", 3))),
    "stuck without saying why": ("implementor", completed("", "It does not work."), "patch-missing",
        {"recommendation": "Wait.", "impact": "The export stays unfinished.", **BLOCKER}),
}  # fmt: skip
"""By the fault: role, first try, the code of the refusal, and the second try (a report for an agent that is stuck)."""


def is_valid(raw: bytes, role: str) -> bool:
    return not has_errors(check_document(raw, f"{role}-result")[1])


@pytest.mark.parametrize("fault", BROKEN)
def test_with_the_tools_a_weak_agent_hears_why_and_ends_valid(tmp_path: Path, fault: str) -> None:
    role, first, code, second = BROKEN[fault]
    workspace = Workspace(tmp_path, tmp_path, role)
    with pytest.raises(BrokenContract) as refused:
        tools.submit_result(workspace, first)
    assert code in [finding.code for finding in refused.value.findings]
    assert not (tmp_path / "result.json").exists()
    if "impact" in second:
        tools.report_blocked(workspace, tools.Blocker.model_validate(second))
    else:
        tools.submit_result(workspace, second)
    assert is_valid((tmp_path / "result.json").read_bytes(), role)


def test_without_the_tools_two_of_ten_can_be_corrected() -> None:
    """Those are the faults with one possible correction, which ``accord run`` makes by itself."""
    ended = {
        fault: fix_text(json.dumps(first).encode(), f"{role}-result") for fault, (role, first, *_) in BROKEN.items()
    }
    valid = [fault for fault, (raw, _) in ended.items() if is_valid(raw, BROKEN[fault][0])]
    assert valid == ["a misspelt key", "no status"]
