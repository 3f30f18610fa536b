"""The workspace of a work package: one resolver for every command.

Source: mission contracts, "Resolution Matrix". Code changes run in the work tree of their lane, on its branch. Planning
artifacts run in the root of the repository, without branch, lane and context file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from accord.core.errors import BrokenContract
from accord.core.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from accord.missions.load import Mission, WorkPackage
    from accord.missions.models import ExecutionMode, WorkspaceContext
    from accord.missions.modes import ModeSource

WORKTREES = ".worktrees"
"""The directory of the work trees of lanes."""

_BRANCHES = "kitty/mission-"


@dataclass(frozen=True)
class ResolvedWorkspace:
    """The workspace of one work package. Paths are absolute; ``context_file`` is None without one."""

    mission_slug: str
    wp_id: str
    execution_mode: ExecutionMode
    mode_source: ModeSource
    resolution_kind: Literal["lane_workspace", "repo_root"]
    workspace_name: str
    workspace_path: str
    branch_name: str | None
    lane_id: str | None
    lane_wp_ids: tuple[str, ...]
    context_file: str | None
    diagnostics: tuple[str, ...]


@dataclass(frozen=True)
class _Lane:
    """The lane of a work package, with the file that names it."""

    id: str
    wp_ids: tuple[str, ...]
    branch: str
    context_file: Path | None
    diagnostics: tuple[str, ...] = ()


def resolve_workspace(mission: Mission, wp_id: str) -> ResolvedWorkspace:
    """Return the workspace of a work package. Raises BrokenContract where the files do not tell."""
    work_package = mission.work_package(wp_id)
    mode = work_package.mode
    lane = _lane_of(mission, work_package) if mode.value == "code_change" else None
    name = f"{mission.slug}-{lane.id if lane else 'repo-root'}"
    return ResolvedWorkspace(
        mission.slug,
        wp_id,
        mode.value,
        mode.source,
        "lane_workspace" if lane else "repo_root",
        name,
        str(mission.root / WORKTREES / name if lane else mission.root),
        branch_name=lane.branch if lane else None,
        lane_id=lane.id if lane else None,
        lane_wp_ids=lane.wp_ids if lane else (),
        context_file=str(lane.context_file) if lane and lane.context_file else None,
        diagnostics=(*mode.diagnostics, *(lane.diagnostics if lane else ())),
    )


def _lane_of(mission: Mission, work_package: WorkPackage) -> _Lane:
    """Return the lane: from a context file, else from ``lanes.json``."""
    recorded = [(path, context) for path, context in mission.contexts.values() if _is_about(context, work_package.id)]
    planned = mission.lanes.lane_of.get(work_package.id) if mission.lanes else None
    if len(recorded) > 1:
        files = " and ".join(path.name for path, _ in recorded)
        message = f"{work_package.id} is in two context files: {files}."
        raise BrokenContract.of(Finding("lane-unclear", message, hint="Remove the older one."))
    if recorded:
        path, context = recorded[0]
        notes = []
        if planned and planned.lane_id != context.lane_id:
            notes.append(f"{path.name} has it in {context.lane_id}, lanes.json in {planned.lane_id}. The first counts.")
        branch = lane_branch(mission.slug, context.lane_id)
        if context.branch_name.startswith(_BRANCHES):
            branch = context.branch_name
        elif context.branch_name:
            notes.append(f"{path.name} names a branch that is not a mission's. {branch} counts.")
        is_same = planned is not None and planned.lane_id == context.lane_id
        wp_ids = planned.wp_ids if planned and is_same else context.lane_wp_ids or [work_package.id]
        return _Lane(context.lane_id, tuple(wp_ids), branch, path, tuple(notes))
    mission.check_readable("lanes.json")
    if planned is None:
        why = "is not in a lane of lanes.json" if mission.lanes else "needs a lane, but the mission has no lanes.json"
        hint = "Add it to a lane, or set `execution_mode: planning_artifact` if it changes no code."
        raise BrokenContract.of(Finding("lane-missing", f"{work_package.id} is a code_change and {why}.", hint=hint))
    # the file may be older than the lane's work package
    context_file = mission.contexts[planned.lane_id][0] if planned.lane_id in mission.contexts else None
    branch = lane_branch(mission.slug, planned.lane_id)
    return _Lane(planned.lane_id, tuple(planned.wp_ids), branch, context_file)


def _is_about(context: WorkspaceContext, wp_id: str) -> bool:
    return wp_id in (context.wp_id, context.current_wp, *context.lane_wp_ids)


def lane_branch(slug: str, lane_id: str) -> str:
    """Return the branch of a lane."""
    return f"{_BRANCHES}{slug}-{lane_id}"
