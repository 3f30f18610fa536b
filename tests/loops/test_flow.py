"""From an implementor's pull request to the merge: keepalive works on the criteria of its work item."""

import pytest
from support.flows import CRITERIA, ITEM, Flow
from support.reviewing_turns import PASS, answered, begun, ended
from support.reviews import answer, approve, comment, finding, hide, needs_changes, threads
from support.turns import REVIEW, WORKFLOW, did, failed

from accord.loops.questions import KEEPALIVE
from accord.loops.run import LOOPS, pulls_due
from accord.text.hidden import GUARD
from accord.text.outline import tasks

pytestmark = pytest.mark.slow

WORKS, ASKS = CRITERIA[0], CRITERIA[1].replace("@", f"@{GUARD}")


def ticked(flow: Flow) -> list[bool]:
    return [box.is_checked for box in tasks(flow.item["body"])]


def test_the_criteria_of_the_item_are_the_tasks_and_their_ticks_reach_it(flow: Flow) -> None:
    before = flow.item["body"]
    begun = flow.begin("1")
    assert (begun.decision.reason, begun.should_run) == ("tasks-open", True)
    assert f"- [ ] {WORKS}" in begun.decision.appendix
    flow.end(did(WORKS), "1")
    assert f"- [x] {WORKS}" in flow.body
    assert flow.item["body"] == before.replace(f"- [ ] {WORKS}", f"- [x] {WORKS}")
    flow.begin("2")
    flow.end(did(ASKS), "2")
    assert f"- [ ] {ASKS}" not in flow.body
    assert ticked(flow) == [True, True]


def test_a_box_that_a_person_unticked_in_the_item_stays_unticked(flow: Flow) -> None:
    flow.begin("1")
    flow.end(did(WORKS), "1")
    flow.stage.send("PATCH", f"{flow.root}/issues/{ITEM}", body=flow.item["body"].replace("[x]", "[ ]") + "\nMine.")
    flow.begin("2")
    flow.end(did(ASKS), "2")
    assert ticked(flow) == [False, True]
    assert flow.item["body"].endswith("Mine.")


def test_only_a_criterion_is_ticked_in_the_item(flow: Flow) -> None:
    body = f"{flow.body}\n\n- [ ] It is fast"
    flow.stage.send("PATCH", f"{flow.root}/pulls/{flow.number}", body=body)
    flow.stage.send("PATCH", f"{flow.root}/issues/{ITEM}", body=flow.item["body"] + "\n- [ ] It is fast")
    flow.begin("1")
    flow.end(did("It is fast"), "1")
    assert "- [x] It is fast" in flow.body
    assert ticked(flow) == [False, False, False]


def test_changes_that_a_review_requests_are_worked_in_before_the_next_review(flow: Flow) -> None:
    flow.review = REVIEW
    flow.tick_all()
    asked = flow.begin("1")
    assert (asked.outcome, asked.decision.reason) == ("acted", "review-due")
    assert flow.dispatches == [{"pull": "2"}]
    (review,) = [
        run for run in flow.stage.get(f"{flow.root}/actions/runs")["workflow_runs"] if run["path"].endswith(REVIEW)
    ]
    page = f"{flow.stage.server.url}/{flow.stage.repository}/actions/runs/{review['id']}"
    assert (asked.started_run, flow.state.started_run) == (review["id"], review["id"])
    assert any(
        f"**Waiting for a review** (`review-due`). {asked.decision.message} [Started run]({page})" in body
        for body in flow.comments
    )
    again = flow.begin("2")
    assert (again.decision.reason, again.context.github.requests.write) == ("tasks-complete", 0)
    flow.control(f"runs/{review['id']}", status="completed", conclusion="success")

    flow.judge(needs_changes(comment("src/a.py", 1)))
    first = flow.begin("3")
    assert (first.decision.reason, first.should_run) == ("changes-requested", True)
    assert "Some things are wrong." in first.decision.appendix
    assert "src/a.py:1\n\ngithub-actions[bot]: What: off by one." in first.decision.appendix
    flow.end(did(**{"changes-made": "true", "commit-sha": flow.push("fixed")}), "3")
    assert flow.begin("4").decision.reason == "checks-missing"
    flow.check()
    assert flow.begin("5").decision.reason == "review-due"
    assert flow.dispatches == [{"pull": "2"}] * 2
    flow.judge(approve())
    assert flow.begin("6").decision.reason == "complete"


def test_threads_that_people_ended_and_findings_that_are_gone_are_not_worked_in(flow: Flow) -> None:
    stage = flow.stage
    flow.tick_all()
    texts = [finding(name) for name in ("Answered", "Hidden", "Kept", "New")]
    answered, hidden, kept, new = (comment("src/a.py", 1, text) for text in texts)
    flow.judge(needs_changes(answered, hidden, kept))
    first, second, _ = threads(stage)
    answer(stage, first, "Why?", token="writer")
    hide(stage, second, token="writer")
    flow.push("more")
    flow.check()
    flow.judge(needs_changes(hidden, kept, new))
    begun_turn = flow.begin("1")
    assert begun_turn.decision.reason == "changes-requested"
    shown = [text for text in texts if f"github-actions[bot]: {text}" in begun_turn.decision.appendix]
    assert shown == texts[2:]


def test_a_review_of_an_older_head_is_worked_in_too_and_runs_that_change_nothing_ask_a_person(flow: Flow) -> None:
    flow.judge(needs_changes(comment("src/a.py", 1)), token="writer")
    flow.tick_all()
    flow.push("meanwhile")
    flow.check()
    for run, outputs in (("1", failed("ignore")), ("2", did())):
        assert flow.begin(run).decision.reason == "changes-requested"
        flow.end(outputs, run)
    assert flow.begin("3").decision.reason == "tasks-complete", "the next word is the reviewer's"
    flow.judge(needs_changes(comment("src/a.py", 1), summary="Still wrong."), token="writer")
    assert flow.begin("4").should_run
    last = flow.end(did(), "4")
    assert (last.decision.reason, "needs-human" in flow.labels) == ("no-progress", True)


def test_reviews_of_people_without_write_access_and_dismissed_ones_do_not_count(flow: Flow) -> None:
    flow.tick_all()
    path = f"{flow.root}/pulls/2/reviews"
    flow.stage.send("POST", path, token="reader", event="REQUEST_CHANGES", body="I want more.")
    review = flow.stage.send("POST", path, token="writer", event="REQUEST_CHANGES", body="No.")
    flow.stage.send("PUT", f"{path}/{review['id']}/dismissals", message="Never mind.", event="DISMISS")
    assert flow.begin().decision.reason == "tasks-complete"
    flow.stage.send("POST", path, token="reader", event="APPROVE")
    assert flow.begin().decision.reason == "tasks-complete"


def test_a_complete_head_is_announced_once_to_a_person_who_can_merge(flow: Flow) -> None:
    flow.tick_all()
    flow.judge(approve())
    flow.label("x")
    told = flow.begin("1")
    assert (told.outcome, told.decision.reason) == ("acted", "complete")
    (text,) = flow.announcements
    assert text.startswith("@wanda **This pull request can be merged.** All tasks are done, the checks")
    assert "closes #1" in text
    assert "**Ready to be merged**" in next(body for body in flow.comments if "accord:loop " in body)
    again = flow.begin("2")
    assert (again.decision.reason, again.context.github.requests.write) == ("announced", 0)
    assert list(pulls_due(LOOPS["keepalive"], flow.context())) == []
    flow.push("more")
    flow.check()
    assert flow.begin("3").decision.reason == "tasks-complete"
    flow.judge(approve(summary="Fine again."))
    assert list(pulls_due(LOOPS["keepalive"], flow.context())) == [2]
    flow.begin("4")
    assert len(flow.announcements) == 2


@pytest.mark.parametrize("base", ["main", "develop"])
def test_the_announcement_names_the_items_that_the_merge_closes(flow: Flow, base: str) -> None:
    main = flow.stage.get(f"{flow.root}/git/ref/heads/main")["object"]["sha"]
    flow.stage.send("POST", f"{flow.root}/git/refs", ref="refs/heads/develop", sha=main)
    flow.stage.send("PATCH", f"{flow.root}/pulls/2", base=base)
    flow.tick_all()
    flow.judge(approve())
    assert flow.begin("1").decision.reason == "complete"
    assert ("closes #1" in flow.announcements[0]) is (base == "main")


@pytest.mark.parametrize(("assignee", "told"), [("rita", "@maintainer **"), ("", "**This")])
def test_the_announcement_mentions_who_is_assigned_and_can_merge(flow: Flow, assignee: str, told: str) -> None:
    flow.tick_all()
    flow.judge(approve())
    if assignee == "rita":
        flow.stage.send("POST", f"{flow.root}/issues/{ITEM}/assignees", assignees=[assignee])
        assert [each["login"] for each in flow.item["assignees"]] == [assignee]
        flow.stage.send("POST", f"{flow.root}/issues/{ITEM}/labels", labels=["ready"])
    flow.begin()
    assert flow.announcements[0].startswith(told)


def test_the_announcement_mentions_who_turned_keepalive_on_before_who_set_another_label(flow: Flow) -> None:
    flow.tick_all()
    flow.judge(approve())
    flow.unlabel(KEEPALIVE)
    flow.label(KEEPALIVE)
    flow.label("x", token="")
    flow.begin()
    assert flow.announcements[0].startswith("@wanda **")


def test_the_end_of_the_last_task_starts_the_next_turn_which_announces_it(flow: Flow) -> None:
    flow.judge(approve())
    flow.begin("1")
    last = flow.end(did(WORKS, ASKS), "1", workflow=WORKFLOW)
    assert (last.decision.reason, last.started, flow.announcements) == ("complete", WORKFLOW, [])
    assert flow.begin("2").outcome == "acted"


def test_the_merge_closes_the_item_and_the_verifier_takes_its_status_off(flow: Flow) -> None:
    flow.tick_all()
    flow.judge(approve())
    flow.begin("1")
    flow.stage.send("PUT", f"{flow.root}/pulls/2/merge", token="writer", merge_method="squash")
    assert flow.item["state"] == "closed"
    assert "status:approved" in {label["name"] for label in flow.item["labels"]}
    assert begun(flow.stage, "verify", 2, "v").decision.reason == "verify-merged"
    assert {label["name"] for label in flow.item["labels"]} == {"task:implement", "priority:low", "complexity:low"}
    assert ended(flow.stage, "verify", 2, answered(PASS), "v").decision.reason == "verdict-pass"
    assert flow.begin("2").decision.reason == "merged"
