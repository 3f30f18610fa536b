"""Autofix: let the agent fix the failing checks of the head a few times, then ask a person.

Attempts count for the pull request, not for a commit: a new head does not restart the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from accord.core.findings import names_of
from accord.loops.checks import CheckLog, appendix, check_settled, read_checks, read_logs, rerun_lost
from accord.loops.facts import Loop, read_state
from accord.loops.models import Budgets, CheckFacts, LoopDecision, LoopFacts, LoopState, decision_for
from accord.loops.questions import BEFORE_A_RUN, KEEPALIVE, ON_A_PULL, Situation, has_trusted_label, run_decision
from accord.loops.reviews import Opinion, is_complete, read_reviews
from accord.text.outline import tasks


class AutofixFacts(LoopFacts):
    """Facts of autofix. ``logs`` are those of failing checks of ``checks.head_sha``; ``reviews`` as in keepalive."""

    kind: Literal["autofix-facts"] = "autofix-facts"
    checks: CheckFacts | None
    logs: tuple[CheckLog, ...] = ()
    reviews: tuple[Opinion, ...] | None = ()
    state: LoopState = LoopState(loop="autofix")
    budgets: Budgets = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


def _check_keepalive(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    is_on = has_trusted_label(facts, KEEPALIVE) and situation.settings.keepalive is not False
    is_open = any(not task.is_checked for task in tasks(facts.pull.body))
    reviews = facts.reviews or () if is_complete(facts) else ()
    asks = any(one.verdict == "needs-changes" and one.commit == facts.pull.head_sha for one in reviews)
    if is_on and (is_open or asks):
        return decision_for("keepalive-in-charge", "Keepalive works on this pull request and fixes its checks itself.")
    return None


def _check_checks(situation: Situation) -> LoopDecision | None:
    checks = situation.facts.checks
    unsettled = check_settled(situation, checks) if checks else None
    if checks and unsettled is None and not checks.failing:
        return decision_for("checks-green", "No check of the head fails.")
    return unsettled


class Autofix(Loop):
    """The loop that fixes failing checks."""

    name = "autofix"
    model = AutofixFacts
    questions = (*ON_A_PULL, _check_keepalive, _check_checks, *BEFORE_A_RUN)
    stages = (read_checks, read_reviews, read_state)
    details = (read_logs,)
    settling = (rerun_lost,)
    unread = ("checks", "reviews")

    def run(self, about: Situation, redact: Callable[[str], str]) -> LoopDecision:
        """Run the agent on the failing checks."""
        checks = about.facts.checks
        if checks is None:
            return run_decision(about, "checks-failing", "The checks were not read.", "")
        message = f"Failing for this head: {names_of(checks.failing)}."
        return run_decision(about, "checks-failing", message, appendix(checks, about.facts.logs, redact))
