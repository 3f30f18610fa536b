"""Facts of a mission's branches from git: own commits, merges, and whether work is stale. Reads only.

A work package's own commits are those since it began of its lane, and of branches merged into it, that touch its owned
files where it names some; not merges, and none of the target, the default branch, the mission's branch or another lane.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from accord.core.clock import future_problem, timestamp
from accord.core.errors import BrokenContract, Refused
from accord.core.findings import count_of
from accord.core.frozen import Frozen
from accord.git.program import Git, GitFailed, changed_paths
from accord.missions.lifecycle import REVIEWING, LaneProblem
from accord.missions.load import Mission, once_for_mission
from accord.missions.models import BRANCHES, SHARED_WORKSPACE, WORKTREES, StaleStatus
from accord.missions.projects import SPECS
from accord.missions.replay import began_at
from accord.missions.workspace import (
    HEADS,
    ResolvedWorkspace,
    begun_branch,
    dependency_branches,
    lane_branch,
    resolve_workspace,
    short_ref,
)

_MOST_NAMES = 5
_REMOTES = "refs/remotes/origin/"


class OwnCommits(Frozen):
    """The own commits of a branch, and the time of the newest (seconds since 1970); unknown with an ``error``."""

    count: int = 0
    newest: int | None = None
    error: str = ""
    names: tuple[str, ...] = ()


def changed_missions(root: Path, base: str) -> tuple[str, set[str]]:
    """Return the commit at which HEAD left ``base``, and the slugs of missions that differ from it, committed or not.

    Raises Refused where git fails.
    """
    git = Git(root)
    try:
        start = git.line("merge-base", "--end-of-options", base, "HEAD")
        return start, {path.split("/")[1] for path in changed_paths(git, start, SPECS)}
    except GitFailed as failed:
        hint = "Check out with `fetch-depth: 0`, and name an existing commit or branch such as origin/main."
        raise Refused(f"The changes since {base} cannot be read: {failed.message}", hint=hint) from None


class MissionGit:
    """The repository of a mission; git is asked each question once for one command."""

    def __init__(self, mission: Mission, target: str, mission_branch: str, lanes: Set[str]) -> None:
        self.lanes = lanes
        self._mission = mission
        self._target = target
        self.mission_branch = mission_branch

    @cached_property
    def has_origin(self) -> bool:
        """Whether the repository has a remote named ``origin``."""
        return "origin" in (self._ask("remote") or "").split()

    def own_commits(
        self, branch: str, began: datetime | None, owned: Sequence[str], others: Set[str], rivals: Set[str]
    ) -> OwnCommits:
        """Return own commits of a branch since ``began``; ``owned`` are globs, ``others`` bases, ``rivals`` lanes."""
        if self._trouble:
            return OwnCommits(error=f"The commits cannot be read: {self._trouble}")
        head = self.refs(branch)  # here and at origin, either of which may be ahead
        if not head:
            return OwnCommits(error=f"The branch {branch} does not exist.")
        names = dict.fromkeys((self._target, self.default_branch, self.mission_branch))
        bases = [ref for name in names if name != branch for ref in self.refs(name)]
        if not bases:
            return OwnCommits(error=f"The base of {branch} is unknown. Set `target_branch` in meta.json.")
        if not self._answer("merge-base", head[0], *bases):
            return OwnCommits(error=f"The branch {branch} shares no commit with its base.")
        bases += [ref for name in others for ref in self.refs(name)]
        theirs = [ref for name in rivals for ref in self.refs(name)]
        paths, since = ("--", *_pathspecs(owned)), int(began.timestamp()) if began else 0
        times = self._commits(since, *head, "--not", *bases, *paths)
        if times is None:
            return OwnCommits(error=f"The commits of {branch} cannot be read: the repository lacks some of them.")
        # Only first parents tell who made a commit. After a merge, the base has a and b, too, but not on its own line;
        # after a fast-forward they are on both lines, and nothing tells.
        #
        #   base  o---o---m        base and lane  o---a---b
        #          \     /
        #   lane    a---b
        line, taken = self._first_parents(head, since), self._first_parents([*bases, *theirs], since)
        shared = self._commits(since, *theirs, "--not", *bases, "--") or {} if theirs else {}
        if began and not self._answer("rev-list", "--max-count=1", *head, "--not", *bases):  # all of it is merged
            times = shared = self._commits(since, f"--max-age={since}", *head, *paths) or {}
        own = {name: time for name, time in times.items() if name not in (taken if name in line else shared)}
        if doubtful := not own and [name for name in times if name in line or name not in taken]:
            found = ", ".join(doubtful[:_MOST_NAMES])
            return OwnCommits(error=f"{branch} shares {found} with another branch, and nothing tells which made them.")
        return OwnCommits(len(own), max(own.values(), default=None), names=tuple(own))

    def _first_parents(self, refs: Sequence[str], since: int) -> set[str]:
        found = self._answer("log", "--first-parent", f"--max-age={since}", "--format=%h", *refs, "--") if refs else ""
        return set(found.split())

    def _commits(self, since: int, *arguments: str) -> dict[str, int] | None:
        """Return names and times of commits, not merges, committed and authored since then; None where git fails."""
        listed = self._ask("log", "--format=%h %ct %at", "--no-merges", "--full-history", *arguments)
        if listed is None:
            return None
        times = (line.split() for line in listed.splitlines())
        return {name: int(time) for name, time, authored in times if min(int(time), int(authored)) >= since}

    def merge_problem(self, branch: str, at: datetime | None = None) -> str:
        """Return why the branch is not merged into the target, or was not ``at`` that time; empty when it is.

        The branch's own commits of before that second count: other work goes on in a lane after its merge, and a later
        merge of another branch brings older commits.
        """
        if self._trouble:
            return f"Cannot tell whether {branch} is merged: {self._trouble}"
        head, targets = self.refs(branch), self.refs(self.target_name)
        if not head:
            return f"The branch {branch} does not exist here, so its merge is not proven. Fetch it."
        if self.target_name in (branch, *self.lanes):
            return f"The target {self.target_name} is the branch of a lane. Set the branch that lanes merge into."
        if not targets:
            return (
                f"The target branch {self.target_name or '(not set)'} does not exist here. "
                "Fetch it, or correct `merge_target_branch` or `target_branch`."
            )
        until = ["--first-parent", f"--min-age={int(at.timestamp()) - 1}"] if at else []
        if self._ask("rev-list", "--max-count=1", *until, *head, "--not", *targets) == "":
            return ""
        return f"The branch {branch} is not merged into {self.target_name}. Merge it."

    def merged_heads(self, branch: str, refs: Sequence[str], since: int) -> list[str]:
        """Return the commits that merges of a branch since then brought to refs, by their subjects, newest first."""
        among = ("--min-parents=2", "--max-parents=2", "--fixed-strings", f"--grep={branch}", f"--max-age={since}")
        merges = self._answer("log", "--format=%P %s", *among, *refs, "--") if refs else ""
        parts = (line.partition(" into ")[0].replace("'", " ").split() for line in merges.splitlines())
        return [head for _, head, *words in parts if any(f"/{word}".endswith(f"/{branch}") for word in words)]

    def missing_commits(self, start: str, branch: str) -> tuple[str, int]:
        """Return the ref of a branch with the most commits that ``start`` does not have, and their number; or 0."""
        counts = {ref: int(self._answer("rev-list", "--count", ref, "--not", start) or 0) for ref in self.refs(branch)}
        return max(counts.items(), key=lambda one: one[1], default=("", 0))

    def base_of(self, branch: str) -> str:
        """Return the ref at which a branch begins: itself, the mission's branch, or the target; empty without any."""
        for name in dict.fromkeys((branch, self.mission_branch, self.target_name)):
            if found := self.refs(name):
                return found[0]
        return ""

    @cached_property
    def default_branch(self) -> str:
        """The full name of the default branch: of origin, else of the checkout; empty without one."""
        remote = self._answer("symbolic-ref", "--quiet", f"{_REMOTES}HEAD")
        if remote.startswith(_REMOTES):
            return remote.removeprefix(_REMOTES)
        for name in ("main", "master"):
            if self.refs(name):
                return name
        head = self._answer("symbolic-ref", "--quiet", "HEAD")
        is_lane = head.startswith(f"{HEADS}kitty/")
        return "" if is_lane else head.removeprefix(HEADS)

    @cached_property
    def target_name(self) -> str:
        """The branch that lanes merge into."""
        return self._target or self.default_branch

    @cached_property
    def _trouble(self) -> str:
        shallow = self._answer("rev-parse", "--is-shallow-repository")
        if shallow == "true":
            return "this is a shallow clone without the full history. Fetch it with `fetch-depth: 0`."
        return "" if shallow == "false" else "this is not a git repository, or git is not installed."

    def refs(self, branch: str) -> list[str]:
        """Return the existing refs of a branch, here and at origin; none for an expression such as ``lane~0``."""
        return [ref for ref in (f"{HEADS}{branch}", f"{_REMOTES}{branch}") if ref in self._refs]

    @cached_property
    def _refs(self) -> frozenset[str]:
        return frozenset(self._answer("for-each-ref", "--format=%(refname)", HEADS, _REMOTES).split("\n"))

    def _answer(self, *arguments: str) -> str:
        return self._ask(*arguments) or ""

    def _ask(self, *arguments: str) -> str | None:
        return _answer_of_git(self._mission, arguments)


@once_for_mission
def _answer_of_git(mission: Mission, arguments: Sequence[str]) -> str | None:
    try:
        done = Git(mission.root).attempt(*arguments, timeout=60)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


UNAVAILABLE = "stale_detection_unavailable"
DEFAULT_MINUTES = 10.0


class StalenessResult(Frozen):
    """The answer of the contract, with an error for people and logs where it is unknown."""

    status: StaleStatus
    error: str = ""
    is_broken: bool = False  # its files have no answer, not git


def judge(own: OwnCommits, now: datetime, threshold_minutes: float, started: datetime | None = None) -> StalenessResult:
    """Return whether work in progress is stale: both its newest commit and its start are older than the threshold.

    A commit in the future, by another clock, is fresh. A start in the future does not count.
    """
    if own.error:
        return _result_without_commit(UNAVAILABLE, own.error)
    committed = None if own.newest is None else datetime.fromtimestamp(own.newest, UTC)
    if (problem := future_problem(started, now)) and not committed:
        return _result_without_commit(UNAVAILABLE, f"The log has a wrong time for the start of the work. {problem}")
    times = (committed, None if problem else started)
    ages = [max(0.0, (now - time).total_seconds() / 60) for time in times if time]
    status: Literal["fresh", "stale"] = "stale" if ages and min(ages) > threshold_minutes else "fresh"
    if not committed:
        return _result_without_commit("no_own_commits", status=status)
    minutes = round(ages[0], 2)
    judged = StaleStatus(
        status=status, reason=None, minutes_since_commit=minutes, last_commit_time=timestamp(committed)
    )
    return StalenessResult(judged)


def _result_without_commit(
    reason: str, error: str = "", status: Literal["fresh", "stale", "not_applicable"] = "fresh"
) -> StalenessResult:
    judged = StaleStatus(status=status, reason=reason, minutes_since_commit=None, last_commit_time=None)
    return StalenessResult(judged, error)


def stale_of(
    mission: Mission, wp_id: str, git: MissionGit, now: datetime, threshold_minutes: float = DEFAULT_MINUTES
) -> StalenessResult:
    """Return the staleness of a work package. Raises BrokenContract for an unknown one; a broken one is unavailable."""
    if wp_id not in mission.ids:
        mission.work_package(wp_id)  # raises
    try:
        if wp_id not in mission.written:  # it cannot be read at all
            mission.work_package(wp_id)  # raises
        known = mission.work_packages.get(wp_id)
        if known and known.mode.value == "planning_artifact":
            return _result_without_commit(SHARED_WORKSPACE, status="not_applicable")
        if mission.status_of(wp_id) != "in_progress":
            return _result_without_commit("not_in_progress")
        branch = resolve_workspace(mission, wp_id).branch_name or ""
    except BrokenContract as broken:
        return replace(_result_without_commit(UNAVAILABLE, str(broken)), is_broken=True)
    latest = mission.log.latest.get(wp_id)
    own = own_commits_of(mission, wp_id, branch, git, now)
    return judge(own, now, threshold_minutes, latest.at if latest else None)


class MissingWork(Frozen):
    """Commits of a branch that a lane lacks: their number, and their work packages, none for a base of the lane."""

    names: tuple[str, ...]
    branch: str
    ref: str = ""  # empty for a branch that exists neither here nor at origin
    count: int = 0


def missing_work(mission: Mission, wp_id: str, git: MissionGit, start: str, *, is_new: bool) -> list[MissingWork]:
    """Return the commits of its dependencies, of its own branch at origin, and of its bases that ``start`` lacks.

    A dependency that is done without a merge, with a recorded reason, counts as merged.
    """
    names_of: dict[str, tuple[str, ...]] = {resolve_workspace(mission, wp_id).branch_name or "": (wp_id,)}
    approved = {name for name in mission.ids if mission.known_status(name) == "approved"}
    for name, branch in dependency_branches(mission, wp_id).items():
        latest = mission.log.latest.get(name)
        policy = latest.policy_metadata if latest and latest.to_lane in ("done", "canceled") else None
        if not (isinstance(policy, dict) and "merge_ancestry" in policy):
            names_of[branch] = (*names_of.get(branch, ()), name)
    if is_new:
        names_of |= dict.fromkeys((git.mission_branch, git.target_name), ())
    found = [MissingWork(names, branch, *git.missing_commits(start, branch)) for branch, names in names_of.items()]
    return [one for one in found if one.count or (not one.ref and approved.intersection(one.names))]


def lane_problem_of(
    mission: Mission, workspace: ResolvedWorkspace, git: MissionGit, contradiction: str = ""
) -> LaneProblem | None:
    """Return what is wrong with the lane of work that began, by the log and git; None for one that may begin.

    The log names the branch of each start. A start that names none, as other tools write it, was in today's lane.
    """
    if contradiction:
        return LaneProblem(f"{contradiction} Name that lane again, or move it to planned first.", "")
    branch = workspace.branch_name or ""
    begun = {
        name: mission.log.by_work_package.get(name, [])
        for name in dict.fromkeys((workspace.wp_id, *workspace.lane_wp_ids))
        if mission.known_status(name) not in ("done", "canceled")
    }
    recorded = [begun_branch(event, branch) for events in begun.values() for event in events]
    older = [name for name in recorded if name and (name == branch or name not in git.lanes)]  # else it has other work
    if not older or git.refs(branch):
        return None
    found, lost = next((ref for name in reversed(older) for ref in git.refs(name)), ""), older[-1]
    at, name = f"git -C {shlex.quote(str(mission.root))}", shlex.quote(branch)
    if found:
        old, is_here = short_ref(found), found.startswith(HEADS)
        trees = [str(mission.root / WORKTREES / each.rpartition(BRANCHES)[2]) for each in (found, branch)]
        command = f"{at} branch -m {shlex.quote(old)} {name}" if is_here else f"{at} branch {name} {shlex.quote(found)}"
        command += f" && {at} worktree move {shlex.join(trees)}" if is_here and Path(trees[0]).is_dir() else ""
        text = f"Its work is on the branch {old}, and its files name {branch}."
        return LaneProblem(f"{text} Restore the name in the files, or run `{command}`.", command)
    given = [
        event.at for events in begun.values() for event in events if event.to_lane in ("in_progress", "for_review")
    ]
    heads = git.merged_heads(lost, git.refs(git.target_name), int(max(given).timestamp())) if given else []
    if heads:
        command = f"{at} branch {name} {heads[0]}"
        text = f"The branch {lost} of its lane is lost, but a merge brought its work into {git.target_name}."
        return LaneProblem(f"{text} Run `{command}`.", command)
    target = next((short_ref(ref) for ref in git.refs(git.target_name)), git.target_name)
    command, base = f"{at} branch {name} COMMIT", shlex.quote(target or "BASE")
    fetch = f"`{at} fetch origin {shlex.quote(lost)}:{name}`, or " if git.has_origin else ""
    text = f"The branch {lost} of its lane is lost: work on it began, but it exists neither here nor at origin."
    source = f"`git log {base}` names if it was merged, else `git fsck --lost-found`"
    handed_in = any(mission.known_status(name) in (*REVIEWING, "approved") for name in begun)
    again = "" if handed_in else f" To begin it again, run `{at} branch {name} {base}`."  # it would pass for merged
    return LaneProblem(f"{text} Run {fetch}`{command}` with a commit that {source}.{again}", command)


def own_commits_of(
    mission: Mission, wp_id: str, branch: str, git: MissionGit, now: datetime, began: datetime | None = None
) -> OwnCommits:
    """Return the own commits of a work package on the branch of its lane, since the present work ``began``."""
    began = began or began_at(mission.log.by_work_package.get(wp_id, ()))
    began = None if future_problem(began, now) else began  # a wrong clock wrote it; no commit can be younger
    others = {*dependency_branches(mission, wp_id).values()}
    followers = {*dependency_branches(mission, wp_id, of_dependents=True).values()}  # its own commits go there next
    rivals = git.lanes - others - followers - {branch}
    return git.own_commits(branch, began, mission.work_package(wp_id).head.owned_files, others, rivals)


def taken_along(mission: Mission, workspace: ResolvedWorkspace, git: MissionGit, now: datetime) -> tuple[str, ...]:
    """Return the commits of the lane's other work packages that its merge takes along before their review."""
    found = []
    for wp_id in (name for name in workspace.lane_wp_ids if name != workspace.wp_id and name in mission.work_packages):
        events, status = mission.log.by_work_package.get(wp_id, []), mission.known_status(wp_id)
        first = next((event.at for event in events if event.to_lane == "in_progress"), None)
        if first and not mission.lets_start(wp_id):
            own = own_commits_of(mission, wp_id, workspace.branch_name or "", git, now, first)
            if own.count:
                names = ", ".join(own.names[:_MOST_NAMES])
                found.append(f"{count_of(own.count, 'commit')} of {wp_id}, which is {status} ({names})")
    return tuple(found)


def _pathspecs(owned: Iterable[str]) -> list[str]:
    """Return globs of owned files as git reads them, from the project and from the top of its repository."""
    inside = [path for text in owned if (path := text.strip("/ ")) and ".." not in path.split("/")]
    return [f":({start}glob){path}" for path in inside for start in ("", "top,")]


def git_of(mission: Mission, wp_id: str = "") -> MissionGit:
    """Return the repository of a mission; a work package may have its own target."""
    lanes = mission.lanes
    work_package = mission.work_packages.get(wp_id)
    own = work_package.head.merge_target_branch if work_package else ""
    target = own or mission.meta.target_branch or (lanes.target_branch if lanes else "")
    mission_branch = (lanes.mission_branch if lanes else "") or f"kitty/mission-{mission.slug}"
    branches = {lane_branch(mission.slug, lane.lane_id) for lane in (lanes.lanes if lanes else ())}
    return MissionGit(mission, target, mission_branch, branches)
