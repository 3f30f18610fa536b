"""Autofix: let the agent mend checks that fail for the head as it is now, a few times, and then ask a person.

Attempts count for the pull request, not for a commit: a new head is no new budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from accord.kernel.checklists import tasks
from accord.kernel.kinds import Kind
from accord.loops import checks, questions
from accord.loops.failing_checks import CheckLog, appendix
from accord.loops.models import Budgets, CheckFacts, Decision, LoopFacts, LoopState
from accord.loops.questions import KEEPALIVE, Known
from accord.loops.reasons import decided

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


class AutofixFacts(LoopFacts):
    """All that autofix decides from. ``logs`` are those of failing checks of ``checks.head_sha``."""

    kind: Literal["autofix-facts"] = "autofix-facts"
    checks: CheckFacts
    logs: tuple[CheckLog, ...] = ()
    state: LoopState = LoopState(loop="autofix")
    budgets: Budgets = ATTEMPTS


def decide(facts: AutofixFacts, redact: Callable[[str], str] = str) -> Decision:
    """Decide whether the agent mends checks now. Pure. ``redact`` takes secrets out of the logs."""
    about = questions.known(facts)
    first = questions.first_answer(_FIRST, about) or checks.are_not_ready(facts.pull, facts.checks)
    if first is None and not facts.checks.failing:
        first = decided("checks-green", "No check of the head fails.")
    decision = first or questions.first_answer(questions.BEFORE_A_RUN, about)
    if decision is None:
        decision = decided(
            "checks-failing",
            f"Failing for this head: {checks.named(facts.checks.failing)}.",
            agent=questions.agent_of(facts),
            iteration=about.state.iterations + 1,
            appendix=appendix(facts.checks, facts.logs, redact),
        )
    return questions.finished(decision, about)


def _is_asked_for(about: Known) -> Decision | None:
    return questions.is_asked_for(about, "autofix")


def _keepalive_does_it(about: Known) -> Decision | None:
    is_on = questions.has(about.facts, KEEPALIVE) and about.settings.keepalive is not False
    if is_on and any(not task.is_checked for task in tasks(about.facts.pull.body)):
        return decided("keepalive-in-charge", "Keepalive works on this pull request and mends its checks itself.")
    return None


_FIRST = (
    questions.is_over,
    questions.is_stopped_by_a_person,
    _is_asked_for,
    questions.may_not_write,
    questions.which_agent,
    _keepalive_does_it,
)


FACTS = Kind("autofix-facts", AutofixFacts, lambda _: [], {"kind": "autofix-facts"})
