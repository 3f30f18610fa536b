"""The lifecycle of a work package: its statuses, what each move needs, and which others block its start. Pure.

``approved`` is never skipped or invented: nothing is done without a recorded approval, not even by force, and one actor
approves its own work only with a recorded reason. Source: mission contracts, "Planning-Artifact Lifecycle".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import finding_of
from accord.core.frozen import Frozen
from accord.core.machine import Edge, Machine, Need, find_cycle
from accord.core.texts import actor_problem
from accord.missions.models import STATUSES, WorkPackageStatus
from accord.text.hidden import comparable_name

StatusMove = tuple[WorkPackageStatus, WorkPackageStatus]

THROUGH: tuple[WorkPackageStatus, ...] = ("claimed", "in_review")
"""Statuses that a move passes through; each gets its own event."""

ON_THE_WAY = "on the way to "
"""The beginning of the reason of such an event; the target of the move follows."""

REOPENED = ("in_progress", "planned")
"""Statuses to which a review sends work back."""

REVIEWING = ("for_review", "in_review")
"""Statuses of work that was handed in, whose approval needs no reference to a review."""


class MoveRequest(Frozen):
    """A requested move: the work package, its new status, the actor and the reasons. An empty text was not given."""

    wp_id: str
    target: WorkPackageStatus
    actor: str
    feedback: str = ""
    review_ref: str = ""
    override_reason: str = ""
    reason: str = ""
    is_forced: bool = False
    is_start: bool = False  # it makes the branch of the lane


class People(Frozen):
    """Worker and reviewers of a work package, by its events. Sets hold names in the form in which they compare."""

    worker: str = ""  # who began the present work, empty while it is free
    workers: frozenset[str] = frozenset()  # who may continue it
    reviewer: str = ""  # who claimed or gave the last review
    implementers: frozenset[str] = frozenset()  # who ever did a part of it

    def may_continue(self, actor: str) -> bool:
        """Tell whether an actor takes over no work of another."""
        return not self.worker or comparable_name(actor) in self.workers | {comparable_name(self.worker)}

    def is_implementer(self, actor: str) -> bool:
        """Tell whether an actor did a part of the work; one that sends it back did not."""
        return comparable_name(actor) in self.implementers


class LaneProblem(Frozen):
    """Why the branch of work that began is not where the files name it, and the command that brings it back, if any."""

    text: str
    command: str


class MoveFacts(Frozen):
    """A request, and the facts that its guards read; an empty text is a problem that does not exist."""

    request: MoveRequest
    people: People = People()
    is_approved: bool = False
    workspace_problem: str = ""
    lane_problem: LaneProblem | None = None
    lane_branch: str | None = None  # empty where the branch of its lane does not exist yet, None without a lane
    is_unrecorded: bool = False  # a start makes that branch for work in progress, and the log does not name it
    open_subtasks: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()  # dependencies whose review has not passed
    dependency_problem: str = ""  # why one of them never can by itself
    stuck: tuple[str, ...] = ()  # those of them that a person decides about
    evidence_problem: str = ""
    merge_problem: str = ""
    taken_along: tuple[str, ...] = ()  # commits without a review that the merge brings, too


_OTHER = "Choose another work package, or use `mission move` with `--force` and `--reason`."

MoveGuard = Callable[[MoveFacts], Iterator[Need]]
"""Yields what an edge still needs: the first text refuses the move."""


def _requires(is_given: Callable[[MoveFacts], object], refusal: str) -> MoveGuard:
    return lambda facts: iter(() if is_given(facts) else (Need(refusal),))


_review = _requires(lambda facts: facts.request.review_ref, "No review given. Pass `--review-ref`.")
_evidence = _requires(
    lambda facts: facts.request.review_ref,
    "The move skips the review. Pass `--review-ref` as evidence of one, or move it to for_review.",
)
_findings = _requires(
    lambda facts: facts.request.review_ref or facts.request.feedback or facts.request.reason,
    "No review findings given. Pass `--review-ref` or `--feedback`.",
)
_reason = _requires(
    lambda facts: facts.request.reason or facts.request.feedback, "No reason given. Pass `--reason` or `--feedback`."
)


def _start(facts: MoveFacts) -> Iterator[Need]:
    if facts.dependency_problem:
        yield Need(facts.dependency_problem, "" if facts.waits_for else "its dependencies")
    names = ", ".join(facts.waits_for)
    for name in facts.waits_for:
        text = f"It depends on {names}, whose review has not passed. Finish that first."
        yield Need(text, f"another dependency than {name}" if name in facts.stuck else f"approval of {name}")


def _holder(facts: MoveFacts) -> Iterator[Need]:
    if not facts.people.may_continue(facts.request.actor):
        yield Need(f"{facts.people.worker} has claimed it. {_OTHER}")


def _workspace(facts: MoveFacts) -> Iterator[Need]:
    if facts.workspace_problem:
        yield Need(facts.workspace_problem, "a lane")
    yield from _branch(facts)


def _branch(facts: MoveFacts) -> Iterator[Need]:
    if facts.lane_problem:
        yield Need(facts.lane_problem.text, "the branch of its lane")


def _ready(facts: MoveFacts) -> Iterator[Need]:
    yield from _workspace(facts)
    names = ", ".join(facts.open_subtasks)
    for name in facts.open_subtasks:
        yield Need(f"These subtasks are open in tasks.md: {names}. Finish and tick them.", f"subtask {name}")
    if facts.evidence_problem and not (facts.request.review_ref or facts.request.feedback):
        text = f"{facts.evidence_problem} Commit the work, or describe it with `--feedback`."
        yield Need(text, "an own commit")


def _to_review(facts: MoveFacts) -> Iterator[Need]:
    if facts.request.target not in REOPENED:  # lost work can be sent back
        yield from _branch(facts)
    yield from _reviewer(facts)


def is_self_review(facts: MoveFacts) -> bool:
    """Tell whether an actor claims or gives the review of its own work; taking work back is not a review."""
    return facts.request.target not in REOPENED and facts.people.is_implementer(facts.request.actor)


def _reviewer(facts: MoveFacts) -> Iterator[Need]:
    if is_self_review(facts) and not facts.request.override_reason:
        hint = "Let another `--actor` review it, or say why not with `--override-reason TEXT`."
        yield Need(f"{facts.request.actor} did this work. {hint}")


def _complete(facts: MoveFacts) -> Iterator[Need]:
    if not facts.is_approved:
        text = "No approval of its present state counts: none is recorded, or its own author or no reviewer gave it."
        yield Need(f"{text} Let another `--actor` move it to approved first.", "an approval")
    elif facts.merge_problem and not facts.request.override_reason:
        hint = "`--override-reason TEXT` allows it without a merge; `--force` does not."
        others = " and ".join(facts.taken_along)
        if others:
            hint = f"The merge takes along {others}: wait for its review, or merge it all the same. {hint}"
        yield Need(f"{facts.merge_problem} {hint}", f"a merge, which takes along {others}" if others else "a merge")


_BEFORE_DONE = STATUSES[: STATUSES.index("approved") + 1]
_EDGES: tuple[tuple[WorkPackageStatus, WorkPackageStatus, str, tuple[MoveGuard, ...]], ...] = (
    ("planned", "claimed", "an actor, dependencies approved", (_holder, _start)),
    ("claimed", "in_progress", "the same actor, a workspace", (_holder, _workspace)),
    ("in_progress", "for_review", "subtasks done, evidence", (_ready,)),
    ("for_review", "in_review", "another actor, the lane", (_to_review,)),
    ("in_review", "approved", "another actor, the lane", (_branch, _reviewer)),
    ("in_review", "in_progress", "review reference or feedback", (_findings,)),
    ("in_review", "planned", "review reference or feedback", (_findings,)),
    ("in_progress", "approved", "review reference", (_branch, _evidence, _reviewer)),
    ("in_progress", "planned", "a reason", (_reason,)),
    ("approved", "done", "merged, or a planning artifact", (_complete,)),
    ("approved", "in_progress", "review reference", (_review,)),
    ("approved", "planned", "review reference", (_review,)),
    *((source, "blocked", "", ()) for source in _BEFORE_DONE),
    # blocked work needs what any start needs: it may never have started
    ("blocked", "in_progress", "the same actor, dependencies approved, a workspace", (_holder, _start, _workspace)),
    *((source, "canceled", "", ()) for source in (*_BEFORE_DONE, "blocked")),
)
_GUARDS: dict[StatusMove, tuple[MoveGuard, ...]] = {(source, target): guards for source, target, _, guards in _EDGES}


def _needs(edge: StatusMove, facts: MoveFacts) -> Iterator[Need]:
    return (need for guard in _GUARDS[edge] for need in guard(facts))


def _first(needs: Iterable[Need]) -> str:
    return next((need.text for need in needs), "")


def _refusal_of(edge: StatusMove, facts: MoveFacts) -> str:
    return _first(_needs(edge, facts))


WORK_PACKAGE: Machine[MoveFacts] = Machine(
    "work package",
    "planned",
    frozenset({"done", "canceled"}),
    tuple(Edge(source, target, label, partial(_refusal_of, (source, target))) for source, target, label, _ in _EDGES),
)


def plan_move(source: WorkPackageStatus, facts: MoveFacts) -> tuple[StatusMove, ...]:
    """Return the steps of a move, none if it is done. Raises ``illegal-move``; force does not replace a merge."""
    target = facts.request.target
    if reason := _refusal(source, facts):
        what = f"The move from {source} to {target} is refused" if source != target else f"It stays {source}"
        raise BrokenContract.of(finding_of("illegal-move", f"{what}: {reason}"))
    if source == target and not (_is_due(facts) or facts.is_unrecorded or claim_problem(source, facts)):
        return ()
    return ((source, target),) if facts.request.is_forced else steps_between(source, target)


def _is_due(facts: MoveFacts) -> bool:
    return facts.request.target == "approved" and not facts.is_approved


def claim_problem(source: str, facts: MoveFacts) -> str:
    """Return which other actor has claimed work that stays in a status, or its review; empty if none has."""
    people, actor = facts.people, facts.request.actor
    if source in ("claimed", "in_progress"):
        return _first(_holder(facts))
    is_other = source == "in_review" and comparable_name(people.reviewer) not in ("", comparable_name(actor))
    return f"{people.reviewer} has claimed it. {_OTHER}" if is_other else ""


def _refusal(source: WorkPackageStatus, facts: MoveFacts) -> str:
    request = facts.request
    if problem := actor_problem(request.actor):
        return problem
    if request.is_forced and not request.reason:
        return "`--force` needs a reason. Pass `--reason`."
    if source == request.target and not _is_due(facts):
        lost = facts.lane_problem.text if source == "in_progress" and facts.lane_problem else ""
        return (not request.is_forced and claim_problem(source, facts)) or lost
    if request.is_forced:
        is_reviewed = source in REVIEWING or facts.is_approved
        approval = (_reviewer,) if is_reviewed else (_evidence, _reviewer)
        guards: tuple[MoveGuard, ...] = {"done": (_complete,), "approved": approval}.get(request.target, ())
        return _first(need for guard in guards for need in guard(facts))
    edges = steps_between("in_review" if source == request.target else source, request.target)
    refusals = (WORK_PACKAGE.refusal(a, b, facts) for a, b in edges)
    return next((refusal for refusal in refusals if refusal), "")


def needs_of(source: WorkPackageStatus, facts: MoveFacts) -> tuple[str, ...]:
    """Name what a legal move of a complete request still lacks: approvals, a lane, subtasks, commits, a merge."""
    edges = steps_between(source, facts.request.target)
    return tuple(dict.fromkeys(need.missing for edge in edges for need in _needs(edge, facts) if need.missing))


def steps_between(source: WorkPackageStatus, target: WorkPackageStatus) -> tuple[StatusMove, ...]:
    """Return the one or two edges of a move; an illegal move is returned as it is, for the machine to refuse."""
    if target not in WORK_PACKAGE.targets(source):
        for between in THROUGH:
            if between in WORK_PACKAGE.targets(source) and target in WORK_PACKAGE.targets(between):
                return ((source, between), (between, target))
    return ((source, target),)


@cache
def reachable(source: str) -> tuple[WorkPackageStatus, ...]:
    """Return the statuses that one command can reach, in one or two edges, the nearer ones first."""
    direct = WORK_PACKAGE.targets(source)
    further = [target for between in THROUGH if between in direct for target in WORK_PACKAGE.targets(between)]
    order = [*direct, *further]
    return tuple(sorted((one for one in STATUSES if one in order and one != source), key=order.index))


WAITING = ("planned", "claimed", "blocked")
"""Statuses of work that its dependencies can keep from starting."""


class Blockers(Frozen):
    """Direct dependencies whose review has not passed."""

    waits_for: tuple[str, ...] = ()
    problem: str = ""  # why one of them never can by itself, such as unknown or canceled ones, or cannot be told
    stuck: tuple[str, ...] = ()  # those that are canceled or in doubt
    first: str = ""  # the end of the chain of first dependencies: nothing blocks it, or nothing can unblock it


REPLACE = "A person decides: remove it from `dependencies`, or name the work package that replaces it."
CANCELED = f"is canceled. {REPLACE}"
IN_DOUBT = "has a line in the log that cannot be read. Correct that line."


def blockers_of(
    waits_for: Mapping[str, tuple[str, ...]],
    known: Collection[str],
    stuck: Mapping[str, str] = MappingProxyType({}),
    unsure: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Blockers]:
    """Return what blocks the start of each work package, by what each waits for.

    ``known`` are those with a file; ``stuck`` has why one cannot be approved, ``unsure`` why it may wait for others.
    """
    has_cycle = bool(find_cycle(waits_for))
    found = {}
    for wp_id, names in waits_for.items():
        unknown = [short_name(name) for name in names if name not in known]
        lacking = f"{', '.join(unknown)}, which {'has no file' if len(unknown) == 1 else 'have no files'} under tasks/."
        fixed = [name for name in names if name in stuck]
        problems = (
            unsure.get(wp_id),
            f"It depends on {lacking} Write it, or correct the name." if unknown else "",
            _cycle(waits_for, wp_id) if has_cycle else "",
            f"It depends on {fixed[0]}, which {stuck[fixed[0]]}" if fixed else "",
        )
        found[wp_id] = Blockers(names, next(filter(None, problems), ""), tuple(fixed))
    ends: dict[str, str] = {}
    for start in found:
        chain = [start]
        while chain[-1] not in ends and (one := found.get(chain[-1])) and one.waits_for and not one.problem:
            chain.append(one.waits_for[0])
        ends.update(dict.fromkeys(chain, ends.get(chain[-1], chain[-1])))
    return {wp_id: replace(one, first=ends[wp_id]) for wp_id, one in found.items()}


def _cycle(waits_for: Mapping[str, tuple[str, ...]], wp_id: str) -> str:
    """Name the shortest way of a work package back to itself along its dependencies; empty without one."""
    came_from: dict[str, str] = {}
    queue = [wp_id]
    for name in queue:
        for other in waits_for.get(name, ()):
            if other == wp_id:
                way = [wp_id, name]
                while way[-1] != wp_id:
                    way.append(came_from[way[-1]])
                return f"It depends on itself: {' → '.join(reversed(way))}. Remove one of these dependencies."
            if other not in came_from:
                came_from[other] = name
                queue.append(other)
    return ""
