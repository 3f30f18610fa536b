"""Applying planned changes to a session's folder: one writer at a time, all or nothing, read back afterwards.

Source: global agent contract, "ASK_USER protocol" (serialisers, read-after-write, retries) and "tasks.yaml".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accord.core.clock import Clock, attempts, timestamp
from accord.core.errors import Stopped, WrongUsage
from accord.core.findings import Finding
from accord.files.store import DISK, PAUSES, Disk, NotWritten, Storage, append_once, folder_lock, write_checked
from accord.sessions.folder import FILES, STATUS_FILE, Part, Session, read_session, status_of
from accord.sessions.models import SessionStatus
from accord.sessions.plan import (
    FileOperation,
    SessionPlan,
    StatusStep,
    check_operations,
    plan_status,
    with_operations,
    write_status,
)
from accord.sessions.policy import refuse


class SessionWriter:
    """The documents of one session: read, and changed by planned operations under the folder's lock.

    A dry run plans the same operations and applies none; later changes then start from the planned documents.
    ``operations`` are those of all changes so far, as a dry run prints them. A change that a rule forbids raises
    BrokenContract, one that the disk refuses NotWritten; neither writes anything.
    """

    def __init__(self, folder: Path, clock: Clock, *, disk: Disk = DISK, is_dry_run: bool = False) -> None:
        self.folder = folder
        self.clock = clock
        self.is_dry_run = is_dry_run
        self.operations: list[Mapping[str, Any]] = []
        self._storage = Storage(clock, disk)
        self._planned: Session | None = None

    def read(self) -> Session:
        """Read the session; in a dry run as it will be after the changes planned so far."""
        return self._planned or read_session(self.folder)

    def change(self, plan: SessionPlan) -> Session:
        """Plan a change for the session as it is, apply it in order, and return the session after it."""
        if self.is_dry_run:
            session = self.read()
            self._planned = self._with_recorded(session, check_operations(session, plan(session)))
            return self._planned
        with self._lock():
            for _ in attempts(self.clock, PAUSES):
                session = read_session(self.folder)
                operations = check_operations(session, plan(session))
                if self._is_unchanged(session, operations):
                    for operation in operations:
                        apply = append_once if operation.op == "append" else write_checked
                        try:
                            apply(self.folder / operation.file, operation.content, self._storage)
                        except NotWritten as failed:
                            raise NotWritten(f"BLOCKED: {failed.message}", hint=failed.hint) from failed
                    return self._with_recorded(session, operations)
        raise Stopped(
            f"Another program wrote in {self.folder} each time accord was about to write there.",
            hint="Let only one program write it, or run the same command again.",
        )

    def _is_unchanged(self, session: Session, operations: Sequence[FileOperation]) -> bool:
        """Return whether the files to be written are still those that were read, by programs that take no lock."""
        known = {one.file: session.parts[one.file].raw for one in operations if one.op == "write"}
        return all(raw is None or self._storage.disk.read(self.folder / name) == raw for name, raw in known.items())

    def _with_recorded(self, session: Session, operations: Sequence[FileOperation]) -> Session:
        self.operations += [operation.as_json() for operation in operations]
        return with_operations(session, operations)

    def change_status(self, step: StatusStep, *, role: str, reopens: bool = False) -> SessionStatus:
        """Change ``status.json``, and return it."""
        now = self.clock.now()
        return status_of(self.change(lambda session: plan_status(session, step, role=role, now=now, reopens=reopens)))

    def create(self, value: Mapping[str, Any]) -> None:
        """Write the first ``status.json``. Raises BrokenContract with ``session-exists`` when there is one already."""
        operation = write_status({**value, "last_update": timestamp(self.clock.now())}, b"", list(value))
        if not self.is_dry_run:
            self.folder.mkdir(parents=True, exist_ok=True)
        elif not self.folder.is_dir():
            self._planned = Session(self.folder, {name: Part(name) for name in FILES})

        def plan(session: Session) -> list[FileOperation]:
            names = [name for name, part in session.parts.items() if not part.is_missing]
            if not names:
                return [operation]
            message = f"{self.folder / names[0]} already exists."
            way = "continue that session" if STATUS_FILE in names else f"restore its {STATUS_FILE}"
            found = Finding("session-exists", message, hint=f"Choose another name, or {way}.")
            raise refuse("The session already exists.", found)

        self.change(plan)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        if not self.folder.is_dir():
            raise WrongUsage(f"`{self.folder}` is not a directory.", hint="Name a session below .agents-work.")
        with folder_lock(self.folder, self._storage, *FILES):
            yield
