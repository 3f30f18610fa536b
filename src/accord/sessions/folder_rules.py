"""Rules across the documents of a session, and of its texts and line files. Pure over a session that was read.

Source: global agent contract, "Required repository artifacts", "ASK_USER protocol" and "Artifact content validation".
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, has_errors, pointer, warning
from accord.core.shapes import read_shape
from accord.sessions.decision_rules import check_gate, is_change_request
from accord.sessions.machine import files_needed, gates_before, is_at_least, working_state
from accord.sessions.models import APPROVE_DESIGN, GATES, DecisionHistoryEntry, OutputEntry
from accord.sessions.reviews import has_final_review, strategy_of, unreviewed_tasks
from accord.sessions.rules import is_inside, session_name_findings
from accord.sessions.times import timestamp_findings
from accord.text.outline import sections

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from accord.sessions.folder import Session
    from accord.sessions.models import SessionStatus, SessionTasks
    from accord.text.outline import Section


def folder_findings(session: Session, missing: Collection[str]) -> list[Finding]:
    """Check what concerns more than one file; files of the wrong shape are left out.

    ``missing`` are the context files of its tasks that do not exist. A finding's path is a pointer into the folder: the
    name of a file, and the place in it.
    """
    found = [*session_name_findings(session.name)]
    status, tasks = session.status, session.tasks
    if session.parts["status.json"].is_missing:
        message = "status.json is missing."
        hint = "Create the session with `accord session new`."
        found.append(Finding("artifact-missing", message, "/status.json", hint=hint))
    if status:
        found += [*_artifacts(session, status), *_gates(session, status), *_history(session, status)]
    if status and tasks:
        found += [*_tasks_by_state(session, status, tasks), *_counted_tasks(status, tasks)]
        found += _final_review(session, status)
    if tasks:
        found += [*_context_files(tasks, missing), *_reviews(session, tasks)]
    return found


def _artifacts(session: Session, status: SessionStatus) -> Iterator[Finding]:
    if status.session != session.name:
        named = short_name(status.session)
        message = f"status.json names the session `{named}`, but its folder is `{short_name(session.name)}`."
        yield Finding("session-mismatch", message, "/status.json/session", hint="Give both the same name.")
    state = working_state(status)
    for name in files_needed(state, session.mode):
        if session.parts[name].is_missing:
            message = f"{name} is missing, but the session is already in {state}."
            yield Finding("artifact-missing", message, pointer(name), hint="Write the file, or go back a state.")


def _gates(session: Session, status: SessionStatus) -> Iterator[Finding]:
    state = working_state(status)
    passed = gates_before(state, session.mode) if status.current_state != "BLOCKED" else ()
    for decision_id, gate in GATES.items():
        reason = check_gate(status, decision_id) if decision_id in passed else None
        if reason:
            message = f"The session passed {gate} and is in {state}, but {reason}"
            yield Finding("gate-open", message, "/status.json/user_decisions", hint="Ask the user first.")
        decision = status.decision(decision_id)
        if decision and decision.status == "cancelled" and status.current_state == gate:
            message = f"{decision_id} is cancelled, so the session cannot continue."
            hint = "Move it to BLOCKED."
            yield Finding("gate-cancelled", message, "/status.json/current_state", hint=hint)


def _history(session: Session, status: SessionStatus) -> Iterator[Finding]:
    decision = status.decision(APPROVE_DESIGN)
    answer = decision.answer if decision and decision.status == "answered" else None
    if answer and is_change_request(answer) and answer not in [entry.answer for entry in session.history]:
        message = "The user requested changes of the design, but approve-design-history.jsonl lacks them."
        hint = "Add the line."
        yield Finding("history-missing", message, "/status.json/user_decisions", hint=hint)
    if session.history and decision is None:
        message = f"The history has requested changes of the design, but {APPROVE_DESIGN} was never asked."
        yield warning("history-without-question", message, "/status.json/user_decisions")


def _tasks_by_state(session: Session, status: SessionStatus, tasks: SessionTasks) -> Iterator[Finding]:
    state = working_state(status)
    unfinished = [task.id for task in tasks.tasks if task.status != "completed"]
    begun = [task.id for task in tasks.tasks if task.status in ("in-progress", "implemented", "completed")]
    if state and begun and not is_at_least(state, "IMPLEMENT_LOOP", session.mode):
        message = f"The session is in {state}, but work has started on {', '.join(begun)}."
        hint = "Pass the gates first."
        yield warning("tasks-early", message, "/status.json/current_state", hint=hint)
    if state in ("INTEGRATE", "RELEASE", "DONE", "FIX_BUILD") and unfinished:
        message = f"The session is in {state}, but these tasks are not completed: {', '.join(unfinished)}."
        hint = "Complete them, or move the session back to IMPLEMENT_LOOP."
        yield Finding("tasks-open", message, "/status.json/current_state", hint=hint)


def _counted_tasks(status: SessionStatus, tasks: SessionTasks) -> Iterator[Finding]:
    for name in status.retry_counts:
        if name != "meta" and tasks.task(name) is None:
            message = f"`retry_counts` has the unknown task `{short_name(name)}`."
            hint = "Correct the id."
            yield warning("task-unknown", message, pointer("status.json", "retry_counts", name), hint=hint)


def _reviews(session: Session, tasks: SessionTasks) -> Iterator[Finding]:
    positions = {task.id: i for i, task in enumerate(tasks.tasks)}
    for name, gates in unreviewed_tasks(tasks.tasks, session.outputs).items():
        message = f"{name} is completed, but these reviews have not passed: {', '.join(gates)}."
        hint = "Set it back to implemented and have it reviewed, or waive the reviews with a reason."
        yield Finding("review-open", message, pointer("tasks.yaml", "tasks", positions[name], "status"), hint=hint)


def _final_review(session: Session, status: SessionStatus) -> Iterator[Finding]:
    """Check the final review that the strategy per-batch asks for, where reviews are recorded at all."""
    is_past = session.mode == "full" and is_at_least(working_state(status), "INTEGRATE", session.mode)
    if is_past and session.outputs and strategy_of(status) == "per-batch" and not has_final_review(session.outputs):
        message = "The session passed IMPLEMENT_LOOP without the final review of `meta`, which per-batch asks for."
        hint = "Have the Reviewer review `meta`."
        yield Finding("review-open", message, "/status.json/current_state", hint=hint)


def _context_files(tasks: SessionTasks, missing: Collection[str]) -> Iterator[Finding]:
    for i, task in enumerate(tasks.tasks):
        for j, path in enumerate(task.context_files):
            if path in missing and is_inside(path):
                name = short_name(path)
                message = f"{task.id} needs the file `{name}`, which does not exist."
                hint = "Write it, or correct the path."
                yield warning(
                    "context-file-missing", message, pointer("tasks.yaml", "tasks", i, "context_files", j), hint=hint
                )


TEXTS = {
    "spec.md": {
        "Goals": re.compile(r"\A(?!non\b)(\w+ )?goals?\b"),
        "Acceptance Criteria": re.compile(r"\Aacceptance criteria\b"),
        "Definition of Done": re.compile(r"\A(?:definition of done|dod)\b"),
    },
    "architecture.md": {
        "Overview": re.compile(r"\A(\w+ )?overview\b"),
        "Modules": re.compile(r"\b(modules?|components?)\b"),
    },
    "report.md": {
        "What was done": re.compile(r"\b(done|summary|changes|implemented|delivered)\b"),
        "How to run": re.compile(r"\b(run|usage|use)\b"),
        "How to test": re.compile(r"\b(test|tests|testing|verify|verification)\b"),
        "Known issues": re.compile(r"\b(issues|limitations)\b"),
    },
}
"""Required sections of each text, with the headings that count, in lower case and without numbering."""

Line = TypeVar("Line", DecisionHistoryEntry, OutputEntry)

_NUMBERING = re.compile(r"^[\W\d_]+")


def text_findings(raw: bytes, wanted: Mapping[str, re.Pattern[str]]) -> list[Finding]:
    """Check that a Markdown text has these sections, and text in each."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return [Finding("not-text", "The file is not valid UTF-8.", hint="Save it as UTF-8.")]
    return list(_section_findings(sections(text), wanted))


def _section_findings(found: list[Section], wanted: Mapping[str, re.Pattern[str]]) -> Iterator[Finding]:
    for name, heading in wanted.items():
        positions = [i for i, section in enumerate(found) if heading.search(_plain(section.title))]
        if not positions:
            yield Finding("section-missing", f"The section `{name}` is missing.", hint=f"Add the heading `## {name}`.")
        elif not any(_has_text(found, i) for i in positions):
            message = f"The section `{name}` is empty."
            hint = "Write its text."
            yield Finding("section-empty", message, line=found[positions[0]].line, hint=hint)


def _plain(title: str) -> str:
    return _NUMBERING.sub("", title.lower()).replace("*", "").replace("`", "")


def _has_text(found: list[Section], position: int) -> bool:
    """Return whether a section, or one below it, has text."""
    level, below = found[position].level, found[position + 1 :]
    parts = itertools.takewhile(lambda section: section.level > level, below)
    return any(section.text for section in (found[position], *parts))


def read_history(raw: bytes) -> tuple[list[DecisionHistoryEntry], list[Finding]]:
    """Read ``approve-design-history.jsonl``; a line with an error is a finding, and does not count as an answer."""
    entries, found = _read_lines(raw, DecisionHistoryEntry, _history_findings)
    return [entry for entry in entries if not has_errors(_history_findings(entry))], found


def read_outputs(raw: bytes) -> tuple[list[OutputEntry], list[Finding]]:
    """Read ``outputs.jsonl``; a line that cannot be read is a finding with its number."""
    return _read_lines(raw, OutputEntry, lambda entry: timestamp_findings(entry.at, ""))


def _read_lines(
    raw: bytes, shape: type[Line], check: Callable[[Line], Iterable[Finding]]
) -> tuple[list[Line], list[Finding]]:
    entries: list[Line] = []
    found: list[Finding] = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = read_shape(shape, json.loads(line))
            entries.append(entry)
        except BrokenContract as broken:
            problems = "; ".join(f"{finding.path} {finding.text}".strip() for finding in broken.findings)
            found.append(Finding("history-line", f"The line is not an entry of this file: {problems}", line=number))
        except (ValueError, RecursionError):
            message = "The line is not a JSON object and is not read. A crash may have cut it short."
            found.append(replace(warning("history-torn", message), line=number))
        else:
            found += [replace(finding, line=number) for finding in check(entry)]
    return entries, found


def _history_findings(entry: DecisionHistoryEntry) -> Iterator[Finding]:
    yield from timestamp_findings(entry.at, "")
    if entry.decision_id != APPROVE_DESIGN or not is_change_request(entry.answer):
        message = "The entry is not an answer to UD-APPROVE-DESIGN that requests changes."
        hint = "Remove it."
        yield Finding("history-line", message, hint=hint)
