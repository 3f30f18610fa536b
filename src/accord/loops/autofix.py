"""Autofix: let the agent mend checks that fail for the head as it is now, a few times, and then ask a person.

Attempts count for the pull request, not for a commit: a new head is no new budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from accord.kernel.checklists import tasks
from accord.kernel.kinds import Kind
from accord.loops import checks, questions
from accord.loops.appendix import DATA, fenced, joined
from accord.loops.logs import failing_part
from accord.loops.models import Budgets, CheckFacts, Closed, Decision, LoopFacts, LoopState
from accord.loops.questions import KEEPALIVE, Known
from accord.loops.reasons import decided

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)
LOGS = 5
"""Logs that the appendix holds; more failing checks are named."""


class CheckLog(Closed):
    """The log of a failing check, or of its job; as long as it is."""

    check: str
    url: str = ""
    log: str


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
            appendix=appendix(facts, redact),
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


def appendix(facts: AutofixFacts, redact: Callable[[str], str]) -> str:
    """Write what the agent must know: which checks fail for which commit, and the failing part of their logs."""
    failing = set(facts.checks.failing)
    logs = [log for log in facts.logs if log.check in failing][:LOGS]
    head = f"These checks fail for commit {facts.checks.head_sha}: {_one_line(checks.named(facts.checks.failing))}."
    parts = [f"## Failing checks\n\n{head} Mend the cause. Do not weaken or skip a check.\n\n{DATA}"]
    for log in logs:
        where = f" ({_one_line(log.url)})" if log.url else ""
        parts.append(f"### {_one_line(log.check)}{where}\n\n{fenced(failing_part(log.log, redact))}")
    without = sorted(failing - {log.check for log in logs})
    if without:
        parts.append(f"No log is at hand for: {_one_line(checks.named(tuple(without)))}.")
    return joined(parts, "The logs of {n} more checks are left out.")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


FACTS = Kind("autofix-facts", AutofixFacts, lambda _: [], {"kind": "autofix-facts"})
