"""A session's folder: what its files must contain, what they must say to each other, and how a change treats it."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.growth import grows_too_fast
from support.sessions import (
    ALL_REVIEWED,
    ARCHITECTURE,
    AT,
    GATES,
    INTEGRATED,
    NAME,
    REPORT,
    SINGLE,
    SPEC,
    TASKS,
    WORKED_ON,
    agent_output,
    decision,
    done,
    make_session,
    outputs,
    writer,
)  # fmt: skip

from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Severity
from accord.git.program import Git
from accord.sessions.changes import change_findings, hand_edits
from accord.sessions.folder import Part, changed_sessions, missing_files, read_session
from accord.sessions.folder_rules import check_session, folder_findings
from accord.sessions.models import LOOPS, AgentOutput
from accord.sessions.outputs import apply_output
from accord.sessions.policy import parse_setting
from accord.sessions.questions import next_step
from accord.sessions.run import advance, move_task, reopen, set_values, start_fix
from accord.sessions.turns import move_on

WORK = AgentOutput.model_validate(agent_output())
WILD = Path(__file__).parents[1] / "data/sessions/wild/.agents-work/2026-02-10_order-filter"


def found(folder: Path) -> list[tuple[str, str]]:
    """Name every finding as (file, code), warnings in brackets; the folder itself is an empty name."""
    return [
        ("" if place == folder else place.name, f.code if f.severity is Severity.ERROR else f"({f.code})")
        for place, _, findings in check_session(folder)
        for f in findings
    ]


def test_a_session_as_tools_leave_it_is_read_whole() -> None:
    session = read_session(WILD)
    assert found(WILD) == []
    assert session.mode == "full"
    assert session.status.retries("T-001", "FIX_REVIEW") == 1
    first, second = session.tasks.tasks
    assert first.acceptance_checks == ["cmd: npm test -- filter", "manual: open /orders?region=north"]
    assert second.depends_on == ["T-001"]
    assert second.model_extra == {"when": "on", "due": "12:30"}


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("spec.md", SPEC.replace("## Goals", "## Aims"), "section-missing"),
        *(
            ("spec.md", SPEC.replace("## Goals", f"## {title}"), "section-missing")
            for title in ("Non-Goals", "Project non-goals")
        ),
        ("spec.md", SPEC.replace("## Acceptance Criteria", "## Criteria"), "section-missing"),
        ("spec.md", SPEC.replace("## Definition of Done", "## Done"), "section-missing"),
        ("spec.md", SPEC.replace("Export.", ""), "section-empty"),
        ("spec.md", SPEC.replace("Export.", "<!-- later -->"), "section-empty"),
        ("spec.md", "```\n" + SPEC + "```\n", "section-missing"),
        ("architecture.md", ARCHITECTURE.replace("## Overview", "## Idea"), "section-missing"),
        ("architecture.md", ARCHITECTURE.replace("## Modules", "## Parts"), "section-missing"),
        ("report.md", REPORT.replace("## Known issues", "## Bugs"), "section-missing"),
        ("tasks.yaml", "tasks: []\n", "schema"),
        ("tasks.yaml", "tasks: [\n", "not-yaml"),
        ("tasks.yaml", "- id: T-001\n", "schema"),
        ("acceptance.json", "{}", "schema"),
        ("acceptance.json", "```json\n{}\n```", "text-around"),
        ("status.json", "{", "not-json"),
        ("approve-design-history.jsonl", '{"at": 1}\n', "history-line"),
        ("approve-design-history.jsonl", '{"at": "2026', "(history-torn)"),
        ("outputs.jsonl", outputs(("Nobody", "OK")), "history-line"),
        ("outputs.jsonl", '{"at": "2026', "(history-torn)"),
        *(
            ("outputs.jsonl", outputs(("QA", "OK"), x=1).replace(*change), "history-line")
            for change in (('"OK"', '"FAIL", "status": "OK"'), ('"x": 1', '"x": NaN'), ("Looked", "\\ud83d"))
        ),
    ],
)
def test_a_file_without_its_content_is_found_out(tmp_path: Path, name: str, text: str, code: str) -> None:
    assert (name, code) in found(make_session(tmp_path, "DESIGN", texts={name: text}))


ENTRIES = outputs(("Coder", "OK"), ("Reviewer", "OK")).splitlines()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (",\n".join(ENTRIES), [1]),
        ("\n,\n".join(ENTRIES), [2]),
        (f"{ENTRIES[0]}\n{ENTRIES[1]},", [2]),
        (", ".join(ENTRIES), [1]),
        ("[{},\n{}]\n".format(*ENTRIES), [1, 2]),
    ],
)
def test_commas_and_brackets_around_entries_are_errors_with_their_lines(tmp_path: Path, text: str, wrong: Any) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts={"outputs.jsonl": text})
    part = read_session(folder).parts["outputs.jsonl"]
    errors = [one for one in part.findings if one.severity == "error"]
    assert [(one.code, one.line) for one in errors] == [("history-line", line) for line in wrong]
    assert {one.hint.partition(",")[0] for one in errors} == {"Write one object a line"}
    assert part.problem


def test_headings_are_read_with_numbers_and_with_content_below_them(tmp_path: Path) -> None:
    spec = "## 1. Goals\n### 1.1 First\nx\n## 2) **Acceptance criteria**\nx\n# Definition of done\n- [ ] x\n"
    assert found(make_session(tmp_path, "DESIGN", texts={"spec.md": spec})) == []


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        *(("Overview", title) for title in ("High-Level Overview", "Top-level overview", "I. Overview")),
        *(("Overview", title) for title in ("IV) System overview", "1.1 `Overview`", "C. Overview")),
        *(("Goals", title) for title in ("High-level goals", "ii. Goals and non-goals", "2. Project goals")),
        *(("Acceptance Criteria", title) for title in ("II. Acceptance-Criteria", "B) **Acceptance** criteria")),
        *(("Definition of Done", title) for title in ("Definition-of-Done", "Definition_of_done", "XII. DoD")),
    ],
)
def test_headings_are_read_by_their_words(tmp_path: Path, heading: str, title: str) -> None:
    texts = {"spec.md": SPEC, "architecture.md": ARCHITECTURE}
    written = {name: text.replace(f"## {heading}", f"## {title}") for name, text in texts.items()}
    assert found(make_session(tmp_path, "DESIGN", texts=written)) == []


@pytest.mark.parametrize("name", ["status.json", "spec.md", "approve-design-history.jsonl"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_link_is_not_followed_and_a_pipe_not_waited_for(tmp_path: Path, name: str, kind: str) -> None:
    folder = make_session(tmp_path, texts={name: None})
    (tmp_path / "secret").write_text('{"token": "x"}')
    os.mkfifo(folder / name) if kind == "pipe" else (folder / name).symlink_to(tmp_path / "secret")
    assert (name, "file-unreadable") in found(folder)


NEEDED = {
    "status.json": ("", "INTAKE"),
    "spec.md": ("INTAKE", "DESIGN"),
    "acceptance.json": ("INTAKE", "DESIGN"),
    "architecture.md": ("DESIGN", "APPROVE_DESIGN"),
    "tasks.yaml": ("PLAN", "REVIEW_STRATEGY FIX_TESTS"),
    "report.md": ("RELEASE", "DONE"),
}
"""The files with the last state that does not need each, and with states that do."""


@pytest.mark.parametrize(("missing", "states"), NEEDED.items())
def test_each_state_asks_for_its_files(tmp_path: Path, missing: str, states: tuple[str, str]) -> None:
    for state in " ".join(states).split():
        texts = {"tasks.yaml": done(), missing: None}
        folder = make_session(tmp_path / state, state, texts=texts, user_decisions=GATES, mode="full")
        assert (("", "artifact-missing") in found(folder)) == (state in states[1].split()), state


def test_a_lean_session_needs_no_architecture_and_no_gates(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", texts={"architecture.md": None})
    assert read_session(folder).mode == "lean"
    assert found(folder) == []


@pytest.mark.parametrize(
    ("state", "changes", "expected"),
    [
        ("PLAN", {}, ["gate-open"]),
        ("PLAN", {"user_decisions": GATES[:1]}, []),
        ("IMPLEMENT_LOOP", {"user_decisions": GATES[:1]}, ["gate-open"]),
        ("FIX_TESTS", {"user_decisions": GATES[1:]}, ["gate-open"]),
        ("BLOCKED", {"blocked_from": "REVIEW_STRATEGY", "blocker": "x", "user_decisions": GATES[:1]}, []),
        ("APPROVE_DESIGN", {"user_decisions": [decision("UD-APPROVE-DESIGN", "cancelled")]}, ["gate-cancelled"]),
        *(
            (
                "BLOCKED",
                {
                    "user_decisions": [decision("UD-APPROVE-DESIGN", "cancelled")],
                    "blocked_from": "APPROVE_DESIGN",
                    "blocker": blocker,
                },
                wrong,
            )
            for blocker, wrong in (("no time", ["gate-cancelled"]), ("mandatory_user_decision_missing", []))
        ),
        ("ASK_USER", {"user_decisions": [decision(state_context="PLAN")]}, ["gate-open"]),
    ],
)
def test_a_session_does_not_pass_a_gate_without_its_answer(
    tmp_path: Path, state: str, changes: dict[str, Any], expected: list[str]
) -> None:
    folder = make_session(tmp_path, state, mode="full", **changes)
    assert found(folder) == [("", code) for code in expected]
    hints = [one.hint for _, _, findings in check_session(folder) for one in findings if one.code == "gate-open"]
    assert all(f"session advance {folder} --to" in hint for hint in hints)


def test_the_history_holds_requested_changes_and_nothing_else(tmp_path: Path) -> None:
    answer = "changes-requested: smaller"
    asked = [decision("UD-APPROVE-DESIGN", "answered", answer=answer)]
    folder = make_session(tmp_path, "APPROVE_DESIGN", user_decisions=asked)
    assert found(folder) == [("", "history-missing")]
    entry = {"at": AT, "decision_id": "UD-APPROVE-DESIGN", "answer": answer, "state_context": "APPROVE_DESIGN"}
    lines = [entry, {**entry, "answer": "approved"}, {**entry, "decision_id": "UD-1"}]
    for count, wrong in ((1, 0), (3, 2)):
        (folder / "approve-design-history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:count]))
        assert found(folder) == [("approve-design-history.jsonl", "history-line")] * wrong


@pytest.mark.parametrize("state", ["INTEGRATE", "RELEASE", "DONE", "FIX_BUILD"])
def test_tasks_are_completed_before_they_are_integrated(tmp_path: Path, state: str) -> None:
    assert ("", "tasks-open") in found(make_session(tmp_path, state, user_decisions=GATES))
    finished = make_session(tmp_path / "b", state, user_decisions=GATES, texts={"tasks.yaml": done()})
    assert found(finished) == [("", "(review-open)")] * 2


@pytest.mark.parametrize(
    ("state", "status"), [("PLAN", "in-progress"), ("PLAN", "implemented"), ("REVIEW_STRATEGY", "completed")]
)
def test_work_that_began_before_the_gates_is_noticed(tmp_path: Path, state: str, status: str) -> None:
    begun = TASKS.replace("not-started  #", f"{status}  #")
    folder = make_session(tmp_path, state, mode="full", user_decisions=GATES, texts={"tasks.yaml": begun})
    assert found(folder)[:1] == [("", "(tasks-early)")]


def test_a_task_that_was_completed_past_its_reviews_is_noticed(tmp_path: Path) -> None:
    lines = outputs(("Reviewer", "OK"), ("QA", "FAIL")) + outputs(("Coder", "OK"), task="T-002")
    texts = {"tasks.yaml": done(), "outputs.jsonl": lines}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts)
    assert found(folder) == [("", "review-open")] * 2
    first, second = (finding.message for finding in check_session(folder)[0][2])
    assert first.startswith("T-001 is completed without an OK of Coder, QA.")
    assert second.startswith("T-002 is completed without an OK of Reviewer.")


@pytest.mark.parametrize("recorded", ["", outputs(("Docs", "OK"), task="meta"), outputs(("Reviewer", "OK"))])
def test_a_task_that_another_tool_may_have_completed_gets_a_warning(tmp_path: Path, recorded: str) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": recorded}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts)
    assert found(folder) == [("", "(review-open)")] * 2


@pytest.mark.parametrize(
    ("state", "role", "has_code", "codes"),
    [
        ("INTEGRATE", "Reviewer", False, []),
        ("INTEGRATE", "Docs", False, ["review-open"]),
        # the first output after other tools had the tasks reviewed
        ("INTEGRATE", "SpecAgent", False, []),
        ("FIX_BUILD", "Integrator", False, []),
        ("RELEASE", "Docs", False, []),
        ("RELEASE", "Integrator", True, ["review-open"]),
        ("RELEASE", "QA", False, ["review-open"]),
    ],
)
def test_a_session_per_batch_does_not_integrate_without_its_final_review(
    tmp_path: Path, state: str, role: str, has_code: bool, codes: list[str]
) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": outputs((role, "OK"), task="meta", has_code=has_code)}
    folder = make_session(tmp_path, state, user_decisions=GATES, texts=texts)
    assert [code for _, code in found(folder) if code == "review-open"] == codes


def test_names_of_session_tasks_and_context_files_are_checked(tmp_path: Path) -> None:
    files = [".agents-work/<session>/spec.md", f".agents-work/{NAME}/nothing.md"]
    tasks = TASKS.replace("owner: 'someone'", f"context_files: {json.dumps(files)}")
    counts = {"T-001": {}, "meta": {}, "T-077": {"FIX_TESTS": 1}}
    folder = make_session(tmp_path, "DESIGN", retry_counts=counts, texts={"tasks.yaml": tasks})
    assert found(folder) == [("", "(task-unknown)"), ("", "(context-file-missing)")]
    (folder / "outputs.jsonl").write_text(outputs(*[("Coder", "OK")] * 2, task="T-078").replace("2026", "2226"))
    late = [("outputs.jsonl", "(timestamp-future)")] * 2
    assert found(folder) == [("", "(task-unknown)"), ("", "(task-unknown)"), ("", "(context-file-missing)"), *late]
    assert read_session(folder).parts["outputs.jsonl"].problem == "", "else no review could be taken until then"
    moved = folder.rename(folder.with_name("export"))
    assert found(moved)[:2] == [("", "session-name"), ("", "session-mismatch")]


def test_context_files_that_are_missing_or_outside_the_repository_are_named(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path / "repository"))
    (tmp_path / "secret").write_text("x")
    (session.folder / "inside.md").symlink_to("spec.md")
    (session.folder / "outside.md").symlink_to(tmp_path / "secret")
    (session.folder / "loop.md").symlink_to("loop.md")
    there = [f".agents-work/{n}" for n in ("<session>/spec.md", f"{NAME}/tasks.yaml#T-001", "<session>/inside.md")]
    missing = ["README.md", "../outside", *(f".agents-work/<session>/{name}.md" for name in ("outside", "loop"))]
    assert missing_files(session, [*there, *missing]) == set(missing)
    with pytest.raises(WrongUsage, match="not a directory"):
        read_session(tmp_path / "nothing")


GATE = {"decision_id": "UD-APPROVE-DESIGN", "state_context": "APPROVE_DESIGN"}
LINE = json.dumps({"at": "2026-01-31T10:00:00Z", **GATE, "answer": "changes-requested: a"})


def commit(root: Path) -> None:
    git = Git(root, config={"user.name": "a", "user.email": "a@example.org"})
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "-m", "x")


def finished(root: Path, state: str) -> Path:
    texts = {"tasks.yaml": done(), "approve-design-history.jsonl": LINE + "\n"}
    return make_session(root, state, user_decisions=SINGLE, mode="full", texts=texts)


def changes_of(folder: Path) -> Callable[[], list[str]]:
    """Return a function that names what changed from now on, and no command made."""
    before = read_session(folder)
    return lambda: [one.code for one in hand_edits(before, read_session(folder)) if one.severity is Severity.ERROR]


def test_a_session_that_was_done_is_not_moved_away_unseen(tmp_path: Path) -> None:
    Git(tmp_path)("init", "--quiet", "-b", "main")
    folder = finished(tmp_path, "DONE")
    commit(tmp_path)
    Git(tmp_path)("checkout", "--quiet", "-b", "work")
    assert changed_sessions(tmp_path, "main") == []
    make_session(tmp_path, session="2026-03-02_more", texts={"tasks.yaml": None})
    assert [path.name for path in changed_sessions(tmp_path, "main")] == ["2026-03-02_more"]
    folder.rename(folder.with_name("2026-03-01_new"))
    commit(tmp_path)
    names = [NAME, "2026-03-01_new", "2026-03-02_more"]
    assert [path.name for path in changed_sessions(tmp_path, "main")] == names
    assert [one.code for one in change_findings(tmp_path, NAME, "main")] == ["session-done", "history-shortened"]


PASSED = outputs(("Reviewer", "OK"), ("QA", "OK"), ("Security", "OK"))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (None, ["review-open"]),
        (outputs(("Reviewer", "OK"), ("QA", "OK"), task="T-009"), ["review-open"]),
        (outputs(("Coder", "OK")), []),  # then the folder alone shows it
        (PASSED, []),
        (outputs(("Orchestrator", "OK"), waived_reviews=["Reviewer", "QA", "Security"]), []),
        (outputs(("Docs", "FAIL"), waived_reviews=["Reviewer", "QA", "Security"]), ["review-open"]),
    ],
)
def test_a_change_completes_no_task_without_outputs(tmp_path: Path, lines: str | None, found: list[str]) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=SINGLE, mode="full")
    codes = changes_of(folder)
    (folder / "tasks.yaml").write_text(TASKS.replace("status: not-started", "status: completed", 1))
    if lines:
        (folder / "outputs.jsonl").write_text(lines)
    assert codes() == found
    assert changes_of(folder)() == [], "what was completed before the change stays"


def test_a_task_that_no_agent_worked_on_keeps_a_session_with_records_from_integration(tmp_path: Path) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": outputs(("Coder", "OK"), ("Reviewer", "OK"), ("QA", "OK"))}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=SINGLE, mode="full", texts=texts)
    found = [(one.code, one.severity.value, one.path) for _, _, all_of in check_session(folder) for one in all_of]
    assert found == [("review-open", "warning", "/tasks.yaml/tasks/1/status")]
    with pytest.raises(BrokenContract, match=r"T-002 \(Coder, Reviewer\)"):
        advance(writer(folder), "INTEGRATE", role="Orchestrator")
    (folder / "outputs.jsonl").write_text(outputs(("Docs", "OK"), task="meta"))
    with pytest.raises(BrokenContract, match=r"T-001 \(Reviewer, QA\); T-002 \(Reviewer\)"):
        advance(writer(folder), "INTEGRATE", role="Orchestrator")
    (folder / "outputs.jsonl").unlink()
    advance(writer(folder), "INTEGRATE", role="Orchestrator")  # other tools keep the records


@pytest.mark.parametrize("vary", [lambda _: {}, lambda i: {"security_concerns": i}, lambda i: {"ticket": i}])
def test_a_change_with_many_outputs_is_judged_in_proportion_to_them(
    tmp_path: Path, vary: Callable[[int], dict[str, int]]
) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": WORKED_ON}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=SINGLE, mode="full", texts=texts)
    before = read_session(folder)
    by_hand(folder, current_state="INTEGRATE")
    passed = outputs(("Reviewer", "OK"), ("QA", "OK"), ("Security", "OK"))

    def judge(size: int) -> None:
        more = {"waived_reviews": ["QA"]}  # by the Orchestrator
        said = (("Coder", "OK"), ("Reviewer", "FAIL"), ("Orchestrator", "OK"))
        failed = [outputs(*said, **more, **vary(i)) for i in range(size)]
        (folder / "outputs.jsonl").write_text(WORKED_ON + "".join(failed) + passed + failed[0])
        codes = [one.code for one in hand_edits(before, read_session(folder))]
        assert codes == ["session-altered", "retry-budget", "session-altered"]

    assert not grows_too_fast(judge, 1_000, noticed=0.1)


@pytest.mark.parametrize("mode", ["lean", "per-batch", "single-final"])
def test_no_review_of_meta_completes_a_task_that_no_coder_worked_on(tmp_path: Path, mode: str) -> None:
    gates: Any = {"lean": [], "per-batch": GATES, "single-final": SINGLE}[mode]
    made: Any = {"user_decisions": gates, "mode": "lean" if mode == "lean" else "full"}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", **made)
    codes = changes_of(folder)
    (folder / "outputs.jsonl").write_text(outputs(("Coder", "DISPATCHED")))
    (folder / "tasks.yaml").write_text(TASKS.replace("not-started", "implemented", 1))
    assert codes() == [], "the Coder set it, and no output is taken yet"
    apply_output(writer(folder), "T-001", "Coder", WORK)
    tasks = (folder / "tasks.yaml").read_text()
    (folder / "tasks.yaml").write_text(tasks.replace("not-started", "implemented"))
    assert codes() == ["review-open"]
    for role in ("Reviewer", "QA"):
        apply_output(writer(folder), "meta", role, WORK)
    assert [task.status for task in read_session(folder).tasks.tasks] == ["completed", "implemented"]  # type: ignore[union-attr]
    turn = move_on(writer(folder))
    assert (turn.task, turn.role) == ("T-002", "Coder")
    (folder / "tasks.yaml").write_text(done())
    assert codes() == ["review-open"]
    move_task(writer(folder), "T-002", "completed", role="Orchestrator", waiver="written by hand")
    assert codes() == []
    advance(writer(folder), "INTEGRATE", role="Orchestrator")


NOON = "2026-01-31T12:00:00Z"


def by_hand(folder: Path, **changes: Any) -> None:
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps({**status, **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "lean"},
        {"mode": "lean", "current_state": "IMPLEMENT_LOOP", "user_decisions": []},
        {"user_decisions": SINGLE[:1]},
        *(
            {"user_decisions": [{**SINGLE[0], **said}, SINGLE[1]]}
            for said in ({"question": "More?"}, {"asked_at": NOON})
        ),
        {"user_decisions": [SINGLE[0], {**SINGLE[1], "answer": "per-batch"}]},
        {"user_decisions": [SINGLE[0], {**SINGLE[1], "status": "pending", "answer": None, "resolved_at": None}]},
        *({"current_state": state} for state in ("INTAKE", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY")),
        *({"current_state": loop} for loop in LOOPS),
        {"current_state": "FIX_TESTS", "retry_counts": {"T-001": {"FIX_REVIEW": 1}}},
        *({"current_state": "FIX_TESTS", "fix_task": task} for task in (None, "T-999", "T-001", "meta")),
        {"current_state": "FIX_TESTS", "fix_task": "T-001", "retry_counts": {"T-002": {"FIX_TESTS": 1}}},
        *({"current_state": "BLOCKED", "blocked_from": state, "blocker": "x"} for state in ("PLAN", "FIX_TESTS")),
    ],
)
def test_a_change_by_hand_that_no_command_makes_is_an_error(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = finished(tmp_path, "IMPLEMENT_LOOP")
    codes = changes_of(folder)
    by_hand(folder, known_issues=["slow"], current_state="INTEGRATE")
    assert codes() == []
    by_hand(folder, **{"current_state": "IMPLEMENT_LOOP", **changes})
    assert "session-altered" in codes()


@pytest.mark.parametrize(
    "state", [{"current_state": "ASK_USER"}, {"current_state": "BLOCKED", "blocked_from": "ASK_USER"}]
)
@pytest.mark.parametrize(
    ("was", "asked", "found"),
    [
        ("answered", [], ["session-altered"]),
        ("cancelled", [], ["session-altered"]),
        ("pending", [], []),
        *(("answered", [decision("UD-2", status)], []) for status in ("pending", "answered", "skipped")),
        ("answered", [decision("UD-3")], ["decision-order"]),
    ],
)
def test_a_change_by_hand_asks_the_user_only_with_a_question(
    tmp_path: Path, state: dict[str, Any], was: str, asked: list[dict[str, Any]], found: list[str]
) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=[*SINGLE, decision("UD-1", was)])
    codes = changes_of(folder)
    by_hand(folder, user_decisions=[*SINGLE, decision("UD-1", was), *asked], blocker="x", **state)
    assert codes() == found
    assert changes_of(folder)() == []


@pytest.mark.parametrize(
    ("was", "loop", "count", "found"),
    [
        ("IMPLEMENT_LOOP", "FIX_TESTS", 2, ["session-altered"]),
        ("IMPLEMENT_LOOP", "FIX_TESTS", 3, []),
        ("FIX_REVIEW", "FIX_TESTS", 2, ["session-altered"]),
        ("FIX_REVIEW", "FIX_TESTS", 3, []),
        ("FIX_TESTS", "FIX_TESTS", 2, []),
    ],
)
@pytest.mark.parametrize("asks", [None, {"current_state": "ASK_USER"}, {"current_state": "IMPLEMENT_LOOP"}])
@pytest.mark.parametrize("is_decided", [False, True])
def test_a_session_comes_to_a_fix_loop_only_with_a_count(
    tmp_path: Path, was: str, loop: str, count: int, found: list[str], asks: dict[str, Any] | None, is_decided: bool
) -> None:
    """Also from another loop, and where only a question came up in it."""
    counts, decided = {"FIX_TESTS": 2, "FIX_REVIEW": 1}, decision("UD-1", "answered", question="T-001 FIX_TESTS?")
    said = [*SINGLE, decided] if is_decided else SINGLE
    made: Any = {"fix_task": "T-001", "retry_counts": {"T-001": counts}, "user_decisions": said}
    texts = {"tasks.yaml": TASKS.replace("not-started", "implemented", 1)}
    folder = make_session(tmp_path, was, mode="full", texts=texts, **made)
    codes = changes_of(folder)
    by_hand(folder, current_state=loop, retry_counts={"T-001": {**counts, "FIX_TESTS": count}})
    if asks:
        status = "pending" if asks["current_state"] == "ASK_USER" else "answered"
        by_hand(folder, user_decisions=[*said, decision(f"UD-{len(said) - 1}", status, state_context=loop)], **asks)
    assert codes() == ([] if is_decided else found)


@pytest.mark.parametrize(("count", "found"), [(0, ["session-altered"]), (1, [])])
def test_a_new_session_is_in_a_fix_loop_only_with_a_count(tmp_path: Path, count: int, found: list[str]) -> None:
    counts: Any = {"T-001": {"FIX_TESTS": count}}
    folder = make_session(tmp_path, "FIX_TESTS", mode="full", user_decisions=SINGLE, retry_counts=counts)
    after = read_session(folder)
    new = replace(after, parts={name: Part(name) for name in after.parts})
    assert [one.code for one in hand_edits(new, after)] == found


@pytest.mark.parametrize(
    ("lines", "ci", "found"),
    [
        *(
            (outputs(("Integrator", status), task="meta"), "green", ["session-altered"])
            for status in ("FAIL", "BLOCKED")
        ),
        (outputs(("Integrator", "FAIL"), task="meta"), "red", ["session-altered"]),
        (outputs(("Integrator", "OK"), task="meta", meets_definition_of_done=False), "green", ["session-altered"]),
        (outputs(("Integrator", "OK"), ("Integrator", "FAIL"), task="meta"), "red", []),  # it failed in RELEASE
        (outputs(("Integrator", "OK"), task="meta"), "green", []),
    ],
)
def test_a_new_output_of_the_integrator_that_is_not_ok_passes_nothing(
    tmp_path: Path, lines: str, ci: str, found: list[str]
) -> None:
    folder = finished(tmp_path, "INTEGRATE")
    (folder / "outputs.jsonl").write_text(ALL_REVIEWED)
    codes = changes_of(folder)
    by_hand(folder, current_state="RELEASE", last_ci_result=ci)
    (folder / "outputs.jsonl").write_text(ALL_REVIEWED + lines)
    assert codes() == found


@pytest.mark.parametrize("state", ["INTEGRATE", "RELEASE"])
def test_a_change_by_hand_ends_no_session_whose_build_is_broken(tmp_path: Path, state: str) -> None:
    folder = finished(tmp_path, state)
    (folder / "outputs.jsonl").write_text(INTEGRATED)
    codes = changes_of(folder)
    by_hand(folder, current_state="DONE", last_ci_result="red")
    assert codes() == ["session-altered"]
    by_hand(folder, last_ci_result="green")
    assert codes() == []


def test_a_change_by_hand_goes_back_to_tasks_only_for_one_that_was_open(tmp_path: Path) -> None:
    folder = finished(tmp_path, "INTEGRATE")
    (folder / "outputs.jsonl").write_text(INTEGRATED)
    codes = changes_of(folder)
    by_hand(folder, current_state="IMPLEMENT_LOOP")
    assert codes() == ["session-altered"], "also where the session could be done and reopened"
    by_hand(folder, current_state="INTEGRATE")
    (folder / "outputs.jsonl").write_text(ALL_REVIEWED)
    codes = changes_of(folder)
    by_hand(folder, current_state="IMPLEMENT_LOOP", retry_counts={"T-001": {"FIX_TESTS": 1}})
    assert codes() == ["session-altered"]
    (folder / "outputs.jsonl").write_text(ALL_REVIEWED + outputs(("QA", "FAIL"), ("Coder", "OK"), ("QA", "OK")))
    assert codes() == []
    (folder / "outputs.jsonl").write_text(ALL_REVIEWED)
    (folder / "tasks.yaml").write_text(done() + TASKS[TASKS.index("  - id: T-002") :].replace("T-002", "T-003"))
    assert codes() == []


def test_a_change_by_hand_starts_no_task_before_the_gates(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "PLAN", mode="full", user_decisions=SINGLE[:1])
    codes = changes_of(folder)
    (folder / "tasks.yaml").write_text(TASKS.replace("not-started", "in-progress", 1))
    assert codes() == ["tasks-early"]
    by_hand(folder, current_state="BLOCKED")
    assert codes() == ["blocker-missing", "tasks-early"]
    by_hand(folder, blocker="x")
    assert codes() == ["tasks-early"]
    assert changes_of(folder)() == [], "what was begun before the change stays a warning"
    by_hand(folder, current_state="IMPLEMENT_LOOP", user_decisions=SINGLE)
    assert "tasks-early" not in codes()
    by_hand(folder, current_state="PLAN")
    new = replace(read_session(folder), parts={name: Part(name) for name in read_session(folder).parts})
    assert "tasks-early" in [one.code for one in hand_edits(new, read_session(folder))]


PUT_OFF = {"status": "cancelled", "category": "security"}


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ({}, {"question": "Another one?"}, "session-altered"),
        ({}, {"asked_at": "2026-01-31T10:00:00Z"}, "session-altered"),
        ({"asked_at": "2026-01-31"}, {"asked_at": AT}, ""),
        ({"status": "answered"}, {"status": "answered", "resolved_at": NOON}, "session-altered"),
        ({"status": "answered", "resolved_at": "noon"}, {"status": "answered", "resolved_at": NOON}, ""),
        ({"category": "security"}, {"category": None}, "session-altered"),
        ({"category": "secrity"}, {"category": "security"}, ""),
        ({}, {"category": "security"}, ""),
        *(
            ({"state_context": was}, {"state_context": "IMPLEMENT_LOOP"}, "session-altered")
            for was in ("FIX_REVIEW", "FIX_TESTS")
        ),
        ({"state_context": "FIX_REVIEW"}, {"status": "answered"}, "session-altered"),
        ({"status": "cancelled"}, {"status": "cancelled", "resolution_reason": "the user said so"}, "session-altered"),
        ({"category": "security"}, PUT_OFF, "security-cancelled"),
        ({"category": "security"}, {**PUT_OFF, "resolution_reason": "the user deferred this to the next sprint"}, ""),
        ({"category": "security"}, {"status": "answered", "category": "security"}, ""),
        ({}, {"status": "cancelled"}, ""),
    ],
)
def test_a_question_keeps_what_it_asks_and_how_it_ended(
    tmp_path: Path, was: dict[str, Any], now: dict[str, Any], found: str
) -> None:
    folder = make_session(tmp_path, "ASK_USER", mode="full", user_decisions=[*SINGLE, decision(**was)])
    codes = changes_of(folder)
    by_hand(folder, user_decisions=[*SINGLE, decision(**now)])
    assert codes() == ([found] if found else [])


@pytest.mark.parametrize("state", ["INTAKE", "IMPLEMENT_LOOP", "BLOCKED"])
def test_a_session_does_not_disappear(tmp_path: Path, state: str) -> None:
    before = read_session(make_session(tmp_path, state, blocked_from="PLAN", blocker="x"))
    after = replace(before, parts={name: Part(name) for name in before.parts})
    assert [(one.code, one.path) for one in hand_edits(before, after)] == [("artifact-missing", "/status.json")]


LATER = {"asked_at": "2026-01-31T12:30:00Z", "resolved_at": "2026-01-31T12:30:00Z"}


@pytest.mark.parametrize(
    ("question", "recorded", "found"),
    [
        (None, "", ["session-altered"]),
        (None, WORKED_ON, ["session-altered"]),
        ("May T-001 enter FIX_TESTS again?", "", []),
        ("Which port?", WORKED_ON, ["session-altered"]),
        ("T-001 FIX_REVIEW: again?", WORKED_ON, ["session-altered"]),
        ("T-0011 FIX_TESTS: again?", WORKED_ON, ["session-altered"]),
        ("May T-001 enter FIX_TESTS again?", WORKED_ON, []),
    ],
)
@pytest.mark.parametrize("counts", [{}, {"T-001": {"FIX_TESTS": 2, "FIX_REVIEW": 3}}])
def test_a_count_falls_only_after_a_decision_on_its_loop(
    tmp_path: Path, question: str | None, recorded: str, found: list[str], counts: dict[str, Any]
) -> None:
    spent, texts = {"T-001": {"FIX_TESTS": 3, "FIX_REVIEW": 3}}, {"outputs.jsonl": recorded}
    folder = make_session(
        tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=SINGLE, retry_counts=spent, texts=texts
    )
    codes = changes_of(folder)
    if question:
        by_hand(folder, user_decisions=[*SINGLE, decision("UD-1", "answered", question=question, **LATER)])
    by_hand(folder, retry_counts=counts or {"T-001": {"FIX_REVIEW": 3}})
    assert codes() == found


DESIGN = "UD-APPROVE-DESIGN"
GATE_ASKED, ASKING = [decision(DESIGN)], [*SINGLE, decision()]
ASKED_SECURITY = outputs(("Security", "NEEDS_DECISION")).replace("Looked at.", "medium: Log the token?")


@pytest.mark.parametrize(
    ("state", "decisions", "lines", "found"),
    [
        *(
            ("APPROVE_DESIGN", GATE_ASKED, outputs((role, "OK"), task="meta"), "")
            for role in ("SpecAgent", "Architect")
        ),
        *(
            ("APPROVE_DESIGN", GATE_ASKED, outputs((role, "OK"), task="meta"), "state-forbids /outputs.jsonl/0")
            for role in ("Coder", "Planner", "QA", "Integrator")
        ),
        ("APPROVE_DESIGN", GATE_ASKED, outputs(("Coder", "OK")), "state-forbids /outputs.jsonl/0"),
        ("PLAN", GATES[:1], outputs(("Planner", "OK"), task="meta"), ""),
        ("PLAN", GATES[:1], outputs(("Coder", "DISPATCHED")), "state-forbids /outputs.jsonl/0"),
        ("IMPLEMENT_LOOP", GATES[:1], outputs(("Coder", "OK")), "state-forbids /outputs.jsonl/0"),
        ("IMPLEMENT_LOOP", SINGLE, outputs(("Coder", "OK")), ""),
        ("ASK_USER", ASKING, outputs(("Coder", "OK")), "state-forbids /outputs.jsonl/0"),
        ("ASK_USER", ASKING, outputs(("Researcher", "NEEDS_INFO")), ""),
        ("IMPLEMENT_LOOP", SINGLE, outputs(("QA", "NEEDS_DECISION")), "status-of-other-role /outputs.jsonl/0"),
        ("IMPLEMENT_LOOP", SINGLE, outputs(("Coder", "NEEDS_INFO")), "status-of-other-role /outputs.jsonl/0"),
        ("IMPLEMENT_LOOP", SINGLE, outputs(("Reviewer", "DISPATCHED")), "status-of-other-role /outputs.jsonl/0"),
        ("IMPLEMENT_LOOP", SINGLE, ASKED_SECURITY, "session-altered /status.json/user_decisions"),
        (
            "IMPLEMENT_LOOP",
            [*SINGLE, decision(question="T-001: medium: Log the token?")],
            ASKED_SECURITY,
            "session-altered /status.json/user_decisions",
        ),
        (
            "IMPLEMENT_LOOP",
            [*SINGLE, decision(question="T-001: medium: Log the token?", category="security")],
            ASKED_SECURITY,
            "",
        ),
    ],
)
def test_a_change_adds_no_output_that_no_command_takes(
    tmp_path: Path, state: str, decisions: list[Any], lines: str, found: str
) -> None:
    texts = {"tasks.yaml": TASKS}
    folder = make_session(tmp_path, state, mode="full", user_decisions=decisions, texts=texts)
    before = read_session(folder)
    (folder / "outputs.jsonl").write_text(lines)
    errors = hand_edits(before, read_session(folder))
    assert [f"{one.code} {one.path}" for one in errors] == ([found] if found else [])


@pytest.mark.parametrize(
    ("question", "category", "found"),
    [
        (None, None, ["session-altered"]),
        ("Is the name fine?", None, ["session-altered"]),
        ("Is it fine to log the token?", "security", []),  # in other words
        ("T-001: medium: Log the token?", "security", []),
    ],
)
@pytest.mark.parametrize("is_asked", [False, True])
def test_each_question_of_security_is_asked(
    tmp_path: Path, question: str | None, category: str | None, found: list[str], is_asked: bool
) -> None:
    """Also once more after other outputs, and in a session that is new."""
    first = decision("UD-1", "answered", question="T-001: medium: Log the token?", category="security")
    said = [*SINGLE, *([first] if is_asked else [])]
    texts = {"outputs.jsonl": outputs(("Coder", "OK")) + (ASKED_SECURITY if is_asked else "")}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=said, texts=texts)
    before = read_session(folder)
    lines = (folder / "outputs.jsonl").read_text() + outputs(("Reviewer", "OK")) + ASKED_SECURITY
    (folder / "outputs.jsonl").write_text(lines)
    if question:
        name = f"UD-{1 + is_asked}"
        asked = decision(name, "answered", question=question, category=category, **LATER)
        by_hand(folder, user_decisions=[*said, asked])
    after = read_session(folder)
    new = replace(before, parts={name: Part(name) for name in before.parts})
    assert [one.code for one in hand_edits(before, after)] == found
    assert [one.code for one in hand_edits(new, after)] == found


FAILED, FIXED = outputs(("QA", "FAIL")), outputs(("Coder", "DISPATCHED"), ("Coder", "OK"))
PASSED_AGAIN = FIXED + outputs(("Reviewer", "OK"), ("QA", "OK"))
TESTS = [{"T-001": {"FIX_TESTS": count}} for count in range(4)]
BUILD = outputs(("Integrator", "FAIL"), task="meta")


@pytest.mark.parametrize(
    ("was", "lines", "now", "found"),
    [
        ({}, FIXED, TESTS[1], ""),
        ({}, FIXED, {}, "session-altered"),
        ({}, (FIXED + FAILED) * 3, TESTS[3], ""),
        ({}, (FIXED + FAILED) * 3, TESTS[2], "session-altered"),
        ({}, (FIXED + FAILED) * 5, {}, "retry-budget session-altered"),
        ({}, (FIXED + FAILED) * 5, TESTS[3], "retry-budget"),
        ({}, FIXED + outputs(("Security", "BLOCKED")) + FIXED, TESTS[1], "session-altered"),
        ({}, FIXED + outputs(("Coder", "OK"), task="meta"), TESTS[1], ""),
        ({}, outputs(("Coder", "OK"), task="meta"), {}, "session-altered"),
        ({}, outputs(("Reviewer", "OK"), ("QA", "OK"), ("Coder", "OK")), {}, ""),
        (TESTS[3], PASSED_AGAIN, TESTS[3], "retry-budget"),
        (TESTS[3], "", {}, "session-altered"),
        (TESTS[3], FIXED + FAILED + FIXED, TESTS[2], "retry-budget session-altered"),
        ({}, BUILD * 2, {}, "session-altered"),
        ({}, BUILD + outputs(("Integrator", "OK"), task="meta"), {"meta": {"FIX_BUILD": 1}}, ""),
        ({}, BUILD * 5, {"meta": {"FIX_BUILD": 3}}, "retry-budget"),
    ],
)
@pytest.mark.parametrize("is_decided", [False, True])
def test_each_round_of_fixes_counts_until_the_user_decides(
    tmp_path: Path, was: dict[str, Any], lines: str, now: dict[str, Any], found: str, is_decided: bool
) -> None:
    first = outputs(("Coder", "OK")) + FAILED
    tasks = TASKS.replace("not-started  #", "implemented  #")
    entries = {"T-001": {"FIX_TESTS": {"outputs": 0, "count": 3}}}
    folder = make_session(
        tmp_path,
        "IMPLEMENT_LOOP",
        mode="full",
        user_decisions=SINGLE,
        texts={"tasks.yaml": tasks, "outputs.jsonl": first},
        retry_counts=was,
        fix_entries=entries if was else {},
    )
    codes = changes_of(folder)
    said = ("T-001 FIX_TESTS: again?", "T-001 FIX_SECURITY: again?", "meta FIX_BUILD: again?")
    asked = [decision(f"UD-{i}", "answered", question=text) for i, text in enumerate(said, start=1)]
    by_hand(
        *(folder,),
        retry_counts={"T-001": {}, "meta": {}} | now,
        user_decisions=[*SINGLE, *(asked if is_decided else [])],
    )
    (folder / "outputs.jsonl").write_text(first + lines)
    assert codes() == ([] if is_decided else found.split())
    if not was:
        shown = [one.code for one in folder_findings(read_session(folder)) if one.severity is Severity.WARNING]
        assert [code for code in shown if code in ("retry-budget", "session-altered")] == codes()


@pytest.mark.parametrize(("count", "found"), [(0, ["session-altered"]), (1, ["session-altered"]), (2, [])])
def test_the_first_round_of_fixes_after_a_reset_counts(tmp_path: Path, count: int, found: list[str]) -> None:
    first, at = outputs(("Coder", "OK")) + FAILED, {"asked_at": NOON, "resolved_at": NOON}
    said = [*SINGLE, decision("UD-1", "answered", question="T-001 FIX_TESTS: again?", **at)]
    texts = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #"), "outputs.jsonl": first}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=said, texts=texts)
    codes = changes_of(folder)
    by_hand(folder, retry_counts=TESTS[count])
    (folder / "outputs.jsonl").write_text(first + ((FIXED + FAILED) * 2).replace("T09", "T13"))
    assert codes() == found


def test_an_entry_that_another_tool_counted_is_one_of_two_rounds(tmp_path: Path) -> None:
    first, tasks = outputs(("Coder", "OK")) + FAILED, TASKS.replace("not-started  #", "implemented  #")
    texts = {"tasks.yaml": tasks, "outputs.jsonl": first}
    folder = make_session(tmp_path, "FIX_TESTS", mode="full", user_decisions=SINGLE, retry_counts=TESTS[1], texts=texts)
    codes = changes_of(folder)
    (folder / "outputs.jsonl").write_text(first + (FIXED + FAILED) * 2)
    assert codes() == ["session-altered"]
    by_hand(folder, retry_counts=TESTS[2])
    assert codes() == []


def corrected(status: str | None, at: str | None = AT) -> dict[str, Any]:
    sent = {"agent": "Architect", "task_id": "meta", "at": at} if at else None
    return {"gate_tracking": {"APPROVE_DESIGN": {"correction_status": status, "last_correction_dispatch": sent}}}


DESIGNED, BEFORE_AT = outputs(("SpecAgent", "OK"), ("Architect", "OK"), task="meta"), "2026-01-31T09:00:00Z"
DESIGNED_BEFORE = DESIGNED.replace(AT, BEFORE_AT)


@pytest.mark.parametrize(
    ("recorded", "added", "at", "found"),
    [
        ("", "", AT, []),  # another tool's
        ("", outputs(("Researcher", "OK")), AT, []),
        (DESIGNED_BEFORE, "", AT, ["session-altered"]),
        (DESIGNED_BEFORE, "", None, ["session-altered"]),
        (DESIGNED, "", AT, ["session-altered"]),
        *(
            (DESIGNED_BEFORE, outputs((role, "OK"), task="meta"), AT, ["session-altered"])
            for role in ("Researcher", "Designer")
        ),
        (DESIGNED_BEFORE, outputs(("Architect", "FAIL"), task="meta"), AT, ["session-altered"]),
        (DESIGNED_BEFORE, outputs(("Architect", "OK")), AT, ["session-altered"]),
        (
            DESIGNED_BEFORE,
            outputs(("Architect", "OK"), task="meta", meets_definition_of_done=False),
            AT,
            ["session-altered"],
        ),
        (DESIGNED_BEFORE, outputs(("Architect", "OK"), task="meta"), AT, []),
        ("", DESIGNED, AT, []),
    ],
)
@pytest.mark.parametrize("status", [None, "queued", "dispatched"])
def test_a_correction_is_completed_only_with_its_output(
    tmp_path: Path, status: str, recorded: str, added: str, at: str | None, found: list[str]
) -> None:
    said = [decision("UD-APPROVE-DESIGN", "answered", answer="changes-requested: a")]
    texts = {"outputs.jsonl": recorded, "approve-design-history.jsonl": LINE + "\n"}
    made: Any = {"mode": "full", "user_decisions": said, "texts": texts}
    folder = make_session(tmp_path, "APPROVE_DESIGN", **made, **corrected(status))
    codes = changes_of(folder)
    by_hand(folder, **corrected("completed", at))
    (folder / "outputs.jsonl").write_text(recorded + added)
    assert codes() == found
    assert changes_of(folder)() == [], "what was completed before the change stays"


REQUESTED = decision("UD-APPROVE-DESIGN", "answered", answer="changes-requested: a")
REQUESTED_MORE = {**REQUESTED, "answer": "changes-requested: b", **LATER}
REDESIGNED = outputs(("Architect", "OK"), task="meta").replace("T09", "T11")
ASKED_AGAIN, APPROVED = decision("UD-APPROVE-DESIGN", asked_at=LATER["asked_at"]), {**GATES[0], **LATER}


@pytest.mark.parametrize(
    ("changes", "said", "after_ok"),
    [
        ({}, GATES[0], []),
        ({}, APPROVED, []),
        (corrected("none", None), APPROVED, []),
        ({"current_state": "PLAN"}, APPROVED, []),
        ({}, ASKED_AGAIN, []),
        (corrected("none"), ASKED_AGAIN, []),
        (corrected("none"), REQUESTED, ["session-altered"]),
        ({"gate_tracking": None}, REQUESTED, ["session-altered"]),
        (corrected("completed"), {**REQUESTED, "answer": "changes-requested: b", **LATER}, []),
    ],
)
@pytest.mark.parametrize("status", ["queued", "dispatched"])
def test_a_requested_correction_is_not_dropped_by_hand(
    tmp_path: Path, status: str, changes: dict[str, Any], said: dict[str, Any], after_ok: list[str]
) -> None:
    lines = f"{LINE}\n{LINE.replace(': a', ': b')}\n"
    texts = {"outputs.jsonl": DESIGNED_BEFORE, "approve-design-history.jsonl": lines}
    made: Any = {"mode": "full", "user_decisions": [REQUESTED], "texts": texts}
    folder = make_session(tmp_path, "APPROVE_DESIGN", **made, **corrected(status))
    codes = changes_of(folder)
    by_hand(folder, **{"user_decisions": [said], **changes})
    assert {*codes()} == {"session-altered"}
    (folder / "outputs.jsonl").write_text(DESIGNED_BEFORE + outputs(("Architect", "OK"), task="meta"))
    assert codes() == after_ok


@pytest.mark.parametrize(
    ("status", "changes", "found"),
    [
        ("dispatched", corrected("queued"), ["session-altered"]),
        ("dispatched", corrected("queued", None), []),  # the agent failed
        ("completed", corrected("queued"), ["session-altered"]),
        ("completed", corrected("dispatched"), ["session-altered"]),
        ("completed", {"user_decisions": [{**REQUESTED, **LATER}], **corrected("queued")}, ["history-missing"]),
    ],
)
def test_a_correction_begins_again_only_with_a_new_request(
    tmp_path: Path, status: str, changes: dict[str, Any], found: list[str]
) -> None:
    texts = {"outputs.jsonl": DESIGNED, "approve-design-history.jsonl": LINE + "\n"}
    made: Any = {"mode": "full", "user_decisions": [REQUESTED], "texts": texts}
    folder = make_session(tmp_path, "APPROVE_DESIGN", **made, **corrected(status))
    codes = changes_of(folder)
    by_hand(folder, **changes)
    assert codes() == found


@pytest.mark.parametrize(
    ("said", "was", "now", "found"),
    [
        *(
            (said, {}, corrected(status), ["session-altered"])
            for said in ([], [decision(DESIGN)], [GATES[0]])
            for status in ("queued", "dispatched", "completed")
        ),
        ([GATES[0]], corrected("none"), corrected("none", BEFORE_AT), ["session-altered"]),
        ([GATES[0]], corrected("queued"), corrected("queued", BEFORE_AT), ["session-altered"]),
        *(([GATES[0]], corrected(status), corrected("none", None), []) for status in (None, "queued", "completed")),
        ([REQUESTED], corrected("none"), corrected("dispatched"), []),
        ([REQUESTED], corrected("queued", BEFORE_AT), corrected("completed", BEFORE_AT), ["session-altered"]),
    ],
)
def test_no_correction_is_recorded_that_no_answer_requests(
    tmp_path: Path, said: list[dict[str, Any]], was: dict[str, Any], now: dict[str, Any], found: list[str]
) -> None:
    texts = {"approve-design-history.jsonl": LINE + "\n"} if said == [REQUESTED] else {}
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=said, texts=texts, **was)
    codes = changes_of(folder)
    by_hand(folder, **now)
    assert codes() == found
    assert changes_of(folder)() == []


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(
    ("said", "changes", "added", "found"),
    [
        (APPROVED, {"current_state": "PLAN"}, "", ["session-altered"]),
        (ASKED_AGAIN, corrected("completed"), "", ["session-altered"]),
        (REQUESTED, corrected("queued"), "", []),
        (REQUESTED_MORE, corrected("queued"), "", ["session-altered"]),
        (REQUESTED_MORE, corrected("queued"), REDESIGNED, []),
        (APPROVED, {"current_state": "PLAN", **corrected("none")}, REDESIGNED, []),
    ],
)
def test_each_request_in_the_history_has_its_correction(
    tmp_path: Path, said: dict[str, Any], changes: dict[str, Any], added: str, found: list[str], is_new: bool
) -> None:
    made: Any = {"mode": "full", "user_decisions": [decision("UD-APPROVE-DESIGN")]}
    folder = make_session(tmp_path, "APPROVE_DESIGN", texts={"outputs.jsonl": DESIGNED}, **made)
    before = read_session(folder)
    if is_new:
        before = replace(before, parts={name: Part(name) for name in before.parts})
    by_hand(folder, **{"user_decisions": [said], **changes})
    more = LINE.replace(": a", ": b").replace("T10", "T12") + "\n" if said == REQUESTED_MORE else ""
    (folder / "approve-design-history.jsonl").write_text(f"{LINE}\n{more}")
    (folder / "outputs.jsonl").write_text(DESIGNED + added)
    assert {one.code for one in hand_edits(before, read_session(folder))} == {*found}


@pytest.mark.parametrize("status", ["queued", "dispatched", "completed"])
def test_a_correction_without_records_is_over_once_the_gate_was_asked_again(tmp_path: Path, status: str) -> None:
    made: Any = {"mode": "full", "user_decisions": [REQUESTED], **corrected(status)}
    texts = {"approve-design-history.jsonl": LINE + "\n"}
    folder = make_session(tmp_path, "APPROVE_DESIGN", texts=texts, **made)
    codes = changes_of(folder)
    by_hand(folder, user_decisions=[GATES[0]])
    assert codes() == ([] if status == "completed" else ["session-altered"])
    by_hand(folder, user_decisions=[APPROVED])
    assert codes() == []


@pytest.mark.parametrize(
    ("said", "changes", "found"),
    [
        ({**APPROVED, "resolved_at": "2026-01-31T13:30:00Z"}, {"current_state": "PLAN"}, ["session-altered"]),
        ({**REQUESTED, **LATER}, {}, []),
        ({**REQUESTED, **LATER}, corrected("queued", None), []),
        ({**REQUESTED, **LATER}, corrected("dispatched", "2026-01-31T13:30:00Z"), []),
        ({**REQUESTED, **LATER}, corrected("completed", "2026-01-31T13:30:00Z"), []),
    ],
)
def test_another_request_without_records_needs_another_correction(
    tmp_path: Path, said: dict[str, Any], changes: dict[str, Any], found: list[str]
) -> None:
    made: Any = {"mode": "full", "user_decisions": [ASKED_AGAIN], **corrected("completed")}
    folder = make_session(tmp_path, "APPROVE_DESIGN", texts={"approve-design-history.jsonl": LINE + "\n"}, **made)
    codes = changes_of(folder)
    by_hand(folder, user_decisions=[said], **changes)
    assert ("history-missing" in codes()) is (said["answer"] != "approved")
    (folder / "approve-design-history.jsonl").write_text(f"{LINE}\n{LINE.replace('T10', 'T13')}\n")
    assert codes() == found
    if not changes:
        assert next_step(read_session(folder)).next == "dispatch-correction"
        codes = changes_of(folder)
        by_hand(folder, user_decisions=[decision(DESIGN, asked_at="2026-01-31T14:00:00Z")])
        assert codes() == ["session-altered"], "the next change does not drop it"


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("is_done", [False, True])
def test_a_count_that_is_set_back_in_its_loop_is_not_altered_by_hand(tmp_path: Path, count: int, is_done: bool) -> None:
    counts = {"T-001": {"FIX_SECURITY": count}}
    texts = {"tasks.yaml": TASKS.replace("not-started", "implemented")}
    said = [*SINGLE, decision("UD-1", "answered", question="T-001 FIX_SECURITY: again?", **LATER)]
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=said, retry_counts=counts, texts=texts)
    codes = changes_of(folder)
    start_fix(writer(folder), "T-001", "FIX_SECURITY", role="Orchestrator")
    if is_done:
        apply_output(writer(folder), "T-001", "Coder", WORK)
    setting = parse_setting(f"retry_counts.T-001.FIX_SECURITY={count}")
    set_values(writer(folder), [setting], role="Orchestrator")
    assert codes() == []


def test_a_begun_task_does_not_disappear(tmp_path: Path) -> None:
    folder = finished(tmp_path, "IMPLEMENT_LOOP")
    codes, tasks = changes_of(folder), done()
    (folder / "tasks.yaml").write_text(tasks[: tasks.index("  - id: T-002")])
    assert codes() == ["session-altered"]


@pytest.mark.parametrize(
    ("old", "new", "status", "found"),
    [
        ("cmd security", "cmd", "not-started", ["session-altered"]),
        ("cmd perf security", "cmd perf", "implemented", ["session-altered"]),
        ("cmd security", "cmd none", "blocked", ["session-altered"]),
        ("cmd", "manual", "implemented", ["session-altered"]),
        ("cmd security", "manual", "completed", []),
        ("manual none", "cmd security", "implemented", []),
        ("cmd securty", "cmd security perf", "implemented", []),
    ],
)
def test_a_change_takes_away_no_review_that_the_plan_asked_for(
    tmp_path: Path, old: str, new: str, status: str, found: list[str]
) -> None:
    def plan(words: str, status: str) -> str:
        check, *flags = words.split()
        task = {"id": "T-001", "status": status, "goal": "g", "acceptance_checks": [f"{check}: x"], "risk_flags": flags}
        return json.dumps({"tasks": [task]})

    texts = {"tasks.yaml": plan(old, status), "outputs.jsonl": outputs(("Coder", "OK"))}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=SINGLE, mode="full", texts=texts)
    codes = changes_of(folder)
    for now in (status, "completed"):
        (folder / "tasks.yaml").write_text(plan(new, now))
        assert codes() == found


@pytest.mark.parametrize("status", ["not-started", "in-progress", "implemented", "blocked"])
def test_a_completed_task_is_set_back_only_with_an_output(tmp_path: Path, status: str) -> None:
    first, work = outputs(("Coder", "OK"), ("Reviewer", "OK"), ("QA", "OK")), outputs(("Coder", "DISPATCHED"))
    other = work.replace("T-001", "T-002")
    texts = {"tasks.yaml": done(), "outputs.jsonl": first}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=SINGLE, mode="full", texts=texts)
    codes = changes_of(folder)
    (folder / "tasks.yaml").write_text(done().replace("completed", status, 1))
    for lines, found in (("", ["session-altered"]), (other, ["session-altered"]), (work, [])):
        (folder / "outputs.jsonl").write_text(first + lines)
        assert codes() == found


def test_a_session_that_was_done_is_read_only_until_it_is_reopened(tmp_path: Path) -> None:
    folder = finished(tmp_path, "DONE")
    codes = changes_of(folder)
    (folder / "spec.md").write_text("changed")
    assert codes() == ["session-done"]
    by_hand(folder, current_state="IMPLEMENT_LOOP")
    assert codes() == []
    (folder / "tasks.yaml").write_text(done().replace("completed", "implemented"))
    assert codes() == []


def test_a_session_reopened_and_finished_in_one_change_is_allowed(tmp_path: Path) -> None:
    folder = finished(tmp_path, "DONE")
    (folder / "outputs.jsonl").write_text(INTEGRATED)
    codes = changes_of(folder)
    reopen(writer(folder))
    for state in ("INTEGRATE", "RELEASE", "DONE"):
        advance(writer(folder), state, role="Orchestrator")
    (folder / "outputs.jsonl").write_text(INTEGRATED + outputs(("Docs", "OK"), task="meta"))
    assert codes() == []
    codes = changes_of(folder)
    (folder / "spec.md").write_text("changed")
    assert codes() == ["session-done"]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("outputs.jsonl", outputs(("Reviewer", "FAIL")), outputs(("Reviewer", "OK"))),
        ("approve-design-history.jsonl", LINE + "\n", LINE.replace(": a", ": b") + "\n"),
    ],
)
def test_a_file_of_lines_may_grow_but_lose_and_change_none(tmp_path: Path, name: str, first: str, second: str) -> None:
    lines = finished(tmp_path, "IMPLEMENT_LOOP") / name
    lines.write_text(first)
    codes = changes_of(lines.parent)
    for text, found in ((first + second, []), (second, ["history-shortened"]), (first, [])):
        lines.write_text(text)
        assert codes() == found
    lines.unlink()
    assert codes() == ["history-shortened"]
    lines.write_text(first + '{"at": 1}\n{"at": "2026\n' + second)
    codes = changes_of(lines.parent)
    for text, found in ((first + second, []), (first + second * 2, []), (first, ["history-shortened"])):
        lines.write_text(text)
        assert codes() == found
