"""The log: its meaning does not depend on the order of its lines, and a crash loses no reported event."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.missions import NOW, event

from accord.core.errors import BrokenContract
from accord.missions.load import Log, current_status, read_log
from accord.missions.models import STATUSES


def log(*events: Any) -> Log:
    return read_log("".join(f"{json.dumps(each)}\n" for each in events).encode())


def status(found: Log, wp_id: str = "WP01") -> str:
    return current_status(found, wp_id, "")


EVENTS = st.builds(
    lambda number, wp_id, source, target, minute, ref: event(
        wp_id, source, target, NOW + timedelta(minutes=minute), event_id=f"E{number}", review_ref=ref
    ),
    st.integers(0, 15),
    st.sampled_from(["WP01", "WP02"]),
    st.sampled_from(STATUSES),
    st.sampled_from(STATUSES),
    st.integers(0, 3),
    st.sampled_from([None, "PR 1"]),
)


@given(st.lists(EVENTS, max_size=12), st.randoms())
def test_the_order_of_the_lines_and_repeated_lines_change_nothing(events: list[Any], chance: Any) -> None:
    shuffled = [*events, *events[:3]]
    chance.shuffle(shuffled)
    assert log(*events).latest == log(*shuffled).latest


@pytest.mark.parametrize("ids", [("A", "B"), ("B", "A")])
@pytest.mark.parametrize(
    "forward", [("for_review", "approved"), ("in_review", "approved"), ("in_progress", "for_review")]
)
def test_a_rollback_beats_other_events_of_the_same_time(ids: Sequence[str], forward: tuple[str, str]) -> None:
    back = event("WP01", "for_review", "in_progress", event_id=ids[0], review_ref="PR 1")
    on = event("WP01", *forward, event_id=ids[1])
    goes_on = forward[0] == "in_progress" and ids == ("A", "B")
    assert status(log(on, back)) == ("for_review" if goes_on else "in_progress")


def test_only_a_review_is_a_rollback_and_later_events_in_any_zone_beat_it() -> None:
    back = event("WP01", "for_review", "in_progress", event_id="A")
    assert status(log(back, event("WP01", "for_review", "approved", event_id="B"))) == "approved"
    later = {**event("WP01", "for_review", "approved", event_id="A"), "at": "2026-05-04T14:00:01+02:00"}
    assert status(log(later, {**back, "event_id": "Z", "review_ref": "PR 1"})) == "approved"


def test_one_id_counts_once_and_the_old_word_is_read() -> None:
    first = event("WP01", "planned", "doing", event_id="A", at=NOW)
    again = event("WP01", "planned", "approved", event_id="A", at=NOW + timedelta(hours=1))
    assert len(log(first, again).events) == 1
    assert status(log(first)) == "in_progress"


def test_without_an_event_the_status_of_the_file_counts() -> None:
    read = {"doing": "in_progress", "done": "done", "": "planned", "strange": "planned"}
    assert {written: current_status(log(), "WP01", written) for written in read} == read


BAD_LINES = ["nonsense", "[]", "{", json.dumps({**event("WP01", None, "done"), "to_lane": "merged"})]
BAD_LINES += [json.dumps({**event("WP01", None, "done"), "at": at}) for at in ("2026-05-04T12:00:00", 5, "soon")]


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_line_that_cannot_be_read_is_an_error_with_its_number(line: str) -> None:
    found = read_log(f"{json.dumps(event('WP01', None, 'planned'))}\n{line}\n".encode())
    with pytest.raises(BrokenContract, match="line 2") as broken:
        found.check_readable("WP01")
    assert [finding.code for finding in broken.value.findings] == ["event-invalid"]


def test_broken_lines_only_affect_their_work_package() -> None:
    bad = {**event("WP02", None, "done"), "to_lane": "merged"}
    found = log(event("WP01", None, "claimed"), bad, {"type": "MissionCreated"})
    found.check_readable("WP01")
    assert status(found) == "claimed"
    with pytest.raises(BrokenContract):
        found.check_readable("WP02")


def test_a_line_cut_off_by_a_crash_counts_for_nothing_and_one_without_its_break_counts() -> None:
    whole = json.dumps(event("WP01", None, "claimed"))
    for cut in range(1, len(whole)):
        found = read_log(f"{json.dumps(event('WP01', None, 'planned', NOW))}\n{whole[:cut]}".encode())
        assert (status(found), found.torn_at) == ("planned", 2)
        found.check_readable("WP01")
    found = read_log(whole.encode())
    assert (status(found), found.torn_at) == ("claimed", None)
