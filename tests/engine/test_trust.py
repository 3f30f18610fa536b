"""Texts as of a time: tables of the pure decisions."""

from datetime import UTC, datetime, timedelta

import pytest

from accord.engine.trust import refused_change, text_refusal
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
