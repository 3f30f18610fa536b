"""A review after a review: open findings keep their thread, gone ones are resolved, and people have the last word."""

import base64
from typing import Any

import pytest
from support.reviews import (
    FINDING,
    ITEM,
    NEW,
    PULL,
    answer,
    approve,
    comment,
    hide,
    needs_changes,
    post,
    resolve,
    review_stage,
    reviews,
    snapshot,
    threads,
    warn,
)
from support.stage import LEASE, Stage, codes

from accord.engine.operations import LedgerEntry
from accord.engine.receipts import Outcome, Receipt
from accord_sandbox import graphql
from accord_sandbox.faults import Fault

pytestmark = pytest.mark.slow

STAGE = review_stage
JOB = "accord-sandbox-installation-token"
ONE, TWO, THREE = (
    comment("src/long.txt", line, f"{FINDING} Number {name}.") for line, name in ((1, "a"), (3, "b"), (5, "c"))
)


def push(stage: Stage, text: str, path: str = "src/long.txt") -> str:
    """Change a file of the pull request; return the new head."""
    url = f"/repos/{stage.repository}/contents/{path}"
    file = stage.get(url, ref="accord/1")
    content = base64.b64encode(text.encode()).decode()
    changed = stage.send("PUT", url, message="More", content=content, branch="accord/1", sha=file["sha"])
    return str(changed["commit"]["sha"])


def head(stage: Stage) -> str:
    return str(stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["head"]["sha"])


def counts(receipt: Receipt) -> tuple[int, ...]:
    return tuple(
        receipt.details["review"][name] for name in ("inline", "file_level", "in_body", "kept", "settled", "resolved")
    )


def said(stage: Stage) -> list[list[str]]:
    """The texts of each thread, without markers."""
    return [[one["body"].partition("\n\n<!--")[0] for one in thread["comments"]] for thread in threads(stage)]


def states(stage: Stage) -> list[bool]:
    return [thread["isResolved"] for thread in threads(stage)]


def test_only_new_findings_are_posted_and_gone_ones_are_resolved_with_a_reply(stage: Stage) -> None:
    post(stage, needs_changes(ONE, TWO))
    later = push(stage, NEW + "one more\n")
    before = snapshot(stage)
    rehearsal = post(stage, needs_changes(ONE, THREE), commit=later, is_dry_run=True)
    assert (rehearsal.outcome, rehearsal.writes, snapshot(stage)) == (Outcome.PLANNED, 0, before)
    receipt = post(stage, needs_changes(ONE, THREE), commit=later)
    assert counts(rehearsal) == counts(receipt) == (1, 0, 0, 1, 0, 1)
    assert [(one.op, one.key) for one in rehearsal.operations] == [(one.op, one.key) for one in receipt.operations]
    assert said(stage) == [[ONE["body"]], [TWO["body"], f"No longer found at {later[:7]}."], [THREE["body"]]]
    assert states(stage) == [False, True, False]
    old, new = reviews(stage)
    assert (old["state"], new["state"], new["commit_id"]) == ("DISMISSED", "CHANGES_REQUESTED", later)
    assert "still open" in new["body"]
    assert ONE["body"] not in new["body"]
    before = snapshot(stage)
    again = post(stage, needs_changes(ONE, THREE), commit=later)
    assert (again.outcome, again.writes, again.details) == (Outcome.UNCHANGED, 0, receipt.details)
    assert snapshot(stage) == before


def test_a_finding_has_one_comment_and_one_thread_in_whatever_way_its_place_is_written(stage: Stage) -> None:
    ways = [("src/long.txt", 1), ("b/src/long.txt", 1), ("src/long.txt:1", None), ("./src/long.txt#L1-L3", None)]
    receipt = post(stage, needs_changes(*(comment(path, line) for path, line in ways)))
    assert (counts(receipt), receipt.details["review"]["repeated"]) == ((1, 0, 0, 0, 0, 0), 3)
    again = post(stage, needs_changes(*(comment(path, line) for path, line in ways)))
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    later = push(stage, NEW + "one more\n")
    for path, line in ways[1:]:
        assert counts(post(stage, needs_changes(comment(path, line)), commit=later))[3] == 1, path


def test_a_finding_in_other_words_keeps_its_thread_on_a_moved_and_rewritten_line(stage: Stage) -> None:
    post(stage, needs_changes(TWO))
    later = push(stage, "first\n" + NEW.replace("line three\n", "line 3, again\nand more\n"))
    reworded = {**TWO, "line": 4, "body": TWO["body"].replace("off by one", "it is off by one")}
    receipt = post(stage, needs_changes(reworded), commit=later)
    assert (counts(receipt), states(stage)) == ((0, 0, 0, 1, 0, 0), [False])
    assert said(stage) == [[TWO["body"], reworded["body"]]]


OTHER_FIX = {**ONE, "body": "What: off by one.\nWhy: criterion 4 asks for it.\nFix: count from zero."}


def test_a_finding_that_is_kept_in_new_words_answers_its_thread_with_them_once(stage: Stage) -> None:
    post(stage, needs_changes(ONE, TWO))
    resolve(stage, threads(stage)[1])
    later = push(stage, NEW + "one more\n")
    result = needs_changes(OTHER_FIX, {**TWO, "body": f"{TWO['body']} Still."})
    receipt = post(stage, result, commit=later)
    bodies = [each["body"] for each in result["review"]["comments"]]
    expected = [[ONE["body"], bodies[0]], [TWO["body"], bodies[1]]]
    assert (counts(receipt), said(stage), states(stage)) == ((0, 0, 0, 1, 1, 0), expected, [False, True])
    again = post(stage, result, commit=later)
    assert (again.outcome, again.writes, again.details) == (Outcome.UNCHANGED, 0, receipt.details)
    last = push(stage, NEW + "two more\n")
    assert counts(post(stage, needs_changes(OTHER_FIX, TWO), commit=last)) == (0, 0, 0, 1, 1, 0)
    assert said(stage) == expected
    assert "review-repeated" not in codes(post(stage, needs_changes({**ONE, "body": f"{ONE['body']} Really."}, TWO)))
    assert said(stage)[0][2:] == [f"{ONE['body']} Really."]


def test_new_words_beyond_the_limit_are_in_the_body(stage: Stage) -> None:
    post(stage, needs_changes(ONE, TWO))
    receipt = post(stage, needs_changes(OTHER_FIX, TWO), commit=push(stage, NEW + "one more\n"), max_comments=0)
    assert (counts(receipt), states(stage)) == ((0, 0, 1, 1, 0, 0), [False, False])
    assert OTHER_FIX["body"] in reviews(stage)[-1]["body"]


def test_new_words_that_github_does_not_take_in_their_thread_are_in_the_body(stage: Stage) -> None:
    post(stage, needs_changes(ONE))
    later = push(stage, NEW + "one more\n")

    def begin_review(entry: LedgerEntry, ended: int, total: int) -> None:
        if entry.op == "post-review":  # from now on, GitHub refuses replies
            stage.send("POST", f"/repos/{stage.repository}/pulls/{PULL}/reviews", body="Not submitted")

    receipt = post(stage, needs_changes(OTHER_FIX), commit=later, on_entry=begin_review)
    assert (receipt.outcome, counts(receipt), states(stage)) == (Outcome.APPLIED, (0, 0, 1, 0, 0, 0), [False])
    assert ("anchors-refused" in codes(receipt), "in its thread" in receipt.findings[-1].message) == (True, True)
    assert OTHER_FIX["body"] in reviews(stage)[1]["body"]
    again = post(stage, needs_changes(OTHER_FIX), commit=later)
    assert (again.writes, again.details) == (0, receipt.details)


def test_new_words_are_posted_by_the_run_after_one_that_was_stopped(stage: Stage) -> None:
    post(stage, needs_changes(TWO))
    later = push(stage, "first\n" + NEW.replace("line three\n", "line 3, again\nand more\n"))
    result = needs_changes({**OTHER_FIX, "line": 4})
    stage.server.faults.add(Fault("lost-before", path="/replies$", times=99))
    assert post(stage, result, commit=later).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    receipt = post(stage, result, commit=later)
    assert (receipt.error, counts(receipt)) == (None, (0, 0, 0, 1, 0, 0))
    assert said(stage) == [[TWO["body"], OTHER_FIX["body"]]]


def test_comments_on_files_keep_their_threads_and_those_in_the_body_are_listed_again(stage: Stage) -> None:
    on_file, in_body = comment("src/long.txt", 15), comment("no/such.txt", 1)
    assert counts(post(stage, needs_changes(on_file, in_body))) == (0, 1, 1, 0, 0, 0)
    later = push(stage, NEW + "one more\n")
    receipt = post(stage, needs_changes(on_file, in_body), commit=later)
    assert counts(receipt) == (0, 0, 1, 1, 0, 0)
    assert len(threads(stage)) == 1
    last = push(stage, NEW + "two more\n")
    assert counts(post(stage, approve(), commit=last)) == (0, 0, 0, 0, 0, 1)


@pytest.mark.parametrize("token", ["", JOB])
def test_a_thread_that_a_person_ended_stays_so_and_its_finding_is_in_the_body(stage: Stage, token: str) -> None:
    adapter = stage.adapter(token=token)
    post(stage, needs_changes(ONE, TWO), adapter=adapter)
    first, second = threads(stage)
    resolve(stage, first)
    hide(stage, second)
    later = push(stage, NEW + "one more\n")
    receipt = post(stage, needs_changes(ONE, TWO), commit=later, adapter=adapter)
    assert counts(receipt) == (0, 0, 0, 0, 2, 0)
    assert (states(stage), [len(thread["comments"]) for thread in threads(stage)]) == ([True, False], [1, 1])
    body = reviews(stage)[-1]["body"]
    assert "still found, resolved by `@wanda`" in body
    assert "still found, hidden" in body
    last = push(stage, NEW + "two more\n")
    assert counts(post(stage, approve(), commit=last, adapter=adapter)) == (0, 0, 0, 0, 0, 0)
    assert [len(thread["comments"]) for thread in threads(stage)] == [1, 1]


def test_a_thread_in_which_a_person_wrote_gets_one_reply_and_stays_open(stage: Stage) -> None:
    post(stage, needs_changes(ONE))
    answer(stage, threads(stage)[0], "I see this differently.")
    for number in (1, 2):
        later = push(stage, NEW + "more\n" * number)
        assert counts(post(stage, approve(), commit=later))[-1] == 0
    assert states(stage) == [False]
    assert [text[:19] for text in said(stage)[0][1:]] == ["I see this differen", "No longer found at "]


def test_a_token_that_may_not_resolve_replies_once_and_says_so(stage: Stage) -> None:
    reader = stage.adapter(token="job-token")
    post(stage, needs_changes(ONE), adapter=reader)
    later = push(stage, NEW + "one more\n")
    receipt = post(stage, approve(), commit=later, adapter=reader)
    (finding,) = [found for found in receipt.findings if found.code == "threads-not-resolved"]
    assert "contents: write" in finding.hint
    assert (receipt.outcome, counts(receipt)[-1], states(stage)) == (Outcome.APPLIED, 0, [False])
    assert said(stage)[0][1:] == [f"No longer found at {later[:7]}. The token may not resolve this thread."]
    assert post(stage, approve(), commit=later, adapter=reader).writes == 0
    last = push(stage, NEW + "two more\n")
    post(stage, approve(summary="Fine still."), commit=last, adapter=reader)
    assert len(threads(stage)[0]["comments"]) == 2
    post(stage, approve(summary="Fine at last."), commit=last, adapter=stage.adapter(token=JOB))
    assert (states(stage), len(threads(stage)[0]["comments"])) == ([True], 2)


def test_a_refusal_to_resolve_that_github_did_not_announce_is_a_warning(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stage.adapter(token="job-token")
    post(stage, needs_changes(ONE, TWO), adapter=reader)
    later = push(stage, NEW + "one more\n")
    thread = graphql._thread
    monkeypatch.setattr(graphql, "_thread", lambda *given: {**thread(*given), "viewerCanResolve": True})
    receipt = post(stage, approve(), commit=later, adapter=reader)
    assert (receipt.outcome, "threads-not-resolved" in codes(receipt)) == (Outcome.APPLIED, True)
    assert [entry.status.value for entry in receipt.operations if entry.op == "resolve-thread"] == ["failed"]
    assert [len(texts) for texts in said(stage)] == [2, 2]
    assert post(stage, approve(), commit=later, adapter=reader).writes == 0


def test_a_refused_reply_is_a_warning_and_the_label_still_changes(stage: Stage) -> None:
    post(stage, needs_changes(ONE, TWO))
    labels: list[str] = ["task:implement", "status:review"]
    stage.send("PUT", f"/repos/{stage.repository}/issues/{ITEM}/labels", labels=labels)
    later = push(stage, NEW + "one more\n")

    def begin_review(entry: LedgerEntry, ended: int, total: int) -> None:
        if entry.op == "post-review":  # from now on, GitHub refuses replies
            stage.send("POST", f"/repos/{stage.repository}/pulls/{PULL}/reviews", body="Not submitted")

    receipt = post(stage, approve(), commit=later, on_entry=begin_review)
    assert (receipt.outcome, states(stage)) == (Outcome.APPLIED, [True, True]), receipt.error
    assert [entry.status.value for entry in receipt.operations if entry.op == "reply-to-thread"] == ["failed"] * 2
    assert [found.code for found in receipt.findings].count("thread-not-answered") == 1
    item = stage.get(f"/repos/{stage.repository}/issues/{ITEM}")
    assert "status:approved" in {label["name"] for label in item["labels"]}


def test_a_token_that_graphql_forbids_posts_the_review_and_ends_no_thread(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(stage, needs_changes(ONE, TWO))
    later = push(stage, NEW + "one more\n")

    def forbid(*_: object, **__: object) -> None:
        raise graphql.FieldError("FORBIDDEN", "Resource not accessible by integration")

    with monkeypatch.context() as patched:
        patched.setattr(graphql, "_pull_request", forbid)
        receipt = post(stage, needs_changes(ONE, THREE), commit=later)
    (finding,) = [found for found in receipt.findings if found.code == "threads-not-resolved"]
    assert "Resource not accessible" in finding.message
    assert "pull-requests: read" in finding.hint
    assert (receipt.outcome, counts(receipt)) == (Outcome.APPLIED, (1, 0, 0, 1, 0, 0))
    assert [len(texts) for texts in said(stage)] == [1, 1, 1]


def test_where_github_does_not_tell_what_is_resolved_threads_are_kept_and_none_is_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(stage, needs_changes(ONE, TWO))
    later = push(stage, NEW + "one more\n")
    monkeypatch.setattr("accord.github.graphql.graphql_path", lambda _: "/no-graphql")
    receipt = post(stage, needs_changes(ONE, THREE), commit=later)
    monkeypatch.undo()
    assert (counts(receipt), "threads-not-resolved" in codes(receipt)) == ((1, 0, 0, 1, 0, 0), True)
    assert [len(texts) for texts in said(stage)] == [1, 1, 1]


def test_the_same_findings_at_the_same_head_are_not_posted_again(stage: Stage) -> None:
    first = post(stage, needs_changes(ONE, TWO))
    before = snapshot(stage)
    receipt = post(stage, needs_changes(TWO, ONE, summary="In other words."))
    assert (receipt.outcome, receipt.writes, "review-repeated" in codes(receipt)) == (Outcome.UNCHANGED, 0, True)
    assert receipt.details["review"]["id"] == first.details["review"]["id"]
    assert snapshot(stage) == before


@pytest.mark.parametrize(
    ("result", "other"),
    [
        *(
            pytest.param(approve(warn(path, line)), approve(warn(other, more)), marks=pytest.mark.matrix)
            for path, line, other, more in (
                ("no/such.txt", 1, "no/such.txt", 2),
                ("no/such.txt", None, "no/other.txt", None),
            )
        ),
        (needs_changes(ONE, comment("no/such.txt", 1)), needs_changes(ONE, comment("no/such.txt", 2))),
        (approve(summary="It is right."), approve(summary="It is right, and tested.")),
    ],
)
def test_a_review_with_comments_in_its_body_is_not_posted_again_under_another_run_key(
    stage: Stage, result: dict[str, Any], other: dict[str, Any]
) -> None:
    first = post(stage, result)
    again = post(stage, result, run_key="other")
    assert (again.outcome, again.writes, "review-repeated" in codes(again)) == (Outcome.UNCHANGED, 0, True)
    assert again.details["review"]["id"] == first.details["review"]["id"]
    assert post(stage, other).details["review"]["id"] != first.details["review"]["id"]


def test_a_limit_moves_the_rest_to_the_body_and_the_next_review_posts_them(stage: Stage) -> None:
    result = needs_changes(warn("src/long.txt", 1), ONE, TWO, THREE)
    assert counts(post(stage, result, max_comments=2)) == (2, 0, 2, 0, 0, 0)
    assert said(stage) == [[ONE["body"]], [TWO["body"]]]
    assert THREE["body"] in reviews(stage)[0]["body"]
    later = push(stage, NEW + "one more\n")
    assert counts(post(stage, result, commit=later, max_comments=2)) == (2, 0, 0, 2, 0, 0)


def test_a_thread_that_is_deleted_meanwhile_does_not_stop_the_review(stage: Stage) -> None:
    post(stage, needs_changes(ONE))
    later = push(stage, NEW + "one more\n")

    def delete(entry: LedgerEntry, ended: int, total: int) -> None:
        if entry.op == "post-review":
            with stage.server.database.writing() as connection:
                connection.execute("DELETE FROM review_comments")

    assert post(stage, approve(), commit=later, on_entry=delete).outcome is Outcome.APPLIED


def test_many_threads_cost_no_more_reads_than_few(stage: Stage) -> None:
    costs = []
    for count in (2, 40):
        stage.reset()
        made = [comment("src/long.txt", 1 + n % 6, f"{FINDING} Number {n}.") for n in range(count)]
        post(stage, needs_changes(*made))
        later = push(stage, NEW + "one more\n")
        receipt = post(stage, needs_changes(*made), commit=later)
        assert receipt.details["review"]["kept"] == count
        costs.append((receipt.reads, receipt.writes))
    assert costs[0] == costs[1] == (8, LEASE + 2)


def test_a_lost_answer_to_a_reply_makes_no_second_one(stage: Stage) -> None:
    post(stage, needs_changes(ONE))
    stage.server.faults.add(Fault("lost-after", path="/replies$"))
    receipt = post(stage, approve(), commit=push(stage, NEW + "one more\n"))
    assert (receipt.outcome, len(said(stage)[0])) == (Outcome.APPLIED, 2)
    stage.reset()
    post(stage, needs_changes(ONE))
    stage.server.faults.add(Fault("lost-after", path="/replies$"))
    receipt = post(stage, needs_changes(OTHER_FIX), commit=push(stage, NEW + "one more\n"))
    assert (receipt.outcome, said(stage)) == (Outcome.APPLIED, [[ONE["body"], OTHER_FIX["body"]]])
