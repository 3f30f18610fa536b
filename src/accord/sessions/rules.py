"""What the shape of a session's documents cannot say, each document by itself. All pure.

Source: global agent contract; the sections are named at each rule. What concerns several documents at once is in
``accord.sessions.folder_rules``.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, get_args

from accord.core.documents import shown
from accord.core.findings import Finding, pointer, warning
from accord.core.graph import find_cycle
from accord.sessions.models import APPROVE_DESIGN, GATES, LOOPS, REVIEW_STRATEGY, ROLES, RiskFlag
from accord.sessions.moments import moment_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from accord.sessions.models import (
        Acceptance,
        AgentInput,
        AgentOutput,
        OpenModel,
        SessionStatus,
        SessionTasks,
        UserDecision,
    )

MOST_RETRIES = 3
"""A loop of fixes is entered at most so often for one task; then the user is asked."""

SECURITY = "security"
"""The category of questions that only the user may resolve."""

NO_RESPONSE = "no response provided"
"""The reason of a decision that nobody answered."""

STATUS_OF_ONE_ROLE = {"NEEDS_INFO": "Researcher", "NEEDS_DECISION": "Security"}

_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_APPROVED = re.compile(r"approved(?![\w-])")
_CHANGES = re.compile(r"changes-requested:\s*\S")
_STRATEGIES = frozenset({"per-batch", "single-final"})
_CHECK = re.compile(r"(cmd|manual):\s*\S")
_SESSION_NAME = re.compile(r"(\d{4}-\d\d-\d\d)_[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_CRITERION = re.compile(r"AC-[0-9]{3,}")
_SILENCE = re.compile(
    r"(((no|without|missing)( user)?|(the )?user (gave|sent|made) no)[ -](response|answer|reply)"
    r"|(the )?user (did not|didn.t|never) (respond|responded|answer|answered|reply|replied)"
    r"|unanswered|not answered|time(d )?-?out|none|n/?a)"
    r"( (was |has been )?(provided|given|received|made|yet|from the user))*"
)
_STATUS_KEYS = frozenset({"tasks", "task_status", "task_statuses", "tasks_status"})


def input_findings(given: AgentInput, role: str = "") -> list[Finding]:
    """Check what an agent is given ("Universal Input JSON"); ``role`` is the agent that it is for, where known."""
    role = role or given.agent or _said_role(given)
    return [
        *_changed_files(given, role),
        *_checks(given.task.acceptance_checks, "/task/acceptance_checks"),
        *_relative(given.task.context_files, "/task/context_files"),
        *_relative([file.path for file in given.task.session_changed_files], "/task/session_changed_files"),
        *_risk_flags(given.task.risk_flags, "/task/risk_flags"),
    ]


def _said_role(document: OpenModel) -> str:
    """Read the role that an open document names under a key of its own, if it is a canonical name."""
    extra = document.model_extra or {}
    dispatch = extra.get("dispatch")
    said: list[Any] = [extra.get("role"), dispatch.get("agent") if isinstance(dispatch, dict) else None]
    return next((name for name in said if isinstance(name, str) and name in ROLES), "")


def _changed_files(given: AgentInput, role: str) -> Iterator[Finding]:
    place = "/task/session_changed_files"
    files = given.task.session_changed_files
    if role == "Reviewer" and not files:
        message = "A Reviewer must be told what the session changed. List the changed files."
        yield Finding("changed-files-missing", message, place)
    if files and role not in ("", "Reviewer"):
        message = f"Only the Reviewer is told what the session changed; {role} is not. Leave the list out."
        yield warning("changed-files-unexpected", message, place)
    for i, file in enumerate(files):
        if file.change_type == "renamed" and not (file.old_path or "").strip():
            message = "A renamed file needs the path that it had before. Add old_path."
            yield Finding("old-path-missing", message, place + pointer(i, "old_path"))


def _relative(paths: Sequence[str], place: str) -> Iterator[Finding]:
    for i, path in enumerate(paths):
        if not is_inside(path):
            message = "The path is empty or leads out of the repository. Write it relative to the repository's root."
            yield Finding("path-outside", message, place + pointer(i))


def is_inside(path: str) -> bool:
    """Tell whether a path is one below the repository's root: relative, without a way up."""
    posix, windows = PurePosixPath(path), PureWindowsPath(path)
    is_absolute = posix.is_absolute() or bool(windows.anchor) or path.startswith("~")
    return bool(path.strip()) and not is_absolute and ".." not in windows.parts and "\0" not in path


def _checks(checks: Sequence[str], place: str) -> Iterator[Finding]:
    for i, check in enumerate(checks):
        if not _CHECK.match(check):
            message = 'The check says neither "cmd: …" nor "manual: …", so nobody knows who checks it. Begin it so.'
            yield warning("check-form", message, place + pointer(i))


def _risk_flags(flags: Sequence[str], place: str) -> Iterator[Finding]:
    if "none" in flags and len(set(flags)) > 1:
        yield warning("risk-flags-contradict", '"none" stands beside other flags. Keep one of them.', place)


def output_findings(output: AgentOutput, role: str = "") -> list[Finding]:
    """Check what an agent gives back ("Universal Output JSON"); ``role`` is the agent that spoke, where known."""
    role = role or output.agent or _said_role(output)
    found = []
    only = STATUS_OF_ONE_ROLE.get(output.status)
    if only and not role:
        message = f"{output.status} is for {only} only, and the output does not say who speaks. Check it with the role."
        found.append(warning("status-role-unknown", message, "/status"))
    elif only and role != only:
        own = "".join(f"{status}, " for status, other in STATUS_OF_ONE_ROLE.items() if other == role)
        message = f"{output.status} is for {only} only; {role} returns OK, {own}BLOCKED or FAIL."
        found.append(Finding("status-of-other-role", message, "/status"))
    if len(_SENTENCE_END.findall(output.summary)) > 3:
        found.append(warning("summary-long", "The summary has more than three sentences. Shorten it.", "/summary"))
    return found


def status_findings(status: SessionStatus) -> list[Finding]:
    """Check ``status.json`` ("status.json - minimal schema", "ASK_USER protocol")."""
    return [
        *session_name_findings(status.session, "/session"),
        *_moments(status),
        *_decisions(status.user_decisions),
        *_retries(status),
        *_state(status),
        *_duplicated_task_status(status),
    ]


def session_name_findings(name: str, path: str = "") -> Iterator[Finding]:
    """Check the name of a session or of its folder: a date that exists, and a slug."""
    match = _SESSION_NAME.match(name)
    try:
        is_fine = bool(match and date.fromisoformat(match.group(1)))
    except ValueError:
        is_fine = False
    if not is_fine:
        message = f'The session is named "{shown(name)}". Name it YYYY-MM-DD_short-slug.'
        yield Finding("session-name", message, path)


def _moments(status: SessionStatus) -> Iterator[Finding]:
    yield from moment_findings(status.last_update, "/last_update")
    for i, decision in enumerate(status.user_decisions):
        yield from moment_findings(decision.asked_at, pointer("user_decisions", i, "asked_at"))
        yield from moment_findings(decision.resolved_at, pointer("user_decisions", i, "resolved_at"))
    if status.runtime_flags:
        yield from moment_findings(status.runtime_flags.copilot_checked_at, "/runtime_flags/copilot_checked_at")
    approval = status.gate_tracking.approve_design if status.gate_tracking else None
    if approval and approval.last_correction_dispatch:
        place = "/gate_tracking/APPROVE_DESIGN/last_correction_dispatch/at"
        yield from moment_findings(approval.last_correction_dispatch.at, place)


def _decisions(decisions: Sequence[UserDecision]) -> Iterator[Finding]:
    for i in _repeated(decision.decision_id for decision in decisions):
        message = f"{decisions[i].decision_id} is there twice. A gate's question is asked again in its one entry; "
        yield Finding("decision-repeated", message + "any other has a number of its own.", pointer("user_decisions", i))
    for i, decision in enumerate(decisions):
        place = pointer("user_decisions", i)
        yield from _record(decision, place)
        yield from _context(decision, place)
        yield from _gate_answer(decision, place)


def _repeated(names: Iterable[str]) -> Iterator[int]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield i
        seen.add(name)


def _record(decision: UserDecision, place: str) -> Iterator[Finding]:
    """Decision record validity rules."""
    if decision.status == "pending":
        for key in ("answer", "resolved_at", "resolution_reason"):
            if getattr(decision, key) is not None:
                message = f"A decision that is pending has no {key} yet. Set it to null, or resolve the decision."
                yield Finding("decision-record", message, f"{place}/{key}")
        return
    if decision.resolved_at is None:
        message = f"A decision that is {decision.status} says when. Set resolved_at."
        yield Finding("decision-record", message, f"{place}/resolved_at")
    if decision.status == "answered":
        if not (decision.answer or "").strip():
            message = "An answered decision has an answer. Write it, or set the decision back to pending."
            yield Finding("decision-record", message, f"{place}/answer")
    elif not (decision.resolution_reason or "").strip():
        message = f"A decision that is {decision.status} says why. Write a resolution_reason."
        yield Finding("decision-record", message, f"{place}/resolution_reason")
    elif (
        decision.status == "cancelled"
        and is_about_security(decision.category)
        and is_silence(decision.resolution_reason or "")
    ):
        message = "A question about security is never cancelled because nobody answered. Ask it again."
        yield Finding("security-cancelled", message, f"{place}/resolution_reason")


def is_about_security(category: str | None) -> bool:
    """Tell whether a question is one that only the user may resolve."""
    return (category or "").strip().lower() == SECURITY


def is_silence(reason: str) -> bool:
    """Tell whether the reason of a cancelled decision says only that nobody answered."""
    return bool(_SILENCE.fullmatch(" ".join(reason.lower().split()).strip(".!- ")))


def _context(decision: UserDecision, place: str) -> Iterator[Finding]:
    gate = GATES.get(decision.decision_id)
    if gate and decision.state_context != gate:
        message = f"{decision.decision_id} belongs to the gate {gate}. Set state_context to that."
        yield Finding("decision-context", message, f"{place}/state_context")
    elif decision.state_context in ("ASK_USER", "BLOCKED", "DONE"):
        message = f"{decision.state_context} is no state to return to. Name the state that was active before."
        yield Finding("decision-context", message, f"{place}/state_context")


def _gate_answer(decision: UserDecision, place: str) -> Iterator[Finding]:
    if decision.status != "answered" or not decision.answer:
        return
    if decision.decision_id == APPROVE_DESIGN and not (is_approval(decision.answer) or asks_changes(decision.answer)):
        message = 'The answer begins with "approved", or with "changes-requested:" and what to change. Ask again.'
        yield Finding("gate-answer", message, f"{place}/answer")
    if decision.decision_id == REVIEW_STRATEGY and decision.answer not in _STRATEGIES:
        message = 'The answer is "per-batch" or "single-final". Write one of these, or ask again.'
        yield Finding("gate-answer", message, f"{place}/answer")


def is_approval(answer: str) -> bool:
    """Tell whether an answer approves the design: the word ``approved``, and anything behind it."""
    return bool(_APPROVED.match(answer))


def asks_changes(answer: str) -> bool:
    """Tell whether an answer asks for changes of the design, and says which."""
    return bool(_CHANGES.match(answer))


def passes_gate(decision_id: str, answer: str) -> bool:
    """Tell whether an answer lets a session pass the gate that it was asked at."""
    return is_approval(answer) if decision_id == APPROVE_DESIGN else answer in _STRATEGIES


def _retries(status: SessionStatus) -> Iterator[Finding]:
    for task, counts in status.retry_counts.items():
        for loop in LOOPS:
            if counts.of(loop) > MOST_RETRIES:
                message = f"{shown(task)} went into {loop} more than {MOST_RETRIES} times. Ask the user what to do."
                yield Finding("retry-budget", message, pointer("retry_counts", task, loop))


def _state(status: SessionStatus) -> Iterator[Finding]:
    state = status.current_state
    if status.mode and state in {"lean": FULL_ONLY, "full": LEAN_ONLY}[status.mode]:
        message = f"A {status.mode} session has no state {state}. Correct mode or current_state."
        yield Finding("mode-state", message, "/current_state")
    if state == "BLOCKED" and status.blocked_from is None:
        message = (
            "The session is blocked, and nothing says where it goes on afterwards. Set blocked_from to that state."
        )
        yield warning("blocked-from", message, "/current_state")
    if status.blocked_from in ("BLOCKED", "DONE"):
        message = f"{status.blocked_from} is no state to return to. Name the state that was active before."
        yield Finding("blocked-from-invalid", message, "/blocked_from")
    if state == "ASK_USER" and not status.user_decisions:
        message = "The user is to be asked, and there is no question. Write one to user_decisions first."
        yield Finding("question-missing", message, "/user_decisions")
    asks = {"ASK_USER", "BLOCKED", *GATES.values()}
    for i, decision in enumerate(status.user_decisions if state not in asks else ()):
        if decision.status == "pending":
            message = f"{decision.decision_id} is pending, but the session went on to {state}. Resolve it first."
            yield Finding("decision-left", message, pointer("user_decisions", i, "status"))


FULL_ONLY = frozenset({"INTAKE", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY", "RELEASE"})
LEAN_ONLY = frozenset({"INTAKE_LEAN"})


def _duplicated_task_status(status: SessionStatus) -> Iterator[Finding]:
    for key in sorted(_STATUS_KEYS & set(status.model_extra or {})):
        message = "What becomes of tasks is kept in tasks.yaml alone. Remove the key."
        yield Finding("task-status-duplicated", message, pointer(key))


def tasks_findings(tasks: SessionTasks) -> list[Finding]:
    """Check ``tasks.yaml``: ids, dependencies, checks."""
    found = []
    for i in _repeated(task.id for task in tasks.tasks):
        message = f"{tasks.tasks[i].id} is there twice. Give one of the two another id."
        found.append(Finding("task-repeated", message, pointer("tasks", i, "id")))
    found += _dependencies(tasks)
    for i, task in enumerate(tasks.tasks):
        found += _checks(task.acceptance_checks, pointer("tasks", i, "acceptance_checks"))
        found += _relative(task.context_files, pointer("tasks", i, "context_files"))
        found += _risk_flags(task.risk_flags, pointer("tasks", i, "risk_flags"))
        found += _known_flags(task.risk_flags, pointer("tasks", i, "risk_flags"))
    return found


def _known_flags(flags: Sequence[str], place: str) -> Iterator[Finding]:
    for i, flag in enumerate(flags):
        if flag not in get_args(RiskFlag):
            message = f'"{shown(flag)}" is no flag that agents know: {", ".join(get_args(RiskFlag))}.'
            yield warning("risk-flag-unknown", message, place + pointer(i))


def _dependencies(tasks: SessionTasks) -> Iterator[Finding]:
    position = {task.id: i for i, task in enumerate(tasks.tasks)}
    for i, task in enumerate(tasks.tasks):
        for name in task.depends_on:
            if name not in position:
                message = f'{task.id} waits for "{shown(name)}", which is no task. Correct the id.'
                yield Finding("dependency-unknown", message, pointer("tasks", i))
    waits = {i: [position[name] for name in task.depends_on if name in position] for i, task in enumerate(tasks.tasks)}
    if cycle := find_cycle(waits):
        names = " → ".join(tasks.tasks[i].id for i in [*cycle, cycle[0]])
        message = f"Tasks wait for each other in a circle: {names}. Remove one of these dependencies."
        yield Finding("dependency-cycle", message, pointer("tasks", cycle[0]))


def acceptance_findings(acceptance: Acceptance) -> list[Finding]:
    """Check ``acceptance.json``: every criterion has an id of its own."""
    criteria = acceptance.acceptance_criteria
    found = []
    for i in _repeated(criterion.id for criterion in criteria):
        message = f"{shown(criteria[i].id)} is there twice. Give one of the two another id."
        found.append(Finding("criterion-repeated", message, pointer("acceptance_criteria", i, "id")))
    for i, criterion in enumerate(criteria):
        if not _CRITERION.fullmatch(criterion.id):
            message = f'"{shown(criterion.id)}" is no id that everybody knows as one. Name criteria AC-001, AC-002, …'
            found.append(warning("criterion-id", message, pointer("acceptance_criteria", i, "id")))
    return found
