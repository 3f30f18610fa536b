"""People who can start a job or step: its events, and whether someone without write access causes them.

A condition is read with the values that it has when an outsider acts: their pull request comes from a fork, and they
are not a member. A value that only GitHub knows is unknown, and so is what depends on it. Source: GitHub documentation,
"Events that trigger workflows" and "Contexts".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from accord.workflows.expressions import parse_condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.workflows.expressions import Node, Reference
    from accord.workflows.models import Job, Step, Workflow

PULLS = frozenset({"pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment"})
_OF_OTHERS = {
    "pull_request": PULLS, "number": PULLS, "review": {"pull_request_review"}, "issue": {"issues", "issue_comment"},
    "comment": {"issue_comment", "pull_request_review_comment", "discussion_comment", "commit_comment"},
    "discussion": {"discussion", "discussion_comment"}, "workflow_run": {"workflow_run"}, "pages": {"gollum"},
    "forkee": {"fork"},
}  # fmt: skip
"""The parts of an event that outsiders fill, and the events that have them."""

_PARTS = {
    **_OF_OTHERS, "inputs": {"workflow_dispatch"}, "client_payload": {"repository_dispatch"}, "release": {"release"},
    "head_commit": {"push"}, "commits": {"push"}, "check_run": {"check_run"}, "check_suite": {"check_suite"},
}  # fmt: skip
OUTSIDERS = frozenset[str]().union(*_OF_OTHERS.values())
"""Events that people without write access cause."""

STRANGERS = OUTSIDERS - {"pull_request", "pull_request_review", "pull_request_review_comment"}
"""Those whose runs have secrets and the repository's own token, also when the pull request comes from a fork."""

CALLED = "workflow_call"
"""Stands for the unknown event of a caller in another repository."""


class Special(Enum):
    """Values without a text: unknown ones, and names that differ from all that a workflow can be about to expect."""

    UNKNOWN = 0
    REPOSITORY = 1
    FORK = 2
    OUTSIDER = 3


class Actor(Enum):
    """The person who acts: a writer, an outsider, or an outsider for whom no writer labels, comments or approves."""

    WRITER = 0
    HELPED = 1
    ALONE = 2


Value = str | float | bool | tuple[str, ...] | Special | None
_U = Special.UNKNOWN
_STATUS = frozenset({"always", "failure", "cancelled"})
_CHECKS_PERSON = re.compile(
    r"getCollaboratorPermissionLevel|checkMembershipForUser|getMembershipFor|/collaborators/\S{1,200}?/permission"
    r"|/memberships/|author_association|authorAssociation"
)
_CHECKS_PERSON_ACTION = re.compile(r"permission|team-member|org(?:anization)?-member|check-membership", re.IGNORECASE)


@dataclass(frozen=True)
class Start:
    """How a workflow starts: by an event, directly or through the job of a workflow that calls it.

    A composite action starts through a step: ``step`` is its place below that job.
    """

    event: str
    caller: tuple[str, str] = ("", "")
    by: Start | None = None
    step: str = ""

    @property
    def paths(self) -> frozenset[str]:
        """The files on the way from the event to here."""
        return self.by.paths | {self.caller[0]} if self.by else frozenset()


def has_part(reference: Reference, event: str) -> bool:
    """Return whether ``github.event.NAME`` exists in an event, as far as the part is known."""
    return not reference[2:] or event in {*_PARTS.get(reference[2], {event}), CALLED}


def starts_of(path: str, files: Mapping[str, Workflow], seen: frozenset[str] = frozenset()) -> Iterator[Start]:
    """Yield every way to start a workflow; that of an unknown caller only if no workflow of the repository calls it."""
    workflow = files[path]
    yield from (Start(event) for event in workflow.events if event != CALLED)
    if CALLED in workflow.events:
        callers = [
            (other, job_id, place)
            for other, caller in files.items()
            for job_id, job in caller.jobs.items()
            for place in _calls_of(job, path)
            if other not in seen
        ]
        for other, job_id, place in callers:
            for start in starts_of(other, files, seen | {path}):
                if runs(files[other], job_id, start, Actor.WRITER):
                    yield Start(start.event, (other, job_id), start, place)
        if not callers:
            yield Start(CALLED)


def _calls_of(job: Job, path: str) -> Iterator[str]:
    """Yield the place of each step of a job that uses the action of a path; empty if the job calls that workflow."""
    if job.uses.startswith(("./", "$/")) and job.uses[2:] == path:
        yield ""
    yield from (step.place for step in job.steps if step.action and step.action == path)


def step_at(job: Job, place: str) -> Step:
    """Return the step of a job at a place."""
    return next(step for step in job.steps if step.place == place)


def reaches(files: Mapping[str, Workflow], path: str, job_id: str, start: Start, actor: Actor) -> bool:
    """Return whether a job may run, and the jobs and steps that call its workflow or action."""
    if start.by and not reaches(files, *start.caller, start.by, actor):
        return False
    if start.by and start.step:
        caller = files[start.caller[0]].jobs[start.caller[1]]
        if not runs_step(caller, step_at(caller, start.step), start.by, actor):
            return False
    return runs(files[path], job_id, start, actor)


def runs(workflow: Workflow, job_id: str, start: Start, actor: Actor, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a job of a workflow may run, with the jobs that it needs."""
    found = workflow.job(job_id)
    if found is None or found[0] in seen:
        return True
    name, job = found
    condition = parse_condition(job.condition)
    if condition and truth_of(condition, start.event, actor) is False:
        return False
    if condition and _calls(condition) & _STATUS:
        return True
    needed = [each for need in job.needs if (each := workflow.job(need))]
    if actor is Actor.ALONE and any(checks_person(step) for _, each in needed for step in each.steps):
        return False
    return all(runs(workflow, need, start, actor, seen | {name}) for need, _ in needed)


def runs_step(job: Job, step: Step, start: Start, actor: Actor) -> bool:
    """Return whether a step may run, if its job does."""
    condition = parse_condition(step.condition)
    if condition and truth_of(condition, start.event, actor) is False:
        return False
    earlier = job.steps[: job.steps.index(step)]
    return not (actor is Actor.ALONE and any(checks_person(before) for before in earlier))


def checks_person(step: Step) -> bool:
    """Return whether a step asks GitHub for the rights of a person."""
    texts = (*step.shell_texts, *(str(value) for value in step.given.values()))
    action = step.uses.partition("@")[0]
    return _CHECKS_PERSON_ACTION.search(action) is not None or any(_CHECKS_PERSON.search(text) for text in texts)


def _calls(node: Node) -> set[str]:
    own = {node.name} if node.kind == "call" else set()
    return own.union(*(_calls(part) for part in node.parts))


def truth_of(node: Node, event: str, actor: Actor) -> bool | None:
    """Return whether a condition holds for an event; None when that is not known."""
    match node.kind:
        case "not":
            found = truth_of(node.parts[0], event, actor)
            return None if found is None else not found
        case "and" | "or":
            decisive = node.kind == "or"
            parts = [truth_of(part, event, actor) for part in node.parts]
            return decisive if decisive in parts else (None if None in parts else not decisive)
        case "==" | "!=":
            first, second = (_value_of(part, event, actor) for part in node.parts)
            equal = _is_equal(first, second)
            return None if equal is None else equal == (node.kind == "==")
    value = _value_of(node, event, actor)
    if value is _U:
        return None
    return True if isinstance(value, Special) else bool(value)


def _is_equal(first: Value, second: Value) -> bool | None:
    pair = {first, second}
    if _U in pair:
        return None
    if first == second:
        return True
    if pair & {Special.FORK, Special.OUTSIDER}:
        return False
    if Special.REPOSITORY in pair:
        return None
    if isinstance(first, str) and isinstance(second, str):
        return first.lower() == second.lower()
    return None if isinstance(first, tuple) or isinstance(second, tuple) else bool(first) == bool(second) and not first


def _value_of(node: Node, event: str, actor: Actor) -> Value:
    match node.kind:
        case "literal":
            return node.value
        case "read":
            return _read(node.reference, event, actor)
        case "call":
            return _called(node, event, actor)
        case "not" | "==" | "!=":
            found = truth_of(node, event, actor)
            return _U if found is None else found
    return _U


def _called(node: Node, event: str, actor: Actor) -> Value:
    values = [_value_of(part, event, actor) for part in node.parts]
    match node.name, values:
        case (("success" | "always"), []):
            return True
        case "fromjson", [str(text)]:
            try:
                listed = json.loads(text)
            except (ValueError, RecursionError):
                return _U
            return tuple(str(item) for item in listed) if isinstance(listed, list) else _U
        case "contains", [tuple(listed), needle] if needle is not _U:
            return isinstance(needle, str) and needle.lower() in {item.lower() for item in listed}
        case "contains", [str(text), needle] if needle is not _U:
            return isinstance(needle, str) and needle.lower() in text.lower()
    return _U


def _read(reference: Reference, event: str, actor: Actor) -> Value:
    match reference:
        case ("github", "event_name"):
            return _U if event == CALLED else event
        case ("github", "repository" | "repository_owner") | ("github", "event", "repository", "full_name"):
            return Special.REPOSITORY
        case ("github", "head_ref" | "base_ref"):
            return _U if event in {"pull_request", "pull_request_target", CALLED} else ""
        case ("github", "event", *_) if not has_part(reference, event):
            return None
        case ("github", "event", *_) if actor is not Actor.WRITER:
            return _of_outsider(reference[2:], actor)
    return _U


_FORK = r"(?:pull_request\.head\.repo|workflow_run\.head_repository)"
_OF_OUTSIDER: Mapping[re.Pattern[str], Value] = {
    re.compile(rf"{_FORK}\.fork"): True,
    re.compile(rf"{_FORK}\.(?:owner\.)?(?:full_name|login|id|node_id|owner)"): Special.FORK,
    re.compile(r"(?:pull_request(?:\.head)?|issue|discussion)\.user\.login"): Special.OUTSIDER,
    re.compile(r"workflow_run\.event"): "pull_request",
    re.compile(r"(?:pull_request|issue|discussion)\.author_association"): "NONE",
    re.compile(r"pull_request\.merged"): False,
}
"""Values in the event of an outsider, by the name below ``github.event``."""

_OF_ALONE: Mapping[re.Pattern[str], Value] = {
    re.compile(r"(?:comment|review)\.author_association"): "NONE",
    re.compile(r"sender\.login|(?:comment|review)\.user\.login|label\.name"): Special.OUTSIDER,
    re.compile(r"(?:pull_request|issue)\.labels\.\*\.name"): (),
}
"""Values when no writer labels, comments or reviews."""


def _of_outsider(part: Reference, actor: Actor) -> Value:
    """Return the value of a part of an outsider's event. A writer's help counts unless they are alone."""
    rules = {**_OF_OUTSIDER, **(_OF_ALONE if actor is Actor.ALONE else {})}
    return next((value for pattern, value in rules.items() if pattern.fullmatch(".".join(part))), _U)
