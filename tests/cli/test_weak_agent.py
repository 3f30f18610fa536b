"""A weak agent breaks its contract in ten ways. With the tools it hears why and ends valid; without, it seldom does."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from support.implementations import completed
from support.plans import plan, refinement, task
from support.reviews import approve, comment, needs_changes

from accord.core.findings import has_errors
from accord.core.fixes import fix_text
from accord.core.kinds import check_document

Change = Callable[[dict[str, Any]], dict[str, Any]]

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
BROKEN: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
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


async def work(role: str, folder: Path) -> list[str]:
    """Submit the first try of each fault; after a refusal that names it, the second one. Return the faults."""
    command = ["-P", "-m", "accord", "mcp", "--role", role, "--run-dir", str(folder)]
    result, faults = folder / "result.json", [fault for fault, (of, *_) in BROKEN.items() if of == role]
    async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=command))) as agent:
        for fault in faults:
            _, first, code, second = BROKEN[fault]
            refused = await agent.call_tool("submit_result", {"result": first})
            assert refused.is_error, fault
            assert code in "".join(getattr(part, "text", "") for part in refused.content)
            assert not result.exists()
            is_report = "impact" in second
            tool, inputs = (
                ("report_blocked", {"blocker": second}) if is_report else ("submit_result", {"result": second})
            )
            sent = await agent.call_tool(tool, inputs)
            assert not sent.is_error, (fault, sent.content)
            assert is_valid(result.read_bytes(), role), fault
            result.unlink()
    return faults


@pytest.mark.slow
def test_with_the_tools_a_weak_agent_ends_valid_every_time(tmp_path: Path) -> None:
    ended = [fault for role in ("planner", "implementor", "reviewer") for fault in asyncio.run(work(role, tmp_path))]
    assert sorted(ended) == sorted(BROKEN)
    assert len(ended) == 10


def test_without_the_tools_two_of_ten_can_be_corrected() -> None:
    """Those are the faults with one possible correction, which ``accord run`` makes by itself."""
    ended = {
        fault: fix_text(json.dumps(first).encode(), f"{role}-result") for fault, (role, first, *_) in BROKEN.items()
    }
    valid = [fault for fault, (raw, _) in ended.items() if is_valid(raw, BROKEN[fault][0])]
    assert valid == ["a misspelt key", "no status"]
