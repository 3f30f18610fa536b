"""A reviewer result on GitHub: placements of comments, the verdict, the label, and exactly once."""

import base64
from dataclasses import replace
from typing import Any

import pytest
import requests
from support.reviews import (
    CLOSING_PULL,
    FINDING,
    ITEM,
    LOCKED,
    OWN,
    PULL,
    READERS,
    approve,
    changed,
    comment,
    needs_changes,
    post,
    review_stage,
    reviews,
    snapshot,
    status,
    warn,
)
from support.stage import FIRST_LEASE, LEASE, Stage, codes

from accord.engine.operations import LedgerEntry
from accord.engine.receipts import Outcome, Receipt
from accord.github.limits import BODY_CHARS
from accord.github.models import PullFile
from accord.results.reviewer import run as review_run
from accord.results.reviewer.facts import approval_refusal
from accord_sandbox.faults import Fault

INSTALLATION = "accord-sandbox-installation-token"
STAGE = review_stage


def counts(receipt: Receipt) -> tuple[int, int, int, int]:
    review = receipt.details["review"]
    return review["inline"], review["file_level"], review["in_body"], review["follow_ups"]


def head(stage: Stage) -> str:
    return str(stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["head"]["sha"])


def push(stage: Stage, branch: str, path: str, text: str) -> str:
    """Commit a file to a branch over REST; return the new head."""
    content = base64.b64encode(text.encode()).decode()
    path = f"/repos/{stage.repository}/contents/{path}"
    return str(stage.send("PUT", path, message="More", content=content, branch=branch)["commit"]["sha"])


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


@pytest.mark.slow
def test_each_comment_lands_once_where_the_diff_allows_and_only_file_comments_cost_a_request(stage: Stage) -> None:
    result = needs_changes(*(made for made, _ in ANCHORS.values()), warn("untouched.txt", 1, "x" * BODY_CHARS))
    before = snapshot(stage)
    rehearsal = post(stage, result, is_dry_run=True)
    assert (rehearsal.outcome, rehearsal.writes, snapshot(stage)) == (Outcome.PLANNED, 0, before)
    receipt = post(stage, result)
    places = [posted["place"] for posted in receipt.details["review"]["comments"]]
    assert places == [*(place for _, place in ANCHORS.values()), "body"]
    on_code = stage.listed(f"/pulls/{PULL}/comments")
    assert [c["subject_type"] for c in on_code] == ["line"] * 4 + ["file"] * 4
    assert {(c["path"], c["line"]) for c in on_code if c["subject_type"] == "line"} == {
        (made["path"], made["line"]) for made, place in ANCHORS.values() if place == "inline"
    }
    assert "Line 15**" in on_code[4]["body"], "a comment moved off its line names the line"
    texts = [reviews(stage)[0]["body"], *(each["body"] for each in stage.listed(f"/issues/{PULL}/comments"))]
    assert "".join(texts).count(FINDING) == 2
    assert receipt.writes == FIRST_LEASE + 1 + 4 + 1 + 1, "the review, four comments on files, a follow-up, the label"
    assert {entry.status.value for entry in receipt.operations} == {"done"}
    assert [(e.op, e.key) for e in rehearsal.operations] == [(e.op, e.key) for e in receipt.operations]
    assert counts(rehearsal) == counts(receipt) == (4, 4, 3, 1)

    posted = snapshot(stage)
    again = post(stage, result)
    assert (again.outcome, again.writes, again.details) == (Outcome.UNCHANGED, 0, receipt.details)
    assert {entry.status.value for entry in again.operations} == {"adopted", "skipped"}
    assert snapshot(stage) == posted


CHANGES = needs_changes(comment("added.txt", 1))


@pytest.mark.parametrize(
    ("result", "pull", "state", "applied", "label"),
    [
        (approve(), PULL, "APPROVED", "approve", "status:approved"),
        (CHANGES, PULL, "CHANGES_REQUESTED", "needs-changes", "status:needs-refinement"),
        (approve(), OWN, "COMMENTED", "comment", "status:approved"),
        (CHANGES, OWN, "COMMENTED", "comment", "status:needs-refinement"),
    ],
)
def test_the_verdict_becomes_state_and_label(
    stage: Stage, result: dict[str, Any], pull: int, state: str, applied: str, label: str
) -> None:
    receipt = post(stage, result, pull=pull)
    (review,) = reviews(stage, pull)
    details = receipt.details["review"]
    assert (review["state"], status(stage), details["id"]) == (state, [label], str(review["id"]))
    assert (details["verdict_requested"], details["verdict_applied"]) == (result["review"]["verdict"], applied)
    assert ("verdict-as-comment" in codes(receipt)) == (applied == "comment")
    assert post(stage, result, pull=pull).writes == 0
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=["task:implement", "status:review"])
    again = post(stage, result, pull=pull)
    assert (again.writes, status(stage), "status-not-review" in codes(again)) == (0, ["status:review"], True)


def test_a_repeated_review_does_not_move_an_item_that_came_to_review_after_it(stage: Stage) -> None:
    labels = f"/repos/{stage.repository}/issues/{ITEM}/labels"
    stage.send("PUT", labels, labels=["task:implement", "status:in-progress"])
    stage.clock.sleep(60)
    assert "status-not-review" in codes(post(stage, approve()))
    stage.clock.sleep(60)
    stage.send("PUT", labels, labels=["task:implement", "status:review"])
    again = post(stage, approve())
    assert (again.writes, status(stage), "status-not-review" in codes(again)) == (0, ["status:review"], True)


@pytest.mark.parametrize(
    ("result", "pull", "option", "files", "state", "warns"),
    [
        (approve(), PULL, "", {}, "COMMENTED", False),
        (approve(), PULL, "", {".github/accord/config.yml": "version: 1\napprovals: approve\n"}, "APPROVED", False),
        (approve(), PULL, "", {".github/accord.yml": "approvals: approve\n"}, "APPROVED", False),
        (approve(), PULL, "comment", {".github/accord.yml": "approvals: approve\n"}, "COMMENTED", False),
        (CHANGES, PULL, "comment", {}, "CHANGES_REQUESTED", False),
        (approve(), READERS, "approve", {}, "COMMENTED", True),
    ],
)
def test_a_review_approves_only_where_the_repository_and_the_author_allow_it(
    stage: Stage, result: dict[str, Any], pull: int, option: str, files: dict[str, str], state: str, warns: bool
) -> None:
    for path, text in files.items():
        push(stage, "main", path, text)
    receipt = post(stage, result, pull=pull, approvals=option)
    (review,) = reviews(stage, pull)
    assert (review["state"], "verdict-as-comment" in codes(receipt)) == (state, warns), receipt.error
    asked = result["review"]["verdict"]
    assert receipt.details["review"]["verdict_requested"] == asked
    assert receipt.details["review"]["verdict_applied"] == ("comment" if state == "COMMENTED" else asked)
    assert status(stage) == ["status:needs-refinement" if asked == "needs-changes" else "status:approved"]
    assert post(stage, result, pull=pull, approvals=option).writes == 0


def test_a_word_that_is_no_way_to_approve_is_refused_before_the_first_write(stage: Stage) -> None:
    push(stage, "main", ".github/accord.yml", "approvals: always\n")
    receipt = post(stage, approve(), approvals="")
    assert (receipt.outcome, receipt.writes) == (Outcome.REJECTED, 0)
    assert "`approvals: comment` or `approvals: approve`" in receipt.findings[-1].hint


@pytest.mark.parametrize(
    ("is_fork", "may_write", "words"),
    [(False, True, ""), (False, False, "no write access"), (True, True, "a fork"), (True, False, "a fork")],
)
def test_pull_requests_of_forks_and_of_readers_are_not_approved(is_fork: bool, may_write: bool, words: str) -> None:
    refusal = approval_refusal(CLOSING_PULL, is_fork=is_fork, may_write=may_write)
    assert words in refusal
    assert bool(words) == bool(refusal)


def test_a_verdict_that_is_refused_for_a_wrong_identity_is_commented(stage: Stage) -> None:
    """An app without a configured name learns only from GitHub that the pull request is its own."""
    receipt = post(stage, approve(), pull=OWN, adapter=stage.adapter(identity="another-login"))
    assert receipt.details["review"]["verdict_applied"] == "comment"
    assert reviews(stage, OWN)[0]["state"] == "COMMENTED"


@pytest.mark.slow
def test_a_new_review_takes_the_place_of_the_old_ones(stage: Stage) -> None:
    post(stage, CHANGES)
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=["task:implement", "status:review"])
    receipt = post(stage, approve())
    assert [review["state"] for review in reviews(stage)] == ["DISMISSED", "APPROVED"]
    gone = ["resolve-thread", "reply-to-thread"]
    assert [entry.op for entry in receipt.operations] == ["post-review", "dismiss-review", *gone, "move-work-item"]
    assert status(stage) == ["status:approved"]
    assert post(stage, approve()).writes == 0


@pytest.mark.slow
def test_a_review_that_a_person_dismissed_meanwhile_counts_as_dismissed(stage: Stage) -> None:
    post(stage, CHANGES)
    (old,) = reviews(stage)

    def person(entry: LedgerEntry, ended: int, total: int) -> None:
        if entry.op == "post-review":
            path = f"/repos/{stage.repository}/pulls/{PULL}/reviews/{old['id']}/dismissals"
            stage.send("PUT", path, message="By hand")

    receipt = post(stage, approve(), on_entry=person)
    assert (receipt.outcome, "not-dismissed" in codes(receipt)) == (Outcome.APPLIED, False)
    assert [review["state"] for review in reviews(stage)] == ["DISMISSED", "APPROVED"]


@pytest.mark.slow
def test_an_old_review_that_is_applied_again_does_not_come_back(stage: Stage) -> None:
    old = CHANGES
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_forged_comments_do_not_keep_ours_from_being_posted(stage: Stage) -> None:
    result = needs_changes(comment("added.txt"), comment("no.txt", 1, FINDING + "x" * BODY_CHARS))
    post(stage, result)
    on_file = stage.listed(f"/pulls/{PULL}/comments")[0]["body"]
    follow_up = stage.listed(f"/issues/{PULL}/comments")[0]["body"]
    stage.server.reset()
    stage.server.faults.add(Fault("lost-before", nth=2, times=1000, method="POST"))
    assert post(stage, result).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    commit = head(stage)
    forged = {"commit_id": commit, "path": "added.txt", "subject_type": "file", "body": on_file}
    url = f"{stage.server.url}/repos/{stage.repository}/pulls/{PULL}/comments"
    answer = requests.post(url, json=forged, headers={"Authorization": "Bearer rita-token"}, timeout=600)
    assert answer.status_code == 201
    stage.send("POST", f"/repos/{stage.repository}/issues/{PULL}/comments", token="rita-token", body=follow_up)
    assert post(stage, result).outcome is Outcome.APPLIED
    assert len(stage.listed(f"/pulls/{PULL}/comments")) == 2
    assert len(stage.listed(f"/issues/{PULL}/comments")) == 2


@pytest.mark.slow
def test_the_review_is_pinned_to_the_commit_that_was_read(stage: Stage) -> None:
    old = head(stage)
    push(stage, "accord/1", "later.txt", "Later\n")
    receipt = post(stage, needs_changes(comment("added.txt", 1), comment("later.txt", 1)), commit=old)
    assert "head-moved" in codes(receipt)
    assert reviews(stage)[0]["commit_id"] == receipt.details["review"]["commit"] == old
    assert [c["place"] for c in receipt.details["review"]["comments"]] == ["inline", "body"]


@pytest.mark.slow
@pytest.mark.parametrize("names_commit", [False, True])
def test_an_approval_reaches_a_later_head_only_when_that_commit_is_named(stage: Stage, names_commit: bool) -> None:
    read = head(stage)
    post(stage, approve(), commit=read if names_commit else "")
    later = push(stage, "accord/1", "later.txt", "Later\n")
    for commit in ("", read) if names_commit else ("",):
        again = post(stage, approve(), commit=commit)
        assert (again.writes, again.details["review"]["commit"]) == (0, read)
        assert bool(commit) or "already-reviewed" in codes(again)
    assert post(stage, approve(), commit=later).outcome is Outcome.APPLIED
    assert [(one["commit_id"], one["state"]) for one in reviews(stage)] == [(read, "DISMISSED"), (later, "APPROVED")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "state", "moved_to"),
    [
        (approve(), "APPROVED", "review"),
        (needs_changes(comment("added.txt", 1)), "CHANGES_REQUESTED", "needs-refinement"),
    ],
)
def test_an_older_head_is_refused_by_its_review_but_not_approved(
    stage: Stage, result: dict[str, Any], state: str, moved_to: str
) -> None:
    read = head(stage)
    push(stage, "accord/1", "later.txt", "Later\n")
    receipt = post(stage, result, commit=read)
    assert (receipt.outcome, "head-moved" in codes(receipt)) == (Outcome.APPLIED, True)
    assert [(review["commit_id"], review["state"]) for review in reviews(stage)] == [(read, state)]
    assert status(stage) == [f"status:{moved_to}"]


@pytest.mark.slow
def test_findings_that_are_posted_already_move_no_work_item_whose_pull_request_has_a_later_head(stage: Stage) -> None:
    read, result = head(stage), needs_changes(comment("added.txt", 1))
    assert post(stage, result, commit=read).outcome is Outcome.APPLIED
    push(stage, "accord/1", "later.txt", "Later\n")
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=["task:implement", "status:review"])
    for commit in ("", read):
        again = post(stage, result, commit=commit)
        assert (again.outcome, again.writes, status(stage)) == (Outcome.UNCHANGED, 0, ["status:review"])


@pytest.mark.slow
def test_a_commit_that_is_not_of_the_pull_request_is_found_before_the_first_write(stage: Stage) -> None:
    begin = stage.get(f"/repos/{stage.repository}/git/ref/heads/main")["object"]["sha"]
    push(stage, "main", "other.txt", "Other\n")
    other = stage.get(f"/repos/{stage.repository}/git/ref/heads/main")["object"]["sha"]
    for commit in ("0" * 40, other, begin):
        receipt = post(stage, approve(), commit=commit)
        assert (receipt.outcome, receipt.writes, codes(receipt)) == (Outcome.REJECTED, 0, {"unknown-reference"}), commit
        assert f"--commit {head(stage)}" in receipt.findings[-1].hint


def see_other_files(monkeypatch: pytest.MonkeyPatch, *files: PullFile) -> None:
    """Let the next runs take files for part of the diff that are not, as when the head moves while they look."""
    gathered = review_run.gather_facts

    def gather(*arguments: Any) -> Any:
        facts = gathered(*arguments)
        seen = {**facts.anchors.files, **{file.path: file for file in files}}
        return replace(facts, anchors=replace(facts.anchors, files=seen))

    monkeypatch.setattr(review_run, "gather_facts", gather)


NINE_LINES = changed("added.txt", "@@ -0,0 +1,9 @@" + "\n+x" * 9, "added")
ON_LINES = needs_changes(comment("added.txt", 9), comment("src/long.txt", 3), comment("src/long.txt"))
ON_FILES = needs_changes(comment("untouched.txt", 77), comment("src/long.txt"))


@pytest.mark.parametrize(
    ("file", "result", "places", "amended"),
    [
        pytest.param(NINE_LINES, ON_LINES, (0, 1, 2, 0), [], id="a line"),
        pytest.param(changed("untouched.txt", None), ON_FILES, (0, 1, 1, 0), ["amend-review"], id="a file"),
    ],
)
def test_a_comment_that_github_refuses_at_its_place_moves_into_the_body(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    file: PullFile,
    result: dict[str, Any],
    places: tuple[int, int, int, int],
    amended: list[str],
) -> None:
    see_other_files(monkeypatch, file)
    receipt = post(stage, result)
    monkeypatch.undo()
    assert (receipt.outcome, counts(receipt), receipt.writes) == (
        Outcome.APPLIED,
        places,
        FIRST_LEASE + 4 + len(amended),
    )
    assert "anchors-refused" in codes(receipt)
    assert [entry.op for entry in receipt.operations] == ["post-review", "comment-on-file", *amended, "move-work-item"]
    assert reviews(stage)[0]["body"].count(FINDING) == places[2]
    assert post(stage, result).writes == 0


def keep_pending(stage: Stage) -> None:
    stage.send("POST", f"/repos/{stage.repository}/pulls/{PULL}/reviews", body="I am not done")


def post_as_the_job(stage: Stage) -> None:
    post(stage, approve(), adapter=stage.adapter(token=INSTALLATION))


PLANNED = {"pull": LOCKED, "is_dry_run": True}
READER, JOB_AS_OTHER = {"token": "rita-token"}, {"token": INSTALLATION, "identity": "review-app[bot]"}


@pytest.mark.parametrize(
    ("prepare", "access", "options", "said"),
    [
        pytest.param(None, READER, {"pull": LOCKED}, "locked", id="a locked conversation"),
        pytest.param(None, {"token": INSTALLATION}, {"pull": LOCKED}, "jobs and apps", id="a locked one, for a job"),
        pytest.param(None, {"token": INSTALLATION}, PLANNED, "jobs and apps", id="the same in a dry run"),
        pytest.param(None, READER, {}, "Triage", id="a person who may not label"),
        pytest.param(keep_pending, {}, {}, f"/pull/{PULL}#pullrequestreview-", id="a pending review by hand"),
        pytest.param(post_as_the_job, JOB_AS_OTHER, {}, "--identity", id="a review under another identity"),
    ],
)
def test_later_refusals_of_github_are_found_before_the_first_write(
    stage: Stage, prepare: Any, access: dict[str, str], options: dict[str, Any], said: str
) -> None:
    if prepare:
        prepare(stage)
    before = snapshot(stage)
    receipt = post(stage, approve(), adapter=stage.adapter(**access), **options)
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert said in str(receipt.error) + (receipt.error.hint if receipt.error else "")
    assert snapshot(stage) == before


def test_a_locked_conversation_is_open_to_people_who_may_write(stage: Stage) -> None:
    assert post(stage, approve(), pull=LOCKED).outcome is Outcome.APPLIED


def test_a_token_without_permission_is_refused_with_what_it_lacks(stage: Stage) -> None:
    receipt = post(stage, approve(), adapter=stage.adapter(token="blind-token", identity="blind[bot]"))
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert "pull-requests: write" in receipt.error.hint
    assert receipt.details["review"]["verdict_applied"] is None
    assert [entry.status.value for entry in receipt.operations] == ["failed", "planned"]
    assert (snapshot(stage)["reviews"], status(stage)) == ([], ["status:review"])


@pytest.mark.slow
def test_a_pending_review_of_accord_is_cleared_away(stage: Stage) -> None:
    post(stage, approve())
    body = reviews(stage)[0]["body"]
    stage.server.reset()
    stage.send("POST", f"/repos/{stage.repository}/pulls/{PULL}/reviews", body=body)
    receipt = post(stage, approve())
    assert receipt.operations[0].op == "delete-pending-review"
    assert [review["state"] for review in reviews(stage)] == ["APPROVED"]


@pytest.mark.parametrize(
    "labels",
    [
        ["status:in-progress"],
        ["status:review", "status:ready"],
        *(pytest.param(labels, marks=pytest.mark.matrix) for labels in ([], ["status:odd"])),
    ],
)
def test_an_item_that_is_not_clearly_in_review_keeps_its_labels(stage: Stage, labels: list[str]) -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=labels)
    planned = post(stage, approve(), is_dry_run=True)
    assert ("status-not-review" in codes(planned), reviews(stage)) == (True, []), "a warning before it is posted"
    receipt = post(stage, approve())
    assert (receipt.outcome, "status-not-review" in codes(receipt)) == (Outcome.APPLIED, True)
    assert sorted(status(stage)) == sorted(labels)


def test_a_review_of_a_closed_item_says_how_to_reopen_it(stage: Stage) -> None:
    stage.send("PATCH", f"/repos/{stage.repository}/issues/{ITEM}", state="closed")
    found = [
        finding for finding in post(stage, approve(), is_dry_run=True).findings if finding.code == "status-not-review"
    ]
    assert "gh issue reopen" in found[0].hint


def test_a_pull_request_that_closes_nothing_moves_nothing_unless_told(stage: Stage) -> None:
    receipt = post(stage, approve(), pull=LOCKED)
    assert "work-item-unknown" in codes(receipt)
    assert status(stage) == ["status:review"]
    assert post(stage, approve(), pull=LOCKED, work_item=ITEM).writes == LEASE + 1
    assert status(stage) == ["status:approved"]


@pytest.mark.parametrize("wrong", [{"pull": 99}, {"pull": ITEM}, {"work_item": 99}, {"work_item": OWN}])
def test_a_number_that_is_not_there_writes_nothing(stage: Stage, wrong: dict[str, int]) -> None:
    receipt = post(stage, approve(), **wrong)
    assert (receipt.outcome, receipt.exit_code, receipt.writes) == (Outcome.REJECTED, 1, 0)
    assert "unknown-reference" in codes(receipt)


@pytest.mark.parametrize(
    "how", ["closed", "squash", *(pytest.param(how, marks=pytest.mark.matrix) for how in ("merge", "rebase"))]
)
def test_a_review_of_an_ended_pull_request_asks_a_person_before_the_first_write(stage: Stage, how: str) -> None:
    posted, pull = post(stage, approve(), work_item=ITEM), f"/repos/{stage.repository}/pulls/{PULL}"
    assert posted.outcome is Outcome.APPLIED
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=["task:implement", "status:review"])
    if how == "closed":
        stage.send("PATCH", pull, state="closed")
    else:
        stage.send("PUT", f"{pull}/merge", merge_method=how)
    for result in (CHANGES, approve(summary="Other words.")):
        for is_dry_run in (True, False):
            receipt = post(stage, result, is_dry_run=is_dry_run)
            assert (receipt.outcome, receipt.writes, "pull-closed" in codes(receipt)) == (Outcome.REFUSED, 0, True)
            assert ("gh pr reopen" in str(receipt.error)) is (how == "closed")
    again = post(stage, approve(), work_item=ITEM)
    assert (again.outcome, again.writes, status(stage)) == (Outcome.UNCHANGED, 0, ["status:review"])
