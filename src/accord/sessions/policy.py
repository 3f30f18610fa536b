"""Which role may write what: every write names its role, and a rule of the contract allows or forbids it. All pure.

Source: global agent contract, "Role boundaries (hard constraint)", "Update responsibility", "ASK_USER protocol", "Task
status lifecycle" and "Required repository artifacts"; the owners of single files are accord's decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer
from accord.core.suggest import did_you_mean
from accord.sessions.models import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.sessions.models import SessionTasks

WORK = ".agents-work"

ORCHESTRATOR_KEYS = frozenset(
    [
        "current_state",
        "user_decisions",
        "gate_tracking",
        "runtime_flags",
        "retry_counts",
        "mode",
        "blocker",
        "blocked_from",
        "reopened_at",
    ]
)
"""Keys of ``status.json`` that only the Orchestrator writes; every agent writes the others."""

CREATORS = frozenset({"SpecAgent", "Orchestrator"})
"""The roles that create a session: SpecAgent at the intake, the Orchestrator in lean mode."""

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
"""The roles that write each file or folder of a session; every agent writes the others."""

_IMPLEMENTERS = ("Coder", "Integrator")
_INTEGRATION = ("INTEGRATE", "FIX_BUILD")
_DOCUMENTATION = frozenset({".md", ".rst", ".txt", ".adoc"})


@dataclass(frozen=True)
class WriteContext:
    """The session that a role writes in: its name, its state, and whether it is lean."""

    session: str
    state: str
    is_lean: bool = False


def check_path(role: str, path: str, context: WriteContext) -> str | None:
    """Return why a role may not write a file of the repository in this session; None when it may."""
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or path.startswith("/"):
        return "The path is outside the repository."
    if parts[0] != WORK:
        return _check_outside(role, path, context)
    if len(parts) < 3 or parts[1] != context.session:
        return "Other sessions are read-only. A session writes only in its own folder."
    if context.state == "DONE":
        return "The session is done and read-only. Reopen it to change it."
    owners = OWNERS.get(parts[2])
    sets_up = context.is_lean and role in CREATORS and parts[2] in ("spec.md", "acceptance.json")
    if owners is None or role in owners or sets_up:
        return None
    return f"Only {' or '.join(sorted(owners))} writes {parts[2]}, not {role}."


def _check_outside(role: str, path: str, context: WriteContext) -> str | None:
    if role == "Docs" and PurePosixPath(path).suffix.lower() in _DOCUMENTATION:
        return None
    if role not in _IMPLEMENTERS:
        return (
            f"Only Coder and Integrator write source code, tests and configuration, not {role}. "
            f"Write files of the session below {WORK}/{context.session}."
        )
    if role == "Integrator" and context.state not in _INTEGRATION:
        return f"The Integrator fixes builds only in {' and '.join(_INTEGRATION)}, not in {context.state}."
    return None


def forbidden_status(role: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Finding]:
    """Find the changes of ``status.json`` that the role may not make. Neither document needs the right shape."""
    if role not in ROLES:
        return [role_unknown(role)]
    found = []
    for key in {**before, **after}:
        if key in before and key in after and before[key] == after[key]:
            continue
        if key in ORCHESTRATOR_KEYS and role != "Orchestrator":
            message = f"Only the Orchestrator writes `{key}`, not {role}."
            hint = "Return the change to the Orchestrator."
            found.append(Finding("role-forbidden", message, pointer(key), hint=hint))
        elif key == "session":
            message = "A session keeps the name that it was created with."
            found.append(Finding("role-forbidden", message, pointer(key), hint="Restore it."))
    return found


def role_unknown(role: str) -> Finding:
    """Return the finding for an unknown role."""
    return Finding("role-unknown", f"Unknown role `{short_name(role)}`.", hint=_hint(role, ROLES))


def task_unknown(tasks: SessionTasks | None, task_id: str) -> Finding:
    """Return the finding for a task id that the session does not have."""
    known = [task.id for task in tasks.tasks] if tasks else []
    return Finding("task-unknown", f"Unknown task `{short_name(task_id)}`.", hint=_hint(task_id, known))


def _hint(word: str, known: Sequence[str]) -> str:
    return did_you_mean(word, known) or (f"Use one of {', '.join(known)}." if known else "The session has no tasks.")


def refuse(message: str, finding: Finding | list[Finding]) -> BrokenContract:
    """Return the error for a write that a rule forbids; nothing was written."""
    findings = finding if isinstance(finding, list) else [finding]
    return BrokenContract(message, findings=findings, hint=" ".join(found.text for found in findings))
