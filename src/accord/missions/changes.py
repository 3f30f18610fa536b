"""Changes of a mission's log since a commit, held against what the moves of work packages write.

The guards of its move judge a line. Facts beside the log count only where files and git still show them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from accord.core.clock import future_problem
from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, Severity, finding_of, warning
from accord.git.program import Git
from accord.missions.branches import git_of
from accord.missions.lifecycle import (
    ON_THE_WAY,
    REOPENED,
    WORK_PACKAGE,
    MoveFacts,
    MoveRequest,
    People,
    claim_problem,
)
from accord.missions.load import WP_FILE, Mission, once_for_mission, open_boxes, read_work_package
from accord.missions.log import FILE, log_path, read_log
from accord.missions.models import STATUSES, Frontmatter, StatusEvent
from accord.missions.move import branch_of_work, named_branch, open_subtasks
from accord.missions.projects import SPECS
from accord.missions.replay import has_override, judge_of, replay, starts_by


def log_changes(mission: Mission, start: str, now: datetime) -> Iterator[Finding]:
    """Replay the log: events that no move writes are errors where the change since ``start`` added them."""
    path, slug = log_path(mission.folder), slug_before(mission, start)
    before = file_before(mission.root, start, slug, FILE) if slug else b""
    old = read_log(before)
    names = {"", mission.slug, *(event.mission_slug for event in old.events)}  # a mission may be renamed
    kept = before[: before.rfind(b"\n") + 1] if old.torn_at else before  # the next move removes what a crash cut off
    if start and not _has_lines_of(kept, path.read_bytes() if path.is_file() else b""):
        message = f"This change removes, alters or reorders lines of {FILE}, which may only grow."
        yield Finding("log-altered", message, hint="Restore them in their order.")
    yield from _lost_files(mission, f"{start}:./{SPECS}/{slug}/tasks" if slug else "")
    illegal, passed = [], cache(partial(_starts_of, mission))
    for wp_id, events in mission.log.by_work_package.items():
        added = {one.event_id: one for one in events if start and (wp_id, one.event_id) not in old.lines}
        handed_in = next((one for one in reversed(events) if one.to_lane in ("for_review", *REOPENED)), None)
        yield from _future(mission, wp_id, added, now)
        for event, reason, _, people in replay(events, mission.written.get(wp_id, "")):
            line, is_added = mission.log.lines[wp_id, event.event_id], event.event_id in added
            if is_added and not reason:
                is_last = event.event_id == next(reversed(added))
                facts = _facts_of(mission, event, people, passed)
                is_judged = event is handed_in and event.to_lane == "for_review" and not _is_of_other_tool(event)
                facts = _with_readiness(mission, facts, start, slug) if is_judged else facts
                reason = _refusal(event, facts) or (_doubt_about(mission, event, now) if is_last else "")
                if slug and event.mission_slug not in names:
                    reason = f"It names the mission {short_name(event.mission_slug)}."
            reason = finding_of("event-illegal", reason).message  # the rest is about options of a command
            if reason and not is_added:
                illegal.append((line, reason))
            elif reason:
                hint = "Remove the line, and move the work package with `accord mission move`."
                yield Finding("event-illegal", f"No move writes this line. {reason}", line=line, hint=hint)
    if illegal:
        line, reason = min(illegal)
        more = f" It is one of {len(illegal)} such lines." if len(illegal) > 1 else ""
        hint = "Look whether the status is right. If not, use `accord mission move`."
        yield replace(warning("event-illegal", f"No move writes this line. {reason}{more}", hint=hint), line=line)


def _has_lines_of(before: bytes, after: bytes) -> bool:
    """Tell whether a log has all lines of an older one in their order; a merge may put those of one side in between.

    A checkout may end them as its settings say.
    """
    rest = iter(after.splitlines())
    return all(line in rest for line in before.splitlines() if line)


def file_before(root: Path, start: str, slug: str, name: str) -> bytes:
    """Return a file of a mission at a commit; empty without one."""
    return Git(root).attempt("cat-file", "blob", f"{start}:./{SPECS}/{slug}/{name}").stdout


def _names_before(root: Path, folder: str) -> list[str]:
    listed = Git(root).attempt("ls-tree", "--name-only", "-z", folder).stdout if folder else b""
    return listed.decode("utf-8", "replace").split("\0")[:-1]


def slug_before(mission: Mission, start: str) -> str:
    """Return the name that the folder of a mission had at a commit, by its id or older name; empty for a new one."""
    before, mark = _names_before(mission.root, f"{start}:./{SPECS}" if start else ""), f'"{mission.meta.mission_id}"'
    older = {mission.meta.mission_slug, *(event.mission_slug for event in mission.log.events)}
    for name in (name for name in before if mission.slug not in before and not (mission.root / SPECS / name).is_dir()):
        if name in older or (mark != '""' and mark.encode() in file_before(mission.root, start, name, "meta.json")):
            return name
    return mission.slug if mission.slug in before else ""


def removed_missions(root: Path, start: str, slugs: Iterable[str]) -> Iterator[tuple[str, Finding]]:
    """Find missions with begun work that were there at a commit, each with the path of its log."""
    for slug in slugs:
        latest = read_log(file_before(root, start, slug, FILE)).latest.items()
        if left := [wp_id for wp_id, event in latest if event.to_lane not in ("planned", "done", "canceled")]:
            message = f"This change removes the mission {slug} with begun work: {', '.join(left)}."
            hint = "Restore its folder; an earlier change may move its work to canceled."
            found = Finding("log-altered", message, hint=hint)
            yield f"{SPECS}/{slug}/{FILE}", found


def _lost_files(mission: Mission, before: str) -> Iterator[Finding]:
    """Find work packages that only the log names; an error where the folder ``before`` the change has their file."""
    lost = sorted(mission.log.latest.keys() - mission.files)
    removed = {name[1] for each in _names_before(mission.root, before) if (name := WP_FILE.fullmatch(each))}
    for wp_id in lost:
        message = f"{wp_id} has lines here, but no file under tasks/."
        found = warning("work-package-unknown", message, hint="Restore its file.")
        line = mission.log.lines[wp_id, mission.log.latest[wp_id].event_id]
        yield replace(found, line=line, severity=Severity.ERROR if wp_id in removed else found.severity)


def _future(mission: Mission, wp_id: str, added: Collection[str], now: datetime) -> Iterator[Finding]:
    lines = {mission.log.lines[wp_id, one.event_id]: one for one in mission.log.by_work_package[wp_id]}
    if line := min((line for line, one in lines.items() if future_problem(one.at, now)), default=0):
        message = f"{future_problem(lines[line].at, now)} Later moves of {wp_id} are written after it."
        hint = "Correct `at` there, and in the lines of later moves."
        found = warning("timestamp-future", message, "/at", hint=hint)
        yield replace(found, line=line, severity=Severity.ERROR if lines[line].event_id in added else found.severity)


def _facts_of(
    mission: Mission, event: StatusEvent, people: People, passed: Callable[[str], list[tuple[list[Any], list[bool]]]]
) -> MoveFacts:
    """Return the facts of the move that a line says, by the log alone. A line has one reason for all options."""
    target, reason = event.to_lane, event.reason or ""
    work_package = mission.work_packages.get(event.wp_id)
    needed = dict.fromkeys(work_package.head.dependencies if work_package else ())
    here = ((event.at, event.event_id), mission.log.lines[event.wp_id, event.event_id])
    waits_for = tuple(
        name
        for name in needed
        if not any(known[bisect_left(places, place)] for place, (places, known) in zip(here, passed(name), strict=True))
    )
    actor = judge_of(event, people) if target == "approved" else event.actor.strip()
    is_taken_back = event.reason in [f"{ON_THE_WAY}{one}" for one in REOPENED]
    is_claim = target == "in_review" and (is_taken_back or _is_of_other_tool(event))
    override = "given" if has_override(event) or is_claim else ""
    request = MoveRequest(event.wp_id, target, actor, reason, event.review_ref or "", override, reason)
    return MoveFacts(request, people, is_approved=True, waits_for=waits_for)


def _is_of_other_tool(event: StatusEvent) -> bool:
    """Tell whether another tool wrote a line, by its keys: it guards boxes, commits and reviewers in its own way."""
    return bool(event.model_extra)


def _with_readiness(mission: Mission, facts: MoveFacts, start: str, slug: str) -> MoveFacts:
    """Add the boxes of handed-in work that are open before and after the change.

    They may have been ticked in between. Commits do not count, because a merge takes those of a branch along.
    """
    wp_id = facts.request.wp_id
    if wp_id not in mission.files or wp_id not in mission.work_packages:
        return facts
    still_open = open_subtasks(mission, wp_id)
    if still_open:
        old = _head_before(mission, start, slug, wp_id)
        before = {*(old.subtasks if old else ())} & _open_before(mission, start, slug)
        still_open = tuple(one for one in still_open if one in before)
    return replace(facts, open_subtasks=still_open)


def _head_before(mission: Mission, start: str, slug: str, wp_id: str) -> Frontmatter | None:
    """Return the frontmatter of a work package at a commit; None where its file was not there, or was broken."""
    name = mission.files[wp_id].relative_to(mission.folder).as_posix()
    with suppress(BrokenContract):
        return read_work_package(file_before(mission.root, start, slug, name), wp_id)[0]
    return None


@once_for_mission
def _open_before(mission: Mission, start: str, slug: str) -> frozenset[str]:
    return frozenset(open_boxes(file_before(mission.root, start, slug, "tasks.md")))


def _refusal(event: StatusEvent, facts: MoveFacts) -> str:
    """Return why a move refuses what a line says."""
    source, target, actor = event.from_lane, event.to_lane, facts.request.actor
    is_unreviewed = event.force and event.evidence is None
    is_approval = event.review.get("verdict") == "approved" and event.review.get("reviewer")
    if target == "approved" and not is_unreviewed and not is_approval:
        return f"Its evidence is not that {short_name(actor)} approved it."
    if event.force or source not in STATUSES:
        return ""
    return claim_problem(source, facts) if source == target else WORK_PACKAGE.refusal(source, target, facts)


def _starts_of(mission: Mission, wp_id: str) -> list[tuple[list[Any], list[bool]]]:
    """Return whether dependents may start, before each event of a work package and after the last, with their places.

    In the order of times, and in that of lines: clocks differ, and a merge may put later lines above earlier ones.
    """
    events, lines = mission.log.by_work_package.get(wp_id, []), mission.log.lines
    by_line = sorted(events, key=lambda event: lines[wp_id, event.event_id])
    written = mission.written.get(wp_id, "")
    return [
        ([(event.at, event.event_id) for event in events], starts_by(events, written)),
        ([lines[wp_id, event.event_id] for event in by_line], starts_by(by_line, written)),
    ]


def _doubt_about(mission: Mission, event: StatusEvent, now: datetime) -> str:
    """Return why the last event of a work package cannot be: it has no file, or its branch was not merged then.

    Nothing tells what was merged at a time in the future, which is an error of its own.
    """
    if event.wp_id not in mission.files:
        return f"The mission has no work package {event.wp_id}."
    if event.to_lane != "done" or has_override(event) or future_problem(event.at, now):
        return ""
    git = git_of(mission, event.wp_id)
    branch, contradiction = branch_of_work(mission, event.wp_id, git)
    if branch and git.refs(branch):
        return git.merge_problem(branch, event.at)
    is_left = branch not in git.lanes and named_branch(mission, event.wp_id)  # its branch is lost, and the lane another
    return contradiction if is_left else ""
