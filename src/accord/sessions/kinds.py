"""The kinds of documents of this room, and the folder that they make up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.core.kinds import FolderKind, Kind
from accord.files.yaml import read_mapping
from accord.sessions.models import Acceptance, AgentInput, AgentOutput, SessionStatus, SessionTasks
from accord.sessions.rules import (
    acceptance_findings,
    input_findings,
    output_findings,
    status_findings,
    tasks_findings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from accord.core.findings import Finding


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


INPUT = Kind("agent-input", AgentInput, input_findings, {"task": _is_mapping}, is_alone=True, rules_for=input_findings)
OUTPUT = Kind(
    "agent-output",
    AgentOutput,
    output_findings,
    {"status": _is_text, "gates": _is_mapping},
    is_alone=True,
    rules_for=output_findings,
)
STATUS = Kind("session-status", SessionStatus, status_findings, {"current_state": _is_text}, is_alone=True)
TASKS = Kind("session-tasks", SessionTasks, tasks_findings, {"tasks": _is_list}, read_mapping)
ACCEPTANCE = Kind(
    "session-acceptance", Acceptance, acceptance_findings, {"acceptance_criteria": _is_list}, is_alone=True
)


def _is_session(folder: Path) -> bool:
    from accord.sessions.folder import is_session

    return is_session(folder)


def _check_session(folder: Path) -> list[tuple[Path, str, list[Finding]]]:
    from accord.sessions.folder import check_session

    return check_session(folder)


KINDS = (INPUT, OUTPUT, STATUS, TASKS, ACCEPTANCE)
SESSION = FolderKind("session", _is_session, _check_session)
FOLDERS = (SESSION,)
