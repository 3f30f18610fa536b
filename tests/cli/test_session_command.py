"""``accord session`` and ``accord dispatch``: one path through each command, its output and its exit codes."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord
from support.sessions import (
    ARCHITECTURE,
    GATES,
    REPORT,
    SPEC,
    TASKS,
    acceptance,
    agent_output,
    decision,
    make_session,
    outputs,
)
from support.stage import Stage

from accord_sandbox.planting import STRANGER_TOKEN

Session = Callable[..., "Play"]


DESIGN, STRATEGY = "UD-APPROVE-DESIGN", "UD-REVIEW-STRATEGY"
FAILED = outputs(("Coder", "OK"), ("Reviewer", "FAIL"))


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

    def take(self, task: str, role: str, output: Any, code: int = 0) -> Any:
        file = str(self.accord.file("output.json", output))
        return self.run("dispatch", str(self.folder), task, "--role", role, "--take", file, code=code)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / name.replace("_", ".", 1)).write_text(text, encoding="utf-8")

    def to(self, *states: str) -> Any:
        for state in states:
            shown = self("advance", "--to", state, "--role", "Orchestrator")
            assert shown["state"] == state
        return shown

    def refused(self, code: str, command: str, *arguments: str) -> str:
        before = self.files()
        shown = self(command, *arguments, code=1)
        assert (shown["ok"], shown["path"]) == (False, str(self.folder))
        assert code in [finding["code"] for finding in shown["findings"]]
        assert self.files() == before
        first = shown["findings"][0]
        return f"{first['message']} {first.get('hint', '')}"


@pytest.fixture
def session(accord: Accord, tmp_path: Path) -> Session:
    """Make a session in a state, with both gates answered."""
    return lambda state="IMPLEMENT_LOOP", **changes: Play(
        accord, make_session(tmp_path / state, state, **{"user_decisions": GATES, **changes})
    )


def begin(accord: Accord, *arguments: str) -> Play:
    document = accord.document("session", "new", "Add CSV export!", *arguments)
    folder = Path(document["path"])
    assert folder.is_dir()
    assert (folder.parent.name, document["session"]) == (".agents-work", folder.name)
    assert folder.name.endswith("_add-csv-export")
    return Play(accord, folder)


@pytest.mark.parametrize(
    ("state", "target", "messages"),
    [
        ("INTAKE", "DESIGN", ["spec.md is missing", "acceptance.json is missing"]),
        ("INTAKE", "RELEASE", ['"INTAKE" does not lead to "RELEASE"']),
        ("INTAKE", "BLOCKED", ["BLOCKED needs what blocks the session"]),
        ("IMPLEMENT_LOOP", "INTEGRATE", ["These tasks are not completed", "final review"]),
    ],
)
def test_each_thing_that_a_refused_move_lacks_is_one_finding_with_its_own_hint(
    session: Session, state: str, target: str, messages: list[str]
) -> None:
    play = session(state)
    if state == "INTAKE":
        for name in ("spec.md", "acceptance.json"):
            (play.folder / name).unlink(missing_ok=True)
    found = play("advance", "--to", target, "--role", "Orchestrator", code=1)["findings"]
    assert [one["code"] for one in found] == ["illegal-move"] * len(messages)
    for finding, message in zip(found, messages, strict=True):
        assert message in finding["message"]
        assert finding["hint"]
        assert "is missing" not in finding["hint"]


@pytest.mark.parametrize(
    ("state", "task", "role", "lines", "changed"),
    [
        ("DESIGN", "meta", "Architect", "", ["the session goes to APPROVE_DESIGN"]),
        ("IMPLEMENT_LOOP", "T-001", "Coder", FAILED, ["FIX_REVIEW of T-001 counted, 1 of 3"]),
    ],
)
def test_an_output_that_changes_the_session_says_so_and_is_taken_once(
    session: Session, state: str, task: str, role: str, lines: str, changed: list[str]
) -> None:
    plan = TASKS if state == "DESIGN" else TASKS.replace("not-started  #", "implemented  #")
    decisions = [] if state == "DESIGN" else GATES
    play = session(state, user_decisions=decisions, texts={"tasks.yaml": plan, "outputs.jsonl": lines})
    taken = play.take(task, role, agent_output())
    assert (taken["changed"], taken["repeated"]) == (changed, False)
    before = play.files()
    taken = play.take(task, role, agent_output())
    assert (taken["changed"], taken["repeated"]) == ([], True)
    assert play.files() == before


@pytest.mark.parametrize("status", ["OK", "FAIL"])
def test_an_output_is_taken_once_also_where_the_next_agent_has_started(session: Session, status: str) -> None:
    texts = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #"), "outputs.jsonl": outputs(("Coder", "OK"))}
    play = session(texts=texts)
    file = str(play.accord.file("output.json", agent_output(status=status)))
    words = ("--take", file, "--role", "Reviewer", "--task", "T-001", "--into", str(play.folder.parent / "input"))
    for is_repeated in (False, True):
        before = play.files()
        ended = play.accord("session", "run", str(play.folder), *words)
        assert ("already recorded in outputs.jsonl" in ended.out) == is_repeated, ended
        assert (play.files() == before) == is_repeated


@pytest.mark.slow
def test_a_session_goes_from_its_beginning_to_its_end_and_is_opened_again(accord: Accord) -> None:
    play = begin(accord)
    assert "spec.md is missing" in play.refused("illegal-move", "advance", "--to", "DESIGN", "--role", "Orchestrator")
    play.write(spec_md=SPEC, acceptance_json=json.dumps(acceptance()), architecture_md=ARCHITECTURE)
    play.refused("role-forbidden", "advance", "--to", "DESIGN", "--role", "Coder")
    play.to("DESIGN", "APPROVE_DESIGN")
    play("ask", "--question", "Approve?", "--id", DESIGN)
    play("answer", f"{DESIGN}=approved: nice")
    assert play("resume")["next"] == "continue"
    play.to("PLAN")
    play.write(tasks_yaml=TASKS, report_md=REPORT)
    play.to("REVIEW_STRATEGY")
    play("ask", "--question", "How is it reviewed?", "--id", STRATEGY)
    shown = play("answer", f"{STRATEGY}=Per batch")
    answers = {item["decision_id"]: item["answer"] for item in shown["decisions"]}
    assert answers == {DESIGN: "approved: nice", STRATEGY: "per-batch"}
    play.to("IMPLEMENT_LOOP")
    for name in ("T-001", "T-002"):
        assert play("task", name, "--to", "in-progress", "--role", "Coder")["tasks"]
        play("task", name, "--to", "implemented", "--role", "Coder")
        play.refused("illegal-move", "task", name, "--to", "completed", "--role", "Orchestrator")
        waived = ("--to", "completed", "--role", "Orchestrator", "--waive-reviews", "tried by hand")
        assert "completed" in [task["status"] for task in play("task", name, *waived)["tasks"] if task["id"] == name]
    play.refused("illegal-move", "advance", "--to", "INTEGRATE", "--role", "Orchestrator")
    assert play.take("meta", "Reviewer", agent_output())["changed"] == ["the session goes to INTEGRATE"]
    assert play.take("meta", "Integrator", agent_output())["changed"] == ["the session goes to DONE"]
    assert "accord session reopen" in play.refused("session-done", "task", "T-001", "--to", "blocked", "--role", "QA")
    assert play("resume")["state"] == "DONE"
    assert play("reopen")["state"] == "IMPLEMENT_LOOP"


def test_fixes_blocks_and_a_correction_are_one_command_each(session: Session) -> None:
    play = session(texts={"tasks.yaml": TASKS.replace("not-started  #", "implemented  #")})
    shown = play("fix", "T-001", "FIX_TESTS", "--role", "Orchestrator")
    assert (shown["state"], shown["retry_counts"]["T-001"]["FIX_TESTS"]) == ("FIX_TESTS", 1)
    shown = play("advance", "--to", "BLOCKED", "--blocker", "no disk", "--role", "Orchestrator")
    assert (shown["next"], shown["blocker"], shown["blocked_from"]) == ("blocked", "no disk", "FIX_TESTS")
    assert play("resume")["reason"] == "no disk"
    assert "Use one of T-001" in play.refused("task-unknown", "fix", "T-009", "FIX_TESTS", "--role", "Orchestrator")
    play = session("APPROVE_DESIGN", mode="full", user_decisions=[])
    play("ask", "--question", "Approve?", "--id", DESIGN)
    assert play("answer", f"{DESIGN}=changes-requested: smaller")["correction_status"] == "queued"
    before = play.files()
    planned = play("resume", "--role", "Designer")
    assert (planned["next"], planned["next_moves"]) == ("dispatch-correction", play("show")["next_moves"])
    assert play.files() == before
    assert play("resume", "--role", "Designer", "--apply")["next"] == "dispatch-correction"
    assert play.files() != before
    dispatch = ["dispatch", str(play.folder), "meta", "--role", "Designer"]
    assert play.run(*dispatch)["agent"] == "Designer"
    assert [finding["code"] for finding in play.run(*dispatch, code=1)["findings"]] == ["correction-open"]
    assert play("resume", "--apply")["next"] == "verify-correction"
    applied = play.take("meta", "Designer", agent_output())
    assert (applied["ok"], applied["changed"]) == (True, ["correction of the design completed"])


def test_dispatch_prints_the_input_and_writes_the_files_of_a_run(session: Session) -> None:
    play = session()
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


def test_answers_cancellations_and_skips_are_recorded_with_their_reasons(session: Session) -> None:
    play = session("DESIGN", mode="full", user_decisions=[])
    play("ask", "--question", "One?", "--question", "Two?", "--question", "Three?")
    play("ask", "--question", "May it stay open?", "--category", "security")
    play("skip", "UD-2", "--reason", "out of scope")
    decisions = play("answer", 'UD-1=a=b, "c"', "--final")["decisions"]
    assert [(item["status"], item["answer"] or item["resolution_reason"]) for item in decisions] == [
        ("answered", 'a=b, "c"'), ("skipped", "out of scope"), ("cancelled", "no response provided"), ("pending", None),
    ]  # fmt: skip
    assert play("resume")["next"] == "ask"
    assert play("cancel", "UD-4", "--reason", "user deferred: next sprint")["next"] == "continue"
    waive = ("task", "T-001", "--role", "Orchestrator", "--to")
    for wrong in (
        (*waive, "completed", "--waive-reviews", " "),
        (*waive, "blocked", "--waive-reviews", "x"),
        ("ask", "--question", "a", "--category", "secrity"),
        ("ask", "--question", "a", "--question", "b", "--id", "UD-9"),
        ("answer", "UD-1"),
        ("answer", "UD-1=a", "UD-1=b"),
    ):
        ended = play.accord("session", wrong[0], play.folder, *wrong[1:])
        assert (ended.code, "No reason given" in ended.err) == (2, wrong[-1] == " ")


def test_text_output_shows_the_state_and_the_next_step(accord: Accord, session: Session) -> None:
    folder = session().folder
    accord("session", "ask", folder, "--question", "Which\x1b[2J one?\n::stop::")
    for command in ("show", "watch"):
        ended = accord("session", command, folder)
        assert ended.code == 0
        assert "ASK_USER (full)   next: ask the user" in ended.out
        assert "○ not-started  T-001   Write the header." in ended.out
        assert "\x1b[2J" not in ended.out
        assert "\n::stop" not in ended.out
    assert accord("session", "resume", folder).out.startswith("ask in ASK_USER\n  UD-1: Which")
    ended = accord("session", "advance", folder, "--to", "INTEGRATE", "--role", "Orchestrator")
    assert (ended.code, "The session stays in ASK_USER." in ended.out) == (1, True)
    assert accord("session", "new", "another one").out.startswith("Created .agents-work/")


def test_a_refusal_ends_with_the_moves_and_the_commands_to_type(accord: Accord, session: Session) -> None:
    play = session()
    refused = ["session", "advance", play.folder, "--to", "INTEGRATE", "--role", "Orchestrator"]
    start = f"accord dispatch {play.folder} T-001 --role Coder --into .accord/dispatch"
    assert accord(*refused).out.splitlines()[-3:] == [
        "Next:",
        "  INTEGRATE (needs completed tasks: T-001, T-002, final review of meta)",
        f"    {start}",
    ]
    (move,) = [one for one in accord.document(*refused, code=1)["next_moves"] if one["to"] == "INTEGRATE"]
    assert move == {
        "to": "INTEGRATE",
        "missing": ["completed tasks: T-001, T-002", "final review of meta"],
        "command": start,
    }
    task = accord.document("session", "task", play.folder, "T-001", "--to", "completed", "--role", "Coder", code=1)
    assert [one["to"] for one in task["next_moves"]] == ["in-progress", "blocked"]
    taken = play.take("T-001", "Reviewer", agent_output())
    assert "INTEGRATE" in [one["to"] for one in taken["next_moves"]]
    shown = play.run("dispatch", str(play.folder), "T-001", "--role", "Coder", "--failed", "no output in 4 tries")
    assert shown["blocker"] == "subagent_failure: Coder on T-001: no output in 4 tries"
    assert [one["to"] for one in shown["next_moves"]] == ["IMPLEMENT_LOOP"]


@pytest.mark.parametrize("code", ["not-json", "artifact-missing"])
def test_a_status_that_cannot_be_read_is_shown_as_such_and_not_written(session: Session, code: str) -> None:
    play = session(texts={"status.json": "{"})
    if code == "artifact-missing":
        (play.folder / "status.json").unlink()
    shown = play("show", code=1)
    assert (shown["ok"], shown["state"], shown["findings"][0]["code"]) == (False, None, code)
    assert shown["findings"][0]["hint"] in play.accord("session", "show", play.folder).out
    for words in (
        "resume",
        "advance --to DESIGN --role Orchestrator",
        "answer UD-1=x",
        "answer",
        "ask --question x",
        "set project_type=lib --role Orchestrator",
    ):
        assert play.refused(code, *words.split()).endswith(shown["findings"][0]["hint"])


def test_a_secret_that_an_agent_repeats_is_not_recorded(accord: Accord, session: Session) -> None:
    accord.monkeypatch.setenv("DEPLOY_TOKEN", "s3cr3t-of-the-job-0815")
    play = session()
    texts = ["The log has s3cr3t-of-the-job-0815.", {"what": "s3cr3t-of-the-job-0815"}]
    said = agent_output(status="NEEDS_DECISION", summary="s3cr3t-of-the-job-0815 is in the log.")
    said["artifacts"] |= {"findings": texts, "review_comments": texts}
    said["gates"] |= {"security_concerns": texts}
    play.take("T-001", "Security", said)
    assert b"The log has " in play.files()["outputs.jsonl"]
    assert b"s3cr3t" not in b"".join(play.files().values())


@pytest.mark.slow
@pytest.mark.parametrize("project", ["", "pkg"])
def test_commands_from_a_subfolder_find_the_sessions_of_their_project(accord: Accord, project: str) -> None:
    for words in (("init", "--quiet"), ("commit", "--quiet", "--allow-empty", "--message", "begin")):
        subprocess.run(["git", *words], cwd=accord.home, check=True)
    below = accord.home / project / "src/deep"
    below.mkdir(parents=True)
    if project:
        accord("session", "new", "first", "--root", project)
    accord.monkeypatch.chdir(below)
    folder = Path(accord.document("session", "new", "second")["path"])
    assert folder.resolve().parents[1] == (accord.home / project).resolve()
    shown = accord.document("session", "check", "--base", "HEAD")["documents"]
    assert {Path(one["path"]).is_file() or Path(one["path"]).is_dir() for one in shown} == {True}
    assert {one["path"].split("/.agents-work/")[0] for one in shown} == {"../.."}
    assert Path(accord.document("session", "new", "third", "--root", ".")["path"]).resolve().parents[1] == below
    (folder / "adr").mkdir()
    accord.monkeypatch.chdir(folder / "adr")
    assert accord.document("session", "show", "..")["session"] == folder.name


def test_a_session_is_not_created_through_a_link(accord: Accord, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(".agents-work").symlink_to(elsewhere)
    refused = accord.document("session", "new", "x", code=1)
    assert [finding["code"] for finding in refused["findings"]] == ["path-outside"]
    assert list(elsewhere.iterdir()) == []


def test_an_output_that_breaks_the_contract_changes_nothing(session: Session) -> None:
    play = session()
    before = play.files()
    fenced = f"```json\n{json.dumps(agent_output())}\n```"
    for wrong in (agent_output(status="NEEDS_DECISION"), {"status": "OK"}, "I am done!", "{}{}", fenced):
        refused = play.take("T-001", "Coder", wrong, code=1)
        assert not refused["ok"]
        assert refused["findings"]
    assert play.files() == before
    folder, output = session("DONE").folder, play.accord.file("output.json", agent_output(status="BLOCKED"))
    ended = play.accord("dispatch", folder, "T-001", "--role", "QA", "--take", output)
    assert (ended.code, ended.out.startswith(f"{folder}: error session-done")) == (1, True)


def test_a_recorded_output_succeeds_although_the_next_move_is_refused(accord: Accord, session: Session) -> None:
    """The first move of a lean session records its mode, which has no state such as that of this question."""
    asked = decision(status="answered", state_context="DESIGN")
    play = session("INTAKE_LEAN", user_decisions=[asked])
    for count in (1, 2):
        taken = play.take("meta", "SpecAgent", agent_output())
        assert [(one["code"], one["severity"]) for one in taken["findings"]] == [("mode-state", "warning")]
        assert taken["next_moves"][0]["to"] == "IMPLEMENT_LOOP"
        assert len((play.folder / "outputs.jsonl").read_text().splitlines()) == 1, count
    taking = ("dispatch", play.folder, "meta", "--role", "SpecAgent", "--take", accord.file("o.json", agent_output()))
    said = accord(*taking).out
    assert "The session does not move on. status.json would break its contract" in said
    assert "Next:" in said
    turn = accord.document("session", "run", play.folder, code=3)["turn"]
    assert (turn["who"], "A lean session has no state DESIGN" in turn["why"]) == ("user", True)


def test_questions_go_to_stderr_and_answers_come_from_stdin(accord: Accord, session: Session) -> None:
    play = session("REVIEW_STRATEGY", mode="full", user_decisions=GATES[:1])
    play("ask", "--question", "How\x1b[2J is it reviewed?", "--id", STRATEGY)
    play("ask", "--question", "Which one?")
    before = play.files()
    accord.given("")
    ended = accord("session", "answer", play.folder)
    assert (ended.code, "--final" in ended.err, play.files()) == (2, True, before)
    accord.given("whatever\nsingle final\nüber\n")
    ended = accord("session", "answer", play.folder, "--format", "json")
    assert ended.code == 0
    assert [item["answer"] for item in ended.document["decisions"]] == ["approved", "single-final", "über"]
    assert ended.err.count(STRATEGY) == 3, "put, wrong, put again"
    assert "per-batch or single-final" in ended.err
    assert "\x1b" not in ended.err
    accord.given("approved\n")
    ended = accord("session", "answer", play.folder)
    assert (ended.code, "No question is pending" in ended.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["session", "ask", "DIR", "--question", "Which one?"],
        ["session", "resume", "DIR"],
        ["session", "advance", "DIR", "--to", "BLOCKED", "--blocker", "no disk", "--role", "Orchestrator"],
        ["session", "set", "DIR", "known_issues+=slow", "--role", "QA"],
        ["dispatch", "DIR", "T-001", "--role", "Coder", "--take", "output.json"],
    ],
)
def test_a_dry_run_prints_operations_and_writes_nothing(accord: Accord, session: Session, words: list[str]) -> None:
    play = session(mode="full")
    accord.file("output.json", agent_output())
    before = play.files()
    words = [str(play.folder) if word == "DIR" else word for word in words]
    tried = accord.document(*words, "--dry-run")
    assert play.files() == before
    planned = tried.pop("operations")
    assert all(operation["op"] in ("write", "append") for operation in planned)
    assert tried.pop("dry_run")
    done = accord.document(*words)
    changed = {name for name, raw in play.files().items() if raw != before.get(name)}
    assert {operation["target"] for operation in planned} == changed
    assert without_times(tried) == without_times({k: v for k, v in done.items() if k not in ("dry_run", "operations")})


def without_times(document: Any) -> Any:
    return json.loads(re.sub(r"20\d\d-\d\d-\d\dT[\d:]+Z", "now", json.dumps(document)))


def test_a_dry_run_creates_no_session_and_lists_its_operations(accord: Accord, session: Session) -> None:
    ended = accord("session", "new", "x", "--dry-run")
    assert (ended.code, "write status.json" in ended.out, Path(".agents-work").exists()) == (0, True, False)
    output = accord.file("output.json", agent_output())
    take = ("dispatch", session(mode="full").folder, "T-001", "--role", "Coder", "--take", output)
    assert accord(*take, "--dry-run").out.splitlines()[1:4] == [
        "  write tasks.yaml T-001: implemented",
        "  append outputs.jsonl",
        "T-001 implemented",
    ]


@pytest.mark.slow
def test_an_issue_asks_and_answers_and_outputs_the_next_step(accord: Accord, stage: Stage, session: Session) -> None:
    accord.on(stage)
    stage.send("POST", f"/repos/{stage.repository}/issues", title="The work")
    comments = f"/repos/{stage.repository}/issues/1/comments"
    step = accord.in_step(annotates=False)
    play = session("DESIGN", mode="full", user_decisions=[])
    before = play.files()
    tried = accord("session", "ask", play.folder, "--question", "Which one?", "--issue", 1, "--dry-run")
    assert (tried.code, "> Which one?" in tried.out, "create-comment" in tried.out) == (0, True, True)
    assert (stage.send("GET", comments), play.files()) == ([], before)
    shown = play("ask", "--question", "Which one?", "--issue", "1")
    assert (shown["issue"]["number"], shown["issue"]["action"], shown["next"]) == (1, "created", "ask")
    stage.send("POST", comments, token=STRANGER_TOKEN, body="/answer UD-1 mine\n::stop::")
    stage.send("POST", comments, body="/answer UD-1 the first")
    planned = accord.document("session", "answer", play.folder, "--from-issue", 1, "--dry-run")
    assert ([one["id"] for one in planned["issue"]["taken"]], planned["dry_run"]) == (["UD-1"], True)
    assert play("show")["next"] == "ask"
    ended = accord("session", "answer", play.folder, "--from-issue", 1, "--format", "json")
    issue = ended.document["issue"]
    assert [(one["id"], one["how"], one["by"]) for one in issue["taken"]] == [("UD-1", "answer", "maintainer")]
    assert [(one["by"], one["reason"]) for one in issue["ignored"]] == [("stranger", "no-write-permission")]
    assert (issue["action"], ended.code) == ("updated", 0)
    assert "ignored: stranger, UD-1: Only people with write access" in ended.err
    assert (step.outputs["state"], step.outputs["next"]) == ("DESIGN", "continue")
    assert accord("session", "answer", play.folder, "UD-1=x", "--from-issue", 1).code == 2
    for words in (
        ("ask", play.folder, "--question", "And?", "--issue", 99),
        ("answer", play.folder, "--from-issue", 99),
    ):
        (missing,) = accord.document("session", *words, code=1)["findings"]
        assert (missing["code"], "no issue #99" in missing["message"]) == ("unknown-reference", True)
