"""Autofix: let the agent fix the failing checks of the head a few times, then ask a person.

Attempts count for the pull request, not for a commit: a new head does not restart the budget.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from accord.loops import questions
from accord.loops.checks import CheckLog, appendix, check_settled, names_of, read_checks, read_logs
from accord.loops.facts import Loop, read_state
from accord.loops.models import Budgets, CheckFacts, LoopDecision, LoopFacts, LoopState, decision_for
from accord.loops.reviews import Opinion, is_complete, read_reviews
from accord.text.outline import tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.loops.questions import Situation


class AutofixFacts(LoopFacts):
    """Facts of autofix. ``logs`` are those of failing checks of ``checks.head_sha``; ``reviews`` as in keepalive."""

    kind: Literal["autofix-facts"] = "autofix-facts"
    checks: CheckFacts | None
    logs: tuple[CheckLog, ...] = ()
    reviews: tuple[Opinion, ...] | None = ()
    state: LoopState = LoopState(loop="autofix")
    budgets: Budgets = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


def decide(facts: AutofixFacts, redact: Callable[[str], str] = str) -> LoopDecision:
    """Decide whether the agent fixes checks now. Pure."""
    return questions.first_decision(QUESTIONS, questions.situation_of(facts), lambda about: _run(facts, about, redact))


def _check_keepalive(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    is_on = questions.has_label(facts, questions.KEEPALIVE) and situation.settings.keepalive is not False
    is_open = any(not task.is_checked for task in tasks(facts.pull.body))
    reviews = facts.reviews or () if isinstance(facts, AutofixFacts) and is_complete(facts) else ()
    if is_on and (is_open or any(opinion.verdict == "needs-changes" for opinion in _of_head(reviews, facts))):
        return decision_for("keepalive-in-charge", "Keepalive works on this pull request and fixes its checks itself.")
    return None


def _of_head(reviews: tuple[Opinion, ...], facts: LoopFacts) -> tuple[Opinion, ...]:
    return tuple(opinion for opinion in reviews if opinion.commit == facts.pull.head_sha)


def _check_checks(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    if not isinstance(facts, AutofixFacts) or facts.checks is None:
        return None
    unsettled = check_settled(situation, facts.checks)
    if unsettled is None and not facts.checks.failing:
        return decision_for("checks-green", "No check of the head fails.")
    return unsettled


QUESTIONS: tuple[questions.Question, ...] = (
    questions.check_open,
    questions.check_stop_labels,
    partial(questions.check_enabled, loop="autofix"),
    questions.check_writable,
    questions.check_agent,
    _check_keepalive,
    _check_checks,
    *questions.BEFORE_A_RUN,
)


def _run(facts: AutofixFacts, situation: Situation, redact: Callable[[str], str]) -> LoopDecision:
    if facts.checks is None:
        return questions.run_decision(situation, "checks-failing", "The checks were not read.", "")
    shown = appendix(facts.checks, facts.logs, redact)
    message = f"Failing for this head: {names_of(facts.checks.failing)}."
    return questions.run_decision(situation, "checks-failing", message, shown)


LOOP = Loop(
    "autofix",
    AutofixFacts,
    decide,
    stages=(read_checks, read_reviews, read_state),
    first_facts=lambda *_: {"checks": None, "reviews": None},
    details=(read_logs,),
)
