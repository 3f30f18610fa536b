"""The chain of records: no record is lost or doubled, whatever fails, also when several write at the same time."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta

import pytest
from support.forks import forked
from support.killing import kill_process_at
from support.records import record
from support.rotation import in_turns, killed
from support.stage import START, Stage

from accord.core.clock import SystemClock
from accord.core.errors import AccordError, Stopped
from accord.github.client import GitHub
from accord.github.git_data import Commit
from accord.github.models import Access
from accord.records.chain import REF, append_record, parse_record, read_records
from accord.records.models import PublicRecord
from accord.text.redaction import Redactor
from accord_sandbox.faults import KINDS, Fault

EVER = START - timedelta(days=3650)
SECRET = "correct-horse-battery-staple"


def append(stage: Stage, new: PublicRecord) -> bool:
    return append_record(stage.adapter(), new, Redactor(), stage.clock)


def read(stage: Stage) -> list[PublicRecord]:
    return list(read_records(stage.adapter(), EVER))


def plant(stage: Stage, count: int) -> None:
    """Put records into the chain, an hour apart, with one request each."""
    append(stage, record(1, hours=1))
    github = stage.adapter()
    tip = github.ref(REF)
    assert tip
    tree = next(github.history(tip)).tree
    for number in range(2, count + 1):
        stage.clock.sleep(3600)
        message = f"Record\n\n{record(number, hours=number).as_json()}"
        tip = github.create_commit(message, tree, [tip]).sha
    github.forward_ref(REF, tip)


def versions(stage: Stage) -> list[PublicRecord | None]:
    """All versions in the chain, newest first, without what reading leaves out."""
    github = stage.adapter()
    tip = github.ref(REF)
    return [parse_record(one.message.partition("\n\n")[2]) for one in github.history(tip)] if tip else []


@pytest.mark.slow
def test_records_are_read_in_the_order_in_which_the_runs_ended(stage: Stage) -> None:
    runs = [record(number, hours=number) for number in (1, 2, 3)]
    for each in reversed(runs):
        assert append(stage, each)
    assert read(stage) == runs


def test_the_same_record_is_written_once(stage: Stage) -> None:
    assert append(stage, record())
    assert not append(stage, record())
    assert len(versions(stage)) == 1


@pytest.mark.slow
def test_the_newest_version_of_a_record_counts(stage: Stage) -> None:
    append(stage, record(result={"disposition": "failure"}))
    append(stage, record(2))
    append(stage, record(result={"disposition": "success"}))
    assert len(versions(stage)) == 3
    assert sorted(each.result.disposition for each in read(stage)) == ["success", "success"]


@pytest.mark.slow
def test_reading_ends_at_the_beginning_of_the_period(stage: Stage) -> None:
    plant(stage, 102)
    stage.server.requests.clear()
    found = read_records(stage.adapter(), START + timedelta(hours=99.5))
    assert [each.links.issue for each in found] == [100, 101, 102]
    assert len(stage.server.requests) == 2


@pytest.mark.slow
def test_a_commit_without_a_record_is_skipped(stage: Stage) -> None:
    append(stage, record(1))
    github = stage.adapter()
    tip = github.ref(REF)
    assert tip
    tree = next(github.history(tip)).tree
    github.forward_ref(REF, github.create_commit("Hello\n\n{}", tree, [tip]).sha)
    append(stage, record(2))
    assert len(read(stage)) == 2


def test_secrets_do_not_reach_the_chain(stage: Stage) -> None:
    append_record(stage.adapter(), record(model=SECRET), Redactor((SECRET,)), stage.clock)
    tip = stage.adapter().ref(REF)
    assert tip
    assert SECRET not in next(stage.adapter().history(tip)).message


@pytest.mark.slow
def test_writers_at_the_same_time_lose_no_record(stage: Stage) -> None:
    access = Access(stage.repository, stage.server.token, stage.server.url)
    assert read(stage) == []  # PyGithub is imported by one thread

    def write(number: int) -> bool:
        github = GitHub(access, SystemClock(), lambda *_: None)
        return append_record(github, record(number, hours=number), Redactor(), SystemClock())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(write, range(6)))
    assert [each.links.issue for each in read(stage)] == list(range(6))
    assert len(versions(stage)) == 6


@pytest.mark.slow
def test_a_writer_that_others_always_overtake_stops(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.records.chain.TRIES", 4)
    numbers = iter(range(100, 1000))

    class Overtaken(GitHub):
        """A client during whose every write another writer appends a record."""

        def create_commit(self, message: str, tree: str, parents: Sequence[str]) -> Commit:
            append(stage, record(next(numbers)))
            return super().create_commit(message, tree, parents)

    slow = Overtaken(Access(stage.repository, stage.server.token, stage.server.url), stage.clock, lambda *_: None)
    with pytest.raises(Stopped, match="4 times in a row"):
        append_record(slow, record(1), Redactor(), stage.clock)
    assert len(versions(stage)) == 4


FAULTS = tuple(kind for kind in KINDS if kind != "slow")


@pytest.fixture(params=["the first record", "a later record"])
def begun(request: pytest.FixtureRequest, stage: Stage) -> tuple[Stage, Callable[[], None], int, list[PublicRecord]]:
    """A stage, what returns to the beginning, the requests of one write, and the records after it."""
    is_first = request.param == "the first record"

    def begin() -> None:
        stage.reset()
        if not is_first:
            append(stage, record(1))
        stage.server.requests.clear()

    begin()
    append(stage, record(2, hours=1))
    count = len(stage.server.requests)
    return stage, begin, count, read(stage)


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "times"), [(FAULTS, 1), (("lost-before", "lost-after"), 1000)])
def test_a_fault_at_any_request_neither_loses_nor_doubles_a_record(
    begun: tuple[Stage, Callable[[], None], int, list[PublicRecord]], kinds: tuple[str, ...], times: int
) -> None:
    stage, begin, count, wanted = begun
    for nth in range(1, count + 1):
        for kind in in_turns(nth, kinds):
            begin()
            stage.server.faults.add(Fault(kind, nth=nth, times=times, seconds=30))
            with nullcontext() if times == 1 else pytest.raises(AccordError):
                append(stage, record(2, hours=1))
            stage.server.faults.clear()
            assert append(stage, record(2, hours=1)) <= (times > 1), (kind, nth)
            assert read(stage) == wanted, (kind, nth)
            assert len(versions(stage)) == len(wanted), (kind, nth)


def _append(url: str, token: str, repository: str, text: str) -> None:
    os.setsid()
    new = parse_record(text)
    assert new
    append_record(
        GitHub(Access(repository, token, url), SystemClock(), lambda *_: None), new, Redactor(), SystemClock()
    )


@pytest.mark.slow
def test_a_killed_writer_leaves_nothing_that_the_next_one_cannot_finish(
    begun: tuple[Stage, Callable[[], None], int, list[PublicRecord]],
) -> None:
    stage, begin, count, wanted = begun
    for nth in killed(range(1, count + 1)):
        begin()
        new = record(2, hours=1)
        process = forked(_append, stage.server.url, stage.server.token, stage.repository, new.as_json())
        kill_process_at(nth, process, stage)
        append(stage, new)
        assert read(stage) == wanted, nth
        assert len(versions(stage)) == len(wanted), nth
