"""The replay of a work package's events through the lifecycle: people, and whether a review of its work counts. Pure.

The log is a file that anything can write. Every status counts as written, but a review counts only where a move could
have written it. Source: mission contracts, "Planning-Artifact Lifecycle".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import NamedTuple

from accord.core.documents import short_name
from accord.core.texts import actor_problem
from accord.missions.lifecycle import REOPENED, REVIEWING, People, reachable
from accord.missions.models import STATUSES, StatusEvent, WorkPackageStatus
from accord.text.hidden import comparable_name

_ACCEPTED = ("approved", "done")
_BEGUN = ("planned", "claimed", "in_progress")
_REVIEWED = ("for_review", "in_review", "approved")


def people_of(events: Iterable[StatusEvent]) -> People:
    """Return who works on a work package and who judges it, by its events in the order of time.

    Claiming and starting are work, and handing in only where no one began it; a claim or force takes it over, but not
    where it says again what the event before it says. A review that sends it back, or its author taking it back, leaves
    it with the worker; ``planned`` frees it.
    """
    listed = [*events]
    return reduce(lambda people, pair: _with_event(people, *pair), zip(listed, [None, *listed], strict=False), People())


def _with_event(people: People, event: StatusEvent, before: StatusEvent | None) -> People:
    actor, is_judged = event.actor.strip(), event.from_lane in _REVIEWED
    is_begun = event.to_lane in ("claimed", "in_progress") or (event.to_lane == "for_review" and not people.worker)
    is_work = is_begun and not is_judged and actor
    names = frozenset({comparable_name(actor)} if is_work else ())
    implementers = people.implementers | names
    if _is_repeated(event, before):
        return replace(people, implementers=implementers)
    if event.to_lane == "planned":
        people = replace(people, worker="", workers=frozenset())
    elif is_work:
        workers = names if event.to_lane == "claimed" or event.force else people.workers | names
        people = People(
            people.worker if event.to_lane == "for_review" else actor, workers, people.reviewer, implementers
        )
    if actor and (event.to_lane in ("in_review", "approved") or (is_judged and event.to_lane in REOPENED)):
        people = replace(people, reviewer=actor)
    return people


def _is_repeated(event: StatusEvent, before: StatusEvent | None) -> bool:
    """Tell whether an event says again what the one before it says, as migrations of other tools do."""
    return before is not None and (before.at, before.from_lane, before.to_lane) == (
        event.at,
        event.from_lane,
        event.to_lane,
    )


def began_at(events: Iterable[StatusEvent]) -> datetime | None:
    """Return when the present work began: the first move to in_progress since it was last planned."""
    began = None
    for event in events:
        if event.to_lane == "planned":
            began = None
        elif event.to_lane == "in_progress":
            began = began or event.at
    return began


class ReplayedEvent(NamedTuple):
    """An event, why no move writes it, empty for a legal one, whether an approval counts after it; people before."""

    event: StatusEvent
    problem: str
    is_approved: bool
    people: People


def replay(events: Sequence[StatusEvent], written: str = "") -> Iterator[ReplayedEvent]:
    """Yield the events of a work package, in the order of time. Work that moves on from an approval needs a new one.

    ``written`` is the status in its file, with which old missions began.
    """
    status, is_approved, people = "", False, People()
    for i, event in enumerate(events):
        if not status and event.from_lane == written:
            status, is_approved = written, written in _ACCEPTED
        before = events[i - 1] if i else None
        problem = _edge_problem(event, status, before)
        if not problem and event.to_lane == "approved":
            problem = _approval_problem(event, people, is_approved=is_approved)
        elif not problem and event.to_lane == "done" != event.from_lane and not is_approved:
            problem = f"{event.wp_id} becomes done without an approval that counts."
        is_kept = event.to_lane in ("done", "blocked") or event.from_lane == event.to_lane
        is_approved = (event.to_lane == "approved" and not problem) or (is_approved and is_kept)
        yield ReplayedEvent(event, problem, is_approved, People() if _is_repeated(event, before) else people)
        status, people = event.to_lane, _with_event(people, event, before)


def _edge_problem(event: StatusEvent, status: str, before: StatusEvent | None) -> str:
    """Return why the lifecycle has no such move from a status, or its actor cannot make it; empty if it has."""
    source, target = event.from_lane, event.to_lane
    if before and (source, target) == (before.from_lane, before.to_lane) and target in _BEGUN:
        return ""  # other tools repeat the start of work
    if event.is_foreign:
        return f"It names the mission {short_name(event.mission_slug)}."
    if source not in STATUSES:
        return f"It does not say that it leaves {status or 'planned'}." if status or target != "planned" else ""
    if source != (status or "planned"):
        return f"It leaves {source}, but {event.wp_id} was {status or 'planned'}."
    if actor_problem(event.actor):
        return "It names no actor, or not in one line of printable characters and one script."
    if event.force:
        return "" if (event.reason or "").strip() else "It is forced without a reason."
    return "" if target in (source, *reachable(source)) else f"No move leads from {source} to {target}."


def judge_of(event: StatusEvent, people: People) -> str:
    """Return who gave an approval: the reviewer in its evidence, or if that is unknown, who claimed the review."""
    given = event.review.get("reviewer", "")
    return (people.reviewer if given == "unknown" else given) or event.actor.strip()


def _approval_problem(event: StatusEvent, people: People, *, is_approved: bool) -> str:
    """Return why an approval does not count. Some tools write their own name as the actor for all who use them.

    There the reviewer in the evidence gave it, or if that is unknown, the one who claimed the review; never by force.
    """
    judge = judge_of(event, people)
    names = [judge, *([event.actor.strip()] if event.force else [])]
    if actor_problem(judge):
        return "Its reviewer is not named in one line of printable characters and one script."
    if event.is_denied:
        return f"The verdict of its review is {short_name(event.review['verdict'])}."
    if own := [name for name in names if people.is_implementer(name) and not has_override(event)]:
        return f"{short_name(own[0])} did this work and approves it, and no reason overrides that."
    is_reviewed = event.from_lane in REVIEWING or (event.from_lane == "approved" and not event.force) or is_approved
    if not (is_reviewed or event.review_ref or event.review):
        return "It skips the review and names none."
    return ""


def lets_start(status: WorkPackageStatus | None, events: Sequence[StatusEvent], written: str = "") -> bool:
    """Tell whether the dependents of a work package may start: its review passed. Without events, its file says so."""
    return status in _ACCEPTED and is_approved(events, written)


def starts_by(events: Sequence[StatusEvent], written: str = "") -> list[bool]:
    """Return whether dependents may start, before each event and after the last."""
    found = (each.is_approved and each.event.to_lane in _ACCEPTED for each in replay(events, written))
    return [written in _ACCEPTED, *found]


def is_approved(events: Sequence[StatusEvent], written: str = "") -> bool:
    """Tell whether an approval of a work package counts; without events, its file says so."""
    return [written in _ACCEPTED, *(each.is_approved for each in replay(events, written))][-1]


def has_override(event: StatusEvent) -> bool:
    """Tell whether an event has the recorded reason for breaking a rule."""
    policy = event.policy_metadata
    return isinstance(policy, Mapping) and bool(str(policy.get("override_reason") or "").strip())
