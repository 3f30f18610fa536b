"""Labels count by who set them, and texts as of a time: tables of the pure decisions."""

from datetime import UTC, datetime, timedelta

import pytest

from accord.engine.trust import (
    RefusedLabel,
    approved_at,
    go_ahead_in,
    names_agent,
    refused_change,
    refused_labels,
    text_refusal,
)
from accord.github.client import LabelChange, LabelEvent
from accord.github.graphql import TextChange

ASKED = datetime(2026, 11, 27, 8, 0, tzinfo=UTC)
BEFORE, AFTER, LATER = (ASKED + timedelta(seconds=seconds) for seconds in (-1, 1, 2))
WRITERS = {"wanda", "accord[bot]"}
OPENED = TextChange("opened", BEFORE, "mallory")


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ([OPENED], None),
        ([OPENED, TextChange("edited", BEFORE, "mallory")], None),
        ([OPENED, TextChange("edited", AFTER, "wanda"), TextChange("renamed", AFTER, "accord[bot]")], None),
        ([OPENED, TextChange("edited", AFTER, "mallory")], 1),
        ([OPENED, TextChange("renamed", AFTER, "mallory")], 1),
        ([OPENED, TextChange("edited", ASKED, "mallory")], 1),
        ([OPENED, TextChange("edited", AFTER, "mallory"), TextChange("edited", LATER, "wanda")], 1),
        ([OPENED, TextChange("edited", LATER, "mallory"), TextChange("renamed", AFTER, "tess")], 2),
        ([OPENED, TextChange("edited", AFTER, "")], 1),
        ([TextChange("opened", ASKED, "mallory")], None),
        ([TextChange("opened", AFTER, "mallory")], 0),
        ([TextChange("opened", AFTER, "wanda")], None),
    ],
)
def test_a_text_is_refused_after_a_later_change_by_someone_who_may_not_write(
    changes: list[TextChange], refused: int | None
) -> None:
    found = refused_change(changes, ASKED, WRITERS.__contains__)
    assert found == (None if refused is None else changes[refused])


def test_a_refusal_names_who_changed_what_and_when() -> None:
    finding = text_refusal(7, TextChange("edited", AFTER, "mallory"), ASKED)
    assert finding.code == "text-changed"
    assert "#7 was edited by `mallory`, who has no write access, at 2026-11-27T08:00:01Z." in finding.message
    assert "an unknown account" in text_refusal(7, TextChange("renamed", AFTER, ""), ASKED).message


def event(label: str, login: str, change: LabelChange = "added", at: datetime = ASKED) -> LabelEvent:
    return LabelEvent(label, change, login, login.endswith("[bot]"), at)


@pytest.mark.parametrize(
    ("label", "events", "by"),
    [
        ("agents:keepalive", [event("agents:keepalive", "wanda")], None),
        ("agents:keepalive", [event("agents:keepalive", "accord[bot]")], None),
        ("agents:keepalive", [event("agents:keepalive", "tess")], "tess"),
        ("Agents:Keepalive", [event("agents:keepalive", "tess")], "tess"),
        ("autofix", [event("autofix", "labeler[bot]")], "labeler[bot]"),
        ("agent:claude", [event("agent:claude", "wanda"), event("agent:claude", "tess")], "tess"),
        ("agent:claude", [event("agent:claude", "tess"), event("agent:claude", "wanda")], None),
        ("agent:claude", [event("agent:claude", "wanda"), event("agent:claude", "tess", "removed")], None),
        ("agents:review", [event("agents:plan", "wanda")], ""),
        ("agents:review", [], ""),
        ("agents:paused", [event("agents:paused", "tess")], None),
        ("agent:retry", [event("agent:retry", "tess")], None),
        ("status:ready", [event("status:ready", "tess")], None),
        ("agents", [], None),
    ],
)
def test_a_label_counts_by_who_set_it_last(label: str, events: list[LabelEvent], by: str | None) -> None:
    expected = () if by is None else (RefusedLabel(label, by),)
    assert refused_labels([label], events, WRITERS.__contains__) == expected
    assert not expected or "(`label-not-allowed`)" in expected[0].text


@pytest.mark.parametrize(
    ("events", "at"),
    [
        ([event("on", "wanda", at=BEFORE), event("on", "tess", at=AFTER)], BEFORE),
        ([event("on", "wanda", at=BEFORE), event("stop", "wanda", "removed", LATER)], LATER),
        ([event("on", "wanda", at=BEFORE), event("stop", "tess", "removed", LATER)], BEFORE),
        ([event("on", "wanda", "removed"), event("stop", "wanda")], None),
        ([], None),
    ],
)
def test_the_last_person_who_let_work_go_on_had_read_the_text(events: list[LabelEvent], at: datetime | None) -> None:
    assert approved_at(events, WRITERS.__contains__, added="on", removed="stop") == at


@pytest.mark.parametrize(
    ("events", "by"),
    [
        ([event("Needs-Human", "wanda", "removed")], "wanda"),
        ([event("needs-human", "wanda", "removed"), event("needs-human", "tess", "removed", LATER)], "wanda"),
        ([event("needs-human", "accord[bot]", "removed"), event("needs-human", "", "removed")], None),
        ([event("needs-human", "wanda", "removed", BEFORE)], None),
        ([event("needs-human", "wanda"), event("agents:paused", "wanda", "removed")], None),
    ],
)
def test_a_person_with_write_access_lets_stopped_work_go_on(events: list[LabelEvent], by: str | None) -> None:
    found = go_ahead_in(events, WRITERS.__contains__, since=ASKED)
    assert (found.login if found else None) == by


@pytest.mark.parametrize(
    ("label", "is_named"),
    [
        ("agent:codex", True), ("Agent:Codex", True), ("agent:", True), ("agent:retry", False), ("AGENT:RETRY", False),
        ("agent:needs-attention", False), ("agents:paused", False), ("agents:plan", False), ("my-agent:x", False),
    ],
)  # fmt: skip
def test_a_label_names_an_agent(label: str, is_named: bool) -> None:
    assert names_agent(label) is is_named
