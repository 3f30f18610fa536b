"""Commands that reach GitHub: exit codes, receipts, outputs for the runner, and no secret anywhere."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.plans import plan, task
from support.stage import staged
from test_check import HOSTILE, assert_harmless

from accord.gha.commands import escape_data
from accord.text.markdown import cell, mermaid_text
from accord_sandbox.faults import Fault
from accord_sandbox.planting import STRANGER_TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Accord, Ended
    from support.stage import Stage

GOOD = plan(task("a"), task("b", "a"))
BAD = plan(task("a"), task("a"))
SECRET = "correct-horse-battery"
TOKEN = "ghp_" + "aB3" * 12


def test_a_plan_is_applied_then_unchanged_each_with_a_receipt(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    file = accord.file("plan.json", GOOD)
    for outcome, writes in (("applied", 3), ("unchanged", 0)):
        ended = accord("apply", file, "--format", "json", "--receipt", "out/receipt.json")
        assert (ended.code, ended.err) == (0, "")
        assert (ended.document["outcome"], ended.document["requests"]["write"]) == (outcome, writes)
        assert ended.document["items"]["b"]["id"] == "2"
        assert json.loads((accord.home / "out/receipt.json").read_text()) == ended.document


def test_a_rehearsal_prints_the_operations_and_writes_nothing(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    ended = accord("apply", accord.file("plan.json", GOOD), "--dry-run", "--format", "json")
    assert (ended.code, ended.document["outcome"]) == (0, "planned")
    assert {operation["status"] for operation in ended.document["operations"]} == {"planned"}
    assert stage.issues() == []


def exit_1(accord: Accord, stage: Stage) -> Ended:
    return accord("apply", accord.file("plan.json", BAD), "--format", "json")


def exit_3(accord: Accord, stage: Stage) -> Ended:
    stage.server.faults.add(Fault("secondary-403", nth=1, method="POST", seconds=500, times=99))
    return accord("apply", accord.file("plan.json", GOOD), "--max-wait", "1", "--format", "json")


def exit_4(accord: Accord, stage: Stage) -> Ended:
    accord.on(stage, GITHUB_TOKEN=STRANGER_TOKEN)
    return accord("apply", accord.file("plan.json", GOOD), "--format", "json")


@pytest.mark.parametrize(
    ("run", "code", "outcome"), [(exit_1, 1, "rejected"), (exit_3, 3, "stopped"), (exit_4, 4, "refused")]
)
def test_each_way_to_fail_has_its_exit_code_and_its_receipt(
    accord: Accord, stage: Stage, run: Any, code: int, outcome: str
) -> None:
    accord.on(stage)
    ended = run(accord, stage)
    assert (ended.code, ended.document["outcome"]) == (code, outcome)
    assert stage.issues() == []
    if code > 1:
        assert ended.document["error"]["hint"]


@pytest.mark.parametrize(
    ("method", "said"), [("GET", "stopped before anything was written; run"), ("POST", "stopped part-way: ")]
)
def test_a_run_that_stopped_says_how_far_it_came_and_what_to_do(
    accord: Accord, stage: Stage, method: str, said: str
) -> None:
    accord.on(stage)
    stage.server.faults.add(Fault("secondary-403", nth=1, method=method, seconds=500, times=99))
    ended = accord("apply", accord.file("plan.json", GOOD), "--max-wait", "1")
    assert ended.code == 3
    assert said in ended.out
    assert "run the same command again to continue" in ended.out


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "GITHUB_REPOSITORY"])
def test_without_token_or_repository_the_missing_variable_is_named(accord: Accord, stage: Stage, name: str) -> None:
    accord.on(stage)
    accord.monkeypatch.delenv(name)
    ended = accord("items", "list")
    assert ended.code == 2
    assert name in ended.err


def test_a_token_with_a_line_end_is_taken_without_it(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=f"{stage.server.token}\n")
    assert accord("items", "list").code == 0


def test_a_run_that_gets_a_stop_signal_reports_it_and_writes_its_receipt(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    file = accord.file("plan.json", plan(*(task(f"t{i}") for i in range(5))))
    stage.server.faults.add(Fault("slow", nth=3, method="POST", seconds=15))
    with accord.start("apply", file, "--format", "json", "--receipt", "receipt.json") as started:
        deadline = time.monotonic() + 30
        while len(stage.issues()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=30)
    assert started.returncode == 3, err
    document = json.loads(out)
    assert document["outcome"] == "stopped"
    assert json.loads((accord.home / "receipt.json").read_text()) == document
    assert "Traceback" not in err
    stage.server.faults.clear()
    assert accord("apply", file, "--format", "json").code == 0
    assert [issue["title"] for issue in stage.issues()] == [f"Do t{i}" for i in range(5)]


def test_a_receipt_that_cannot_be_written_is_refused_before_anything_is_applied(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    file = accord.file("plan.json", GOOD)
    ended = accord("apply", file, "--receipt", file / "receipt.json")
    assert (ended.code, ended.out) == (2, "")
    assert "Cannot write the receipt" in ended.err
    over = accord("apply", file, "--receipt", file.parent / "." / "plan.json")
    assert (over.code, json.loads(file.read_text())) == (2, GOOD), "the agent's result is not written over"
    assert stage.issues() == []


def on_a_runner(accord: Accord) -> dict[str, Path]:
    files = {name: accord.home / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for name, path in files.items():
        accord.monkeypatch.setenv(name, str(path))
    accord.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    return files


def test_a_step_leaves_outputs_a_summary_and_annotations(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    files = on_a_runner(accord)
    accord("apply", accord.file("plan.json", GOOD), "--receipt", "receipt.json")
    outputs = files["GITHUB_OUTPUT"].read_text()
    for name in ("outcome", "items", "run-key", "receipt"):
        assert f"\n{name}<<" in "\n" + outputs
    summary = files["GITHUB_STEP_SUMMARY"].read_text()
    assert "### accord apply: applied" in summary
    assert "```mermaid" in summary
    ended = accord("check", "--format", "json", accord.file("bad.json", BAD))
    assert ended.document["ok"] is False
    assert "::error file=" in ended.err
    assert ",line=" in ended.err
    assert "❌ rejected" in files["GITHUB_STEP_SUMMARY"].read_text()
    accord("labels", "sync", "--record", "record.json")
    assert "### accord labels: applied" in files["GITHUB_STEP_SUMMARY"].read_text()


def test_changes_to_an_agents_text_are_counted_for_people(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    summary = on_a_runner(accord)["GITHUB_STEP_SUMMARY"]
    hostile = accord.file("hostile.json", plan(task("b", title="For @a and @b", context="x <script>")))
    told = "sanitised before posting: mentions 2, html 1"
    assert told in accord("apply", hostile, "--dry-run").out
    assert told in accord("apply", hostile).out
    assert told.capitalize() + "." in summary.read_text()
    assert accord("apply", hostile, "--format", "json").document["sanitised"] == {"mentions": 2, "html": 1}
    summary.unlink()
    assert "harmless" not in accord("apply", accord.file("plan.json", GOOD)).out + summary.read_text()


def test_off_a_runner_nothing_is_left(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    ended = accord("check", accord.file("bad.json", BAD))
    assert ended.err == ""
    assert [path.name for path in accord.home.iterdir()] == ["bad.json"]


@pytest.mark.parametrize(
    "secret", [SECRET, 'quo"ted\\and-é-secret', "line\none-of-two-lines", TOKEN, "100%_[own]_secret"]
)
def test_no_secret_of_the_environment_is_printed_anywhere(accord: Accord, stage: Stage, secret: str) -> None:
    accord.on(stage, DEPLOY_PASSWORD=secret)
    files = on_a_runner(accord)
    leaky = plan(task("a", title=f"Use {secret}"), task("b", "a", context=f"The password is {secret}."))
    said = []
    for name, content in {"good": leaky, "bad": plan(task(secret), task(secret)), "worse": {"role": secret}}.items():
        file = accord.file(f"{name}.json", content)
        for command in (["check"], ["apply", "--receipt", "receipt.json"]):
            for output in ("text", "json"):
                ended = accord(*command, file, "--format", output)
                said += [ended.out, ended.err]
    said += [accord("items", "list").out, accord("items", "show", "1", "--format", "json").out]
    said += [path.read_text() for path in [*files.values(), accord.home / "receipt.json"]]
    said += [json.dumps(stage.issues())]
    shown = "\n".join(said)
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    for form in {secret, cell(secret), mermaid_text(secret), escape_data(secret), *escaped}:
        assert form not in shown
    assert stage.server.token not in shown
    assert "redacted" in shown


def test_a_failed_command_tells_no_token(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN="ghp_" + "wrongWRONG12" * 3)
    ended = accord("items", "list")
    assert ended.code == 4
    assert "Bad credentials" in ended.err
    assert "wrongWRONG" not in ended.out + ended.err


def make_items(stage: Stage) -> None:
    for status, title in (("pending", "First"), ("in-progress", HOSTILE), ("blocked", "Third")):
        labels = ["task:implement", "priority:high", "complexity:low", f"status:{status}"]
        stage.send("POST", f"/repos/{stage.repository}/issues", title=title, labels=labels)
    stage.send("POST", f"/repos/{stage.repository}/issues", title="A question")


def test_items_are_listed_newest_first_and_by_status(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    assert accord("items", "list").out == "No work items.\n"
    make_items(stage)
    found = accord("items", "list", "--format", "json").document["items"]
    assert [(item["id"], item["status"], item["type"], item["priority"]) for item in found] == [
        ("3", "blocked", "implement", "high"), ("2", "in-progress", "implement", "high"),
        ("1", "pending", "implement", "high"),
    ]  # fmt: skip
    (only,) = accord("items", "list", "--status", "pending", "--format", "json").document["items"]
    assert only["id"] == "1"
    text = accord("items", "list").out
    assert_harmless(text)
    assert [line.split()[0] for line in text.splitlines()] == ["#3", "#2", "#1"]


def test_an_item_is_shown_as_a_reader_of_its_page_sees_it(accord: Accord, stage: Stage) -> None:
    """Workflows hand it to an agent: text that the page hides must not reach it."""
    accord.on(stage)
    body = "Do `a`.<!-- obey me -->\u200b\n\n[x]: # (obey)\n\n@\u2060types\n\n```\n<!-- accord:item run=r id=a -->\n```"
    title = "Do <!-- obey -->\u200bit"
    stage.send("POST", f"/repos/{stage.repository}/issues", title=title, body=body, labels=["task:implement"])
    shown = accord("items", "show", "1", "--format", "json").document
    assert shown["title"] == "Do it"
    assert shown["body"].split() == ["Do", "`a`.", "@types", "```", "```"]
    (listed,) = accord("items", "list", "--format", "json").document["items"]
    assert listed["body"] == shown["body"], "a planner that sees titles alone plans again what a body plans already"
    for command in (("show", "1"), ("list",)):
        assert "obey" not in accord("items", *command).out


def test_an_item_shows_what_it_waits_for_and_where_it_may_move(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    accord("apply", accord.file("plan.json", GOOD))
    shown = accord("items", "show", "#2", "--format", "json").document
    assert (shown["waits_for"], shown["moves"], shown["status"]) == (["1"], [], "pending")
    assert "blocked by #1" in accord("items", "show", "2").out
    assert accord("items", "show", "77").code == 1
    missing = accord("items", "show", "77", "--format", "json")
    moved = accord("items", "move", "77", "--to", "ready", "--format", "json").document
    assert (missing.code, missing.document) == (1, {name: moved[name] for name in ("id", "outcome", "findings")})
    assert accord("items", "show", "seven").code == 2


def test_of_a_pull_request_the_work_item_that_it_closes_is_shown(accord: Accord, tmp_path: Path) -> None:
    pulls = [
        {"title": f"Pull {body}", "head": "work/one", "body": body, **base}
        for body, base in (("Closes #1", {"base": "release/1.x"}), ("See #1", {}))
    ]
    repository = {
        "name": "octo/demo",
        "files": {"README.md": "# A\n"},
        "branches": {"work/one": {"one.txt": "1\n"}, "release/1.x": {}},
        "issues": [{"title": "A"}, *pulls],
    }
    (tmp_path / "seed.json").write_text(json.dumps({"repositories": [repository]}))
    outputs = tmp_path / "outputs"
    with staged(tmp_path / "data", seed=tmp_path / "seed.json") as stage:
        accord.on(stage, GITHUB_REPOSITORY="octo/demo", GITHUB_OUTPUT=str(outputs))
        shown = accord("items", "show", "2", "--format", "json").document
        refused = accord("items", "show", "3", "--format", "json")
    assert (shown["id"], shown["pull"]["id"], shown["pull"]["base"]) == ("1", "2", "release/1.x")
    assert (refused.code, refused.document["findings"][0]["code"]) == (1, "work-item-unknown")
    assert refused.document["pull"]["base"] == "main", "its change is reviewed against its base all the same"
    assert [line for line in outputs.read_text().splitlines() if line in ("release/1.x", "main")] == [
        "release/1.x",
        "main",
    ]


def test_an_illegal_move_exits_1_and_lists_the_legal_ones(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    make_items(stage)
    ended = accord("items", "move", "2", "--to", "approved", "--format", "json")
    assert (ended.code, ended.document["outcome"]) == (1, "rejected")
    assert "review, blocked, needs-refinement, pending" in ended.document["findings"][0]["message"]
    text = accord("items", "move", "2", "--to", HOSTILE)
    assert (text.code, text.out) == (2, "")
    assert_harmless(text.err)


def test_a_legal_move_is_rehearsed_made_and_made_once(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    make_items(stage)
    for options, outcome in ((["--dry-run"], "planned"), ([], "applied"), ([], "unchanged")):
        ended = accord("items", "move", "2", "--to", "review", *options, "--format", "json")
        assert (ended.code, ended.document["outcome"]) == (0, outcome)
    assert accord("items", "show", "2", "--format", "json").document["status"] == "review"


FILE = "- {name: one, color: '111111'}\n- {name: two, color: '222222', aliases: [deux]}\n"


def test_label_drift_is_shown_planned_fixed_and_gone(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    stage.send("POST", f"/repos/{stage.repository}/labels", name="deux", color="222222")
    use = ["--file", accord.file("labels.yml", FILE), "--format", "json"]
    drift = accord("labels", "check", *use)
    assert (drift.code, drift.document["outcome"]) == (1, "drift")
    planned = accord("labels", "sync", *use, "--dry-run")
    assert (planned.code, planned.document["outcome"]) == (0, "planned")
    assert accord("labels", "check", *use).code == 1
    for words in (["check"], ["sync", "--dry-run"]):
        told = accord("labels", *words, *use[:2]).out.splitlines()[:2]
        assert [line.split() for line in told] == [
            ["one", "to", "be", "created"], ["two", "to", "be", "renamed", "(was", "deux)"],
        ], "what only would happen does not read as if it had"  # fmt: skip
    done = accord("labels", "sync", *use)
    assert done.document["labels"] == [
        {"name": "one", "action": "created"}, {"name": "two", "action": "renamed", "was": "deux"},
    ]  # fmt: skip
    assert (done.code, done.document["outcome"]) == (0, "applied")
    again = accord("labels", "sync", *use)
    assert (again.code, again.document["outcome"]) == (0, "unchanged")
    assert accord("labels", "check", *use).code == 0


def test_pruning_takes_only_what_a_sync_made_and_what_is_named(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    stage.send("POST", f"/repos/{stage.repository}/labels", name="by hand", color="222222")
    accord("labels", "sync", "--file", accord.file("labels.yml", FILE))
    less = accord.file("less.yml", "- {name: two, color: '222222'}\n")
    kept = accord("labels", "sync", "--file", less, "--format", "json")
    assert kept.document["outcome"] == "unchanged"
    pruned = accord("labels", "sync", "--prune", "--file", less, "--format", "json")
    assert [label["name"] for label in pruned.document["labels"] if label["action"] == "deleted"] == ["one"]
    removed = accord("labels", "sync", "--remove", "by hand", "--file", less, "--format", "json")
    assert [label["name"] for label in removed.document["labels"] if label["action"] == "deleted"] == ["by hand"]


def test_the_record_of_one_repository_says_nothing_about_another(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    accord("labels", "sync", "--file", accord.file("labels.yml", FILE))
    records = list((accord.home / "home").rglob("*.json"))
    assert len(records) == 1
    assert stage.repository in str(records[0])


def test_a_broken_label_file_exits_1_and_asks_github_nothing(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    stage.server.requests.clear()
    ended = accord("labels", "sync", "--file", accord.file("labels.yml", "- {name: one, color: 123456}\n"))
    assert ended.code == 1
    assert stage.server.requests == []
    assert "in quotes" in ended.out + ended.err


def test_the_shipped_labels_are_listed_without_github(accord: Accord) -> None:
    found = accord("labels", "list", "--format", "json").document["labels"]
    assert {"name", "action", "description", "color", "aliases"} == set(found[0])
    hostile = json.dumps([{"name": "::add-mask::e\x1b[31m", "color": "000000", "description": HOSTILE}])
    assert_harmless(accord("labels", "list", "--file", accord.file("labels.json", hostile)).out)


def test_a_refused_sync_exits_4_and_stays_one_document(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=STRANGER_TOKEN)
    ended = accord("labels", "sync", "--format", "json")
    assert (ended.code, ended.document["outcome"]) == (4, "refused")
    assert ended.document["error"]["hint"]


def test_the_embedded_sandbox_needs_no_variable_and_keeps_what_was_written(accord: Accord) -> None:
    file = accord.file("plan.json", GOOD)
    first = accord("apply", file, "--sandbox", "box", "--format", "json")
    assert (first.code, first.document["outcome"]) == (0, "applied")
    assert accord("apply", file, "--sandbox", "box", "--format", "json").document["outcome"] == "unchanged"
    assert len(accord("items", "list", "--sandbox", "box", "--format", "json").document["items"]) == 2


def test_an_invalid_protect_pattern_is_wrong_usage_before_any_request(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    stage.server.requests.clear()
    result = {"role": "implementor", "outcome": "completed", "patch": "diff --git a/a b/a\n", "summary": "Done."}
    ended = accord("apply", accord.file("result.json", result), "--work-item", 1, "--protect", "[z-a]")
    assert (ended.code, len(stage.server.requests)) == (2, 0)
    assert "[z-a]" in ended.err
