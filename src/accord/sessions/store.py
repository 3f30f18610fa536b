"""Changing the documents of a session: one writer at a time, all or nothing, and looked at afterwards.

Source: global agent contract, "ASK_USER protocol" (serialisers, read-after-write, retries) and "tasks.yaml".

Each change holds the lock of the session's folder, is made for what was just read, and is judged before it is written:
by the write policy, by shape and rules of the document, and by whether the session may still be written.
Raises ``BrokenContract`` where a rule forbids it, ``NotWritten`` where the disk does; nothing is written then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from accord.core.clock import timestamp
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, has_errors, pointer
from accord.files.store import DISK, Storage, append_once, change_file, locked, sweep, write_checked
from accord.files.yaml import with_scalars
from accord.sessions.folder import (
    FILES,
    HISTORY_FILE,
    OUTPUTS_FILE,
    STATUS_FILE,
    TASKS_FILE,
    Part,
    Session,
    read_session,
)
from accord.sessions.models import ROLES, SessionStatus, SessionTasks
from accord.sessions.plan import refused_tasks
from accord.sessions.policy import CREATORS, forbidden_status, refuse, role_unknown

if TYPE_CHECKING:
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.files.store import Disk
    from accord.sessions.models import OutputEntry

StatusStep = Callable[[Session], Mapping[str, Any]]
"""From a session as it is now to the whole new ``status.json``. Pure; begin with ``folder.status_value``."""

LineStep = Callable[[Session], Mapping[str, Any] | None]
"""From a session as it is now to a line that must be durable before ``status.json`` changes; None where none must."""

TasksStep = Callable[[Session], Mapping[str, str]]
"""From a session as it is now to the new status of some tasks, by their ids. Pure."""

_NAMES = frozenset(FILES)
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")


def change_status(
    folder: Path, step: StatusStep, *, role: str, clock: Clock, disk: Disk = DISK, history: LineStep | None = None
) -> SessionStatus:
    """Change ``status.json`` and return it, with ``last_update``; where nothing changes, nothing is written.

    ``history`` makes the line of ``approve-design-history.jsonl`` that goes with the change and is written before it.
    """
    return _change_status(folder, step, role, Storage(clock, disk), history=history)


def reopen(folder: Path, step: StatusStep, *, clock: Clock, disk: Disk = DISK) -> SessionStatus:
    """Change ``status.json`` of a session that is done. The Orchestrator does so, because somebody asked for it."""
    return _change_status(folder, step, "Orchestrator", Storage(clock, disk), reopens=True)


def _change_status(
    folder: Path,
    step: StatusStep,
    role: str,
    storage: Storage,
    *,
    reopens: bool = False,
    history: LineStep | None = None,
) -> SessionStatus:
    def change(before: bytes) -> bytes:
        session = _readable(folder, STATUS_FILE, before)
        if not reopens:
            _writable(session)
        value = dict(step(session))
        current = session.parts[STATUS_FILE].value
        if value == current:
            return before
        value["last_update"] = timestamp(storage.clock.now())
        if found := forbidden_status(role, current, value):
            raise refuse("The role may not write this.", found)
        after = _json(value, before)
        _judged(STATUS_FILE, after)
        if history and (entry := history(session)):
            _append(session, HISTORY_FILE, entry, storage)
        return after

    written = _change(folder, STATUS_FILE, change, storage)
    status: SessionStatus = Part(STATUS_FILE, written).model
    return status


def create_status(
    folder: Path, value: Mapping[str, Any], *, role: str, clock: Clock, disk: Disk = DISK
) -> SessionStatus:
    """Begin a session: write its first ``status.json``. Raises BrokenContract when there is one already."""
    if role not in CREATORS:
        raise refuse("The role may not begin a session.", _not_by(role, STATUS_FILE, CREATORS))
    storage = Storage(clock, disk)
    data = _json({**value, "last_update": timestamp(clock.now())}, b"")
    status: SessionStatus = _judged(STATUS_FILE, data)
    folder.mkdir(parents=True, exist_ok=True)
    with _held(folder, storage):
        if (folder / STATUS_FILE).exists():
            message = f"{folder} has a status.json already. Choose another name, or go on with that session."
            raise refuse("The session is there.", Finding("session-exists", message))
        write_checked(folder / STATUS_FILE, data, storage)
    return status


def change_tasks(
    folder: Path,
    step: TasksStep,
    *,
    role: str,
    clock: Clock,
    disk: Disk = DISK,
) -> SessionTasks:
    """Change the status of tasks in ``tasks.yaml`` and return it; every other byte of the file stays."""

    def change(before: bytes) -> bytes:
        session = _readable(folder, TASKS_FILE, before)
        _writable(session)
        wanted = dict(step(session))
        if found := list(refused_tasks(session, wanted, role)):
            raise refuse("The task may not be moved so.", found)
        tasks = session.tasks.tasks if session.tasks else []
        moved = {i: wanted[task.id] for i, task in enumerate(tasks) if wanted.get(task.id, task.status) != task.status}
        after = with_scalars(before, {pointer("tasks", i, "status"): said for i, said in moved.items()})
        _judged(TASKS_FILE, after)
        return after

    written = _change(folder, TASKS_FILE, change, Storage(clock, disk))
    tasks: SessionTasks = Part(TASKS_FILE, written).model
    return tasks


def append_output(folder: Path, entry: Mapping[str, Any], *, role: str, clock: Clock, disk: Disk = DISK) -> None:
    """Add what an agent gave back, and when, to ``outputs.jsonl``; the last word on its task is not repeated.

    What was said of the session as a whole, ``meta``, is a word on each task, and what was said of any is one on it.
    """
    if role != "Orchestrator":
        raise refuse("The role may not write this.", _not_by(role, OUTPUTS_FILE, frozenset({"Orchestrator"})))
    storage = Storage(clock, disk)
    with _held(folder, storage):
        session = read_session(folder)
        _writable(session)
        words = [one for one in session.outputs if _is_about(one, entry["task_id"])]
        alike = [one.at for one in words if one.model_dump(exclude={"at"}) == entry]
        if words and words[-1].model_dump(exclude={"at"}) == entry:
            return
        moment = clock.now()
        while timestamp(moment) in alike:  # moments are kept to the second, and no two lines are the same
            moment += timedelta(seconds=1)
        _append(session, OUTPUTS_FILE, {"at": timestamp(moment), **entry}, storage)


def _is_about(output: OutputEntry, task_id: str) -> bool:
    return task_id == "meta" or output.task_id in (task_id, "meta")


def _append(session: Session, name: str, entry: Mapping[str, Any], storage: Storage) -> None:
    """Add a line to a file that only grows, once. For who holds the lock of the session."""
    line = _encoded(json.dumps(dict(entry), ensure_ascii=False, allow_nan=False))
    _judged(name, line + b"\n")
    if said := session.parts[name].unreadable:
        raise refuse(f"{name} cannot be written.", Finding("file-unreadable", said))
    append_once(session.folder / name, line, storage)


def _change(folder: Path, name: str, change: Callable[[bytes], bytes], storage: Storage) -> bytes:
    with _held(folder, storage):
        path = folder / name
        if path.is_symlink() or not path.is_file():
            message = f"{path} is missing, or is no plain file."
            raise refuse("There is nothing to change.", Finding("artifact-missing", message))
        try:
            return change_file(path, change, storage)
        except BrokenContract as broken:
            raise BrokenContract(broken.message, findings=_in_file(name, broken), hint=broken.hint) from None


def _in_file(name: str, broken: BrokenContract) -> list[Finding]:
    """Point into the session's folder where a line is told, which is one of this file."""
    return [replace(one, path=f"{pointer(name)}{one.path}") if one.line else one for one in broken.findings]


@contextmanager
def _held(folder: Path, storage: Storage) -> Iterator[None]:
    if not folder.is_dir():
        raise WrongUsage(f"{folder} is no folder.", hint="Name the folder of a session, below .agents-work.")
    with locked(folder, storage):
        sweep(folder, _NAMES)
        yield


def _readable(folder: Path, name: str, raw: bytes) -> Session:
    """Read the session with this content of one file. Raises BrokenContract when that file has not its shape."""
    session = read_session(folder)
    part = Part(name, raw)
    if part.model is None:
        raise BrokenContract(f"{name} cannot be changed while it is broken.", findings=part.findings, hint=part.defect)
    return replace(session, parts={**session.parts, name: part})


def _writable(session: Session) -> None:
    if session.status and session.status.current_state == "DONE":
        message = "The session is done, and read only from then on. Reopen it by accord session reopen to change it."
        raise refuse("The session is done.", Finding("session-done", message))


def _judged(name: str, raw: bytes) -> Any:
    """Return the model of a document that is about to be written. Raises BrokenContract when it has an error."""
    part = Part(name, raw)
    if has_errors(part.findings):
        message = f"{name} would break its contract, so nothing was written."
        raise BrokenContract(message, findings=part.findings, hint=part.defect)
    return part.model


def _json(value: Mapping[str, Any], before: bytes) -> bytes:
    """Write JSON in the manner of the text before: its indentation, its line ends, its last line end."""
    old = before.decode("utf-8-sig")
    indent = _INDENT.search(old)
    try:
        text = json.dumps(value, indent=indent.group(1) if indent else 2, ensure_ascii=False, allow_nan=False)
    except ValueError:
        message = "A number is larger than can be written again. Write it as a string."
        raise refuse("The document cannot be written.", Finding("not-json", message)) from None
    text = text + "\n" if old.endswith("\n") or not old else text
    return _encoded(text.replace("\n", "\r\n") if "\r\n" in old else text)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        message = "A text is not UTF-8. Set the terminal to UTF-8, and write it again."
        raise refuse("The document cannot be written.", Finding("not-text", message)) from None


def _not_by(role: str, name: str, owners: frozenset[str]) -> Finding:
    if role not in ROLES:
        return role_unknown(role)
    return Finding("role-forbidden", f"{name} is written by {' or '.join(sorted(owners))}, not by {role}.")
