"""Workflow runs that GitHub holds: when they are read, how long they are waited for, and who may start them."""

from datetime import timedelta
from typing import Any

import pytest
from support.loops import BODY, NOW, held, keepalive

from accord.engine.trust import NEEDS_HUMAN
from accord.github.checks import Check, CheckState
from accord.loops.checks import may_be_held
from accord.loops.models import RUNS
from accord.loops.run import LOOPS

decide = LOOPS["keepalive"].decide

PAGE = "https://github.com/octo/code/pull/7"


def waiting(*runs: Any, hours: float = 1, **parts: Any) -> Any:
    checks = {"passing": (), "held": runs or (held(hours),), "seconds_since_push": 600, **parts.pop("checks", {})}
    return keepalive(checks=checks, **parts)


def test_a_head_with_held_runs_is_not_one_without_checks() -> None:
    decision = decide(waiting(pull={"url": PAGE}))
    assert (decision.action, decision.reason) == ("wait", "checks-held")
    assert "Approve workflows to run" in decision.message
    assert PAGE in decision.message
    assert "CI" in decision.message
    assert decision.wait_seconds == 23 * 3600 + 1
    assert decide(keepalive(checks={"passing": (), "seconds_since_push": 600})).action in RUNS


@pytest.mark.parametrize("parts", [{"passing": ("deploy",)}, {"failing": ("deploy",)}])
def test_held_runs_count_whatever_other_checks_say(parts: dict[str, Any]) -> None:
    assert decide(waiting(checks=parts)).reason == "checks-held"


@pytest.mark.parametrize(
    ("hours", "reason"), [(23.9, "checks-held"), (24, "checks-not-approved"), (700, "checks-not-approved")]
)
def test_a_person_is_asked_after_a_day(hours: float, reason: str) -> None:
    decision = decide(waiting(hours=hours))
    assert (decision.reason, NEEDS_HUMAN in decision.add_labels) == (reason, reason == "checks-not-approved")


def test_the_pull_requests_settings_say_how_long_to_wait() -> None:
    body = BODY + "<!-- keepalive-config: {approval_hours: 2} -->"
    reasons = [decide(waiting(hours=hours, pull={"body": body})).reason for hours in (1, 2)]
    assert reasons == ["checks-held", "checks-not-approved"]
    untrusted = decide(waiting(hours=25, pull={"body": body.replace("2", "700"), "author_may_write": False}))
    assert untrusted.reason == "checks-not-approved"


def test_the_oldest_run_says_how_long_they_have_waited() -> None:
    assert decide(waiting(held(1), held(30, id=42))).reason == "checks-not-approved"
    assert decide(waiting(held(1, created_at=NOW + timedelta(days=400)))).reason == "checks-held"


def test_names_that_a_branch_gives_its_workflows_and_files_are_shortened() -> None:
    runs = tuple(held(id=number, name="n" * 5000) for number in range(1, 100))
    decision = decide(waiting(*runs, pull={"url": PAGE}))
    assert decision.reason == "checks-held"
    assert "and 94 more" in decision.message
    assert len(decision.message) < 1200
    assert PAGE in decision.message[:200]


def test_a_token_that_cannot_read_runs_leads_to_a_warning() -> None:
    decision = decide(keepalive(checks={"held": None}))
    assert (decision.reason, len(decision.warnings)) == ("tasks-open", 1)
    assert "actions: read" in decision.warnings[0]
    assert decide(keepalive()).warnings == ()


@pytest.mark.parametrize(
    ("checks", "are_read"),
    [
        ([], True),
        ([("github-actions", "passing")], False),
        ([("github-actions", "failing"), ("", "passing")], False),
        ([("github-actions", "skipped")], True),
        ([("some-app", "passing"), ("", "failing")], True),
        ([("some-app", "pending")], False),
        ([("github-actions", "pending")], False),
    ],
)
def test_they_are_read_only_where_they_decide(checks: list[tuple[str, CheckState]], are_read: bool) -> None:
    assert may_be_held([Check("test", state, app=app) for app, state in checks]) == are_read
