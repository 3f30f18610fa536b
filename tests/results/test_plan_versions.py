"""Rules for versions of a plan: which request it has, which issue an item is, and which of two edits wins."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from support.clocks import ManualClock
from support.plans import TASK_LABELS, plan, refinement, task, task_body

from accord.core.shapes import read_shape
from accord.github.models import Identity, Issue
from accord.results.bodies import UPDATED, BodyParts
from accord.results.models import PlannerResult
from accord.results.planner.changes import Comparison, compare, difference, merge_labels, reason_to_keep
from accord.results.planner.facts import PlanFacts
from accord.results.planner.match import match_items
from accord.results.planner.record import (
    body_digest,
    label_digests,
    record_for,
    record_of,
    with_record,
    written_digests,
)
from accord.results.planner.report import near_duplicates, similar_titles
from accord.results.planner.rules import Plan, read_plan
from accord.results.planner.scope import plan_run_key, run_key_of_request, run_key_of_spec
from accord.results.run_options import PlanOptions
from accord.text.markers import run_token, write_marker
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

TOKEN = run_token("o/r", "key")
NOW = datetime(2026, 11, 2, tzinfo=UTC)
FACTS = PlanFacts(
    Identity("accord", is_person=False),
    TOKEN,
    NOW,
    {},
    frozenset(),
    (),
    existing={},
    blockers={},
    others=(),
    labels=None,
    findings=(),
)


def read(*items: dict[str, Any], **more: Any) -> Plan:
    return read_plan(read_shape(PlannerResult, plan(*items, **more)))


def issue_of(item: dict[str, Any], number: int, **changes: Any) -> Issue:
    """The issue that accord made of an item, with what changed since."""
    record = record_for(item["tempID"], item["title"], item["body"].rstrip(), item["labels"], ())
    content = changes.pop("content", item["body"].rstrip())
    fields: dict[str, Any] = {
        "id": 1000 + number,
        "number": number,
        "url": "",
        "title": item["title"],
        "body": with_record(BodyParts(content), TOKEN, record).join(),
        "labels": tuple(item["labels"]),
        "state": "open",
        "state_reason": None,
        "author": "accord",
        "author_is_bot": True,
        "closed_by": None,
        "is_pull": False,
        "created_at": NOW,
        "blocker_count": 0,
    }
    return Issue(**{**fields, **changes})


REQUESTS = {
    "an issue": (["#12", "12"], "issue-12"),
    "a specification": (
        [
            "docs/specs/a.md",
            "./docs/specs/a.md",
            "Plan the specification docs/specs/a.md.",
            "`docs/specs/a.md#Formats`",
        ],
        run_key_of_spec("docs/specs/a.md"),
    ),
    "a folder": (["docs/specs/", "docs/specs"], run_key_of_spec("docs/specs")),
    "a session": (["session:export", "session: export"], run_key_of_request("session:export")),
    "a text": (["Plan  the EXPORT", "plan the export"], run_key_of_request("plan the export")),
    "a specification with a space": (["Plan the specification docs/my spec.md."], run_key_of_spec("docs/my spec.md")),
}


@pytest.mark.parametrize(("spellings", "key"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_has_one_run_key_however_it_is_written(spellings: list[str], key: str) -> None:
    assert {run_key_of_request(text) for text in spellings} == {key}


def test_different_requests_have_different_run_keys_that_apply_takes() -> None:
    texts = ["#1", "docs/a.md", "docs/b.md", "session:a", "mission:a", "Plan a", "ü", "o/r#1", "o/r#2", "README.md"]
    texts += ["Add a chapter to README.md", "Remove the chapter from README.md", "Plan README.md", "追加`README.md`"]
    keys = [run_key_of_request(text) for text in texts]
    assert len(set(keys)) == len(keys)
    assert all(key.replace("-", "").isalnum() for key in keys)


OTHER_SPEC = task_body().replace("docs/specs/a.md", "docs/specs/b.md")
SCOPES = {
    "a run key wins": ({"run_key": "mine", "request": "#3"}, [task("a")], "mine"),
    "then the request": ({"request": "#3"}, [task("a")], "issue-3"),
    "then the one specification": ({}, [task("a"), refinement("b")], run_key_of_spec("docs/specs/a.md")),
}


def key_of(items: list[dict[str, Any]], changes: dict[str, Any] | None = None, **options: str) -> str:
    run = PlanOptions("o/r", ManualClock(NOW), Redactor(), PostingPolicy(), **options)  # type: ignore[arg-type]
    return plan_run_key(read(*items, **(changes or {})), run)


@pytest.mark.parametrize(("options", "items", "key"), SCOPES.values(), ids=SCOPES)
def test_the_scope_of_a_plan_is_its_request(options: dict[str, str], items: list[dict[str, Any]], key: str) -> None:
    assert key_of(items, **options) == key


def test_plans_of_several_specifications_differ_by_their_content() -> None:
    items = [task("a"), task("b", body=OTHER_SPEC)]
    assert key_of(items) == key_of(items)
    assert key_of(items) != key_of([*items, task("c")])


@pytest.mark.parametrize("part", ["title", "tempID", "labels"])
def test_a_number_with_its_sign_is_another_plan_where_it_is_a_text(part: str) -> None:
    texts = [["#10"], ["10"]] if part == "labels" else ["#10", "10"]
    signed, bare = (key_of([{**task("a", body=OTHER_SPEC), part: text}, task("b")]) for text in texts)
    assert signed != bare


REFERENCES: dict[str, Callable[[str], tuple[list[dict[str, Any]], dict[str, Any]]]] = {
    "close": lambda number: ([], {"close": [number]}),
    "update": lambda number: ([], {"update": [{"workItemID": number, "body": None, "labels": ["x"]}]}),
    "blockedBy": lambda number: ([task("a", number), task("b", body=OTHER_SPEC)], {}),
}


@pytest.mark.parametrize("place", REFERENCES)
def test_a_number_with_and_without_its_sign_is_the_same_plan(place: str) -> None:
    signed, bare, other = (key_of(*REFERENCES[place](number)) for number in ("#10", "10", "11"))
    assert signed == bare != other


A, B, C = task("a"), task("b"), task("c")
ISSUES = [issue_of(A, 1), issue_of(B, 2), issue_of(C, 3)]
MATCHES: dict[str, tuple[list[dict[str, Any]], list[Issue], dict[str, int], list[int]]] = {
    "the same": ([A, B, C], ISSUES, {"a": 1, "b": 2, "c": 3}, []),
    "in another order": ([C, A, B], ISSUES, {"a": 1, "b": 2, "c": 3}, []),
    "another title": ([{**A, "title": "Other"}, B], ISSUES, {"a": 1, "b": 2}, [3]),
    "another scope": ([task("a", in_scope="- x.py"), B], ISSUES, {"a": 1, "b": 2}, [3]),
    "another title and scope": ([task("a", title="Other", in_scope="- x.py"), B], ISSUES, {"a": 1, "b": 2}, [3]),
    "another tempID": ([{**A, "tempID": "z"}, B], ISSUES, {"z": 1, "b": 2}, [3]),
    "swapped tempIDs": ([{**A, "tempID": "b"}, {**B, "tempID": "a"}], ISSUES, {"b": 1, "a": 2}, [3]),
    "another tempID and title": ([{**A, "tempID": "z", "title": "Other"}, B], ISSUES, {"b": 2}, [1, 3]),
    "a title edited by a person, and another tempID": (
        [{**A, "tempID": "z"}],
        [issue_of(A, 1, title="By hand")],
        {"z": 1},
        [],
    ),
    "a refinement of the same name": ([refinement("a"), B], ISSUES, {"b": 2}, [1, 3]),
    "a closed one": ([A], [issue_of(A, 1, state="closed")], {"a": 1}, []),
    "a name used again for other work, the old being done": (
        [task("a", title="Other", in_scope="- x.py"), B],
        [issue_of(A, 1, state="closed"), issue_of(B, 2)],
        {"b": 2},
        [],
    ),
    "a name used again for other work, the old in review": (
        [task("a", title="Other", in_scope="- x.py"), B],
        [issue_of(A, 1, labels=("task:implement", "status:review")), issue_of(B, 2)],
        {"b": 2},
        [1],
    ),
    "counted names in a plan that only adds": (
        [task("temp-1", title="Other", in_scope="- x.py")],
        [issue_of(task("temp-1"), 1), issue_of(task("temp-2"), 2)],
        {},
        [1, 2],
    ),
    "counted names in a plan that has the rest": (
        [task("temp-1", title="Other", in_scope="- x.py"), task("temp-2")],
        [issue_of(task("temp-1"), 1), issue_of(task("temp-2"), 2)],
        {"temp-1": 1, "temp-2": 2},
        [],
    ),
    "a counted name used again in the same file, the old being done": (
        [task("temp-1", title="Other")],
        [issue_of(task("temp-1"), 1, state="closed")],
        {},
        [],
    ),
    "a counted name used again in the same file, the old in progress": (
        [task("temp-1", title="Other")],
        [issue_of(task("temp-1"), 1, labels=("task:implement", "status:in-progress"))],
        {},
        [1],
    ),
    "a counted name used again with a part of the scope": (
        [task("temp-1", title="Other", in_scope="- src/temp-1.py\n- x.py")],
        [issue_of(task("temp-1"), 1)],
        {},
        [1],
    ),
    "a counted name with another title and the same scope": (
        [task("temp-1", title="Other")],
        [issue_of(task("temp-1"), 1)],
        {"temp-1": 1},
        [],
    ),
    "a counted name with a part of the scope in a plan that has the rest": (
        [task("temp-1", title="Other", in_scope="- src/temp-1.py\n- x.py"), task("temp-2")],
        [issue_of(task("temp-1"), 1), issue_of(task("temp-2"), 2)],
        {"temp-1": 1, "temp-2": 2},
        [],
    ),
    "a name in progress with a part of the scope": (
        [task("a", title="Other", in_scope="- src/a.py\n- x.py")],
        [issue_of(A, 1, labels=("task:implement", "status:in-progress"))],
        {"a": 1},
        [],
    ),
    "another run key": ([A], [issue_of(A, 1, body="<!-- accord:item run=accordx id=a -->")], {}, []),
}


@pytest.mark.parametrize(("items", "own", "numbers", "vanished"), MATCHES.values(), ids=MATCHES)
def test_an_item_is_matched_with_its_issue(
    items: list[dict[str, Any]], own: list[Issue], numbers: dict[str, int], vanished: list[int]
) -> None:
    found = match_items(read(*items), own, TOKEN, {})
    assert {name: issue.number for name, issue in found.items.items()} == numbers
    assert [issue.number for issue in found.vanished] == vanished
    assert found.repeated == ()


def test_of_two_issues_of_one_item_the_older_counts_and_the_other_is_named() -> None:
    found = match_items(read(A), [issue_of(A, 7), issue_of(A, 4)], TOKEN, {})
    assert [(kept.number, twin.number) for kept, twin in found.repeated] == [(4, 7)]
    assert (found.items["a"].number, found.vanished) == (4, ())


def compared(item: dict[str, Any], issue: Issue) -> Comparison:
    read_again = read({**item, "body": item["body"].rstrip()})
    return compare(read_again.items[0], issue, read_again, FACTS, {"a": issue})


CHANGED = task("a", title="New", objective="New.")
CHANGED["labels"] = [*TASK_LABELS[:2], "priority:high", "complexity:low"]
TICKED = A["body"].rstrip().replace("- [ ]", "- [x]")
BY_HAND = A["body"].rstrip() + "\n\nPS"
THREE_WAYS: dict[str, tuple[dict[str, Any], Issue, tuple[str, ...], tuple[str, ...]]] = {
    "no change": (A, issue_of(A, 1), (), ()),
    "the plan changed everything": (CHANGED, issue_of(A, 1), ("title", "body", "labels"), ()),
    "a person changed everything": (A, issue_of(A, 1, title="Mine", content=BY_HAND, labels=("x",)), (), ()),
    "both changed the title": (CHANGED, issue_of(A, 1, title="Mine"), ("body", "labels"), ("title",)),
    "both changed the body": (CHANGED, issue_of(A, 1, content=BY_HAND), ("title", "labels"), ("body",)),
    "both changed the priority": (
        CHANGED,
        issue_of(A, 1, labels=("task:implement", "status:ready", "priority:low", "complexity:low")),
        ("title", "body"),
        ("labels",),
    ),
    "both made the same change": (CHANGED, issue_of(A, 1, title="New"), ("body", "labels"), ()),
    "a person ticked a box": (CHANGED, issue_of(A, 1, content=TICKED), ("title", "body", "labels"), ()),
    "the status moved on": (A, issue_of(A, 1, labels=("task:implement", "status:review", *TASK_LABELS[2:])), (), ()),
    "another tempID": ({**A, "tempID": "b"}, issue_of(A, 1), ("tempID",), ()),
}


@pytest.mark.parametrize(("item", "issue", "parts", "kept"), THREE_WAYS.values(), ids=THREE_WAYS)
def test_of_two_edits_a_persons_wins_part_by_part(
    item: dict[str, Any], issue: Issue, parts: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    comparison = compared(item, issue)
    assert (comparison.parts, comparison.kept) == (parts, kept)


def test_an_updated_body_keeps_the_ticks_of_the_criteria_that_it_keeps() -> None:
    new = task("a", objective="New.", criteria="- [ ] It works\n- [ ] It is fast")
    content = compared(new, issue_of(A, 1, content=TICKED)).content
    assert content is not None
    assert "- [x] It works\n- [ ] It is fast" in content


LABELS = {
    "the plan adds one": (["web"], ["web"], ["web", "api"], ["web", "api"], False),
    "the plan removes one": (["web", "api"], ["web", "api"], ["web"], ["web"], False),
    "a person added one": (["web"], ["web", "mine"], ["api"], ["mine", "api"], False),
    "a person removed one": (["web", "api"], ["web"], ["web", "api"], None, False),
    "another spelling": (["web"], ["Web"], ["web"], None, False),
    "another priority": (["priority:low"], ["priority:low"], ["priority:high"], ["priority:high"], False),
    "a person's priority": (["priority:low"], ["priority:medium"], ["priority:low"], None, False),
    "two priorities": (["priority:low"], ["priority:medium"], ["priority:high"], None, True),
    "status and type": ([], ["status:review", "task:implement"], ["status:pending", "task:refinement"], None, False),
}


@pytest.mark.parametrize(("written", "present", "wanted", "after", "contested"), LABELS.values(), ids=LABELS)
def test_labels_of_people_and_of_the_plan_are_merged(
    written: list[str], present: list[str], wanted: list[str], after: list[str] | None, contested: bool
) -> None:
    labels, has_conflict = merge_labels([label_digests(written)], present, wanted)
    assert (labels if labels is None else list(labels), has_conflict) == (after, contested)


UPDATED_LABELS = (*TASK_LABELS, "area: web")
BY_UPDATE = issue_of(A, 1).body.replace(A["body"].rstrip(), BY_HAND) + write_marker(
    UPDATED, run="x", wrote=".".join(written_digests(BY_HAND, label_digests(UPDATED_LABELS)))
)
KEPT_OPEN = {
    "nothing speaks against closing": ({}, ""),
    "changed by an update": ({"body": BY_UPDATE, "labels": UPDATED_LABELS}, ""),
    "changed by an update and a person": ({"body": BY_UPDATE, "labels": (*UPDATED_LABELS, "mine")}, "labels"),
    "in progress": ({"labels": ("task:implement", "status:in-progress", *TASK_LABELS[2:])}, "status is in-progress"),
    "approved": ({"labels": ("task:implement", "status:approved", *TASK_LABELS[2:])}, "status is approved"),
    "assigned": ({"assignees": ("octocat",)}, "assigned"),
    "retitled": ({"title": "Mine"}, "title"),
    "ticked": ({"content": TICKED}, "body"),
    "labelled": ({"labels": (*TASK_LABELS, "mine")}, "labels"),
}


@pytest.mark.parametrize(("changes", "reason"), KEPT_OPEN.values(), ids=KEPT_OPEN)
def test_an_item_that_vanished_is_kept_where_a_person_or_an_agent_took_it_up(
    changes: dict[str, Any], reason: str
) -> None:
    found = reason_to_keep(issue_of(A, 1, **changes), FACTS)
    assert reason in found if reason else found == ""


def test_a_record_survives_its_marker() -> None:
    record = record_for("--> ü", "T", "body", ["Web", "priority:high", "status:pending"], [3, 12])
    issue = issue_of(A, 1, body=with_record(BodyParts("body"), TOKEN, record).join())
    assert record_of(issue, TOKEN) == record


def test_a_difference_shows_changed_lines_below_their_headings() -> None:
    shown = difference(compared(CHANGED, issue_of(A, 1))).splitlines()
    assert shown == [
        "- Do a",
        "+ New",
        "- label priority:medium",
        "+ label priority:high",
        "  ## Objective",
        "- Make it work.",
        "+ New.",
    ]


TITLES = {
    "Export contacts as CSV": "Export the contacts as a CSV",
    "Parse quoted paths": "parse quoted path!",
    "Add an index": "Add index",
}
DIFFERENT = {"Export contacts as CSV": "Export contacts as vCard", "Do t1": "Do t2", "Parse": "Render", "A": "The"}


@pytest.mark.parametrize(
    ("title", "other", "is_near"), [*((*t, True) for t in TITLES.items()), *((*t, False) for t in DIFFERENT.items())]
)
def test_titles_are_nearly_the_same_by_their_words(title: str, other: str, is_near: bool) -> None:
    found = list(near_duplicates(read(task("a", title=title)), [0], [issue_of(task("z", title=other), 9)]))
    assert [finding.code for finding in found] == ["near-duplicate"] * is_near


def test_a_refinement_is_not_a_duplicate_of_a_task() -> None:
    assert not list(near_duplicates(read(A), [0], [issue_of({**refinement("a"), "title": A["title"]}, 9)]))


def test_a_thousand_titles_that_differ_in_a_number_are_compared_with_a_thousand() -> None:
    title = "Let the importer of module {} parse quoted paths"
    found = list(similar_titles([title.format(i) for i in range(1000)], [title.format(i + 999) for i in range(1000)]))
    assert [i for i, positions in enumerate(found) if positions] == [999]


@pytest.mark.parametrize("box", ["- [x] a", "> - [x] a", "```\n- [x] a\n```", "text\n1. [X] a"])
def test_digests_of_bodies_stay_as_they_are_in_issues(box: str) -> None:
    opened = box.replace("[x]", "[ ]").replace("[X]", "[ ]")
    assert body_digest(box) == hashlib.sha256(opened.encode()).hexdigest()[:12]
