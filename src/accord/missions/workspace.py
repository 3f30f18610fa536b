"""Where a work package runs: the one resolver that every command asks. Source: mission contracts, "Resolution Matrix".

Code changes run in the work tree of their lane, on its branch. Planning artifacts run in the root of the repository,
which is no lane: they have no branch, no lane and no context file, and none is made up for them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from accord.missions.load import Mission, WorkPackage
    from accord.missions.models import ExecutionMode, WorkspaceContext
    from accord.missions.modes import ModeSource


_BRANCHES = "kitty/mission-"


@dataclass(frozen=True)
class ResolvedWorkspace:
    """Where one work package runs. Paths are absolute; ``context_file`` only where there is one."""

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

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``accord mission workspace`` prints."""
        return asdict(self)


@dataclass(frozen=True)
class _Lane:
    """The lane of a work package, from whichever file names it."""

    id: str
    wp_ids: tuple[str, ...]
    branch: str
    context_file: Path | None
    diagnostics: tuple[str, ...] = ()


def resolve_workspace(mission: Mission, wp_id: str) -> ResolvedWorkspace:
    """Tell where a work package runs. Raises BrokenContract where the files do not say it."""
    work_package = mission.work_package(wp_id)
    mode = work_package.mode
    if mode.value == "planning_artifact":
        return ResolvedWorkspace(
            mission.slug,
            wp_id,
            mode.value,
            mode.source,
            "repo_root",
            f"{mission.slug}-repo-root",
            str(mission.root),
            branch_name=None,
            lane_id=None,
            lane_wp_ids=(),
            context_file=None,
            diagnostics=mode.diagnostics,
        )
    lane = _lane_of(mission, work_package)
    name = f"{mission.slug}-{lane.id}"
    return ResolvedWorkspace(
        mission.slug,
        wp_id,
        mode.value,
        mode.source,
        "lane_workspace",
        name,
        str(mission.root / ".worktrees" / name),
        branch_name=lane.branch,
        lane_id=lane.id,
        lane_wp_ids=lane.wp_ids,
        context_file=str(lane.context_file) if lane.context_file else None,
        diagnostics=(*mode.diagnostics, *lane.diagnostics),
    )


def _lane_of(mission: Mission, work_package: WorkPackage) -> _Lane:
    """Find the lane: a context file is asked before ``lanes.json``."""
    remembered = [(path, context) for path, context in mission.contexts.values() if _is_about(context, work_package.id)]
    planned = (
        next((lane for lane in mission.lanes.lanes if work_package.id in lane.wp_ids), None)
        if (mission.lanes)
        else None
    )
    if len(remembered) > 1:
        files = " and ".join(path.name for path, _ in remembered)
        raise _broken("lane-unclear", f"{work_package.id} is in two context files, {files}. Remove the old one.")
    if remembered:
        path, context = remembered[0]
        notes = []
        if planned and planned.lane_id != context.lane_id:
            notes.append(f"{path.name} has it in {context.lane_id}, lanes.json in {planned.lane_id}; the first counts.")
        branch = _branch(mission.slug, context.lane_id)
        if context.branch_name.startswith(_BRANCHES):
            branch = context.branch_name
        elif context.branch_name:
            notes.append(f"{path.name} names a branch that is none of a mission; {branch} counts.")
        is_same = planned is not None and planned.lane_id == context.lane_id
        wp_ids = planned.wp_ids if planned and is_same else context.lane_wp_ids or [work_package.id]
        return _Lane(context.lane_id, tuple(wp_ids), branch, path, tuple(notes))
    mission.need("lanes.json")
    if planned is None:
        why = "is in no lane of lanes.json" if mission.lanes else "needs a lane, and the mission has no lanes.json"
        raise _broken(
            "lane-missing",
            f"{work_package.id} is a code_change and {why}. Put it into a lane, or declare it "
            "execution_mode: planning_artifact if it changes no code.",
        )
    return _Lane(
        planned.lane_id,
        tuple(planned.wp_ids),
        _branch(mission.slug, planned.lane_id),
        _context(mission, planned.lane_id),
    )


def _context(mission: Mission, lane_id: str) -> Path | None:
    """Return the context file of a lane that was written before it took up the work package."""
    return mission.contexts[lane_id][0] if lane_id in mission.contexts else None


def _is_about(context: WorkspaceContext, wp_id: str) -> bool:
    return wp_id in (context.wp_id, context.current_wp, *context.lane_wp_ids)


def _branch(slug: str, lane_id: str) -> str:
    return f"{_BRANCHES}{slug}-{lane_id}"


def _broken(code: str, message: str) -> BrokenContract:
    return BrokenContract(message, findings=[Finding(code, message)])
