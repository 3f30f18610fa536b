"""A reviewer result on GitHub: placements of comments, the verdict, the label, and exactly once."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import requests
from support.reviews import (
    FINDING,
    ITEM,
    LOCKED,
    OWN,
    PULL,
    approve,
    changed,
    comment,
    listed,
    needs_changes,
    post,
    review_stage,
    reviews,
    snapshot,
    status,
    warn,
)

from accord.github.limits import BODY_CHARS
from accord.results.operations import Outcome, Receipt
from accord.results.reviewer import run as review_run
from accord_sandbox.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.stage import Stage

    from accord.github.models import PullFile

INSTALLATION = "accord-sandbox-installation-token"
BOT = "github-actions[bot]"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with review_stage(tmp_path_factory.mktemp("reviews")) as stage:
        yield stage


@pytest.fixture
def stage(shared: Stage) -> Stage:
    shared.server.reset()
    shared.server.faults.clear()
    return shared


def codes(receipt: Receipt) -> set[str]:
    return {finding.code for finding in receipt.findings}


def counts(receipt: Receipt) -> tuple[int, int, int, int]:
    review = receipt.details["review"]
    return review["inline"], review["file_level"], review["in_body"], review["follow_ups"]


def push(stage: Stage, branch: str, path: str, text: str) -> str:
    """Commit a file to a branch over REST; return the new head."""
    content = base64.b64encode(text.encode()).decode()
    answer = stage.send(
        "PUT", f"/repos/{stage.repository}/contents/{path}", message="More", content=content, branch=branch
    )
    return str(answer["commit"]["sha"])


ANCHORS = {
    "an added line": (comment("src/long.txt", 3), "inline"),
    "a context line": (comment("src/long.txt", 5), "inline"),
    "outside of the hunks": (comment("src/long.txt", 15), "file-level"),
    "no line": (comment("src/long.txt"), "file-level"),
    "a new file": (comment("added.txt", 2), "inline"),
    "a removed file": (comment("gone.txt", 2), "inline"),
    "a renamed file": (comment("new name.txt", 1), "file-level"),
    "the old name": (comment("old name.txt", 1), "file-level"),
    "a file that did not change": (comment("untouched.txt", 1), "body"),
    "a file that is not there": (comment("no/such.txt"), "body"),
}


def test_each_comment_lands_where_the_diff_allows_and_only_file_comments_cost_a_request(stage: Stage) -> None:
    receipt = post(stage, needs_changes(*(made for made, _ in ANCHORS.values())))
    places = [posted["place"] for posted in receipt.details["review"]["comments"]]
    assert places == [place for _, place in ANCHORS.values()]
    on_code = listed(stage, f"/pulls/{PULL}/comments")
    assert [c["subject_type"] for c in on_code] == ["line"] * 4 + ["file"] * 4
    assert {(c["path"], c["line"]) for c in on_code if c["subject_type"] == "line"} == {
        (made["path"], made["line"]) for made, place in ANCHORS.values() if place == "inline"
    }
    assert "Line 15**" in on_code[4]["body"], "a comment moved off its line names the line"
    assert reviews(stage)[0]["body"].count(FINDING) == 2
    assert receipt.writes == 1 + 4 + 1, "the review, four comments on files, the label"
    assert [entry.status.value for entry in receipt.operations] == ["done"] * 6


@pytest.mark.parametrize(
    ("result", "state", "label"),
    [
        (approve(), "APPROVED", "status:approved"),
        (needs_changes(comment("added.txt", 1)), "CHANGES_REQUESTED", "status:needs-refinement"),
    ],
)
def test_the_verdict_becomes_state_and_label(stage: Stage, result: dict[str, Any], state: str, label: str) -> None:
    receipt = post(stage, result)
    assert [review["state"] for review in reviews(stage)] == [state]
    assert status(stage) == [label]
    details = receipt.details["review"]
    assert details["verdict_applied"] == details["verdict_requested"] == result["review"]["verdict"]
    assert details["id"] == str(reviews(stage)[0]["id"])


def test_the_same_review_twice_writes_nothing(stage: Stage) -> None:
    result = needs_changes(*(said for said, _ in ANCHORS.values()), warn("untouched.txt", 1, "x" * BODY_CHARS))
    first = post(stage, result)
    before = snapshot(stage)
    again = post(stage, result)
    assert counts(first) == counts(again) == (4, 4, 3, 1)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    assert again.details == first.details
    assert {entry.status.value for entry in again.operations} == {"adopted", "skipped"}
    assert snapshot(stage) == before


@pytest.mark.parametrize("result", [approve(), needs_changes(comment("added.txt", 1))])
def test_ones_own_pull_request_is_commented_and_the_label_still_tells(stage: Stage, result: dict[str, Any]) -> None:
    receipt = post(stage, result, pull=OWN)
    details = receipt.details["review"]
    assert (details["verdict_requested"], details["verdict_applied"]) == (result["review"]["verdict"], "comment")
    assert reviews(stage, OWN)[0]["state"] == "COMMENTED"
    assert "verdict-as-comment" in codes(receipt)
    assert status(stage) in (["status:approved"], ["status:needs-refinement"])
    assert post(stage, result, pull=OWN).writes == 0


def test_a_verdict_that_is_refused_for_a_wrong_identity_is_commented(stage: Stage) -> None:
    """An app without a configured name learns only from GitHub that the pull request is its own."""
    receipt = post(stage, approve(), pull=OWN, adapter=stage.adapter(identity="somebody-else"))
    assert receipt.details["review"]["verdict_applied"] == "comment"
    assert reviews(stage, OWN)[0]["state"] == "COMMENTED"


def test_a_new_review_takes_the_place_of_the_old_ones(stage: Stage) -> None:
    post(stage, needs_changes(comment("added.txt", 1)))
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=["task:implement", "status:review"])
    receipt = post(stage, approve())
    assert [review["state"] for review in reviews(stage)] == ["DISMISSED", "APPROVED"]
    assert [entry.op for entry in receipt.operations] == ["post-review", "dismiss-review", "move-work-item"]
    assert status(stage) == ["status:approved"]
    assert post(stage, approve()).writes == 0


def test_an_old_review_that_is_applied_again_does_not_come_back(stage: Stage) -> None:
    old = needs_changes(comment("added.txt", 1))
    post(stage, old)
    post(stage, approve())
    before = snapshot(stage)
    receipt = post(stage, old)
    assert (receipt.outcome, receipt.writes) == (Outcome.UNCHANGED, 0)
    assert "review-superseded" in codes(receipt)
    assert snapshot(stage) == before


def test_other_peoples_reviews_and_reviews_by_hand_are_left_alone(stage: Stage) -> None:
    path = f"/repos/{stage.repository}/pulls/{PULL}/reviews"
    stage.send("POST", path, event="APPROVE", body="By hand")
    stage.send("POST", path, token="rita-token", event="REQUEST_CHANGES", body="No")
    post(stage, approve())
    assert [review["state"] for review in reviews(stage)] == ["APPROVED", "CHANGES_REQUESTED", "APPROVED"]


def test_a_marker_that_a_stranger_forged_adopts_nothing(stage: Stage) -> None:
    result = approve()
    post(stage, result)
    forged = reviews(stage)[0]["body"]
    stage.server.reset()
    path = f"/repos/{stage.repository}/pulls/{PULL}/reviews"
    stage.send("POST", path, token="rita-token", event="APPROVE", body=forged)
    receipt = post(stage, result)
    assert "foreign-marker" in codes(receipt)
    assert [review["user"]["login"] for review in reviews(stage)] == ["rita", "maintainer"]
    assert post(stage, result).writes == 0


def test_forged_comments_do_not_keep_ours_from_being_posted(stage: Stage) -> None:
    result = needs_changes(comment("added.txt"), comment("no.txt", 1, FINDING + "x" * BODY_CHARS))
    post(stage, result)
    on_file = listed(stage, f"/pulls/{PULL}/comments")[0]["body"]
    follow_up = listed(stage, f"/issues/{PULL}/comments")[0]["body"]
    stage.server.reset()
    stage.server.faults.add(Fault("lost-before", nth=2, times=1000, method="POST"))
    assert post(stage, result).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    head = stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["head"]["sha"]
    forged = {"commit_id": head, "path": "added.txt", "subject_type": "file", "body": on_file}
    answer = requests.post(
        f"{stage.server.url}/repos/{stage.repository}/pulls/{PULL}/comments",
        json=forged,
        headers={"Authorization": "Bearer rita-token"},
        timeout=10,
    )
    assert answer.status_code == 201
    stage.send("POST", f"/repos/{stage.repository}/issues/{PULL}/comments", token="rita-token", body=follow_up)
    assert post(stage, result).outcome is Outcome.APPLIED
    assert len(listed(stage, f"/pulls/{PULL}/comments")) == 2
    assert len(listed(stage, f"/issues/{PULL}/comments")) == 2


def test_the_token_of_a_workflow_finds_its_own_review(stage: Stage) -> None:
    result = needs_changes(comment("added.txt"), comment("src/long.txt", 3))
    first = post(stage, result, adapter=stage.adapter(token=INSTALLATION))
    again = post(stage, result, adapter=stage.adapter(token=INSTALLATION))
    assert (first.outcome, again.outcome, again.writes) == (Outcome.APPLIED, Outcome.UNCHANGED, 0)
    assert reviews(stage)[0]["user"]["login"] == BOT
    other = post(stage, result, adapter=stage.adapter(token=INSTALLATION, identity="review-app[bot]"))
    assert (other.outcome, other.writes) == (Outcome.REFUSED, 0)
    assert other.error is not None
    assert "--identity" in other.error.hint


def test_the_review_is_pinned_to_the_commit_that_was_read(stage: Stage) -> None:
    old = stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["head"]["sha"]
    push(stage, "accord/1", "later.txt", "Later\n")
    receipt = post(stage, needs_changes(comment("added.txt", 1), comment("later.txt", 1)), commit=old)
    assert "head-moved" in codes(receipt)
    assert reviews(stage)[0]["commit_id"] == receipt.details["review"]["commit"] == old
    assert [c["place"] for c in receipt.details["review"]["comments"]] == ["inline", "body"]


def test_a_review_that_was_posted_at_an_older_head_warns(stage: Stage) -> None:
    post(stage, approve())
    push(stage, "accord/1", "later.txt", "Later\n")
    receipt = post(stage, approve())
    assert (receipt.writes, "already-reviewed" in codes(receipt)) == (0, True)
    head = stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["head"]["sha"]
    assert post(stage, approve(), commit=head).outcome is Outcome.APPLIED
    assert [review["state"] for review in reviews(stage)] == ["DISMISSED", "APPROVED"]


def test_an_approval_never_lands_on_a_head_that_was_not_read(stage: Stage) -> None:
    read = stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["head"]["sha"]
    assert post(stage, approve(), commit=read).outcome is Outcome.APPLIED
    push(stage, "accord/1", "later.txt", "Later\n")
    for commit in ("", read):
        again = post(stage, approve(), commit=commit)
        assert (again.writes, again.details["review"]["commit"]) == (0, read)
    assert [review["commit_id"] for review in reviews(stage)] == [read]


def test_an_approval_of_an_older_head_is_posted_there_and_approves_no_work_item(stage: Stage) -> None:
    read = stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["head"]["sha"]
    push(stage, "accord/1", "later.txt", "Later\n")
    receipt = post(stage, approve(), commit=read)
    assert (receipt.outcome, "head-moved" in codes(receipt)) == (Outcome.APPLIED, True)
    assert [(review["commit_id"], review["state"]) for review in reviews(stage)] == [(read, "APPROVED")]
    assert status(stage) == ["status:review"]


def test_a_commit_that_is_not_of_the_pull_request_is_refused(stage: Stage) -> None:
    receipt = post(stage, approve(), commit="0" * 40)
    assert receipt.outcome is Outcome.REFUSED
    assert reviews(stage) == []
    assert status(stage) == ["status:review"]


def see_other_files(monkeypatch: pytest.MonkeyPatch, *files: PullFile) -> None:
    """Let the next runs take files for part of the diff that are not, as when the head moves while they look."""
    gathered = review_run.gather_facts

    def gather(*arguments: Any) -> Any:
        facts = gathered(*arguments)
        seen = {**facts.anchors.files, **{file.path: file for file in files}}
        return replace(facts, anchors=replace(facts.anchors, files=seen))

    monkeypatch.setattr(review_run, "gather_facts", gather)


def test_a_line_that_is_refused_after_all_costs_no_text(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    see_other_files(monkeypatch, changed("added.txt", "@@ -0,0 +1,9 @@" + "\n+x" * 9, "added"))
    result = needs_changes(comment("added.txt", 9), comment("src/long.txt", 3), comment("src/long.txt"))
    receipt = post(stage, result)
    monkeypatch.undo()
    assert (receipt.outcome, counts(receipt)) == (Outcome.APPLIED, (0, 1, 2, 0))
    assert "anchors-refused" in codes(receipt)
    assert reviews(stage)[0]["body"].count(FINDING) == 2
    assert receipt.writes == 4, "refused, without lines, the file, the label"
    assert post(stage, result).writes == 0


def test_a_file_that_is_refused_after_all_is_added_to_the_body(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    see_other_files(monkeypatch, changed("untouched.txt", None))
    result = needs_changes(comment("untouched.txt", 77), comment("src/long.txt"))
    receipt = post(stage, result)
    monkeypatch.undo()
    assert (receipt.outcome, counts(receipt)) == (Outcome.APPLIED, (0, 1, 1, 0))
    assert [entry.op for entry in receipt.operations] == [
        "post-review",
        "comment-on-file",
        "amend-review",
        "move-work-item",
    ]
    assert reviews(stage)[0]["body"].count(FINDING) == 1
    assert post(stage, result).writes == 0


def test_a_body_that_is_too_long_continues_in_comments(stage: Stage) -> None:
    texts = [f"{FINDING} {n} " + "word " * 8_000 for n in range(5)]
    receipt = post(stage, needs_changes(*(comment("no/such.txt", n + 1, text) for n, text in enumerate(texts))))
    assert counts(receipt) == (0, 0, 5, 4)
    bodies = [reviews(stage)[0]["body"], *(c["body"] for c in listed(stage, f"/issues/{PULL}/comments"))]
    assert all(len(body) <= BODY_CHARS for body in bodies)
    assert [sum(text.rstrip() in body for body in bodies) for text in texts] == [1] * 5
    assert reviews(stage)[0]["html_url"] in bodies[1]


def test_a_locked_conversation_is_refused_before_anything_is_written(stage: Stage) -> None:
    receipt = post(stage, approve(), pull=LOCKED, adapter=stage.adapter(token="rita-token"))
    assert (receipt.outcome, receipt.exit_code, receipt.writes) == (Outcome.REFUSED, 4, 0)
    assert receipt.error is not None
    assert "locked" in receipt.error.message
    assert post(stage, approve(), pull=LOCKED).outcome is Outcome.APPLIED, "who may write may speak"


def test_a_person_who_may_not_label_is_refused_before_anything_is_written(stage: Stage) -> None:
    receipt = post(stage, approve(), adapter=stage.adapter(token="rita-token"))
    assert (receipt.outcome, receipt.writes) == (Outcome.REFUSED, 0)
    assert receipt.error is not None
    assert "Triage" in receipt.error.hint


def test_a_token_without_permission_is_refused_with_what_it_lacks(stage: Stage) -> None:
    receipt = post(stage, approve(), adapter=stage.adapter(token="blind-token", identity="blind[bot]"))
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert receipt.error is not None
    assert "pull-requests: write" in receipt.error.hint
    assert receipt.details["review"]["verdict_applied"] is None
    assert [entry.status.value for entry in receipt.operations] == ["failed", "planned"]
    assert snapshot(stage)["reviews"] == []
    assert status(stage) == ["status:review"]


def test_a_pending_review_by_hand_is_not_thrown_away(stage: Stage) -> None:
    pending = stage.send("POST", f"/repos/{stage.repository}/pulls/{PULL}/reviews", body="I am not done")
    receipt = post(stage, approve())
    assert (receipt.outcome, receipt.writes) == (Outcome.REFUSED, 0)
    assert receipt.error is not None
    assert pending["html_url"] in receipt.error.hint


def test_a_pending_review_of_accord_is_cleared_away(stage: Stage) -> None:
    post(stage, approve())
    body = reviews(stage)[0]["body"]
    stage.server.reset()
    stage.send("POST", f"/repos/{stage.repository}/pulls/{PULL}/reviews", body=body)
    receipt = post(stage, approve())
    assert receipt.operations[0].op == "delete-pending-review"
    assert [review["state"] for review in reviews(stage)] == ["APPROVED"]


def test_an_item_that_is_not_in_review_keeps_its_label(stage: Stage) -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=["status:in-progress"])
    receipt = post(stage, needs_changes(comment("added.txt", 1)))
    assert receipt.outcome is Outcome.APPLIED
    assert "status-not-review" in codes(receipt)
    assert status(stage) == ["status:in-progress"]


@pytest.mark.parametrize("labels", [[], ["status:review", "status:ready"], ["status:unheard-of"]])
def test_an_item_with_an_unclear_status_keeps_it(stage: Stage, labels: list[str]) -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=labels)
    receipt = post(stage, approve())
    assert (receipt.outcome, "status-not-review" in codes(receipt)) == (Outcome.APPLIED, True)
    assert sorted(status(stage)) == sorted(labels)


def test_a_pull_request_that_closes_nothing_moves_nothing_unless_told(stage: Stage) -> None:
    receipt = post(stage, approve(), pull=LOCKED)
    assert "work-item-unknown" in codes(receipt)
    assert status(stage) == ["status:review"]
    assert post(stage, approve(), pull=LOCKED, work_item=ITEM).writes == 1
    assert status(stage) == ["status:approved"]


@pytest.mark.parametrize("wrong", [{"pull": 99}, {"pull": ITEM}, {"work_item": 99}, {"work_item": OWN}])
def test_a_number_that_is_not_there_writes_nothing(stage: Stage, wrong: dict[str, int]) -> None:
    receipt = post(stage, approve(), **wrong)
    assert (receipt.outcome, receipt.exit_code, receipt.writes) == (Outcome.REJECTED, 1, 0)
    assert "unknown-reference" in codes(receipt)


def test_a_dry_run_shows_every_operation_and_writes_nothing(stage: Stage) -> None:
    result = needs_changes(*(said for said, _ in ANCHORS.values()))
    before = snapshot(stage)
    rehearsal = post(stage, result, is_dry_run=True)
    assert (rehearsal.outcome, rehearsal.writes) == (Outcome.PLANNED, 0)
    assert snapshot(stage) == before
    real = post(stage, result)
    assert [(e.op, e.key) for e in rehearsal.operations] == [(e.op, e.key) for e in real.operations]
    assert counts(rehearsal) == counts(real)


def test_a_review_of_a_closed_pull_request_is_still_posted(stage: Stage) -> None:
    stage.send("PATCH", f"/repos/{stage.repository}/pulls/{PULL}", state="closed")
    receipt = post(stage, needs_changes(comment("added.txt", 1)))
    assert (receipt.outcome, "pull-closed" in codes(receipt)) == (Outcome.APPLIED, True)
