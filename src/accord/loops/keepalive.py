"""Keepalive: run the agent again while tasks are open, checks are green for this very head, and nobody stopped it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from accord.kernel.checklists import tasks
from accord.kernel.kinds import Kind
from accord.loops import checks, questions
from accord.loops.appendix import DATA, fenced, joined
from accord.loops.failing_checks import CheckLog
from accord.loops.failing_checks import appendix as failing_checks
from accord.loops.models import CheckFacts, Decision, LoopFacts
from accord.loops.questions import KEEPALIVE, Known
from accord.loops.reasons import decided

if TYPE_CHECKING:
    from collections.abc import Callable

BODY_CHARACTERS = 20_000


class KeepaliveFacts(LoopFacts):
    """All that keepalive decides from. ``logs`` are those of failing checks of ``checks.head_sha``."""

    kind: Literal["keepalive-facts"] = "keepalive-facts"
    checks: CheckFacts
    logs: tuple[CheckLog, ...] = ()


def decide(facts: KeepaliveFacts, redact: Callable[[str], str] = str) -> Decision:
    """Decide what the loop does now; every answer has a reason code of its own. Pure.

    ``redact`` takes secrets out of what the agent is shown.
    """
    about = questions.known(facts)
    decision = questions.first_answer((*_FIRST, *questions.BEFORE_A_RUN), about) or _by_checks(facts, about, redact)
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


def _by_checks(facts: KeepaliveFacts, about: Known, redact: Callable[[str], str]) -> Decision:
    waiting = checks.are_not_ready(facts.pull, facts.checks)
    if waiting is not None:
        return waiting
    run = {"agent": questions.agent_of(facts), "iteration": about.state.iterations + 1}
    failing = facts.checks.failing
    if failing and about.settings.autofix is False:
        return decided("checks-red", f"Failing: {checks.named(failing)}. The settings leave mending them to people.")
    if failing:
        shown = failing_checks(facts.checks, facts.logs, redact)
        return decided("checks-failing", f"Failing for this head: {checks.named(failing)}.", **run, appendix=shown)
    listed = tasks(facts.pull.body)
    left = sum(not task.is_checked for task in listed)
    code = "retry" if about.state.transient_in_a_row else "tasks-open"
    return decided(code, f"{left} of {len(listed)} tasks are open.", **run, appendix=appendix(facts.pull.body, redact))


def appendix(body: str, redact: Callable[[str], str]) -> str:
    """Write which tasks are open, and the description that they stand in, as a reader of the page sees it."""
    from accord.kernel.incoming import visible_text

    open_tasks = "\n".join(f"- [ ] {visible_text(task.text)}" for task in tasks(body) if not task.is_checked)
    whole = redact(visible_text(body))
    cut = "\n[…]" if len(whole) > BODY_CHARACTERS else ""
    told = (
        "## Open tasks\n\nWork on these tasks of the pull request, as many as you can do well. At the end say which of "
        f"them are done, each as `- [x]` with its exact text.\n\n{fenced(redact(open_tasks)[:8000])}"
    )
    described = f"### Description of the pull request\n\n{DATA}\n\n{fenced(whole[:BODY_CHARACTERS] + cut)}"
    return joined([told, described], "The description is left out for its length.")


FACTS = Kind("keepalive-facts", KeepaliveFacts, lambda _: [], {"kind": "keepalive-facts"})
