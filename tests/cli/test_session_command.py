"""``accord session`` and ``accord dispatch``: sessions played from their beginning to their end by a script."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.sessions import (
    ARCHITECTURE,
    GATES,
    NAME,
    REPORT,
    SPEC,
    TASKS,
    acceptance,
    agent_output,
    decision,
    make_session,
)

from accord.sessions.models import ROLES
from accord_sandbox.seed import STRANGER_TOKEN

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
    play.to("DONE")  # whoever was killed before it saw the end does the same again
    assert play("resume")["state"] == "DONE"
    for _ in range(2):
        assert play("reopen")["state"] == "IMPLEMENT_LOOP"
    play.to("INTEGRATE")
    play.refused("illegal-move", "reopen")


def test_a_lean_session_needs_neither_design_nor_gates(accord: Accord) -> None:
    play = begin(accord, "--lean")
    play.write(spec_md=SPEC, acceptance_json=json.dumps(acceptance()), tasks_yaml=TASKS)
    play.to("IMPLEMENT_LOOP")
    for name in ("T-001", "T-002"):
        play.complete(name)
    play.write(report_md=REPORT)
    shown = play.to("INTEGRATE", "DONE")
    assert (shown["mode"], shown["state"], shown["decisions"]) == ("lean", "DONE", [])


def test_a_session_of_that_name_is_not_begun_twice(accord: Accord) -> None:
    play = begin(accord)
    before = (play.folder / "status.json").read_bytes()
    ended = accord("session", "new", "add csv export", "--format", "json")
    assert ended.code == 1
    assert [finding["code"] for finding in ended.document["findings"]] == ["session-exists"]
    assert (play.folder / "status.json").read_bytes() == before
    assert accord("session", "new", "…").code == 2
    assert accord("session", "show", "nowhere").code == 2


def test_a_loop_of_fixes_is_entered_three_times_then_the_user_is_asked(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    for count in (1, 2, 3):
        shown = play("fix", "T-001", "FIX_TESTS", "--role", "Orchestrator")
        assert (shown["state"], shown["retry_counts"]["T-001"]["FIX_TESTS"]) == ("FIX_TESTS", count)
        play.to("IMPLEMENT_LOOP")
    assert "ASK_USER" in play.refused("illegal-move", "fix", "T-001", "FIX_TESTS", "--role", "Orchestrator")
    play.refused("task-unknown", "fix", "T-009", "FIX_TESTS", "--role", "Orchestrator")
    options = ["another approach", "accept with known issues", "simplify", "guidance"]
    words = [word for option in options for word in ("--options", option)]
    shown = play("ask", "--question", "T-001 fails its tests a fourth time. What now?", *words)
    assert (shown["state"], shown["next"], shown["pending"][0]["state_context"]) == (
        "ASK_USER",
        "ask",
        "IMPLEMENT_LOOP",
    )
    assert all(option in shown["pending"][0]["question"] for option in options)
    play("answer", "UD-1=accept with known issues")
    assert play("resume") == {"state": "IMPLEMENT_LOOP", "next": "continue", "pending": [], "reason": ""}
    play("fix", "T-002", "FIX_TESTS", "--role", "Orchestrator")


def test_a_blocked_session_says_why_and_goes_back_to_where_it_was(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    shown = play("advance", "--to", "BLOCKED", "--blocker", "subagent_failure", "--role", "Orchestrator")
    assert (shown["next"], shown["blocker"], shown["blocked_from"]) == ("blocked", "subagent_failure", "IMPLEMENT_LOOP")
    shown = play("advance", "--to", "BLOCKED", "--blocker", "no disk", "--role", "Orchestrator")
    assert (shown["blocker"], shown["blocked_from"]) == ("no disk", "IMPLEMENT_LOOP")
    assert play("resume")["reason"] == "no disk"
    play.refused("ask-state", "ask", "--question", "Go on?")
    play.refused("illegal-move", "advance", "--to", "INTEGRATE", "--role", "Orchestrator")
    shown = play.to("IMPLEMENT_LOOP")
    assert (shown["blocker"], shown["blocked_from"]) == (None, None)


def test_a_design_is_corrected_once_however_often_the_session_is_resumed(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "APPROVE_DESIGN", mode="full"))
    play("ask", "--question", "Approve?", "--id", DESIGN)
    play.refused("gate-answer", "answer", f"{DESIGN}=yes")
    assert play("answer", f"{DESIGN}=changes-requested: smaller")["correction_status"] == "queued"
    tracking = json.loads((play.folder / "status.json").read_text())["gate_tracking"]["APPROVE_DESIGN"]
    assert tracking["last_correction_dispatch"] == {"agent": None, "task_id": None, "at": None}
    steps = [play("resume", "--role", "Designer") for _ in range(3)]
    assert [step["next"] for step in steps] == ["dispatch-correction", "verify-correction", "verify-correction"]
    assert steps[0]["reason"] == "changes-requested: smaller"
    tracking = json.loads((play.folder / "status.json").read_text())["gate_tracking"]["APPROVE_DESIGN"]
    assert (tracking["correction_status"], tracking["last_correction_dispatch"]["agent"]) == ("dispatched", "Designer")
    output = accord.file("output.json", agent_output())
    took = play.run("dispatch", str(play.folder), "meta", "--role", "Designer", "--take", str(output))
    assert took == {"ok": True, "changed": ["correction of the design completed"], "findings": []}
    assert play("resume")["next"] == "re-ask"
    assert play("ask", "--question", "Approve now?", "--id", DESIGN)["next"] == "ask"
    assert play("answer", f"{DESIGN}=approved")["next"] == "continue"


def test_a_line_that_keeps_a_task_from_moving_is_told_with_its_file(accord: Accord, tmp_path: Path) -> None:
    tasks = TASKS.replace("status: not-started  # by the Coder", "status: &s not-started") + "other: *s\n"
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts={"tasks.yaml": tasks})
    ended = accord(
        "session", "task", str(folder), "T-001", "--to", "in-progress", "--role", "Coder", "--format", "json"
    )
    (said,) = ended.document["findings"]
    assert (ended.code, said["code"], said["path"], said["line"]) == (1, "not-yaml", "/tasks.yaml", 5)


def test_each_way_to_resolve_a_question_is_kept_with_its_reason(accord: Accord, tmp_path: Path) -> None:
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


def test_people_read_where_the_session_stands_and_what_is_next(accord: Accord, tmp_path: Path) -> None:
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
    assert ended.out.startswith("Begun in .agents-work/")


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


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with a session in its first commit, and a change of code after it. For reading."""
    root = tmp_path_factory.mktemp("repository")
    folder = make_session(root, "IMPLEMENT_LOOP", user_decisions=GATES)
    (folder / "design-specs").mkdir()
    (folder / "design-specs/header.md").write_text("# Header\n")

    def git(*words: str) -> None:
        options = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *options, *words], cwd=root, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "Begin")
    (root / "csv.py").write_text("HEADER = 1\n")
    return folder


@pytest.fixture
def repository(committed: Path, tmp_path: Path) -> Path:
    """A copy of that repository."""
    root = shutil.copytree(committed.parents[1], tmp_path / "repository")
    return Path(root, *committed.parts[-2:])


@pytest.mark.parametrize("task", ["T-001", "meta"])
@pytest.mark.parametrize("role", ROLES)
def test_every_agent_is_given_a_valid_input(accord: Accord, committed: Path, role: str, task: str) -> None:
    play = Play(accord, committed)
    given = play.run("dispatch", str(committed), task, "--role", role, "--into", "out")
    path = accord.file("input.json", given)
    assert accord("check", "--kind", "agent-input", "--role", role, path).code == 0
    assert (given["agent"], given["task"]["id"], given["repo_state"]["branch"]) == (role, task, "main")
    root = committed.parents[1]
    assert all((root / name).is_file() for name in given["task"]["context_files"])
    changed = [{"path": "csv.py", "change_type": "added"}]
    assert given["task"].get("session_changed_files") == (changed if role == "Reviewer" else [])
    names = [Path(name).name for name in given["task"]["context_files"]]
    assert ("header.md" in names) == (role in ("Designer", "Planner", "Coder", "Reviewer"))
    play.run("dispatch", str(committed), task, "--role", role, "--into", "tried", "--dry-run")
    assert not Path("tried").exists()
    statuses = json.loads(Path("out/schema.json").read_text())["properties"]["status"]["enum"]
    extra = {"Researcher": "NEEDS_INFO", "Security": "NEEDS_DECISION"}.get(role)
    assert statuses == ["OK", "BLOCKED", "FAIL", *([extra] if extra else [])]
    assert Path("out/prompt.md").read_text().startswith(f"You are the agent {role}.")


def test_an_agent_knows_what_the_user_decided_and_wants_changed(accord: Accord, tmp_path: Path) -> None:
    play = Play(accord, make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[decision(DESIGN)]))

    def read(role: str) -> set[str]:
        given = play.run("dispatch", str(play.folder), "meta", "--role", role)
        return {Path(path).name for path in given["task"]["context_files"]}

    assert not read("Architect") & {"status.json", "approve-design-history.jsonl"}
    play("answer", f"{DESIGN}=changes-requested: no database")
    for role in ("SpecAgent", "Architect", "Designer"):
        assert read(role) >= {"spec.md", "status.json", "approve-design-history.jsonl"}
    assert "status.json" in read("Security")


def test_an_agent_that_begins_a_session_is_told_what_it_is_for(accord: Accord) -> None:
    play = begin(accord)
    given = play.run("dispatch", str(play.folder), "meta", "--role", "SpecAgent", "--goal", "Let users download rows.")
    assert given["task"]["goal"] == "Let users download rows."


def test_an_agent_is_not_sent_without_what_it_must_read(accord: Accord, repository: Path) -> None:
    (repository / "spec.md").unlink()
    play = Play(accord, repository)
    refused = play.run("dispatch", str(repository), "T-001", "--role", "Coder", code=1)
    assert [finding["code"] for finding in refused["findings"]] == ["context-file-missing"]
    assert "spec.md" in refused["findings"][0]["message"]
    assert play.run("dispatch", str(repository), "T-001", "--role", "Security")["agent"] == "Security"
    refused = play.run("dispatch", str(repository), "T-009", "--role", "Security", code=1)
    assert [finding["code"] for finding in refused["findings"]] == ["task-unknown"]


@pytest.mark.parametrize(
    ("role", "status", "before", "changed", "after"),
    [
        ("Coder", "OK", "not-started", ["task implemented"], "implemented"),
        ("Coder", "OK", "in-progress", ["task implemented"], "implemented"),
        ("Coder", "OK", "implemented", [], "implemented"),
        ("Coder", "FAIL", "in-progress", ["task blocked"], "blocked"),
        ("Reviewer", "OK", "implemented", [], "implemented"),
        ("Reviewer", "BLOCKED", "implemented", ["task blocked"], "blocked"),
        ("Reviewer", "FAIL", "implemented", [], "implemented"),
        ("Coder", "BLOCKED", "completed", [], "completed"),
        ("Security", "NEEDS_DECISION", "implemented", ["the user is asked"], "implemented"),
        ("Researcher", "NEEDS_INFO", "implemented", [], "implemented"),
    ],
)
def test_an_output_changes_what_its_role_may_change_and_once(
    accord: Accord, tmp_path: Path, role: str, status: str, before: str, changed: list[str], after: str
) -> None:
    texts: dict[str, str | None] = {"tasks.yaml": TASKS.replace("not-started  #", f"{before}  #")}
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts))
    output = str(accord.file("output.json", agent_output(status=status, summary="May the port be open?")))
    take = ["dispatch", str(play.folder), "T-001", "--role", role, "--take", output]
    assert play.run(*take)["changed"] == changed
    once = {path.name: path.read_bytes() for path in play.folder.iterdir()}
    play.run(*take)
    assert {path.name: path.read_bytes() for path in play.folder.iterdir()} == once
    shown = play("show")
    assert shown["tasks"][0]["status"] == after
    asked = [(item["question"], item["category"]) for item in shown["pending"]]
    assert asked == ([("T-001: May the port be open?", "security")] if status == "NEEDS_DECISION" else [])


def test_a_file_that_is_not_the_roles_to_change_is_told_when_its_output_is_taken(
    accord: Accord, tmp_path: Path
) -> None:
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    names = ["src/app.py", f".agents-work/{NAME}/spec.md", str(tmp_path / "README.md"), ".agents-work/<session>/x.md"]
    artifacts = {**agent_output()["artifacts"], "files_changed": names}
    output = str(accord.file("output.json", agent_output(artifacts=artifacts)))
    for role, wrong in (("Docs", [0, 1]), ("Coder", [1]), ("Reviewer", [0, 1, 2])):
        found = play.run("dispatch", str(play.folder), "T-001", "--role", role, "--take", output)["findings"]
        assert [one["path"] for one in found] == [f"/artifacts/files_changed/{i}" for i in wrong]
        assert {(one["code"], one["severity"]) for one in found} == {("role-forbidden", "warning")}
    ended = accord("dispatch", str(play.folder), "T-001", "--role", "Docs", "--take", output)
    assert (ended.code, "Docs says that it changed src/app.py" in ended.out) == (0, True)


def test_a_task_whose_reviews_were_taken_is_completed_only_when_they_passed(accord: Accord, tmp_path: Path) -> None:
    texts: dict[str, str | None] = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #")}
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts))
    for role, status in (("Reviewer", "OK"), ("QA", "FAIL")):
        output = str(accord.file("output.json", agent_output(status=status)))
        play.run("dispatch", str(play.folder), "T-001", "--role", role, "--take", output)
    complete = ["task", "T-001", "--to", "completed", "--role", "Orchestrator"]
    assert "Not passed are the gates: QA." in play.refused("illegal-move", *complete)
    assert play("show")["tasks"][0]["reviews"] == {"Reviewer": "OK", "QA": "FAIL"}
    output = str(accord.file("output.json", agent_output()))
    play.run("dispatch", str(play.folder), "T-001", "--role", "QA", "--take", output)
    assert play(*complete)["tasks"][0]["status"] == "completed"


@pytest.mark.parametrize(
    "line", ['{"at": "2026-01-31T10:00:00Z", "task_id": "T-001", "agent": "QA", "status": "FAILED"}', '"QA: FAIL"']
)
def test_no_task_is_completed_on_reviews_of_which_one_cannot_be_read(accord: Accord, tmp_path: Path, line: str) -> None:
    texts: dict[str, str | None] = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #")}
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts))
    output = str(accord.file("output.json", agent_output()))
    for role in ("Reviewer", "QA"):
        play.run("dispatch", str(play.folder), "T-001", "--role", role, "--take", output)
    with (play.folder / "outputs.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    said = play.refused("illegal-move", "task", "T-001", "--to", "completed", "--role", "Orchestrator")
    assert "nobody can tell which reviews passed" in said


def test_work_after_a_review_of_all_is_reviewed_again_whatever_words_the_agents_use(
    accord: Accord, tmp_path: Path
) -> None:
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    same = str(accord.file("output.json", agent_output()))
    complete = ["task", "T-001", "--to", "completed", "--role", "Orchestrator"]

    def take(task: str, *roles: str) -> None:
        for role in roles:
            play.run("dispatch", str(play.folder), task, "--role", role, "--take", same)

    take("T-001", "Coder")
    take("meta", "Reviewer", "QA")
    play.task("T-001", ("in-progress", "Coder"))
    take("T-001", "Coder")
    assert "Not passed are the gates: Reviewer, QA." in play.refused("illegal-move", *complete)
    take("meta", "QA", "Reviewer")
    assert play(*complete)["tasks"][0]["status"] == "completed"


def test_a_secret_of_the_environment_that_an_agent_repeats_is_not_kept(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cr3t-of-the-job-0815")
    play = Play(accord, make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES))
    said = agent_output(status="NEEDS_DECISION", summary="s3cr3t-of-the-job-0815 is in the log.")
    output = str(accord.file("output.json", said))
    play.run("dispatch", str(play.folder), "T-001", "--role", "Security", "--take", output)
    assert "s3cr3t" not in "".join(path.read_text() for path in play.folder.iterdir())


def test_a_session_is_not_begun_through_a_link_to_elsewhere(accord: Accord, tmp_path: Path) -> None:
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


def test_what_forbids_to_take_an_output_is_told_of_the_session_and_not_of_the_output(
    accord: Accord, tmp_path: Path
) -> None:
    folder = make_session(tmp_path, "DONE", user_decisions=GATES)
    output = accord.file("output.json", agent_output(status="BLOCKED"))
    ended = accord("dispatch", str(folder), "T-001", "--role", "QA", "--take", str(output))
    assert (ended.code, ended.out.startswith(f"{folder}: error session-done")) == (1, True)


def test_questions_are_put_on_stderr_and_answered_on_stdin(accord: Accord, tmp_path: Path) -> None:
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


def test_an_input_that_ends_at_once_changes_nothing_and_says_what_to_do(accord: Accord, tmp_path: Path) -> None:
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
        ["session", "cancel", "DIR", "UD-1", "--reason", "next week"],
        ["session", "skip", "DIR", "UD-1", "--reason", "out of scope"],
        ["session", "answer", "DIR", "UD-1=x"],
        ["session", "resume", "DIR"],
        ["session", "advance", "DIR", "--to", "BLOCKED", "--role", "Orchestrator"],
        ["session", "task", "DIR", "T-001", "--to", "blocked", "--role", "QA"],
        ["session", "fix", "DIR", "T-001", "FIX_TESTS", "--role", "Orchestrator"],
        ["dispatch", "DIR", "T-001", "--role", "Coder", "--take", "output.json"],
    ],
)
def test_a_dry_run_says_what_would_be_and_writes_nothing(accord: Accord, tmp_path: Path, words: list[str]) -> None:
    asks = {"asked": [decision()]} if words[1] in ("cancel", "skip", "answer") else {}
    state = "ASK_USER" if asks else "IMPLEMENT_LOOP"
    folder = make_session(tmp_path, state, mode="full", user_decisions=[*GATES, *asks.get("asked", [])])
    accord.file("output.json", agent_output())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    words = [str(folder) if word == "DIR" else word for word in words]
    tried = accord(*words, "--dry-run", "--format", "json")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    done = accord(*words, "--format", "json")
    assert (tried.code, done.code) == (0, 0)
    assert without_moments({**tried.document, "dry_run": True}) == without_moments({**done.document, "dry_run": True})


def without_moments(document: Any) -> Any:
    return json.loads(re.sub(r"20\d\d-\d\d-\d\dT[\d:]+Z", "now", json.dumps(document)))


def test_a_dry_run_of_an_output_says_that_it_is_one(accord: Accord, tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES)
    output = str(accord.file("output.json", agent_output()))
    take = ["dispatch", str(folder), "T-001", "--role", "Coder", "--take", output, "--dry-run"]
    assert accord(*take).out == "Dry run, nothing is written: task implemented\n"
    assert accord(*take, "--format", "json").document["dry_run"] is True


def test_a_dry_run_on_an_issue_shows_the_comment_and_posts_none(accord: Accord, stage: Stage, tmp_path: Path) -> None:
    accord.on(stage)
    path = f"/repos/{stage.repository}/issues"
    number = str(stage.send("POST", path, title="The work")["number"])
    folder = make_session(tmp_path, "DESIGN", mode="full")
    before = (folder / "status.json").read_bytes()
    ask = ["session", "ask", str(folder), "--question", "Which one?", "--issue", number]
    tried = accord(*ask, "--dry-run")
    assert (tried.code, "> Which one?" in tried.err, "Dry run" in tried.out) == (0, True, True)
    assert (stage.send("GET", f"{path}/{number}/comments"), (folder / "status.json").read_bytes()) == ([], before)
    accord(*ask)
    stage.send("POST", f"{path}/{number}/comments", body="/answer UD-1 the first")
    tried = accord("session", "answer", str(folder), "--from-issue", number, "--dry-run", "--format", "json")
    assert [one["id"] for one in tried.document["issue"]["taken"]] == ["UD-1"]
    assert tried.document["dry_run"] is True
    assert accord("session", "show", str(folder), "--format", "json").document["next"] == "ask"
    assert "Which one?" in stage.send("GET", f"{path}/{number}/comments")[0]["body"]


def test_an_issue_asks_and_answers_and_a_workflow_learns_what_is_next(
    accord: Accord, stage: Stage, tmp_path: Path
) -> None:
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
    assert "ignored: stranger, UD-1: Only who may write" in ended.err
    assert "state<<" in (written := (tmp_path / "outputs").read_text())
    assert "\ncontinue\n" in written
    assert accord("session", "answer", str(play.folder), "UD-1=x", "--from-issue", number).code == 2
    missing = accord("session", "ask", str(play.folder), "--question", "And?", "--issue", "99", "--format", "json")
    assert (missing.code, missing.document["outcome"]) == (4, "refused")
