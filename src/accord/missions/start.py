"""The start of a work package: its branch and work tree, then the move to in_progress, under the folder's lock.

Each step may be repeated: the same command continues a start that was killed anywhere, and does nothing for one that
is done. Source: mission contracts, "Resolution Matrix".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from accord.core.clock import Clock
from accord.core.errors import BrokenContract, Refused
from accord.core.findings import count_of, finding_of
from accord.core.frozen import Frozen
from accord.files.store import Storage, change_file
from accord.git.index import work_trees
from accord.git.program import Git, GitFailed
from accord.missions.branches import MissingWork, MissionGit, git_of, missing_work
from accord.missions.lifecycle import WAITING, MoveRequest
from accord.missions.load import Mission
from accord.missions.models import WORKTREES, ExecutionMode, WorkPackageStatus
from accord.missions.move import append_events, locked_mission, plan_mission_move
from accord.missions.workspace import ResolvedWorkspace, resolve_workspace, short_ref

_INITIALIZING = "initializing"
"""The reason for which git locks a work tree while it makes it. Source: git's builtin/worktree.c."""


class LaneFacts(Frozen):
    """The branch and the work tree of a lane in git; an empty text is one that does not exist."""

    path: str
    branch: str
    target: str = ""  # the mission and the work package, as commands name them
    base: str = ""  # where a new branch begins
    has_branch: bool = False
    checked_out_at: str = ""  # the work tree on the branch
    on_branch: str = ""  # the branch of the work tree at the lane's path
    is_registered: bool = False
    is_half_made: bool = False
    is_present: bool = False
    is_foreign: bool = False
    is_ignored: bool = True
    prefix: str = ""  # the project's place in its repository, with a slash at its end


class LaneOperation(Frozen):
    """One step towards the work tree: its name, its object, and the arguments of git."""

    op: str
    target: str
    arguments: tuple[str, ...] = ()


class StartResult(Frozen):
    """A start: the status before it, where the work runs, steps in git and events, without which it was done before."""

    source: WorkPackageStatus
    workspace: ResolvedWorkspace
    operations: tuple[LaneOperation, ...]
    events: tuple[dict[str, Any], ...]
    base: str = ""  # the ref at which a new branch begins
    warnings: tuple[str, ...] = ()


def plan_lane(facts: LaneFacts) -> tuple[LaneOperation, ...]:
    """Return the steps to the work tree of a lane, none if it is there. Raises Refused if something is in the way."""
    if facts.is_foreign:
        hint = "Move it away, and start again."
        raise Refused(f"{facts.path} exists, but it is not a work tree of this repository.", hint=hint)
    if facts.checked_out_at not in ("", facts.path):
        other = Path(facts.checked_out_at)
        is_lane = (other.parent.name, other.name) == (WORKTREES, Path(facts.path).name)  # of another checkout
        in_it, there = (shlex.quote(str(path)) for path in (other.parent.parent, other))
        command = (
            f"accord mission --root {in_it} start {facts.target}" if is_lane else f"git -C {there} switch --detach"
        )
        raise Refused(f"{other} is on the branch {facts.branch}.", hint=f"Run `{command}`.")
    if facts.is_present and not facts.is_half_made and facts.on_branch != facts.branch:
        hint = f"Run `git -C {shlex.quote(facts.path)} switch {shlex.quote(facts.branch)}`."
        raise Refused(f"{facts.path} is not on the branch {facts.branch}.", hint=hint)
    if not facts.has_branch and not facts.base:
        hint = "Commit to the branch that lanes merge into, or correct `target_branch` in meta.json."
        raise Refused(f"The branch {facts.branch} cannot begin: its base does not exist here.", hint=hint)
    prefix = re.sub(r"[*?\[\\]", r"\\\g<0>", facts.prefix)  # as a pattern of info/exclude
    steps = [] if facts.is_ignored else [LaneOperation("ignore", f"/{prefix}{WORKTREES}/")]
    if facts.is_half_made:
        steps.append(LaneOperation("remove-half", facts.path, ("worktree", "remove", "--force", "--force", facts.path)))
    elif facts.is_registered and not facts.is_present:
        steps.append(LaneOperation("forget", facts.path, ("worktree", "prune")))
    elif facts.is_present:
        return tuple(steps)
    if not facts.has_branch:
        branch = ("branch", "--no-track", facts.branch, facts.base)
        steps.append(LaneOperation("branch", facts.branch, branch))
    tree = ("worktree", "add", "--quiet", facts.path, facts.branch)
    return (*steps, LaneOperation("worktree", facts.path, tree))


def start(
    root: Path,
    slug: str,
    wp_id: str,
    actor: str,
    clock: Clock,
    *,
    redact: Callable[[str], str],
    legacy_default: ExecutionMode | None = None,
    is_dry_run: bool = False,
) -> StartResult:
    """Start a work package. Raises BrokenContract when it may not start, Refused where git stops it."""
    storage = Storage(clock)
    request = MoveRequest(wp_id, "in_progress", redact(actor), is_start=True)
    with locked_mission(root, slug, legacy_default, storage) as (mission, lock):
        source = mission.status_of(wp_id)
        if source not in (*WAITING, "in_progress"):
            message = f"{wp_id} is {source}, and only planned, claimed and blocked work can start."
            raise BrokenContract.of(finding_of("illegal-move", f"{message} Use `accord mission move`."))
        _, events = plan_mission_move(mission, request, clock.now())
        workspace = resolve_workspace(mission, wp_id)
        base, steps, warnings = "", tuple[LaneOperation, ...](), tuple[str, ...]()
        if workspace.branch_name:
            git = git_of(mission, wp_id)
            facts = lane_facts(mission, workspace, git)
            steps, base = plan_lane(facts), "" if facts.has_branch else facts.base
            is_new = bool(base) and workspace.branch_name not in base  # else it continues the branch at origin
            lacking = missing_work(mission, wp_id, git, base or f"refs/heads/{facts.branch}", is_new=is_new)
            warnings = lane_warnings(facts, lacking, is_again=is_new and source == "in_progress")
        if not is_dry_run:
            for step in steps:
                _carry_out(Git(mission.root, inherited=lock), step, storage)
            append_events(mission, events, storage)
    return StartResult(source, workspace, steps, events, base, warnings)


def lane_warnings(facts: LaneFacts, lacking: Iterable[MissingWork], *, is_again: bool) -> tuple[str, ...]:
    """Return what a lane does not begin with, each with the command that brings it in. Pure."""
    again = f"Its work was in progress, but {facts.branch} existed neither here nor at origin. It begins again."
    found = [again] if is_again else []
    at = f"git -C {shlex.quote(facts.path)}"
    for one in lacking:
        names, ref = ", ".join(one.names), short_ref(one.ref)
        if not one.ref:
            fetch = f"`{at} fetch origin {shlex.quote(one.branch)} && {at} merge --no-edit FETCH_HEAD`"
            found.append(f"The lane may lack the work of {names}: {one.branch} is not here. Run {fetch}.")
        else:
            count = count_of(one.count, "commit")
            what = f"The lane lacks the work of {names}" if names else f"Its base {short_ref(facts.base)} is old"
            found.append(f"{what}: {count} of {ref} missing. Run `{at} merge --no-edit {shlex.quote(ref)}`.")
    return tuple(found)


def lane_facts(mission: Mission, workspace: ResolvedWorkspace, refs: MissionGit) -> LaneFacts:
    """Read the branch and the work tree of a lane. Raises Refused outside a repository."""
    git, path, branch = Git(mission.root), Path(workspace.workspace_path), workspace.branch_name or ""
    if path.parent.is_symlink() or path.is_symlink():
        raise Refused(f"{path} is behind a symbolic link.", hint="Replace it with a directory.")
    try:
        trees = work_trees(git)
    except (GitFailed, OSError):
        message = f"{mission.root} is not a git repository, so it cannot have work trees."
        raise Refused(message, hint="Run `git init`, and commit.") from None
    own = next(
        (tree for tree in trees if tree["worktree"] == str(path) or Path(tree["worktree"]).resolve() == path.resolve()),
        {},
    )
    on_branch = [tree for tree in trees if tree.get("branch") == f"refs/heads/{branch}" and tree is not own]
    others = [tree for tree in on_branch if "prunable" not in tree]  # git keeps the names of lost ones
    is_present = path.is_dir() and any(path.iterdir())
    is_ignored = git.attempt("check-ignore", "--quiet", f"{WORKTREES}/").returncode == 0
    return LaneFacts(
        str(path),
        branch,
        f"{mission.slug} {workspace.wp_id}",
        base=refs.base_of(branch),
        has_branch=f"refs/heads/{branch}" in refs.refs(branch),
        checked_out_at=others[0]["worktree"] if others else "",
        on_branch=own.get("branch", "").removeprefix("refs/heads/"),
        is_registered=bool(own) or len(others) < len(on_branch),
        is_half_made=own.get("locked") == _INITIALIZING,
        is_present=is_present,
        is_foreign=is_present and not own,
        is_ignored=is_ignored,
        prefix="" if is_ignored else git.line("rev-parse", "--show-prefix"),
    )


def _carry_out(git: Git, step: LaneOperation, storage: Storage) -> None:
    """Carry out one step. git holds the lock of the folder, too: it may outlive accord if only accord is killed."""
    if step.op == "ignore":
        path = git.directory / git.line("rev-parse", "--git-path", "info/exclude")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        line = step.target.encode()

        def with_line(raw: bytes) -> bytes:
            return b"".join([raw, b"\n" if raw and not raw.endswith(b"\n") else b"", line, b"\n"])

        change_file(path, lambda raw: raw if line in raw.splitlines() else with_line(raw), storage)
        return
    if step.op == "remove-half" and (path := Path(step.target)).is_dir() and not any(path.iterdir()):
        path.rmdir()
    replace(git, is_callers=step.op == "worktree")(*step.arguments)
