"""Every rule of a planner result: what breaks it is found, at its place, and what keeps it passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.plans import TASK_LABELS, plan, refinement, refinement_body, task, task_body, update

from accord.core.kinds import check_document

Case = tuple[dict[str, Any], str, str]


def check(result: Any) -> list[tuple[str, str, str]]:
    _, findings = check_document(json.dumps(result, indent=1).encode(), None)
    return [(finding.code, finding.severity.value, finding.path) for finding in findings]


def changed(item: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**item, **fields}


def labelled(item: dict[str, Any], *labels: str) -> dict[str, Any]:
    return changed(item, labels=list(labels))


VALID = {
    "nothing to do": plan(),
    "one task": plan(task("a")),
    "one refinement": plan(refinement("a")),
    "forward reference": plan(task("a", "b"), task("b")),
    "existing items by number": plan(task("a", "#12", "13"), close=["1", "#2"], update=[update(3)]),
    "other labels": plan(changed(task("a"), labels=[*task("a")["labels"], "area: web", "good first issue"])),
    "refinement of medium priority": plan(
        labelled(refinement("a"), "task:refinement", "status:pending", "priority:medium")
    ),
    "same blocker twice": plan(task("a"), task("b", "a", "a")),
    "a title of 256 characters": plan(task("a", title="x" * 256)),
    "emoji in a title": plan(task("a", title="\U0001f600" * 256)),
    "update of labels alone": plan(update=[update(3, labels=["priority:high"])]),
    "update to the refinement template": plan(update=[update(3, body=refinement_body())]),
    "shared file with a dependency": plan(
        task("a", in_scope="- src/x.py"), task("b", "a"), task("c", "b", in_scope="- src/x.py")
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_plan_is_not_held_up(name: str) -> None:
    assert check(VALID[name]) == []


BROKEN: dict[str, Case] = {
    "tempID twice": (plan(task("a"), task("a")), "duplicate-temp-id", "/create/1/tempID"),
    "empty tempID": (plan(task(" ")), "schema", "/create/0/tempID"),
    "unknown name": (plan(task("a", "b")), "unknown-reference", "/create/0/blockedBy/0"),
    "number zero": (plan(task("a", "0")), "unknown-reference", "/create/0/blockedBy/0"),
    "negative number": (plan(task("a", "-1")), "unknown-reference", "/create/0/blockedBy/0"),
    "number with zeros before": (plan(close=["007"]), "unknown-reference", "/close/0"),
    "other digits": (plan(close=["\u0664\u0662"]), "unknown-reference", "/close/0"),
    "close by name": (plan(task("a"), close=["a"]), "unknown-reference", "/close/0"),
    "update by name": (
        plan(task("a"), update=[{"workItemID": "a", "body": None, "labels": None}]),
        "unknown-reference",
        "/update/0/workItemID",
    ),
    "itself": (plan(task("a", "a")), "self-reference", "/create/0/blockedBy/0"),
    "two in a circle": (plan(task("a", "b"), task("b", "a")), "dependency-cycle", "/create/0/blockedBy"),
    "more dependencies than GitHub allows": (
        plan(task("hub"), *(task(f"t{i}", "hub") for i in range(51))),
        "dependencies-too-many",
        "/create/0/blockedBy",
    ),
    "close and update": (plan(close=["#5"], update=[update(5)]), "close-and-update", "/update/0/workItemID"),
    "update twice": (plan(update=[update(5), update(5)]), "update-repeated", "/update/0/workItemID"),
    "long title": (plan(task("a", title="x" * 257)), "title-too-long", "/create/0/title"),
    "empty title": (plan(task("a", title="  ")), "title-empty", "/create/0/title"),
    "long body": (plan(task("a", body=task_body(objective="x" * 65_536))), "body-too-long", "/create/0/body"),
    "update with two priorities": (
        plan(update=[update(1, labels=["priority:low", "priority:high"])]),
        "label-repeated",
        "/update/0/labels/1",
    ),
    "update with unknown label": (
        plan(update=[update(1, labels=["priority:low", "complexity:huge"])]),
        "label-unknown",
        "/update/0/labels/1",
    ),
    "update with a body of no template": (
        plan(update=[update(1, body="Just do it.")]),
        "section-missing",
        "/update/0/body",
    ),
}


LABELS = {
    "no priority": ("task:implement status:pending complexity:low", "label-missing", ""),
    "no type": ("status:pending priority:low complexity:low", "label-missing", ""),
    "no labels at all": ("", "label-missing", ""),
    "two types": (" ".join([*TASK_LABELS, "task:refinement"]), "label-repeated", "/4"),
    "two priorities": (" ".join([*TASK_LABELS, "priority:high"]), "label-repeated", "/4"),
    "the same label twice": (" ".join([*TASK_LABELS, "priority:medium"]), "label-repeated", "/4"),
    "unknown priority": ("task:implement status:pending priority:urgent complexity:low", "label-unknown", "/2"),
    "priority in capitals": ("task:implement status:pending Priority:High complexity:low", "label-unknown", "/2"),
    "created as ready": ("task:implement status:ready priority:low complexity:low", "label-forbidden", "/1"),
    "refinement with complexity": (
        "task:refinement status:pending priority:high complexity:low", "label-forbidden", "/3",
    ),
    "refinement of low priority": ("task:refinement status:pending priority:low", "label-forbidden", "/2"),
    "label of 51 characters": (" ".join([*TASK_LABELS, "x" * 51]), "label-too-long", "/4"),
    "101 labels": (" ".join([*TASK_LABELS, *(f"l{i}" for i in range(97))]), "labels-too-many", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_a_new_item_needs_exactly_the_labels_of_its_kind(name: str) -> None:
    labels, code, place = LABELS[name]
    item = refinement("a") if "refinement" in name else task("a")
    assert (code, "error", f"/create/0/labels{place}") in check(plan(labelled(item, *labels.split())))


def test_a_misspelt_name_is_corrected() -> None:
    item = changed(task("a", "bb-tsak"), labels=[*TASK_LABELS[:2], "priority:hihg", "complexity:low"])
    broken = plan(item, task("bb-task", body=task_body().replace("Acceptance Criteria", "Acceptance Criterias")))
    _, findings = check_document(json.dumps(broken).encode(), None)
    said = {finding.code: finding.message for finding in findings}
    assert "Did you mean `priority:high`?" in said["label-unknown"]
    assert "Did you mean `bb-task`?" in said["unknown-reference"]
    assert "Did you mean `Acceptance Criteria`?" in said["section-missing"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found_at_its_place(name: str) -> None:
    result, code, path = BROKEN[name]
    assert (code, "error", path) in check(result)


SHAPES: dict[str, tuple[Any, str]] = {
    "no role": ({"create": [], "close": [], "update": []}, "/role"),
    "other role": ({"role": "poet", "create": [], "close": [], "update": []}, "/role"),
    "no create": ({"role": "planner", "close": [], "update": []}, "/create"),
    "create is an object": ({"role": "planner", "create": {}, "close": [], "update": []}, "/create"),
    "unknown key": ({"role": "planner", "create": [], "close": [], "update": [], "x": 1}, "/x"),
    "python's name": (plan({**task("a"), "temp_id": "b"}), "/create/0/temp_id"),
    "number as id": ({"role": "planner", "create": [], "close": [42], "update": []}, "/close/0"),
    "null title": (plan(changed(task("a"), title=None)), "/create/0/title"),
    "labels as text": (plan(changed(task("a"), labels="task:implement")), "/create/0/labels"),
    "boolean label": (plan(changed(task("a"), labels=[True])), "/create/0/labels/0"),
    "key with a slash": (plan({**task("a"), "a/b~c": 1}), "/create/0/a~1b~0c"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_wrong_shape_is_found_at_its_place(name: str) -> None:
    result, path = SHAPES[name]
    assert ("schema", "error", path) in check(result)


def test_a_cycle_is_printed_in_the_order_of_waiting() -> None:
    result = plan(task("a", "b"), task("b", "c"), task("c", "a"), task("d"))
    _, findings = check_document(json.dumps(result).encode(), None)
    message = next(finding.message for finding in findings if finding.code == "dependency-cycle")
    assert any(cycle in message for cycle in ("a → b → c → a", "b → c → a → b", "c → a → b → c"))


def test_a_name_that_differs_by_blanks_alone_is_shown_as_it_must_be_written() -> None:
    _, (finding,) = check_document(json.dumps(plan(task("a "), task("b", "a"))).encode(), None)
    assert finding.message.endswith("Did you mean `a `?")
    assert check(plan(task("a "), task("b", "a "))) == []


def test_tasks_that_may_collide_are_named_and_not_refused() -> None:
    result = plan(
        task("a", in_scope="- src/x.py"),
        task("b", in_scope="- `./src/x.py` (new)"),
        task("c", "b", in_scope="- src/x.py"),
    )
    found = check(result)
    assert found == [("shared-scope", "warning", "/create/1/body"), ("shared-scope", "warning", "/create/2/body")]


def test_an_update_that_loses_the_priority_is_warned_of() -> None:
    assert check(plan(update=[update(1, labels=["bug"])])) == [("label-missing", "warning", "/update/0/labels")]


def test_findings_name_the_line_of_the_file() -> None:
    text = json.dumps(plan(task("a"), task("a")), indent=1)
    _, findings = check_document(text.encode(), None)
    line = findings[0].line or 0
    assert '"tempID": "a"' in text.splitlines()[line - 1]
    assert text.count('"tempID"', 0, sum(len(row) + 1 for row in text.splitlines()[: line - 1])) == 1
