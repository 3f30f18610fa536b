"""A session's folder, read whole: every document with its findings, and how a change treated it.

Source: global agent contract, "Required repository artifacts" and "Artifact content validation". Reading never fails
for the content of the folder: a missing or broken file is a finding.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from accord.core.clock import SystemClock
from accord.core.documents import MAX_BYTES, decode_text, read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, Severity, finding_of, has_errors, warning
from accord.core.frozen import Frozen
from accord.core.kinds import KINDS
from accord.core.shapes import read_shape
from accord.files.store import OF_ARRAY, is_of_array
from accord.git.program import Git, changed_paths
from accord.sessions.decision_rules import is_change_request, timestamp_findings, with_adopted_answer, working_state
from accord.sessions.models import (
    APPROVE_DESIGN,
    GATES,
    Acceptance,
    DecisionHistoryEntry,
    OutputEntry,
    SessionMode,
    SessionStatus,
    SessionTask,
    SessionTasks,
)
from accord.sessions.policy import WORK, refuse
from accord.sessions.reviews import ReviewRecord
from accord.sessions.rules import is_inside
from accord.text.outline import sections

TEXTS = {
    "spec.md": {
        "Goals": re.compile(r"\A(?:(?!non )\w+ ){0,2}goals?\b"),
        "Acceptance Criteria": re.compile(r"\Aacceptance criteria\b"),
        "Definition of Done": re.compile(r"\A(?:definition of done|dod)\b"),
    },
    "architecture.md": {
        "Overview": re.compile(r"\A(?:\w+ ){0,2}overview\b"),
        "Modules": re.compile(r"\b(modules?|components?)\b"),
    },
    "report.md": {
        "What was done": re.compile(r"\b(done|summary|changes|implemented|delivered)\b"),
        "How to run": re.compile(r"\b(run|usage|use)\b"),
        "How to test": re.compile(r"\b(test|tests|testing|verify|verification)\b"),
        "Known issues": re.compile(r"\b(issues|limitations)\b"),
    },
}
"""Required sections of each text, with the headings that count: their words in lower case, without numbering."""

LogEntry = TypeVar("LogEntry", DecisionHistoryEntry, OutputEntry)

_NUMBERING = re.compile(r"\A(?:[\W\d_]|(?:[IVX]+|[A-Z])(?=[.)]))+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")


def text_findings(raw: bytes, wanted: Mapping[str, re.Pattern[str]]) -> Iterator[Finding]:
    """Check that a Markdown text has these sections, and text in each or in one below it."""
    try:
        found = sections(decode_text(raw))
    except BrokenContract as broken:
        yield from broken.findings
        return
    titles = [" ".join(_WORD.findall(_NUMBERING.sub("", one.title).lower())) for one in found]

    def has_text(position: int) -> bool:
        below = itertools.takewhile(lambda one: one.level > found[position].level, found[position + 1 :])
        return any(section.text for section in (found[position], *below))

    for name, heading in wanted.items():
        positions = [i for i, title in enumerate(titles) if heading.search(title)]
        if not positions:
            yield Finding("section-missing", f"The section `{name}` is missing.", hint=f"Add the heading `## {name}`.")
        elif not any(has_text(i) for i in positions):
            message = f"The section `{name}` is empty."
            yield Finding("section-empty", message, line=found[positions[0]].line, hint="Write its text.")


def read_history(raw: bytes, now: datetime) -> tuple[list[DecisionHistoryEntry], list[Finding]]:
    """Read ``approve-design-history.jsonl``; a line with an error is a finding, and does not count as an answer."""

    def check(entry: DecisionHistoryEntry) -> Iterator[Finding]:
        yield from timestamp_findings(entry.at, "", now)
        if entry.decision_id != APPROVE_DESIGN or not is_change_request(entry.answer):
            message = "The entry is not an answer to UD-APPROVE-DESIGN that requests changes."
            yield Finding("history-line", message, hint="Remove it.")

    entries, found = _read_lines(raw, DecisionHistoryEntry, check)
    return [entry for entry in entries if not has_errors(check(entry))], found


def read_outputs(raw: bytes, now: datetime | None = None) -> tuple[list[OutputEntry], list[Finding]]:
    """Read ``outputs.jsonl``; a line that cannot be read is a finding with its number, a time in the future a warning.

    A line stays as it is, and its place in the file counts, not its time.
    """
    entries, found = _read_lines(raw, OutputEntry, lambda entry: timestamp_findings(entry.at, "", now))
    return entries, [
        replace(one, severity=Severity.WARNING) if one.code == "timestamp-future" else one for one in found
    ]


def _read_lines(
    raw: bytes, shape: type[LogEntry], check: Callable[[LogEntry], Iterable[Finding]]
) -> tuple[list[LogEntry], list[Finding]]:
    entries: list[LogEntry] = []
    found: list[Finding] = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            json.loads(line)
            entry = read_shape(shape, read_object(line).value)
            entries.append(entry)
        except BrokenContract as broken:
            problems = "; ".join(f"{finding.path} {finding.text}".strip() for finding in broken.findings)
            message = f"The line is not an entry of this file: {problems}"
            found.append(Finding("history-line", message, line=number, hint="Correct the line, or remove it."))
        except (ValueError, RecursionError):
            message = "The line is not a JSON object and is not read. A crash may have cut it short."
            torn = warning("history-torn", message, hint="Write the entry on one line, unless a later line repeats it.")
            one = Finding("history-line", OF_ARRAY[0], hint=OF_ARRAY[1]) if is_of_array(line) else torn
            found.append(replace(one, line=number))
        else:
            found += [replace(finding, line=number) for finding in check(entry)]
    return entries, found


STATUS_FILE = "status.json"
TASKS_FILE = "tasks.yaml"
ACCEPTANCE_FILE = "acceptance.json"
HISTORY_FILE = "approve-design-history.jsonl"
OUTPUTS_FILE = "outputs.jsonl"

_DOCUMENTS = {STATUS_FILE: "session-status", TASKS_FILE: "session-tasks", ACCEPTANCE_FILE: "session-acceptance"}
_LINES = {HISTORY_FILE: "session-history", OUTPUTS_FILE: "session-outputs"}
FILES: tuple[str, ...] = (*_DOCUMENTS, *TEXTS, *_LINES)


class Part(Frozen):
    """One file of a session: its bytes as they were read, None when it is missing. They are parsed on demand.

    ``unreadable`` is why an existing file could not be opened.
    """

    name: str
    raw: bytes | None = None
    unreadable: str = ""

    @property
    def kind(self) -> str:
        """The kind of the file for ``accord check``."""
        return {**_DOCUMENTS, **_LINES}.get(self.name, "session-text")

    @property
    def value(self) -> Any:
        """The document as it was read, with every key; None for texts, and where it is missing or broken."""
        return self._contents[0]

    @property
    def model(self) -> Any:
        """The document as its model, None where the shape is wrong; the entries of a file of lines."""
        return self._contents[1]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the file by itself."""
        return tuple(self._contents[2])

    @property
    def is_missing(self) -> bool:
        """Whether the file does not exist."""
        return self.raw is None and not self.unreadable

    @cached_property
    def problem(self) -> str:
        """Why the file cannot be used; empty when it can."""
        if self.is_missing:
            return f"{self.name} is missing."
        errors = [finding for finding in self.findings if finding.severity is Severity.ERROR]
        return f"{self.name}{errors[0].path and ' ' + errors[0].path}: {errors[0].message}" if errors else ""

    @cached_property
    def _contents(self) -> tuple[Any, Any, Sequence[Finding]]:
        if self.raw is None:
            return None, None, [finding_of("file-unreadable", self.unreadable)] if self.unreadable else []
        return _parse(self.name, self.raw, SystemClock().now().replace(second=0, microsecond=0))


@lru_cache(maxsize=2 * len(FILES))
def _parse(name: str, raw: bytes, minute: datetime) -> tuple[Any, Any, Sequence[Finding]]:
    """Return value, model and findings of a file; one change parses the same bytes many times in a minute."""
    if name in TEXTS:
        return None, None, list(text_findings(raw, TEXTS[name]))
    if name in _LINES:
        return None, *(read_outputs if name == OUTPUTS_FILE else read_history)(raw, minute)
    kind = KINDS[_DOCUMENTS[name]]
    try:
        document = kind.read(raw)
        model, found = kind.read_model(document)
    except BrokenContract as broken:
        return None, None, broken.findings
    return (document.value, model, found) if document.is_alone else (None, None, found)  # a write would lose the text


class Session(Frozen):
    """All documents of a session's folder, as they were at one time."""

    folder: Path
    parts: Mapping[str, Part]
    missing: frozenset[str] = frozenset()  # context files of tasks that no agent can read

    @property
    def name(self) -> str:
        """The session's name: that of its folder."""
        return Path(os.path.abspath(self.folder)).name

    @property
    def root(self) -> Path:
        """The directory of the project, the parent of ``.agents-work``: all paths are relative to it."""
        return Path(os.path.abspath(self.folder)).parent.parent

    @cached_property
    def status(self) -> SessionStatus | None:
        """``status.json``, None where it is missing or has another shape; so are ``tasks`` and ``acceptance``."""
        part, value = self.parts[STATUS_FILE], self.known_status
        return cast("SessionStatus | None", part.model if value is part.value else read_shape(SessionStatus, value))

    @cached_property
    def known_status(self) -> Any:
        """The value of ``status.json``, with an answer that only the history has."""
        part = self.parts[STATUS_FILE]
        return with_adopted_answer(part.value, self.history, SystemClock().now()) if part.model else part.value

    @property
    def status_findings(self) -> list[Finding]:
        """The findings of ``status.json`` by itself, also that it is missing."""
        part = self.parts[STATUS_FILE]
        return [self.absence_of(STATUS_FILE)] if part.is_missing else list(part.findings)

    def absence_of(self, name: str) -> Finding:
        """Return the finding of a file that a command needs and that is not there."""
        message = f"{self.folder / name} is missing or not a regular file."
        return Finding("artifact-missing", message, hint="Restore it.")

    @property
    def tasks(self) -> SessionTasks | None:
        """``tasks.yaml``."""
        return cast("SessionTasks | None", self.parts[TASKS_FILE].model)

    @property
    def acceptance(self) -> Acceptance | None:
        """``acceptance.json``."""
        return cast("Acceptance | None", self.parts[ACCEPTANCE_FILE].model)

    @property
    def plan(self) -> Sequence[SessionTask]:
        """The tasks, none where ``tasks.yaml`` is missing or has another shape."""
        return self.tasks.tasks if self.tasks else ()

    @cached_property
    def unfinished(self) -> list[str]:
        """The tasks that are not completed."""
        return [task.id for task in self.plan if task.status != "completed"]

    def task(self, task_id: str) -> SessionTask | None:
        """Return the task with this id."""
        return self.tasks.task(task_id) if self.tasks else None

    def waits_for(self, task: SessionTask) -> tuple[str, ...]:
        """Return the dependencies of a task that are not implemented yet."""
        return tuple(name for name in task.depends_on if name not in self._ready)

    @cached_property
    def _ready(self) -> frozenset[str]:
        return frozenset(task.id for task in self.plan if task.status in ("implemented", "completed"))

    @cached_property
    def is_implemented(self) -> bool:
        """Whether every task is implemented by the Coder, or a waiver replaces that."""
        return all(task.id in self._ready and self.record.has_work(task.id) for task in self.plan)

    @property
    def history(self) -> Sequence[DecisionHistoryEntry]:
        """The entries of the design gate's history, oldest first."""
        return self.parts[HISTORY_FILE].model or ()

    @property
    def outputs(self) -> Sequence[OutputEntry]:
        """The outputs of agents so far, oldest first."""
        return self.parts[OUTPUTS_FILE].model or ()

    @cached_property
    def record(self) -> ReviewRecord:
        """The results that the outputs give the tasks and ``meta``."""
        return ReviewRecord(self.plan, self.outputs)

    def fixed_loops(self, task_id: str, role: str) -> list[tuple[str, str]]:
        """Return the tasks and fix loops that new work of an agent enters."""
        return self.record.fixed_loops(task_id, role, self._begun)

    @cached_property
    def _begun(self) -> frozenset[str]:
        return frozenset(task.id for task in self.plan if task.status != "not-started")

    @cached_property
    def mode(self) -> SessionMode:
        """Whether the session is full or lean; where no mode is recorded, its state and its files tell."""
        status = self.status
        if status and status.mode:
            return status.mode
        state = (working_state(status) or status.current_state) if status else "INTAKE"
        has_design = self.parts["architecture.md"].raw is not None or bool(status and any(map(status.decision, GATES)))
        is_before_tasks = state in ("INTAKE", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY", "RELEASE")
        return "full" if state != "INTAKE_LEAN" and (has_design or is_before_tasks) else "lean"


def status_of(session: Session) -> SessionStatus:
    """Return a session's status. Raises BrokenContract where it cannot be read."""
    if session.status is None:
        raise refuse("The session cannot be read.", session.status_findings)
    return session.status


def status_value(session: Session) -> dict[str, Any]:
    """Return a copy of ``status.json`` with all its keys, to be changed and returned by a step."""
    status_of(session)
    return copy.deepcopy(dict(session.known_status))


def read_session(folder: Path) -> Session:
    """Read a session's folder. Raises WrongUsage if the folder does not exist."""
    if not folder.is_dir():
        raise WrongUsage(f"`{folder}` is not a directory.", hint="Name a session below .agents-work.")
    session = Session(folder, read_parts(folder))
    return replace(
        session, missing=missing_files(session, {path for task in session.plan for path in task.context_files})
    )


def missing_files(session: Session, paths: Iterable[str]) -> frozenset[str]:
    """Return the files that do not exist or are outside the repository, also by a link."""
    root = os.path.realpath(session.root)

    def exists(path: str) -> bool:
        file = os.path.realpath(Path(root, path.replace("<session>", session.name).split("#", 1)[0]))
        return os.path.exists(file) and Path(file).is_relative_to(root)

    return frozenset(path for path in paths if not is_inside(path) or not exists(path))


def read_parts(folder: Path) -> dict[str, Part]:
    """Read the files of a session; all are missing where the folder is."""
    return {name: _read_part(folder, name) for name in FILES}


def _read_part(folder: Path, name: str) -> Part:
    """Read one regular file; anything else in its place, links included, is unreadable."""
    path = folder / name
    reason = "It is a link, a directory or a device"
    try:
        if stat.S_ISREG(path.lstat().st_mode):
            with path.open("rb") as file:
                return Part(name, file.read(MAX_BYTES + 1))
    except FileNotFoundError:
        return Part(name)
    except OSError as error:
        reason = error.strerror or str(error)
    return Part(name, unreadable=f"The file cannot be read: {reason}. Put a regular file there.")


def is_session(folder: Path) -> bool:
    """Return whether a directory looks like a session."""
    return (folder / STATUS_FILE).is_file() or Path(os.path.abspath(folder)).parent.name == WORK


def changed_sessions(root: Path, start: str) -> list[Path]:
    """Return the folders of sessions whose files differ from a commit; a moved session counts as two."""
    changed = changed_paths(Git(root), start, WORK)
    names = sorted({path.split("/")[1] for path in changed if path.count("/") > 1})
    return [root / WORK / name for name in names]
