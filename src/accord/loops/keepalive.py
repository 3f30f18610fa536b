"""Keepalive: run the agent again while tasks are open, checks are green for this very head, and nobody stopped it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from accord.loops import autofix as checks
from accord.loops import questions
from accord.loops.autofix import CheckLog
from accord.loops.autofix import appendix as failing_checks
from accord.loops.context import DATA, fenced, joined
from accord.loops.models import NEEDS_HUMAN, CheckFacts, Closed, Decision, LoopFacts, decided
from accord.loops.questions import KEEPALIVE, RETRY, Known
from accord.text.checklists import tasks, ticked

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.loops.models import Budgets, LoopState
    from accord.runner.models import RunOutputs


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
        return decided("checks-red", f"Failing: {checks.named(failing)}. The settings leave fixing them to people.")
    if failing:
        shown = failing_checks(facts.checks, facts.logs, redact)
        return decided("checks-failing", f"Failing for this head: {checks.named(failing)}.", **run, appendix=shown)
    listed = tasks(facts.pull.body)
    left = sum(not task.is_checked for task in listed)
    code = "retry" if about.state.transient_in_a_row else "tasks-open"
    return decided(code, f"{left} of {len(listed)} tasks are open.", **run, appendix=appendix(facts.pull.body, redact))


def appendix(body: str, redact: Callable[[str], str]) -> str:
    """Write which tasks are open, and the description that they stand in, as a reader of the page sees it."""
    from accord.text.untrusted import visible_text

    open_tasks = "\n".join(f"- [ ] {visible_text(task.text)}" for task in tasks(body) if not task.is_checked)
    whole = redact(visible_text(body))
    cut = "\n[…]" if len(whole) > BODY_CHARACTERS else ""
    told = (
        "## Open tasks\n\nWork on these tasks of the pull request, as many as you can do well. At the end say which of "
        f"them are done, each as `- [x]` with its exact text.\n\n{fenced(redact(open_tasks)[:8000])}"
    )
    described = f"### Description of the pull request\n\n{DATA}\n\n{fenced(whole[:BODY_CHARACTERS] + cut)}"
    return joined([told, described], "The description is left out for its length.")


class Aftermath(Closed):
    """Labels to add and to take off, and what to tell; ``notify`` says that a person is needed."""

    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    notify: bool = False
    said: str = ""


def aftermath(state: LoopState, budgets: Budgets, summary: str) -> Aftermath:
    """Say what the last iteration asks for; ``summary`` is its ``error-summary``, text of others.

    A suggestion that is missing or unknown is ``manual``, as the contract has it for what is unclassified.
    """
    last = state.last
    if last is None or last.exit_code == "0":
        return Aftermath(remove_labels=(RETRY,))
    what = f"The agent's run failed ({last.category or 'unknown'}): {summary or 'nothing was said of it.'}"
    if last.recovery == "ignore":
        return Aftermath(said=what)
    if last.recovery == "retry" and state.transient_in_a_row <= budgets.transient:
        return Aftermath(add_labels=(RETRY,), said=what)
    return Aftermath(
        add_labels=(NEEDS_HUMAN,),
        remove_labels=(RETRY,),
        notify=True,
        said=f"{what} A person is needed.",
    )


LEAST_CONFIDENCE = 0.5
"""What the contract calls low is below it ("Confidence scoring"); a wrong tick is taken back by unticking it."""


@dataclass(frozen=True)
class Ticked:
    """The new body, the tasks that were ticked in their order, and those that were named and are not open in it."""

    body: str
    done: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    reason: str = ""


def tick(body: str, outputs: RunOutputs) -> Ticked:
    """Tick what a run completed; the same body where nothing is to be ticked, with the reason."""
    if outputs.exit_code != "0":
        return Ticked(body, reason="The run failed, so its word on tasks does not count.")
    if not _is_confident(outputs.llm_confidence):
        return Ticked(body, reason=f"Nobody is sure of it: the confidence is below {LEAST_CONFIDENCE}.")
    wanted = Counter(named := completed(outputs.llm_completed_tasks))
    found = []
    for task in tasks(body):
        if not task.is_checked and wanted[task.text] > 0:
            wanted[task.text] -= 1
            found.append(task)
    left_out = tuple(text for text in dict.fromkeys(named) if wanted[text] > 0)
    return Ticked(ticked(body, found), tuple(task.text for task in found), left_out)


def completed(text: str) -> tuple[str, ...]:
    """Read ``llm-completed-tasks``; nothing where it is no JSON array of texts."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    is_list = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    return tuple(value) if is_list else ()


def _is_confident(text: str) -> bool:
    try:
        return LEAST_CONFIDENCE <= float(text) <= 1
    except ValueError:
        return False
