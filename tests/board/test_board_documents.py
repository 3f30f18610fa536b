"""Where a work package stands, as the overview of a repository shows it."""

from typing import Any

import pytest

from accord.board.documents import place_mission

FRESH: dict[str, Any] = {"status": "fresh", "minutes_since_commit": 5.0}
KNOWN: dict[str, Any] = {
    "wp_id": "WP02", "title": "Write", "error": None, "stale": FRESH, "ready": False, "blocked_by": [],
    "worker": None,
}  # fmt: skip
SILENT: dict[str, Any] = {"status": "stale", "minutes_since_commit": None}
STALE: dict[str, Any] = {"status": "stale", "minutes_since_commit": 90.0}


@pytest.mark.parametrize(
    ("package", "section", "kind", "why", "command"),
    [
        ({"status": "planned", "ready": True}, "ready", "mission", "Nothing blocks it.", "mission start m WP02"),
        ({"status": "planned", "blocked_by": ["WP01"]}, "waiting", "mission", "Blocked by WP01.", ""),
        ({"status": "for_review"}, "waiting", "mission", "Its status is for_review.", ""),
        ({"status": "in_progress", "stale": FRESH}, "running", "mission", "It is in progress.", ""),
        ({"status": "in_progress", "worker": "ada"}, "running", "mission", "in progress, by ada.", ""),
        ({"status": "in_progress", "stale": SILENT}, "needs_you", "stale", "no commit since its start", ""),
        ({"status": "in_progress", "stale": STALE}, "needs_you", "stale", "90 minutes old", "mission stale m"),
        ({"status": "blocked"}, "needs_you", "question", "a person decides", "mission status m"),
    ],
)
def test_a_work_package_is_where_the_next_step_is_someones(
    package: dict[str, Any], section: str, kind: str, why: str, command: str
) -> None:
    (placed,) = place_mission("m", [{**KNOWN, **package}])
    assert (placed[0], placed[1].kind, placed[1].id) == (section, kind, "m WP02")
    assert why in placed[1].why
    assert command in placed[1].command


def test_broken_work_packages_of_a_mission_are_one_entry() -> None:
    unknown, lost = {**KNOWN, "status": None}, {**KNOWN, "status": "planned", "error": "It needs a lane."}
    ((section, entry),) = place_mission("m", [lost, unknown])
    assert (section, entry.kind, entry.id, entry.title) == ("needs_you", "broken", "m", "2 work packages")
    assert (entry.why, entry.command) == ("It needs a lane.", "accord mission check m")
    ((_, alone),) = place_mission("m", [unknown])
    assert alone.why == "The status of WP02 is unknown."


@pytest.mark.parametrize("status", ["done", "canceled"])
def test_a_work_package_that_is_over_is_left_out_though_its_lane_is_gone(status: str) -> None:
    assert list(place_mission("m", [{**KNOWN, "status": status, "error": "It needs a lane."}])) == []
