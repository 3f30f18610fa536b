"""A later version of a plan on GitHub: what is updated, what stays, what is closed, and what stops it."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.plans import TASK_LABELS, plan, refinement, task, task_body, update
from support.stage import NO_LEASE, Stage, codes, staged

from accord.engine.receipts import Outcome

CHANGED = task("a", title="Another title", objective="Something else.")


def path_of(stage: Stage, number: int) -> str:
    return f"/repos/{stage.repository}/issues/{number}"


def test_one_changed_title_changes_one_issue(stage: Stage) -> None:
    stage.apply(plan(task("a"), task("b", "a")))
    receipt = stage.apply(plan({**task("a"), "title": "Another title"}, task("b", "a")))
    assert [issue["title"] for issue in stage.snapshot()] == ["Another title", "Do b"]
    assert (receipt.outcome, receipt.writes) == (Outcome.APPLIED, NO_LEASE + 1)
    (entry,) = [entry.as_json() for entry in receipt.operations if entry.op == "update-work-item"]
    assert entry == {"op": "update-work-item", "key": "a", "status": "done", "target": "1", "parts": ["title"]}


def test_an_update_of_a_plan_leaves_type_status_and_labels_of_people(stage: Stage) -> None:
    stage.apply(plan(task("a")))
    labels = ["task:implement", "status:in-progress", "priority:medium", "complexity:low", "help wanted"]
    stage.send("PUT", f"{path_of(stage, 1)}/labels", labels=labels)
    stage.apply(plan({**task("a"), "labels": [*TASK_LABELS[:2], "priority:high", "complexity:low"]}))
    (issue,) = stage.snapshot()
    assert issue["labels"] == ["complexity:low", "help wanted", "priority:high", "status:in-progress", "task:implement"]


@pytest.mark.parametrize(
    ("part", "hint"),
    [
        ("title", "Edit the issue by hand."),
        ("body", "Edit the issue by hand, or write an `update` whose body has the person's words too."),
    ],
)
def test_a_persons_edit_wins_and_is_named_with_its_issue(stage: Stage, part: str, hint: str) -> None:
    stage.apply(plan(task("a")))
    stage.send("PATCH", path_of(stage, 1), **{part: stage.get(path_of(stage, 1))[part].replace("o", "0", 1)})
    edited = stage.snapshot()[0][part].partition("<!--")[0]
    receipt = stage.apply(plan(CHANGED))
    (issue,) = stage.snapshot()
    assert issue[part].partition("<!--")[0] == edited
    assert (issue["title"] == "Another title", "Something else." in issue["body"]) == (part == "body", part == "title")
    (finding,) = [finding for finding in receipt.findings if finding.code == "item-edited"]
    assert finding.message == f"#1 `a` was edited since accord wrote it, so accord does not apply the plan's {part}."
    assert finding.hint == hint
    assert stage.apply(plan(CHANGED)).writes == 0


def test_an_edit_made_while_a_run_goes_on_wins_too(stage: Stage) -> None:
    stage.apply(plan(task("a")))
    edits = iter([{"title": "By hand"}])

    def person(*_: object) -> None:
        for edit in edits:
            stage.send("PATCH", path_of(stage, 1), **edit)

    receipt = stage.apply(plan(task("new"), CHANGED), on_entry=person)
    assert stage.get(path_of(stage, 1))["title"] == "By hand"
    assert "item-edited" in codes(receipt)


@pytest.mark.slow
def test_a_closed_item_that_the_plan_changed_is_reported_and_stays_closed(stage: Stage) -> None:
    stage.apply(plan(task("a"), task("b")))
    stage.send("PATCH", path_of(stage, 1), state="closed", state_reason="completed")
    assert stage.apply(plan(task("a"), task("b"))).findings == []
    before = stage.snapshot()
    receipt = stage.apply(plan(CHANGED, task("b")))
    assert (receipt.outcome, stage.snapshot()) == (Outcome.UNCHANGED, before)
    assert codes(receipt) == {"item-closed"}


@pytest.mark.slow
def test_items_that_vanish_are_named_and_closed_only_on_request(stage: Stage) -> None:
    stage.apply(plan(task("a"), task("b", "a"), task("c"), task("d")))
    stage.send("PATCH", path_of(stage, 3), title="By hand")
    stage.send("PUT", f"{path_of(stage, 4)}/labels", labels=["task:implement", "status:in-progress"])
    named = stage.apply(plan(task("b")))
    (finding,) = [finding for finding in named.findings if finding.code == "item-vanished"]
    assert re.findall(r"#\d", finding.message) == ["#1", "#3", "#4"]
    assert [issue["state"] for issue in stage.snapshot()] == ["open"] * 4
    receipt = stage.apply(plan(task("b")), closes_vanished=True)
    issues = stage.snapshot()
    assert [issue["state"] for issue in issues] == ["closed", "open", "open", "open"]
    assert (issues[0]["reason"], "status:pending" in issues[0]["labels"]) == ("not_planned", False)
    assert [finding.message[:2] for finding in receipt.findings if finding.code == "item-vanished"] == ["#3", "#4"]
    assert issues[1]["blocked_by"] == []


@pytest.mark.parametrize(
    ("closing", "later", "code"),
    [
        (plan(task("b")), plan(task("b")), "item-vanished"),
        (plan(close=["1"]), plan(close=["1"]), "item-reopened"),
        (plan(close=["1"]), plan(task("b"), close=["#1"]), "item-reopened"),
        (plan(close=["1"]), plan(task("b")), "item-vanished"),
        (plan(task("b")), plan(task("b"), close=["1"]), "item-reopened"),
    ],
)
def test_an_item_that_a_person_reopens_is_not_closed_again(
    stage: Stage, closing: dict[str, Any], later: dict[str, Any], code: str
) -> None:
    stage.apply(plan(task("a"), task("b")), run_key="k")
    stage.apply(closing, run_key="k", closes_vanished=True)
    stage.send("PATCH", path_of(stage, 1), state="open")
    receipt = stage.apply(later, run_key="k", closes_vanished=True)
    assert (receipt.writes, stage.get(path_of(stage, 1))["state"]) == (0, "open")
    assert code in codes(receipt)


def test_a_result_that_only_updates_says_nothing_about_other_items(stage: Stage) -> None:
    stage.apply(plan(task("a"), task("b")), run_key="k")
    receipt = stage.apply(plan(update=[update(1, labels=["priority:low"])]), run_key="k", closes_vanished=True)
    assert (receipt.writes, codes(receipt) - {"label-not-there"}) == (NO_LEASE + 1, {"label-kept"})


def test_an_update_takes_no_category_from_an_item_and_says_so_before_it_writes(stage: Stage) -> None:
    stage.apply(plan(task("a"), refinement("b")))
    result = plan(update=[update(1, labels=["area: web"]), update(2, labels=["priority:medium"])])
    planned = stage.apply(result, is_dry_run=True)
    assert codes(planned) == {"label-kept", "label-not-there"}
    kept = [finding.message for finding in planned.findings if finding.code == "label-kept"]
    assert [("`priority:medium`" in text, "`complexity:low`" in text) for text in kept] == [
        (True, False),
        (False, True),
    ]
    stage.apply(result)
    first, second = (set(item["labels"]) for item in stage.snapshot())
    assert first == {*TASK_LABELS, "area: web"}
    assert second == {"task:refinement", "status:pending", "priority:medium"}


@pytest.mark.parametrize("edited", ["never", "before", "after"])
def test_a_changed_plan_replaces_the_text_of_an_update_but_none_of_a_person(stage: Stage, edited: str) -> None:
    first = plan(task("a"))
    stage.apply(first, run_key="k")
    changed = plan({**CHANGED, "labels": [*TASK_LABELS[:2], "priority:low", "complexity:low"]})
    by_update = update(1, body=task_body(objective="Updated."), labels=["priority:high", "complexity:low"])
    for when in ("before", "after"):
        if edited == when:
            body = stage.get(path_of(stage, 1))["body"]
            stage.send("PATCH", path_of(stage, 1), body=body.replace("## Context", "By hand.\n\n## Context"))
        if when == "before":
            stage.apply(plan(update=[by_update]), run_key="other")
            assert stage.apply(first, run_key="k").writes == 0
    receipt = stage.apply(changed, run_key="k")
    (issue,) = stage.snapshot()
    is_kept = edited != "never"
    assert ("Something else." in issue["body"], "item-edited" in codes(receipt)) == (not is_kept, is_kept)
    assert "priority:low" in issue["labels"]
    assert stage.apply(changed, run_key="k").writes == 0


OF_PLAN = {"priority:low", "complexity:high"}


@pytest.mark.parametrize(
    ("label", "before", "by_update", "kept"),
    [
        ("mine", True, [], OF_PLAN),
        ("mine", True, ["mine"], {*OF_PLAN, "mine"}),
        ("mine", False, [], {*OF_PLAN, "mine"}),
        ("priority:critical", False, [], {"priority:critical", "complexity:high"}),
    ],
)
def test_a_label_of_a_person_keeps_no_other_label_that_an_update_wrote(
    stage: Stage, label: str, before: bool, by_update: list[str], kept: set[str]
) -> None:
    stage.apply(plan(task("a")), run_key="k")

    if before:
        stage.send("POST", f"{path_of(stage, 1)}/labels", labels=[label])
    labels = ["priority:high", "complexity:medium", "area: web", *by_update]
    stage.apply(plan(update=[update(1, labels=labels)]), run_key="other")
    if not before:
        others = [each for each in labels if each.partition(":")[0] != label.partition(":")[0]]
        stage.send("PUT", f"{path_of(stage, 1)}/labels", labels=[*TASK_LABELS[:2], *others, label])
    changed = plan({**task("a"), "labels": [*TASK_LABELS[:2], *OF_PLAN]})
    receipt = stage.apply(changed, run_key="k")
    assert {*stage.snapshot()[0]["labels"]} == {*TASK_LABELS[:2], "area: web", *kept}
    assert ("item-edited" in codes(receipt)) == ("priority:low" not in kept)
    assert stage.apply(changed, run_key="k").writes == 0


def test_a_second_version_may_update_the_same_issue_again(stage: Stage) -> None:
    stage.send("POST", f"/repos/{stage.repository}/issues", title="Old", body=task_body(), labels=TASK_LABELS)
    for priority in ("high", "low"):
        stage.apply(plan(update=[update(1, labels=[f"priority:{priority}"])]), run_key="k")
    assert "priority:low" in stage.snapshot()[0]["labels"]


def test_a_dependency_of_a_person_stays_when_the_plan_drops_its_own(stage: Stage) -> None:
    stage.apply(plan(task("a"), task("b"), task("c", "a")))
    blocker = stage.get(path_of(stage, 2))["id"]
    stage.send("POST", f"{path_of(stage, 3)}/dependencies/blocked_by", issue_id=blocker)
    receipt = stage.apply(plan(task("a"), task("b"), task("c")))
    assert stage.snapshot()[2]["blocked_by"] == [2]
    assert [entry.op for entry in receipt.operations if entry.op == "remove-dependency"] == ["remove-dependency"]


@pytest.mark.slow
def test_without_native_dependencies_the_list_in_the_body_follows_the_plan(tmp_path: Path) -> None:
    with staged(tmp_path, native_dependencies=False) as stage:
        stage.apply(plan(task("a"), task("b"), task("c", "a")))
        stage.apply(plan(task("a"), task("b"), task("c", "b")))
        body = stage.get(path_of(stage, 3))["body"]
        assert ("Blocked by #1" in body, "Blocked by #2" in body) == (False, True)
        assert stage.apply(plan(task("a"), task("b"), task("c", "b"))).writes == 0


def test_a_dry_run_shows_the_difference_of_each_item(stage: Stage) -> None:
    stage.apply(plan(task("a"), task("b"), task("c"), task("d")))
    stage.send("PATCH", path_of(stage, 2), title="By hand")
    receipt = stage.apply(plan(CHANGED, {**task("b"), "title": "New"}, task("c"), task("e")), is_dry_run=True)
    shown = receipt.details["differences"]
    assert [(entry["item"], entry["change"]) for entry in shown] == [
        ("a", "update"),
        ("b", "edited"),
        ("c", "unchanged"),
        ("e", "create"),
        ("d", "vanished"),
    ]
    assert "- Make it work.\n+ Something else." in shown[0]["diff"]
    assert (receipt.writes, len(stage.issues())) == (0, 4)


def test_an_update_keeps_ticks_and_a_dry_run_shows_its_differences(stage: Stage) -> None:
    stage.apply(plan(task("a", criteria="- [ ] It works\n- [ ] It is fast")))
    body = stage.get(path_of(stage, 1))["body"]
    stage.send("PATCH", path_of(stage, 1), body=body.replace("[ ] It works", "[x] It works"))
    new = task_body(criteria="- [ ] It works\n- [ ] It is safe", in_scope="- src/a.py")
    result = plan(update=[update(1, body=new, labels=["priority:high", "complexity:low"])])
    (shown,) = stage.apply(result, is_dry_run=True).details["differences"]
    assert shown["diff"].splitlines() == [
        "- label priority:medium",
        "+ label priority:high",
        "  ## Acceptance Criteria",
        "- - [ ] It is fast",
        "+ - [ ] It is safe",
    ]
    assert (shown["id"], shown["change"], shown["parts"]) == ("1", "update", ["body", "labels"])
    stage.apply(result)
    assert "- [x] It works\n- [ ] It is safe" in stage.get(path_of(stage, 1))["body"]
    assert stage.apply(result).details["differences"][0]["change"] == "unchanged"
    body = stage.get(path_of(stage, 1))["body"]
    stage.send("PATCH", path_of(stage, 1), body=body.replace("Make it work.", "By hand."))
    again = stage.apply(result)
    assert (again.writes, again.details["differences"][0]["change"]) == (0, "edited")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("### A\n\n- [ ] Tested\n\n### B\n\n- [ ] Tested", "### A\n\n- [x] Tested\n\n### B\n\n- [ ] Tested"),
        ("### A\n\n- [ ] Tested", "### B\n\n- [ ] Tested\n\n### A\n\n- [x] Tested"),
        ("- [ ] Done\n- [ ] Tested\n- [ ] Tested", "- [x] Tested\n- [ ] Tested\n\n### Renamed\n\n- [x] Done"),
    ],
    ids=["two headings", "a new heading", "twice in a list"],
)
@pytest.mark.parametrize("is_update", [False, True])
def test_only_the_boxes_that_people_ticked_are_ticked_in_a_new_body(
    stage: Stage, before: str, after: str, is_update: bool
) -> None:
    stage.apply(plan(task("a", criteria=before)), run_key="k")
    body = stage.get(path_of(stage, 1))["body"]
    stage.send("PATCH", path_of(stage, 1), body=body.replace("- [ ]", "- [x]", after.count("[x]")))
    criteria = after.replace("[x]", "[ ]")
    new = plan(update=[update(1, body=task_body(criteria=criteria))])
    stage.apply(new if is_update else plan(task("a", criteria=f"{criteria}\n- [ ] More")), run_key="k")
    assert after in stage.get(path_of(stage, 1))["body"]


@pytest.mark.parametrize("edit", [{}, {"labels": [*TASK_LABELS, "help wanted"]}, {"state": "closed"}])
def test_an_applied_update_leaves_later_edits_of_an_issue_that_a_person_opened(
    stage: Stage, edit: dict[str, Any]
) -> None:
    stranger = "accord-sandbox-stranger-token"
    stage.send("POST", f"/repos/{stage.repository}/issues", token=stranger, title="Old", body=task_body())
    stage.send("PUT", f"{path_of(stage, 1)}/labels", labels=TASK_LABELS)
    result = plan(update=[update(1, body=task_body(objective="New."), labels=["priority:high", "complexity:low"])])
    assert stage.apply(result).outcome is Outcome.APPLIED
    body = stage.get(path_of(stage, 1))["body"]
    stage.send("PATCH", path_of(stage, 1), **(edit or {"body": body.replace("New.", "By hand.")}))
    before = stage.snapshot()
    again = stage.apply(result)
    assert (again.outcome, again.writes, codes(again)) == (Outcome.UNCHANGED, 0, set())
    assert stage.snapshot() == before


def test_nearly_the_same_titles_of_other_plans_are_named_once_and_by_a_dry_run_too(stage: Stage) -> None:
    stage.apply(plan(task("a", title="Export the contacts as CSV")), run_key="one")
    similar = plan(task("q", title="Export contacts as a CSV"))
    for is_dry_run in (True, False):
        receipt = stage.apply(similar, run_key="two", is_dry_run=is_dry_run)
        assert [finding.code for finding in receipt.findings].count("near-duplicate") == 1
        assert len(stage.issues()) == (1 if is_dry_run else 2)


@pytest.mark.parametrize("over", [0, 1])
def test_a_plan_over_the_limit_is_rejected_with_its_numbers_before_any_request(stage: Stage, over: int) -> None:
    result = plan(*(task(f"t{i}") for i in range(3 + over)), close=["1"])
    receipt = stage.apply(result, most_items=4)
    assert ("items-too-many" in codes(receipt)) == bool(over)
    if over:
        (finding,) = receipt.findings
        assert (receipt.outcome, receipt.reads) == (Outcome.REJECTED, 0)
        assert "creates 4, closes 1" in finding.message
        assert "--max-items 5" in finding.hint


@pytest.mark.parametrize(
    ("labels", "writes"),
    [
        ([], 0), (["bug"], 0), (["status:pending"], 0), (["task:unknown"], 0), (["task:implement"], 1),
        (["task:refinement"], 1), (["task:implement", "task:refinement"], 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("change", ["close", "update"])
def test_only_work_items_are_closed_and_updated(stage: Stage, labels: list[str], writes: int, change: str) -> None:
    stage.send("POST", path_of(stage, 0).removesuffix("/0"), title="The login is slow", body="", labels=labels)
    result = plan(close=["1"]) if change == "close" else plan(update=[update(1, labels=["priority:high"])])
    receipt = stage.apply(result)
    refused = {"type-unclear" if len(labels) > 1 else "not-a-work-item"}
    found = codes(receipt) & {"type-unclear", "not-a-work-item"}
    assert (found, receipt.writes) == (set() if writes else refused, writes and NO_LEASE + writes)
    allowed = stage.apply(result, reaches_any_issue=True)
    assert not refused & codes(allowed)


def test_an_item_that_a_plan_made_is_closed_without_its_labels_too(stage: Stage) -> None:
    stage.apply(plan(task("a")))
    stage.send("PUT", f"{path_of(stage, 1)}/labels", labels=[])
    assert stage.apply(plan(close=["1"])).outcome is Outcome.APPLIED


OWN = plan(task("a"), task("b"))


@pytest.mark.parametrize(
    ("create", "code", "said"),
    [
        ([task("a", "b"), task("b", "1")], "dependency-cycle", "a → b → a"),
        ([task("a", "#1"), task("b"), task("new")], "self-reference", "`a` blocks itself"),
        ([task("new", "a"), task("a", "2"), task("b", "new")], "dependency-cycle", "new → a → b → new"),
    ],
)
def test_an_item_that_has_a_number_is_that_item_in_every_rule(
    stage: Stage, create: list[dict[str, Any]], code: str, said: str
) -> None:
    stage.apply(OWN, run_key="k")
    receipt = stage.apply(plan(*create), run_key="k")
    assert (receipt.outcome, receipt.writes, codes(receipt)) == (Outcome.REJECTED, 0, {code})
    assert said in receipt.findings[0].message


def test_a_name_and_the_number_of_the_same_item_are_one_dependency(stage: Stage) -> None:
    stage.apply(OWN, run_key="k")
    receipt = stage.apply(plan(task("a"), task("b", "a", "#1")), run_key="k")
    assert [entry.op for entry in receipt.operations].count("add-dependency") == 1
    assert stage.apply(plan(task("a"), task("b", "a", "#1")), run_key="k").outcome is Outcome.UNCHANGED
