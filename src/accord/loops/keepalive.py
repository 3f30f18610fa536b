"""Keepalive: run the agent again while tasks are open, checks are green for this very head, and nobody stopped it.

One list of questions, in order; the first that answers decides. What a person says comes first, then what must never
happen, then the budgets, then what passes by itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from accord.loops.ledger import seconds_until_retry, stands_still
from accord.loops.models import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.loops.models import KeepaliveFacts

ENABLED = "agents:keepalive"
PAUSED = "agents:paused"
NEEDS_HUMAN = "needs-human"
RETRY = "agent:retry"
ATTENTION = "agent:needs-attention"

NOT_AGENTS = frozenset({RETRY, ATTENTION})
"""Labels that look like an agent's and name none."""

LOST_AFTER_SECONDS = 3 * 3600
"""A run that has said nothing for so long has been lost: a job on GitHub's runners ends after six hours at most, ours
after 45 minutes unless told otherwise.
"""

SETTLING_SECONDS = 120
"""How long a commit without any check may still get one; GitHub starts workflows within seconds."""

REQUESTS_KEPT = 50
"""Requests that must be left: one evaluation and one publishing need fewer."""


def decide(facts: KeepaliveFacts) -> Decision:
    """Decide what the loop does now; every answer has a reason code of its own."""
    for question in _QUESTIONS:
        decision = question(facts)
        if decision is not None:
            return _with_warnings(decision, facts)
    return _with_warnings(_go(facts), facts)


def _stop(reason: str, message: str, *, asks: bool = False) -> Decision:
    """End until a person acts; ``asks`` puts the label on that says so."""
    return Decision(action="stop", reason=reason, message=message, add_labels=(NEEDS_HUMAN,) if asks else ())


def _ended(facts: KeepaliveFacts) -> Decision | None:
    if facts.pull.is_merged:
        return _stop("merged", "The pull request is merged.")
    if not facts.pull.is_open:
        return _stop("closed", "The pull request is closed.")
    return None


def _stopped_by_a_person(facts: KeepaliveFacts) -> Decision | None:
    if PAUSED in facts.pull.labels:
        return _stop("paused", f"A person paused it. Remove the label {PAUSED} to go on.")
    if NEEDS_HUMAN in facts.pull.labels:
        return _stop("needs-human", f"It waits for a person. Remove the label {NEEDS_HUMAN} to go on.")
    if ENABLED not in facts.pull.labels:
        return _stop("not-enabled", f"It is not asked for. Add the label {ENABLED} to begin.")
    return None


def _may_not_write(facts: KeepaliveFacts) -> Decision | None:
    if facts.pull.is_fork:
        return _stop("fork", "The branch is in a fork, where the workflow's token cannot push. Work on it there.")
    return None


def _which_agent(facts: KeepaliveFacts) -> Decision | None:
    asked = agents_asked(facts)
    if len(asked) > 1:
        names = ", ".join(f"agent:{name}" for name in asked)
        return _stop("agent-ambiguous", f"Several agents are asked for: {names}. Leave one of the labels.", asks=True)
    if not facts.agents:
        return _stop("agent-missing", "The registry has no agent that is enabled. Enable one.", asks=True)
    return None


def agents_asked(facts: KeepaliveFacts) -> tuple[str, ...]:
    """Name the agents of the registry that the labels ask for; other ``agent:`` labels are none."""
    asked = [label.removeprefix("agent:") for label in facts.pull.labels if label not in NOT_AGENTS]
    return tuple(name for name in facts.agents if name in asked)


def _tasks(facts: KeepaliveFacts) -> Decision | None:
    if not facts.pull.tasks_total:
        return _stop("no-tasks", "The pull request's body has no checklist. Write one: it is what the agent works on.")
    if not facts.pull.tasks_open:
        return _stop("tasks-complete", f"All {facts.pull.tasks_total} tasks are done.")
    return None


def _is_running(facts: KeepaliveFacts) -> Decision | None:
    running = facts.state.running
    if running is None:
        return None
    age = int((datetime.fromisoformat(facts.now) - datetime.fromisoformat(running.started_at)).total_seconds())
    if age >= LOST_AFTER_SECONDS:
        return None
    message = f"Run {running.run_id} is still under way."
    return Decision(action="wait", reason="running", message=message, wait_seconds=LOST_AFTER_SECONDS - age)


def _budgets(facts: KeepaliveFacts) -> Decision | None:
    state, budgets = facts.state, facts.budgets
    raise_it = "Raise it in the pull request's settings to go on."
    if state.failures_in_a_row >= budgets.failures:
        return _stop("failure-budget", f"{state.failures_in_a_row} runs in a row failed. {raise_it}", asks=True)
    if state.transient_in_a_row > budgets.transient:
        message = f"{state.transient_in_a_row} runs in a row ended by a failure that should pass. {raise_it}"
        return _stop("transient-budget", message, asks=True)
    if state.iterations >= budgets.iterations:
        return _stop("iteration-budget", f"All {budgets.iterations} iterations are used. {raise_it}", asks=True)
    return None


def _stands_still(facts: KeepaliveFacts) -> Decision | None:
    repeated = stands_still(facts.state)
    if repeated == "error":
        return _stop("same-error", "The same error ended two runs in a row.", asks=True)
    if repeated == "tree":
        return _stop("no-progress", "Two runs in a row left the same files.", asks=True)
    return None


def _rate_limit(facts: KeepaliveFacts) -> Decision | None:
    if facts.rate.remaining >= REQUESTS_KEPT:
        return None
    message = f"Only {facts.rate.remaining} requests are left to the token."
    wait = facts.rate.resets_in_seconds
    return Decision(action="defer", reason="rate-limit", message=message, wait_seconds=wait)


def _back_off(facts: KeepaliveFacts) -> Decision | None:
    left = seconds_until_retry(facts.state, facts.budgets, datetime.fromisoformat(facts.now))
    if not left:
        return None
    message = f"The last run ended by a failure that should pass; the next may begin in {left} s."
    return Decision(action="wait", reason="back-off", message=message, wait_seconds=left, add_labels=(RETRY,))


def _checks(facts: KeepaliveFacts) -> Decision | None:
    checks = facts.checks
    if checks.head_sha != facts.pull.head_sha:
        message = "The checks are those of another commit than the head."
        return Decision(action="wait", reason="stale-checks", message=message)
    if checks.pending:
        return Decision(action="wait", reason="checks-pending", message=f"Pending: {', '.join(checks.pending)}.")
    if not checks.failing and not checks.passing and checks.seconds_since_push < SETTLING_SECONDS:
        left = SETTLING_SECONDS - checks.seconds_since_push
        message = "No check has begun for this head yet."
        return Decision(action="wait", reason="checks-missing", message=message, wait_seconds=left)
    return None


def _go(facts: KeepaliveFacts) -> Decision:
    agent = (agents_asked(facts) or facts.agents)[0]
    number = facts.state.iterations + 1
    failing = facts.checks.failing
    if failing:
        message = f"Failing for this head: {', '.join(failing)}."
        return Decision(action="fix", reason="checks-failing", message=message, agent=agent, iteration=number)
    message = f"{facts.pull.tasks_open} of {facts.pull.tasks_total} tasks are open."
    is_retry = facts.state.transient_in_a_row > 0
    return Decision(
        action="run",
        reason="retry" if is_retry else "tasks-open",
        message=message,
        agent=agent,
        iteration=number,
        remove_labels=(RETRY,) if RETRY in facts.pull.labels else (),
    )


def _with_warnings(decision: Decision, facts: KeepaliveFacts) -> Decision:
    if decision.action in ("run", "fix") and not facts.token.triggers_workflows:
        told = (
            "What this token pushes starts no workflow, so no check will run on it. Use the token of an app, or start "
            "the checks by workflow_dispatch."
        )
        return decision.model_copy(update={"warnings": (*decision.warnings, told)})
    return decision


_QUESTIONS: tuple[Callable[[KeepaliveFacts], Decision | None], ...] = (
    _ended,
    _stopped_by_a_person,
    _may_not_write,
    _which_agent,
    _tasks,
    _is_running,
    _budgets,
    _stands_still,
    _rate_limit,
    _back_off,
    _checks,
)
