"""Moves that are made: into a log that only grows, once, whatever else happens; merged by real git, or accepted."""

import json
import multiprocessing
import shlex
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.missions import NOW, Project, event

from accord.core.clock import SystemClock, ulid
from accord.core.errors import BrokenContract, Refused
from accord.missions.branches import git_of, stale_of
from accord.missions.log import log_path
from accord.missions.next_moves import next_moves

LANE = "kitty/mission-078-ships-lane-a"
CODE, PLANNING = "code_change", "planning_artifact"
FAR = datetime(2099, 1, 1, tzinfo=UTC)


@pytest.fixture
def planning(project: Project) -> Project:
    """A mission of one planning artifact, without git, lane and context file."""
    project.work_package("WP01", PLANNING)
    return project


@pytest.fixture
def code(project: Project) -> Project:
    """A repository with a code change on a lane of its own, approved, with a commit that is not merged."""
    project.work_package("WP01", CODE)
    project.lanes(lane_a=["WP01"])
    project.repository()
    project.commit("work", directory=project.worktree("lane-a"))
    project.approve("WP01")
    return project


def lines(project: Project) -> list[Any]:
    return [json.loads(line) for line in log_path(project.folder).read_text(encoding="utf-8").splitlines()]


def test_a_planning_artifact_goes_all_the_way_without_branch_lane_or_context_file(planning: Project) -> None:
    with pytest.raises(BrokenContract, match='Legal moves from "planned": claimed, blocked, canceled'):
        planning.move("WP01", "done")
    for target in ("in_progress", "for_review", "approved", "done"):
        assert planning.move("WP01", target, "rev" if target == "approved" else "ada").events
        assert planning.status("WP01") == target
    steps = ["claimed", "in_progress", "for_review", "in_review", "approved", "done"]
    assert [line["to_lane"] for line in lines(planning)] == steps
    assert {line["execution_mode"] for line in lines(planning)} == {"direct_repo"}
    assert not (planning.root / ".worktrees").exists()
    assert not (planning.root / ".kittify" / "workspaces").exists()


def test_each_move_that_is_proposed_is_legal_and_a_reviewer_keeps_its_review(planning: Project) -> None:
    refused = []
    for source, target in pairwise(["planned", "claimed", "in_progress", "for_review", "in_review", "approved"]):
        planning.event("WP01", source, target, actor="rev" if target in ("in_review", "approved") else "ada")
        for move in next_moves(planning.load(), "WP01", "accord mission", NOW):
            words = shlex.split(move.command)
            options = {name[2:].replace("-", "_"): text for name, text in zip(words[5::2], words[6::2], strict=True)}
            if words[2] == "move" and not move.missing:
                assert target != "in_review" or move.to in ("blocked", "canceled") or options["actor"] == "rev"
                try:
                    planning.move(words[4], options.pop("to"), options.pop("actor"), is_dry_run=True, **options)
                except BrokenContract as broken:
                    refused.append(f"{target}: {move.command}: {broken}")
    assert refused == []


def test_a_dependent_starts_once_its_planning_artifact_is_approved(planning: Project) -> None:
    planning.work_package("WP02", PLANNING, dependencies=["WP01"])
    for blocked in (False, True):
        if blocked:
            planning.move("WP02", "blocked")
        with pytest.raises(BrokenContract, match="WP01, whose review has not passed"):
            planning.move("WP02", "in_progress")
    for target in ("in_progress", "for_review", "approved"):
        planning.move("WP01", target, "rev" if target == "approved" else "ada")
    assert planning.move("WP02", "in_progress").target == "in_progress"


def test_planning_work_in_progress_is_not_judged_by_commits(planning: Project) -> None:
    planning.repository()
    planning.move("WP01", "in_progress")
    mission = planning.load()
    found = stale_of(mission, "WP01", git_of(mission), NOW + timedelta(days=9))
    nothing = {"minutes_since_commit": None, "last_commit_time": None}
    reason = "planning_artifact_repo_root_shared_workspace"
    assert found.status.model_dump() == {"status": "not_applicable", "reason": reason, **nothing}


def test_a_code_change_is_done_only_when_its_branch_is_an_ancestor_of_the_target(code: Project) -> None:
    for forced in ({}, {"is_forced": True, "reason": "now"}):
        with pytest.raises(BrokenContract, match="lane-a is not merged into main"):
            code.move("WP01", "done", **forced)
    assert code.status("WP01") == "approved"
    code.git("merge", "--quiet", "--no-ff", "-m", "merge", "kitty/mission-078-ships-lane-a")
    assert code.move("WP01", "done").source == "approved"


@pytest.mark.parametrize(
    ("reason", "more", "is_done"), [("", {}, False), ("", {"planned": "again"}, True), ("It was squashed.", {}, True)]
)
def test_work_that_began_in_a_lane_asks_for_its_merge_whatever_its_mode_is_now(
    code: Project, reason: str, more: dict[str, str], is_done: bool
) -> None:
    code.event("WP01", "approved", "in_progress", review_ref="r", policy_metadata={"lane_branch": LANE})
    for target in more:
        code.event("WP01", "in_progress", target, reason="again")
    code.approve("WP01")
    code.work_package("WP01", PLANNING)
    if not is_done:
        with pytest.raises(BrokenContract, match="lane-a is not merged into main"):
            code.move("WP01", "done", override_reason=reason)
    else:
        assert code.move("WP01", "done", override_reason=reason).source == "approved"


def test_an_override_with_a_reason_replaces_the_merge_and_is_logged(code: Project) -> None:
    code.move("WP01", "done", override_reason="It was squashed.")
    last = lines(code)[-1]
    assert last["policy_metadata"] == {"merge_ancestry": "overridden", "override_reason": "It was squashed."}
    assert (last["reason"], last["force"]) == ("It was squashed.", False)


def test_work_whose_lane_left_the_lanes_is_not_handed_in_without_proof_of_it(code: Project) -> None:
    code.event("WP01", "approved", "in_progress", at=NOW + timedelta(minutes=1))
    code.lanes(lane_a=["WP02"])
    with pytest.raises(BrokenContract, match="WP01 is a code_change and is not in a lane"):
        code.move("WP01", "for_review", feedback="Done.")
    ahead = next_moves(code.load(), "WP01", "accord mission", NOW)[0]
    assert (ahead.to, ahead.missing, ahead.command) == ("for_review", ("a lane",), "accord mission check 078-ships")


@pytest.fixture
def shared(code: Project) -> Project:
    """The lane of the approved WP01 with a commit of WP02, which is in progress."""
    code.work_package("WP02", CODE)
    code.lanes(lane_a=["WP01", "WP02"])
    for source, target in (("planned", "claimed"), ("claimed", "in_progress")):
        code.event("WP02", source, target, at=NOW + timedelta(minutes=1))
    tree = code.root / ".worktrees/078-ships-lane-a"
    code.commit("work of WP02", at=NOW + timedelta(minutes=2), directory=tree)
    return code


def test_a_merge_that_takes_along_work_without_a_review_names_it_and_the_choice(shared: Project) -> None:
    commit = shared.git("rev-parse", "--short", LANE)
    for i, then in enumerate(["in_progress", "for_review", "planned", "canceled", "blocked"]):
        if then != "in_progress":
            shared.event("WP02", "in_progress", then, at=NOW + timedelta(minutes=3 + i))
        what = f"takes along 1 commit of WP02, which is {then} ({commit})"
        with pytest.raises(BrokenContract) as refused:
            shared.move("WP01", "done")
        assert f"{what}: wait for its review, or merge it all the same" in str(refused.value)
        assert next_moves(shared.load(), "WP01", "accord mission", NOW)[0].missing == (f"a merge, which {what}",)


@pytest.mark.parametrize("status", ["approved", "done"])
def test_a_merge_that_takes_along_reviewed_work_is_like_any_other(shared: Project, status: str) -> None:
    shared.approve("WP02", at=NOW + timedelta(minutes=3))
    shared.event("WP02", "approved", status, at=NOW + timedelta(minutes=4))
    assert next_moves(shared.load(), "WP01", "accord mission", NOW)[0].missing == ("a merge",)


def test_work_that_a_merge_took_along_goes_on_to_its_own_review(shared: Project) -> None:
    command = next_moves(shared.load(), "WP01", "accord mission", NOW)[0].command
    for part in command.split(" && ")[:-1]:
        shared.git(*shlex.split(part)[1:], at=NOW + timedelta(minutes=3))
    shared.move("WP01", "done")
    shared.move("WP02", "for_review")
    shared.move("WP02", "approved", "rev")
    assert shared.move("WP02", "done").events


def test_done_rests_on_the_recorded_review_and_no_verdict_is_made_up(planning: Project) -> None:
    for target in ("in_progress", "for_review"):
        planning.move("WP01", target)
    forced = {"is_forced": True, "reason": "now", "override_reason": "now"}
    for given, said in (({}, "does not lead"), (forced, "No approval")):
        with pytest.raises(BrokenContract, match=said):
            planning.move("WP01", "done", **given)
    planning.move("WP01", "approved", "rev", review_ref="PR 7")
    planning.move("WP01", "done")
    review = {"review": {"reviewer": "rev", "verdict": "approved", "reference": "PR 7"}}
    assert [line["evidence"] for line in lines(planning)[-2:]] == [review, review]


def test_an_approval_of_a_log_without_evidence_or_by_force_gets_none(planning: Project) -> None:
    planning.approve("WP01", evidence=None)
    planning.move("WP01", "done")
    assert lines(planning)[-1]["evidence"] is None
    planning.move("WP01", "approved", is_forced=True, reason="reopened")
    assert lines(planning)[-1]["evidence"] is None


def test_an_approval_that_counts_for_nothing_is_given_again_by_another_actor(planning: Project) -> None:
    planning.work_package("WP02", PLANNING, dependencies=["WP01"])
    for target in ("in_progress", "for_review"):
        planning.move("WP01", target)
    planning.event("WP01", "for_review", "approved", NOW + timedelta(minutes=1))
    (move,) = next_moves(planning.load(), "WP01", "accord mission", NOW, ahead_only=True)
    assert (move.missing, move.command.split()[-4:]) == (("an approval",), ["--to", "approved", "--actor", "REVIEWER"])
    with pytest.raises(BrokenContract, match="ada did this work"):
        planning.move("WP01", "approved")
    with pytest.raises(BrokenContract, match="`--force` needs a reason"):
        planning.move("WP01", "approved", "rev", is_forced=True)
    assert len(planning.move("WP01", "approved", "rev").events) == 1
    assert planning.move("WP01", "approved", "rev").events == ()
    assert planning.move("WP02", "in_progress").events
    assert planning.move("WP01", "done").events


def test_a_line_put_before_the_start_of_work_frees_no_one_from_it(planning: Project) -> None:
    planning.event("WP01", "planned", "in_progress", actor="ada", event_id="B")
    planning.event("WP01", "planned", "in_progress", actor="bob", event_id="A")
    planning.event("WP01", "in_progress", "for_review", NOW + timedelta(minutes=1), actor="cy")
    for worker in ("ada", "bob"):
        with pytest.raises(BrokenContract, match=f"{worker} did this work"):
            planning.move("WP01", "approved", worker)
    assert planning.move("WP01", "approved", "cy").events, "cy only handed it in"


def test_one_actor_reviews_its_own_work_only_when_the_log_says_so(planning: Project) -> None:
    for target in ("in_progress", "for_review"):
        planning.move("WP01", target)
    with pytest.raises(BrokenContract, match="ada did this work"):
        planning.move("WP01", "approved")
    planning.move("WP01", "approved", override_reason="No one else is here.")
    assert lines(planning)[-1]["policy_metadata"] == {"self_review": True, "override_reason": "No one else is here."}


def test_a_squash_or_a_deleted_branch_does_not_prove_a_merge_but_one_at_origin_does(code: Project) -> None:
    code.git("merge", "--quiet", "--squash", "kitty/mission-078-ships-lane-a")
    code.commit("squashed")
    with pytest.raises(BrokenContract, match="is not merged"):
        code.move("WP01", "done")
    code.git("update-ref", "refs/remotes/origin/main", "refs/heads/kitty/mission-078-ships-lane-a")
    assert code.move("WP01", "done", is_dry_run=True).events
    code.git("worktree", "remove", "--force", ".worktrees/078-ships-lane-a")
    code.git("branch", "--quiet", "-D", "kitty/mission-078-ships-lane-a")
    with pytest.raises(BrokenContract, match="does not exist"):
        code.move("WP01", "done")


def test_the_target_may_have_slashes_and_be_named_by_the_work_package(code: Project) -> None:
    code.work_package("WP01", CODE, merge_target_branch="release/3.x")
    with pytest.raises(BrokenContract, match=r"release/3\.x does not exist"):
        code.move("WP01", "done")
    code.git("branch", "--quiet", "release/3.x", "kitty/mission-078-ships-lane-a")
    assert code.move("WP01", "done", is_dry_run=True).events


@pytest.mark.parametrize("lane", ["lane-a", "lane-b"])
def test_a_work_package_that_names_a_lane_as_its_target_is_not_done_without_a_merge(code: Project, lane: str) -> None:
    code.work_package("WP01", CODE, merge_target_branch=f"kitty/mission-078-ships-{lane}")
    code.lanes(lane_a=["WP01"], lane_b=["WP02"])
    code.git("branch", "--quiet", "kitty/mission-078-ships-lane-b", "kitty/mission-078-ships-lane-a")
    for forced in ({}, {"is_forced": True, "reason": "now"}):
        with pytest.raises(BrokenContract, match="is the branch of a lane"):
            code.move("WP01", "done", **forced)


def test_a_git_expression_for_a_lane_is_not_a_target(code: Project) -> None:
    for name in ("~0", "^0", "@{0}", "^{commit}", ":", "*"):
        code.work_package("WP01", CODE, merge_target_branch=f"kitty/mission-078-ships-lane-a{name}")
        with pytest.raises(BrokenContract, match="does not exist"):
            code.move("WP01", "done")


@pytest.mark.slow
def test_a_code_change_needs_a_commit_of_its_own_for_review(code: Project) -> None:
    code.work_package("WP02", CODE)
    code.lanes(lane_a=["WP01"], lane_b=["WP02"])
    tree = code.worktree("lane-b")
    code.move("WP02", "in_progress")
    with pytest.raises(BrokenContract, match="no own commit"):
        code.move("WP02", "for_review")
    code.commit("work of WP02", directory=tree)
    assert code.move("WP02", "for_review").events


@pytest.mark.slow
@pytest.mark.parametrize("future", ["claimed", "in_progress"])
def test_work_whose_start_a_wrong_clock_wrote_gets_to_review_with_its_commit(code: Project, future: str) -> None:
    code.work_package("WP02", CODE)
    code.lanes(lane_b=["WP02"])
    tree = code.worktree("lane-b")
    code.event("WP02", "planned", "claimed", at=FAR if future == "claimed" else NOW)
    if future == "in_progress":
        code.event("WP02", "claimed", "in_progress", at=FAR)
    code.move("WP02", "in_progress")
    with pytest.raises(BrokenContract, match="no own commit"):
        code.move("WP02", "for_review")
    code.commit("work", directory=tree)
    assert stale_of(code.load(), "WP02", git_of(code.load(), "WP02"), NOW).status.status == "fresh"
    assert code.move("WP02", "for_review").events
    assert code.status("WP02") == "for_review"


NAMED_SUBTASKS = {
    "names": ["T001", "T002"],
    "objects": [{"id": "T001"}, {"title": "T002 b", "done": False}],
    "lines": ["T001: a", "- [ ] **T002** b"],
    "one text": "T001, T002",
    "a mapping": {"T001": "a", "T002": "b"},
    "a mapping each": [{"T001": "a"}, {"T002": "b"}],
    "another key": [{"name": "T001 a", "done": True}, {"task": "T002", "done": False}],
}


@pytest.mark.parametrize("form", NAMED_SUBTASKS)
def test_open_subtasks_of_this_work_package_keep_it_from_review(planning: Project, form: str) -> None:
    planning.work_package("WP01", PLANNING, subtasks=NAMED_SUBTASKS[form])
    planning.write("tasks.md", "- [x] T001 a\n- [ ] **T002** b\n- [ ] T003 after T001\n\n```\n- [ ] T001\n```\n")
    planning.move("WP01", "in_progress")
    with pytest.raises(BrokenContract, match=r"open in tasks\.md: T002"):
        planning.move("WP01", "for_review")


def test_a_review_that_sends_work_back_is_logged_with_its_reference(planning: Project) -> None:
    for target in ("in_progress", "for_review"):
        planning.move("WP01", target)
    planning.move("WP01", "in_progress", actor="rev", feedback="Fix it.", review_ref="PR 7#review-1")
    last = lines(planning)[-1]
    assert (last["from_lane"], last["to_lane"], last["review_ref"]) == ("in_review", "in_progress", "PR 7#review-1")
    review = {"reviewer": "rev", "verdict": "changes_requested", "reference": "PR 7#review-1"}
    assert (last["reason"], last["evidence"]) == ("Fix it.", {"review": review})


def test_a_move_that_is_made_already_a_dry_run_and_an_illegal_one_write_nothing(planning: Project) -> None:
    assert planning.move("WP01", "in_progress", is_dry_run=True).events
    with pytest.raises(BrokenContract):
        planning.move("WP01", "approved")
    assert not log_path(planning.folder).exists()
    planning.move("WP01", "in_progress")
    before = log_path(planning.folder).read_bytes()
    assert planning.move("WP01", "in_progress").events == ()
    assert log_path(planning.folder).read_bytes() == before


def test_the_log_only_grows_and_nothing_else_of_the_mission_changes(planning: Project) -> None:
    others = {path: path.read_bytes() for path in planning.root.rglob("*") if path.is_file()}
    before = b""
    for target in ("in_progress", "for_review", "in_progress", "blocked", "in_progress", "canceled"):
        planning.move("WP01", target, feedback="x")
        now = log_path(planning.folder).read_bytes()
        assert now.startswith(before)
        assert len(now) > len(before)
        before = now
    assert {path: path.read_bytes() for path in others} == others
    assert {path for path in planning.root.rglob("*") if path.is_file()} == {*others, log_path(planning.folder)}


def test_events_are_in_order_whatever_the_clock_says(planning: Project) -> None:
    planning.event("WP01", "planned", "claimed", at=NOW + timedelta(days=1), event_id="zzz")
    for target in ("in_progress", "for_review", "in_progress"):
        planning.move("WP01", target, feedback="x")
        assert planning.status("WP01") == target
    assert len({line["event_id"] for line in lines(planning)}) == 5


@pytest.mark.slow
def test_a_crash_at_any_byte_of_a_move_is_continued_by_the_same_command(planning: Project) -> None:
    planning.move("WP01", "in_progress")
    whole = log_path(planning.folder).read_bytes()
    for cut in range(0, len(whole) + 1, 23):
        log_path(planning.folder).write_bytes(whole[:cut])
        planning.move("WP01", "in_progress")
        assert planning.status("WP01") == "in_progress"
        assert [line["to_lane"] for line in lines(planning)] == ["claimed", "in_progress"]


def claim(root: Path, actor: str) -> bool:
    try:
        return bool(Project(root).move("WP01", "claimed", actor, clock=SystemClock()).events)
    except BrokenContract:
        return False


@pytest.mark.slow
def test_one_of_many_concurrent_claims_succeeds(planning: Project) -> None:
    actors = [f"agent-{number}" for number in range(6)]
    with multiprocessing.get_context("fork").Pool(6) as pool:
        won = pool.starmap(claim, [(planning.root, actor) for actor in actors])
    assert won.count(True) == 1
    assert [line["actor"] for line in lines(planning)] == [actors[won.index(True)]]


@pytest.mark.parametrize("text", ["line\nbreak", '"quoted"', "\udcff", "\u2028", "x" * 100_000, "a\x00b"])
def test_any_text_of_an_agent_stays_one_line_of_the_log(planning: Project, text: str) -> None:
    planning.move("WP01", "blocked", reason=text)
    assert lines(planning)[-1]["reason"] == text
    assert planning.status("WP01") == "blocked"


def test_a_log_that_is_a_link_is_not_written_through(planning: Project) -> None:
    target = planning.root / "elsewhere"
    target.write_text("", encoding="utf-8")
    log_path(planning.folder).symlink_to(target)
    with pytest.raises(Refused, match="symbolic link"):
        planning.move("WP01", "claimed")
    assert target.read_text(encoding="utf-8") == ""


TIMES = ("9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00")
IMPOSSIBLE = [json.dumps({**event("WP01", None, "claimed"), "at": at}) for at in TIMES]


@pytest.mark.parametrize("line", ['{"wp_id": "WP01", ', *IMPOSSIBLE])
def test_a_log_that_cannot_be_read_stops_the_move_before_anything_is_written(planning: Project, line: str) -> None:
    planning.write("status.events.jsonl", f"{line}\n")
    with pytest.raises(BrokenContract, match="line 1"):
        planning.move("WP01", "claimed")
    assert log_path(planning.folder).read_text(encoding="utf-8") == f"{line}\n"


def test_ids_are_ulids_that_sort_by_time() -> None:
    assert ulid(NOW, 0) < ulid(NOW, 1) < ulid(NOW + timedelta(milliseconds=1), 0)
    assert ulid(datetime(1970, 1, 1, tzinfo=UTC), 35) == "13".rjust(26, "0")
    assert len({ulid(NOW) for _ in range(100)}) == 100
