"""The write policy: which role writes which file and key, and the values that people and agents set by hand. Pure.

Source: global agent contract, "Role boundaries (hard constraint)", "Update responsibility", "ASK_USER protocol", "Task
status lifecycle" and "Required repository artifacts"; the owners of single files are accord's decision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, get_args

from accord.agents.registry import shipped_registry
from accord.core.clock import timestamp
from accord.core.documents import short_name
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, pointer
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.git.steering import PathAudit, audit_paths
from accord.sessions.models import CORRECTORS, LOOPS, ROLES, STATES, CiStatus, ProjectType, SessionStatus, SessionTasks

WORK = ".agents-work"
INTO = ".accord/dispatch"
"""Where the input of an agent is written."""

_KEYS_OF_ALL = {"session", "assumptions", "known_issues", "last_ci_result", "last_update"}
ORCHESTRATOR_KEYS = frozenset(SessionStatus.model_fields) - _KEYS_OF_ALL
"""Keys of ``status.json`` that only the Orchestrator writes; every agent writes the others."""

REPORTERS = ("Docs", "Integrator")
"""The agents that are sent to write ``report.md``."""

WRITERS: Mapping[str, tuple[str, ...]] = {
    "spec.md": ("SpecAgent",),
    "acceptance.json": ("SpecAgent",),
    "architecture.md": ("Architect",),
    "adr": ("Architect",),
    "design-specs": ("Designer",),
    "research": ("Researcher",),
    "tasks.yaml": ("Planner",),
    "report.md": (*REPORTERS, "Orchestrator"),
}
"""The roles that write the content of each artifact of a session, the usual one first.

Each artifact follows from those before it.
"""


def artifacts_of(role: str, mode: str) -> list[str]:
    """Return the artifacts whose content a role writes; in a lean session, SpecAgent also writes the tasks."""
    own = [name for name, roles in WRITERS.items() if role in roles]
    return [*own, "tasks.yaml"] if (role, mode) == ("SpecAgent", "lean") else own


READERS: Mapping[str, tuple[str, ...]] = {
    "spec.md": ("Architect", "Designer", "Researcher", "Planner", "Coder", "Reviewer", "QA", "Docs"),
    "acceptance.json": ("Architect", "Designer", "Planner", "QA", "Integrator", "Docs"),
    "architecture.md": ("Architect", "Designer", "Planner", "Coder", "Reviewer", "Security"),
    "tasks.yaml": ("Coder", "Reviewer", "QA", "Security", "Integrator", "Docs", "Orchestrator"),
    "design-specs": ("Designer", "Planner", "Coder", "Reviewer"),
    "research": ("SpecAgent", "Architect", "Planner"),
    "approve-design-history.jsonl": CORRECTORS,
}
"""The roles that need to read each file. A missing one stops them once the session needs it."""

SHARED = ("spec.md", "acceptance.json", "adr", "tasks.yaml")
"""The files that every agent reads where they exist; while the design is corrected, it reads the artifacts of all."""


def names_to_read(role: str, state: str) -> list[str]:
    """Return the files and folders of a session that a role reads where they exist."""
    own = (name for name, roles in READERS.items() if role in roles)
    return [*(WRITERS if state == "APPROVE_DESIGN" else SHARED), *own]


def names_before(role: str, mode: str) -> list[str]:
    """Return the artifacts from which a role makes its own; all of them for a role that writes none."""
    names, own = [*WRITERS], artifacts_of(role, mode)
    return names[: min(map(names.index, own), default=len(names))]


OWNERS: Mapping[str, frozenset[str]] = {
    **{name: frozenset(roles) for name, roles in WRITERS.items()},
    **dict.fromkeys(("status.json", "tasks.yaml"), frozenset(ROLES)),
    **dict.fromkeys(("approve-design-history.jsonl", "outputs.jsonl"), frozenset({"Orchestrator"})),
}
"""The roles that may write each file or folder of a session; every agent writes the others."""

_IMPLEMENTERS = ("Coder", "Integrator")
_INTEGRATION = ("INTEGRATE", "FIX_BUILD")
CODE_WRITERS = (
    f"Only the Coder, and in {' and '.join(_INTEGRATION)} the Integrator, writes code, tests and configuration."
)
_FORMS = (".md", ".markdown", ".rst", ".adoc", ".asciidoc")
_NAMES = "CHANGES HISTORY NEWS LICENCE COPYING NOTICE AUTHORS CONTRIBUTORS CONTRIBUTING SECURITY"
_NAMES_IN_ANY_CASE = ("readme", "license", "changelog")
_PAGES = ".txt .htm .html .css .csv .pdf .png .jpg .jpeg .gif .svg .webp .mmd .puml .drawio .1 .2 .3 .4 .5 .6 .7 .8 .9"
_PAGE_FOLDERS = ("doc", "docs", "documentation", "man")
"""Documents by their form or usual name, and pages, pictures and manual pages in a folder of documentation."""


READ_ONLY = "Other sessions are read-only. A session writes only in its own folder."


def check_path(role: str, path: str, session: str, state: str, *, is_lean: bool = False) -> str | None:
    """Return why a role may not write a file of the repository in this session (a name); None when it may."""
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or path.startswith("/"):
        return "The path is outside the repository."
    if parts[0] != WORK and role != "Docs" and role not in _IMPLEMENTERS and _is_documentation(path):
        return f"Only Docs, Coder and Integrator write documentation, not {role}."
    if parts[0] != WORK:
        how = f"{CODE_WRITERS} Write files of the session below {WORK}/{session}."
        return how if is_forbidden_code(role, path, state) else None
    if len(parts) < 3 or parts[1] != session:
        return READ_ONLY if len(parts) > 2 else "A session writes only in its own folder."
    if state == "DONE":
        return "The session is done and read-only. Reopen it to change it."
    owners = OWNERS.get(parts[2])
    sets_up = is_lean and role in ("SpecAgent", "Orchestrator") and parts[2] in ("spec.md", "acceptance.json")
    if owners is None or role in owners or sets_up:
        return None
    return f"Only {' or '.join(sorted(owners))} writes {parts[2]}, not {role}."


def is_forbidden_code(role: str, path: str, state: str = "") -> bool:
    """Return whether a role may not write a file outside of sessions because it is more than documentation.

    Without ``state``, that of the session's work, the Integrator may be in a state in which it does.
    """
    may_write = role == "Coder" or (role == "Integrator" and state in ("", *_INTEGRATION))
    return not may_write and not _is_documentation(normpath(path))


def _is_documentation(path: str) -> bool:
    """Return whether a file is documentation: never one that steers agents or tools, or that declares dependencies."""
    file = PurePosixPath(path)
    name, form = file.name.removesuffix(".txt"), file.suffix.lower()
    is_named = name in _NAMES.split() or name.lower() in _NAMES_IN_ANY_CASE
    is_page = form in _PAGES.split() and any(folder.lower() in _PAGE_FOLDERS for folder in file.parts[:-1])
    is_hidden = any(part.startswith(".") and part != ".." for part in file.parts)
    audit = audit_paths([path], agent_files=shipped_registry().steering_patterns)
    return (form in _FORMS or is_named or is_page) and not is_hidden and audit == PathAudit()


def forbidden_status(role: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Finding]:
    """Find the changes of ``status.json`` that the role may not make. Neither document needs the right shape."""
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


def task_unknown(tasks: SessionTasks | None, task_id: str) -> Finding:
    """Return the finding for a task id that the session does not have."""
    known = [task.id for task in tasks.tasks] if tasks else []
    return Finding("task-unknown", f"Unknown task `{short_name(task_id)}`.", hint=_hint(task_id, known))


def check_task(tasks: SessionTasks | None, task_id: str) -> None:
    """Raise BrokenContract for a task that the session does not have; ``meta`` is the session as a whole."""
    if task_id != "meta" and (tasks is None or tasks.task(task_id) is None):
        raise refuse("The task is unknown.", task_unknown(tasks, task_id))


def _hint(word: str, known: Sequence[str]) -> str:
    return did_you_mean(word, known) or (
        f"Use one of {', '.join(known)}." if known else "Write or correct tasks.yaml first."
    )


def refuse(message: str, finding: Finding | list[Finding]) -> BrokenContract:
    """Return the error for a write that a rule forbids; nothing was written."""
    findings = finding if isinstance(finding, list) else [finding]
    return BrokenContract(message, findings=findings, hint=" ".join(found.text for found in findings))


_LISTS = ("assumptions", "known_issues")
_CHOICES = {
    "last_ci_result": get_args(CiStatus),
    "project_type": get_args(ProjectType),
    "blocked_from": tuple(state for state in STATES if state not in ("BLOCKED", "DONE")),
}
_KEYS = (*_LISTS, *_CHOICES)


class Setting(Frozen):
    """One KEY=VALUE; ``adds`` is KEY+=VALUE, which adds to a list."""

    key: str
    text: str
    adds: bool = False


def parse_setting(text: str) -> Setting:
    """Read KEY=VALUE or KEY+=VALUE. Raises WrongUsage."""
    key, sign, value = text.partition("=")
    adds = key.endswith("+")
    key = key.removesuffix("+").strip()
    if not sign or not key:
        raise WrongUsage(f"`{short_name(text)}` is not KEY=VALUE.", hint="Write `last_ci_result=green`.")
    parts = key.split(".")
    is_nested = len(parts) == {"runtime_flags": 2, "retry_counts": 3}.get(parts[0]) and all(parts)
    if key not in _KEYS and not is_nested:
        known = ", ".join((*_KEYS, "runtime_flags.NAME", "retry_counts.T-XXX.LOOP"))
        hint = did_you_mean(key, _KEYS) or f"Set one of {known}."
        raise WrongUsage(f"`{short_name(key)}` cannot be set.", hint=hint)
    if adds and key not in _LISTS:
        raise WrongUsage(f"`{short_name(key)}` is not a list.", hint=f"Write `{short_name(key)}={value}`.")
    return Setting(key, value.strip(), adds)


def with_settings(
    value: dict[str, Any], tasks: SessionTasks | None, settings: Sequence[Setting], *, now: datetime
) -> dict[str, Any]:
    """Return ``status.json`` with these values. Several values of one list are its entries."""
    began: set[str] = set()
    for setting in settings:
        key, *parts = setting.key.split(".")
        if key in _LISTS:
            old = value[key] if setting.adds or key in began else []
            began.add(key)
            given = _json_or_text(setting.text)  # a JSON array of texts, or one text
            is_array = isinstance(given, list) and all(isinstance(one, str) for one in given)
            entries = given if is_array else [setting.text] if setting.text else []
            value[key] = [*old, *(one for one in entries if one not in old)]
        elif key == "runtime_flags":
            flags = value[key] = dict(value.get(key) or {})
            flag = _json_or_text(setting.text)
            flags[parts[0]] = flag if isinstance(flag, (bool, int)) or flag is None else setting.text
            if parts[0] == "copilot_instructions_exists":
                flags["copilot_checked_at"] = timestamp(now)
        elif key == "retry_counts":
            task, loop = parts
            check_task(tasks, task)
            if loop not in LOOPS:
                raise WrongUsage(f"Unknown fix loop `{short_name(loop)}`.", hint=_hint(loop, LOOPS))
            if not setting.text.isdecimal() or len(setting.text) > 4:
                message = f"A count cannot be `{short_name(setting.text)}`."
                raise WrongUsage(message, hint="Write a number, such as 0.")
            value[key].setdefault(task, {})[loop] = int(setting.text)
        elif key == "blocked_from" and (value["current_state"] != "BLOCKED" or value.get(key)):
            message = "`blocked_from` is set only in a blocked session that does not record it."
            raise WrongUsage(message, hint="Move the session with `accord session advance`.")
        elif setting.text in _CHOICES[key]:
            value[key] = setting.text
        else:
            hint = _hint(setting.text, _CHOICES[key])
            raise WrongUsage(f"`{key}` cannot be `{short_name(setting.text)}`.", hint=hint)
    return value


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
