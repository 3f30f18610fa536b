"""Whether an agent fell silent, from real git."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.missions import NOW, Project

from accord.core.errors import BrokenContract
from accord.missions.branches import UNAVAILABLE, OwnCommits, StalenessResult, git_of, judge, own_commits_of, stale_of
from accord.missions.load import load_mission

OLD, RECENT = NOW - timedelta(hours=2), NOW - timedelta(minutes=3)


def begun(project: Project, branch: str = "main") -> Project:
    """A repository whose default branch is ``branch``, with WP01 in progress in lane-a."""
    project.begin()
    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    project.event("WP01", "claimed", "in_progress", at=NOW - timedelta(hours=3))
    return project.repository(branch)


def stale(project: Project, wp_id: str = "WP01", threshold: float = 10) -> StalenessResult:
    mission = project.load()
    return stale_of(mission, wp_id, git_of(mission, wp_id), NOW, threshold)


@pytest.mark.parametrize(
    ("age", "threshold", "status"),
    [(0, 10, "fresh"), (600, 10, "fresh"), (601, 10, "stale"), (-5, 10, "fresh"), (1, 0, "stale"), (0, 0, "fresh")],
)
def test_stale_is_strictly_older_than_the_threshold(age: int, threshold: float, status: str) -> None:
    found = judge(OwnCommits(1, int(NOW.timestamp()) - age), NOW, threshold).status
    assert (found.status, found.minutes_since_commit) == (status, round(max(0, age) / 60, 2))
    assert datetime.fromisoformat(found.last_commit_time or "") == NOW - timedelta(seconds=age)


@pytest.mark.parametrize(("minutes", "status"), [(10, "fresh"), (10.1, "stale"), (-5, "fresh")])
def test_work_without_a_commit_is_stale_once_its_start_is_older_than_the_threshold(minutes: float, status: str) -> None:
    found = judge(OwnCommits(), NOW, 10, NOW - timedelta(minutes=minutes)).status
    assert (found.status, found.reason, found.minutes_since_commit) == (status, "no_own_commits", None)
    assert judge(OwnCommits(), NOW, 10).status.status == "fresh"


def test_a_commit_in_the_future_is_fresh_and_a_start_there_says_nothing() -> None:
    soon, far = NOW + timedelta(seconds=5), NOW + timedelta(days=26_000)
    for time in (soon, NOW + timedelta(minutes=30), far):
        found = judge(OwnCommits(1, int(time.timestamp())), NOW, 10).status
        assert (found.status, found.minutes_since_commit) == ("fresh", 0.0)
    found = [judge(OwnCommits(), NOW, 10, start) for start in (soon, far)]
    assert [one.status.reason for one in found] == ["no_own_commits", UNAVAILABLE]
    assert "is in the future." in found[1].error
    recent, old = (OwnCommits(1, int((NOW - timedelta(minutes=minutes)).timestamp())) for minutes in (3, 30))
    assert [judge(own, NOW, 10, far).status.status for own in (recent, old)] == ["fresh", "stale"]


@pytest.mark.parametrize(
    ("commit", "start", "status"), [(120, 120, "stale"), (120, 3, "fresh"), (3, 120, "fresh"), (None, 120, "stale")]
)
def test_stale_counts_from_the_later_of_the_last_commit_and_the_last_start(
    commit: int | None, start: int, status: str
) -> None:
    own = OwnCommits() if commit is None else OwnCommits(1, int((NOW - timedelta(minutes=commit)).timestamp()))
    found = judge(own, NOW, 10, NOW - timedelta(minutes=start)).status
    assert (found.status, found.minutes_since_commit) == (status, commit)


def share_lane(project: Project, **head: Any) -> Path:
    """Let WP02 begin in the lane of WP01, which has a commit that is two hours old."""
    tree = begun(project).worktree("lane-a")
    project.commit("work", at=OLD, directory=tree)
    project.work_package("WP02", "code_change", dependencies=["WP01"], **head)
    project.lanes(lane_a=["WP01", "WP02"])
    project.event("WP02", "claimed", "in_progress", at=RECENT)
    return tree


LANE, OTHER_LANE = "kitty/mission-078-ships-lane-a", "kitty/mission-078-ships-lane-b"


def own_of(project: Project, wp_id: str, branch: str = LANE) -> OwnCommits:
    mission = project.load()
    return own_commits_of(mission, wp_id, branch, git_of(mission), NOW)


def own_count(project: Project, wp_id: str, branch: str = LANE) -> int:
    return own_of(project, wp_id, branch).count


def test_commits_of_an_earlier_work_package_in_the_lane_are_not_of_the_next(project: Project) -> None:
    tree = share_lane(project)
    assert (own_count(project, "WP01"), own_count(project, "WP02")) == (1, 0)
    assert stale(project, "WP02").status.reason == "no_own_commits"
    project.commit("base", at=NOW)
    project.git("merge", "--quiet", "--no-ff", "-m", "merge", "main", directory=tree)
    assert own_count(project, "WP02") == 0
    project.commit("work of WP02", at=RECENT, directory=tree)
    assert own_count(project, "WP02") == 1
    project.event("WP02", "in_progress", "planned", at=NOW)
    project.event("WP02", "planned", "in_progress", at=NOW + timedelta(seconds=1))
    assert own_count(project, "WP02") == 0


REWRITTEN = {
    "a rebase": ("rebase main",),
    "a cherry-pick": ("reset --hard main", "cherry-pick ORIG_HEAD"),
    "an amended commit": ("commit --amend --no-edit",),
}


@pytest.mark.parametrize("how", REWRITTEN)
def test_commits_that_are_written_again_stay_those_of_an_earlier_work_package(project: Project, how: str) -> None:
    tree = share_lane(project)
    (tree / "a").write_text("x", encoding="utf-8")
    project.git("add", "a", directory=tree)
    project.commit("more work of WP01", at=OLD, directory=tree)
    project.commit("base", at=NOW)
    for command in REWRITTEN[how]:
        project.git(*command.split(), directory=tree)
    assert project.git("log", "-1", "--format=%at", LANE) < project.git("log", "-1", "--format=%ct", LANE)
    assert (own_count(project, "WP01") > 0, own_count(project, "WP02")) == (True, 0)
    (tree / "a").write_text("y", encoding="utf-8")
    project.git("commit", "--all", "-m", "work of WP02", at=RECENT, directory=tree)
    project.git("commit", "--amend", "--no-edit", directory=tree)
    assert own_count(project, "WP02") == 1


def share_project(project: Project) -> tuple[Path, Path]:
    """Let WP01 begin in lane-a, and WP03, which does not depend on it, in lane-b."""
    mine = begun(project).worktree("lane-a")
    project.work_package("WP03", "code_change")
    project.lanes(lane_a=["WP01"], lane_b=["WP03"])
    project.event("WP03", "claimed", "in_progress", at=NOW - timedelta(hours=3))
    return mine, project.worktree("lane-b")


@pytest.mark.parametrize(("source", "how"), [(OTHER_LANE, "--no-ff"), ("topic", "--no-ff"), ("topic", "--ff-only")])
def test_commits_that_a_merge_brought_are_own_unless_another_lane_made_them(
    project: Project, how: str, source: str
) -> None:
    mine, theirs = share_project(project)
    if source == "topic":
        project.git("checkout", "-b", source, directory=theirs)
    project.commit("others", at=RECENT, directory=theirs)
    project.git("merge", how, "--no-edit", source, directory=mine)
    found, brought = own_of(project, "WP01"), int(source == "topic")
    assert (found.count, found.error) == (brought, "")
    project.commit("work", directory=mine)
    assert own_count(project, "WP01") == brought + 1


@pytest.mark.parametrize(
    ("how", "count"), [("merge --no-ff --no-edit", 1), ("merge --ff-only", 0), ("reset --hard", 0)]
)
def test_a_lane_keeps_its_commits_where_another_takes_them(project: Project, how: str, count: int) -> None:
    mine, theirs = share_project(project)
    project.commit("work", at=RECENT, directory=mine)
    project.git(*how.split(), LANE, directory=theirs)
    found = own_of(project, "WP01")
    assert (found.count, "nothing tells which made them" in found.error) == (count, not count)
    assert own_count(project, "WP03", OTHER_LANE) == 0
    project.work_package("WP03", "code_change", dependencies=["WP01"])
    assert own_of(project, "WP01").count == 1


INTO_MAIN = {
    "a fast-forward": (["merge --ff-only {lane}"], False),
    "a merge": (["merge --no-ff --no-edit {lane}"], True),
    "a merge that the lane fetched": (["merge --no-ff --no-edit {lane}", "-C {tree} merge main"], False),
    "nothing": ([], True),
    "a merge of the base": (["commit --allow-empty -m others", "-C {tree} merge --no-edit main"], True),
}


@pytest.mark.parametrize("source", ["the lane", "--no-ff", "--ff-only"])
@pytest.mark.parametrize("how", INTO_MAIN)
def test_merged_work_is_own_or_unknown_where_nothing_tells_and_never_stale(
    project: Project, how: str, source: str
) -> None:
    tree, (commands, is_known) = begun(project).worktree("lane-a"), INTO_MAIN[how]
    assert own_of(project, "WP01") == OwnCommits()
    if source == "the lane":
        project.commit("work", at=OLD, directory=tree)
    else:
        for command in ("checkout -b topic", "commit --allow-empty -m work", f"checkout {LANE}"):
            project.git(*command.split(), at=OLD, directory=tree)
        project.git("merge", source, "--no-edit", "topic", directory=tree)
        project.git("branch", "-D", "topic")
    for command in commands:
        project.git(*command.format(lane=LANE, tree=tree).split())
    is_known = is_known and (source != "--no-ff" or how != "a merge")
    found = own_of(project, "WP01")
    assert (found.count, bool(found.error)) == (int(is_known), not is_known)


def test_commits_of_main_and_other_lanes_in_a_merged_branch_are_not_own(project: Project) -> None:
    mine, theirs = share_project(project)
    project.commit("others in the lane", at=RECENT, directory=theirs)
    project.commit("others on main", at=RECENT)
    for command in (f"checkout -b topic {OTHER_LANE}", "merge --no-ff --no-edit main"):
        project.git(*command.split(), directory=mine)
    project.commit("work", at=OLD, directory=mine)
    for command in (f"checkout {LANE}", "merge --no-ff --no-edit topic", "branch -D topic"):
        project.git(*command.split(), directory=mine)
    assert own_count(project, "WP01") == 1


def test_commits_of_branches_that_main_and_other_lanes_merged_are_not_own_later(project: Project) -> None:
    mine, theirs = share_project(project)
    for name, tree in (("main", project.root), (OTHER_LANE, theirs)):
        project.git("checkout", "-b", "topic", directory=tree)
        project.commit(f"others of {name}", at=RECENT, directory=tree)
        project.git("checkout", name, directory=tree)
        project.git("merge", "--no-ff", "--no-edit", "topic", directory=tree)
        project.git("branch", "-D", "topic")
        project.git("merge", "--no-ff", "--no-edit", name, directory=mine)
        found = own_of(project, "WP01")
        assert (found.count, bool(found.error)) == (0, name != "main")
    project.commit("work", at=RECENT, directory=mine)
    assert own_count(project, "WP01") == 1


@pytest.mark.parametrize("how", ["merge", "rebase", "reset --hard"])
def test_commits_of_the_target_that_the_lane_fetched_are_not_its_own(project: Project, how: str) -> None:
    tree = share_lane(project)
    project.git("merge", "--no-ff", "--no-edit", LANE)
    project.commit("others", at=NOW)
    project.git("checkout", "--quiet", "-b", "topic")
    project.commit("others on a branch", at=NOW)
    project.git("checkout", "--quiet", "main")
    project.git("merge", "--no-ff", "--no-edit", "topic")
    project.git(*how.split(), "main", directory=tree)
    assert own_count(project, "WP02") == 0


def test_own_commits_touch_the_owned_files(project: Project) -> None:
    tree = share_lane(project)
    for path in ("src/api/a.py", "src/web/b.py"):
        (tree / path).parent.mkdir(parents=True)
        (tree / path).write_text("x", encoding="utf-8")
        project.git("add", ".", directory=tree)
        project.commit(path, at=NOW, directory=tree)
    wanted = {"src/api/**": 1, "src/api/": 1, "docs/**": 0, "": 2, "../x": 2}
    found = {}
    for owned in wanted:
        project.work_package("WP02", "code_change", owned_files=[owned] if owned else [])
        found[owned] = own_count(project, "WP02")
    assert found == wanted


def test_a_merged_lane_of_a_dependency_is_not_own_work_even_if_it_is_newer(project: Project) -> None:
    tree = begun(project).worktree("lane-b")
    project.work_package("WP02", "code_change", dependencies=["WP03"])
    project.work_package("WP03", "planning_artifact", dependencies=["WP01"])
    project.lanes(lane_b=["WP01"], lane_a=["WP02"])
    mine = project.worktree("lane-a")
    project.event("WP02", "claimed", "in_progress", at=OLD)
    project.commit("reworked", at=RECENT, directory=tree)
    project.git("merge", "--quiet", "--no-ff", "-m", "merge", "kitty/mission-078-ships-lane-b", directory=mine)
    assert own_count(project, "WP02") == 0
    assert own_count(project, "WP01", OTHER_LANE) == 1


@pytest.mark.slow
@pytest.mark.parametrize("branch", ["main", "release/3.x"])
def test_only_the_own_commits_of_the_branch_count(project: Project, branch: str) -> None:
    tree = begun(project, branch).worktree("lane-a")
    assert stale(project).status.model_dump()["reason"] == "no_own_commits"
    project.commit("work", at=OLD, directory=tree)
    project.commit("others", at=RECENT)
    assert (stale(project).status.status, stale(project).status.minutes_since_commit) == ("stale", 120)
    project.commit("more work", at=RECENT, directory=tree)
    assert (stale(project).status.status, stale(project).status.minutes_since_commit) == ("fresh", 3)


def test_commits_of_the_default_branch_do_not_count_after_they_are_merged_into_the_lane(project: Project) -> None:
    tree = begun(project, "release/3.x").worktree("lane-a")
    project.commit("work", at=OLD, directory=tree)
    project.commit("others", at=RECENT)
    project.git("merge", "--quiet", "--no-ff", "-m", "merge", "release/3.x", at=OLD, directory=tree)
    assert stale(project).status.minutes_since_commit == 120


def test_a_missions_own_branch_has_the_commits_of_planning_and_another_history_no_answer(project: Project) -> None:
    begun(project)
    project.git("checkout", "--quiet", "-b", "kitty/mission-078-ships")
    project.commit("plan", at=NOW - timedelta(hours=4))
    project.git("branch", "--quiet", "kitty/mission-078-ships-lane-a")
    assert stale(project).status.reason == "no_own_commits"
    project.git("branch", "--quiet", "-D", "kitty/mission-078-ships-lane-a")
    project.git("checkout", "--quiet", "--orphan", "kitty/mission-078-ships-lane-a")
    project.commit("work", at=OLD)
    assert "shares no commit" in stale(project).error


def test_the_default_branch_of_origin_keeps_its_slashes(project: Project, tmp_path: Path) -> None:
    tree = begun(project, "release/3.x").worktree("lane-a")
    project.commit("work", at=OLD, directory=tree)
    clone = tmp_path / "clone"
    project.git("clone", "--quiet", "--branch", "kitty/mission-078-ships-lane-a", str(project.root), str(clone))
    mission = load_mission(clone, project.slug)
    git = git_of(mission)
    assert git.default_branch == "release/3.x"
    assert stale_of(mission, "WP01", git, NOW).status.minutes_since_commit == 120


@pytest.mark.parametrize("depth", [1, 2])
def test_a_shallow_clone_is_not_evidence_and_the_error_has_a_fix(project: Project, tmp_path: Path, depth: int) -> None:
    begun(project)
    for text in ("one", "two", "three"):
        project.commit(text, at=OLD)
    project.commit("work", at=OLD, directory=project.worktree("lane-a"))
    clone = tmp_path / "clone"
    project.git("clone", "--quiet", f"--depth={depth}", "--no-single-branch", f"file://{project.root}", str(clone))
    mission = load_mission(clone, project.slug)
    found = stale_of(mission, "WP01", git_of(mission), NOW)
    assert (found.status.status, found.status.reason) == ("fresh", UNAVAILABLE)
    assert "shallow clone" in found.error
    assert "fetch-depth: 0" in found.error


def test_work_that_cannot_be_judged_is_fresh_with_a_reason(project: Project) -> None:
    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    project.event("WP01", "claimed", "in_progress")
    for prepare, said in ((lambda: None, "not a git repository"), (project.repository, "lane-a does not exist")):
        prepare()
        found = stale(project)
        assert (found.status.status, found.status.reason) == ("fresh", "stale_detection_unavailable")
        assert (found.status.minutes_since_commit, found.status.last_commit_time) == (None, None)
        assert said in found.error


def test_only_work_in_progress_can_be_stale(project: Project) -> None:
    tree = begun(project).worktree("lane-a")
    project.commit("work", at=OLD, directory=tree)
    for i, status in enumerate(["planned", "for_review", "approved", "done", "blocked", "claimed"], 1):
        project.event("WP01", "in_progress", status, at=NOW + timedelta(seconds=i))
        assert (stale(project).status.status, stale(project).status.reason) == ("fresh", "not_in_progress"), status


def test_work_without_a_mode_is_judged_only_in_progress(project: Project) -> None:
    project.begin().work_package("WP01", body="Think hard.")
    found = stale(project)
    assert (found.status.reason, found.is_broken) == ("not_in_progress", False)
    project.event("WP01", "planned", "in_progress", force=True, reason="It began.")
    found = stale(project)
    assert (found.status.reason, found.is_broken) == (UNAVAILABLE, True)


@pytest.mark.parametrize("broken", ["the file", "the lanes", "the log"])
def test_an_unreadable_work_package_has_no_answer_and_a_missing_one_is_an_error(project: Project, broken: Any) -> None:
    begun(project)
    name = {"the file": "tasks/WP01-part.md", "the lanes": "lanes.json", "the log": "status.events.jsonl"}[broken]
    project.write(name, '{"wp_id": "WP01",\n')
    assert stale(project).status.reason == UNAVAILABLE
    assert stale(project).error
    with pytest.raises(BrokenContract):
        stale(project, "WP77")
