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
from accord.missions.log import Log, current_status, read_log
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


@pytest.mark.slow
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


@pytest.mark.parametrize("ids", ["AB", "BA"])
def test_a_reviewer_that_sends_work_back_needs_no_reference_to_win(ids: str) -> None:
    back = event("WP01", "in_review", "in_progress", event_id=ids[0])
    assert status(log(event("WP01", "in_review", "approved", event_id=ids[1]), back)) == "in_progress"


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
    read = {"doing": "in_progress", "done": "done", "": "planned"}
    assert {written: current_status(log(), "WP01", written) for written in read} == read
    with pytest.raises(BrokenContract, match="unknown status `strange`"):
        current_status(log(), "WP01", "strange")


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


AGENT = {"role": "implementer", "tool": "claude", "profile": None, "model": None}
OTHERS: dict[str, dict[str, Any]] = {
    "runtime state": {"kind": "annotation", "wp_id": "WP01", "delta": {"subtasks": {"T1": "done"}}, "actor": AGENT},
    "of the mission": {"event_type": "MissionCreated", "aggregate_id": "01KX", "payload": {"wp_id": "WP02"}},
    "named like a lane": {"event_type": "WPMoved", "wp_id": "WP01", "to_lane": "done", "from_lane": "planned"},
    "a retrospective": {"type": "RetrospectiveCaptured", "wp_id": None, "actor": {"id": "gen", "kind": "runtime"}},
    "an older retrospective": {"event_name": "retrospective.skipped", "payload": {}},
    "a kind of tomorrow": {"kind": "heartbeat", "wp_id": "WP01", "lane": "x"},
    "without a kind": {"wp_id": "WP01", "note": "x"},
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_line_about_something_else_hides_no_status_and_is_noted_once_a_file(case: str) -> None:
    other = {"event_id": "X", "at": "2030-01-01T00:00:00Z", **OTHERS[case]}
    found = log(other, event("WP01", "genesis", "claimed"), other, event("WP02", "genesis", "done"), other)
    assert (status(found), status(found, "WP02"), found.problems) == ("claimed", "done", {})
    assert found.note.startswith("3 lines count for no status in status.events.jsonl: ")
    assert list(found.others.values()) == [[1, 3, 5]]


def test_an_actor_may_be_an_object_and_is_known_by_its_tool() -> None:
    actors = [AGENT, {"role": "reviewer", "tool": None}, {"id": "gen"}, {}, None, "ada"]
    read = [log(event("WP01", None, "claimed", actor=actor)).latest["WP01"].actor for actor in actors]
    assert read == ["claude", "reviewer", "gen", "", "", "ada"]


def test_an_event_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(BrokenContract, match="`proposal` is not a kind of event"):
        log(event("WP01", "claimed", "done", kind="proposal")).check_readable("WP01")


def test_a_damaged_line_only_hides_the_work_package_that_it_names() -> None:
    lines = [json.dumps(event(wp_id, None, "claimed")) for wp_id in ("WP01", "WP02")]
    found = read_log("\n".join([*lines, lines[0][:-9], lines[1]]).encode())
    assert (list(found.problems), status(found, "WP02")) == (["WP01"], "claimed")
    both = read_log("\n".join([*lines, lines[0][:-9] + lines[1], lines[1]]).encode())
    assert list(both.problems) == [""]


def test_a_line_cut_off_by_a_crash_counts_for_nothing_and_one_without_its_break_counts() -> None:
    whole = json.dumps(event("WP01", None, "claimed"))
    for cut in range(1, len(whole)):
        found = read_log(f"{json.dumps(event('WP01', None, 'planned', NOW))}\n{whole[:cut]}".encode())
        assert (status(found), found.torn_at) == ("planned", 2)
        found.check_readable("WP01")
    found = read_log(whole.encode())
    assert (status(found), found.torn_at) == ("claimed", None)
