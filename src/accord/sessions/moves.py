"""Moves of a session and of its tasks: the facts that judge them, and why one is refused. Pure.

Source: global agent contract, "Gates (hard blockers)", "Role boundaries" and "Task status lifecycle".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from posixpath import normpath
from typing import Any

from accord.core.clock import timestamp
from accord.core.documents import short_name
from accord.core.findings import Finding, finding_of, has_errors, pointer
from accord.core.suggest import did_you_mean
from accord.sessions import machine, reviews
from accord.sessions.decision_rules import check_gate, is_before, working_state
from accord.sessions.folder import OUTPUTS_FILE, STATUS_FILE, Session, status_of, status_value
from accord.sessions.models import GATES, LOOPS, OutputEntry, SessionStatus, SessionTask
from accord.sessions.policy import (
    READERS,
    WORK,
    artifacts_of,
    check_task,
    names_before,
    names_to_read,
    refuse,
    task_unknown,
)
from accord.sessions.rules import MOST_RETRIES

_WORDS = re.compile(r"[\w-]+")


def command_of(session: Session, name: str, *words: str) -> str:
    """Return the command line of ``accord session NAME`` or, for ``dispatch``, of ``accord dispatch``."""
    first = ["accord", "dispatch"] if name == "dispatch" else ["accord", "session", name]
    return shlex.join([*first, str(session.folder), *words])


def advance_command(session: Session, state: str) -> str:
    """Return the command that moves a session to a state."""
    return command_of(session, "advance", "--to", state, "--role", "Orchestrator")


def done_finding(session: Session) -> Finding:
    """Return why a session that is done takes no change, with what must be right before it is reopened."""
    move = machine.AttemptedMove(session, reopens=True)
    needs = " ".join(need.text for need in machine.needs_of("DONE", _reopened_state(session), move))
    hint = f"{f'{needs} Then reopen' if needs else 'Reopen'} it with `{command_of(session, 'reopen')}`."
    return Finding("session-done", "The session is done and read-only.", hint=hint)


def check_work(session: Session, role: str, task_id: str) -> Finding | None:
    """Return why an agent may not work on a task, or on ``meta``, in the session as it is; None where it may.

    The same rule stops its dispatch, its output, and the moves of its task.
    """
    if found := check_state(session, machine.WORK_STATES[role], f"{role} works"):
        return found
    task = session.task(task_id) if role == "Coder" else None
    if task and task.status == "completed" and not session.record.missed_gates(task_id):
        return Finding(
            "state-forbids", f"{task_id} is completed.", hint="Choose another task; a failed review reopens this one."
        )
    if task and (waits := ", ".join(session.waits_for(task))):
        return Finding("state-forbids", f"{task_id} depends on {waits}.", hint="Implement that first.")
    return check_fixes(session, role, task_id)


def entered_fixes(session: Session, role: str, task_id: str) -> dict[tuple[str, str], bool]:
    """Return the tasks and fix loops that new work of an agent enters, and whether they were counted for it already."""
    entered = session.fixed_loops(task_id, role)
    return {one: is_counted(status_of(session), session.outputs, role, task_id, one) for one in entered}


def is_counted(
    status: SessionStatus, outputs: Sequence[OutputEntry], role: str, task_id: str, fix: tuple[str, str]
) -> bool:
    """Return whether an entry of a task into a fix loop was counted before the new work of an agent that follows it."""
    entry = status.fix_entries.get(fix[0], {}).get(fix[1])
    if entry and not any(one.agent == role and one.task_id in (fix[0], "meta") for one in outputs[entry.outputs :]):
        return True
    is_inside = working_state(status) == fix[1] and status.fix_task in (None, fix[0], task_id)
    return is_inside and status.retries(*fix) not in (0, entry.count if entry else 0)  # another tool counted it


def spent_fix(session: Session, role: str, task_id: str) -> tuple[str, str] | None:
    """Return the task and the fix loop that new work of an agent would enter too often."""
    retries = status_of(session).retries
    entered = entered_fixes(session, role, task_id).items()
    return next((one for one, is_counted in entered if not is_counted and retries(*one) >= MOST_RETRIES), None)


def check_fixes(session: Session, role: str, task_id: str) -> Finding | None:
    """Return why an agent may not try once more to fix what failed; None where it may."""
    spent = spent_fix(session, role, task_id)
    if spent is None:
        return None
    message = f"{spent[0]} went through {spent[1]} {MOST_RETRIES} times, the limit."
    allowing = command_of(session, "set", f"retry_counts.{'.'.join(spent)}=0", "--role", "Orchestrator")
    is_next = is_decided(status_of(session), session.outputs, *spent)
    hint = f"To allow more, run `{allowing}`." if is_next else asking_hint(session, *spent)
    return Finding("retry-budget", message, hint=hint)


def asking_hint(session: Session, task: str, loop: str) -> str:
    """Return how to ask the user about a fix loop of a task."""
    asking = command_of(session, "ask", "--question", f"{task} {loop}: QUESTION")
    return f"Ask how to continue with `{asking}`, and record the answer."


def is_decided(status: SessionStatus, outputs: Sequence[OutputEntry], task_id: str, loop: str, until: str = "") -> bool:
    """Return whether the user answered a question about a fix loop of a task, asked since the last output about it.

    The question names both. Answers later than ``until`` do not count.
    """
    last = next((one.at for one in reversed(outputs) if one.task_id == task_id), "")
    decisions = [one for one in status.user_decisions if one.decision_id not in GATES and one.status == "answered"]
    known = (one for one in decisions if not (is_before(one.asked_at, last) or is_before(until, one.resolved_at or "")))
    return any({task_id, loop} <= {*_WORDS.findall(one.question)} for one in known)


def early_tasks(session: Session) -> list[str]:
    """Return the tasks on which work has started although the session is before the state for it.

    Where its state is not recorded, an open gate shows that.
    """
    if (status := session.status) is None:
        return []
    if state := working_state(status):
        is_early = not machine.is_at_least(state, "IMPLEMENT_LOOP", session.mode)
    else:
        is_early = session.mode == "full" and any(check_gate(status, name) for name in GATES)
    begun = ("in-progress", "implemented", "completed")
    return [task.id for task in session.plan if is_early and task.status in begun]


def open_fix(session: Session) -> tuple[str, str] | None:
    """Return the task of the fix loop that a session is in, and the agent that did not work on it since it began."""
    status = status_of(session)
    if status.current_state not in LOOPS or not (status.fix_task == "meta" or session.task(status.fix_task or "")):
        return None
    role = "Integrator" if status.current_state == "FIX_BUILD" else "Coder"
    return (status.fix_task, role) if status.fix_task and not check_work(session, role, status.fix_task) else None


def files_of_task(session: Session, task_id: str) -> list[str]:
    """Return the context files that the plan names for a task."""
    task = session.task(task_id)
    return [file.replace("<session>", session.name) for file in task.context_files] if task else []


def broken_files(session: Session, role: str, task_id: str) -> list[str]:
    """Return the files of the session that keep an agent from a task: broken ones that it reads, and missing ones.

    A missing file stops the roles that need it, once the session does. No role is kept from its artifacts by those that
    follow from them, so one of the writers can always go on.
    """
    status, before = status_of(session), names_before(role, session.mode)
    now, later = (machine.files_needed(state, session.mode) for state in (working_state(status), "DONE"))
    folder = f"{WORK}/{session.name}/"
    listed = map(normpath, files_of_task(session, task_id))
    of_task = (path.removeprefix(folder) for path in listed if path.startswith(folder))
    read = {*names_to_read(role, status.current_state), *of_task}
    needed = {name for name in now if role in READERS.get(name, ())}
    found = [name for name in later if name in (needed if session.parts[name].is_missing else read) and name in before]
    return [name for name in (STATUS_FILE, *found) if session.parts[name].problem]


def check_files(session: Session, role: str, task_id: str, changed: Collection[str] = ()) -> list[Finding]:
    """Find the missing and broken files without which an agent neither starts on a task nor counts with its OK.

    ``changed`` are files that it changed itself: it may have removed them.
    """
    parts = (session.parts[name] for name in broken_files(session, role, task_id))
    found = [finding_of("context-file-missing", part.problem) for part in parts]
    task = session.task(task_id)
    for path in sorted(session.missing.intersection(task.context_files if task else ()) - {*changed}):
        message = f"The context file `{short_name(path)}` does not exist."
        found.append(Finding("context-file-missing", message, hint="Write it, or correct the path in tasks.yaml."))
    return found


def broken_artifacts(session: Session, role: str) -> list[str]:
    """Return the problems of the files whose content an agent writes."""
    parts = (session.parts.get(name) for name in artifacts_of(role, session.mode))
    return [part.problem for part in parts if part and part.problem]


def check_state(session: Session, states: Sequence[str], what: str) -> Finding | None:
    """Return why the state of a session, an open gate that it passed, or an error of its status forbids work."""
    status = status_of(session)
    state = status.current_state
    if state == "DONE":
        return done_finding(session)
    if state not in states:
        message = f"The session is in {state}, but {what} only in {', '.join(states)}."
        back = advance_command(session, status.blocked_from or "STATE")
        hints = {
            "ASK_USER": f"Record the answers, then go on with `{command_of(session, 'resume', '--apply')}`.",
            "BLOCKED": f"Resolve what blocks it, then return with `{back}`.",
            **dict.fromkeys(machine.INTEGRATION, "Only an open task or a failed review leads back to the tasks."),
        }
        hint = hints.get(state, "Advance the session first.")
        return Finding("state-forbids", message, "/current_state", hint=hint)
    for decision_id in machine.gates_before(state, session.mode):
        if reason := check_gate(status, decision_id):
            message = f"The session is in {state}, but {reason}"
            return Finding("gate-open", message, "/user_decisions", hint=gate_hint(session, decision_id))
    errors = (one for one in session.parts[STATUS_FILE].findings if has_errors([one]))
    return next((replace(one, path=pointer(STATUS_FILE) + one.path) for one in errors), None)


def gate_hint(session: Session, decision_id: str) -> str:
    """Return how to get the answer of a gate that a session passed without it; questions that wait come first."""
    waiting = [one.decision_id for one in status_of(session).pending]
    answering = command_of(session, "answer", *(f"{name}=ANSWER" for name in waiting))
    first = f"Record what the user says with `{answering}`. " if waiting else ""
    way = f"Go back with `{advance_command(session, GATES[decision_id])}`, which asks the user."
    return first.strip() if decision_id in waiting else first + way


def status_in(
    session: Session, target: str, *, task: str = "", blocker: str = "", reopens: bool = False
) -> dict[str, Any]:
    """Return ``status.json`` after a move to a state; unchanged when the session is there already.

    ``task`` is the one that a fix loop is for and counted on, unless it waits there for its work already; ``blocker``
    is why the session is blocked. Raises BrokenContract with ``illegal-move`` when the machine forbids the move.
    """
    value = status_value(session)
    source = str(value["current_state"])
    if source == target and (target not in LOOPS or value.get("fix_task") == task):
        return {**value, "blocker": blocker} if target == "BLOCKED" and blocker else value
    if target in LOOPS and task:
        check_task(session.tasks, task)
    if texts := _refusals(source, target, machine.AttemptedMove(session, task, blocker, reopens)):
        findings = [finding_of("illegal-move", text, "/current_state") for text in texts]
        raise refuse(f"The session stays in {source}.", findings)
    value["current_state"] = target
    if source == "BLOCKED":
        value.pop("blocked_from", None)
        value.pop("blocker", None)
    if target == "BLOCKED":
        value.update(blocked_from=source, blocker=blocker.strip())
    if source == "INTAKE_LEAN":
        value.setdefault("mode", "lean")
    if target not in (*LOOPS, "ASK_USER", "BLOCKED"):
        value.pop("fix_task", None)
    if target in LOOPS and source not in ("ASK_USER", "BLOCKED"):
        failed = session.fixed_loops(task, "Coder")
        value = with_fixes(
            session, value, dict.fromkeys([(task, target), *(one for one in failed if one[1] == target)], False)
        )
        value["fix_task"] = task
    return value


def with_fixes(session: Session, value: dict[str, Any], entered: Mapping[tuple[str, str], bool]) -> dict[str, Any]:
    """Return ``status.json`` with the entries of these tasks into their fix loops, each counted unless it was."""
    for (task, loop), is_counted in entered.items():
        counts = value["retry_counts"].setdefault(task, {})
        counts[loop] = counts.get(loop, 0) + (not is_counted)
        entry = {"outputs": len(session.outputs), "count": counts[loop]}
        value.setdefault("fix_entries", {}).setdefault(task, {})[loop] = entry
    return value


def _refusals(source: str, target: str, move: machine.AttemptedMove) -> list[str]:
    """Return what a move needs; for a move that the machine does not have, those that need only its arguments."""
    states = machine.MACHINES[move.session.mode]
    targets = states.targets(source)
    if target in targets:
        return [need.text for need in machine.needs_of(source, target, move)]
    if target not in states.states:
        return [states.refusal(source, target, move)]
    named = machine.AttemptedMove(move.session, "meta", target)
    open_needs = ((one, {need.key for need in machine.needs_of(source, one, named)}) for one in targets)
    legal = ", ".join(one for one, keys in open_needs if keys <= {"question"}) or "none yet"
    return [f'"{source}" does not lead to "{target}". Legal moves from "{source}": {legal}.']


def reopened_status(session: Session, *, now: datetime) -> dict[str, Any]:
    """Return ``status.json`` of a session that was done, back in IMPLEMENT_LOOP, where it may be already.

    A session that passed a gate without its answer goes back to that gate.
    """
    status = status_of(session)
    state = status.current_state
    if state not in ("DONE", "IMPLEMENT_LOOP"):
        message = f"Only a session in DONE can be reopened. This one is in {state}."
        finding = Finding("illegal-move", message, "/current_state", hint="Continue with it.")
        raise refuse("The session is not done.", finding)
    value = status_in(session, _reopened_state(session), reopens=True)
    return {**value, "reopened_at": timestamp(now)} if state == "DONE" else value


def _reopened_state(session: Session) -> str:
    return next(map(GATES.__getitem__, machine.passed_open(session)), "IMPLEMENT_LOOP")


def check_task_move(session: Session, name: str, target: str, role: str, *, waives: bool = False) -> Finding | None:
    """Return why the state, the lifecycle, the role or a missing review forbids a move of a task; None if none."""
    task = session.task(name)
    if waives and role != "Orchestrator":
        return waiver_forbidden(role)
    if task is None:
        return task_unknown(session.tasks, name)
    if target not in reviews.TASK.states:
        hint = did_you_mean(target, reviews.TASK.states) or f"Use one of {', '.join(reviews.TASK.states)}."
        return Finding("illegal-move", f"{name}: Unknown status `{short_name(target)}`.", hint=hint)
    if target == task.status and not waives:
        return None
    if found := check_state(session, machine.IMPLEMENTATION, "tasks move"):
        return found
    outputs, facts = session.parts[OUTPUTS_FILE], task_facts(session, task, role, waives=waives)
    loops = unaccepted_loops(name, session.record, [status_of(session)]) if waives and target == "completed" else []
    failed = [reviews.LOOP_OF.get(one, "") for one in session.record.failed_reviews(task.id)]
    decided = (is_decided(status_of(session), session.outputs, task.id, loop) for loop in failed)
    is_accepted = waives and target == "completed" and task.status == "blocked" and bool(failed) and all(decided)
    source = "implemented" if is_accepted else task.status
    reason = reviews.TASK.refusal(source, target, facts) if target != source else ""
    if loops and not reason:
        message = f"{name} did not pass {' and '.join(loops)}, and the user has not accepted that since."
        return Finding("illegal-move", message, hint=asking_hint(session, name, loops[0]))
    if not reason and target == "completed" and not outputs.is_missing and outputs.problem:
        reason = f"The reviews cannot be read, so it is unknown which passed. {outputs.problem}"
    return finding_of("illegal-move", f"{task.id}: {reason}") if reason else None


def unaccepted_loops(task_id: str, record: reviews.ReviewRecord, statuses: Sequence[SessionStatus]) -> list[str]:
    """Return the fix loops of reviews that only the user waives, and did not: BLOCKED, or FAIL after the last fix.

    New work of the Coder does not end a BLOCKED. A loop is spent if it is in each of ``statuses``; the last one has the
    decisions.
    """
    last, results, found = record.last_statuses[task_id], record.results[task_id], list[str]()
    for role, loop in reviews.LOOP_OF.items():
        is_spent = all(one.retries(task_id, loop) >= MOST_RETRIES for one in statuses)
        is_grave = last.get(role) == "BLOCKED" or (results.get(role) == "FAIL" and is_spent)
        is_open = is_grave and not is_decided(statuses[-1], [*record.last.values()], task_id, loop)
        found += [loop] if is_open else []
    return found


def waiver_forbidden(role: str) -> Finding:
    """Return the finding for a waiver that is not the Orchestrator's."""
    hint = "Pass `--role Orchestrator` if you act for it."
    return Finding("role-forbidden", f"Only the Orchestrator waives reviews, not {role}.", hint=hint)


def task_facts(session: Session, task: SessionTask, role: str, *, waives: bool = False) -> reviews.TaskFacts:
    """Gather the facts for a move of a task by a role."""
    return reviews.TaskFacts(role, session.waits_for(task), session.record.open_gates(task.id), waives)
