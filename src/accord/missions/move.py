"""Moving a work package: gather facts, judge, and add to the log, all while nobody else may write to it.

The log only grows; a move that stops half-way is continued by the same command, and one that is made already writes
nothing. Nothing else of the mission is written. Source: mission contracts, "Planning-Artifact Lifecycle".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from accord.kernel.checklists import tasks
from accord.kernel.errors import BrokenContract, Refused
from accord.kernel.ids import ulid
from accord.kernel.store import Storage, append_line, locked
from accord.missions.events import log_path
from accord.missions.lifecycle import STARTABLE, MoveFacts, plan_move
from accord.missions.load import load_mission
from accord.missions.staleness import git_of
from accord.missions.workspace import resolve_workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from accord.kernel.clock import Clock
    from accord.missions.branches import OwnCommits
    from accord.missions.load import Mission
    from accord.missions.models import ExecutionMode, Status

_FIRST_WORD = re.compile(r"\W*(\w+)")


@dataclass(frozen=True)
class Order:
    """What is asked for: where the work package goes, who says so, and why."""

    wp_id: str
    target: Status
    actor: str
    feedback: str = ""
    review_ref: str = ""
    override_reason: str = ""
    reason: str = ""
    is_forced: bool = False


@dataclass(frozen=True)
class Moved:
    """A move that was made, or was made already: then there are no ``events``."""

    source: Status
    target: Status
    events: tuple[dict[str, Any], ...]


def move(
    root: Path,
    slug: str,
    order: Order,
    clock: Clock,
    *,
    redact: Callable[[str], str],
    legacy_default: ExecutionMode | None = None,
    is_dry_run: bool = False,
) -> Moved:
    """Move a work package. Raises BrokenContract when the move is illegal; then nothing is written."""
    folder = load_mission(root, slug, legacy_default).folder
    if log_path(folder).is_symlink():
        raise Refused(f"{log_path(folder)} is a symbolic link, which is not written through.", mend="Make it a file.")
    with locked(folder, Storage(clock)):
        mission = load_mission(root, slug, legacy_default)
        source = mission.status_of(order.wp_id)
        facts = _facts(mission, order, source)
        steps = plan_move(source, order.target, facts, is_forced=order.is_forced)
        events = _events(mission, order, steps, clock.now(), redact)
        for event in events if not is_dry_run else ():
            append_line(log_path(folder), json.dumps(event, sort_keys=True))
    return Moved(source, order.target, events)


def _facts(mission: Mission, order: Order, source: Status) -> MoveFacts:
    """Gather what the guards look at; git is asked only for what this move needs."""
    work_package = mission.work_package(order.wp_id)
    is_code = work_package.mode.value == "code_change"
    latest = mission.log.latest.get(order.wp_id)
    branch, workspace_problem = "", ""
    try:
        branch = resolve_workspace(mission, order.wp_id).branch_name or ""
    except BrokenContract as broken:
        workspace_problem = broken.message
    needs_evidence = is_code and order.target == "for_review" and source == "in_progress" and not order.is_forced
    needs_merge = is_code and order.target == "done" and source != "done"
    git = git_of(mission, order.wp_id)
    return MoveFacts(
        actor=order.actor,
        reason=order.reason,
        feedback=order.feedback,
        review_ref=order.review_ref,
        override_reason=order.override_reason,
        holder=latest.actor if latest else "",
        workspace_problem=workspace_problem,
        open_subtasks=open_subtasks(mission, work_package.head.subtasks),
        waits_for=tuple(name for name in work_package.head.dependencies if mission.status_of(name) not in STARTABLE),
        evidence_problem=_evidence_problem(git.own_commits(branch), branch) if needs_evidence and branch else "",
        merge_problem=(workspace_problem or git.merge_problem(branch)) if needs_merge else "",
    )


def _evidence_problem(own: OwnCommits, branch: str) -> str:
    if own.error:
        return own.error
    return "" if own.count else f"The branch {branch} has no commit of its own."


def open_subtasks(mission: Mission, subtasks: list[str]) -> tuple[str, ...]:
    """Return the subtasks whose box in ``tasks.md`` is not ticked; a box begins with the name of its subtask."""
    path = mission.folder / "tasks.md"
    if not subtasks or not path.is_file():
        return ()
    found = []
    for task in tasks(path.read_text(encoding="utf-8", errors="replace")):
        word = _FIRST_WORD.match(task.text)
        if word and word[1] in subtasks and not task.is_checked:
            found.append(word[1])
    return tuple(found)


def _events(
    mission: Mission,
    order: Order,
    steps: tuple[tuple[Status, Status], ...],
    now: datetime,
    redact: Callable[[str], str],
) -> tuple[dict[str, Any], ...]:
    """Write the events of a move, each strictly later than all before it, whatever the clock says."""
    before = max((event.at for event in mission.log.events if event.wp_id == order.wp_id), default=None)
    at = max(now, before.astimezone(UTC) + timedelta(microseconds=1)) if before else now
    strategy = "worktree" if mission.work_package(order.wp_id).mode.value == "code_change" else "direct_repo"
    events = []
    for i, (source, target) in enumerate(steps):
        is_last = i == len(steps) - 1
        events.append(
            {
                "event_id": ulid(at),
                "mission_slug": mission.slug,
                "wp_id": order.wp_id,
                "from_lane": source,
                "to_lane": target,
                "at": at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
                "actor": redact(order.actor),
                "force": order.is_forced,
                "execution_mode": strategy,
                "reason": _reason(order, redact) if is_last else f"on the way to {order.target}",
                "review_ref": (redact(order.review_ref) or None) if is_last else None,
                "evidence": _evidence(order, source, redact) if is_last else None,
                "policy_metadata": _policy(order, redact) if is_last else None,
            }
        )
        at += timedelta(microseconds=1)
    return tuple(events)


def _reason(order: Order, redact: Callable[[str], str]) -> str | None:
    return redact(order.reason or order.feedback or order.override_reason) or None


def _evidence(order: Order, source: Status, redact: Callable[[str], str]) -> dict[str, Any] | None:
    """Return the review that a move rests on."""
    is_accepted = order.target in ("approved", "done")
    is_sent_back = source in ("for_review", "in_review", "approved") and order.target in ("in_progress", "planned")
    if not is_accepted and not is_sent_back:
        return None
    verdict = "approved" if is_accepted else "changes_requested"
    reference = redact(order.review_ref or order.feedback) or None
    return {"review": {"reviewer": redact(order.actor), "verdict": verdict, "reference": reference}}


def _policy(order: Order, redact: Callable[[str], str]) -> dict[str, Any] | None:
    if order.target != "done" or not order.override_reason:
        return None
    return {"merge_ancestry": "overridden", "override_reason": redact(order.override_reason)}
