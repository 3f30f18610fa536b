"""Parents, milestones, types and assignees of a plan's items, as plan.yml asks for them."""

from pathlib import Path
from typing import Any

import pytest
from support.plans import TASK_LABELS, plan, task
from support.stage import Stage, codes, staged

from accord.core.errors import BrokenContract
from accord.engine.receipts import Outcome
from accord.results.planner.structure import IssueStructure, read_settings

PLAN = plan(task("a"), task("b", "a"))
SEED: dict[str, Any] = {
    "repositories": [
        {
            "name": "acme/app",
            "collaborators": {"alex": "write"},
            "labels": [{"name": name} for name in [*TASK_LABELS, "status:in-progress"]],
            "issues": [{"title": "The feature"}, {"title": "Another feature"}],
        }
    ]
}


def structure(**parts: Any) -> IssueStructure:
    return IssueStructure(**parts)


def issue(stage: Stage, number: int) -> dict[str, Any]:
    found: dict[str, Any] = stage.get(f"/repos/{stage.repository}/issues/{number}")
    return found


def logins(stage: Stage, number: int) -> list[str]:
    return [person["login"] for person in issue(stage, number)["assignees"]]


def children(stage: Stage, number: int) -> list[int]:
    return [each["number"] for each in stage.listed(f"/issues/{number}/sub_issues")]


@pytest.mark.slow
def test_items_get_a_parent_a_type_and_assignees_once(stage: Stage) -> None:
    wanted = structure(parent=1, type="task", assign=["alex"])
    first = stage.apply(PLAN, structure=wanted)

    assert (first.outcome, codes(first)) == (Outcome.APPLIED, set())
    assert children(stage, 1) == [3, 4]
    assert issue(stage, 1)["sub_issues_summary"]["total"] == 2
    assert issue(stage, 3)["type"]["name"] == "Task"
    assert logins(stage, 4) == ["alex"]
    again = stage.apply(PLAN, structure=wanted)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)


@pytest.mark.slow
def test_an_open_milestone_comes_before_a_closed_one_of_the_name(stage: Stage) -> None:
    for title, state in (("V1", "closed"), ("v1", "open")):
        stage.send("POST", f"/repos/{stage.repository}/milestones", title=title, state=state)
    stage.apply(PLAN, structure=structure(milestone="V1"))
    assert [issue(stage, number)["milestone"]["title"] for number in (3, 4)] == ["v1", "v1"]


def test_items_are_put_into_a_milestone_once_and_stay_where_a_person_put_them(stage: Stage) -> None:
    path = f"/repos/{stage.repository}"
    for title in ("v1", "v2"):
        stage.send("POST", f"{path}/milestones", title=title)
    first = stage.apply(PLAN, structure=structure(milestone="V1"))
    assert (first.outcome, codes(first)) == (Outcome.APPLIED, set())
    assert [issue(stage, number)["milestone"]["title"] for number in (3, 4)] == ["v1", "v1"]
    stage.send("PATCH", f"{path}/issues/4", milestone=2)
    again = stage.apply(PLAN, structure=structure(milestone="v1"))
    assert (again.outcome, again.writes, issue(stage, 4)["milestone"]["title"]) == (Outcome.UNCHANGED, 0, "v2")


@pytest.mark.slow
def test_a_part_that_a_person_removed_is_not_set_again_until_it_is_back(stage: Stage) -> None:
    path = f"/repos/{stage.repository}"
    stage.send("POST", f"{path}/milestones", title="v1")
    wanted = structure(milestone="v1", type="Task", assign=["alex"])
    assert codes(stage.apply(PLAN, structure=wanted)) == set()
    stage.send("PATCH", f"{path}/issues/3", milestone=None, type=None)
    stage.send("DELETE", f"{path}/issues/3/assignees", assignees=["alex"])

    again = stage.apply(PLAN, structure=wanted)
    assert (again.outcome, again.writes, codes(again)) == (Outcome.UNCHANGED, 0, {"structure-removed"})
    parts = [each.message.split(" of #3")[0] for each in again.findings]
    assert parts == [f"Someone removed the {part}" for part in ("milestone", "type", "assignees")]
    left = issue(stage, 3)
    assert (left["milestone"], left["type"], left["assignees"]) == (None, None, [])
    assert logins(stage, 4) == ["alex"]

    stage.send("POST", f"{path}/issues/3/assignees", assignees=["alex"])
    assert len(stage.apply(PLAN, structure=wanted).findings) == 2


def test_items_that_exist_already_get_the_parts_they_lack(stage: Stage) -> None:
    stage.apply(PLAN)
    path = f"/repos/{stage.repository}/issues"
    stage.send("POST", f"{path}/2/sub_issues", sub_issue_id=issue(stage, 3)["id"])
    stage.send("PATCH", f"{path}/3", type="Bug")
    stage.send("PUT", f"{path}/4/labels", labels=[*TASK_LABELS[:1], "status:in-progress", *TASK_LABELS[2:]])

    stage.apply(PLAN, structure=structure(parent=1, type="Task", assign=["alex"]))

    assert (children(stage, 1), children(stage, 2)) == ([], [3])
    assert issue(stage, 3)["type"]["name"] == "Bug"
    assert (logins(stage, 3), logins(stage, 4)) == (["alex"], [])


def test_copilot_is_assigned_when_nothing_blocks_the_item(stage: Stage) -> None:
    wanted = structure(assign=["copilot"])
    stage.apply(PLAN, structure=wanted)
    assert (logins(stage, 3), logins(stage, 4)) == (["copilot-swe-agent[bot]"], [])

    stage.send("PATCH", f"/repos/{stage.repository}/issues/3", state="closed")
    stage.apply(PLAN, structure=wanted)
    assert logins(stage, 4) == ["copilot-swe-agent[bot]"]


def test_parts_that_github_does_not_have_are_warnings(stage: Stage) -> None:
    receipt = stage.apply(PLAN, structure=structure(type="Epic", assign=["stranger-to-all"]))

    assert (receipt.outcome, codes(receipt)) == (Outcome.APPLIED, {"structure-unavailable"})
    assert len(stage.issues()) == 4
    assert stage.apply(PLAN, structure=structure(type="Epic")).outcome is Outcome.UNCHANGED


def test_a_server_without_sub_issues_is_a_warning(tmp_path: Path) -> None:
    with staged(tmp_path, seed=SEED, native_sub_issues=False) as stage:
        receipt = stage.apply(PLAN, structure=structure(parent=1))
    assert (receipt.outcome, codes(receipt)) == (Outcome.APPLIED, {"structure-unavailable"})


REFUSED = {
    "a missing milestone": ({"milestone": "v1"}, {}, "milestone-missing"),
    "a missing parent": ({"parent": 99}, {}, "parent-missing"),
    "a request that is not an issue": ({"parent": "request"}, {"request": "docs/specs/a.md"}, "parent-missing"),
}


@pytest.mark.parametrize(("parts", "options", "code"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_parent_or_milestone_stops_the_plan(stage: Stage, parts: Any, options: Any, code: str) -> None:
    receipt = stage.apply(PLAN, structure=structure(**parts), **options)

    assert (receipt.outcome, codes(receipt)) == (Outcome.REJECTED, {code})
    assert len(stage.issues()) == 2


@pytest.mark.slow
def test_a_parent_has_at_most_a_hundred_sub_issues(stage: Stage) -> None:
    many = plan(*(task(f"item-{n}", in_scope=f"- src/{n}.py") for n in range(101)))
    receipt = stage.apply(many, structure=structure(parent=1))

    assert codes(receipt) == {"sub-issues-too-many"}


def test_the_request_can_be_the_parent(stage: Stage) -> None:
    stage.apply(PLAN, structure=structure(parent="request"), request="#2")
    assert children(stage, 2) == [3, 4]


def test_settings_are_checked() -> None:
    read = read_settings(b"plan:\n  parent: request\n  assign: [copilot]\n", "plan.yml")
    assert (read.parent, read.assign) == ("request", ["copilot"])
    with pytest.raises(BrokenContract, match=r"plan\.yml:2"):
        read_settings(b"plan:\n  parnet: 1\n", "plan.yml")
