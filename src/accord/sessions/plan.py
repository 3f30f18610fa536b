"""From a session as it was read to the operations of a change; a forbidden one raises BrokenContract. Pure.

Source: global agent contract, "Task status lifecycle", "status.json" and "ASK_USER protocol" (serialisers).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from accord.core.clock import timestamp
from accord.core.documents import write_json
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, finding_of, has_errors, pointer
from accord.core.frozen import Frozen
from accord.files.yaml import with_scalars
from accord.sessions.decision_rules import is_before
from accord.sessions.folder import OUTPUTS_FILE, STATUS_FILE, TASKS_FILE, Part, Session, status_of, status_value
from accord.sessions.folder_rules import folder_findings
from accord.sessions.machine import IMPLEMENTATION, INTEGRATION
from accord.sessions.models import REVIEWS, OutputEntry
from accord.sessions.moves import (
    check_files,
    check_fixes,
    check_state,
    check_task_move,
    done_finding,
    entered_fixes,
    waiver_forbidden,
    with_fixes,
)
from accord.sessions.policy import REPORTERS, forbidden_status, refuse
from accord.sessions.reviews import DISPATCHED, FIXERS, asks_again

SessionPlan = Callable[["Session"], "Sequence[FileOperation]"]
StatusStep = Callable[["Session"], Mapping[str, Any]]
"""From a session to the whole new ``status.json``. Pure; begin with ``folder.status_value``."""

_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")


class FileOperation(Frozen):
    """One write to a file, whole or one line to append; ``changed`` lists the keys or tasks that change."""

    op: Literal["write", "append"]
    file: str
    content: bytes
    changed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return operation, file, and the keys or tasks that change."""
        return {"op": self.op, "target": self.file, "changed": list(self.changed)}


def with_operations(session: Session, operations: Sequence[FileOperation]) -> Session:
    """Return the session as it will be once these operations are applied."""
    parts = dict(session.parts)
    for operation in operations:
        content, before = operation.content, parts[operation.file].raw or b""
        if operation.op == "append":
            ended = before if not before or before.endswith(b"\n") else before + b"\n"
            content = before if content in before.split(b"\n") else ended + content + b"\n"
        parts[operation.file] = Part(operation.file, content)
    return replace(session, parts=parts)


def plan_status(
    session: Session, step: StatusStep, *, role: str, now: datetime, reopens: bool = False
) -> list[FileOperation]:
    """Plan a change of ``status.json``; none where nothing changes."""
    if not reopens:
        _check_writable(session)
    before = _usable(session, STATUS_FILE)
    value, current = dict(step(session)), before.value
    if value == current:
        return []
    value["last_update"] = timestamp(now)
    if findings := forbidden_status(role, status_value(session), value):
        raise refuse(f"{role} must not change this part of {STATUS_FILE}.", findings)
    keys = [key for key in value if key != "last_update" and value[key] != current.get(key)]
    keys += [key for key in current if key not in value]
    return [write_status(value, before.raw or b"", keys)]


def write_status(value: Mapping[str, Any], before: bytes, changed: Sequence[str]) -> FileOperation:
    """Plan the write of ``status.json``, with the layout of the text before."""
    return _write(STATUS_FILE, _encode_like(value, before), changed)


def plan_task(
    session: Session, name: str, target: str, *, role: str, now: datetime, waiver: str = ""
) -> list[FileOperation]:
    """Plan the new status of a task; every other byte of ``tasks.yaml`` stays.

    A ``waiver`` is why it is completed without its reviews; it is recorded with the reviews that it replaces.
    """
    _check_writable(session)
    _usable(session, TASKS_FILE)
    if found := check_task_move(session, name, target, role, waives=bool(waiver)):
        raise refuse("The task cannot be moved.", found)
    task = session.task(name)
    waived = session.record.open_gates(task.id) if task and waiver and target == "completed" else ()
    is_work = role == "Coder" and task is not None and task.status != target and target in _WORK_RECORDS
    if is_work and (lacks := check_files(session, role, name) or check_fixes(session, role, name)):
        raise refuse("The task cannot be moved.", lacks)
    work = plan_work(session, name, target, now=now, is_new=True) if is_work else []
    return [*write_tasks(session, {name: target}), *work, *_plan_waiver(session, name, waived, waiver, now)]


_WORK_RECORDS = {"in-progress": (DISPATCHED, "The Coder works on it."), "implemented": ("OK", "The Coder is done.")}


def plan_work(
    session: Session, task_id: str, target: str, *, now: datetime, is_new: bool = False
) -> list[FileOperation]:
    """Plan the record that the Coder began or ended work on a task: reviews from before it count for nothing."""
    return plan_entry(session, entry_of(now, task_id, "Coder", *_WORK_RECORDS[target]), now=now, is_new=is_new)


def plan_meta_waiver(session: Session, reason: str, *, role: str, now: datetime) -> list[FileOperation]:
    """Plan the record that the final review, and outputs on ``meta`` that are not OK, are waived."""
    if role != "Orchestrator":
        raise refuse("Nothing is waived.", waiver_forbidden(role))
    if found := check_state(session, (*IMPLEMENTATION, *INTEGRATION), "reviews are waived"):
        raise refuse("Nothing is waived.", found)
    last = ("Reviewer", "Integrator") if status_of(session).current_state in INTEGRATION else ("Reviewer",)
    record, judges = session.record, (*REVIEWS, *REPORTERS)
    held = (role for role in record.held_agents if role in judges)
    waived = tuple(dict.fromkeys((*held, *(role for role in last if role not in record.passed_meta))))
    return _plan_waiver(session, "meta", waived, reason, now)


def _plan_waiver(
    session: Session, task_id: str, reviews: Sequence[str], reason: str, now: datetime
) -> list[FileOperation]:
    if not reviews:
        return []
    waiver = entry_of(now, task_id, "Orchestrator", "OK", reason, waived_reviews=list(reviews))
    return plan_entry(session, waiver, now=now, is_new=True)


def entry_of(now: datetime, task_id: str, agent: str, status: str, summary: str, **gates: Any) -> OutputEntry:
    """Return the record of an output; ``gates`` are its other parts."""
    head = {"at": timestamp(now), "task_id": task_id, "agent": agent, "status": status, "summary": summary}
    return OutputEntry.model_validate({**head, "security_concerns": 0, **gates})


def write_tasks(session: Session, wanted: Mapping[str, str]) -> list[FileOperation]:
    """Plan the write of these statuses of tasks, without asking whether they may be set."""
    tasks = session.plan
    moved = {i: wanted[task.id] for i, task in enumerate(tasks) if wanted.get(task.id, task.status) != task.status}
    if not moved:
        return []
    statuses = {pointer("tasks", i, "status"): status for i, status in moved.items()}
    try:
        after = with_scalars(session.parts[TASKS_FILE].raw or b"", statuses)
    except BrokenContract as broken:
        raise _in_file(TASKS_FILE, broken.message, broken.findings, broken.hint) from None
    return [_write(TASKS_FILE, after, [f"{tasks[i].id}: {status}" for i, status in moved.items()])]


def plan_entry(session: Session, entry: OutputEntry, *, now: datetime, is_new: bool = False) -> list[FileOperation]:
    """Plan the line of ``outputs.jsonl``; none where it repeats one and is not known to be new."""
    _check_writable(session)
    if not is_new and repeated_output(session, entry):
        return []
    at = now
    while (dated := entry.model_copy(update={"at": timestamp(at)})) in session.outputs:
        at += timedelta(seconds=1)  # timestamps have whole seconds, and no two lines may be the same
    line = plan_line(session, OUTPUTS_FILE, dated.model_dump())
    if not (entered := entered_fixes(session, entry.agent, entry.task_id)):
        return [line]
    role = "Orchestrator"
    return [*plan_status(session, lambda one: with_fixes(one, status_value(one), entered), role=role, now=now), line]


def repeated_output(session: Session, entry: OutputEntry) -> OutputEntry | None:
    """Return the newest output of an agent for a task, if another one says the same and the agent was not asked again.

    A later output asks for it, or a fix loop or a correction of the design that began since.
    """
    task, role, status = entry.task_id, entry.agent, session.status
    entered = status.fix_entries.get(task, {}).values() if status and role in FIXERS else ()
    sent = status.last_correction if status else None
    since = (sent.at or "") if sent and sent.agent == role else ""
    for i, one in reversed([*enumerate(session.outputs)]):
        if (one.agent, one.task_id) == (role, task):
            is_asked = is_before(one.at, since) or any(fix.outputs > i for fix in entered)
            is_alike = one.model_copy(update={"at": entry.at}) == entry
            return one if is_alike and not is_asked else None
        if (task == "meta" or one.task_id in (task, "meta")) and asks_again(one, entry):
            return None
    return None


def plan_line(session: Session, name: str, entry: Mapping[str, Any]) -> FileOperation:
    """Plan one more line of a file that only grows."""
    line = _encode(json.dumps(dict(entry), ensure_ascii=False, allow_nan=False))
    _write(name, line + b"\n", ())
    if session.parts[name].unreadable:
        raise refuse(f"{name} cannot be written.", finding_of("file-unreadable", session.parts[name].unreadable))
    return FileOperation("append", name, line)


def check_operations(session: Session, operations: Sequence[FileOperation]) -> Sequence[FileOperation]:
    """Return the operations. Raises BrokenContract when they break a rule that the session does not break before."""
    if not operations:
        return operations
    before, after = (
        [found for found in folder_findings(one) if has_errors([found])]
        for one in (session, with_operations(session, operations))
    )
    counts = (Counter((found.code, found.path) for found in errors) for errors in (after, before))
    new = next(counts) - next(counts)
    if findings := [found for found in after if (found.code, found.path) in new]:
        raise refuse("The session would break its contract, so nothing was written.", findings)
    return operations


def _check_writable(session: Session) -> None:
    if session.status and session.status.current_state == "DONE":
        raise refuse("The session is done.", done_finding(session))


def _usable(session: Session, name: str) -> Part:
    part = session.parts[name]
    if part.raw is None:
        raise refuse(f"{name} cannot be changed.", session.absence_of(name))
    if part.model is None:
        raise _in_file(name, f"{name} cannot be changed while it is broken.", part.findings, part.problem)
    return part


def _write(name: str, content: bytes, changed: Sequence[str]) -> FileOperation:
    part = Part(name, content)
    if has_errors(part.findings):
        message = f"{name} would break its contract, so nothing was written."
        raise _in_file(name, message, part.findings, part.problem)
    return FileOperation("write", name, content, tuple(changed))


def _in_file(name: str, message: str, findings: Sequence[Finding], hint: str) -> BrokenContract:
    """Return an error about a file; a finding that has a line in it points into the session's folder."""
    found = [replace(one, path=f"{pointer(name)}{one.path}") if one.line else one for one in findings]
    return BrokenContract(message, findings=found, hint=hint)


def _encode_like(value: Mapping[str, Any], before: bytes) -> bytes:
    """Return JSON with the indentation, line endings and last line break of the text before."""
    old = before.decode("utf-8-sig")
    indent = _INDENT.search(old)
    try:
        text = write_json(value, indent=indent.group(1) if indent else 2, allow_nan=False)
    except ValueError:
        finding = Finding("not-json", "A number is too large to be written back.", hint="Write it as a string.")
        raise refuse("The document cannot be written.", finding) from None
    text = text + "\n" if old.endswith("\n") or not old else text
    return _encode(text.replace("\n", "\r\n") if "\r\n" in old else text)


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        hint = "Set the terminal to UTF-8 and enter it again."
        finding = Finding("not-text", "The text is not valid UTF-8.", hint=hint)
        raise refuse("The document cannot be written.", finding) from None
