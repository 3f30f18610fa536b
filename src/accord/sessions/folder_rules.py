"""What the documents of a session must say to each other. Pure over a session that was read.

Source: global agent contract, "Required repository artifacts", "ASK_USER protocol" and "Artifact content validation".
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from accord.core.documents import shown
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, has_errors, pointer, warning
from accord.core.kinds import read_shape
from accord.sessions.models import APPROVE_DESIGN, GATES, REVIEW_STRATEGY, DecisionHistoryEntry, OutputEntry
from accord.sessions.moments import moment_findings
from accord.sessions.rules import asks_changes, is_inside, passes_gate, session_name_findings
from accord.sessions.stages import files_needed, is_at_least, open_gates, working_state
from accord.text.markdown import sections

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from accord.sessions.folder import Session
    from accord.sessions.models import SessionStatus, SessionTasks
    from accord.text.markdown import Section


def folder_findings(session: Session, missing: Collection[str]) -> list[Finding]:
    """Check what concerns more than one file; a file whose shape is wrong is left out.

    ``missing`` are those context files of its tasks that are not there. A finding's path is a pointer into the folder:
    the name of a file, and the place in it.
    """
    found = [*session_name_findings(session.name)]
    status, tasks = session.status, session.tasks
    if session.parts["status.json"].is_missing:
        message = "status.json is missing. Every session has one from its beginning."
        found.append(Finding("artifact-missing", message, "/status.json"))
    if status:
        found += [*_names(session, status), *_artifacts(session, status), *_gates(session, status)]
        found += [*_history(session, status)]
    if status and tasks:
        found += [*_tasks_by_state(session, status, tasks), *_counted_tasks(status, tasks)]
    if tasks:
        found += [*_context_files(tasks, missing), *_reviews(session, tasks)]
    return found


def _names(session: Session, status: SessionStatus) -> Iterator[Finding]:
    if status.session != session.name:
        message = f'status.json is of the session "{shown(status.session)}", but lies in "{shown(session.name)}".'
        yield Finding("session-mismatch", message + " Give both one name.", "/status.json/session")


def _artifacts(session: Session, status: SessionStatus) -> Iterator[Finding]:
    state = working_state(status)
    for name in files_needed(state, session.mode):
        if session.parts[name].is_missing:
            message = f"{name} is missing, and the session is in {state} already. Write it, or go back."
            yield Finding("artifact-missing", message, pointer(name))


def gate_defect(status: SessionStatus, decision_id: str) -> str:
    """Say why a gate's question does not let a session pass; empty when it does."""
    decision = status.decision(decision_id)
    if decision is None:
        return f"{decision_id} was never asked."
    if decision.status != "answered" or not decision.answer:
        return f"{decision_id} is {decision.status}, not answered."
    if passes_gate(decision_id, decision.answer):
        return ""
    wanted = {APPROVE_DESIGN: '"approved"', REVIEW_STRATEGY: '"per-batch" or "single-final"'}
    return f"{decision_id} is not answered with {wanted[decision_id]}."


def _gates(session: Session, status: SessionStatus) -> Iterator[Finding]:
    state = working_state(status)
    for decision_id, gate in GATES.items():
        is_past = is_at_least(state, gate, session.mode) and state != gate
        defect = gate_defect(status, decision_id) if is_past and status.current_state != "BLOCKED" else ""
        if defect:
            message = f"The session went past {gate} to {state}, but {defect} Ask the user first."
            yield Finding("gate-open", message, "/status.json/user_decisions")
        decision = status.decision(decision_id)
        if decision and decision.status == "cancelled" and status.current_state == gate:
            message = f"{decision_id} is cancelled, so the session cannot go on. Set it to BLOCKED."
            yield Finding("gate-cancelled", message, "/status.json/current_state")


def _history(session: Session, status: SessionStatus) -> Iterator[Finding]:
    decision = status.decision(APPROVE_DESIGN)
    answer = decision.answer if decision and decision.status == "answered" else None
    if answer and asks_changes(answer) and answer not in [entry.answer for entry in session.history]:
        message = "The user asked for changes of the design, and approve-design-history.jsonl does not say so. Add it."
        yield Finding("history-missing", message, "/status.json/user_decisions")
    if session.history and decision is None:
        message = f"The history tells of changes of the design, but {APPROVE_DESIGN} was never asked."
        yield warning("history-without-question", message, "/status.json/user_decisions")


def _tasks_by_state(session: Session, status: SessionStatus, tasks: SessionTasks) -> Iterator[Finding]:
    state = working_state(status)
    unfinished = [task.id for task in tasks.tasks if task.status != "completed"]
    begun = [task.id for task in tasks.tasks if task.status in ("in-progress", "implemented", "completed")]
    if state and begun and not is_at_least(state, "IMPLEMENT_LOOP", session.mode):
        message = f"The session is in {state}, and worked on are already: {', '.join(begun)}. Pass the gates first."
        yield warning("tasks-early", message, "/status.json/current_state")
    if state in ("INTEGRATE", "RELEASE", "DONE", "FIX_BUILD") and unfinished:
        message = f"The session is in {state}, but not completed are: {', '.join(unfinished)}."
        yield Finding("tasks-open", message, "/status.json/current_state")


def _counted_tasks(status: SessionStatus, tasks: SessionTasks) -> Iterator[Finding]:
    for name in status.retry_counts:
        if name != "meta" and tasks.task(name) is None:
            message = f'Retries are counted for "{shown(name)}", which is no task. Correct the id.'
            yield warning("task-unknown", message, pointer("status.json", "retry_counts", name))


def _reviews(session: Session, tasks: SessionTasks) -> Iterator[Finding]:
    for i, task in enumerate(tasks.tasks):
        if task.status == "completed" and (gates := open_gates(task, session.outputs)):
            message = (
                f"{task.id} is completed, but not passed are: {', '.join(gates)}. Let them review it as it is now."
            )
            yield warning("review-open", message, pointer("tasks.yaml", "tasks", i, "status"))


def _context_files(tasks: SessionTasks, missing: Collection[str]) -> Iterator[Finding]:
    for i, task in enumerate(tasks.tasks):
        for j, path in enumerate(task.context_files):
            if path in missing and is_inside(path):
                message = f'{task.id} is to be read with "{shown(path)}", which is not there. Write it or correct it.'
                yield warning("context-file-missing", message, pointer("tasks.yaml", "tasks", i, "context_files", j))


SPEC = {
    "Goals": re.compile(r"(?!non\b)(\w+ )?goals?\b"),
    "Acceptance Criteria": re.compile(r"acceptance criteria\b"),
    "Definition of Done": re.compile(r"definition of done\b|dod\b"),
}
ARCHITECTURE = {
    "Overview": re.compile(r"(\w+ )?overview\b"),
    "Modules": re.compile(r".*\b(modules?|components?)\b"),
}
REPORT = {
    "What was done": re.compile(r".*\b(done|summary|changes|implemented|delivered)\b"),
    "How to run": re.compile(r".*\b(run|usage|use)\b"),
    "How to test": re.compile(r".*\b(test|tests|testing|verify|verification)\b"),
    "Known issues": re.compile(r".*\b(issues|limitations)\b"),
}
"""Wanted section, and how its heading may read in lower case without numbering."""

Line = TypeVar("Line", DecisionHistoryEntry, OutputEntry)

_NUMBERING = re.compile(r"^[\W\d_]+")


def text_findings(raw: bytes, wanted: Mapping[str, re.Pattern[str]]) -> list[Finding]:
    """Check that a Markdown text has these sections, and something in each."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return [Finding("not-text", "The file is not UTF-8. Save it as UTF-8.")]
    return list(_section_findings(sections(text), wanted))


def _section_findings(found: list[Section], wanted: Mapping[str, re.Pattern[str]]) -> Iterator[Finding]:
    for name, heading in wanted.items():
        places = [i for i, section in enumerate(found) if heading.match(_plain(section.title))]
        if not places:
            yield Finding("section-missing", f'The section "{name}" is missing. Add a heading of that name.')
        elif not any(_says_something(found, i) for i in places):
            message = f'The section "{name}" is empty. Write what belongs there.'
            yield Finding("section-empty", message, line=found[places[0]].line)


def _plain(title: str) -> str:
    return _NUMBERING.sub("", title.lower()).replace("*", "").replace("`", "")


def _says_something(found: list[Section], position: int) -> bool:
    """Tell whether a section, or one of those below it, holds text."""
    own = found[position]
    if own.text:
        return True
    for section in found[position + 1 :]:
        if section.level <= own.level:
            return False
        if section.text:
            return True
    return False


def read_history(raw: bytes) -> tuple[list[DecisionHistoryEntry], list[Finding]]:
    """Read the lines of ``approve-design-history.jsonl``; a line that cannot be read is a finding with its number.

    A line with an error is no entry: it must not be taken for an answer of the user.
    """
    entries, found = _read_lines(raw, DecisionHistoryEntry, _history_findings)
    return [entry for entry in entries if not has_errors(_history_findings(entry))], found


def read_outputs(raw: bytes) -> tuple[list[OutputEntry], list[Finding]]:
    """Read the lines of ``outputs.jsonl``; a line that cannot be read is a finding with its number."""
    return _read_lines(raw, OutputEntry, lambda entry: moment_findings(entry.at, ""))


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
            said = "; ".join(f"{finding.path} {finding.message}".strip() for finding in broken.findings)
            found.append(Finding("history-line", f"The line is no entry of this file: {said}", line=number))
        except (ValueError, RecursionError):
            message = "The line is no JSON object; it may have been cut short by a crash, and is not read."
            found.append(replace(warning("history-torn", message), line=number))
        else:
            found += [replace(finding, line=number) for finding in check(entry)]
    return entries, found


def _history_findings(entry: DecisionHistoryEntry) -> Iterator[Finding]:
    yield from moment_findings(entry.at, "")
    if entry.decision_id != APPROVE_DESIGN or not asks_changes(entry.answer):
        message = "The history holds answers to UD-APPROVE-DESIGN that ask for changes, and nothing else."
        yield Finding("history-line", message)
