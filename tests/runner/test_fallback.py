"""An agent that is full, down or silent is replaced by the next one, in the same files, time and money."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.agent_bench import Bench, Left

pytestmark = pytest.mark.slow
AGENT = r"""
import json, pathlib, subprocess, sys, time
name, does = sys.argv[1:3]
here = pathlib.Path.cwd()
def say(**event): print(json.dumps(event), flush=True)
(pathlib.Path(__file__).parent / (name + ".saw")).write_text(json.dumps(sorted(
    [str(path.relative_to(here)) + ":" + path.read_text() for path in here.rglob("*")
    if path.is_file() and ".git" not in path.relative_to(here).parts])))
say(type="system", subtype="init", model="model-of-" + name, session_id="s-" + name, tools=[])
(here / "new-of-{}.txt".format(name)).write_text("new")
(here / "README.md").write_text("# By {}\n".format(name))
(here / "kept.txt").unlink(missing_ok=True)
(here / "out" / "deep").mkdir(parents=True, exist_ok=True)
(here / "out" / "deep" / (name + ".log")).write_text("ignored")
if does == "commits":
    for words in (["add", "-A"], ["commit", "-qm", "Half"], ["switch", "-qc", "aside"],
                  ["commit", "-q", "--allow-empty", "-m", "Aside"], ["switch", "-q", "main"]):
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words], check=True)
    does = "overloaded"
if does == "moves":
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["git", "update-ref", "refs/heads/main2", head], check=True)
    subprocess.run(["git", "update-ref", "-d", "refs/heads/side"], check=True)
    does = "hangs"
if does == "hangs":
    time.sleep(300)
ends = {"exhausted": (429, "You've hit your weekly limit. Your credits are exhausted."),
    "overloaded": (529, "Overloaded")}
status, text = ends.get(does, (None, "Done by " + name))
subtype = "error_max_budget_usd" if does == "spends" else "success"
failed = status is not None or does == "spends"
say(type="result", subtype=subtype, is_error=failed, result=text, api_error_status=status, total_cost_usd=0.5,
    usage={"input_tokens": 100, "output_tokens": 10})
sys.exit(failed)
"""


def ran(
    bench: Bench,
    *agents: str,
    more: dict[str, Any] | None = None,
    entry: dict[str, Any] | None = None,
    first: dict[str, Any] | None = None,
    words: Sequence[str] = (),
) -> Left:
    """Run ``NAME:DOES`` agents that speak like Claude Code, the first one first, and the others as its fallback."""
    program = bench.top / "agent.py"
    program.write_text(AGENT)
    pairs = [agent.split(":") for agent in agents]
    entries = {
        name: {"codec": "claude", "command": [sys.executable, str(program), name, does], **(entry or {})}
        for name, does in pairs
    }
    entries[pairs[0][0]] |= first or {}
    for name, does in pairs:
        if does == "keyless":
            entries[name]["required_secrets"] = ["NO_SUCH_KEY"]
    names = [name for name, _ in pairs]
    registry = bench.registry({"agents": entries, "fallback": names[1:], **(more or {})})
    return bench.run("--agent", names[0], "--prompt-file", "prompt.md", "--registry", registry, *words)


@pytest.fixture
def tree(bench: Bench) -> Bench:
    """A work tree with an ignored file and uncommitted ones."""
    (bench.work / ".gitignore").write_text("out/\n")
    (bench.work / "kept.txt").write_text("kept")
    (bench.work / "out").mkdir()
    (bench.work / "out" / "cache").write_text("cache")
    return bench


def saw(bench: Bench, name: str) -> list[str]:
    found: list[str] = json.loads((bench.top / f"{name}.saw").read_text())
    return found


def outcomes(left: Left) -> list[tuple[str, str, str]]:
    return [(entry["agent"], entry["outcome"], entry["cause"]) for entry in left.record["attempts"]]


@pytest.mark.parametrize(
    ("does", "cause"),
    [
        ("exhausted", "quota"),
        ("commits", "outage"),
    ],
)
def test_the_next_agent_starts_from_the_same_files_and_nothing_is_lost(tree: Bench, does: str, cause: str) -> None:
    before = tree.git("rev-parse", "HEAD")
    left = ran(tree, f"one:{does}", "two:works")
    assert left.record["error"] is None
    assert outcomes(left) == [("one", "failed", cause), ("two", "done", "")]
    outputs = left.outputs
    assert (outputs["exit-code"], outputs["agent-name"], outputs["agent-model"]) == ("0", "two", "model-of-two")
    assert [entry["agent"] for entry in json.loads(outputs["attempts"])] == ["one", "two"]
    assert json.loads(outputs["attempts"])[0]["reason"]
    assert saw(tree, "two") == sorted(
        [".gitignore:out/\n", "README.md:# Demo\n", "kept.txt:kept", "out/cache:cache", "prompt.md:Add a file.\n"]
    )
    patch = left.text("changes.patch")
    assert "new-of-two.txt" in patch
    assert "one" not in patch
    assert tree.git("rev-parse", "HEAD") == before
    assert saw(tree, "one") == saw(tree, "two")
    assert outputs["cost-usd"] == "1"
    assert "new-of-one.txt" in left.text("attempt-1/changes.patch")
    assert "model-of-one" in left.text("attempt-1/stdout.log")
    assert (left.folder / "attempt-1/beside.bundle").is_file() == (does == "commits")
    assert "failed, as" in outputs["run-warnings"]
    assert "The changes of `one` are in attempt-1/changes.patch." in left.record["warnings"]
    assert outputs["run-warnings"].count("already uncommitted") == 1


def test_the_next_agent_gets_no_model_of_the_first_one(bench: Bench) -> None:
    words = ["{model}"]
    entry = {"command": [sys.executable, str(bench.top / "agent.py"), "one", "exhausted", *words], "model": ["{value}"]}
    left = ran(bench, "one:exhausted", "two:works", words=["--model", "m-1"], first=entry)
    assert outcomes(left) == [("one", "failed", "quota"), ("two", "done", "")]


def test_an_agent_without_an_event_is_ended_and_replaced(tree: Bench) -> None:
    left = ran(tree, "one:hangs", "two:works", entry={"stall_minutes": 0.03})
    assert outcomes(left) == [("one", "failed", "stall"), ("two", "done", "")]
    assert left.outputs["agent-name"] == "two"


def test_moved_branches_end_the_run_though_another_agent_is_left(bench: Bench) -> None:
    bench.git("branch", "side")
    folder = bench.top / "my run"
    more = ("--run-dir", str(folder))
    left = replace(ran(bench, "one:moves", "two:works", entry={"stall_minutes": 0.05}, words=more), folder=folder)
    assert [entry["agent"] for entry in left.record["attempts"]] == ["one"]
    assert left.record["error"]["kind"] == "refs-moved"
    script = left.folder / "undo-refs.sh"
    assert "refs/heads/side, refs/heads/main2. " in left.record["error"]["detail"]
    assert f" undo it with `sh '{script}'`. " in left.record["error"]["detail"]
    lock = bench.work / ".git/refs/heads/side.lock"
    lock.touch()
    assert subprocess.run(["sh", script], check=False, capture_output=True).returncode
    lock.unlink()
    subprocess.run(["sh", script], check=True)
    assert bench.git("branch", "--format=%(refname:short)").split() == ["main", "side"]


def test_the_last_failure_counts_and_an_agent_without_its_secret_is_named(bench: Bench) -> None:
    left = ran(bench, "one:overloaded", "two:exhausted", "three:keyless")
    assert [entry[:2] for entry in outcomes(left)] == [("one", "failed"), ("two", "failed"), ("three", "skipped")]
    assert (left.outputs["agent-name"], left.outputs["error-category"]) == ("two", "resource")
    assert "NO_SUCH_KEY" in left.outputs["run-warnings"]


def test_files_of_attempts_have_their_numbers_and_people_read_why_an_agent_did_not_work(tree: Bench) -> None:
    from accord.cli.run_step import summary_page
    from accord.runner.models import RunOutputs

    left = ran(tree, "one:keyless", "two:exhausted", "three:keyless", "four:works")
    skipped = [(name, "skipped", "credential-missing") for name in ("one", "three")]
    assert outcomes(left) == [skipped[0], ("two", "failed", "quota"), skipped[1], ("four", "done", "")]
    assert "new-of-two.txt" in left.text("attempt-2/changes.patch")
    assert "model-of-two" in left.text("attempt-2/stdout.log")
    assert "new-of-four.txt" in left.text("changes.patch")
    assert left.text("prompt.md").startswith("Add a file.")
    page = summary_page(RunOutputs.model_validate(left.outputs))
    assert "| one | skipped | The agent" in page
    assert "needs NO\\_SUCH\\_KEY, which is not set. |" in page
    assert "| two, turn 1 | failed | A quota or credit is used up" in page
    assert "| four, turn 1 | done |" in page


def test_without_any_credential_the_first_problem_counts(bench: Bench) -> None:
    left = ran(bench, "one:keyless", "two:keyless")
    assert left.record["error"]["kind"] == "credential-missing"
    assert "`one`" in left.record["error"]["detail"]


def test_a_spent_budget_of_the_mode_ends_the_run_before_its_fallback(bench: Bench) -> None:
    more = {"max_cost_usd": 9, "fallback": [], "modes": {"fix": {"max_cost_usd": 0.5, "fallback": ["two"]}}}
    left = ran(bench, "one:overloaded", "two:works", more=more, words=["--mode", "fix"])
    assert left.record["error"]["kind"] == "budget"
    assert "reports no cost" not in str(left.record["warnings"])
    outputs = left.outputs
    assert [outputs[f"error-{name}"] for name in ("category", "recovery")] == ["resource", "manual"]
    assert "0.50 of 0.50 US dollars" in outputs["error-summary"]
    assert "max_cost_usd" in outputs["error-summary"]
    assert json.loads(outputs["error-evidence"])["rule"] == "budget"


def test_an_agent_that_stops_at_its_own_limit_ends_the_run_the_same_way(bench: Bench) -> None:
    left = ran(bench, "one:spends", "two:works")
    assert outcomes(left) == [("one", "budget", "budget")]
    assert left.outputs["error-category"] == "resource"


def test_an_agent_gets_the_rest_of_the_budget(bench: Bench) -> None:
    entry = {"command": [sys.executable, "-c", "import sys; print(sys.argv)", "{max_cost}"], "codec": "plain"}
    left = ran(bench, "one:x", entry={**entry, "max_cost": ["--max", "{value}"]}, more={"max_cost_usd": 2})
    assert "'--max', '2.00'" in left.text("stdout.log")


def test_people_learn_that_a_budget_does_not_limit_an_agent(bench: Bench) -> None:
    left = ran(bench, "one:works", entry={"codec": "plain"}, more={"max_cost_usd": 2})
    assert "`one` reports no cost, so `max_cost_usd` does not limit it." in left.record["warnings"]
