"""``accord session`` and ``accord dispatch``: one path through each command, its output and its exit codes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.sessions import ARCHITECTURE, GATES, REPORT, SPEC, TASKS, acceptance, agent_output, make_session

from accord_sandbox.planting import STRANGER_TOKEN

if TYPE_CHECKING:
    from conftest import Accord
    from support.stage import Stage

DESIGN, STRATEGY = "UD-APPROVE-DESIGN", "UD-REVIEW-STRATEGY"
OTHERS = ("NEEDS_INFO", "NEEDS_DECISION")
LEAN_NEEDS = {"spec.md": SPEC, "acceptance.json": json.dumps(acceptance()), "tasks.yaml": TASKS}


@dataclass(frozen=True)
class Play:
    """A session that a script moves on; each step ends well unless it says how it ends."""

    accord: Accord
    folder: Path

    def __call__(self, command: str, *arguments: str, code: int = 0) -> Any:
        return self.run("session", command, str(self.folder), *arguments, code=code)

    def run(self, *arguments: str, code: int = 0) -> Any:
        ended = self.accord(*arguments, "--format", "json")
        assert (ended.code, ended.err) == (code, ""), (arguments, ended)
        return ended.document

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / name.replace("_", ".", 1)).write_text(text, encoding="utf-8")

    def to(self, *states: str) -> Any:
        for state in states:
            shown = self("advance", "--to", state, "--role", "Orchestrator")
            assert shown["state"] == state
        return shown

    def task(self, name: str, *statuses: tuple[str, str]) -> None:
        for status, role in statuses:
            shown = self("task", name, "--to", status, "--role", role)
            assert status in [task["status"] for task in shown["tasks"] if task["id"] == name]

    def refused(self, code: str, command: str, *arguments: str) -> str:
        before = (self.folder / "status.json").read_bytes()
        shown = self(command, *arguments, code=1)
        assert (shown["ok"], shown["path"]) == (False, str(self.folder))
        assert code in [finding["code"] for finding in shown["findings"]]
        assert (self.folder / "status.json").read_bytes() == before
        return str(shown["findings"][0]["message"])

    def complete(self, name: str) -> None:
        self.task(name, ("in-progress", "Coder"), ("implemented", "Coder"), ("completed", "Orchestrator"))


def begin(accord: Accord, *arguments: str) -> Play:
    ended = accord("session", "new", "Add CSV export!", *arguments, "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    folder = Path(ended.document["path"])
    assert folder.is_dir()
    assert (folder.parent.name, ended.document["session"]) == (".agents-work", folder.name)
    assert folder.name.endswith("_add-csv-export")
    return Play(accord, folder)


def test_a_full_session_is_played_from_its_beginning_to_its_end_and_opened_again(accord: Accord) -> None:
    play = begin(accord)
    assert "spec.md is missing" in play.refused("illegal-move", "advance", "--to", "DESIGN", "--role", "Orchestrator")
    play.write(spec_md=SPEC, acceptance_json=json.dumps(acceptance()))
    play.refused("role-forbidden", "advance", "--to", "DESIGN", "--role", "Coder")
    play.to("DESIGN")
    play.write(architecture_md=ARCHITECTURE)
    play.to("APPROVE_DESIGN")
    play.refused("illegal-move", "advance", "--to", "PLAN", "--role", "Orchestrator")
    play("ask", "--question", "Approve?", "--id", DESIGN)
    play("answer", f"{DESIGN}=approved: nice")
    assert play("resume")["next"] == "continue"
    play.to("PLAN")
    play.write(tasks_yaml=TASKS)
    play.to("REVIEW_STRATEGY")
    play("ask", "--question", "How is it reviewed?", "--id", STRATEGY)
    shown = play("answer", f"{STRATEGY}=Per batch")
    assert {item["decision_id"]: item["answer"] for item in shown["decisions"]} == {
        DESIGN: "approved: nice",
        STRATEGY: "per-batch",
    }
    play.to("IMPLEMENT_LOOP")
    play.complete("T-001")
    play.refused("illegal-move", "advance", "--to", "INTEGRATE", "--role", "Orchestrator")
    play.complete("T-002")
    play.to("INTEGRATE", "RELEASE")
    assert "report.md is missing" in play.refused("illegal-move", "advance", "--to", "DONE", "--role", "Orchestrator")
    play.write(report_md=REPORT)
    shown = play.to("DONE")
    assert shown["pending"] == []
    assert play.run("check", str(play.folder))["ok"]
    assert "accord session reopen" in play.refused("session-done", "task", "T-001", "--to", "blocked", "--role", "QA")
    play.refused("session-done", "advance", "--to", "IMPLEMENT_LOOP", "--role", "Orchestrator")
    assert play("resume")["state"] == "DONE"
    assert play("reopen")["state"] == "IMPLEMENT_LOOP"


def test_fixes_blocks_and_a_correction_are_one_command_each(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path / "a", "IMPLEMENT_LOOP", user_decisions=GATES))
    shown = play("fix", "T-001", "FIX_TESTS", "--role", "Orchestrator")
    assert (shown["state"], shown["retry_counts"]["T-001"]["FIX_TESTS"]) == ("FIX_TESTS", 1)
    shown = play("advance", "--to", "BLOCKED", "--blocker", "no disk", "--role", "Orchestrator")
    assert (shown["next"], shown["blocker"], shown["blocked_from"]) == ("blocked", "no disk", "FIX_TESTS")
    assert play("resume")["reason"] == "no disk"
    assert "Did you mean `T-00" in play.refused("task-unknown", "fix", "T-009", "FIX_TESTS", "--role", "Orchestrator")
    play = Play(accord, make_session(tmp_path / "b", "APPROVE_DESIGN", mode="full"))
    play("ask", "--question", "Approve?", "--id", DESIGN)
    assert play("answer", f"{DESIGN}=changes-requested: smaller")["correction_status"] == "queued"
    before = (play.folder / "status.json").read_bytes()
    assert play("resume", "--role", "Designer")["next"] == "dispatch-correction"
    assert (play.folder / "status.json").read_bytes() == before
    assert play("resume", "--role", "Designer", "--apply")["next"] == "dispatch-correction"
    assert (play.folder / "status.json").read_bytes() != before
    output = accord.file("output.json", agent_output())
    applied = play.run("dispatch", str(play.folder), "meta", "--role", "Designer", "--take", str(output))
    assert applied == {"ok": True, "changed": ["correction of the design completed"], "findings": []}


def test_dispatch_prints_the_input_and_writes_the_files_of_a_run(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    dispatch = ["dispatch", str(play.folder), "meta", "--role", "Coder"]
    play.run(*dispatch, "--into", "tried", "--dry-run")
    assert not Path("tried").exists()
    document = play.run(*dispatch, "--goal", "Let users download rows.", "--into", "out")
    assert document["task"]["goal"] == "Let users download rows."
    assert json.loads(Path("out/input.json").read_text()) == document
    assert Path("out/schema.json").is_file()
    assert Path("out/prompt.md").read_text().startswith("You are the agent Coder.")
    (play.folder / "spec.md").unlink()
    refused = play.run(*dispatch, code=1)
    assert [finding["code"] for finding in refused["findings"]] == ["context-file-missing"]


def test_a_lean_session_needs_neither_design_nor_gates(accord: Accord) -> None:
    play = begin(accord, "--lean")
    play.write(spec_md=SPEC, acceptance_json=json.dumps(acceptance()), tasks_yaml=TASKS)
    play.to("IMPLEMENT_LOOP")
    for name in ("T-001", "T-002"):
        play.complete(name)
    play.write(report_md=REPORT)
    shown = play.to("INTEGRATE", "DONE")
    assert (shown["mode"], shown["state"], shown["decisions"]) == ("lean", "DONE", [])


def test_a_session_is_not_created_twice(accord: Accord) -> None:
    play = begin(accord)
    before = (play.folder / "status.json").read_bytes()
    ended = accord("session", "new", "add csv export", "--format", "json")
    assert ended.code == 1
    assert [finding["code"] for finding in ended.document["findings"]] == ["session-exists"]
    assert (play.folder / "status.json").read_bytes() == before
    assert accord("session", "new", "…").code == 2
    assert accord("session", "show", "nowhere").code == 2


def test_a_finding_in_tasks_yaml_has_its_file_and_line(accord: Accord, tmp_path: Path) -> None:
    tasks = TASKS.replace("status: not-started  # by the Coder", "status: &s not-started") + "other: *s\n"
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts={"tasks.yaml": tasks})
    ended = accord(
        "session", "task", str(folder), "T-001", "--to", "in-progress", "--role", "Coder", "--format", "json"
    )
    (said,) = ended.document["findings"]
    assert (ended.code, said["code"], said["path"], said["line"]) == (1, "not-yaml", "/tasks.yaml", 5)


def test_answers_cancellations_and_skips_are_recorded_with_their_reasons(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "DESIGN", mode="full"))
    play("ask", "--question", "One?", "--question", "Two?", "--question", "Three?")
    play("ask", "--question", "May it stay open?", "--category", "security")
    play("skip", "UD-2", "--reason", "out of scope")
    shown = play("answer", 'UD-1=a=b, "c"', "--final")
    kept = {
        item["decision_id"]: (item["status"], item["answer"] or item["resolution_reason"])
        for item in shown["decisions"]
    }
    assert kept == {
        "UD-1": ("answered", 'a=b, "c"'),
        "UD-2": ("skipped", "out of scope"),
        "UD-3": ("cancelled", "no response provided"),
        "UD-4": ("pending", None),
    }
    assert play("resume")["next"] == "ask"
    assert play("cancel", "UD-4", "--reason", "next sprint")["next"] == "continue"
    assert accord("session", "ask", str(play.folder), "--question", "a", "--category", "secrity").code == 2
    assert accord("session", "answer", str(play.folder), "UD-1").code == 2
    assert accord("session", "answer", str(play.folder), "UD-1=a", "UD-1=b").code == 2
    assert accord("session", "ask", str(play.folder), "--question", "a", "--question", "b", "--id", "UD-9").code == 2


def test_text_output_shows_the_state_and_the_next_step(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    accord("session", "ask", str(play.folder), "--question", "Which\x1b[2J one?\n::stop::")
    for command in ("show", "watch"):
        ended = accord("session", command, str(play.folder))
        assert ended.code == 0
        assert "ASK_USER (full)   next: ask the user" in ended.out
        assert "○ not-started  T-001   Write the header." in ended.out
        assert "\x1b[2J" not in ended.out
        assert "\n::stop" not in ended.out
    ended = accord("session", "resume", str(play.folder))
    assert ended.out.startswith("ask in ASK_USER\n  UD-1: Which")
    ended = accord("session", "advance", str(play.folder), "--to", "INTEGRATE", "--role", "Orchestrator")
    assert (ended.code, "The session stays in ASK_USER." in ended.out) == (1, True)
    ended = accord("session", "new", "another one")
    assert ended.out.startswith("Created .agents-work/")


def test_a_status_that_cannot_be_read_is_shown_as_such_and_not_written(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, texts={"status.json": "{"}))
    shown = play("show", code=1)
    assert (shown["ok"], shown["state"], shown["findings"][0]["code"]) == (False, None, "not-json")
    for command, *words in (
        ["resume"],
        ["advance", "--to", "DESIGN", "--role", "Orchestrator"],
        ["answer", "UD-1=x"],
        ["answer"],
        ["ask", "--question", "x"],
    ):
        play.refused("not-json", command, *words)


def test_a_secret_that_an_agent_repeats_is_not_recorded(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cr3t-of-the-job-0815")
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    said = agent_output(status="NEEDS_DECISION", summary="s3cr3t-of-the-job-0815 is in the log.")
    output = str(accord.file("output.json", said))
    play.run("dispatch", str(play.folder), "T-001", "--role", "Security", "--take", output)
    assert "s3cr3t" not in "".join(path.read_text() for path in play.folder.iterdir())


def test_a_session_is_not_created_through_a_link(accord: Accord, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(".agents-work").symlink_to(elsewhere)
    ended = accord("session", "new", "x", "--format", "json")
    assert (ended.code, [finding["code"] for finding in ended.document["findings"]]) == (1, ["path-outside"])
    assert list(elsewhere.iterdir()) == []


def test_an_output_that_breaks_the_contract_changes_nothing(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    before = {path.name: path.read_bytes() for path in play.folder.iterdir()}
    fenced = f"```json\n{json.dumps(agent_output())}\n```"
    for wrong in (agent_output(status="NEEDS_DECISION"), {"status": "OK"}, "I am done!", "{}{}", fenced):
        output = str(accord.file("output.json", wrong))
        refused = play.run("dispatch", str(play.folder), "T-001", "--role", "Coder", "--take", output, code=1)
        assert not refused["ok"]
        assert refused["findings"]
    assert {path.name: path.read_bytes() for path in play.folder.iterdir()} == before


def test_a_refused_output_is_reported_for_the_session(accord: Accord, tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DONE", user_decisions=GATES)
    output = accord.file("output.json", agent_output(status="BLOCKED"))
    ended = accord("dispatch", str(folder), "T-001", "--role", "QA", "--take", str(output))
    assert (ended.code, ended.out.startswith(f"{folder}: error session-done")) == (1, True)


def test_questions_go_to_stderr_and_answers_come_from_stdin(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "REVIEW_STRATEGY", mode="full", user_decisions=GATES[:1]))
    play("ask", "--question", "How\x1b[2J is it reviewed?", "--id", STRATEGY)
    play("ask", "--question", "Which one?")
    command = ["session", "answer", str(play.folder), "--format", "json"]
    ended = accord.process(*command, given="whatever\nsingle final\nüber\n")
    assert ended.code == 0
    assert [item["answer"] for item in ended.document["decisions"]] == ["approved", "single-final", "über"]
    assert ended.err.count(STRATEGY) == 3, "put, wrong, put again"
    assert "per-batch or single-final" in ended.err
    assert "\x1b" not in ended.err


def test_empty_input_changes_nothing_and_names_the_option(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "DESIGN", mode="full"))
    play("ask", "--question", "Which one?")
    before = (play.folder / "status.json").read_bytes()
    ended = accord.process("session", "answer", str(play.folder))
    assert (ended.code, "--final" in ended.err) == (2, True)
    assert (play.folder / "status.json").read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ["session", "ask", "DIR", "--question", "Which one?"],
        ["session", "resume", "DIR"],
        ["session", "advance", "DIR", "--to", "BLOCKED", "--role", "Orchestrator"],
        ["dispatch", "DIR", "T-001", "--role", "Coder", "--take", "output.json"],
    ],
)
def test_a_dry_run_prints_operations_and_writes_nothing(accord: Accord, tmp_path: Path, words: list[str]) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES)
    accord.file("output.json", agent_output())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    words = [str(folder) if word == "DIR" else word for word in words]
    tried = accord(*words, "--dry-run", "--format", "json")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    planned = tried.document.pop("operations")
    assert all(operation["op"] in ("write", "append") for operation in planned)
    assert tried.document["dry_run"]
    done = accord(*words, "--format", "json")
    assert (tried.code, done.code) == (0, 0)
    changed = {name for name, raw in before.items() if (folder / name).read_bytes() != raw}
    assert {operation["target"] for operation in planned} - {"outputs.jsonl"} == changed
    assert without_times({**tried.document, "dry_run": 1, "operations": 1}) == without_times(
        {**done.document, "dry_run": 1, "operations": 1}
    )


def without_times(document: Any) -> Any:
    return json.loads(re.sub(r"20\d\d-\d\d-\d\dT[\d:]+Z", "now", json.dumps(document)))


def test_a_dry_run_creates_no_session_and_lists_its_operations(accord: Accord, tmp_path: Path) -> None:
    ended = accord("session", "new", "x", "--dry-run")
    assert (ended.code, "write status.json" in ended.out, Path(".agents-work").exists()) == (0, True, False)
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES)
    output = str(accord.file("output.json", agent_output()))
    tried = accord("dispatch", str(folder), "T-001", "--role", "Coder", "--take", output, "--dry-run")
    assert tried.out.splitlines()[1:] == [
        "  write tasks.yaml T-001: in-progress",
        "  write tasks.yaml T-001: implemented",
        "  append outputs.jsonl",
        "task implemented",
    ]


def test_a_dry_run_on_an_issue_shows_the_comment_and_posts_none(accord: Accord, stage: Stage, tmp_path: Path) -> None:
    accord.on(stage)
    path = f"/repos/{stage.repository}/issues"
    number = str(stage.send("POST", path, title="The work")["number"])
    folder = make_session(tmp_path, "DESIGN", mode="full")
    before = (folder / "status.json").read_bytes()
    ask = ["session", "ask", str(folder), "--question", "Which one?", "--issue", number]
    tried = accord(*ask, "--dry-run")
    assert (tried.code, "> Which one?" in tried.out, "create-comment" in tried.out) == (0, True, True)
    assert (stage.send("GET", f"{path}/{number}/comments"), (folder / "status.json").read_bytes()) == ([], before)
    accord(*ask)
    stage.send("POST", f"{path}/{number}/comments", body="/answer UD-1 the first")
    tried = accord("session", "answer", str(folder), "--from-issue", number, "--dry-run", "--format", "json")
    assert [one["id"] for one in tried.document["issue"]["taken"]] == ["UD-1"]
    assert tried.document["dry_run"] is True
    assert accord("session", "show", str(folder), "--format", "json").document["next"] == "ask"
    assert "Which one?" in stage.send("GET", f"{path}/{number}/comments")[0]["body"]


def test_an_issue_asks_and_answers_and_outputs_the_next_step(accord: Accord, stage: Stage, tmp_path: Path) -> None:
    accord.on(stage, GITHUB_OUTPUT=str(tmp_path / "outputs"))
    path = f"/repos/{stage.repository}/issues"
    number = str(stage.send("POST", path, title="The work")["number"])
    play = Play(accord, make_session(tmp_path, "DESIGN", mode="full"))
    shown = play("ask", "--question", "Which one?", "--issue", number)
    assert (shown["issue"]["number"], shown["issue"]["action"], shown["next"]) == (int(number), "created", "ask")
    stage.send("POST", f"{path}/{number}/comments", token=STRANGER_TOKEN, body="/answer UD-1 mine\n::stop::")
    stage.send("POST", f"{path}/{number}/comments", body="/answer UD-1 the first")
    ended = accord("session", "answer", str(play.folder), "--from-issue", number, "--format", "json")
    issue = ended.document["issue"]
    assert [(one["id"], one["how"], one["by"]) for one in issue["taken"]] == [("UD-1", "answer", "maintainer")]
    assert [(one["by"], one["reason"]) for one in issue["ignored"]] == [("stranger", "no-write-permission")]
    assert (issue["action"], ended.code) == ("updated", 0)
    assert "ignored: stranger, UD-1: Only people with write access" in ended.err
    assert "state<<" in (written := (tmp_path / "outputs").read_text())
    assert "\ncontinue\n" in written
    assert accord("session", "answer", str(play.folder), "UD-1=x", "--from-issue", number).code == 2
    missing = accord("session", "ask", str(play.folder), "--question", "And?", "--issue", "99", "--format", "json")
    assert (missing.code, missing.document["outcome"]) == (4, "refused")
