"""A fault with one possible correction is corrected; anything that could mean two things stays as it is."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import plan, task, update
from support.sessions import agent_output

from accord.core.documents import read_object
from accord.core.fixes import fix_document, fix_text, read_corrected
from accord.core.kinds import KINDS


def fixed(kind: str, document: Any, around: str = "{}") -> tuple[Any, list[str]]:
    raw = around.replace("{}", json.dumps(document)).encode()
    value, fixes = fix_document(KINDS[kind], read_object(raw))
    again, none = fix_document(KINDS[kind], read_object(json.dumps(value).encode()))
    assert (again, none) == (value, [])
    return value, [fix.text for fix in fixes]


def spelled(item: dict[str, Any], **keys: str) -> dict[str, Any]:
    return {keys.get(key, key): value for key, value in item.items()}


def with_patch(patch: str) -> dict[str, Any]:
    return {"role": "implementor", "outcome": "completed", "summary": "Did it.", "patch": patch}


A = task("a", "7")
NO_STATUS = {**A, "labels": [label for label in A["labels"] if not label.startswith("status:")]}
HEAD = "diff --git a/a b/a\n--- a/a\n+++ b/a\n"
GOOD = f"{HEAD}@@ -1,2 +1,2 @@ def f():\n-x\n+y\n z\n"
MINUSES = f"{HEAD}@@ -1,2 +1,2 @@\n--- x\n+++ y\n z\n"
TWO = f"{HEAD}@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n@@ -9,2 +9 @@\n a\n-b\ndiff --git a/b b/b\n"

CORRECTED = [
    ("planner-result", plan(spelled(A, tempID="tempId")), plan(A),
     ["Renamed the key `tempId` to `tempID` at /create/0/tempID."]),
    ("planner-result", plan(spelled(A, blockedBy="blocked_by")), plan(A), ["Renamed the key `blocked_by`"]),
    ("planner-result", plan({**A, "blockedBy": [7]}), plan(A),
     ["Wrote the number 7 as a string at /create/0/blockedBy/0."]),
    ("planner-result", plan(close=[3]), plan(close=["3"]), ["Wrote the number 3 as a string at /close/0."]),
    ("planner-result", plan(NO_STATUS), plan({**A, "labels": [*NO_STATUS["labels"], "status:pending"]}),
     ["Added the label `status:pending` at /create/0/labels."]),
    ("planner-result", plan(update=[spelled({**update(4), "workItemID": 4}, workItemID="workitemId")]),
     plan(update=[{**update(4), "workItemID": "4"}]), ["Renamed", "Wrote the number 4"]),
    ("agent-output", spelled(agent_output(), summary="sumary"), agent_output(), ["Renamed the key `sumary`"]),
    ("implementor-result", with_patch(GOOD.replace("-1,2 +1,2", "-1,9 +1,7")), with_patch(GOOD),
     ["1 hunk again at /patch."]),
    ("implementor-result", with_patch(GOOD.replace("-1,2 +1,2", "-1 +1")), with_patch(GOOD), ["1 hunk"]),
    ("implementor-result", with_patch(TWO.replace("-9,2 +9 ", "-9,3 +9,3 ")),
     with_patch(TWO.replace("-9,2 +9 ", "-9,2 +9,1 ")), ["1 hunk"]),
    ("implementor-result", with_patch(f"{HEAD}@@ -1,9 +1,9 @@\n a\n\n-b\n\n\n"),
     with_patch(f"{HEAD}@@ -1,3 +1,2 @@\n a\n\n-b\n\n\n"),
     ["1 hunk"]),
]  # fmt: skip

UNTOUCHED = [
    ("planner-result", plan(A)),
    ("planner-result", plan({**A, "tempId": "b"})),  # the known key is there already
    ("planner-result", plan(spelled(A, tempID="tempIDs", blockedBy="tempId"))),  # two keys for one
    ("planner-result", plan(spelled(A, tempID="name"))),
    ("planner-result", plan({**A, "title": True})),
    ("planner-result", plan({**A, "title": 1.5})),
    ("planner-result", plan({**A, "labels": "status:pending"})),
    ("planner-result", plan({**A, "labels": [*NO_STATUS["labels"], "status:ready"]})),
    ("agent-output", agent_output(summary_of_it="more")),  # open documents may have more keys
    ("implementor-result", with_patch(GOOD)),
    ("implementor-result", with_patch(MINUSES)),
    ("implementor-result", with_patch(TWO)),
    ("implementor-result", with_patch(GOOD + "\ndiff --git a/b b/b\n")),
    ("implementor-result", with_patch(GOOD + "-- \n2.43.0\n")),
    ("implementor-result", with_patch("@@ -1 +1 @@\n-a\x0b\x0cb\r\n+c\u2028d\r\n")),
]


@pytest.mark.parametrize(("kind", "given", "expected", "fixes"), CORRECTED)
def test_a_fault_with_one_meaning_is_corrected_and_reported(
    kind: str, given: Any, expected: Any, fixes: list[str]
) -> None:
    value, found = fixed(kind, given)
    assert value == expected
    assert len(found) == len(fixes)
    assert all(part in text for part, text in zip(fixes, found, strict=True))


@pytest.mark.parametrize(("kind", "document"), UNTOUCHED)
def test_a_document_that_is_right_or_ambiguous_stays_as_it_is(kind: str, document: Any) -> None:
    before = json.dumps(document)
    assert fixed(kind, document) == (json.loads(before), [])


def test_text_around_a_document_is_removed() -> None:
    assert fixed("planner-result", plan(), "Here it is:\n```json\n{}\n```\nBye.") == (
        plan(), ["Removed the text around the JSON object."]
    )  # fmt: skip


def test_a_line_written_as_a_string_becomes_a_number() -> None:
    comment = {"path": "a.py", "line": "3", "body": "[Warning] x"}
    review = {"verdict": "approve", "summary": "Fine.", "comments": [comment, {**comment, "line": "three"}]}
    document = read_object(json.dumps({"role": "reviewer", "review": review}).encode())
    value, fixes = fix_document(KINDS["reviewer-result"], document)
    assert [entry["line"] for entry in value["review"]["comments"]] == [3, "three"]
    assert [fix.text for fix in fixes] == ["Wrote the string `3` as a number at /review/comments/0/line."]


PLAN = '{"role": "planner", "create": [], "close": ["1"], "update": []}'
TEXTS = [
    (PLAN.replace("planner", "Planner"), ["Wrote the role `Planner` as `planner` at /role."]),
    (PLAN.replace("role", "Role"), ["Renamed the key `Role` to `role` at /role."]),
    (PLAN.replace('"role": "pl', '"rloe": "Pl'), ["Renamed the key `rloe`", "Wrote the role `Planner`"]),
    (f'{{"result": {PLAN}}}', ["Removed the object around the document, with the key `result`."]),
    (f'{{"results": [{PLAN}]}}', ["Removed the object around the document, with the key `results`."]),
    (f'{{"plan": {PLAN.replace("role", "ROLE")}}}', ["Removed the object", "Renamed the key `ROLE`"]),
    (PLAN.replace('"1"', '"1",'), ["Removed the comma before a closing bracket."]),
    (PLAN.replace('["1"]', '["1"\n , ]').replace("[]}", "[],}"), ["Removed 2 commas before a closing bracket."]),
    (f'He said "yes:\n```json\n{PLAN[:-1]},}}\n```\n', ["Removed the comma", "Removed the text around"]),
    ("\ufeff" + PLAN[:-1].replace(", ", ",\r\n") + ",}", ["Removed the comma"]),
]


@pytest.mark.parametrize(("text", "fixes"), TEXTS)
def test_a_text_whose_kind_cannot_be_read_is_corrected(text: str, fixes: list[str]) -> None:
    raw, found = fix_text(text.encode(), None)
    assert json.loads(raw) == json.loads(PLAN)
    assert len(found) == len(fixes)
    assert all(fix.text.startswith(start) for start, fix in zip(fixes, found, strict=True))
    assert fix_text(raw, None) == (raw, [])


@pytest.mark.parametrize(
    "text",
    [
        PLAN.replace('"1"', '"1",,'),
        PLAN.replace('"1"', "1 // one"),
        PLAN.replace("role", "rule").replace("planner", "reader"),
        PLAN.replace('"role"', '"Role": "planner", "ROLE"'),
        f'{{"a": {PLAN}, "b": 1}}',
        f"{PLAN}\n{PLAN[:-1]},}}",
        '{"role": "planner", "create": [',
        '{"metadata": {}, "Role": "planner"}',
    ],
)
def test_a_text_that_may_mean_two_things_stays_as_it_is(text: str) -> None:
    assert fix_text(text.encode(), None) == (text.encode(), [])


@pytest.mark.slow
@given(
    st.recursive(
        st.text(',]}["\\ \n', max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(',]}"', max_size=3), inner, max_size=3),
        max_leaves=12,
    )
)
def test_only_commas_outside_of_strings_are_removed(value: Any) -> None:
    document = {"metadata": value}
    text = json.dumps(document, indent=1)
    wrong = re.sub(r'("(?:[^"\\\\]|\\\\.)*")|(?<![\[{])(?<!,)(\n *[\]}])', lambda at: at[1] or f",{at[2]}", text)
    read, fixes = read_corrected(wrong.encode(), "handoff")
    assert read.value == document
    assert [fix.message[:7] for fix in fixes] == ["Removed"]


def test_a_review_without_its_object_is_put_into_it() -> None:
    """Removing the keys that are in the wrong place, as the schema says, would lose the review."""
    review = {"verdict": "approve", "summary": "All checks pass.", "comments": []}
    flat = {"role": "reviewer", **review}
    value, fixes = fixed("reviewer-result", flat)
    assert value == {"role": "reviewer", "review": review}
    assert fixes == ["Moved `verdict`, `summary`, `comments` into `review` at /review."]
