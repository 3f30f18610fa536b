"""Rules of a session's single documents, beyond their shape. All pure.

Source: global agent contract; each rule names its section. ``folder_rules`` has the rules across documents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, get_args

from accord.core.documents import short_name
from accord.core.findings import Finding, Severity, pointer, warning
from accord.core.machine import find_cycle
from accord.core.shapes import unread_keys
from accord.core.suggest import did_you_mean
from accord.sessions.decision_rules import decision_findings, parse_lenient_timestamp, timestamp_findings
from accord.sessions.models import (
    GATES,
    LOOPS,
    ROLES,
    Acceptance,
    AgentInput,
    OpenModel,
    RiskFlag,
    SessionStatus,
    SessionTasks,
    TaskStatus,
)

MOST_RETRIES = 3
"""How often a task may enter one fix loop before the user is asked."""

_CHECKS = ("cmd", "manual")
_SESSION_NAME = re.compile(r"\A(\d{4}-\d\d-\d\d)_[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_CHANGED = "/task/session_changed_files"
_ABOVE = re.compile(r"\A(?:\.\./)+(?=.)")
_CRITERION = re.compile(r"AC-[0-9]{3,}")
STATES_OF_OTHER_MODE = {
    "full": {"INTAKE_LEAN"},
    "lean": {"INTAKE", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY", "RELEASE"},
}
"""The states that a session of each mode does not have."""

_STATUS_KEYS = frozenset({"tasks", "task_status", "task_statuses", "tasks_status"})
_STATUS_WORDS = frozenset({"started", "progress", "implemented", "completed", "done", "blocked"})
_TASK = re.compile(r"T-[0-9]{3,}")


def input_findings(given: AgentInput, role: str = "") -> list[Finding]:
    """Check an agent's input ("Universal Input JSON"); ``role`` is the agent that it is for, where known."""
    role = role or given.agent or named_role(given)
    return [
        *_changed_files(given, role),
        *_checks(given.task.acceptance_checks, "/task/acceptance_checks"),
        *_relative(given.task.context_files, "/task/context_files"),
        # a project in a subfolder may change files beside it
        *_relative([_ABOVE.sub("", one.path) for one in given.task.session_changed_files], _CHANGED),
        *_risk_flags(given.task.risk_flags, "/task/risk_flags"),
    ]


def named_role(document: OpenModel) -> str:
    """Return the role that an open document names under an extra key, if it is a canonical name."""
    extra = document.model_extra or {}
    dispatch = extra.get("dispatch")
    named: list[Any] = [extra.get("role"), dispatch.get("agent") if isinstance(dispatch, dict) else None]
    return next((name for name in named if isinstance(name, str) and name in ROLES), "")


def _changed_files(given: AgentInput, role: str) -> Iterator[Finding]:
    place, files = _CHANGED, given.task.session_changed_files
    if role == "Reviewer" and "session_changed_files" not in given.task.model_fields_set:
        message = "The Reviewer needs the files that the session changed."
        yield Finding("changed-files-missing", message, place, hint="List them, or `[]` without any.")
    elif role == "Reviewer" and not files:
        message = "The session changed no file for the Reviewer to read."
        yield warning("changed-files-missing", message, place, hint="List its files if it changed any.")
    if files and role not in ("", "Reviewer"):
        message = f"Only the Reviewer gets the list of changed files, not {role}."
        yield warning("changed-files-unexpected", message, place, hint="Remove the list.")
    for i, file in enumerate(files):
        if file.change_type == "renamed" and not (file.old_path or "").strip():
            message = "A renamed file needs its previous path."
            yield Finding("old-path-missing", message, place + pointer(i, "old_path"), hint="Add `old_path`.")


def _relative(paths: Sequence[str], place: str) -> Iterator[Finding]:
    for i, path in enumerate(paths):
        if not is_inside(path):
            message = "The path is empty or outside the repository."
            hint = "Write it relative to the repository's root."
            yield Finding("path-outside", message, place + pointer(i), hint=hint)


def is_inside(path: str) -> bool:
    """Return whether a path is below the repository's root: relative, and without `..`."""
    windows = PureWindowsPath(path)
    is_absolute = PurePosixPath(path).is_absolute() or bool(windows.anchor) or path.startswith("~")
    return bool(path.strip()) and not is_absolute and ".." not in windows.parts and "\0" not in path


def _checks(checks: Sequence[str], place: str) -> Iterator[Finding]:
    yield from _empty_checks(checks, place)
    for i, check in enumerate(checks):
        word, sign, text = check.partition(":")
        if check.strip() and not (sign and word in _CHECKS) and (text.strip() or word.strip() not in _CHECKS):
            message = "The check begins with neither `cmd:` nor `manual:`."
            hint = did_you_mean(f"{word}:" if sign else "", [f"{one}:" for one in _CHECKS])
            found = warning("check-form", message, place + pointer(i), hint=hint or "Begin it with one of them.")
            yield replace(found, severity=Severity.ERROR) if hint else found


def _empty_checks(checks: Sequence[str], place: str) -> Iterator[Finding]:
    empty = [i for i, check in enumerate(checks) if check.strip() in ("", *(f"{word}:" for word in _CHECKS))]
    severity = Severity.ERROR if len(empty) == len(checks) else Severity.WARNING  # as in an empty list
    hint = "Write the command after `cmd:`, or what a person does after `manual:`."
    yield from (Finding("check-form", "The check is empty.", place + pointer(i), severity, hint=hint) for i in empty)


def _risk_flags(flags: Sequence[str], place: str) -> Iterator[Finding]:
    if "none" in flags and len(set(flags)) > 1:
        message = "`none` cannot be combined with other flags."
        yield warning("risk-flags-contradict", message, place, hint="Keep one or the other.")
    known: tuple[str, ...] = get_args(RiskFlag)
    for i, flag in enumerate(flags):
        if flag not in known:
            message, hint = f"Unknown risk flag `{short_name(flag)}`.", did_you_mean(flag, known)
            yield Finding("risk-flag-unknown", message, place + pointer(i), hint=hint or f"Use {', '.join(known)}.")


def status_findings(status: SessionStatus, now: datetime) -> list[Finding]:
    """Check ``status.json`` ("status.json - minimal schema", "ASK_USER protocol")."""
    flags = status.runtime_flags
    sent, checked = status.last_correction.at, flags.copilot_checked_at if flags else None
    found = [*session_name_findings(status.session, "/session")]
    found += timestamp_findings(sent, "/gate_tracking/APPROVE_DESIGN/last_correction_dispatch/at", now)
    for place, time in {"/last_update": status.last_update, "/runtime_flags/copilot_checked_at": checked}.items():
        for one in timestamp_findings(time, place, now):  # no rule compares them
            found.append(replace(one, severity=Severity.WARNING) if one.code == "timestamp-future" else one)
    ids = [decision.decision_id for decision in status.user_decisions]
    found += _repeated_ids("decision-repeated", ids, "user_decisions")
    numbers = sorted({int(number) for name in ids if (number := name.removeprefix("UD-")).isdecimal()})
    if gap := next((i for i, number in enumerate(numbers, start=1) if number != i), 0):
        message = f"The question UD-{numbers[gap - 1]} exists, but UD-{gap} does not."
        hint = "Restore that question, or correct the number."
        found.append(warning("decision-order", message, "/user_decisions", hint=hint))
    for i, decision in enumerate(status.user_decisions):
        found += decision_findings(decision, status.session, pointer("user_decisions", i), now)
        found += _unread_keys(decision, pointer("user_decisions", i))
    return [*found, *_retries(status), *_mode(status), *_state(status), *_records(status)]


def _unread_keys(part: OpenModel, place: str, order: str = "", known: Collection[str] = ()) -> Iterator[Finding]:
    """Find unknown keys that were meant as known ones: an error where a slip would pass over Security."""
    for _, meant, found in unread_keys(part, place, order, known):
        yield replace(found, severity=Severity.ERROR) if meant in ("risk_flags", "category") else found


def session_name_findings(name: str, path: str = "") -> Iterator[Finding]:
    """Check the name of a session or of its folder: a date that exists, and a slug."""
    match = _SESSION_NAME.match(name)
    if not match or parse_lenient_timestamp(match[1]) is None:
        message = f"The session is named `{short_name(name)}`."
        yield Finding("session-name", message, path, hint="Rename it to YYYY-MM-DD_short-slug.")


def _repeated_ids(code: str, ids: Sequence[str], *place: str) -> Iterator[Finding]:
    """Find ids that occur again; ``place`` is the key of the list, and that of the id in an entry."""
    for i, name in enumerate(ids):
        if name in ids[:i]:
            message, hint = f"{short_name(name)} occurs twice.", "Give one of them another id."
            hint = "Keep the newer one, and remove the other." if name in GATES else hint
            yield Finding(code, message, pointer(place[0], i, *place[1:]), hint=hint)


def _retries(status: SessionStatus) -> Iterator[Finding]:
    for task, counts in status.retry_counts.items():
        for key in counts.model_extra or {}:
            message = f"`{short_name(key)}` is not a fix loop, so nothing counts it."
            hint = did_you_mean(key, LOOPS) or f"Use {', '.join(LOOPS)}."
            yield Finding("retry-unknown", message, pointer("retry_counts", task, key), hint=hint)
        for loop in LOOPS:
            if counts.of(loop) > MOST_RETRIES:
                message = f"{short_name(task)} entered {loop} more than {MOST_RETRIES} times."
                place, hint = pointer("retry_counts", task, loop), "Ask with `accord session ask` how to continue."
                yield Finding("retry-budget", message, place, hint=hint)


def _mode(status: SessionStatus) -> Iterator[Finding]:
    states: dict[str, str | None] = {"/current_state": status.current_state, "/blocked_from": status.blocked_from}
    for i, decision in enumerate(status.user_decisions):
        if decision.decision_id not in GATES:
            states[pointer("user_decisions", i, "state_context")] = decision.state_context
    for place, name in states.items():
        if status.mode and name in STATES_OF_OTHER_MODE[status.mode]:
            message, key = f"A {status.mode} session has no state {name}.", place.rpartition("/")[2]
            yield Finding("mode-state", message, place, hint=f"Correct `mode` or `{key}`.")


def _state(status: SessionStatus) -> Iterator[Finding]:
    state = status.current_state
    if state == "BLOCKED" and not (status.blocker or "").strip():
        message = "The session is blocked, but not by what."
        yield warning("blocker-missing", message, "/blocker", hint="Set `blocker` to what blocks it.")
    if state == "BLOCKED" and status.blocked_from is None:
        message = "The state before the block is not recorded."
        yield warning("blocked-from", message, "/current_state", hint="Set `blocked_from` to it.")
    if status.blocked_from in ("BLOCKED", "DONE"):
        message = f"A session cannot return to {status.blocked_from}."
        hint = "Set `blocked_from` to the state before the block."
        yield Finding("blocked-from-invalid", message, "/blocked_from", hint=hint)
    if state == "ASK_USER" and all(
        one.decision_id in GATES and one.status != "pending" for one in status.user_decisions
    ):
        message = "The session asks the user, but has no question."
        yield Finding("question-missing", message, "/user_decisions", hint="Write one with `accord session ask`.")
    asks = {"ASK_USER", "BLOCKED", *GATES.values()}
    for i, decision in enumerate(status.user_decisions if state not in asks else ()):
        if decision.status == "pending":
            message = f"{decision.decision_id} is pending, but the session moved to {state}."
            yield Finding("decision-left", message, pointer("user_decisions", i, "status"), hint="Resolve it first.")


def _records(status: SessionStatus) -> Iterator[Finding]:
    """Check that a dispatched correction says to whom and when, as a guard against a second one; and no task status."""
    last = status.last_correction
    if status.correction_status == "dispatched" and not (last.agent and last.at):
        message = "A correction of the design was dispatched, but not recorded with its agent and time."
        hint = "Fill `last_correction_dispatch`, or set `correction_status` to queued."
        yield Finding("correction-record", message, "/gate_tracking/APPROVE_DESIGN", hint=hint)
    for key in sorted(key for key, value in (status.model_extra or {}).items() if _repeats_status(key, value)):
        message = "Only tasks.yaml records the status of tasks."
        yield Finding("task-status-duplicated", message, pointer(key), hint="Remove the key.")


def _repeats_status(key: str, value: object) -> bool:
    """Return whether a key of another tool maps tasks to a status, or lists those of the status in its name."""
    if isinstance(value, dict):
        tasks = [each for name, each in ((key, value), *value.items()) if _TASK.fullmatch(str(name))]
        found = [each.get("status") if isinstance(each, dict) else each for each in tasks]
        return key in _STATUS_KEYS or any(str(each).replace("_", "-") in get_args(TaskStatus) for each in found)
    is_list = isinstance(value, list) and any(_TASK.fullmatch(str(each)) for each in value)
    return key in _STATUS_KEYS or (is_list and bool(_STATUS_WORDS & {*key.casefold().split("_")}))


def tasks_findings(tasks: SessionTasks) -> list[Finding]:
    """Check ``tasks.yaml``: ids, dependencies, checks."""
    found = [*_repeated_ids("task-repeated", [task.id for task in tasks.tasks], "tasks", "id"), *_dependencies(tasks)]
    for i, task in enumerate(tasks.tasks):
        found += _checks(task.acceptance_checks, pointer("tasks", i, "acceptance_checks"))
        found += _relative(task.context_files, pointer("tasks", i, "context_files"))
        found += _risk_flags(task.risk_flags, pointer("tasks", i, "risk_flags"))
    return found


def _dependencies(tasks: SessionTasks) -> Iterator[Finding]:
    position = {task.id: i for i, task in enumerate(tasks.tasks)}
    for i, task in enumerate(tasks.tasks):
        yield from _unread_keys(task, pointer("tasks", i), "depends_on", position)
        if "deps" in (task.model_extra or {}):
            message, hint = "`deps` is not read beside `depends_on`.", "Move its tasks to `depends_on`."
            yield warning("key-misspelled", message, pointer("tasks", i, "deps"), hint=hint)
        for name in task.depends_on:
            if name not in position:
                message = f"{task.id} depends on the unknown task `{short_name(name)}`."
                hint = did_you_mean(name, position) or "Correct the id."
                yield Finding("dependency-unknown", message, pointer("tasks", i), hint=hint)
    if cycle := find_cycle({task.id: task.depends_on for task in tasks.tasks}):
        message = f"The tasks depend on each other in a cycle: {' → '.join([*cycle, cycle[0]])}."
        place = pointer("tasks", position[cycle[0]])
        yield Finding("dependency-cycle", message, place, hint="Remove one of these dependencies.")


def acceptance_findings(acceptance: Acceptance) -> list[Finding]:
    """Check ``acceptance.json``: every criterion has its own id."""
    criteria = acceptance.acceptance_criteria
    found = [*_repeated_ids("criterion-repeated", [one.id for one in criteria], "acceptance_criteria", "id")]
    for i, criterion in enumerate(criteria):
        found += _empty_checks(criterion.verify, pointer("acceptance_criteria", i, "verify"))
        if not _CRITERION.fullmatch(criterion.id):
            message = f"`{short_name(criterion.id)}` is not an id like AC-001."
            hint = "Rename the criterion."
            found.append(warning("criterion-id", message, pointer("acceptance_criteria", i, "id"), hint=hint))
    return found
