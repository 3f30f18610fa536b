"""The workspace and the mode of a work package: one resolver for every command.

Source: mission contracts, "Resolution Matrix". Code changes run in the work tree of their lane, on its branch. Planning
artifacts run in the root of the repository, without branch, lane and context file.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.suggest import did_you_mean
from accord.missions.models import ExecutionMode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from accord.missions.load import Mission, WorkPackage
    from accord.missions.models import WorkspaceContext

ModeSource = Literal["frontmatter", "inferred_legacy"]
MODES: tuple[ExecutionMode, ...] = get_args(ExecutionMode)

WORKTREES = ".worktrees"
"""The directory of the work trees of lanes."""

_BRANCHES = "kitty/mission-"
_ARTIFACTS = r"(?:spec|plan|tasks|data-model|quickstart)\.md"
_PLANNING = re.compile(rf"(?<![\w-])kitty-specs/|(?<![\w.-]){_ARTIFACTS}(?![\w-])")
_CODE = re.compile(r"(?<![\w-])(?:src|tests?)/|\.(?:py|ts|js)(?![\w-])")


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
        hint = "Remove the older one."
        raise BrokenContract.of(Finding("lane-unclear", message, hint=hint))
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


@dataclass(frozen=True)
class ModeFacts:
    """The facts that decide the mode of one work package. ``lane_ids`` are the execution lanes that list it."""

    wp_id: str
    declared: str
    is_listed_as_planning: bool
    lane_ids: tuple[str, ...]
    owned_files: Sequence[str]
    text: str


@dataclass(frozen=True)
class Mode:
    """An execution mode, its source, and the reason where it was inferred. ``conflict`` is what speaks against it."""

    value: ExecutionMode
    source: ModeSource
    diagnostics: tuple[str, ...] = ()
    conflict: str = ""


def settle_mode(facts: ModeFacts, legacy_default: ExecutionMode | None = None) -> Mode:
    """Return the mode: the declared one, else that of the first signal; a later signal against it is a conflict.

    Raises BrokenContract: ``mode-invalid``, ``mode-unknown``, or ``mode-contradiction`` for two lanes.
    """
    declared = next((mode for mode in MODES if mode == facts.declared), None)
    if facts.declared and not declared:
        hint = did_you_mean(facts.declared, MODES) or f"Use {MODES[0]} or {MODES[1]}."
        message = f"{facts.wp_id} has the unknown execution_mode `{short_name(facts.declared)}`."
        raise _broken_mode("mode-invalid", message, hint)
    signals: list[tuple[ExecutionMode, str]] = [(declared, "its file declares it")] if declared else []
    if facts.is_listed_as_planning:
        signals.append(("planning_artifact", "lanes.json lists it under planning_artifact_wps"))
    if facts.lane_ids:
        signals.append(("code_change", f"lanes.json lists it in {facts.lane_ids[0]}"))
    value, signal = signals[0] if signals else _inferred(facts, legacy_default)
    if value == "code_change" and len(facts.lane_ids) > 1:
        lanes = " and ".join(facts.lane_ids)
        raise _broken_mode("mode-contradiction", f"lanes.json lists {facts.wp_id} in {lanes}.", "Keep it in one lane.")
    against = "; ".join(f"{why}, which means {mode}" for mode, why in signals[1:] if mode != value)
    conflict = f"{facts.wp_id} is a {value}, because {signal}, but {against}. The first counts." if against else ""
    if declared:
        return Mode(declared, "frontmatter", (conflict,) if conflict else (), conflict)
    said = f"{facts.wp_id} has no execution_mode: {value}, because {signal}."
    return Mode(value, "inferred_legacy", (said, conflict) if conflict else (said,), conflict)


def _inferred(facts: ModeFacts, legacy_default: ExecutionMode | None) -> tuple[ExecutionMode, str]:
    if facts.owned_files and all(map(is_planning_path, facts.owned_files)):
        return "planning_artifact", "all its owned_files are below kitty-specs/"
    text = "\n".join([*facts.owned_files, facts.text])
    code, planning = _CODE.search(text), _PLANNING.search(text)
    if code:
        return "code_change", f"its text mentions code (`{code.group()}`)"
    if planning:
        return "planning_artifact", f"its text mentions planning (`{planning.group()}`) and no code"
    if legacy_default:
        return legacy_default, "no signal was found and `--legacy-default` says so"
    raise _broken_mode(
        "mode-unknown",
        f"{facts.wp_id} has no execution_mode, and neither its file nor lanes.json implies one.",
        f"Add `execution_mode: {' or '.join(MODES)}` to its file, or pass `--legacy-default MODE`.",
    )


def is_planning_path(path: str) -> bool:
    """Return whether a path of a repository, or a pattern of paths, is below ``kitty-specs/``."""
    return posixpath.normpath(path.replace("\\", "/") + "/").split("/")[0] == "kitty-specs"


def _broken_mode(code: str, message: str, hint: str) -> BrokenContract:
    return BrokenContract.of(Finding(code, message, "/execution_mode", hint=hint))
