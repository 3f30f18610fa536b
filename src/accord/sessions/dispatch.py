"""The input of an agent for a task, from the session's folder and the repository: facts, document and prompt.

Source: global agent contract, "Universal Input JSON" and "Context files enforcement".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord.agents.registry import shipped_registry
from accord.core.documents import read_object, short_name
from accord.core.findings import Finding, finding_of, has_errors, pointer
from accord.core.kinds import KINDS
from accord.git.extraction import changed_paths
from accord.git.program import Git
from accord.sessions.folder import HISTORY_FILE, STATUS_FILE, Session, status_of
from accord.sessions.folder_rules import missing_files
from accord.sessions.machine import files_needed, working_state
from accord.sessions.moves import check_work
from accord.sessions.policy import OWNERS, WORK, refuse, task_unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from accord.sessions.models import SessionTask

TOOLS = ("read_file", "write_file", "apply_patch", "run_cmd", "search_repo")

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "SpecAgent": (),
    "Architect": ("spec.md", "acceptance.json"),
    "Designer": ("spec.md", "architecture.md", "acceptance.json"),
    "Researcher": ("spec.md",),
    "Planner": ("spec.md", "acceptance.json"),
    "Coder": ("spec.md", "tasks.yaml"),
    "Reviewer": ("spec.md", "tasks.yaml"),
    "QA": ("spec.md", "acceptance.json", "tasks.yaml"),
    "Security": ("tasks.yaml",),
    "Integrator": ("tasks.yaml", "acceptance.json"),
    "Docs": ("spec.md", "tasks.yaml", "acceptance.json"),
    "Orchestrator": ("tasks.yaml",),
}
"""The files that each agent must read before it starts."""

OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "SpecAgent": ("spec.md", "acceptance.json", "research", HISTORY_FILE),
    "Architect": ("architecture.md", "research", HISTORY_FILE),
    "Designer": ("design-specs", HISTORY_FILE),
    "Planner": ("architecture.md", "design-specs", "research"),
    "Coder": ("architecture.md", "design-specs"),
    "Reviewer": ("architecture.md", "design-specs"),
    "Security": ("architecture.md",),
}
"""The files that each agent also reads where they exist; of a directory, all its files.

Agents that correct the design read the requested changes. Every agent reads the user's decisions in ``status.json``.
"""

_CHANGES = {"A": "added", "M": "modified", "T": "modified", "D": "deleted", "R": "renamed"}


def agent_input(
    session: Session,
    task_id: str,
    role: str,
    *,
    goal: str = "",
    project_type: str | None = None,
) -> dict[str, Any]:
    """Build the input of an agent for a task, or for ``meta``, the session as a whole.

    ``goal`` is for sessions whose task and criteria name none yet. The session's changes are counted from the commit
    before its folder appeared. Raises BrokenContract where the agent cannot start, with the files that are missing or
    broken.
    """
    _check_dispatch(session, task_id, role)
    git, status = Git(session.root), status_of(session)
    has_git = not git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode
    branch = git.line("rev-parse", "--abbrev-ref", "HEAD") if has_git else "HEAD"
    context = context_files(session, role, session.task(task_id))
    document = {
        "task": {
            **_task(session, task_id),
            **({"goal": goal} if goal else {}),
            "context_files": context,
            "session_changed_files": changed_files(session) if role == "Reviewer" and has_git else [],
            "constraints": [],
        },
        "project_type": project_type or (status.model_extra or {}).get("project_type") or "mixed",
        "repo_state": {"branch": branch, "ci_status": status.last_ci_result, "last_failed_step": None},
        "tools_available": list(TOOLS),
        "artifact_list": [_path(session, name) for name, part in session.parts.items() if part.raw is not None],
        "agent": role,
    }
    _, found = KINDS["agent-input"].read_model(read_object(json.dumps(document).encode()))
    found = [*found, *_missing_context(context, missing_files(session, context))]
    if has_errors(found):
        raise refuse(f"No valid input can be built for {role}.", list(found))
    return document


def _missing_context(context: Sequence[str], missing: Collection[str]) -> Iterator[Finding]:
    for i, path in enumerate(context):
        if path in missing:
            message = f"The context file `{short_name(path)}` does not exist."
            hint = "Write it, or correct the path."
            yield Finding("context-file-missing", message, pointer("task", "context_files", i), hint=hint)


def _task(session: Session, task_id: str) -> dict[str, Any]:
    if task_id == "meta":
        criteria = session.acceptance.acceptance_criteria if session.acceptance else []
        goal = " ".join(item.description for item in criteria) or f"Work on the session {session.name} as a whole."
        checks = [check for item in criteria for check in item.verify]
        return {
            "id": "meta",
            "title": session.name,
            "goal": goal,
            "non_goals": [],
            "acceptance_checks": [one if one.startswith(("cmd:", "manual:")) else f"manual: {one}" for one in checks],
            "risk_flags": ["none"],
        }
    task = session.task(task_id)
    if task is None:
        raise refuse("The task is unknown.", task_unknown(session.tasks, task_id))
    return {
        "id": task.id,
        "title": task.title or task.goal,
        "goal": task.goal,
        "non_goals": list(task.non_goals),
        "acceptance_checks": list(task.acceptance_checks),
        "risk_flags": list(task.risk_flags) or ["none"],
    }


def _check_dispatch(session: Session, task_id: str, role: str) -> None:
    """Raise BrokenContract where the state, a gate, a dependency or a document keeps the agent from starting."""
    if forbidden := check_work(session, role, task_id):
        raise refuse(f"{role} cannot be dispatched.", forbidden)
    if problems := [problem for name in _required_documents(session, role) if (problem := session.parts[name].problem)]:
        raise refuse(f"{role} cannot be dispatched.", [finding_of("context-file-missing", text) for text in problems])


def _required_documents(session: Session, role: str) -> list[str]:
    """Return the documents that an agent needs, by role and state; one that it writes itself may be broken."""
    of_state = files_needed(working_state(status_of(session)), session.mode)
    optional = [name for name in OPTIONAL.get(role, ()) if name in of_state and role not in OWNERS[name]]
    return [*REQUIRED[role], *optional]


def context_files(session: Session, role: str, task: SessionTask | None) -> list[str]:
    """Return all files that an agent must read: those of its role, those of the task, and the user's decisions."""
    names = [_path(session, name) for name in REQUIRED[role]]
    for name in OPTIONAL.get(role, ()):
        path = session.folder / name
        if path.is_symlink():
            continue
        if path.is_file():
            names.append(_path(session, name))
        elif path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.is_symlink()]
            names += [_path(session, str(file.relative_to(session.folder))) for file in files]
    of_task = [file.replace("<session>", session.name) for file in task.context_files] if task else []
    is_decided = any(decision.status != "pending" for decision in status_of(session).user_decisions)
    return list(dict.fromkeys([*names, *of_task, *([_path(session, STATUS_FILE)] if is_decided else [])]))


def _path(session: Session, name: str) -> str:
    return f"{WORK}/{session.name}/{name}"


def changed_files(session: Session) -> list[dict[str, str]]:
    """Return the files that the session changed outside ``.agents-work``, uncommitted and new files included."""
    found = []
    for letter, path, old in changed_paths(session.root, _start_of(session), shipped_registry().state_patterns):
        if not path.startswith(f"{WORK}/"):
            entry = {"path": path, "change_type": _CHANGES[letter]}
            found.append({**entry, "old_path": old} if old else entry)
    return found


def _start_of(session: Session) -> str:
    """Return the commit before the one that added the session's status; HEAD while it is not committed."""
    git = Git(session.root)
    path = _path(session, STATUS_FILE)
    added = git.line("log", "--diff-filter=A", "--format=%H", "--", path).split()
    if not added:
        return "HEAD"
    before = git.attempt("rev-parse", "--verify", "--quiet", f"{added[-1]}^")
    return before.stdout.decode().strip() or added[-1]
