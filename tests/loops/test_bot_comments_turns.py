"""Review threads of bots on the local GitHub: one run for all that wait, and one reply to each."""

from typing import Any

import pytest
from support.reviewing_turns import ANSWERS, OPEN, SECRET, answered, begun, ended, reviewed, seen
from support.stage import Stage

from accord.cli.loops_output import result_lines

pytestmark = pytest.mark.slow

STAGE = reviewed
PUSHED = "c" * 40


def done(document: Any = ANSWERS, **more: str) -> Any:
    return answered(document, **{"changes_made": "true", "commit_sha": PUSHED, **more})


def replies(stage: Stage) -> list[str]:
    return [body for body in seen(stage, OPEN)["threads"] if "run=1 -->" in body and "Ignore" not in body]


def ids(stage: Stage) -> list[str]:
    return [thread.id for thread in stage.adapter().review_threads(OPEN)]


def say(stage: Stage, thread: int, body: str, token: str = "") -> None:
    first = stage.adapter().review_threads(OPEN)[thread].comments[0].id
    path = f"/repos/{stage.repository}/pulls/{OPEN}/comments/{first}/replies"
    stage.send("POST", path, token=token, body=body)


def test_one_run_is_given_all_threads_that_wait_and_none_that_a_person_has_answered(stage: Stage) -> None:
    turn = begun(stage, "bot-comments", OPEN)
    assert (turn.decision.reason, turn.should_run) == ("threads-open", True)
    assert turn.state.running.about == (ids(stage)[0], ids(stage)[5])
    appendix = turn.decision.appendix
    assert ("Use a set." in appendix, "Split this file." in appendix) == (True, True)
    for absent in ("Leave it.", "Enough.", "Not listed.", "Done with.", "and push", "### Thread 3"):
        assert absent not in appendix


def test_each_thread_gets_one_reply(stage: Stage) -> None:
    begun(stage, "bot-comments", OPEN)
    turn = ended(stage, "bot-comments", OPEN, done())
    assert (turn.decision.reason, turn.state and turn.state.history[-1].tasks_done) == ("no-threads", 2)
    first, second = replies(stage)
    assert first.startswith(f"Fixed in {PUSHED}.")
    assert second.startswith("Not changed.\n\nIt is short enough.")
    for text in (first, second):
        assert SECRET not in text
        assert "@ada" not in text
        assert "Closes #3" not in text
        assert text.count("<!-- accord:thread-reply") == 1
    assert begun(stage, "bot-comments", OPEN, "2").decision.reason == "no-threads"


def test_a_thread_that_a_person_took_up_meanwhile_is_left_to_that_person(stage: Stage) -> None:
    begun(stage, "bot-comments", OPEN)
    say(stage, 0, "I am on it.", token="accord-sandbox-stranger-token")
    ended(stage, "bot-comments", OPEN, done())
    (only,) = replies(stage)
    assert "It is short enough." in only


def test_numbers_mean_the_threads_that_the_run_was_shown(stage: Stage) -> None:
    begun(stage, "bot-comments", OPEN)
    say(stage, 0, "Never mind, I have looked.")
    second = {"role": "bot-comments", "threads": [{"number": 2, "done": "declined", "what": "No."}]}
    ended(stage, "bot-comments", OPEN, done(second))
    threads = stage.adapter().review_threads(OPEN)
    assert threads[5].comments[-1].body.startswith("Not changed.")


def test_a_run_that_begins_once_more_after_a_crash_is_given_the_threads_as_they_are_now(stage: Stage) -> None:
    begun(stage, "bot-comments", OPEN)
    say(stage, 0, "I am on it.", token="accord-sandbox-stranger-token")
    turn = begun(stage, "bot-comments", OPEN)
    assert (turn.should_run, turn.state.iterations, turn.state.running.about) == (True, 1, (ids(stage)[5],))
    assert "Use a set." not in turn.decision.appendix
    ended(stage, "bot-comments", OPEN, done())
    threads = stage.adapter().review_threads(OPEN)
    assert threads[5].comments[-1].body.startswith("Fixed in")


@pytest.mark.parametrize("document", [None, {"role": "bot-comments", "threads": []}])
def test_a_run_without_answers_replies_nothing_and_is_not_repeated_for_ever(stage: Stage, document: Any) -> None:
    reasons = []
    for run in ("1", "2", "3"):
        begun(stage, "bot-comments", OPEN, run)
        turn = ended(stage, "bot-comments", OPEN, done(document, changes_made="false", commit_sha=""), run)
        reasons.append(turn.decision.reason)
    assert reasons == ["threads-open", "no-progress", "no-progress"]
    assert replies(stage) == []
    assert seen(stage, OPEN)["labels"] == ["agent:codex", "needs-human"]


def test_people_read_that_answers_have_another_shape(stage: Stage) -> None:
    begun(stage, "bot-comments", OPEN)
    turn = ended(stage, "bot-comments", OPEN, done({"answers": []}, changes_made="false", commit_sha=""))
    assert "do not have the required shape" in result_lines(turn)[1]


def test_where_no_bot_is_listed_nothing_is_read(stage: Stage) -> None:
    turn = begun(stage, "bot-comments", OPEN, bots=())
    assert (turn.decision.reason, turn.context.github.requests.read) == ("no-threads", 1)
