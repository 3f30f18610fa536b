"""Trust in a run: the people who can start a job or step.

A condition is read with the values that it has when an outsider acts: their pull request comes from a fork, and they
are not a member. Values of GitHub alone are unknown. Source: GitHub documentation, "Events that trigger workflows",
"Webhook events and payloads" and "Contexts".
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from types import EllipsisType, MappingProxyType
from typing import Any

from accord.core.findings import pointer
from accord.core.frozen import Frozen
from accord.workflows.expressions import Node, Reference, parse_condition
from accord.workflows.models import MOST_LEVELS, Job, Step, Workflow

PULLS = frozenset({"pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment"})
_PARTS = {
    "pull_request": PULLS, "number": PULLS, "review": {"pull_request_review"}, "issue": {"issues", "issue_comment"},
    "comment": {"issue_comment", "pull_request_review_comment", "discussion_comment", "commit_comment"},
    "discussion": {"discussion", "discussion_comment"}, "workflow_run": {"workflow_run"}, "pages": {"gollum"},
    "forkee": {"fork"}, "inputs": {"workflow_dispatch"}, "client_payload": {"repository_dispatch"},
    "release": {"release"}, "head_commit": {"push"}, "commits": {"push"}, "check_run": {"check_run"},
    "check_suite": {"check_suite"},
}  # fmt: skip
"""Parts of an event, and the events that have them."""

OUTSIDERS = PULLS | {
    "issues", "issue_comment", "discussion", "discussion_comment", "commit_comment", "workflow_run", "gollum", "fork",
    "watch",
}  # fmt: skip
"""Events that people without write access cause."""

STRANGERS = OUTSIDERS - {"pull_request", "pull_request_review", "pull_request_review_comment"}
"""Those whose runs have secrets and the repository's own token, also when the pull request comes from a fork."""

_ACTION = re.compile("(?!(?:(?:un)?(?:assigned|labeled|locked|pinned|typed)|(?:de)?milestoned|transferred)$).*")
"""Types of these events that outsiders cause; the others need triage rights, or the labels of an issue form."""

CALLED = "workflow_call"
"""Stands for the unknown event of a caller in another repository."""


_MOST_WAYS = 500


class Actor(IntEnum):
    """The person who acts: a writer, an outsider, or an outsider for whom no writer labels, comments or approves.

    An opener and a starter start the run alone, a starter at an item that a writer may have opened or labelled before.
    They do not reach jobs whose conditions read outputs of other jobs, which may have asked who it is.
    """

    WRITER = 0
    HELPED = 1
    ALONE = 2
    OPENER = 3
    STARTER = 4


class Start(Frozen):
    """An event that starts a file, and what that calls by ``calls``: the calling jobs and the files that have them."""

    event: str
    path: str
    calls: tuple[tuple[str, str], ...] = ()


def starts_of(path: str, files: Mapping[str, Workflow]) -> Iterator[Start]:
    """Yield every way to start a workflow; that of an unknown caller only if no workflow of the repository calls it.

    Of files that call one another in very many ways, the first count.
    """
    waiting, left = [Start(CALLED, path)], _MOST_WAYS
    while waiting:
        at = waiting.pop()
        events, below = files[at.path].events, {path, *(name for name, _ in at.calls[1:])} if at.calls else set()
        yield from (replace(at, event=event) for event in events if event != CALLED)
        callers = [
            Start(CALLED, other, ((other, job_id), *at.calls))
            for other, workflow in files.items()
            for job_id, job in workflow.jobs.items()
            if CALLED in events and len(at.calls) < MOST_LEVELS and other not in below
            if job.uses in {f"./{at.path}", f"$/{at.path}"}
        ]
        if CALLED in events and not callers:
            yield at
        waiting += reversed(callers[:left])
        left = max(0, left - len(callers))


def starts_of_strangers(path: str, files: Mapping[str, Workflow]) -> list[Start]:
    """Return the ways in which strangers start a workflow: not by a ``workflow_run`` that only follows others."""
    starts = [start for start in dict.fromkeys(starts_of(path, files)) if start.event in STRANGERS]
    own = {each.name for each in files.values() if not {*each.events} & {*OUTSIDERS, CALLED}}
    after = {start: {*files[start.path].filter_values("workflow_run", "workflows")} for start in starts}
    return [start for start in starts if start.event != "workflow_run" or not after[start] or after[start] - own]


class RunPlace(Frozen):
    """A job or step in a workflow that started in one way."""

    files: Mapping[str, Workflow]
    path: str
    start: Start
    job_id: str
    step: Step | None = None

    @property
    def workflow(self) -> Workflow:
        """The workflow."""
        return self.files[self.path]

    @property
    def job(self) -> Job:
        """The job."""
        return self.workflow.jobs[self.job_id]

    @property
    def pointer(self) -> str:
        """The JSON pointer of the job or step in its file, which is that of the action for a step in one."""
        place, file = (self.step.place, self.step.file) if self.step else ("", "")
        return ("/runs" if file else pointer("jobs", self.job_id)) + place

    @property
    def token_permissions(self) -> tuple[dict[str, str] | str | None, str]:
        """The permissions of the job's token and the file that declares them, which may be that of a caller.

        None if no file does. Source: GitHub documentation, "Reusing workflows" (a called workflow keeps its caller's).
        """
        for path, job_id in ((self.path, self.job_id), *reversed(self.start.calls)):
            declared = self.files[path].permissions_of(self.files[path].jobs[job_id])
            if declared is not None:
                return declared, path
        return None, ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The step after those whose actions it is in; none for a job."""
        return (*self.step.users, self.step) if self.step else ()

    @property
    def environments(self) -> Iterator[tuple[RunPlace, dict[str, Any]]]:
        """The variables that the step gets, the innermost first: of its steps, the job and the workflow."""
        levels: list[tuple[Step | None, object]] = [(step, step.env) for step in reversed(self.steps)]
        levels += [(None, self.job.env), (None, self.workflow.env)]
        return ((replace(self, step=step), env) for step, env in levels if isinstance(env, dict))

    @property
    def earlier(self) -> Iterator[Step]:
        """The steps of the job before this one; none for a job."""
        route = self.step.route if self.step else None
        return itertools.takewhile(lambda each: route not in (None, each.route), self.job.nested_steps())

    def is_reached_by(self, actor: Actor) -> bool:
        """Return whether the event of this person may get to the job or step."""
        event = self.start.event
        types = self.files[self.start.path].filter_values(event, "types")
        of_others = {each for each in types if _ACTION.fullmatch(each)}
        if actor is Actor.STARTER and types and of_others <= {"opened"}:
            actor = Actor.OPENER
        jobs = [(self.files[path], job_id) for path, job_id in (*self.start.calls, (self.path, self.job_id))]
        runs = all(_runs(workflow, job_id, event, actor) for workflow, job_id in jobs)
        if not runs or any(is_off(step.condition, event, actor) for step in self.steps):
            return False
        if actor < Actor.ALONE:
            return True
        is_gated = any((workflow.jobs[job_id].model_extra or {}).get("environment") for workflow, job_id in jobs)
        return not (is_gated or (types and not of_others) or any(map(checks_person, (*self.earlier, *self.steps))))


# Conditions


ExpressionValue = str | float | bool | tuple[str, ...] | re.Pattern[str] | EllipsisType | None
"""A value of an expression; a pattern stands for the texts that an unknown one may be."""

Known = Mapping[Reference, ExpressionValue]

_U = ...
_OTHER = re.compile("(?!)")
"""A name that differs from all that a workflow can be about to expect."""

_REPOSITORY = re.compile(".*")
_ASSOCIATION = re.compile("none|contributor|first_time_contributor|first_timer|mannequin")
"""``author_association`` of people without write access: a contributor has had a pull request merged."""

_STATUS = frozenset({"always", "failure", "cancelled"})
_CHECKS_PERSON = re.compile(
    r"getCollaboratorPermissionLevel|checkMembershipForUser|getMembershipFor|/collaborators/\S{1,200}?/permission"
    r"|/memberships/|author_association|authorAssociation|isCrossRepository|check_membership"
    r"|\bhead\.repo\??\.(?:(?:full_name|owner\.login|id)\s{0,9}[!=]=|fork\b)"
    r"|\Auses \S*(?i:permission|team-member|org(?:anization)?-member|check-membership)"
)
"""A script or an action asks for the rights of a person, or whether a pull request comes from a fork."""


def _runs(workflow: Workflow, job_id: str, event: str, actor: Actor) -> bool:
    """Return whether a job of a workflow may run, with the jobs that it needs."""
    wanted, seen = [job_id], set[str]()
    for wanted_id in wanted:
        name, job = workflow.job(wanted_id) or ("", None)
        if job is None or name in seen:
            continue
        seen.add(name)
        condition = parse_condition(job.condition)
        asks = actor > Actor.ALONE and condition and any(ref[::2] == ("needs", "outputs") for ref in condition.reads)
        if asks or is_off(job.condition, event, actor):
            return False
        if condition and condition.calls & _STATUS:
            continue
        needed = [each[1] for need in job.needs if (each := workflow.job(need))]
        if actor >= Actor.ALONE and any(checks_person(step) for each in needed for step in each.steps):
            return False
        wanted += job.needs
    return True


def checks_person(step: Step) -> bool:
    """Return whether a step asks GitHub for the rights of a person."""
    texts = (f"uses {step.uses.partition('@')[0]}", *step.shell_texts, *map(str, step.given.values()))
    return any(_CHECKS_PERSON.search(text) for text in texts)


def is_off(condition: object, event: str, actor: Actor, known: Known = MappingProxyType({})) -> bool:
    """Return whether a condition is surely false, also by the ``known`` values of references."""
    return not value_of(condition, event, actor, known)


def value_of(text: object, event: str, actor: Actor, known: Known) -> ExpressionValue:
    """Return the value of a whole expression; an ellipsis stands for an unknown one."""
    return _value_of(parsed, event, actor, known) if (parsed := parse_condition(text)) else _U


def _value_of(node: Node, event: str, actor: Actor, known: Known) -> ExpressionValue:
    """Return the value of an expression for the event of a person; of ``and`` and ``or`` also whether it is true."""
    parts = [_value_of(part, event, actor, known) for part in node.parts]
    match node.kind, parts:
        case "literal", _:
            return node.value
        case "read", _:
            return known[node.reference] if node.reference in known else _read(node.reference, event, actor)
        case "not", [value]:
            return value if value is _U else not value
        case (("and" | "or"), _):
            decisive = node.kind == "or"
            found = next((part for part in parts if part is _U or bool(part) is decisive), parts[-1])
            return decisive if found is _U and decisive in {bool(part) for part in parts if part is not _U} else found
        case (("==" | "!="), [first, second]) if not {part.kind for part in node.parts} & {"and", "or"}:
            equal = _is_equal(first, second)
            return _U if equal is None else equal == (node.kind == "==")
        case "call", _:
            return _call_value(node.name, parts)
    return _U


def _is_equal(first: ExpressionValue, second: ExpressionValue) -> bool | None:
    if _U in (first, second) or isinstance(first, tuple) or isinstance(second, tuple):
        return None
    if first is second:
        return True
    for name, other in ((first, second), (second, first)):
        if isinstance(name, re.Pattern):
            return None if isinstance(other, str) and name.fullmatch(other.lower()) else False
    if isinstance(first, str) and isinstance(second, str):
        return first.lower() == second.lower()
    return first == second or not (first or second)


def _call_value(name: str, values: list[ExpressionValue]) -> ExpressionValue:
    match name, values:
        case "fromjson", [str(text)]:
            try:
                listed = json.loads(text)
            except (ValueError, RecursionError):
                return _U
            return tuple(str(item) for item in listed) if isinstance(listed, list) else _U
        case "contains", [re.Pattern() as searched, str(needle)]:
            return _U if searched is not _ASSOCIATION or needle.lower() in searched.pattern else False
        case "contains", [(str() | tuple()) as searched, needle] if needle is not _U:
            lowered = searched.lower() if isinstance(searched, str) else [item.lower() for item in searched]
            if isinstance(needle, re.Pattern):
                words = re.findall(r"[\w-]+", lowered) if isinstance(lowered, str) else lowered
                return _U if any(map(needle.fullmatch, words)) else False
            return isinstance(needle, str) and needle.lower() in lowered
    return _U


def _read(reference: Reference, event: str, actor: Actor) -> ExpressionValue:
    match reference:
        case ("github", "event_name"):
            return _U if event == CALLED else event
        case ("github", "repository" | "repository_owner") | ("github", "event", "repository", "full_name"):
            return _REPOSITORY
        case ("github", "actor" | "triggering_actor") if actor >= Actor.ALONE and event not in _OF_CODE:
            return _OTHER
        case ("github", "event", *_) if not has_part(reference, event):
            return None
        case ("github", "event", name, *part) if actor is Actor.STARTER and (
            "labels" in part or ("comment" in event and name in {"issue", "discussion"})
        ):
            return _U
        case ("github", "event", *part) if actor > Actor.WRITER:
            rules, name = _OF_OUTSIDER | (_OF_ALONE if actor >= Actor.ALONE else {}), ".".join(part)
            return next((value for pattern, value in rules.items() if pattern.fullmatch(name)), _U)
    return _U


def has_part(reference: Reference, event: str) -> bool:
    """Return whether ``github.event.NAME`` exists in an event, as far as the part is known."""
    return not reference[2:] or event in {*_PARTS.get(reference[2], {event}), CALLED}


_FORK = r"(?:pull_request\.head\.repo|workflow_run\.head_repository)"
_OF_CODE = frozenset({"pull_request_target", "workflow_run", CALLED})
"""Events whose actor may be another person, or a bot, than the author of the code."""

_OF_OUTSIDER: dict[re.Pattern[str], ExpressionValue] = {
    re.compile(rf"{_FORK}\.fork"): True,
    re.compile(rf"{_FORK}\.(?:owner\.)?(?:full_name|login|id|node_id|owner)"): _OTHER,
    re.compile(r"(?:pull_request(?:\.head)?|issue|discussion)\.user\.login"): _OTHER,
    re.compile(r"workflow_run\.event"): "pull_request",
    re.compile(r"(?:pull_request|issue|discussion)\.author_association"): _ASSOCIATION,
    re.compile(r"pull_request\.merged"): False,
}
"""Values in the event of an outsider, by the name below ``github.event``."""

_OF_ALONE: dict[re.Pattern[str], ExpressionValue] = {
    re.compile(r"(?:comment|review)\.author_association"): _ASSOCIATION,
    re.compile("action"): _ACTION,
    re.compile(r"sender\.login|(?:comment|review)\.user\.login|label\.name"): _OTHER,
    re.compile(r"(?:pull_request|issue)\.labels\.\*\.name"): (),
}
"""Values when no writer labels, comments or reviews."""
