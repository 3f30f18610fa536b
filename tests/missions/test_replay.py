"""The replay of a log: who works and judges, and which lines let the dependents of a work package start."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.growth import grows_too_fast
from support.missions import NOW, SLUG, Project, event

from accord.core.errors import BrokenContract
from accord.missions.log import Log
from accord.missions.models import StatusEvent
from accord.missions.query import guard_failures, readiness
from accord.missions.replay import is_approved, lets_start, people_of
from accord.missions.rules import check_missions, mission_findings


def log(*moves: Any) -> list[StatusEvent]:
    return [
        StatusEvent.model_validate(
            event("WP01", source, target, NOW + timedelta(minutes=i), actor=actor, **dict(*more))
        )
        for i, (source, target, actor, *more) in enumerate(moves)
    ]


DONE_BY_ADA = (("planned", "claimed", "Ada"), ("claimed", "in_progress", "Ada"), ("in_progress", "for_review", "Ada"))
IN_REVIEW = (*DONE_BY_ADA, ("for_review", "in_review", "rev"))
APPROVED = (*IN_REVIEW, ("in_review", "approved", "rev"))
OVERRIDE = {"policy_metadata": {"self_review": True, "override_reason": "No one else is here."}}
FORCED = {"force": True, "reason": "hurry"}


def reviewed(reviewer: Any, verdict: Any = "approved") -> dict[str, Any]:
    return {"evidence": {"review": {"reviewer": reviewer, "verdict": verdict}}}


@pytest.mark.parametrize(
    ("actor", "more", "counts"),
    [
        ("rev", FORCED, True),
        ("rev", {"force": True}, False),
        ("rev", {}, True),
        ("", {}, False),
        (" ", FORCED, False),
        ("ad\u200ba", {}, False),
        ("\u0410da", {}, False),
        ("\uff21da", {}, False),
        ("ad\u034fa", {}, False),
        ("\u0410\u0434\u0430 L", {}, True),
        ("tool", reviewed("\u0410da"), False),
        ("tool", reviewed("a\xadda"), False),
        ("rev", {"is_foreign": True}, False),
        ("Ada", {}, False),
        ("Ada", FORCED, False),
        ("Ada", OVERRIDE, True),
        ("Ada", {"evidence": None}, False),
        ("tool", reviewed("ada"), False),
        ("ADA ", {**FORCED, "review_ref": "PR 1"}, False),
        ("ada", {**FORCED, "policy_metadata": {"override_reason": " "}}, False),
        ("ada", {**FORCED, **OVERRIDE}, True),
        ("ada", {**FORCED, **reviewed("rev")}, False),
        ("ada", reviewed("eve"), True),  # other tools write one name for all who use them
        ("ada", reviewed("unknown"), True),  # rev claimed the review
        ("rev", {"evidence": None}, True),  # other tools record no review
        ("rev", reviewed("unknown", None), True),
        ("rev", reviewed("eve", "Approved"), True),
        ("rev", reviewed("rev", "changes_requested"), False),
        ("rev", {**FORCED, **reviewed(None, "rejected")}, False),
        ("rev", reviewed("rev", False), False),
        ("rev", reviewed("rev", ["approved"]), False),
        ("rev", reviewed("ADA"), False),
        ("tool", reviewed({"tool": "Ada", "role": "reviewer"}), False),
        ("ada", reviewed({"tool": "eve"}), True),
        ("rev", {**reviewed("ada"), **OVERRIDE}, True),
    ],
)
def test_an_approval_counts_if_a_move_of_another_actor_could_write_it(actor: str, more: Any, counts: bool) -> None:
    events = log(*IN_REVIEW, ("in_review", "approved", actor, more))
    assert (is_approved(events), lets_start("approved", events)) == (counts, counts)
    events = log(*IN_REVIEW, ("in_review", "approved", actor, more), ("approved", "done", "rev"))
    assert lets_start("done", events) == counts


JUMPS: dict[str, tuple[Any, ...]] = {
    "done from for_review": (*DONE_BY_ADA, ("for_review", "done", "rev")),
    "done from in_review": (*IN_REVIEW, ("in_review", "done", "rev", reviewed("rev"))),
    "done by force": (*DONE_BY_ADA, ("for_review", "done", "rev", FORCED)),
    "done from planned": (("planned", "done", "rev"),),
    "approved from claimed": (DONE_BY_ADA[0], ("claimed", "approved", "rev")),
    "approved without its review": (("in_review", "approved", "rev"),),
    "approved from nowhere": ((None, "approved", "rev"),),
    "approved from in_progress without a review": (
        *DONE_BY_ADA[:2],
        ("in_progress", "approved", "rev", {"evidence": None}),
    ),
    "approved from planned by force": (("planned", "approved", "rev", FORCED),),
    "approved from claimed by force": (DONE_BY_ADA[0], ("claimed", "approved", "rev", FORCED)),
    "approved from in_progress by force": (*DONE_BY_ADA[:2], ("in_progress", "approved", "rev", FORCED)),
    "approved by force twice": (
        ("planned", "approved", "rev", FORCED),
        ("approved", "approved", "rev", FORCED),
    ),
    "approved from blocked by force": (
        *DONE_BY_ADA,
        ("for_review", "blocked", "rev"),
        ("blocked", "approved", "rev", FORCED),
    ),
    "approved after it was sent back": (
        *IN_REVIEW,
        ("in_review", "in_progress", "rev"),
        ("in_review", "approved", "rev"),
    ),
}


@pytest.mark.parametrize("case", JUMPS)
def test_a_status_that_skips_the_review_lets_no_dependent_start(case: str) -> None:
    events = log(*JUMPS[case])
    assert not lets_start(events[-1].to_lane, events)
    assert lets_start("approved", log(*DONE_BY_ADA, ("for_review", "approved", "rev"))), "in_review may be skipped"


@pytest.mark.parametrize(
    "moves",
    [
        (("planned", "approved", "rev", {**FORCED, "review_ref": "PR 1"}),),
        (("planned", "approved", "rev", {**FORCED, **reviewed("rev")}),),
        (*DONE_BY_ADA, ("for_review", "approved", "rev", FORCED)),
        (("planned", "approved", "rev", FORCED), ("approved", "approved", "rev")),
        (*APPROVED, ("approved", "blocked", "rev"), ("blocked", "approved", "rev", FORCED)),
        (*APPROVED, ("approved", "done", "rev"), ("done", "approved", "rev", FORCED)),
    ],
)
def test_force_keeps_an_approval_that_names_or_has_its_review(moves: Any) -> None:
    assert lets_start("approved", log(*moves))


SENT_BACK = (*DONE_BY_ADA, ("for_review", "in_review", "rev"), ("in_review", "in_progress", "rev"))


@pytest.mark.parametrize(
    ("moves", "worker", "reviewer", "workers", "implementers"),
    [
        ((("genesis", "planned", "finalize"),), "", "", set(), set()),
        (DONE_BY_ADA, "Ada", "", {"ada"}, {"ada"}),
        ((("planned", "for_review", "bob", FORCED),), "", "", {"bob"}, {"bob"}),
        (SENT_BACK, "Ada", "rev", {"ada"}, {"ada"}),
        ((*DONE_BY_ADA, ("for_review", "in_progress", "rev")), "Ada", "rev", {"ada"}, {"ada"}),
        ((*DONE_BY_ADA[:2], ("in_progress", "for_review", "bob")), "Ada", "", {"ada"}, {"ada"}),
        ((*DONE_BY_ADA[:2], ("in_progress", "for_review", "bob", FORCED)), "Ada", "", {"ada"}, {"ada"}),
        ((*SENT_BACK, ("in_progress", "for_review", "rev")), "Ada", "rev", {"ada"}, {"ada"}),
        ((*SENT_BACK, ("in_progress", "blocked", "rev")), "Ada", "rev", {"ada"}, {"ada"}),
        ((*SENT_BACK, ("in_progress", "blocked", "m"), ("blocked", "in_progress", "m")), "m", "rev",
         {"ada", "m"}, {"ada", "m"}),
        ((*DONE_BY_ADA[:1], ("claimed", "claimed", "bob", FORCED)), "bob", "", {"bob"}, {"ada", "bob"}),
        ((*DONE_BY_ADA[:1], ("claimed", "in_progress", "bob", FORCED)), "bob", "", {"bob"}, {"ada", "bob"}),
        ((*DONE_BY_ADA, ("in_review", "approved", "rev"), ("approved", "in_progress", "lead")), "Ada", "lead",
         {"ada"}, {"ada"}),
        ((*DONE_BY_ADA, ("in_review", "planned", "rev")), "", "rev", set(), {"ada"}),
        ((*DONE_BY_ADA, ("in_review", "planned", "rev"), ("planned", "claimed", "bob")), "bob", "rev",
         {"bob"}, {"ada", "bob"}),
    ],
)  # fmt: skip
def test_worker_and_reviewer_are_facts_of_the_log(
    moves: Any, worker: str, reviewer: str, workers: set[str], implementers: set[str]
) -> None:
    found = people_of(log(*moves))
    assert (found.worker, found.reviewer) == (worker, reviewer)
    assert (found.workers, found.implementers) == (workers, implementers)
    assert found.may_continue("ADA") == (not worker or "ada" in workers)


def test_an_actor_that_handed_in_work_of_another_approves_it_at_every_door(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact", dependencies=["WP01"])
    project.repository()
    for target, actor in (("in_progress", "ada"), ("for_review", "lead")):
        project.move("WP01", target, actor)
    with pytest.raises(BrokenContract, match="ada did this work"):
        project.move("WP01", "approved", "ada")
    assert project.move("WP01", "approved", "lead").events
    assert project.move("WP02", "in_progress").events
    found = check_missions(project.root, [SLUG], "main", None, NOW + timedelta(hours=1))
    assert found.is_ok
    (shown, _) = found.standings[0]["work_packages"]
    assert (shown["worker"], shown["reviewer"]) == ("ada", "lead")


def test_an_approval_counts_until_the_work_moves_on() -> None:
    done = [*APPROVED, ("approved", "blocked", "ada")]
    assert is_approved(log(*done))
    assert is_approved(log(*APPROVED, ("approved", "approved", "ada"))), "a line that changes nothing"
    for target in ("in_progress", "planned", "for_review", "canceled"):
        assert not is_approved(log(*done, ("blocked", target, "ada")))


@pytest.mark.parametrize("written", ["approved", "done"])
def test_the_log_of_an_old_mission_continues_the_status_of_its_file(written: Any) -> None:
    assert lets_start(written, [], written)
    assert lets_start("done", log((written, "done", "rev")), written)
    assert not lets_start("approved", log(("in_review", "approved", "rev")), written)
    assert lets_start("approved", log(("for_review", "approved", "rev")), "for_review")


LAST: dict[str, tuple[str, str, dict[str, Any]]] = {
    "its author": ("in_review", "approved", {"actor": "ADA"}),
    "no actor": ("in_review", "approved", {"actor": " "}),
    "another mission": ("in_review", "approved", {"actor": "rev", "mission_slug": "099-other"}),
    "a jump": ("in_review", "done", {"actor": "rev"}),
    "the next mission": ("in_review", "approved", {"actor": "rev", "mission_slug": "001-next"}),
    "another actor": ("in_review", "approved", {"actor": "rev"}),
    "the older name": ("in_review", "approved", {"actor": "rev", "mission_slug": "001-old"}),
    "the same id": ("in_review", "approved", {"actor": "rev", "mission_slug": "099-other", "mission_id": "01KX"}),
}
COUNTING = ("another actor", "the older name", "the same id")


@pytest.mark.parametrize("case", LAST)
def test_every_command_knows_which_lines_give_no_review(project: Project, case: str) -> None:
    project.begin(mission_id="01KX")
    Project(project.root, "001-next").begin()
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact", dependencies=["WP01"])
    for i, (source, target, actor) in enumerate(IN_REVIEW):
        slug = "001-next" if case == "the next mission" else SLUG if i else "001-old"
        project.event("WP01", source, target, NOW + timedelta(minutes=i), actor=actor, mission_slug=slug)
    source, target, more = LAST[case]
    project.event("WP01", source, target, NOW + timedelta(hours=1), **more)
    mission = project.load()
    assert mission.status_of("WP01") == target
    assert readiness(mission)["WP02"]["ready"] == (case in COUNTING)
    gaps = [f"WP01 is {target}, without a review that counts"] if case not in COUNTING else []
    assert guard_failures(mission, "review") == [*gaps, "WP02 is planned, not yet approved"]
    found = mission_findings(mission, NOW + timedelta(hours=2))[f"kitty-specs/{SLUG}/status.events.jsonl"]
    assert [one.code for one in found] == ([] if case in COUNTING else ["event-illegal"])
    if case not in COUNTING:
        with pytest.raises(BrokenContract, match="WP01, whose review has not passed"):
            project.move("WP02", "in_progress")


def test_a_log_of_many_reviews_is_replayed_in_proportion_to_its_length() -> None:
    events = log(*(*APPROVED[1:], ("approved", "planned", "rev"), ("planned", "claimed", "Ada")) * 1500)
    assert not grows_too_fast(lambda size: is_approved(events[:size]), len(events))


def test_a_change_of_many_lines_is_checked_in_proportion_to_its_length(project: Project) -> None:
    project.begin()
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact", dependencies=["WP01"])
    mission, start = project.repository().load(), project.git("rev-parse", "HEAD")
    turn = log(*APPROVED, ("approved", "planned", "rev", {"review_ref": "PR 1"}))
    events = [
        each.model_copy(update={"event_id": f"{i}/{j}", "wp_id": name, "at": NOW + timedelta(minutes=i, seconds=j)})
        for i in range(800)
        for j, each in enumerate(turn)
        for name in ("WP01", "WP02")
    ]

    def check(size: int) -> object:
        places = {(one.wp_id, one.event_id): line for line, one in enumerate(events[:size], start=1)}
        return mission_findings(replace(mission, log=Log(tuple(events[:size]), lines=places)), NOW, start)

    assert not grows_too_fast(check, len(events))


def test_the_log_of_what_many_work_packages_wait_for_is_replayed_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.begin()
    project.work_package("WP01", "planning_artifact")
    for i in range(2, 9):
        project.work_package(f"WP{i:02}", "planning_artifact", dependencies=["WP01"])
    replayed: list[Any] = []
    monkeypatch.setattr("accord.missions.load.lets_start", lambda *known: replayed.append(known))
    assert [name for name, one in project.load().blockers.items() if one.waits_for == ("WP01",)][-1] == "WP08"
    assert len(replayed) == 1
