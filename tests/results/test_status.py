"""Work items move only where the table lets them, in one request, and keep every other label."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.plans import plan, task
from support.stage import Stage

from accord.core.errors import BrokenContract
from accord.github.models import IssueChange
from accord.results.status import WORK_ITEM, StatusFacts, is_work_item, move_work_item, open_blockers, plan_move
from accord_sandbox.planting import INSTALLATION_TOKEN, STRANGER_TOKEN

STATES = ["pending", "ready", "in-progress", "review", "approved", "blocked", "needs-refinement", "closed"]
CLOSE = IssueChange(state="closed", state_reason="completed")
LEGAL = {
    ("pending", "ready"), ("ready", "in-progress"), ("in-progress", "review"), ("in-progress", "blocked"),
    ("in-progress", "needs-refinement"), ("in-progress", "pending"), ("review", "approved"),
    ("review", "needs-refinement"), ("review", "pending"), ("blocked", "pending"), ("needs-refinement", "pending"),
    ("approved", "closed"),
}  # fmt: skip


def item(stage: Stage, status: str, *more: str, body: str = "") -> int:
    labels = ["task:implement", "priority:low", *more, *([f"status:{status}"] if status != "closed" else [])]
    number = stage.send("POST", f"/repos/{stage.repository}/issues", title="T", body=body, labels=labels)["number"]
    if status == "closed":
        stage.send("PATCH", f"/repos/{stage.repository}/issues/{number}", state="closed")
    return int(number)


def code_of(stage: Stage, number: int, target: str, **access: str) -> str:
    with pytest.raises(BrokenContract) as caught:
        move_work_item(stage.adapter(**access), number, target)  # type: ignore[arg-type]
    (found,) = caught.value.findings
    return f"{found.code}: {found.text}"


def test_the_table_is_the_decision() -> None:
    assert set(WORK_ITEM.states) == set(STATES)
    assert {(edge.source, edge.target) for edge in WORK_ITEM.edges} == LEGAL


@pytest.mark.parametrize("source", STATES)
def test_every_move_is_planned_or_refused_as_the_table_says(source: str) -> None:
    kept, is_open = ("task:implement", "needs-human"), source != "closed"
    issue: Any = SimpleNamespace(number=1, url="", is_open=is_open, labels=(*kept, *[f"status:{source}"] * is_open))
    for target in STATES:
        if (source, target) in LEGAL:
            labels = kept if target == "closed" else (*kept, f"status:{target}")
            assert plan_move(issue, target, StatusFacts((), True)).labels == labels
        elif source == target:
            assert not plan_move(issue, target).is_change
        else:
            with pytest.raises(BrokenContract) as caught:
                plan_move(issue, target, StatusFacts((), True))
            (found,) = caught.value.findings
            assert [found.code, *(legal for legal in WORK_ITEM.targets(source) if legal not in found.text)] == [
                "illegal-move"
            ]


def test_a_merged_item_is_closed_as_completed_and_carries_no_status(stage: Stage) -> None:
    number, github = item(stage, "approved"), stage.adapter()
    move_work_item(github, number, "closed")
    (shown,) = stage.snapshot()
    assert (shown["state"], shown["reason"]) == ("closed", "completed")
    assert shown["labels"] == ["priority:low", "task:implement"]


def test_an_item_is_not_ready_before_what_blocks_it_is_closed(stage: Stage) -> None:
    stage.apply(plan(task("a"), task("b", "a")))
    assert "Blocked by #1" in code_of(stage, 2, "ready")
    stage.adapter().change_issue(1, CLOSE)
    assert move_work_item(stage.adapter(), 2, "ready").is_change


def test_a_list_of_blockers_in_the_body_counts_like_native_ones(stage: Stage) -> None:
    blocker = item(stage, "pending")
    body = f"Text\n\n<!-- accord:blocked-by -->\nBlocked by #{blocker}\nBlocked by #99\n<!-- accord:blocked-by-end -->"
    number = item(stage, "pending", body=body)
    github = stage.adapter()
    issue = github.issue(number)
    assert issue is not None
    assert list(open_blockers(github, issue)) == [blocker]
    assert f"#{blocker}" in code_of(stage, number, "ready")
    github.change_issue(blocker, CLOSE)
    assert move_work_item(github, number, "ready").target == "ready"


@pytest.mark.parametrize("source", ["blocked", "needs-refinement"])
def test_only_a_person_takes_up_again_what_waits_for_a_person(stage: Stage, source: str) -> None:
    number = item(stage, source)
    assert "Only a person" in code_of(stage, number, "pending", token=INSTALLATION_TOKEN)
    assert move_work_item(stage.adapter(), number, "pending").is_change


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["task:implement"], "no status label"),
        (["task:implement", "status:ready", "status:review"], "`status:ready` and `status:review`"),
        (["task:implement", "status:paused"], "status:paused"),
    ],
)
def test_an_item_whose_labels_say_nothing_clear_is_not_guessed_at(stage: Stage, labels: list[str], said: str) -> None:
    stage.send("POST", f"/repos/{stage.repository}/issues", title="T", labels=labels)
    refused = code_of(stage, 1, "in-progress")
    assert refused.startswith("status-unclear: ")
    assert said in refused


@pytest.mark.parametrize("labels", [["task:implement", "Status:Ready"], ["Task:Implement", "status:ready"]])
def test_a_label_in_another_case_is_the_same_label(stage: Stage, labels: list[str]) -> None:
    stage.send("POST", f"/repos/{stage.repository}/issues", title="T", labels=labels)
    github = stage.adapter()
    move_work_item(github, 1, "in-progress")
    assert (github.issue(1).labels, github.requests.write) == (("task:implement", "status:in-progress"), 1)
    move_work_item(github, 1, "in-progress")
    assert github.requests.write == 1


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([], "not-a-work-item"),
        (["status:pending"], "not-a-work-item"),
        (["status:pending", "task:unknown"], "not-a-work-item"),
        (["status:pending", "task:implement", "task:refinement"], "type-unclear"),
    ],
)
def test_only_an_issue_with_one_type_is_moved(stage: Stage, labels: list[str], code: str) -> None:
    stage.send("POST", f"/repos/{stage.repository}/issues", title="T", labels=labels)
    assert code_of(stage, 1, "ready").startswith(f"{code}: ")
    assert code_of(stage, 12, "ready").startswith("unknown-reference: ")


def test_without_a_type_label_only_an_issue_that_accord_made_is_moved(stage: Stage) -> None:
    stage.apply(plan(task("a")))
    path = f"/repos/{stage.repository}/issues"
    body = stage.get(f"{path}/1")["body"].replace(" run=", " was=")
    stage.send("POST", path, token=STRANGER_TOKEN, title="Mine", body=body)
    for number in (1, 2):
        stage.send("PUT", f"{path}/{number}/labels", labels=["status:pending"])
    assert move_work_item(stage.adapter(), 1, "ready").is_change
    assert code_of(stage, 2, "ready").startswith("not-a-work-item: ")


def test_a_closed_item_loses_the_status_label_that_it_still_has(stage: Stage) -> None:
    number = item(stage, "ready")
    stage.adapter().change_issue(number, CLOSE)
    for is_change in (True, False):
        assert move_work_item(stage.adapter(), number, "closed").is_change == is_change
        (shown,) = stage.snapshot()
        assert (shown["state"], shown["labels"]) == ("closed", ["priority:low", "task:implement"])


def test_work_items_are_the_issues_with_a_type_label(stage: Stage) -> None:
    first = item(stage, "ready")
    stage.send("POST", f"/repos/{stage.repository}/issues", title="A question", labels=["status:ready"])
    stage.send("POST", f"/repos/{stage.repository}/issues", title="Odd", labels=["task:unknown"])
    gone = item(stage, "closed")
    found = [issue.number for issue in stage.adapter().issues(state="all") if is_work_item(issue)]
    assert found == [gone, first]
