"""Keepalive: run the agent again while tasks are open, checks are green for this very head, and nobody stopped it."""

from __future__ import annotations

from typing import Literal

from accord.kernel.checklists import tasks
from accord.kernel.kinds import Kind
from accord.loops import checks, questions
from accord.loops.models import CheckFacts, Decision, LoopFacts
from accord.loops.questions import KEEPALIVE, Known
from accord.loops.reasons import decided


class KeepaliveFacts(LoopFacts):
    """All that keepalive decides from."""

    kind: Literal["keepalive-facts"] = "keepalive-facts"
    checks: CheckFacts


def decide(facts: KeepaliveFacts) -> Decision:
    """Decide what the loop does now; every answer has a reason code of its own. Pure."""
    about = questions.known(facts)
    decision = questions.first_answer((*_FIRST, *questions.BEFORE_A_RUN), about) or _by_checks(facts, about)
    return questions.finished(decision, about)


def _is_asked_for(about: Known) -> Decision | None:
    if not questions.has(about.facts, KEEPALIVE):
        return decided("not-enabled", f"It is not asked for. Add the label {KEEPALIVE} to begin.")
    return questions.has_switch_off(about, "keepalive")


def _has_open_tasks(about: Known) -> Decision | None:
    listed = tasks(about.facts.pull.body)
    if not listed:
        return decided("no-tasks", "The pull request's body has no checklist. Write one: the agent works on it.")
    if all(task.is_checked for task in listed):
        return decided("tasks-complete", f"All {len(listed)} tasks are done.")
    return None


_FIRST = (
    questions.is_over,
    questions.is_stopped_by_a_person,
    _is_asked_for,
    questions.may_not_write,
    questions.which_agent,
    _has_open_tasks,
)


def _by_checks(facts: KeepaliveFacts, about: Known) -> Decision:
    waiting = checks.are_not_ready(facts.pull, facts.checks)
    if waiting is not None:
        return waiting
    run = {"agent": questions.agent_of(facts), "iteration": about.state.iterations + 1}
    failing = facts.checks.failing
    if failing and about.settings.autofix is False:
        return decided("checks-red", f"Failing: {checks.named(failing)}. The settings leave mending them to people.")
    if failing:
        return decided("checks-failing", f"Failing for this head: {checks.named(failing)}.", **run)
    listed = tasks(facts.pull.body)
    left = sum(not task.is_checked for task in listed)
    code = "retry" if about.state.transient_in_a_row else "tasks-open"
    return decided(code, f"{left} of {len(listed)} tasks are open.", **run)


FACTS = Kind("keepalive-facts", KeepaliveFacts, lambda _: [], {"kind": "keepalive-facts"})
