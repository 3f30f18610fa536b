"""A session's folder, read whole: every document with what was found in it, and what they say to each other.

Source: global agent contract, "Required repository artifacts (global)". Reading never fails for what is in the folder:
what is missing or broken is a finding of its file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from accord.kernel.documents import MAX_BYTES
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.kernel.findings import Finding, Severity
from accord.sessions.artifacts import ARCHITECTURE, REPORT, SPEC, read_history, text_findings
from accord.sessions.documents import ACCEPTANCE, STATUS, TASKS
from accord.sessions.folder_rules import folder_findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from accord.kernel.kinds import Kind
    from accord.sessions.models import Acceptance, HistoryEntry, Mode, Status, Tasks

STATUS_FILE = "status.json"
TASKS_FILE = "tasks.yaml"
ACCEPTANCE_FILE = "acceptance.json"
SPEC_FILE = "spec.md"
ARCHITECTURE_FILE = "architecture.md"
REPORT_FILE = "report.md"
HISTORY_FILE = "approve-design-history.jsonl"

_DOCUMENTS: dict[str, Kind[Any]] = {STATUS_FILE: STATUS, TASKS_FILE: TASKS, ACCEPTANCE_FILE: ACCEPTANCE}
_TEXTS = {SPEC_FILE: SPEC, ARCHITECTURE_FILE: ARCHITECTURE, REPORT_FILE: REPORT}
FILES = (*_DOCUMENTS, *_TEXTS, HISTORY_FILE)


@dataclass(frozen=True)
class Part:
    """One file of a session. ``raw`` is None when it is not there, ``model`` when its shape is wrong.

    ``value`` is the document as it was read, with every key; ``kind`` what ``accord check`` calls it.
    """

    name: str
    kind: str
    raw: bytes | None = None
    value: Any = None
    model: Any = None
    findings: tuple[Finding, ...] = ()

    @property
    def unreadable(self) -> str:
        """Why the file cannot even be opened; empty when it can, or is not there."""
        return self.findings[0].message if self.raw is None and self.findings else ""

    @property
    def defect(self) -> str:
        """Why the file cannot be relied on; empty when it can."""
        if self.raw is None and not self.findings:
            return f"{self.name} is missing."
        errors = [finding for finding in self.findings if finding.severity is Severity.ERROR]
        return f"{self.name}{errors[0].path and ' ' + errors[0].path}: {errors[0].message}" if errors else ""


@dataclass(frozen=True)
class Session:
    """All that a session's folder says. ``findings`` are those of no single file."""

    folder: Path
    parts: Mapping[str, Part]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def name(self) -> str:
        """The session's name, which is that of its folder."""
        return self.folder.absolute().name

    @property
    def root(self) -> Path:
        """The root of the repository, below which ``.agents-work`` lies."""
        return self.folder.absolute().parent.parent

    @property
    def status(self) -> Status | None:
        """``status.json``, None where it is missing or has another shape."""
        model: Status | None = self.parts[STATUS_FILE].model
        return model

    @property
    def tasks(self) -> Tasks | None:
        """``tasks.yaml``, None where it is missing or has another shape."""
        model: Tasks | None = self.parts[TASKS_FILE].model
        return model

    @property
    def acceptance(self) -> Acceptance | None:
        """``acceptance.json``, None where it is missing or has another shape."""
        model: Acceptance | None = self.parts[ACCEPTANCE_FILE].model
        return model

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """The entries of the design gate's history, oldest first."""
        return self.parts[HISTORY_FILE].model or ()

    @cached_property
    def mode(self) -> Mode:
        """Whether the session is full or lean; where nothing says so, its state and its files do."""
        status = self.status
        if status and status.mode:
            return status.mode
        state = status.current_state if status else "INTAKE"
        has_design = self.parts[ARCHITECTURE_FILE].raw is not None or bool(status and status.has_gates)
        is_before_tasks = state in ("INTAKE", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY", "RELEASE")
        return "full" if state != "INTAKE_LEAN" and (has_design or is_before_tasks) else "lean"

    def defect(self, name: str) -> str:
        """Why a file cannot be relied on; empty when it can."""
        return self.parts[name].defect


def read_session(folder: Path) -> Session:
    """Read a session's folder. Raises WrongUsage when there is no such folder."""
    if not folder.is_dir():
        raise WrongUsage(f"{folder} is no folder.", mend="Name the folder of a session, below .agents-work.")
    session = Session(folder, {name: read_part(folder, name) for name in FILES})
    return Session(folder, session.parts, tuple(folder_findings(session)))


def read_part(folder: Path, name: str) -> Part:
    """Read one file of a session and check it by itself."""
    kind = _kind_name(name)
    try:
        raw = _read_file(folder / name)
    except OSError as error:
        message = f"The file cannot be read: {error.strerror or error}. Put a plain file there."
        return Part(name, kind, findings=(Finding("file-unreadable", message),))
    return Part(name, kind) if raw is None else parse_part(name, raw)


def _kind_name(name: str) -> str:
    if name in _DOCUMENTS:
        return _DOCUMENTS[name].name
    return "session-history" if name == HISTORY_FILE else "session-text"


def _read_file(path: Path) -> bytes | None:
    """Return a plain file's bytes, None when nothing is there. Raises OSError for anything else, links included."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OSError("it is a link, a folder or a device")
    if not path.exists():
        return None
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


@lru_cache(maxsize=32)
def parse_part(name: str, raw: bytes) -> Part:
    """Check the bytes of one file of a session. What has not changed is not parsed again: leave ``value`` as it is."""
    kind = _kind_name(name)
    if name in _TEXTS:
        return Part(name, kind, raw, findings=tuple(text_findings(raw, _TEXTS[name])))
    if name == HISTORY_FILE:
        entries, found = read_history(raw)
        return Part(name, kind, raw, model=tuple(entries), findings=tuple(found))
    of_kind = _DOCUMENTS[name]
    try:
        document = of_kind.read(raw)
    except BrokenContract as broken:
        return Part(name, kind, raw, findings=tuple(broken.findings))
    model, found = of_kind.read_model(document)
    return Part(name, kind, raw, document.value, model, tuple(found))


def is_session(folder: Path) -> bool:
    """Tell whether a folder looks like that of a session."""
    return (folder / STATUS_FILE).is_file() or folder.absolute().parent.name == ".agents-work"


def check_session(folder: Path) -> list[tuple[Path, str, list[Finding]]]:
    """Check a session's folder: what concerns several files first, then every file that is there."""
    session = read_session(folder)
    parts = [part for part in session.parts.values() if part.raw is not None or part.findings]
    return [
        (folder, "session", list(session.findings)),
        *((folder / part.name, part.kind, list(part.findings)) for part in parts),
    ]
