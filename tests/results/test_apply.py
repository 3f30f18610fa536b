"""A planner result on GitHub: its effects, and the reasons that stop it before the first write."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plans import TASK_LABELS, plan, refinement, task, task_body, update
from support.stage import NO_LEASE, Stage, codes, staged

from accord.engine.receipts import Outcome
from accord_sandbox.faults import Fault

STRANGER = "accord-sandbox-stranger-token"
INSTALLATION = "accord-sandbox-installation-token"


def old_issue(stage: Stage, **fields: object) -> int:
    fields = {"title": "Old", "body": task_body(), "labels": list(TASK_LABELS), **fields}
    number: int = stage.send("POST", f"/repos/{stage.repository}/issues", **fields)["number"]
    return number


def one(stage: Stage, number: int) -> dict[str, object]:
    return next(issue for issue in stage.snapshot() if issue["number"] == number)


def test_items_are_made_in_dependency_order_and_reported_in_the_order_of_the_plan(stage: Stage) -> None:
    receipt = stage.apply(plan(task("last", "middle"), task("free"), task("middle", "first"), task("first")))
    ids = [(key, item.id) for key, item in receipt.items.items()]
    assert ids == [("last", "4"), ("free", "1"), ("middle", "3"), ("first", "2")]
    assert [issue["blocked_by"] for issue in stage.snapshot()] == [[], [], [2], [3]]


def test_an_item_carries_title_body_and_labels_as_planned(stage: Stage) -> None:
    stage.apply(plan(task("a", title="Über *all*  \n things"), refinement("b")))
    first, second = stage.snapshot()
    assert first["title"] == "Über *all* things"
    assert str(first["body"]).startswith(task_body(in_scope="- src/a.py").rstrip())
    assert first["labels"] == sorted(TASK_LABELS)
    assert "task:refinement" in second["labels"]


OWNERS = {
    "names that come later": (
        "- src/b.py (owned by #b)\n- src/c.py (Owned by #c)\n- `(owned by #b)`\n\n```\nowned by #b\n```",
        ["b", "c"],
        ["src/b.py (owned by #2)", "src/c.py (Owned by #3)", "- `(owned by #b)`", "```\nowned by #b\n```"],
    ),
    "names in code": (
        "- src/b.py (owned by `#b`)\n- src/c.py (owned by `#b`, `#c d`)\n- src/d.py (owned by **`#b`** and `c`)",
        ["b", "c d"],
        ["src/b.py (owned by `#2`)", "src/c.py (owned by `#2`, `#3`)", "src/d.py (owned by **`#2`** and `c`)"],
    ),
    "words on two lines and in bold": (
        "- src/b.py (owned by\n  #b), src/c.py (owned\n  by `#c`)\n- src/d.py (**owned by** #d, __owned by:__ #b)",
        ["b", "c", "d"],
        ["(owned by\n  #2)", "(owned\n  by `#3`)", "(**owned by** #4, __owned by:__ #2)"],
    ),
    "names with blanks": (
        "- src/b.py (owned by #b b)\n- src/c.py (owned by #the c, d)\n- src/d.py (owned by #b)",
        ["b b", "the c, d", "b"],
        ["src/b.py (owned by #2)", "src/c.py (owned by #3)", "src/d.py (owned by #4)"],
    ),
    "punctuation behind a name": (
        (
            "- src/b.py (owned by #b.)\n- src/c.py: owned by #c: all of it\n- src/d.py (**owned by #d**)\n"
            "- src/e.py, owned by #b. And more\n- src/f.py 'owned by #c'"
        ),
        ["b", "c", "d"],
        ["(owned by #2.)", "owned by #3: all", "(**owned by #4**)", "owned by #2. And", "'owned by #3'"],
    ),
    "names with punctuation": (
        (
            "- src/b.py (owned by #b.)\n- src/c.py (owned by #v1.2.)\n- src/d.py (owned by #the d.)\n"
            "- src/e.py (owned by #e. f.)\n- src/g.py (owned by #the g, h.)"
        ),
        ["b.", "v1.2", "the d", "e. f.", "the g, h"],
        ["(owned by #2)", "(owned by #3.)", "(owned by #4.)", "(owned by #5)", "(owned by #6.)"],
    ),
    "lists and marks": (
        (
            "- src/b.py (owned by #b, #c)\n- src/c.py (owned by #b and #c)\n- src/d.py (owned by: #the d, and #b)\n"
            "- src/e.py (owned by **#b**, **#c**)\n- src/g.py (owned by [#b](x) and [#c](y)), see #c"
        ),
        ["b", "c", "the d"],
        [
            "(owned by #2, #3)",
            "(owned by #2 and #3)",
            "(owned by: #4, and #2)",
            "(owned by **#2**, **#3**)",
            "(owned by [#2](x) and [#3](y)), see #c",
        ],
    ),
    "one name that begins like another": (
        "- src/b.py (owned by #b.)\n- src/c.py (owned by #b.c)\n- src/d.py (owned by #b..)",
        ["b", "b.", "b.c"],
        ["src/b.py (owned by #3)", "src/c.py (owned by #4)", "src/d.py (owned by #3.)"],
    ),
}


@pytest.mark.parametrize(("scope", "others", "shown"), OWNERS.values(), ids=OWNERS)
def test_owners_named_by_temp_id_become_numbers(stage: Stage, scope: str, others: list[str], shown: list[str]) -> None:
    work = plan(task("a", out_of_scope=scope), *(task(name, out_of_scope="- a (owned by #a)") for name in others))
    stage.apply(work)
    assert [text for text in shown if text not in str(one(stage, 1)["body"])] == []
    assert "owned by #1" in str(one(stage, 2)["body"])
    assert stage.apply(work).writes == 0


def test_a_dropped_item_is_closed_as_not_planned_without_a_status(stage: Stage) -> None:
    number = old_issue(stage)
    receipt = stage.apply(plan(close=[f"#{number}"]))
    issue = one(stage, number)
    assert (receipt.outcome, receipt.writes) == (Outcome.APPLIED, NO_LEASE + 1)
    assert (issue["state"], issue["reason"]) == ("closed", "not_planned")
    assert issue["labels"] == ["complexity:low", "priority:medium", "task:implement"]
    again = stage.apply(plan(close=[f"#{number}"]))
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)


@pytest.mark.parametrize(
    ("label", "hint"),
    [
        ("status:review", "Remove it, or run `accord items move {} --to review`."),
        ("status:approved", "Remove it."),
    ],
)
def test_an_update_changes_body_and_labels_but_neither_type_nor_status(stage: Stage, label: str, hint: str) -> None:
    number = old_issue(stage, labels=["task:implement", "status:in-progress", "priority:low", "web"])
    change = update(number, body=task_body(objective="New."), labels=[label, "priority:high", "complexity:high"])
    receipt = stage.apply(plan(update=[change]))
    issue = one(stage, number)
    assert receipt.writes == NO_LEASE + 1
    (ignored,) = (each for each in receipt.findings if each.code == "label-ignored")
    assert ignored.hint == hint.format(number)
    lacking = [each.message for each in receipt.findings if each.code == "label-not-there"]
    assert not any(label in message for message in lacking), "a label that is left out is not created"
    assert issue["labels"] == ["complexity:high", "priority:high", "status:in-progress", "task:implement"]
    assert "New." in str(issue["body"])


@pytest.mark.parametrize("given", [{"body": task_body(objective="New.")}, {"labels": ["priority:high"]}])
def test_null_in_an_update_changes_nothing(stage: Stage, given: dict[str, Any]) -> None:
    labels = [*TASK_LABELS, "area: web"]
    number = old_issue(stage, labels=labels)
    stage.apply(plan(update=[update(number, **given)]))
    issue = one(stage, number)
    assert str(issue["body"]).startswith(given.get("body", task_body()).rstrip())
    assert "labels" in given or issue["labels"] == sorted(labels)
    assert ("priority:high" in issue["labels"]) == ("labels" in given)  # type: ignore[operator]
    assert issue["title"] == "Old"


def test_a_second_run_does_not_undo_a_persons_changes(stage: Stage) -> None:
    result = plan(task("a"))
    stage.apply(result)
    change = plan(update=[update(1, body=task_body(objective="Second."), labels=["priority:high"])])
    stage.apply(change)
    body = str(one(stage, 1)["body"]).replace("Second.", "A person's.")
    stage.send("PATCH", f"/repos/{stage.repository}/issues/1", body=body, title="By hand", labels=["priority:low"])
    before = stage.snapshot()
    assert stage.apply(change).outcome is Outcome.UNCHANGED
    assert stage.apply(result).outcome is Outcome.UNCHANGED
    assert stage.snapshot() == before


def test_an_item_that_was_closed_or_edited_is_adopted_not_made_again(stage: Stage) -> None:
    result = plan(task("a"), task("b", "a"))
    stage.apply(result)
    path = f"/repos/{stage.repository}/issues/1"
    stage.send("PATCH", path, state="closed", body="Rewritten.\r\n\r\n" + stage.get(path)["body"] + "\r\n\r\nPS")
    receipt = stage.apply(result)
    assert (receipt.outcome, receipt.writes) == (Outcome.UNCHANGED, 0)
    assert [entry.status.value for entry in receipt.operations] == ["adopted", "adopted", "skipped"]


def test_a_dependency_that_is_missing_is_the_only_thing_sent(stage: Stage) -> None:
    result = plan(task("a"), task("b"), task("c", "a", "b"))
    stage.apply(result)
    blocker = stage.get(f"/repos/{stage.repository}/issues/1")["id"]
    stage.send("DELETE", f"/repos/{stage.repository}/issues/3/dependencies/blocked_by/{blocker}")
    receipt = stage.apply(result)
    assert (receipt.outcome, receipt.writes) == (Outcome.APPLIED, NO_LEASE + 1)
    assert one(stage, 3)["blocked_by"] == [1, 2]


SEEDED = """
tokens:
- {token: reader-token, login: 'reader[bot]', kind: installation, permissions: {issues: read}}
repositories:
- name: accord/sandbox
  issues: [{title: An issue, body: Text}, {title: A pull request, body: Text, pull_request: true}]
- {name: accord/archived, archived: true}
- {name: accord/quiet, has_issues: false}
"""


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("seeded"), seed=SEEDED) as stage:
        yield stage


UNKNOWN = {
    "a blocker that is not there": plan(task("a", "#99")),
    "a close that is not there": plan(task("a"), close=["99"]),
    "an update that is not there": plan(task("a"), update=[update(99, labels=["priority:low"])]),
    "a pull request as blocker": plan(task("a", "#2")),
    "a pull request to close": plan(task("a"), close=["2"]),
    "an owner that does not exist": plan(task("a", out_of_scope="- src/b.py (owned by #1, #31)")),
    "a pull request as owner": plan(task("a", out_of_scope="- src/b.py (owned by #2)")),
    "a number beyond all bounds": plan(task("a", "999999999999999999")),
}


@pytest.mark.parametrize("result", UNKNOWN.values(), ids=UNKNOWN)
def test_a_reference_that_does_not_hold_writes_nothing_at_all(seeded: Stage, result: dict[str, object]) -> None:
    receipt = seeded.apply(result)
    assert (receipt.outcome, receipt.exit_code, receipt.writes) == (Outcome.REJECTED, 1, 0)
    assert "unknown-reference" in codes(receipt)
    assert len(seeded.issues()) == 2


READER = {"token": "reader-token", "identity": "reader[bot]"}


@pytest.mark.parametrize(
    ("access", "said", "statuses"),
    [
        pytest.param({"repo": "accord/archived"}, "archived", [], id="an archived repository"),
        pytest.param({"repo": "accord/quiet"}, "Issues are disabled", [], id="a repository without issues"),
        pytest.param({"repo": "accord/absent"}, "404", [], id="a repository that is not there"),
        pytest.param({"token": STRANGER}, "Triage", [], id="a person without a role"),
        pytest.param(READER, "issues: write", ["failed", "planned"], id="a token that only reads"),
    ],
)
def test_without_access_a_plan_is_refused_with_what_is_missing(
    seeded: Stage, access: dict[str, str], said: str, statuses: list[str]
) -> None:
    receipt = seeded.apply(plan(task("x"), task("y")), adapter=seeded.adapter(**access))
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert receipt.error.hint
    assert said in f"{receipt.error.message} {receipt.error.hint}"
    assert [entry.status.value for entry in receipt.operations] == statuses
    assert len(seeded.issues()) == 2


def test_closing_or_updating_what_is_closed_already_writes_nothing(stage: Stage) -> None:
    number = old_issue(stage)
    stage.send("PATCH", f"/repos/{stage.repository}/issues/{number}", state="closed", state_reason="not_planned")
    for result in (plan(task("a"), close=[str(number)]), plan(task("a"), update=[update(number, labels=["x"])])):
        receipt = stage.apply(result)
        assert (receipt.outcome, receipt.writes) == (Outcome.REJECTED, 0)
        assert "already-closed" in codes(receipt)


def test_a_dry_run_shows_every_operation_and_writes_nothing(stage: Stage) -> None:
    number = old_issue(stage)
    result = plan(task("a"), task("b", "a", f"#{number}"), update=[update(number, labels=["priority:high"])])
    rehearsal = stage.apply(result, is_dry_run=True)
    assert (rehearsal.outcome, rehearsal.writes) == (Outcome.PLANNED, 0)
    assert len(stage.issues()) == 1
    real = stage.apply(result)
    assert [(entry.op, entry.key) for entry in rehearsal.operations] == [(e.op, e.key) for e in real.operations]


def test_the_same_plan_under_another_run_key_is_another_run(stage: Stage) -> None:
    stage.apply(plan(task("a")), run_key="first")
    stage.apply(plan(task("a")), run_key="second")
    assert stage.apply(plan(task("a")), run_key="first").outcome is Outcome.UNCHANGED
    assert len(stage.issues()) == 2


def test_a_marker_that_a_stranger_forged_adopts_nothing(stage: Stage) -> None:
    result = plan(task("a"))
    stage.apply(result)
    forged = stage.get(f"/repos/{stage.repository}/issues/1")["body"]
    stage.reset()
    stage.send("POST", f"/repos/{stage.repository}/issues", token=STRANGER, title="Mine", body=forged)
    receipt = stage.apply(result)
    assert receipt.items["a"].id == "2"
    assert "foreign-marker" in codes(receipt)


def test_a_stranger_who_forges_the_marker_of_a_closed_item_does_not_stop_its_close(stage: Stage) -> None:
    stage.apply(plan(task("a")), run_key="k")
    stage.apply(plan(close=["1"]), run_key="k")
    forged = stage.get(f"/repos/{stage.repository}/issues/1")["body"]
    stage.send("POST", f"/repos/{stage.repository}/issues", token=STRANGER, title="Mine", body=forged)
    stage.apply(plan(close=["2"]), run_key="k", reaches_any_issue=True)
    assert stage.get(f"/repos/{stage.repository}/issues/2")["state"] == "closed"


def test_a_run_under_another_identity_names_the_author_of_items_that_it_did_not_adopt(stage: Stage) -> None:
    result = plan(task("a"))
    stage.apply(result, adapter=stage.adapter(token=INSTALLATION))
    receipt = stage.apply(result, is_dry_run=True)
    (hint,) = (finding.hint for finding in receipt.findings if "--identity 'github-actions[bot]'" in finding.text)
    assert hint.startswith("Leave it as it is. Only if")
    adopting = stage.apply(result, adapter=stage.adapter(identity="github-actions[bot]"))
    assert adopting.outcome is Outcome.UNCHANGED


def test_another_apps_token_is_refused_before_it_duplicates_its_own_items(stage: Stage) -> None:
    result = plan(task("a"))
    stage.apply(result, adapter=stage.adapter(token=INSTALLATION))
    other = stage.adapter(token=INSTALLATION, identity="planner-app[bot]")
    receipt = stage.apply(result, adapter=other)
    assert (receipt.outcome, receipt.writes) == (Outcome.REFUSED, 0)
    assert "--identity" in receipt.error.hint


def test_without_native_dependencies_a_visible_list_carries_them_through_updates(tmp_path: Path) -> None:
    result = plan(task("a"), task("b"), task("c", "a", "b"))
    with staged(tmp_path, native_dependencies=False) as stage:
        first = stage.apply(result)
        assert first.outcome is Outcome.APPLIED
        body = stage.get(f"/repos/{stage.repository}/issues/3")["body"]
        assert "Blocked by #1\nBlocked by #2\n" in body
        stage.apply(plan(update=[update(3, body=task_body(objective="New."))]))
        body = stage.get(f"/repos/{stage.repository}/issues/3")["body"]
        assert "New." in body
        assert "Blocked by #1\nBlocked by #2\n" in body
        again = stage.apply(result)
        assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)


def test_an_app_that_writes_under_another_name_than_was_expected_stops_at_the_first_item(stage: Stage) -> None:
    wrong = stage.adapter(token=INSTALLATION, identity="planner-app[bot]")
    result = plan(task("a"), task("b"))
    receipt = stage.apply(result, adapter=wrong)
    assert (receipt.outcome, len(stage.issues())) == (Outcome.REFUSED, 1)
    assert "--identity 'github-actions[bot]'" in receipt.error.hint
    right = stage.apply(result, adapter=stage.adapter(token=INSTALLATION))
    assert (right.outcome, len(stage.issues())) == (Outcome.APPLIED, 2)


def test_a_run_goes_on_when_a_person_closed_the_item_that_it_was_to_close(stage: Stage) -> None:
    number = old_issue(stage)
    result = plan(task("a"), close=[str(number)])
    stage.server.faults.add(Fault("lost-before", method="PATCH", times=100))
    assert stage.apply(result).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    stage.send("PATCH", f"/repos/{stage.repository}/issues/{number}", state="closed")
    receipt = stage.apply(result)
    assert (receipt.outcome, receipt.writes) == (Outcome.UNCHANGED, 0)
    assert "already-closed" in codes(receipt)


@pytest.mark.slow
def test_text_that_people_write_while_a_long_run_waits_is_kept(stage: Stage) -> None:
    number = old_issue(stage)
    path = f"/repos/{stage.repository}/issues/{number}"
    result = plan(task("a"), update=[update(number, labels=["priority:high"])])
    edits = iter([{"body": task_body(criteria="- [x] Ticked meanwhile"), "labels": ["status:ready", "security"]}])

    def person(*_: object) -> None:
        for edit in edits:
            stage.send("PATCH", path, **edit)
            stage.clock.sleep(31)

    assert stage.apply(result, on_entry=person).outcome is Outcome.APPLIED
    issue = one(stage, number)
    assert "Ticked meanwhile" in str(issue["body"])
    assert issue["labels"] == ["priority:high", "status:ready"]


@pytest.mark.parametrize("place", ["tempID", "label", "label of an update"])
def test_a_secret_in_a_name_stops_the_plan(stage: Stage, place: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    number = old_issue(stage)
    labels = [*TASK_LABELS, secret]
    results = {
        "tempID": plan(task(secret, in_scope="- src/a.py")),
        "label": plan({**task("a"), "labels": labels}),
        "label of an update": plan(update=[update(number, labels=[secret])]),
    }
    receipt = stage.apply(results[place])
    assert (receipt.outcome, receipt.writes) == (Outcome.REJECTED, 0)
    assert "secret-in-name" in codes(receipt)


def test_an_update_keeps_to_the_template_of_what_the_item_is(stage: Stage) -> None:
    number = old_issue(stage, labels=["task:refinement", "status:pending", "priority:high"])
    receipt = stage.apply(plan(update=[update(number, body=task_body(), labels=["priority:low", "complexity:low"])]))
    assert receipt.outcome is Outcome.REJECTED
    assert codes(receipt) >= {"section-missing", "label-forbidden"}
