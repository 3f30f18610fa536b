"""A suggestion is made only for a slip, so that following it keeps the meaning."""

import pytest

from accord.core.suggest import did_you_mean

KNOWN = ("priority:high", "priority:low", "needs-changes", "approve", "T-001", "T-002", "tempID", "spec-contradiction")
KNOWN += ("none", "red", "requestedAt")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("priority:hgih", "priority:high"), ("priority:hig", "priority:high"), ("PRIORITY:LOW", "priority:low"),
        ("priority:loww", "priority:low"), ("needs_changes", "needs-changes"), ("needs change", "needs-changes"),
        ("aprove", "approve"), ("temp_id", "tempID"), ("T001", "T-001"), ("spec-contradicton", "spec-contradiction"),
        ("spec-contradcitoin", "spec-contradiction"), ("non", "none"), ("noen", "none"), ("erd", "red"),
        ("requetsed_at", "requestedAt"),
    ],
)  # fmt: skip
def test_a_slip_is_recognised(word: str, meant: str) -> None:
    assert did_you_mean(word, KNOWN) == f"Did you mean `{meant}`?"


@pytest.mark.parametrize(
    "word",
    [
        "priority:critical", "priority:lwo2", "scope-constraint", "T-003", "reject", "approve", "", "x" * 200, "done",
        "requestedBy", "requested_by",
    ],
)  # fmt: skip
def test_another_word_gets_no_suggestion(word: str) -> None:
    assert did_you_mean(word, KNOWN) == ""
