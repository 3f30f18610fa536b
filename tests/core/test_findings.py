"""Clocks, errors, JSON pointers and findings."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.clock import SystemClock, timestamp
from accord.core.errors import AccordError, BrokenContract, Refused, Stopped, WrongUsage
from accord.core.findings import Finding, has_errors, pointer, warning, with_lines


def test_timestamps_are_utc_in_whole_seconds() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(moment) == "2026-01-02T01:04:05Z"


def test_the_machines_clock_knows_its_time_zone() -> None:
    clock = SystemClock()
    before = clock.now()
    clock.sleep(0.01)
    assert before.utcoffset() == timedelta()
    assert clock.now() - before >= timedelta(milliseconds=9)


@pytest.mark.parametrize(("kind", "code"), [(BrokenContract, 1), (WrongUsage, 2), (Stopped, 3), (Refused, 4)])
def test_each_error_knows_its_exit_code_and_its_hint(kind: type[AccordError], code: int) -> None:
    error = kind("It broke.", hint="Fix it.")
    assert (error.exit_code, str(error)) == (code, "It broke. Fix it.")


def test_a_hint_begins_a_new_sentence_after_any_message() -> None:
    said = Refused("Git refused the push: Permission denied, fatal: 403", hint="Give the job contents: write.")
    assert str(said) == "Git refused the push: Permission denied, fatal: 403. Give the job contents: write."


@pytest.mark.parametrize(
    ("steps", "path"),
    [((), ""), (("a", 0), "/a/0"), (("a/b",), "/a~1b"), (("~",), "/~0"), (("~1",), "/~01"), (("",), "/")],
)
def test_a_pointer_is_escaped_as_rfc_6901_asks(steps: tuple[str | int, ...], path: str) -> None:
    assert pointer(*steps) == path


@pytest.mark.slow
@given(st.lists(st.text(), max_size=4))
def test_a_pointer_can_be_read_back(steps: list[str]) -> None:
    parts = pointer(*steps).split("/")[1:]
    assert [part.replace("~1", "/").replace("~0", "~") for part in parts] == steps


def test_a_finding_gets_the_line_of_what_is_nearest_above_it() -> None:
    lines = {"": 1, "/a": 2, "/a/0": 3}
    found = [Finding("c", "m", path) for path in ("/a/0/missing/too", "/a/7", "/b", "", "/a/0")]
    found.append(Finding("c", "m", "/a", line=99))
    placed = with_lines(found, lines)
    seen = [(finding.path, finding.line) for finding in placed]
    assert seen == [("/b", 1), ("", 1), ("/a/7", 2), ("/a/0/missing/too", 3), ("/a/0", 3), ("/a", 99)]
    assert with_lines([Finding("c", "m", "/x")], {})[0].line is None


def test_a_warning_stops_nothing_and_an_unknown_line_is_omitted() -> None:
    found = warning("c", "m", "/a")
    assert not has_errors([found])
    assert has_errors([found, Finding("c", "m")])
    assert found.as_json() == {"code": "c", "message": "m", "path": "/a", "severity": "warning"}
