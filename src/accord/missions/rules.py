"""A check of missions: the rules of their files for reviewers of a change, and the state of each mission."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, Severity, has_errors, pointer, warning, with_lines
from accord.core.frozen import Frozen
from accord.core.machine import find_cycle
from accord.core.shapes import unread_keys
from accord.git.program import Git
from accord.missions.branches import changed_missions, git_of
from accord.missions.changes import file_before, log_changes, removed_missions, slug_before
from accord.missions.lifecycle import REPLACE, WAITING
from accord.missions.load import Mission, hint_of, lines_of, load_mission, missions_by_id, repeated_id
from accord.missions.log import FILE, current_status
from accord.missions.models import ExecutionMode, Lanes
from accord.missions.move import branch_of_work
from accord.missions.projects import SPECS, mission_entries
from accord.missions.query import mission_status
from accord.missions.runs import RunBroken, RunState, position_of, read_run, steps_of
from accord.missions.workspace import lane_of_work, resolve_workspace


def mission_findings(mission: Mission, now: datetime, start: str = "") -> dict[str, list[Finding]]:
    """Return the findings of each file by its path; a code change needs a lane once ``lanes.json`` exists.

    ``start`` is the commit from which a change began, which alone tells lines that it added to the log from old ones.
    """
    names = ["meta.json", "lanes.json", FILE]
    found: dict[Path, list[Finding]] = {path: [] for name in names if (path := mission.folder / name).is_file()}
    for wp_id, path in mission.files.items():
        found[path] = _of_work_package(mission, wp_id)
    for name in (*names[:2], *mission.unread):
        if name in mission.broken:
            found.setdefault(mission.folder / name, []).extend(mission.broken[name].findings)
    for i, lane in enumerate(mission.lanes.lanes if mission.lanes else ()):
        for j, wp_id in enumerate(lane.wp_ids):
            if wp_id not in mission.files:
                message = f"The lane {lane.lane_id} lists {wp_id}, which has no file under tasks/."
                unknown = Finding("work-package-unknown", message, pointer("lanes", i, "wp_ids", j), hint="Remove it.")
                found[mission.folder / "lanes.json"].append(unknown)
    if of_log := [*_of_log(mission), *log_changes(mission, start, now)]:
        found.setdefault(mission.folder / FILE, []).extend(of_log)
    if cycle := find_cycle({wp_id: one.head.dependencies for wp_id, one in mission.work_packages.items()}):
        names_of_cycle = " → ".join([*cycle, cycle[0]])
        message = f"The work packages depend on each other in a cycle: {names_of_cycle}."
        circle = Finding("work-package-cycle", message, "/dependencies", hint="Remove one dependency.")
        found[mission.files[cycle[0]]].append(circle)
    lanes = (one for wp_id in mission.files for one in _of_lane(mission, wp_id, start))
    for path, findings in (*((path, [finding]) for path, finding in lanes), *_of_run(mission).items()):
        found.setdefault(path, []).extend(findings)
    return {
        path.relative_to(mission.root).as_posix(): with_lines(findings, lines_of(path)) if findings else []
        for path, findings in found.items()
    }


def _of_run(mission: Mission) -> dict[Path, list[Finding]]:
    found: dict[Path, list[Finding]] = {}
    file = mission.folder / "meta.json"
    try:
        run = read_run(mission)
        found |= run.findings
        steps, origin = steps_of(mission, run)
        file = mission.root / origin["template"] if origin else file
        position_of(steps, run.state or RunState(), run.mission_type)
    except BrokenContract as broken:
        found.setdefault(broken.file if isinstance(broken, RunBroken) else file, []).extend(broken.findings)
    return found


def _of_log(mission: Mission) -> list[Finding]:
    problems = dict.fromkeys(item for items in mission.log.problems.values() for item in items)
    found = sorted(problems, key=lambda one: one.line or 0)
    if unnamed := mission.log.others.get(""):
        what = "line counts" if len(unnamed) == 1 else "lines count"
        hint = f"Add `to_lane` where a status was meant. Lines: {', '.join(map(str, unnamed[:10]))}."
        other = warning("event-other", f"{len(unnamed)} {what} for no status, and name no kind of event.", hint=hint)
        found.append(replace(other, line=unnamed[0]))
    if mission.log.torn_at:
        hint = "Remove it, or let `accord mission move` do so."
        torn = warning("event-torn", "A crash cut off the last line.", hint=hint)
        found.append(replace(torn, line=mission.log.torn_at))
    return found


_UNCLEAR = re.compile(r"[^\w\s./*?@+()\[\]$%=&^-]|\.\w+\s+\S|\s\([^()]*\)\Z")
"""Parts that a path rarely has: a mark such as a backtick or a colon, words behind a suffix, a remark."""


def _of_work_package(mission: Mission, wp_id: str) -> list[Finding]:
    if wp_id in mission.broken:
        is_of_lanes = mission.broken[wp_id] is mission.broken.get("lanes.json")
        return [] if is_of_lanes else list(mission.broken[wp_id].findings)
    findings, head = [], mission.work_packages[wp_id].head
    if conflict := mission.work_packages[wp_id].mode.conflict:
        hint = "Take it out of lanes.json there, or correct `execution_mode`."
        findings.append(warning("mode-contradiction", conflict, "/execution_mode", hint=hint))
    try:
        current_status(mission.log, wp_id, head.lane)
    except BrokenContract as broken:
        findings += broken.findings
    findings += [found for _, _, found in unread_keys(head, "", "dependencies", mission.files, wp_id)]
    findings += _of_dependencies(mission, wp_id)
    for i, name in enumerate(head.owned_files):
        is_outside = name.strip().startswith("/") or ".." in name.split("/")
        if is_outside or (_UNCLEAR.search(name) and not os.path.lexists(mission.root / name)):
            why = "is absolute or has `..`" if is_outside else "is read as one path, which does not exist"
            hint = "Write paths or patterns of git, one an entry, such as `src/*.py`; none that another package owns."
            is_list = "," in name and not is_outside and "{" not in name
            found = warning("owned-file-unclear", f"`{short_name(name)}` {why}.", pointer("owned_files", i), hint=hint)
            findings.append(replace(found, severity=Severity.ERROR if is_list else found.severity))
    if mission.lanes:
        try:
            resolve_workspace(mission, wp_id)
        except BrokenContract as broken:
            findings += broken.findings
    return findings


def _of_lane(mission: Mission, wp_id: str, start: str) -> Iterator[tuple[Path, Finding]]:
    """Find a mode or lane that drops the merge of work that began, in the file where the change since ``start`` did."""
    git = git_of(mission, wp_id)
    branch, message = branch_of_work(mission, wp_id, git)
    if mission.known_status(wp_id) in ("done", "canceled"):
        return
    hint = "Restore `execution_mode: code_change` and its lane, or move it to planned first."
    begun = lane_of_work(mission.log.by_work_package.get(wp_id, ()))
    is_unseen = start and begun not in ("", branch) and not (message or git.refs(begun) or git.refs(branch))
    if is_lost := is_unseen and _leaves_lane(mission, wp_id, begun, start):
        message = f"The work of {wp_id} began on the branch {begun}, and this change names {branch}. Neither is here."
        hint += f" If it was renamed, fetch {branch}."
    if message:
        own, changed = mission.files[wp_id], _changed_parts(mission, wp_id, start)
        place = own if not changed or own.parent in [path.parent for path in changed] else changed[0]
        found = warning("mode-contradiction", message, "/execution_mode" if place == own else "", hint=hint)
        yield place, replace(found, severity=Severity.ERROR if is_lost or changed else found.severity)


def _changed_parts(mission: Mission, wp_id: str, start: str) -> list[Path]:
    """Return the files about the lane of a work package that the change since ``start`` altered or removed."""
    parts = [f"{SPECS}/{mission.slug}/{name}" for name in (f"tasks/{wp_id}[-_.]*", "lanes.json")]
    parts.append(f".kittify/workspaces/{mission.slug}-*")
    words = ("diff", "--name-only", "-z", "--relative", "--no-renames", start, "--", *parts)
    names = Git(mission.root).attempt(*words).stdout.decode("utf-8", "replace") if start else ""
    return [mission.root / name for name in names.split("\0")[:-1]]


def _leaves_lane(mission: Mission, wp_id: str, branch: str, start: str) -> bool:
    """Return whether the change since ``start`` takes a work package from the lane of a branch in ``lanes.json``."""
    text = file_before(mission.root, start, slug_before(mission, start), "lanes.json")
    try:
        before = Lanes.model_validate_json(text).lanes_of.get(wp_id, [])
    except ValueError:
        return False
    now = {lane.lane_id for lane in (mission.lanes.lanes_of.get(wp_id, ()) if mission.lanes else ())}
    return any(branch.endswith(f"-{lane.lane_id}") and lane.lane_id not in now for lane in before)


def _of_dependencies(mission: Mission, wp_id: str) -> Iterator[Finding]:
    for i, name in enumerate(mission.work_packages[wp_id].head.dependencies):
        if name not in mission.files:
            hint, message = hint_of(name, mission.files), f"The dependency `{name}` has no file under tasks/."
            yield Finding("work-package-unknown", message, pointer("dependencies", i), hint=hint)
        elif mission.known_status(name) == "canceled" and mission.known_status(wp_id) in WAITING:
            message = f"It depends on {name}, which is canceled."
            yield warning("dependency-canceled", message, pointer("dependencies", i), hint=REPLACE)


class MissionCheck(Frozen):
    """The findings of each file of missions, and the status of each mission as ``mission status`` has it."""

    files: Mapping[str, Sequence[Finding]]
    standings: Sequence[dict[str, Any]]

    @property
    def is_ok(self) -> bool:
        """Whether no file has an error."""
        return not any(has_errors(findings) for findings in self.files.values())

    def as_json(self) -> dict[str, Any]:
        """Return the JSON document of ``accord mission check``."""
        found = self.files.items()
        documents = [{"path": path, "findings": [item.as_json() for item in findings]} for path, findings in found]
        return {"ok": self.is_ok, "documents": documents, "missions": self.standings}


def check_missions(
    root: Path, slugs: Sequence[str], base: str, legacy_default: ExecutionMode | None, now: datetime
) -> MissionCheck:
    """Check the named missions, else those changed since HEAD left ``base``, else all. Raises BrokenContract."""
    start, changed = changed_missions(root, base) if base else ("", None)
    entries = {name: each for name, each in mission_entries(root).items() if changed is None or name in changed}
    chosen = slugs or [slug for slug, problem in entries.items() if not problem]
    missions = [load_mission(root, slug, legacy_default) for slug in chosen]
    problems = {name: problem for name, problem in entries.items() if problem and not slugs}
    files: dict[str, list[Finding]] = {f"{SPECS}/{name}": [problem] for name, problem in problems.items()}
    for mission_id, named in missions_by_id(root).items():
        for path in (f"{SPECS}/{slug}/meta.json" for slug in chosen if slug in named and len(named) > 1):
            files[path] = with_lines([repeated_id(mission_id, named)], lines_of(root / path))
    known_before = {slug_before(one, start) for one in missions} | mission_entries(root).keys()
    for path, problem in removed_missions(root, start, sorted((changed or set()) - known_before) if not slugs else ()):
        files[path] = [problem]
    for path, found in ((path, found) for one in missions for path, found in mission_findings(one, now, start).items()):
        known = files.setdefault(path, [])  # missions share the files of their runs
        known += [finding for finding in found if finding not in known]
    return MissionCheck(files, [mission_status(one, now) for one in missions])
