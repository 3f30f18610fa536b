"""A session's folder, read whole: every document with what was found in it, and what they say to each other.

Source: global agent contract, "Required repository artifacts (global)". Reading never fails for what is in the folder:
what is missing or broken is a finding of its file.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from accord.core.documents import MAX_BYTES
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, Severity
from accord.core.kinds import KINDS
from accord.sessions.folder_rules import (
    ARCHITECTURE,
    REPORT,
    SPEC,
    folder_findings,
    read_history,
    read_outputs,
    text_findings,
)
from accord.sessions.policy import refuse
from accord.sessions.rules import is_inside
from accord.sessions.stages import working_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from accord.sessions.models import (
        Acceptance,
        DecisionHistoryEntry,
        Mode,
        OutputEntry,
        SessionStatus,
        SessionTask,
        SessionTasks,
    )

STATUS_FILE = "status.json"
TASKS_FILE = "tasks.yaml"
ACCEPTANCE_FILE = "acceptance.json"
SPEC_FILE = "spec.md"
ARCHITECTURE_FILE = "architecture.md"
REPORT_FILE = "report.md"
HISTORY_FILE = "approve-design-history.jsonl"
OUTPUTS_FILE = "outputs.jsonl"

_DOCUMENTS = {
    STATUS_FILE: KINDS["session-status"],
    TASKS_FILE: KINDS["session-tasks"],
    ACCEPTANCE_FILE: KINDS["session-acceptance"],
}
_TEXTS = {SPEC_FILE: SPEC, ARCHITECTURE_FILE: ARCHITECTURE, REPORT_FILE: REPORT}
_LINES = {HISTORY_FILE: ("session-history", read_history), OUTPUTS_FILE: ("session-outputs", read_outputs)}
FILES: tuple[str, ...] = (*_DOCUMENTS, *_TEXTS, *_LINES)


@dataclass(frozen=True)
class Part:
    """One file of a session: its bytes as they were read, None when it is not there, and what they say.

    ``unreadable`` says why a file that is there could not be opened. All else is found out when somebody asks.
    """

    name: str
    raw: bytes | None = None
    unreadable: str = ""

    @property
    def kind(self) -> str:
        """What ``accord check`` calls such a file."""
        if self.name in _DOCUMENTS:
            return _DOCUMENTS[self.name].name
        return _LINES[self.name][0] if self.name in _LINES else "session-text"

    @property
    def value(self) -> Any:
        """The document as it was read, with every key; None for texts, and where it is missing or broken."""
        return self._read[0]

    @property
    def model(self) -> Any:
        """The document as its model, None where the shape is wrong; of a file of lines its entries."""
        return self._read[1]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in the file by itself."""
        return tuple(self._read[2])

    @property
    def is_missing(self) -> bool:
        """Whether nothing is there."""
        return self.raw is None and not self.unreadable

    @property
    def defect(self) -> str:
        """Why the file cannot be relied on; empty when it can."""
        if self.is_missing:
            return f"{self.name} is missing."
        errors = [finding for finding in self.findings if finding.severity is Severity.ERROR]
        return f"{self.name}{errors[0].path and ' ' + errors[0].path}: {errors[0].message}" if errors else ""

    @property
    def _read(self) -> tuple[Any, Any, Sequence[Finding]]:
        if self.raw is None:
            return None, None, [Finding("file-unreadable", self.unreadable)] if self.unreadable else []
        return _parsed(self.name, self.raw)


@lru_cache(maxsize=2 * len(FILES))
def _parsed(name: str, raw: bytes) -> tuple[Any, Any, Sequence[Finding]]:
    """Return value, model and findings of a file; one change looks at the same bytes many times."""
    if name in _TEXTS:
        return None, None, text_findings(raw, _TEXTS[name])
    if name in _LINES:
        return None, *_LINES[name][1](raw)
    try:
        document = _DOCUMENTS[name].read(raw)
    except BrokenContract as broken:
        return None, None, broken.findings
    return document.value, *_DOCUMENTS[name].read_model(document)


@dataclass(frozen=True)
class Session:
    """All that a session's folder says: every file as it was at one moment."""

    folder: Path
    parts: Mapping[str, Part]

    @property
    def name(self) -> str:
        """The session's name, which is that of its folder."""
        return self.folder.absolute().name

    @property
    def root(self) -> Path:
        """The root of the repository, below which ``.agents-work`` lies."""
        return self.folder.absolute().parent.parent

    @property
    def status(self) -> SessionStatus | None:
        """``status.json``, None where it is missing or has another shape."""
        model: SessionStatus | None = self.parts[STATUS_FILE].model
        return model

    @property
    def tasks(self) -> SessionTasks | None:
        """``tasks.yaml``, None where it is missing or has another shape."""
        model: SessionTasks | None = self.parts[TASKS_FILE].model
        return model

    def task(self, task_id: str) -> SessionTask | None:
        """Return the task with this id, None also where ``tasks.yaml`` has no shape."""
        return self.tasks.task(task_id) if self.tasks else None

    @property
    def acceptance(self) -> Acceptance | None:
        """``acceptance.json``, None where it is missing or has another shape."""
        model: Acceptance | None = self.parts[ACCEPTANCE_FILE].model
        return model

    @property
    def history(self) -> Sequence[DecisionHistoryEntry]:
        """The entries of the design gate's history, oldest first."""
        return self.parts[HISTORY_FILE].model or ()

    @property
    def outputs(self) -> Sequence[OutputEntry]:
        """What agents gave back so far, oldest first."""
        return self.parts[OUTPUTS_FILE].model or ()

    @cached_property
    def mode(self) -> Mode:
        """Whether the session is full or lean; where nothing says so, its state and its files do."""
        status = self.status
        if status and status.mode:
            return status.mode
        state = (working_state(status) or status.current_state) if status else "INTAKE"
        has_design = self.parts[ARCHITECTURE_FILE].raw is not None or bool(status and status.has_gates)
        is_before_tasks = state in ("INTAKE", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY", "RELEASE")
        return "full" if state != "INTAKE_LEAN" and (has_design or is_before_tasks) else "lean"

    def defect(self, name: str) -> str:
        """Why a file cannot be relied on; empty when it can."""
        return self.parts[name].defect


def status_of(session: Session) -> SessionStatus:
    """Return a session's status. Raises BrokenContract where it cannot be read."""
    if session.status is None:
        raise refuse("The session cannot be read.", list(session.parts[STATUS_FILE].findings))
    return session.status


def status_value(session: Session) -> dict[str, Any]:
    """Return a copy of ``status.json`` with every key that it has, to be changed and given back."""
    value: dict[str, Any] = copy.deepcopy(dict(session.parts[STATUS_FILE].value))
    return value


def read_session(folder: Path) -> Session:
    """Read a session's folder. Raises WrongUsage when there is no such folder."""
    if not folder.is_dir():
        raise WrongUsage(f"{folder} is no folder.", hint="Name the folder of a session, below .agents-work.")
    return Session(folder, {name: read_part(folder, name) for name in FILES})


def read_part(folder: Path, name: str) -> Part:
    """Read one file of a session."""
    try:
        return Part(name, _read_file(folder / name))
    except OSError as error:
        return Part(name, unreadable=f"The file cannot be read: {error.strerror or error}. Put a plain file there.")


def _read_file(path: Path) -> bytes | None:
    """Return a plain file's bytes, None when nothing is there. Raises OSError for anything else, links included."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OSError("it is a link, a folder or a device")
    if not path.exists():
        return None
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def missing_files(session: Session, paths: Iterable[str]) -> frozenset[str]:
    """Look which of these context files no agent can read; ``<session>`` stands for the session's name.

    They lie below the repository's root. Nobody is sent to read what a link leads to outside of it.
    """
    root = session.root.resolve()

    def is_there(path: str) -> bool:
        place = (root / path.replace("<session>", session.name).split("#", 1)[0]).resolve()
        return place.exists() and place.is_relative_to(root)

    return frozenset(path for path in paths if not is_inside(path) or not is_there(path))


def is_session(folder: Path) -> bool:
    """Tell whether a folder looks like that of a session."""
    return (folder / STATUS_FILE).is_file() or folder.absolute().parent.name == ".agents-work"


def check_session(folder: Path) -> list[tuple[Path, str, list[Finding]]]:
    """Check a session's folder: what concerns several files first, then every file that is there."""
    session = read_session(folder)
    context = [path for task in session.tasks.tasks for path in task.context_files] if session.tasks else []
    parts = [part for part in session.parts.values() if not part.is_missing]
    return [
        (folder, "session", folder_findings(session, missing_files(session, context))),
        *((folder / part.name, part.kind, list(part.findings)) for part in parts),
    ]
