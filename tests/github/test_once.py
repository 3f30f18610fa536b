"""Requests that must not be sent twice: their result is looked for first."""

from datetime import UTC, datetime

import pytest
from support.clocks import ManualClock

from accord.core.errors import Refused, Stopped
from accord.github.client import GitHub
from accord.github.models import Access, AnswerLost
from accord.github.rest import TRIES

START = datetime(2026, 1, 1, tzinfo=UTC)


def client(clock: ManualClock) -> GitHub:
    return GitHub(Access("octo/tools", "token", "http://api.example"), clock, lambda *_: None)


class Post:
    """A request whose first answers are lost; it arrives late, after so many looks."""

    def __init__(self, lost: int, *, arrives: bool) -> None:
        self.lost, self.arrives = lost, arrives
        self.log: list[str] = []

    def send(self) -> str:
        self.log.append("send")
        if self.log.count("send") <= self.lost:
            raise AnswerLost("POST got no answer.")
        return "sent"

    def find(self) -> str | None:
        self.log.append("find")
        return "found" if self.arrives else None


@pytest.mark.parametrize(
    ("lost", "arrives", "result", "log", "seconds"),
    [
        (0, False, "sent", ["send"], 0),
        (1, True, "found", ["send", "find"], 2),
        (1, False, "sent", ["send", "find", "send"], 2),
        (3, False, "sent", ["send", "find"] * 3 + ["send"], 2 + 4 + 8),
    ],
)
def test_a_lost_answer_is_looked_for_before_anything_is_sent_again(
    lost: int, arrives: bool, result: str, log: list[str], seconds: int
) -> None:
    clock, post = ManualClock(START), Post(lost, arrives=arrives)
    assert client(clock).send_once(post.send, post.find) == result
    assert post.log == log
    assert (clock.now() - START).total_seconds() == seconds


def test_after_four_lost_answers_the_run_stops_and_says_how_to_go_on() -> None:
    post = Post(99, arrives=False)
    with pytest.raises(Stopped) as caught:
        client(ManualClock(START)).send_once(post.send, post.find)
    assert post.log == ["send", "find"] * TRIES
    assert "POST got no answer" in caught.value.message
    assert "again" in caught.value.hint


def test_a_refusal_is_not_a_lost_answer() -> None:
    def send() -> str:
        raise Refused("no")

    with pytest.raises(Refused):
        client(ManualClock(START)).send_once(send, lambda: "found")
