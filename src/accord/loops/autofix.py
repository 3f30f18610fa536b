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
from accord.text.checklists import tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.loops.questions import Situation


class AutofixFacts(LoopFacts):
    """The facts of autofix. ``logs`` are those of failing checks of ``checks.head_sha``."""

    kind: Literal["autofix-facts"] = "autofix-facts"
    checks: CheckFacts | None
    logs: tuple[CheckLog, ...] = ()
    state: LoopState = LoopState(loop="autofix")
    budgets: Budgets = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


def decide(facts: AutofixFacts, redact: Callable[[str], str] = str) -> LoopDecision:
    """Decide whether the agent fixes checks now. Pure."""
    return questions.first_decision(QUESTIONS, questions.situation_of(facts), lambda about: _run(facts, about, redact))


def _check_keepalive(situation: Situation) -> LoopDecision | None:
    is_on = questions.has_label(situation.facts, questions.KEEPALIVE) and situation.settings.keepalive is not False
    if is_on and any(not task.is_checked for task in tasks(situation.facts.pull.body)):
        message = "Keepalive works on this pull request and fixes its checks itself."
        return decision_for("keepalive-in-charge", message)
    return None


def _check_checks(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    if not isinstance(facts, AutofixFacts) or facts.checks is None:
        return None
    unsettled = check_settled(facts.pull, facts.checks)
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
    stages=(read_checks, read_state),
    first_facts=lambda *_: {"checks": None},
    details=(read_logs,),
)
