"""An agent of ``accord run`` at work with its tools: from a container, with hostile inputs, and past the tools."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.agent_bench import CHECKOUT, Bench, Left, bench
from support.plans import plan, task
from support.reviews import approve, needs_changes
from support.trees import commit

from accord.mcp.tools import SESSION, TOOLS

__all__ = ["bench"]

pytestmark = pytest.mark.slow

KEY = "key-of-this-agent-" + "1b3d" * 5
TOKEN = "ghs-of-the-job-" + "7c1d" * 6
OUTSIDE = "words-of-another-file-" + "4e5f" * 5
CYCLE = plan(task("one", "two"), task("two", "one"))
GOOD = plan(task("one"), task("two", "one"))


def play(
    bench: Bench,
    *turns: Sequence[tuple[str, Any]],
    options: Sequence[str] = ("--schema", "planner-result"),
    message: str = "Done.",
    **job: str,
) -> tuple[Left, list[dict[str, Any]]]:
    """Run an agent that calls these tools, a list for each turn; return the run, and what the agent saw in each."""
    (bench.top / "calls.json").write_text(json.dumps({"turns": turns, "message": message}))
    program = (CHECKOUT / "tests/support/tool_agent.py").read_text()
    mine = {"codec": "claude", "command": ["{command}", "{mcp_server}"], "required_secrets": ["MY_KEY"], "mcp": True}
    mine |= {"mcp_server": {"arguments": ["--mcp-config", "{file}"]}}
    registry = bench.registry({"agents": {"mine": mine}})
    words = [*bench.scripted(program, "mine"), "--registry", registry, "--fail", *options]
    left = bench.run(*words, job={"MY_KEY": KEY, "GITHUB_TOKEN": TOKEN, **job})
    seen = bench.work / "seen.json"
    return left, json.loads(seen.read_text()[::-1]) if seen.exists() else []


def in_container(bench: Bench) -> dict[str, str]:
    """Return a job in which accord is installed where the agent's container hides everything, and says so."""
    source = bench.top / "temp/accord/src"
    shutil.copytree(CHECKOUT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    server = source / "accord/mcp/server.py"
    server.write_text(server.read_text().replace("Nothing was written.", "Nothing was written by the hidden accord."))
    (bench.top / "temp/accord/.github").symlink_to(CHECKOUT / ".github")
    return {"GITHUB_ACTIONS": "true", "PYTHONPATH": str(source)}


def test_a_refused_result_is_corrected_and_taken_from_a_container(bench: Bench) -> None:
    calls = [("submit_result", {"result": CYCLE}), ("check_result", {"result": GOOD})]
    left, (turn,) = play(bench, [*calls, ("submit_result", {"result": GOOD})], **in_container(bench))
    assert left.code == 0, left.err
    refused, checked, sent = turn["answers"]
    assert (refused[0], checked[0], sent[0]) == (False, True, True)
    assert "dependency-cycle" in refused[1]
    assert "by the hidden accord" in refused[1]
    assert json.loads(left.outputs["result-json"]) == json.loads(left.text("result.json")) == GOOD
    assert [entry["outcome"] for entry in left.record["attempts"]] == ["done"]
    path, modes = turn["file"]
    assert (0o700 in modes, Path(path).exists(), Path(path).is_relative_to(bench.work)) == (True, False, False)


def test_no_tool_reaches_a_secret_or_a_file_outside(bench: Bench) -> None:
    outside = bench.top / "outside.txt"
    outside.write_text(OUTSIDE)
    (bench.work / "link").symlink_to(outside)
    inputs: dict[str, list[dict[str, Any]]] = {
        "contract": [{}, {"role": "../planner"}], "check_result": [{"result": {"role": str(outside)}}],
        "submit_result": [{"result": {"patch": "link"}}], "list_work_items": [{}, {"status": "$MY_KEY"}],
        "read_work_item": [{"number": "../../outside.txt"}], "scope_of": [{"number": "1", "path": str(outside)}],
        "diff_lines": [{}, {"path": "link"}, {"path": str(outside)}, {"path": "--output=x"}],
        "report_blocked": [{"blocker": {"description": "$GITHUB_TOKEN"}}],
    }  # fmt: skip
    assert inputs.keys() == {function.__name__ for function in TOOLS if function not in SESSION}
    calls = [(name, each) for name, several in inputs.items() for each in several]
    done = ("submit_result", {"result": {"role": "implementor", "outcome": "completed", "patch": None, "summary": "D"}})
    left, (turn,) = play(bench, [*calls, done], options=("--schema", "implementor-result", "--repair-turns", "0"))
    assert len(turn["answers"]) == len(calls) + 1
    answers = json.dumps(turn["answers"])
    assert [text for text in (KEY, TOKEN, OUTSIDE) if text in answers] == []
    assert turn["answers"][-1][0], turn["answers"][-1]
    assert left.code == 0, left.err
    assert json.loads(left.outputs["result-json"]) == json.loads(left.text("result.json")) == done[1]["result"]
    assert json.loads(left.text("submitted-result.json"))["patch"] is None
    assert ("seen.json" in left.text("changes.patch"), left.outputs["final-message-summary"]) == (True, "Done.")
    assert sorted(path.name for path in bench.work.iterdir()) == [".git", "README.md", "link", "prompt.md", "seen.json"]


def test_a_result_past_the_tools_meets_the_same_checks(bench: Bench) -> None:
    """It is refused and asked for again; what is submitted then loses the agent's secret."""
    whole = approve(summary=f"All good, and {KEY}.")
    left, (first, _) = play(
        bench, [("write", json.dumps(needs_changes()))], [("submit_result", {"result": whole})],
        options=("--schema", "reviewer-result"), message="{}",
    )  # fmt: skip
    assert left.code == 0, left.err
    assert [entry["outcome"] for entry in left.record["attempts"]] == ["broken", "done"]
    assert [each["code"] for each in left.record["attempts"][0]["findings"]] == ["needs-changes-without-finding"]
    assert "--base" not in first["server"]
    assert KEY not in left.out + left.text("result.json") + left.text("submitted-result.json")
    assert json.loads(left.text("result.json"))["review"]["verdict"] == "approve"


def test_without_a_submitted_result_the_final_message_counts(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "change")
    (bench.work / "new.txt").write_text("new\n")
    commit(bench.work)
    options = ("--schema", "reviewer-result", "--base-ref", "main")
    left, (turn,) = play(bench, [("diff_lines", {})], options=options, message=json.dumps(approve()))
    assert json.loads(left.text("result.json")) == approve(), left.err
    assert json.loads(turn["answers"][0][1]) == {"files": ["new.txt"]}
