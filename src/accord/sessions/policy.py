"""Who may write what: every write names its role, and a rule of the contract allows or forbids it. All pure.

Source: global agent contract, "Role boundaries (hard constraint)", "Update responsibility", "ASK_USER protocol", "Task
status lifecycle" and "Required repository artifacts"; the owners of single files are accord's decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer
from accord.sessions.models import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.sessions.folder import Session

WORK = ".agents-work"

ORCHESTRATOR_KEYS = frozenset(
    {
        "current_state",
        "user_decisions",
        "gate_tracking",
        "runtime_flags",
        "retry_counts",
        "mode",
        "blocker",
        "blocked_from",
        "reopened_at",
    }
)
"""Keys of ``status.json`` that the Orchestrator alone writes; all others are every agent's."""

CREATORS = frozenset({"SpecAgent", "Orchestrator"})
"""Who begins a session: SpecAgent at the intake, in lean mode who is told to set it up."""

OWNERS: dict[str, frozenset[str]] = {
    "status.json": frozenset(ROLES),
    "tasks.yaml": frozenset(ROLES),
    "spec.md": frozenset({"SpecAgent"}),
    "acceptance.json": frozenset({"SpecAgent"}),
    "architecture.md": frozenset({"Architect"}),
    "adr": frozenset({"Architect"}),
    "design-specs": frozenset({"Designer"}),
    "research": frozenset({"Researcher"}),
    "report.md": frozenset({"Docs", "Integrator", "Orchestrator"}),
    "approve-design-history.jsonl": frozenset({"Orchestrator"}),
    "outputs.jsonl": frozenset({"Orchestrator"}),
}
"""Who writes which file or folder of a session; what is not named here is every agent's."""

_IMPLEMENTERS = ("Coder", "Integrator")
_INTEGRATION = ("INTEGRATE", "FIX_BUILD")
_DOCUMENTATION = frozenset({".md", ".rst", ".txt", ".adoc"})


@dataclass(frozen=True)
class WriteContext:
    """A session as a writer stands to it: its name, its state, and whether it is lean."""

    session: str
    state: str
    is_lean: bool = False


def forbidden_path(role: str, path: str, place: WriteContext) -> str:
    """Say which rule forbids a role to write a file of the repository in this session; empty when none does."""
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or path.startswith("/"):
        return "The path leads out of the repository."
    if parts[0] != WORK:
        return _forbidden_outside(role, path, place)
    if len(parts) < 3 or parts[1] != place.session:
        return "Previous sessions are read only; a session writes in its own folder alone."
    if place.state == "DONE":
        return "The session is done, and read only from then on. Reopen it to change it."
    owners = OWNERS.get(parts[2])
    if owners is None or role in owners or (place.is_lean and role in CREATORS and parts[2] in _SET_UP):
        return ""
    return f"{parts[2]} is written by {' or '.join(sorted(owners))}, not by {role}."


_SET_UP = frozenset({"spec.md", "acceptance.json"})


def _forbidden_outside(role: str, path: str, place: WriteContext) -> str:
    if role == "Docs" and PurePosixPath(path).suffix.lower() in _DOCUMENTATION:
        return ""
    if role not in _IMPLEMENTERS:
        return (
            f"Only Coder and Integrator write source code, tests and configuration; {role} never takes their place. "
            f"Files of a session lie below {WORK}/{place.session}."
        )
    if role == "Integrator" and place.state not in _INTEGRATION:
        return (
            f"The Integrator fixes builds and configuration in {' and '.join(_INTEGRATION)} only, not in {place.state}."
        )
    return ""


def forbidden_status(role: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Finding]:
    """Find which changes of ``status.json`` the role may not make. Neither document needs to have the right shape."""
    if role not in ROLES:
        return [role_unknown(role)]
    changed = [
        key for key in {**before, **after} if before.get(key) != after.get(key) or (key in before) != (key in after)
    ]
    found = []
    for key in changed:
        if key in ORCHESTRATOR_KEYS and role != "Orchestrator":
            message = (
                f"{key} is written by the Orchestrator alone, not by {role}. Return the change to the Orchestrator."
            )
            found.append(Finding("role-forbidden", message, pointer(key)))
        elif key == "session":
            message = "A session keeps the name that it was created with. Leave it."
            found.append(Finding("role-forbidden", message, pointer(key)))
    return found


def role_unknown(role: str) -> Finding:
    """Make the finding for a name that is no agent's."""
    return Finding("role-unknown", f'"{role}" is no agent. The canonical names are {", ".join(ROLES)}.')


def task_unknown(session: Session, task_id: str) -> Finding:
    """Make the finding for a name that is no task of the session."""
    known = ", ".join(task.id for task in session.tasks.tasks) if session.tasks else "none"
    return Finding("task-unknown", f'"{task_id}" is no task. The tasks are: {known}.')


def refuse(message: str, finding: Finding | list[Finding]) -> BrokenContract:
    """Make the error for a write that a rule forbids; nothing was written."""
    findings = finding if isinstance(finding, list) else [finding]
    hint = " ".join(found.message for found in findings)
    return BrokenContract(message, findings=findings, hint=hint)
