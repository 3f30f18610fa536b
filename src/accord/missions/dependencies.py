"""Which work packages may start, and which others block them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.missions.workspace import resolve_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.missions.load import Mission

STARTABLE = frozenset({"approved", "done"})
"""Statuses of a dependency that let its dependents start."""

WAITING = frozenset({"planned", "claimed", "blocked"})
"""Statuses of work that its dependencies can keep from starting."""


@dataclass(frozen=True)
class Blockers:
    """Direct dependencies whose review has not passed, and why one of them never can: it is unknown, or in a cycle.

    ``first`` ends the chain of first dependencies: nothing blocks that work package, or nothing can unblock it.
    """

    waits_for: tuple[str, ...] = ()
    problem: str = ""
    first: str = ""


def blockers(mission: Mission) -> dict[str, Blockers]:
    """Return what blocks the start of each work package; a dependency with an unknown status blocks it, too."""
    startable = {wp_id for wp_id in mission.ids if _is_startable(mission, wp_id)}
    waits_for = {
        wp_id: tuple(name for name in dict.fromkeys(one.head.dependencies) if name not in startable)
        for wp_id, one in mission.work_packages.items()
    }
    suspects = _near_cycles(waits_for)
    found = {
        wp_id: Blockers(names, _unknown(mission, names) or (_cycle(waits_for, wp_id) if wp_id in suspects else ""))
        for wp_id, names in waits_for.items()
    }
    return _with_first(found)


def _with_first(found: Mapping[str, Blockers]) -> dict[str, Blockers]:
    """Follow the first dependency of each work package to the end of its chain."""
    ends: dict[str, str] = {}
    for start in found:
        chain = [start]
        while chain[-1] not in ends and (one := found.get(chain[-1])) and one.waits_for and not one.problem:
            chain.append(one.waits_for[0])
        end = ends.get(chain[-1], chain[-1])
        ends.update(dict.fromkeys(chain, end))
    return {wp_id: replace(one, first=ends[wp_id]) for wp_id, one in found.items()}


def _near_cycles(waits_for: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the work packages in cycles, with those that wait for one; empty without a cycle."""
    waiting = {wp_id: sum(name in waits_for for name in names) for wp_id, names in waits_for.items()}
    dependents: dict[str, list[str]] = {}
    for wp_id, names in waits_for.items():
        for name in names:
            dependents.setdefault(name, []).append(wp_id)
    free = [wp_id for wp_id, count in waiting.items() if not count]
    for wp_id in free:
        for dependent in dependents.get(wp_id, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                free.append(dependent)
    return set(waits_for).difference(free)


def _is_startable(mission: Mission, wp_id: str) -> bool:
    try:
        return mission.status_of(wp_id) in STARTABLE
    except BrokenContract:
        return False


def _unknown(mission: Mission, names: tuple[str, ...]) -> str:
    unknown = [name for name in names if name not in mission.files]
    what = "has no file" if len(unknown) == 1 else "have no files"
    listed = ", ".join(map(short_name, unknown))
    return f"It depends on {listed}, which {what} under tasks/. Write it, or correct the name." if unknown else ""


def _cycle(waits_for: Mapping[str, tuple[str, ...]], wp_id: str) -> str:
    """Name the shortest way of a work package back to itself along its dependencies; empty without one."""
    came_from: dict[str, str] = {}
    queue = [wp_id]
    for name in queue:
        for other in waits_for.get(name, ()):
            if other == wp_id:
                way = [name, wp_id]
                while way[0] != wp_id:
                    way.insert(0, came_from[way[0]])
                return f"It depends on itself: {' → '.join(way)}. Remove one of these dependencies."
            if other not in came_from:
                came_from[other] = name
                queue.append(other)
    return ""


@dataclass(frozen=True)
class Readiness:
    """Whether a work package may start now, which others block it, and why it never can; each is empty otherwise."""

    ready: bool = False
    blocked_by: tuple[str, ...] = ()
    blocked_reason: str | None = None


def readiness(mission: Mission, found: Mapping[str, Blockers] | None = None) -> dict[str, Readiness]:
    """Return the readiness of each work package; only work that did not start yet can be ready or blocked.

    ``found`` are the blockers of the mission, if known.
    """
    found = blockers(mission) if found is None else found
    return {wp_id: _readiness(mission, wp_id, found.get(wp_id, Blockers())) for wp_id in mission.ids}


def _readiness(mission: Mission, wp_id: str, blocked: Blockers) -> Readiness:
    try:
        status = mission.status_of(wp_id)
        if status not in WAITING:
            return Readiness()
        if not blocked.waits_for:
            resolve_workspace(mission, wp_id)
    except BrokenContract as broken:
        return Readiness(blocked_reason=broken.message)
    is_ready = status == "planned" and not blocked.waits_for
    return Readiness(is_ready, blocked.waits_for, blocked.problem or None)
