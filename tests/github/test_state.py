"""Documents kept at a ref: the second of two writers is refused, and a lost answer loses nothing."""

from collections.abc import Callable

import pytest
from support.clocks import ManualClock
from support.stage import START, Stage

from accord.core.errors import Stopped
from accord.github.client import GitHub
from accord.github.models import Access, IssueChange
from accord.github.state import Stored, StoredDocument
from accord_sandbox.server import Fault

SEED = """
repositories: [{name: octo/code, files: {a.txt: "One"}, issues: [{title: "List", body: ""}]}]
"""


class Interrupted(ManualClock):
    """A clock on which others work while a writer waits for the first time."""

    def __init__(self, others: Callable[[], object]) -> None:
        super().__init__(START)
        self.others: Callable[[], object] | None = others

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        others, self.others = self.others, None
        if others:
            others()


class Words(StoredDocument[str]):
    """A list of words, shown as the body of issue 1."""

    def __init__(self, stage: Stage, clock: ManualClock | None = None) -> None:
        access = Access(stage.repository, stage.server.token, stage.server.url)
        self.github = GitHub(access, clock or stage.clock, lambda *_: None)
        super().__init__(self.github, "refs/accord/texts/1", "A text.", "the list of #1")

    def encode(self, value: str) -> str:
        return value

    def decode(self, text: str) -> str:
        return text

    def title(self, value: str) -> str:
        return f"{len(value.split())} words"

    def render(self, stored: Stored[str]) -> None:
        issue = self.github.issue(1)
        assert issue is not None
        if issue.body != stored.value:
            self.github.change_issue(1, IssueChange(stored.value))

    def add(self, word: str, known: Stored[str] | None = None) -> Stored[str]:
        return self.change(known or self.newest() or Stored(""), lambda words: with_word(words, word))


def with_word(words: str, word: str) -> str | None:
    return None if word in words.split() else f"{words} {word}".strip()


def body(stage: Stage) -> str:
    return str(stage.get(f"/repos/{stage.repository}/issues/1")["body"])


def test_versions_follow_each_other_and_the_newest_is_read(stage: Stage) -> None:
    words = Words(stage)
    assert words.newest() is None
    first = words.append(None, "one\n\nmore")
    assert words.newest() == Stored("one\n\nmore", first)
    second = words.append(first, "two")
    assert words.newest() == Stored("two", second)


@pytest.mark.slow
def test_a_writer_with_an_old_version_writes_nothing(stage: Stage) -> None:
    words = Words(stage)
    first = words.append(None, "one")
    second = words.append(first, "two")
    for last in (first, None):
        assert Words(stage).append(last, "other") is None
    assert words.newest() == Stored("two", second)


@pytest.mark.slow
def test_a_write_whose_answer_is_lost_counts_although_others_went_on_meanwhile(stage: Stage) -> None:
    words = Words(stage)
    first = words.append(None, "one")

    def follow() -> None:
        last = words.newest()
        assert last is not None
        words.append(last.link, f"after {last.value}")

    stage.server.faults.add(Fault("lost-after", method="PATCH"))
    assert Words(stage, Interrupted(follow)).append(first, "mine") is not None
    newest = words.newest()
    assert newest is not None
    assert newest.value == "after mine"  # others went on between the lost answer and the second try


def test_a_change_is_stored_and_rendered_and_done_again_writes_nothing(stage: Stage) -> None:
    words = Words(stage)
    first = words.add("one")
    assert (first.value, first.is_shown, body(stage)) == ("one", True, "one")
    writes = words.github.requests.write
    again = words.add("one")
    assert again == first
    assert words.github.requests.write == writes


def test_a_writer_that_knows_an_old_version_decides_again_on_the_newest(stage: Stage) -> None:
    words = Words(stage)
    old = words.add("one")
    words.add("two")
    assert words.add("three", known=old).value == "one two three"
    assert body(stage) == "one two three"


def test_a_copy_that_people_changed_is_rendered_again(stage: Stage) -> None:
    words = Words(stage)
    words.add("one")
    stage.send("PATCH", f"/repos/{stage.repository}/issues/1", body="spoilt")
    words.add("one")
    assert body(stage) == "one"


def test_a_writer_that_others_outrun_while_it_renders_shows_their_version(stage: Stage) -> None:
    class Overtaken(Words):
        def render(self, stored: Stored[str]) -> None:
            super().render(stored)
            if stored.value == "one":
                self.append(stored.link, "one two")

    assert Overtaken(stage).add("one").value == "one two"
    assert body(stage) == "one two"


def test_a_deleted_ref_is_begun_again_with_the_value_that_was_read_last(stage: Stage) -> None:
    words = Words(stage)
    known = words.add("one")
    stage.send("DELETE", f"/repos/{stage.repository}/git/refs/accord/texts/1")
    assert words.add("two", known=known).value == "one two"


@pytest.mark.slow
def test_a_writer_that_others_outrun_every_time_stops(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.github.state.TRIES", 4)
    words = Words(stage)
    words.add("start")
    count = 0

    def decide(value: str) -> str:
        nonlocal count
        count += 1
        newest = words.newest()
        words.append(newest and newest.link, f"{value} {count}")
        return f"{value} mine"

    with pytest.raises(Stopped, match="Other writers changed the list of #1 4 times in a row"):
        words.change(words.newest() or Stored(""), decide)
    assert count == 4


def test_of_two_writers_of_the_same_in_the_same_second_one_writes(stage: Stage) -> None:
    first = Words(stage).append(None, "one")
    written = [Words(stage).append(first, "the same") for _ in range(2)]
    assert [link is not None for link in written] == [True, False]
