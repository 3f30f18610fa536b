"""The workspace of a work package: one resolver for every command.

Source: mission contracts, "Resolution Matrix". Code changes run in the work tree of their lane, on its branch. Planning
artifacts run in the root of the repository, without branch, lane and context file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypeGuard

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.missions.load import Mission, once_for_mission
from accord.missions.models import BRANCHES, WORKTREES, ExecutionMode, StatusEvent
from accord.missions.modes import ModeSource

HEADS = "refs/heads/"
"""The beginning of the names of branches."""


class ResolvedWorkspace(Frozen):
    """The workspace of one work package. Paths are absolute; ``context_file`` is None without one."""

    mission_slug: str
    wp_id: str
    execution_mode: ExecutionMode
    mode_source: ModeSource
    resolution_kind: Literal["lane_workspace", "repo_root"]
    workspace_name: str
    workspace_path: str
    branch_name: str | None = None
    lane_id: str | None = None
    lane_wp_ids: tuple[str, ...] = ()
    context_file: str | None = None
    diagnostics: tuple[str, ...] = ()


@once_for_mission
def resolve_workspace(mission: Mission, wp_id: str) -> ResolvedWorkspace:
    """Return the workspace of a work package. Raises BrokenContract where the files do not tell."""
    mode = mission.work_package(wp_id).mode
    in_root = ResolvedWorkspace(
        mission.slug,
        wp_id,
        mode.value,
        mode.source,
        "repo_root",
        f"{mission.slug}-repo-root",
        str(mission.root),
        diagnostics=mode.diagnostics,
    )
    return in_root if mode.value == "planning_artifact" else _in_lane(mission, in_root)


def _in_lane(mission: Mission, known: ResolvedWorkspace) -> ResolvedWorkspace:
    wp_id, slug = known.wp_id, mission.slug
    contexts = mission.contexts.values()
    recorded = [(path, one) for path, one in contexts if wp_id in (one.wp_id, one.current_wp, *one.lane_wp_ids)]
    planned = next(iter(mission.lanes.lanes_of.get(wp_id, ())), None) if mission.lanes else None
    if len(recorded) > 1:
        message = f"{wp_id} is in two context files: {' and '.join(path.name for path, _ in recorded)}."
        raise BrokenContract.of(Finding("lane-unclear", message, hint="Remove the older one."))
    if not recorded:
        mission.check_readable("lanes.json")
    if not recorded and planned is None:
        why = "is not in a lane of lanes.json" if mission.lanes else "needs a lane, but the mission has no lanes.json"
        hint = "Add it to a lane, or set `execution_mode: planning_artifact` if it changes no code."
        raise BrokenContract.of(Finding("lane-missing", f"{wp_id} is a code_change and {why}.", hint=hint))
    lane_id, wp_ids = (planned.lane_id, planned.wp_ids) if planned else ("", [])
    path, notes = mission.contexts[lane_id][0] if lane_id in mission.contexts else None, list[str]()
    branch = lane_branch(slug, lane_id)
    if recorded:  # else the file may be older than the lane's work package
        path, context = recorded[0]
        if planned is None or lane_id != context.lane_id:
            wp_ids = context.lane_wp_ids or [wp_id]
        if planned and lane_id != context.lane_id:
            notes.append(f"{path.name} has it in {context.lane_id}, lanes.json in {lane_id}. The first counts.")
        lane_id, branch = context.lane_id, lane_branch(slug, context.lane_id)
        if is_lane_branch(context.branch_name):
            branch = context.branch_name
        elif context.branch_name:
            notes.append(f"{path.name} names a branch that is not a mission's. {branch} counts.")
    if _NOT_A_BRANCH.search(branch):
        message = f"Git takes no branch `{short_name(branch)}`."
        raise BrokenContract.of(Finding("lane-unclear", message, hint="Rename the lane or the mission."))
    return replace(
        known,
        resolution_kind="lane_workspace",
        workspace_name=f"{slug}-{lane_id}",
        workspace_path=str(mission.root / WORKTREES / f"{slug}-{lane_id}"),
        branch_name=branch,
        lane_id=lane_id,
        lane_wp_ids=tuple(wp_ids),
        context_file=str(path) if path else None,
        diagnostics=(*known.diagnostics, *notes),
    )


def dependency_branches(mission: Mission, wp_id: str, *, of_dependents: bool = False) -> dict[str, str]:
    """Return the branches of the code changes that a work package needs, or that need it, except its own lane's."""
    names, seen, found, known = [wp_id], {wp_id}, dict[str, str](), mission.work_packages
    for name in names:
        with suppress(BrokenContract):
            found[name] = resolve_workspace(mission, name).branch_name or ""
        needed = known[name].head.dependencies if name in known else []
        near = dict.fromkeys(mission.dependents.get(name, ()) if of_dependents else needed)
        names += (other for other in near if other not in seen)
        seen.update(near)
    own = found.pop(wp_id, "")
    return {name: branch for name, branch in found.items() if branch not in ("", own)}


def lane_branch(slug: str, lane_id: str) -> str:
    """Return the branch of a lane."""
    return f"{BRANCHES}{slug}-{lane_id}"


def is_lane_branch(name: object) -> TypeGuard[str]:
    """Tell whether a value that a file holds is the name of a lane's branch."""
    return isinstance(name, str) and name.startswith(BRANCHES) and not _NOT_A_BRANCH.search(name)


def short_ref(ref: str) -> str:
    """Return a ref as a person names it, such as ``main`` or ``origin/main``."""
    return ref.removeprefix(HEADS).removeprefix("refs/remotes/")


RECORDED = "lane_branch"
"""The key of ``policy_metadata`` under which the start of work names the branch of its lane, empty without one."""


def begun_branch(event: StatusEvent, branch: str) -> str:
    """Return the branch on which an event began work: the one that it names, else ``branch``; empty if it began none.

    Other tools name none in the start of work that has a work tree.
    """
    policy = event.policy_metadata if isinstance(event.policy_metadata, dict) else {}
    is_begun = event.to_lane == "in_progress" and event.execution_mode != "direct_repo"
    found = policy.get(RECORDED, branch if is_begun else "")
    return found if is_lane_branch(found) else ""


def lane_of_work(events: Iterable[StatusEvent], branch: str = "") -> str:
    """Return the branch on which the log says that the present work began; ``branch`` where its start names none."""
    found = ""
    for event in events:
        found = "" if event.to_lane == "planned" else begun_branch(event, branch) or found
    return found


_NOT_A_BRANCH = re.compile(r"\.\.|@\{|//|/\.|\.lock(?:/|\Z)|[./]\Z|[\x00-\x20\x7f~^:?*\[\\]")
"""A part that git refuses in the name of a branch. Source: git-check-ref-format."""
