"""From a session as it was read to the operations of a change. Pure; a forbidden change raises BrokenContract.

Source: global agent contract, "Task status lifecycle", "status.json" and "ASK_USER protocol" (serialisers).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from accord.core.clock import timestamp
from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, finding_of, has_errors, pointer
from accord.core.suggest import did_you_mean
from accord.files.yaml import with_scalars
from accord.sessions.decision_rules import check_gate
from accord.sessions.folder import HISTORY_FILE, OUTPUTS_FILE, STATUS_FILE, TASKS_FILE, Part, status_of, status_value
from accord.sessions.machine import MACHINES, TASK, SessionFacts, TaskFacts, open_gates, return_state
from accord.sessions.models import GATES, LOOPS, ROLES, STATES
from accord.sessions.policy import CREATORS, forbidden_status, refuse, role_unknown, task_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from accord.sessions.folder import Session
    from accord.sessions.models import OutputEntry

Value = Mapping[str, Any]

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
    session: Session, step: StatusStep, *, role: str, now: datetime, reopens: bool, history: HistoryStep | None
) -> list[FileOperation]:
    """Plan a change of ``status.json``, after the line of the history that goes with it; none where nothing changes."""
    if not reopens:
        _check_writable(session)
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
        raise refuse("The role may not create a session.", _not_by(role, STATUS_FILE, CREATORS))
    data = _encode_like({**value, "last_update": timestamp(now)}, b"")
    _check_document(STATUS_FILE, data)
    return FileOperation("write", STATUS_FILE, data, tuple(value))


def plan_tasks(session: Session, wanted: Mapping[str, str], *, role: str) -> list[FileOperation]:
    """Plan new statuses of tasks, by their ids; every other byte of ``tasks.yaml`` stays."""
    _check_writable(session)
    if findings := list(_refused_tasks(session, wanted, role)):
        raise refuse("The task cannot be moved.", findings)
    tasks = session.tasks.tasks if session.tasks else []
    moved = {i: wanted[task.id] for i, task in enumerate(tasks) if wanted.get(task.id, task.status) != task.status}
    if not moved:
        return []
    before = session.parts[TASKS_FILE].raw or b""
    after = with_scalars(before, {pointer("tasks", i, "status"): status for i, status in moved.items()})
    _check_document(TASKS_FILE, after)
    return [FileOperation("write", TASKS_FILE, after, tuple(f"{tasks[i].id}: {moved[i]}" for i in moved))]


def plan_output(session: Session, entry: Value, *, role: str, now: datetime) -> list[FileOperation]:
    """Plan the line of ``outputs.jsonl``; none where it repeats the last one on its task, or on ``meta``."""
    if role != "Orchestrator":
        raise refuse(f"{role} must not write {OUTPUTS_FILE}.", _not_by(role, OUTPUTS_FILE, frozenset({"Orchestrator"})))
    _check_writable(session)
    earlier = [one for one in session.outputs if _is_about(one, entry["task_id"])]
    alike = [one.at for one in earlier if one.model_dump(exclude={"at"}) == entry]
    if earlier and earlier[-1].model_dump(exclude={"at"}) == entry:
        return []
    at = now
    while timestamp(at) in alike:  # timestamps have whole seconds, and no two lines may be the same
        at += timedelta(seconds=1)
    return [plan_line(session, OUTPUTS_FILE, {"at": timestamp(at), **entry})]


def plan_line(session: Session, name: str, entry: Value) -> FileOperation:
    """Plan one more line of a file that only grows."""
    line = _encoded(json.dumps(dict(entry), ensure_ascii=False, allow_nan=False))
    _check_document(name, line + b"\n")
    if session.parts[name].unreadable:
        raise refuse(f"{name} cannot be written.", finding_of("file-unreadable", session.parts[name].unreadable))
    return FileOperation("append", name, line)


def _is_about(output: OutputEntry, task_id: str) -> bool:
    return task_id == "meta" or output.task_id in (task_id, "meta")


def _check_writable(session: Session) -> None:
    if session.status and session.status.current_state == "DONE":
        message = "The session is done and read-only."
        hint = "Reopen it with `accord session reopen`."
        raise refuse("The session is done.", Finding("session-done", message, hint=hint))


def _check_document(name: str, raw: bytes) -> None:
    """Raise BrokenContract when a document that is about to be written has an error."""
    part = Part(name, raw)
    if has_errors(part.findings):
        message = f"{name} would break its contract, so nothing was written."
        raise BrokenContract(message, findings=part.findings, hint=part.problem)


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
    return _encoded(text.replace("\n", "\r\n") if "\r\n" in old else text)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        message = "The text is not valid UTF-8."
        hint = "Set the terminal to UTF-8 and enter it again."
        raise refuse("The document cannot be written.", Finding("not-text", message, hint=hint)) from None


def _not_by(role: str, name: str, owners: frozenset[str]) -> Finding:
    if role not in ROLES:
        return role_unknown(role)
    names = sorted(owners)
    hint = f"Pass `--role {names[0]}` if you act for it."
    return Finding("role-forbidden", f"Only {' or '.join(names)} writes {name}, not {role}.", hint=hint)


def facts_of(session: Session, *, task: str = "", reopens: bool = False) -> SessionFacts:
    """Gather the facts for a move of a session; ``task`` is the one that a fix loop is for."""
    status = status_of(session)
    tasks = session.tasks.tasks if session.tasks else []
    return SessionFacts(
        problems={name: part.problem for name, part in session.parts.items()},
        gates={decision_id: reason for decision_id in GATES if (reason := check_gate(status, decision_id))},
        pending={decision.decision_id: decision.state_context for decision in status.pending},
        unfinished=tuple(item.id for item in tasks if item.status != "completed"),
        ci_result=status.last_ci_result,
        returns_to=return_state(status),
        blocked_from=status.blocked_from or "",
        task=task,
        retries={loop: status.retries(task, loop) for loop in LOOPS},
        reopens=reopens,
    )


def status_in(
    session: Session, target: str, *, task: str = "", blocker: str = "", reopens: bool = False
) -> dict[str, Any]:
    """Return ``status.json`` after a move to a state; unchanged when the session is there already.

    ``task`` is the one that a fix loop is for and counted on; ``blocker`` is why the session is blocked. Raises
    BrokenContract with ``illegal-move`` when the machine forbids the move.
    """
    value = status_value(session)
    source = str(value["current_state"])
    if source == target and target not in LOOPS:
        return {**value, "blocker": blocker} if target == "BLOCKED" and blocker else value
    if target not in STATES:
        message = f"Unknown state `{target}`."
        hint = did_you_mean(target, STATES) or "Use one of " + ", ".join(STATES) + "."
        raise refuse("The state is unknown.", Finding("illegal-move", message, hint=hint))
    if target in LOOPS and task not in ("", "meta") and session.task(task) is None:
        raise refuse("The task is unknown.", task_unknown(session, task))
    if reason := MACHINES[session.mode].refusal(source, target, facts_of(session, task=task, reopens=reopens)):
        raise refuse(f"The session stays in {source}.", finding_of("illegal-move", reason, "/current_state"))
    value["current_state"] = target
    if source == "BLOCKED":
        value.pop("blocked_from", None)
        value.pop("blocker", None)
    if target == "BLOCKED":
        value["blocked_from"] = source
        if blocker:
            value["blocker"] = blocker
    if source == "INTAKE_LEAN":
        value.setdefault("mode", "lean")
    if target in LOOPS and source not in ("ASK_USER", "BLOCKED"):
        counts = value["retry_counts"].setdefault(task, {})
        counts[target] = counts.get(target, 0) + 1
    return value


def reopened_status(session: Session, *, now: datetime) -> dict[str, Any]:
    """Return ``status.json`` of a session that was done, back in IMPLEMENT_LOOP, where it may be already."""
    state = str(status_value(session)["current_state"])
    if state not in ("DONE", "IMPLEMENT_LOOP"):
        message = f"Only a session in DONE can be reopened. This one is in {state}."
        hint = "Continue with it."
        raise refuse("The session is not done.", Finding("illegal-move", message, "/current_state", hint=hint))
    value = status_in(session, "IMPLEMENT_LOOP", reopens=True)
    return {**value, "reopened_at": timestamp(now)} if state == "DONE" else value


def _refused_tasks(session: Session, wanted: Mapping[str, str], role: str) -> Iterator[Finding]:
    """Yield why the lifecycle, the role or a missing review forbids these moves of tasks."""
    if role not in ROLES:
        yield role_unknown(role)
        return
    for name, target in wanted.items():
        task = session.task(name)
        if task is None or session.tasks is None:
            yield task_unknown(session, name)
        elif target not in TASK.states:
            hint = did_you_mean(target, TASK.states) or f"Use one of {', '.join(TASK.states)}."
            yield Finding("illegal-move", f"{name}: Unknown status `{short_name(target)}`.", hint=hint)
        elif target != task.status:
            facts = TaskFacts(role, session.tasks.waits_for(task), open_gates(task, session.outputs))
            outputs = session.parts[OUTPUTS_FILE]
            if reason := TASK.refusal(task.status, target, facts):
                yield finding_of("illegal-move", f"{name}: {reason}")
            elif target == "completed" and not outputs.is_missing and outputs.problem:
                message = f"{name}: The reviews cannot be read, so it is unknown which passed. {outputs.problem}"
                yield finding_of("illegal-move", message)
