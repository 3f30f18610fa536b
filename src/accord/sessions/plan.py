"""From a session as it was read to the operations of a change. Pure; a forbidden change raises BrokenContract.

Source: global agent contract, "Task status lifecycle", "status.json" and "ASK_USER protocol" (serialisers).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from accord.core.clock import timestamp
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, Severity, finding_of, has_errors, pointer
from accord.files.yaml import with_scalars
from accord.sessions.folder import HISTORY_FILE, OUTPUTS_FILE, STATUS_FILE, TASKS_FILE, Part
from accord.sessions.folder_rules import folder_findings
from accord.sessions.models import ROLES, OutputEntry
from accord.sessions.moves import DONE, refused_tasks, waiver_forbidden
from accord.sessions.policy import CREATORS, forbidden_status, refuse, role_unknown
from accord.sessions.reviews import has_final_review, held_agents, open_gates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from accord.sessions.folder import Session

Value = Mapping[str, Any]

Plan = Callable[["Session"], "Sequence[FileOperation]"]
"""From a session to the operations of a change. Pure."""

StatusStep = Callable[["Session"], Value]
"""From a session to the whole new ``status.json``. Pure; begin with ``folder.status_value``."""

HistoryStep = Callable[["Session"], Value | None]
"""From a session to the line of the history that must be durable before ``status.json`` changes, if any."""

_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")


class SessionOperation:
    """One planned write of a session: to one of its files, or to the comments of its issue."""

    def as_json(self) -> dict[str, Any]:
        """Return the operation as a dry run prints it."""
        raise NotImplementedError


@dataclass(frozen=True)
class FileOperation(SessionOperation):
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
        raw = parts[operation.file].raw or b""
        content = operation.content if operation.op == "write" else _with_line(raw, operation.content)
        parts[operation.file] = Part(operation.file, content)
    return replace(session, parts=parts)


def _with_line(raw: bytes, line: bytes) -> bytes:
    return raw if line in raw.split(b"\n") else raw + (b"" if raw.endswith(b"\n") or not raw else b"\n") + line + b"\n"


def plan_status(
    session: Session,
    step: StatusStep,
    *,
    role: str,
    now: datetime,
    reopens: bool = False,
    history: HistoryStep | None = None,
) -> list[FileOperation]:
    """Plan a change of ``status.json``, after the line of the history that goes with it; none where nothing changes."""
    if not reopens:
        _check_writable(session)
    _check_usable(session, STATUS_FILE)
    value = dict(step(session))
    current = session.parts[STATUS_FILE].value
    if value == current:
        return []
    value["last_update"] = timestamp(now)
    if findings := forbidden_status(role, current, value):
        raise refuse(f"{role} must not change this part of {STATUS_FILE}.", findings)
    after = _encode_like(value, session.parts[STATUS_FILE].raw or b"")
    _check_document(STATUS_FILE, after)
    line = history(session) if history else None
    keys = tuple(key for key in value if key != "last_update" and value[key] != current.get(key))
    write = FileOperation("write", STATUS_FILE, after, keys + tuple(key for key in current if key not in value))
    return [plan_line(session, HISTORY_FILE, line), write] if line else [write]


def plan_creation(value: Value, *, role: str, now: datetime) -> FileOperation:
    """Plan the first ``status.json`` of a session."""
    if role not in CREATORS:
        raise refuse("The role may not create a session.", _role_finding(role, STATUS_FILE, CREATORS))
    data = _encode_like({**value, "last_update": timestamp(now)}, b"")
    _check_document(STATUS_FILE, data)
    return FileOperation("write", STATUS_FILE, data, tuple(value))


def plan_tasks(
    session: Session, wanted: Mapping[str, str], *, role: str, now: datetime, waiver: str = ""
) -> list[FileOperation]:
    """Plan new statuses of tasks, by their ids; every other byte of ``tasks.yaml`` stays.

    A ``waiver`` is why tasks are completed without their reviews; it is recorded with the reviews that it replaces.
    """
    _check_writable(session)
    _check_usable(session, TASKS_FILE)
    if findings := list(refused_tasks(session, wanted, role, waives=bool(waiver))):
        raise refuse("The task cannot be moved.", findings)
    waivers = _waivers(session, wanted, waiver, now) if waiver else []
    return [*write_tasks(session, wanted), *waivers]


def _waivers(session: Session, wanted: Mapping[str, str], reason: str, now: datetime) -> list[FileOperation]:
    found: list[FileOperation] = []
    for name, target in wanted.items():
        task = session.task(name)
        reviews = open_gates(task, session.outputs) if task and target == "completed" else ()
        found += plan_waiver(session, name, reviews, reason, now=now) if reviews else []
    return found


def plan_meta_waiver(session: Session, reason: str, *, role: str, now: datetime) -> list[FileOperation]:
    """Plan the record that the final review, and outputs on ``meta`` that are not OK, are waived."""
    _check_writable(session)
    if role != "Orchestrator":
        raise refuse("Nothing is waived.", waiver_forbidden(role))
    reviews = dict.fromkeys(held_agents(session.outputs))
    reviews.update({} if has_final_review(session.outputs) else {"Reviewer": None})
    return plan_waiver(session, "meta", tuple(reviews), reason, now=now) if reviews else []


def plan_waiver(
    session: Session, task_id: str, reviews: Sequence[str], reason: str, *, now: datetime
) -> list[FileOperation]:
    """Plan the record that the Orchestrator waives these reviews of a task, or of ``meta``."""
    entry = {"at": timestamp(now), "task_id": task_id, "agent": "Orchestrator", "status": "OK", "summary": reason}
    record = OutputEntry.model_validate({**entry, "security_concerns": 0, "waived_reviews": list(reviews)})
    return plan_entry(session, record, now=now)


def write_tasks(session: Session, wanted: Mapping[str, str]) -> list[FileOperation]:
    """Plan the write of these statuses of tasks, without asking whether they may be set."""
    tasks = session.tasks.tasks if session.tasks else []
    moved = {i: wanted[task.id] for i, task in enumerate(tasks) if wanted.get(task.id, task.status) != task.status}
    if not moved:
        return []
    before = session.parts[TASKS_FILE].raw or b""
    try:
        after = with_scalars(before, {pointer("tasks", i, "status"): status for i, status in moved.items()})
    except BrokenContract as broken:
        raise BrokenContract(broken.message, findings=_in_file(TASKS_FILE, broken), hint=broken.hint) from None
    _check_document(TASKS_FILE, after)
    return [FileOperation("write", TASKS_FILE, after, tuple(f"{tasks[i].id}: {moved[i]}" for i in moved))]


def plan_entry(session: Session, entry: OutputEntry, *, now: datetime) -> list[FileOperation]:
    """Plan the line of ``outputs.jsonl``; none where it repeats the last one on its task, or on ``meta``."""
    _check_writable(session)
    if is_recorded(session, entry):
        return []
    about = [one for one in session.outputs if _is_about(one, entry.task_id)]
    alike = [one.at for one in about if _without_time(one) == _without_time(entry)]
    at = now
    while timestamp(at) in alike:  # timestamps have whole seconds, and no two lines may be the same
        at += timedelta(seconds=1)
    return [plan_line(session, OUTPUTS_FILE, {**entry.model_dump(), "at": timestamp(at)})]


def is_recorded(session: Session, entry: OutputEntry) -> bool:
    """Return whether an output is the last one on its task, or on ``meta``."""
    about = [one for one in session.outputs if _is_about(one, entry.task_id)]
    return bool(about) and _without_time(about[-1]) == _without_time(entry)


def _without_time(entry: OutputEntry) -> dict[str, Any]:
    return entry.model_dump(exclude={"at"})


def plan_line(session: Session, name: str, entry: Value) -> FileOperation:
    """Plan one more line of a file that only grows."""
    line = _encode(json.dumps(dict(entry), ensure_ascii=False, allow_nan=False))
    _check_document(name, line + b"\n")
    if session.parts[name].unreadable:
        raise refuse(f"{name} cannot be written.", finding_of("file-unreadable", session.parts[name].unreadable))
    return FileOperation("append", name, line)


def _is_about(output: OutputEntry, task_id: str) -> bool:
    return task_id == "meta" or output.task_id in (task_id, "meta")


def check_operations(session: Session, operations: Sequence[FileOperation]) -> None:
    """Raise BrokenContract when the session after these operations breaks a rule that it does not break before."""

    def errors(one: Session) -> Counter[tuple[str, str]]:
        return Counter((found.code, found.path) for found in _errors(one))

    after = with_operations(session, operations)
    new = errors(after) - errors(session) if operations else Counter()
    if findings := [found for found in _errors(after) if (found.code, found.path) in new]:
        raise refuse("The session would break its contract, so nothing was written.", findings)


def _errors(session: Session) -> list[Finding]:
    return [found for found in folder_findings(session, ()) if found.severity is Severity.ERROR]


def _check_writable(session: Session) -> None:
    if session.status and session.status.current_state == "DONE":
        raise refuse("The session is done.", DONE)


def _check_usable(session: Session, name: str) -> None:
    """Raise BrokenContract when a file cannot be changed: it is missing, a link, or does not have its shape."""
    part = session.parts[name]
    if part.raw is None:
        message = f"{session.folder / name} is missing or not a regular file."
        raise refuse(f"{name} cannot be changed.", Finding("artifact-missing", message, hint="Restore it."))
    if part.model is None:
        message = f"{name} cannot be changed while it is broken."
        broken = BrokenContract(message, findings=part.findings, hint=part.problem)
        raise BrokenContract(message, findings=_in_file(name, broken), hint=part.problem)


def _in_file(name: str, broken: BrokenContract) -> list[Finding]:
    """Point into the session's folder where a finding has a line, which is one of this file."""
    return [replace(one, path=f"{pointer(name)}{one.path}") if one.line else one for one in broken.findings]


def _check_document(name: str, raw: bytes) -> None:
    """Raise BrokenContract when a document that is about to be written has an error."""
    part = Part(name, raw)
    if has_errors(part.findings):
        message = f"{name} would break its contract, so nothing was written."
        broken = BrokenContract(message, findings=part.findings, hint=part.problem)
        raise BrokenContract(message, findings=_in_file(name, broken), hint=part.problem)


def _encode_like(value: Value, before: bytes) -> bytes:
    """Return JSON with the indentation, line endings and last line break of the text before."""
    old = before.decode("utf-8-sig")
    indent = _INDENT.search(old)
    try:
        text = json.dumps(value, indent=indent.group(1) if indent else 2, ensure_ascii=False, allow_nan=False)
    except ValueError:
        message = "A number is too large to be written back."
        hint = "Write it as a string."
        raise refuse("The document cannot be written.", Finding("not-json", message, hint=hint)) from None
    text = text + "\n" if old.endswith("\n") or not old else text
    return _encode(text.replace("\n", "\r\n") if "\r\n" in old else text)


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        message = "The text is not valid UTF-8."
        hint = "Set the terminal to UTF-8 and enter it again."
        raise refuse("The document cannot be written.", Finding("not-text", message, hint=hint)) from None


def _role_finding(role: str, name: str, owners: frozenset[str]) -> Finding:
    if role not in ROLES:
        return role_unknown(role)
    names = sorted(owners)
    hint = f"Pass `--role {names[0]}` if you act for it."
    return Finding("role-forbidden", f"Only {' or '.join(names)} writes {name}, not {role}.", hint=hint)
