"""Applying planned changes to a session's folder: one writer at a time, all or nothing, read back afterwards.

Source: global agent contract, "ASK_USER protocol" (serialisers, read-after-write, retries) and "tasks.yaml".
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, pointer
from accord.files.store import DISK, Storage, append_once, change_file, folder_lock, sweep, write_checked
from accord.sessions.folder import FILES, OUTPUTS_FILE, STATUS_FILE, TASKS_FILE, Part, Session, read_session
from accord.sessions.plan import plan_creation, plan_output, plan_status, plan_tasks, with_operations
from accord.sessions.policy import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.files.store import Disk
    from accord.sessions.models import SessionStatus, SessionTasks
    from accord.sessions.plan import FileOperation, HistoryStep, SessionOperation, StatusStep

_NAMES = frozenset(FILES)


class SessionWriter:
    """The documents of one session: read, and changed by planned operations under the folder's lock.

    A dry run plans the same operations and applies none; later changes then start from the planned documents.
    ``operations`` are those of all changes so far. A change that a rule forbids raises BrokenContract, one that the
    disk refuses NotWritten; neither writes anything.
    """

    def __init__(self, folder: Path, clock: Clock, *, disk: Disk = DISK, is_dry_run: bool = False) -> None:
        self.folder = folder
        self.clock = clock
        self.is_dry_run = is_dry_run
        self.operations: list[SessionOperation] = []
        self._storage = Storage(clock, disk)
        self._planned: Session | None = None

    def read(self) -> Session:
        """Read the session; in a dry run as it will be after the changes planned so far."""
        return self._planned or read_session(self.folder)

    def change_status(
        self, step: StatusStep, *, role: str, reopens: bool = False, history: HistoryStep | None = None
    ) -> SessionStatus:
        """Change ``status.json`` and return it. ``history`` returns a line to append to the design history first."""

        def plan(session: Session) -> list[FileOperation]:
            now = self.clock.now()
            return plan_status(session, step, role=role, now=now, reopens=reopens, history=history)

        status: SessionStatus = self._change(STATUS_FILE, plan)
        return status

    def change_tasks(self, wanted: Mapping[str, str], *, role: str) -> SessionTasks:
        """Change the status of tasks in ``tasks.yaml``, by their ids, and return it."""
        tasks: SessionTasks = self._change(TASKS_FILE, lambda session: plan_tasks(session, wanted, role=role))
        return tasks

    def append_output(self, entry: Mapping[str, Any], *, role: str) -> None:
        """Append an agent's output, without its time, to ``outputs.jsonl``."""
        if self.is_dry_run:
            self._remember(self.read(), plan_output(self.read(), entry, role=role, now=self.clock.now()))
            return
        with self._locked():
            operations = plan_output(read_session(self.folder), entry, role=role, now=self.clock.now())
            for operation in operations:
                append_once(self.folder / OUTPUTS_FILE, operation.content, self._storage)
        self.operations += operations

    def create(self, value: Mapping[str, Any], *, role: str) -> SessionStatus:
        """Write the first ``status.json``. Raises BrokenContract with ``session-exists`` when there is one already."""
        operation = plan_creation(value, role=role, now=self.clock.now())
        path = self.folder / STATUS_FILE
        if self.is_dry_run:
            self._check_is_new(path)
            self._remember(Session(self.folder, {name: Part(name) for name in FILES}), [operation])
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locked():
                self._check_is_new(path)
                write_checked(path, operation.content, self._storage)
            self.operations.append(operation)
        status: SessionStatus = Part(STATUS_FILE, operation.content).model
        return status

    def _check_is_new(self, path: Path) -> None:
        if path.exists():
            message = f"{path} already exists."
            hint = "Choose another name, or continue that session."
            raise refuse("The session already exists.", Finding("session-exists", message, hint=hint))

    def _change(self, name: str, plan: Callable[[Session], Sequence[FileOperation]]) -> Any:
        """Plan a change of a document for the session as it is, apply it in order, and return the document's model."""
        operations: Sequence[FileOperation] = ()

        def change(before: bytes) -> bytes:
            nonlocal operations
            operations = plan(_with_part(self.read(), Part(name, before)))
            for operation in operations if not self.is_dry_run else ():
                if operation.op == "append":
                    append_once(self.folder / operation.file, operation.content, self._storage)
            return next((one.content for one in operations if one.op == "write"), before)

        try:
            if self.is_dry_run:
                session = self.read()
                self._check_file(session.parts[name].raw is not None, name)
                written = change(session.parts[name].raw or b"")
                self._remember(session, operations)
            else:
                with self._locked():
                    path = self.folder / name
                    self._check_file(path.is_file() and not path.is_symlink(), name)
                    written = change_file(path, change, self._storage)
                self.operations += operations
        except BrokenContract as broken:
            raise BrokenContract(broken.message, findings=_in_file(name, broken), hint=broken.hint) from None
        return Part(name, written).model

    def _check_file(self, is_file: bool, name: str) -> None:
        if not is_file:
            message = f"{self.folder / name} is missing or not a regular file."
            hint = "Restore it."
            raise refuse(f"{name} cannot be changed.", Finding("artifact-missing", message, hint=hint))

    def _remember(self, session: Session, operations: Sequence[FileOperation]) -> None:
        self.operations += operations
        self._planned = with_operations(session, operations)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self.folder.is_dir():
            raise WrongUsage(f"`{self.folder}` is not a directory.", hint="Name a session below .agents-work.")
        with folder_lock(self.folder, self._storage):
            sweep(self.folder, _NAMES)
            yield


def _with_part(session: Session, part: Part) -> Session:
    """Return the session with this part. Raises BrokenContract when the part does not have its shape."""
    if part.model is None:
        message = f"{part.name} cannot be changed while it is broken."
        raise BrokenContract(message, findings=part.findings, hint=part.problem)
    return replace(session, parts={**session.parts, part.name: part})


def _in_file(name: str, broken: BrokenContract) -> list[Finding]:
    """Point into the session's folder where a finding has a line, which is one of this file."""
    return [replace(one, path=f"{pointer(name)}{one.path}") if one.line else one for one in broken.findings]
