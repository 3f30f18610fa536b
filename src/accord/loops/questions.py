"""The questions that every loop asks before it runs the agent.

A loop lists its questions in order (``QUESTIONS`` in its module); the first one that returns a decision decides. A
person's word comes first, then dangers, then the budgets, then states that pass by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from accord.core.suggest import did_you_mean
from accord.engine.owner import ItemState, PullState, is_over, owner_of
from accord.engine.trust import NEEDS_HUMAN, PAUSED, RETRY, names_agent
from accord.loops.ledger import is_failure, repetition_of, seconds_until_retry, settled_state, time_of_loss
from accord.loops.models import (
    PERSONS_STOP,
    RUNS,
    LoopDecision,
    LoopFacts,
    LoopState,
    PullFacts,
    decision_for,
)
from accord.loops.settings import LoopSettings, read_settings

KEEPALIVE = "agents:keepalive"
AUTOFIX = "autofix"

REQUESTS_KEPT = 50
"""Requests that must be left: one evaluation and one publishing need fewer."""

FactsT = TypeVar("FactsT", bound=LoopFacts)


class Situation(NamedTuple):
    """Facts to be judged, of the model of their loop: the state brought up to now, and the pull request's settings."""

    facts: Any
    state: LoopState
    settings: LoopSettings

    @property
    def loop(self) -> str:
        """The name of the loop that asks."""
        return str(self.facts.kind).removesuffix("-facts")


Question: TypeAlias = "Callable[[Situation], LoopDecision | None]"


def situation_of(facts: LoopFacts) -> Situation:
    """Bring facts up to now."""
    return Situation(facts, settled_state(facts), settings_of(facts))


def settings_of(facts: LoopFacts) -> LoopSettings:
    """Read the pull request's own settings, as far as they count."""
    return read_settings(facts.pull.body, facts.budgets, is_trusted=facts.pull.author_may_write)


def first_decision(
    questions: Iterable[Question], situation: Situation, otherwise: Callable[[Situation], LoopDecision]
) -> LoopDecision:
    """Return the first decision of the questions, or else the run, with the warnings of the settings."""
    decision = next((found for question in questions if (found := question(situation)) is not None), None)
    decision = decision or otherwise(situation)
    facts = situation.facts
    warnings = [*decision.warnings, *(finding.text for finding in situation.settings.findings)]
    warnings += _warnings_of_run(facts, situation.state) if decision.action in RUNS else ()
    is_over = decision.action in RUNS or NEEDS_HUMAN in decision.add_labels or decision.reason in PERSONS_STOP
    removed = (*decision.remove_labels, RETRY) if is_over and has_label(facts, RETRY) else decision.remove_labels
    return decision.model_copy(update={"warnings": tuple(warnings), "remove_labels": removed})


def run_decision(situation: Situation, code: str, message: str, appendix: str) -> LoopDecision:
    """Return the decision to run the agent."""
    agent = (requested_agents(situation.facts) or situation.facts.agents)[0]
    return decision_for(code, message, agent=agent, iteration=situation.state.iterations + 1, appendix=appendix)


def has_label(facts: LoopFacts, label: str) -> bool:
    """Tell whether the pull request carries a label; GitHub ignores case in labels."""
    return any(name.casefold() == label for name in facts.pull.labels)


def has_trusted_label(facts: LoopFacts, label: str) -> bool:
    """Tell whether the pull request carries a label that someone set who may decide so."""
    return has_label(facts, label) and not any(one.label.casefold() == label for one in facts.refused_labels or ())


def requested_agents(facts: LoopFacts) -> tuple[str, ...]:
    """Return the agents of the registry that ``agent:`` labels name."""
    return tuple(name for name in facts.agents if has_trusted_label(facts, f"agent:{name}".casefold()))


def check_open(situation: Situation) -> LoopDecision | None:
    """Stop once the pull request is merged or closed."""
    pull = pull_of(situation.facts.pull)
    return decision_for(pull.state, f"The pull request is {pull.state}.") if is_over(pull) else None


def check_item(situation: Situation) -> LoopDecision | None:
    """Stop once the item is closed that the pull request was opened for."""
    facts = situation.facts
    item = None if facts.is_item_open is None else ItemState(facts.is_item_open)
    if owner_of(item, pull_of(facts.pull)).reason != "item-closed":
        return None
    message = f"Its work item is closed. Reopen that and remove the label {NEEDS_HUMAN}, or close the pull request."
    return decision_for("item-closed", message)


def pull_of(pull: PullFacts) -> PullState:
    """Return what of a pull request decides who acts next."""
    state: Literal["open", "merged", "closed"] = "open" if pull.is_open else "closed"
    return PullState(pull.number, "merged" if pull.is_merged else state, is_main=pull.is_main)


def check_stop_labels(situation: Situation) -> LoopDecision | None:
    """Stop where a label says so."""
    if has_label(situation.facts, PAUSED):
        return decision_for("paused", f"A person paused it. Remove the label {PAUSED} to continue.")
    if has_label(situation.facts, NEEDS_HUMAN):
        return decision_for("needs-human", f"It waits for a person. Remove the label {NEEDS_HUMAN} to continue.")
    return None


def check_text(situation: Situation) -> LoopDecision | None:
    """Stop where the text to work on is not the one that was approved."""
    why = situation.facts.text_changed
    hint = f"Read it as it is now, then remove the label {NEEDS_HUMAN}."
    return decision_for("text-changed", f"{why} {hint}") if why else None


def check_writable(situation: Situation) -> LoopDecision | None:
    """Stop where the agent's work could not be pushed."""
    if situation.facts.pull.is_fork:
        message = (
            "The branch is in a fork, where the workflow's token cannot push. Work on it there, or push the branch to "
            "this repository and open the pull request from it."
        )
        return decision_for("fork", message)
    if not situation.facts.token.may_write:
        message = (
            "The token can only read, as for events of forks and of Dependabot. Grant the job contents: write "
            "and pull-requests: write, and start it by an event of this repository."
        )
        return decision_for("read-only-token", message)
    return None


def check_agent(situation: Situation) -> LoopDecision | None:
    """Stop where it is unclear which agent works."""
    requested = requested_agents(situation.facts)
    if len(requested) > 1:
        names = ", ".join(f"agent:{name}" for name in requested)
        return decision_for("agent-ambiguous", f"Labels name several agents: {names}. Keep one of them.")
    if not situation.facts.agents:
        return decision_for("agent-missing", "The registry has no enabled agent for this work. Enable one.")
    return None


def check_running(situation: Situation) -> LoopDecision | None:
    """Wait for a run that is in progress."""
    running = situation.state.running
    if running is None:
        return None
    left = min(time_of_loss(running) - situation.facts.now, time_of_loss(running) - running.started_at)
    return decision_for("running", f"Run {running.run_id} is in progress.", wait_seconds=int(left.total_seconds()) + 1)


def check_budgets(situation: Situation) -> LoopDecision | None:
    """Stop when a budget is used up."""
    state, budgets = situation.state, situation.settings.budgets
    go_on = f"Fix the cause, then remove the label {NEEDS_HUMAN}."
    if state.failures_in_a_row >= budgets.failures:
        return decision_for("failure-budget", f"{state.failures_in_a_row} runs failed without progress. {go_on}")
    if state.transient_in_a_row > budgets.transient:
        message = f"{state.transient_in_a_row} runs in a row ended with a transient failure. {go_on}"
        return decision_for("transient-budget", message)
    if state.iterations >= budgets.iterations:
        message = (
            f"No run is left of max_iterations, {budgets.iterations}. Raise it in the pull request's settings, then "
            f"remove the label {NEEDS_HUMAN}."
        )
        return decision_for("iteration-budget", message)
    most = situation.facts.max_cost_usd
    if most is not None and state.cost_usd >= most:
        message = (
            f"The runs on this pull request cost {state.cost_usd:.2f} of {most:.2f} US dollars. Raise "
            f"`max_item_cost_usd` in .github/agents/registry.yml, then remove the label {NEEDS_HUMAN}."
        )
        return decision_for("cost-budget", message)
    return None


_UNITS = {"bot-comments": "answered no thread", "autofix": "fixed no check"}


def check_progress(situation: Situation) -> LoopDecision | None:
    """Stop when the last runs repeat each other."""
    repeated = repetition_of(situation.state)
    go_on = f"Comment on the pull request what to do differently, then remove the label {NEEDS_HUMAN}."
    if repeated == "error":
        return decision_for("same-error", f"Two runs ended with the same error. {go_on}")
    if repeated == "tree":
        unit = _UNITS.get(situation.loop, "completed no task")
        return decision_for("no-progress", f"Two runs left no new files and {unit}. {go_on}")
    return None


def check_last_run(situation: Situation) -> LoopDecision | None:
    """Stop after a failure that only a change ends, until a person gives the go-ahead; the label may be missing."""
    last, resumed_at = situation.state.last, situation.state.resumed_at
    if last is None or not is_failure(last) or (resumed_at is not None and resumed_at >= last.ended_at):
        return None
    kind = f" ({last.category})" if last.category else ""
    message = f"The last run failed{kind}, and trying again does not help. Fix the cause, then remove the label "
    return decision_for("manual-failure", f"{message}{NEEDS_HUMAN}.")


def check_rate_limit(situation: Situation) -> LoopDecision | None:
    """Defer while the token has too few requests left."""
    rate = situation.facts.rate
    if rate is None or rate.remaining >= REQUESTS_KEPT:
        return None
    message = f"The token has too few requests left: {rate.remaining}."
    return decision_for("rate-limit", message, wait_seconds=rate.resets_in_seconds)


def check_pause(situation: Situation) -> LoopDecision | None:
    """Wait for the end of the pause after a transient failure."""
    left = seconds_until_retry(situation.state, situation.settings.budgets, situation.facts.now)
    if not left:
        return None
    message = f"The last run ended with a transient failure; the next may begin in {left} s."
    return decision_for("back-off", message, wait_seconds=left, add_labels=(RETRY,))


BEFORE_A_RUN: tuple[Question, ...] = (
    check_running,
    check_budgets,
    check_progress,
    check_last_run,
    check_rate_limit,
    check_pause,
)
"""Each loop asks these after the questions about its own work."""


def check_switch(situation: Situation) -> LoopDecision | None:
    """Stop where the settings turn this loop off."""
    is_off = getattr(situation.settings, situation.loop.replace("-", "_")) is False
    return decision_for("disabled", f"The pull request's settings turn {situation.loop} off.") if is_off else None


def check_labels(situation: Situation, *labels: str) -> LoopDecision | None:
    """Stop where the pull request has one of these labels, and who set it may not decide so."""
    found = (one for one in situation.facts.refused_labels or () if one.label.casefold() in labels)
    refused = next(found, None)
    return decision_for("label-not-allowed", refused.text, about=f"{refused.label} {refused.by}") if refused else None


def check_enabled(situation: Situation) -> LoopDecision | None:
    """Stop unless the settings turn this loop on, a label does, or one names an agent."""
    off, name = check_switch(situation), situation.loop.replace("-", "_")
    if off is not None or getattr(situation.settings, name):
        return off
    facts = situation.facts
    labels = (KEEPALIVE, AUTOFIX) if situation.loop == "autofix" else (KEEPALIVE,)
    if any(has_trusted_label(facts, label) for label in labels) or requested_agents(facts):
        return None
    agents = (f"agent:{agent}".casefold() for agent in facts.agents)
    if refused := check_labels(situation, *labels, *agents):
        return refused
    message = f"The loop is off. Add a label `agent:NAME`, or `{name}_enabled: true` to the settings, to start it."
    return decision_for("not-enabled", message)


ON_A_PULL: tuple[Question, ...] = (check_open, check_stop_labels, check_enabled, check_writable, check_agent)
"""The first questions about an open pull request."""


def _warnings_of_run(facts: Any, state: LoopState) -> Iterator[str]:
    agents = {f"agent:{name}".casefold(): f"agent:{name}" for name in facts.agents}
    yield from (refused.text for refused in facts.refused_labels or ())
    for label in facts.pull.labels:
        if names_agent(label) and label.casefold() not in agents:
            message = f"The label {label} names no enabled agent of the registry and was ignored."
            yield f"{message} {did_you_mean(label, agents.values())}".strip()
    if not facts.token.triggers_workflows:
        yield (
            "GitHub holds the workflow runs that a push with this token causes until a person approves them on the "
            "pull request. Use the token of a GitHub App, or start the checks by workflow_dispatch."
        )
    checks = getattr(facts, "checks", None)
    if checks is not None and checks.held is None:
        yield (
            "The token cannot read workflow runs, so runs that wait for approval were not seen. Grant the job "
            "actions: read."
        )
    is_free = not state.cost_usd and all(run.cost_usd is None for run in state.history)
    has_succeeded = any(run.exit_code == "0" for run in state.history)  # a run that failed may have had no time to tell
    if facts.max_cost_usd is not None and is_free and has_succeeded:
        yield "The agent's runs report no cost, so `max_item_cost_usd` does not limit them."


def with_state(facts: FactsT, state: LoopState) -> FactsT:
    """Put another state into facts; ``running_has_ended`` holds only for the run that it was read for."""
    has_ended = facts.running_has_ended and state.running == facts.state.running
    return facts.model_copy(update={"state": state, "running_has_ended": has_ended})
