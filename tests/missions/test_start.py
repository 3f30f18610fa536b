"""Starts of work packages: branch and work tree as the contract says, once, whatever happened before."""

import json
import re
import shlex
import shutil
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.missions import NOW, Project

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import has_errors
from accord.missions import start as starts
from accord.missions.branches import MissingWork, git_of
from accord.missions.log import log_path
from accord.missions.next_moves import next_moves
from accord.missions.rules import check_missions, mission_findings
from accord.missions.start import LaneFacts, StartResult, lane_facts, lane_warnings, plan_lane
from accord.missions.workspace import resolve_workspace

BRANCH = "kitty/mission-078-ships-lane-a"


@pytest.fixture
def code(project: Project) -> Project:
    """A repository with two code changes in one lane."""
    project.work_package("WP01", "code_change")
    project.work_package("WP02", "code_change", dependencies=["WP01"])
    project.lanes(lane_a=["WP01", "WP02"])
    return project.repository()


def start(project: Project, wp_id: str = "WP01", actor: str = "ada", **how: Any) -> StartResult:
    return starts.start(project.root, project.slug, wp_id, actor, ManualClock(NOW), redact=lambda text: text, **how)


def tree(project: Project, lane: str = "lane-a") -> Path:
    return project.root / ".worktrees" / f"078-ships-{lane}"


def branch_of(lane: str) -> str:
    return f"kitty/mission-078-ships-{lane}"


def test_a_start_makes_the_branch_and_the_work_tree_of_the_lane_once(code: Project) -> None:
    started = start(code)
    assert [step.op for step in started.operations] == ["ignore", "branch", "worktree"]
    assert [event["to_lane"] for event in started.events] == ["claimed", "in_progress"]
    assert code.git("branch", "--show-current", directory=tree(code)) == BRANCH
    assert code.git("status", "--short") == "?? kitty-specs/078-ships/status.events.jsonl"
    before = log_path(code.folder).read_bytes()
    again = start(code)
    assert (again.operations, again.events, log_path(code.folder).read_bytes()) == ((), (), before)


def test_a_dry_run_and_a_refused_start_change_nothing(code: Project) -> None:
    assert start(code, is_dry_run=True).operations
    with pytest.raises(BrokenContract, match="WP01, whose review has not passed"):
        start(code, "WP02")
    assert not tree(code).exists()
    assert not log_path(code.folder).exists()
    assert code.git("branch", "--list", BRANCH) == ""


def test_a_planning_artifact_starts_in_the_root_without_a_branch(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    started = start(project)
    assert (started.operations, started.workspace.workspace_path) == ((), str(project.root))
    assert project.status("WP01") == "in_progress"


def test_a_start_sends_nothing_back(code: Project) -> None:
    for i, status in enumerate(["for_review", "in_review", "approved", "done", "canceled"]):
        code.event("WP01", "in_progress", status, at=NOW + timedelta(seconds=i))
        with pytest.raises(BrokenContract, match=f"WP01 is {status}"):
            start(code)


def test_work_of_another_is_not_taken_over(code: Project) -> None:
    for begin in (lambda: code.move("WP01", "claimed"), lambda: start(code)):
        begin()
        for door in (start, lambda project, actor: project.move("WP01", "in_progress", actor)):
            with pytest.raises(BrokenContract, match="ada has claimed it"):
                door(code, actor="bob")


def test_a_worker_goes_on_after_a_rejection_and_the_reviewer_stays_one(code: Project) -> None:
    for actor, target in (("ada", "in_progress"), ("ada", "for_review"), ("bob", "in_progress"), ("ada", "blocked")):
        code.move("WP01", target, actor, feedback="what")
    ahead = next_moves(code.load(), "WP01", "accord mission", NOW, ahead_only=True)
    assert [move.command for move in ahead] == [f"accord mission start {code.load().slug} WP01 --actor ada"]
    code.move("WP01", "in_progress", "ada")
    code.move("WP01", "for_review", "ada", feedback="what")
    code.move("WP01", "in_progress", "bob", feedback="once more")
    with pytest.raises(BrokenContract, match="ada has claimed it"):
        start(code, actor="bob")
    assert [event["policy_metadata"] for event in start(code).events] == [{"lane_branch": BRANCH}]
    assert start(code, actor="Ada").events == ()
    proposed = next_moves(code.load(), "WP01", "accord mission", NOW)
    assert {move.command.split("--actor ")[1].split()[0] for move in proposed if "--actor" in move.command} >= {"ada"}
    assert not any("--actor bob" in move.command for move in proposed)
    code.move("WP01", "for_review", "ada", feedback="what")
    assert code.move("WP01", "approved", "bob").events


def test_a_new_branch_begins_at_the_missions_branch_else_at_the_target_and_one_at_origin_is_continued(
    code: Project,
) -> None:
    code.git("branch", "kitty/mission-078-ships")
    code.commit("later")
    start(code)
    assert code.git("rev-parse", BRANCH) == code.git("rev-parse", "kitty/mission-078-ships")
    code.work_package("WP03", "code_change")
    code.lanes(lane_a=["WP01"], lane_b=["WP03"])
    code.git("update-ref", "refs/remotes/origin/kitty/mission-078-ships-lane-b", "main")
    start(code, "WP03")
    assert code.git("rev-parse", "kitty/mission-078-ships-lane-b") == code.git("rev-parse", "main")


def half_made(project: Project, *, has_link: bool) -> None:
    """Leave what git leaves when it is killed while it makes a work tree."""
    project.worktree("lane-a")
    admin = project.root / ".git" / "worktrees" / "078-ships-lane-a"
    (admin / "locked").write_text("initializing", encoding="utf-8")
    shutil.rmtree(tree(project))
    tree(project).mkdir()
    if has_link:
        (tree(project) / ".git").write_text(f"gitdir: {admin}\n", encoding="utf-8")
        (tree(project) / "half").write_text("", encoding="utf-8")


KILLED = {
    "after the exclusion": lambda project: (project.root / ".git/info/exclude").write_text("/.worktrees/"),
    "after the branch": lambda project: project.git("branch", BRANCH),
    "in the work tree": lambda project: half_made(project, has_link=True),
    "before its link": lambda project: half_made(project, has_link=False),
    "before the move": lambda project: project.worktree("lane-a"),
    "before the second event": lambda project: project.event("WP01", "planned", "claimed"),
    "the tree was removed": lambda project: shutil.rmtree(project.worktree("lane-a")),
}


@pytest.mark.parametrize("moment", KILLED)
def test_a_start_that_was_killed_at_any_step_is_continued_by_the_same_command(code: Project, moment: str) -> None:
    KILLED[moment](code)
    start(code)
    assert code.git("branch", "--show-current", directory=tree(code)) == BRANCH
    assert (tree(code) / "kitty-specs/078-ships/meta.json").is_file()
    assert not (tree(code) / "half").exists()
    assert code.status("WP01") == "in_progress"
    assert start(code).events == ()


def lose(project: Project, lane: str = "lane-a") -> None:
    project.git("worktree", "remove", "--force", str(tree(project, lane)))
    project.git("branch", "--quiet", "-D", branch_of(lane))


def begun(project: Project) -> Project:
    """Start WP01, and commit to its lane."""
    start(project)
    project.commit("work", directory=tree(project))
    return project


def test_a_lost_lane_whose_work_was_handed_in_is_not_to_be_begun_again(code: Project) -> None:
    begun(code)
    code.move("WP01", "for_review", feedback="done")
    code.move("WP01", "approved", actor="bob")
    lose(code)
    with pytest.raises(BrokenContract, match="of its lane is lost") as refused:
        code.move("WP01", "done", actor="bob")
    code.event("WP01", "in_progress", "for_review", at=NOW + timedelta(minutes=1))
    for target in ("in_review", "approved"):
        with pytest.raises(BrokenContract, match="of its lane is lost"):
            code.move("WP01", target, actor="bob")
    code.work_package("WP01", "code_change", dependencies=["WP02"])  # a dependency that is open again changes nothing
    moves = {move.to: move for move in next_moves(code.load(), "WP01", "accord mission", NOW)}
    for target in ("in_review", "approved"):
        assert moves[target].missing == ("the branch of its lane",)
        assert "COMMIT && " in moves[target].command
    assert code.move("WP01", "planned", actor="bob", feedback="It is lost.", is_dry_run=True).events
    assert "git fsck" in str(refused.value)
    assert "begin it again" not in str(refused.value)
    assert ("fetch origin" in str(refused.value)) is ("origin" in code.git("remote").split())


def test_each_door_refuses_a_lost_lane_that_is_begun_again_only_on_purpose(code: Project) -> None:
    lose(begun(code))
    before = log_path(code.folder).read_bytes()
    for door in (
        lambda: start(code),
        lambda: code.move("WP01", "in_progress"),
        lambda: code.move("WP01", "for_review", feedback="done"),
    ):
        with pytest.raises(BrokenContract, match=f"The branch {BRANCH} of its lane is lost") as refused:
            door()
    assert f"To begin it again, run `git -C {code.root} branch {BRANCH} main`" in str(refused.value)
    assert log_path(code.folder).read_bytes() == before
    (ahead, *_) = next_moves(code.load(), "WP01", "accord mission", NOW)
    assert (ahead.missing[0], f"branch {BRANCH} COMMIT && " in ahead.command) == ("the branch of its lane", True)
    code.git("branch", BRANCH, "main")
    assert [step.op for step in start(code).operations] == ["worktree"]


def test_a_lost_lane_is_begun_again_from_a_target_that_only_origin_has(code: Project) -> None:
    lose(begun(code))
    code.git("update-ref", "refs/remotes/origin/main", "main")
    code.git("checkout", "--quiet", "--detach")
    code.git("branch", "--quiet", "-D", "main")
    with pytest.raises(BrokenContract, match=f"branch {BRANCH} origin/main`"):
        start(code)


@pytest.mark.parametrize("status", ["planned", "blocked"])
def test_a_lane_stays_lost_while_the_work_is_put_back(code: Project, status: str) -> None:
    lose(begun(code))
    code.move("WP01", status, reason="later")
    with pytest.raises(BrokenContract, match="is lost"):
        start(code)


def test_a_lane_is_lost_for_the_next_work_package_too_until_its_work_is_done(code: Project) -> None:
    lose(begun(code))
    code.approve("WP01", at=NOW + timedelta(minutes=1))
    with pytest.raises(BrokenContract, match="is lost"):
        start(code, "WP02")
    code.event("WP01", "approved", "done", at=NOW + timedelta(minutes=2))
    assert [step.op for step in start(code, "WP02").operations] == ["branch", "worktree"]


@pytest.mark.parametrize("what", ["whole", "without its tree", "fetched"])
def test_a_renamed_lane_is_found_by_its_older_name_and_its_command_brings_it_back(code: Project, what: str) -> None:
    begun(code)
    code.lanes(lane_x=["WP01"], lane_b=["WP02"])
    if what == "without its tree":
        shutil.rmtree(tree(code))
    if what == "fetched":
        code.git("update-ref", f"refs/remotes/origin/{BRANCH}", BRANCH)
        lose(code)
    with pytest.raises(BrokenContract, match=f"Its work is on the branch .*{BRANCH}, and its files name .*lane-x"):
        start(code)
    command = next_moves(code.load(), "WP01", "accord mission", NOW)[0].command
    for part in command.split(" && ")[:-1]:
        code.git(*shlex.split(part)[1:])
    start(code)
    there = code.root / ".worktrees" / "078-ships-lane-x"
    assert code.git("log", "-1", "--format=%s", directory=there) == "work"
    assert code.git("branch", "--show-current", directory=there) == "kitty/mission-078-ships-lane-x"


def join(project: Project, order: tuple[str, str]) -> Project:
    """Begin work in two lanes; then let the files name the first for both."""
    project.work_package("WP02", "code_change")
    project.lanes(lane_a=["WP01"], lane_b=["WP02"])
    for wp_id in order:
        start(project, wp_id)
    project.commit("work", directory=tree(project, "lane-b"))
    project.git("add", "kitty-specs")
    project.commit("log")
    project.lanes(lane_a=["WP01", "WP02"])
    return project


JOINED = "The work of WP02 began on the branch kitty/mission-078-ships-lane-b, and its files name .*-lane-a"


@pytest.mark.parametrize("order", [("WP01", "WP02"), ("WP02", "WP01")])
def test_lost_work_whose_lane_joins_that_of_other_work_is_not_begun_there(
    code: Project, order: tuple[str, str]
) -> None:
    lose(join(code, order), "lane-b")
    for is_committed in (False, True):
        for door in (
            lambda: start(code, "WP02"),
            lambda: code.move("WP02", "in_progress"),
            lambda: code.move("WP02", "for_review", feedback="done"),
        ):
            with pytest.raises(BrokenContract, match=JOINED):
                door()
        found = check_missions(code.root, [code.slug], "HEAD", None, NOW).files[f"kitty-specs/{code.slug}/lanes.json"]
        codes = [(one.code, one.severity.value) for one in found]
        assert codes == ([] if is_committed else [("mode-contradiction", "error")])
        code.git("add", "kitty-specs")
        code.commit("join")
    code.move("WP02", "planned", reason="It is lost.")
    assert start(code, "WP02").workspace.branch_name == BRANCH


def test_a_line_says_done_of_lost_work_only_in_its_lane(code: Project) -> None:
    lose(join(code, ("WP01", "WP02")), "lane-b")
    for i, (source, target) in enumerate(pairwise(("in_progress", "for_review", "in_review", "approved", "done"))):
        actor = "ada" if target == "for_review" else "rev"
        code.event("WP02", source, target, NOW + timedelta(minutes=i + 1), actor=actor)
    found = check_missions(code.root, [code.slug], "HEAD", None, NOW + timedelta(hours=1)).files
    (done,) = found[f"kitty-specs/{code.slug}/status.events.jsonl"]
    assert (done.code, done.severity.value, bool(re.search(JOINED, done.message))) == ("event-illegal", "error", True)


def test_work_that_was_merged_into_another_lane_before_its_review_goes_on_there(
    code: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(code, ("WP01", "WP02"))
    monkeypatch.setenv("GIT_COMMITTER_DATE", (NOW + timedelta(minutes=1)).isoformat())
    code.git("merge", "--quiet", "--no-ff", "--no-edit", branch_of("lane-b"), directory=tree(code))
    lose(code, "lane-b")
    code.event("WP02", "in_progress", "for_review", NOW + timedelta(minutes=2), actor="ada")
    assert code.move("WP02", "in_review", actor="bob").events


@pytest.mark.parametrize("how", ["merged", "renamed", "renamed there and back"])
def test_work_goes_on_in_the_lane_that_has_it(code: Project, how: str) -> None:
    join(code, ("WP02", "WP01"))
    if how == "merged":
        code.git("merge", "--quiet", "--no-ff", "--no-edit", branch_of("lane-b"), directory=tree(code))
        lose(code, "lane-b")
    else:
        code.work_package("WP03", "code_change")
        code.lanes(lane_a=["WP01"], lane_b=["WP02", "WP03"])
        code.git("add", "kitty-specs")
        code.commit("plan")
        code.lanes(lane_a=["WP01"], lane_d=["WP02", "WP03"])
        code.git("branch", "--move", branch_of("lane-b"), branch_of("lane-d"))
        code.git("worktree", "move", str(tree(code, "lane-b")), str(tree(code, "lane-d")))
        start(code, "WP03")
    if how == "renamed there and back":
        code.git("add", "kitty-specs")
        code.commit("renamed")
        code.lanes(lane_a=["WP01"], lane_b=["WP02", "WP03"])
        code.git("branch", "--move", branch_of("lane-d"), branch_of("lane-b"))
        code.git("worktree", "move", str(tree(code, "lane-d")), str(tree(code, "lane-b")))
    for wp_id in ("WP02", "WP03")[: 1 if how == "merged" else 2]:
        assert start(code, wp_id).operations == ()
        assert code.move(wp_id, "for_review", feedback="done").events


def test_the_lanes_of_a_renamed_mission_are_found_by_its_events(code: Project) -> None:
    begun(code)
    code.folder.rename(code.folder.with_name("079-boats"))
    renamed = Project(code.root, "079-boats")
    with pytest.raises(BrokenContract, match=rf"Its work is on the branch {BRANCH}"):
        start(renamed)
    lose(code)
    with pytest.raises(BrokenContract, match=f"The branch {BRANCH} of its lane is lost"):
        start(renamed)


@pytest.mark.parametrize("is_renamed", [False, True])
def test_work_whose_lane_has_gone_is_not_done_and_the_way_out_is_a_command_that_works(
    code: Project, is_renamed: bool
) -> None:
    begun(code)
    code.approve("WP01", at=NOW + timedelta(minutes=1))
    if is_renamed:
        code.lanes(lane_x=["WP01"], lane_b=["WP02"])
    else:
        commit = code.git("rev-parse", BRANCH)
        lose(code)
    with pytest.raises(BrokenContract, match="Its work is on the branch" if is_renamed else "is lost"):
        code.move("WP01", "done")
    command = next_moves(code.load(), "WP01", "accord mission", NOW)[0].command
    for part in command.split(" && ")[:-1]:
        code.git(*(word if word != "COMMIT" else commit for word in shlex.split(part)[1:]))
    assert code.move("WP01", "done").events


@pytest.mark.parametrize("names", ["a lane", "a lane with a branch", "a context"])
def test_work_is_reviewed_and_merged_only_on_the_branch_where_it_began(code: Project, names: str) -> None:
    begun(code)
    code.move("WP01", "for_review", feedback="done")
    if names == "a context":
        code.write("../../.kittify/workspaces/078-ships-lane-b.json", {"lane_id": "lane-b", "wp_id": "WP01"})
    else:
        code.lanes(lane_a=["WP02"], lane_b=["WP01"])
    if names != "a lane":
        code.git("branch", BRANCH.replace("lane-a", "lane-b"), "main")
    said = f"The work of WP01 began on the branch {BRANCH}, and its files name .*lane-b"
    with pytest.raises(BrokenContract, match=said):
        code.move("WP01", "approved", "rev")
    code.move("WP01", "in_progress", "rev", feedback="More.")
    assert json.loads(log_path(code.folder).read_text().splitlines()[-1])["policy_metadata"] == {"lane_branch": BRANCH}
    code.move("WP01", "approved", "rev", is_forced=True, reason="now", review_ref="r")
    with pytest.raises(BrokenContract, match=said):
        code.move("WP01", "done")
    assert next_moves(code.load(), "WP01", "accord mission", NOW)[0].command == "accord mission check 078-ships"
    assert code.move("WP01", "done", override_reason="It was moved there.", is_dry_run=True).events
    code.move("WP01", "planned", review_ref="r")
    assert start(code).workspace.branch_name != BRANCH


def test_a_merge_of_a_branch_that_no_one_has_is_not_proposed(code: Project) -> None:
    code.approve("WP01")
    assert next_moves(code.load(), "WP01", "accord mission", NOW)[0].command.endswith("--override-reason TEXT")


def test_work_that_moves_to_another_lane_begins_there(code: Project) -> None:
    begun(code)
    code.move("WP01", "planned", reason="later")
    code.lanes(lane_a=["WP02"], lane_b=["WP01"])
    assert "branch" in [step.op for step in start(code).operations]


LANE = LaneFacts("/r/.worktrees/m-lane-a", "kitty/mission-m-lane-a", base="refs/heads/main")


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ((), []),
        ((MissingWork(("WP01",), "b", "refs/heads/b", 1),), ["lacks the work of WP01: 1 commit of b", "--no-edit b`"]),
        ((MissingWork(("WP01", "WP02"), "b", "refs/remotes/origin/b", 2),), ["WP01, WP02: 2 commits of origin/b"]),
        ((MissingWork((), "main", "refs/remotes/origin/main", 3),), ["base main is old: 3 commits of origin/main"]),
        ((MissingWork(("WP01",), "b"),), ["may lack the work of WP01: b is not here", "fetch origin b"]),
    ],
)
def test_a_warning_names_the_missing_work_and_the_command_that_brings_it_in(lacking: Any, said: list[str]) -> None:
    found = lane_warnings(LANE, lacking, is_again=False)
    assert len(found) == len(lacking)
    assert all(part in found[0] for part in said)


@pytest.fixture
def two_lanes(code: Project) -> Project:
    """WP02, in a lane of its own, depends on WP01, which is approved and has a commit that is not merged."""
    code.lanes(lane_a=["WP01"], lane_b=["WP02"])
    begun(code)
    code.approve("WP01", at=NOW + timedelta(minutes=1))
    return code


def run_hint(project: Project, warning: str) -> None:
    for part in warning.split("`")[1].split(" && "):
        project.git(*shlex.split(part)[1:])


def test_a_lane_without_its_dependency_says_so_until_the_command_brings_it_in(two_lanes: Project) -> None:
    first = start(two_lanes, "WP02", is_dry_run=True)
    assert (first.base, len(first.warnings)) == ("refs/heads/main", 1)
    for _ in range(2):
        (warning,) = start(two_lanes, "WP02").warnings
    run_hint(two_lanes, warning)
    again = start(two_lanes, "WP02")
    assert (again.base, again.warnings) == ("", ())


def test_a_dependency_of_a_dependency_is_missed_and_a_squashed_or_merged_one_is_not(two_lanes: Project) -> None:
    two_lanes.work_package("WP03", "planning_artifact", dependencies=["WP01"])
    two_lanes.work_package("WP02", "code_change", dependencies=["WP03"])
    two_lanes.approve("WP03")
    assert "the work of WP01" in start(two_lanes, "WP02", is_dry_run=True).warnings[0]
    policy = {"merge_ancestry": "overridden", "override_reason": "squashed"}
    two_lanes.event("WP01", "approved", "done", at=NOW + timedelta(minutes=2), policy_metadata=policy)
    assert start(two_lanes, "WP02", is_dry_run=True).warnings == ()
    two_lanes.event("WP01", "done", "approved", at=NOW + timedelta(minutes=3))
    two_lanes.git("merge", "--quiet", BRANCH)
    assert start(two_lanes, "WP02").warnings == ()


def test_an_old_base_or_lane_is_named(code: Project) -> None:
    code.git("branch", "kitty/mission-078-ships")
    code.commit("later")
    code.git("update-ref", "refs/remotes/origin/main", "main")
    code.git("branch", "--force", "ahead", "main")
    code.git("reset", "--quiet", "--hard", "HEAD~1")
    started = start(code)
    assert started.base == "refs/heads/kitty/mission-078-ships"
    (warning,) = started.warnings
    assert "1 commit of origin/main missing" in warning
    assert start(code).warnings == ()  # the lane lives on, as other branches do
    code.git("update-ref", f"refs/remotes/origin/{BRANCH}", "ahead")
    assert f"the work of WP01: 1 commit of origin/{BRANCH}" in start(code).warnings[0]


def test_a_dependency_that_was_never_fetched_may_be_missing(two_lanes: Project) -> None:
    lose(two_lanes)
    assert "may lack the work of WP01" in start(two_lanes, "WP02").warnings[0]


def test_work_that_a_move_began_without_a_branch_gets_one_with_a_warning(code: Project) -> None:
    code.move("WP01", "in_progress")
    assert json.loads(log_path(code.folder).read_text().splitlines()[-1])["policy_metadata"] == {"lane_branch": ""}
    assert f"in progress, but {BRANCH} existed neither here nor at origin" in start(code).warnings[0]
    assert start(code).warnings == ()


@pytest.mark.parametrize("killed", ["", "after the branch", "before the move"])
def test_a_start_of_work_in_progress_leaves_the_branch_in_the_log_once(code: Project, killed: str) -> None:
    code.move("WP01", "in_progress")
    if killed:
        KILLED[killed](code)
    dry = start(code, is_dry_run=True)
    assert [len(events) for events in (dry.events, start(code).events, start(code).events)] == [1, 1, 0]
    assert mission_findings(code.load(), NOW, code.git("rev-parse", "HEAD")) == mission_findings(code.load(), NOW)
    lose(code)
    with pytest.raises(BrokenContract, match=f"The branch {BRANCH} of its lane is lost"):
        start(code)


@pytest.mark.parametrize("subject", ["Merge branch '{}' into main", "Merge pull request #7 from octo/{}"])
@pytest.mark.parametrize("wp_id", ["WP01", "WP02"])
def test_the_commit_of_a_merged_lane_is_named_by_its_merge(code: Project, subject: str, wp_id: str) -> None:
    begun(code)
    code.move("WP01", "for_review", feedback="done")
    code.approve("WP01", at=NOW + timedelta(minutes=1))
    head = code.git("rev-parse", BRANCH)
    code.git("merge", "-q", "--no-ff", "-m", subject.format(BRANCH), BRANCH, at=NOW + timedelta(hours=1))
    lose(code)
    with pytest.raises(BrokenContract, match=f"a merge brought its work into main. Run .* branch {BRANCH} {head}`"):
        code.move("WP01", "done") if wp_id == "WP01" else start(code, wp_id)
    command = next_moves(code.load(), wp_id, "accord mission", NOW)[0].command
    for part in command.split(" && ")[:-1]:
        code.git(*shlex.split(part)[1:])
    assert code.move("WP01", "done").events if wp_id == "WP01" else start(code, wp_id).events


def test_a_merge_of_a_lane_before_its_work_was_handed_in_or_of_another_lane_names_nothing(code: Project) -> None:
    begun(code)
    for branch, hours in ((BRANCH, -1), (f"{BRANCH}b", 1)):
        code.git("merge", "-q", "--no-ff", "-m", f"Merge branch '{branch}'", BRANCH, at=NOW + timedelta(hours=hours))
        code.git("commit", "-q", "--allow-empty", "-m", "more", directory=tree(code))
    lose(code)
    with pytest.raises(BrokenContract, match="COMMIT` with a commit that `git log main` names if it was merged"):
        start(code)


def test_work_that_a_move_began_on_a_branch_is_lost_with_that(code: Project) -> None:
    code.worktree("lane-a")
    code.move("WP01", "in_progress")
    lose(code)
    with pytest.raises(BrokenContract, match="is lost"):
        start(code)


@pytest.mark.parametrize("policy", [None, {"branch_name": BRANCH}, {"agent": "claude"}, "x"])
@pytest.mark.parametrize("targets", [(), ("for_review",), ("for_review", "in_review"), ("for_review", "in_progress")])
def test_work_of_another_tool_without_its_branch_is_lost_at_each_door_but_no_fault_of_its_files(
    code: Project, policy: Any, targets: tuple[str, ...]
) -> None:
    before = "in_progress"
    code.event("WP01", "planned", before, actor="ada", policy_metadata=policy)
    for minutes, target in enumerate(targets, start=1):
        code.event("WP01", before, target, at=NOW + timedelta(minutes=minutes), actor="bob", review_ref="r")
        before = target
    doors = [partial(start, code), partial(code.move, "WP01", "in_progress")] if before == "in_progress" else []
    doors.append(partial(code.move, "WP01", "approved", actor="eve", review_ref="r"))
    for door in doors:
        with pytest.raises(BrokenContract, match=f"The branch {BRANCH} of its lane is lost"):
            door()
    found = mission_findings(code.load(), NOW + timedelta(hours=1))
    assert not any(map(has_errors, found.values()))
    code.git("branch", BRANCH, "main")
    for door in doors:
        door()


@pytest.mark.parametrize("more", [{"execution_mode": "direct_repo"}, {"policy_metadata": {"lane_branch": ""}}])
def test_work_that_began_without_a_lane_lost_none(code: Project, more: Any) -> None:
    code.event("WP01", "planned", "in_progress", actor="ada", **more)
    assert "branch" in [step.op for step in start(code).operations]


@pytest.mark.parametrize("where", ["the lane of the main checkout", "a work tree elsewhere", "the main checkout"])
def test_a_start_whose_lane_is_checked_out_elsewhere_names_the_command_that_works(
    code: Project, tmp_path_factory: pytest.TempPathFactory, where: str
) -> None:
    linked = Project(tmp_path_factory.mktemp("linked") / "a tree")
    code.git("worktree", "add", "--quiet", "--detach", str(linked.root))
    if where == "the lane of the main checkout":
        start(code)
    elif where == "the main checkout":
        code.git("switch", "--quiet", "--create", BRANCH)
    else:
        code.git("worktree", "add", "--quiet", "-b", BRANCH, str(linked.root.parent / "b"))
    with pytest.raises(Refused, match=f"is on the branch {BRANCH}") as refused:
        start(linked)
    command = shlex.split(refused.value.hint.split("`")[1])
    if command[0] == "git":
        code.git(*command[1:])
        assert start(linked).operations
    else:
        assert command[:3] + command[4:] == ["accord", "mission", "--root", "start", code.slug, "WP01"]
        assert start(Project(Path(command[3]))).operations == ()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"is_present": True, "is_foreign": True}, "not a work tree"),
        ({"is_present": True, "is_registered": True, "on_branch": "main", "has_branch": True}, "is not on the branch"),
        ({"checked_out_at": "/r", "has_branch": True}, "/r is on the branch .*`git -C /r switch --detach`"),
        ({"checked_out_at": "/r s", "is_present": True, "on_branch": "main"}, r"`git -C '/r s' switch --detach`"),
        (
            {"checked_out_at": "/o o/.worktrees/m-lane-a", "target": "m WP01"},
            "Run `accord mission --root '/o o' start m WP01`",
        ),
        ({"base": ""}, "its base does not exist"),
    ],
)
def test_an_obstacle_is_named_and_stays(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        plan_lane(LaneFacts(**{**vars(LANE), **facts}))


def test_a_start_outside_a_repository_or_through_a_link_is_refused(project: Project, tmp_path: Path) -> None:
    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    with pytest.raises(Refused, match="not a git repository"):
        start(project)
    project.repository()
    (tmp_path / "elsewhere").mkdir()
    (project.root / ".worktrees").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        start(project)


@pytest.mark.parametrize("below", ["pkg", "a/b c", "od[d]*", "ünder"])
def test_the_work_trees_of_a_project_in_a_subfolder_are_ignored(tmp_path: Path, below: str) -> None:
    project = Project(tmp_path / below).begin()
    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    Project(tmp_path).git("init", "--quiet", "--initial-branch=main")
    Project(tmp_path).git("add", "--all")
    project.commit("begin")
    mission = project.load()
    (step, *_) = plan_lane(lane_facts(mission, resolve_workspace(mission, "WP01"), git_of(mission)))
    assert step.op == "ignore"
    (project.root / ".worktrees/x").mkdir(parents=True)
    (project.root / ".worktrees/x/file").write_text("a")
    (tmp_path / ".git/info/exclude").write_text(f"{step.target}\n", encoding="utf-8")
    assert ".worktrees" not in project.git("status", "--porcelain", "--untracked-files=all", "--", str(tmp_path))
    assert plan_lane(lane_facts(mission, resolve_workspace(mission, "WP01"), git_of(mission)))[0].op != "ignore"


LOUD = """[filter "loud"]\n\tclean = tr A-Z a-z\n\tsmudge = tr a-z A-Z\n\trequired = true\n"""
CALLERS: dict[str, tuple[str, str, bytes]] = {
    # the configuration of the user, the attributes in the repository, and the file in the lane
    "a filter": (LOUD, "*.txt filter=loud\n", b"ONE\nTWO\n"),
    "a filter by attributes of the user": (f"{LOUD}[core]\n\tattributesFile = {{home}}/names\n", "", b"ONE\nTWO\n"),
    "line ends": ("[core]\n\tautocrlf = true\n", "", b"one\r\ntwo\r\n"),
    "a filter that is not set up": ("", "*.txt filter=loud\n", b"one\ntwo\n"),
}


@pytest.mark.parametrize("case", CALLERS)
def test_a_lane_has_the_files_that_the_git_of_its_user_writes(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    settings, attributes, expected = CALLERS[case]
    home = tmp_path_factory.mktemp("home")
    (home / "names").write_text("*.txt filter=loud\n")
    (home / "config").write_text(settings.format(home=home) if "{home}" in settings else settings)
    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    project.repository()
    (project.root / "file.txt").write_text("one\ntwo\n")
    (project.root / ".gitattributes").write_text(attributes)
    project.git("add", "file.txt", ".gitattributes")
    project.commit("file")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "config"))
    start(project)
    assert (tree(project) / "file.txt").read_bytes() == expected
