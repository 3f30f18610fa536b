"""Keepalive: run the agent again while tasks are open, the head's checks pass, and no one has stopped it.

``QUESTIONS`` is the ordered list of everything that stops it or makes it wait.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Literal

from accord.core.errors import Stopped
from accord.loops import questions
from accord.loops.apply import UNTRUSTED, digest, join_parts
from accord.loops.checks import CheckLog, check_settled, names_of, read_checks, read_logs
from accord.loops.checks import appendix as checks_appendix
from accord.loops.facts import CompletedWork, Loop, read_state
from accord.loops.models import CheckFacts, LoopDecision, LoopFacts, decision_for
from accord.text.checklists import tasks, with_ticks
from accord.text.untrusted import fenced_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.loops.facts import EndedRun
    from accord.loops.models import PendingEffects
    from accord.loops.questions import Situation
    from accord.runner.models import RunOutputs


BODY_CHARACTERS = 20_000
LEAST_CONFIDENCE = 0.5
"""The contract calls confidence below it low ("Confidence scoring")."""

TRIES = 5


class KeepaliveFacts(LoopFacts):
    """The facts of keepalive. ``logs`` are those of failing checks of ``checks.head_sha``."""

    kind: Literal["keepalive-facts"] = "keepalive-facts"
    checks: CheckFacts | None
    logs: tuple[CheckLog, ...] = ()


def decide(facts: KeepaliveFacts, redact: Callable[[str], str] = str) -> LoopDecision:
    """Decide what the loop does now; ``redact`` removes secrets from the agent's prompt. Pure."""
    return questions.first_decision(QUESTIONS, questions.situation_of(facts), lambda about: _run(facts, about, redact))


def _check_enabled(situation: Situation) -> LoopDecision | None:
    if not questions.has_label(situation.facts, questions.KEEPALIVE):
        return decision_for("not-enabled", f"Keepalive is off. Add the label `{questions.KEEPALIVE}` to start it.")
    return questions.check_switch(situation, "keepalive")


def _check_tasks(situation: Situation) -> LoopDecision | None:
    listed = tasks(situation.facts.pull.body)
    if not listed:
        return decision_for("no-tasks", "The pull request's body has no checklist. Add one for the agent to work on.")
    if all(task.is_checked for task in listed):
        return decision_for("tasks-complete", f"All {len(listed)} tasks are done.")
    return None


def _check_checks(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    if not isinstance(facts, KeepaliveFacts) or facts.checks is None:
        return None
    unsettled = check_settled(facts.pull, facts.checks)
    if unsettled is None and facts.checks.failing and situation.settings.autofix is False:
        message = f"Failing: {names_of(facts.checks.failing)}. The settings leave fixing them to people."
        return decision_for("checks-red", message)
    return unsettled


QUESTIONS: tuple[questions.Question, ...] = (
    questions.check_open,  # merged, closed
    questions.check_stop_labels,  # paused, needs-human
    _check_enabled,  # not-enabled, disabled
    questions.check_writable,  # fork, read-only-token
    questions.check_agent,  # agent-ambiguous, agent-missing
    _check_tasks,  # no-tasks, tasks-complete
    *questions.BEFORE_A_RUN,  # running, three budgets, same-error, no-progress, rate-limit, back-off
    _check_checks,  # stale-checks, checks-pending, checks-missing, checks-red
)


def _run(facts: KeepaliveFacts, situation: Situation, redact: Callable[[str], str]) -> LoopDecision:
    if facts.checks is not None and facts.checks.failing:
        shown = checks_appendix(facts.checks, facts.logs, redact)
        message = f"Failing for this head: {names_of(facts.checks.failing)}."
        return questions.run_decision(situation, "checks-failing", message, shown)
    listed = tasks(facts.pull.body)
    left = sum(not task.is_checked for task in listed)
    code = "retry" if situation.state.transient_in_a_row else "tasks-open"
    message = f"{left} of {len(listed)} tasks are open."
    return questions.run_decision(situation, code, message, appendix(facts.pull.body, redact))


def appendix(body: str, redact: Callable[[str], str]) -> str:
    """Return the open tasks and the description that holds them, as a reader of the page sees it."""
    from accord.text.untrusted import visible_text

    open_tasks = "\n".join(f"- [ ] {visible_text(task.text)}" for task in tasks(body) if not task.is_checked)
    whole = redact(visible_text(body))
    cut = "\n[…]" if len(whole) > BODY_CHARACTERS else ""
    request = (
        "## Open tasks\n\nWork on these tasks of the pull request, as many as you can do well. At the end, list those "
        f"that are done, each as `- [x]` with its exact text.\n\n{fenced_data(redact(open_tasks)[:8000])}"
    )
    description = f"### Description of the pull request\n\n{UNTRUSTED}\n\n{fenced_data(whole[:BODY_CHARACTERS] + cut)}"
    return join_parts([request, description], "The description was left out for its length.")


def tick(body: str, outputs: RunOutputs) -> tuple[str, int]:
    """Tick the tasks that a run completed, and count them; none where it failed or the analysis is not confident."""
    if outputs.exit_code != "0" or not _is_confident(outputs.llm_confidence):
        return body, 0
    wanted = Counter(completed_tasks(outputs.llm_completed_tasks))
    found = []
    for task in tasks(body):
        if not task.is_checked and wanted[task.text] > 0:
            wanted[task.text] -= 1
            found.append(task)
    return with_ticks(body, found), len(found)


def completed_tasks(text: str) -> tuple[str, ...]:
    """Read ``llm-completed-tasks``; empty where it is not a JSON array of strings."""
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


def _complete(run: EndedRun) -> CompletedWork:
    body, count = tick(run.pull.body, run.outputs)
    return CompletedWork(count, body)


def _tick_body(run: EndedRun, effects: PendingEffects) -> None:
    """Tick completed tasks in the body as it is now, unless that is done. Raises Stopped when it keeps changing."""
    if not effects.body:
        return
    pull = run.pull
    for _ in range(TRIES):
        body, _ = tick(pull.body, run.outputs)
        if digest(pull.body) == effects.body or body == pull.body:
            return
        if run.context.github.change_body(pull.number, was=pull.body, body=body):
            return
        pull = run.context.pull()
    message = f"The body of #{pull.number} changed {TRIES} times in a row."
    raise Stopped(message, hint="Run the same command again.")


LOOP = Loop(
    "keepalive",
    KeepaliveFacts,
    decide,
    stages=(read_state, read_checks),
    first_facts=lambda *_: {"checks": None},
    details=(read_logs,),
    complete=_complete,
    apply=_tick_body,
)
