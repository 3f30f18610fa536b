"""What every loop asks before it runs the agent, in this order; the first question that answers decides.

What a person says comes first, then what must never happen, then the budgets, then what passes by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from accord.loops.ledger import begun, lost_at, seconds_until_retry, settled, stands_still
from accord.loops.models import NEEDS_HUMAN, PERSONS_STOP, Decision, LoopFacts, LoopName, LoopState, decided
from accord.loops.settings import Settings, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from accord.loops.models import Running

KEEPALIVE = "agents:keepalive"
AUTOFIX = "autofix"
PAUSED = "agents:paused"
RETRY = "agent:retry"
ATTENTION = "agent:needs-attention"

NOT_AGENTS = frozenset({RETRY, ATTENTION})
"""Labels that look like an agent's and name none."""

SETTLING_SECONDS = 120
"""How long a commit without any check may still get one; GitHub starts workflows within seconds."""

REQUESTS_KEPT = 50
"""Requests that must be left: one evaluation and one publishing need fewer."""

Facts = TypeVar("Facts", bound=LoopFacts)


class Known(NamedTuple):
    """The facts as they are to be judged: the state brought up to now, and the budgets of this pull request."""

    facts: LoopFacts
    state: LoopState
    settings: Settings


def known(facts: LoopFacts) -> Known:
    """Bring facts up to now."""
    return Known(facts, settled(facts), settings_of(facts))


def settings_of(facts: LoopFacts) -> Settings:
    """Read the pull request's own settings, as far as they count."""
    return read_settings(facts.pull.body, facts.budgets, is_trusted=facts.pull.author_may_write)


def has(facts: LoopFacts, label: str) -> bool:
    """Tell whether the pull request carries a label; GitHub's labels have no case."""
    return any(name.casefold() == label for name in facts.pull.labels)


def first_answer(questions: Iterable[Callable[[Known], Decision | None]], about: Known) -> Decision | None:
    """Ask one after the other."""
    return next((decision for question in questions if (decision := question(about)) is not None), None)


def is_over(about: Known) -> Decision | None:
    """Ask whether the pull request still is."""
    if about.facts.pull.is_merged:
        return decided("merged", "The pull request is merged.")
    if not about.facts.pull.is_open:
        return decided("closed", "The pull request is closed.")
    return None


def is_stopped_by_a_person(about: Known) -> Decision | None:
    """Ask whether a label says stop."""
    if has(about.facts, PAUSED):
        return decided("paused", f"A person paused it. Remove the label {PAUSED} to go on.")
    if has(about.facts, NEEDS_HUMAN):
        return decided("needs-human", f"It waits for a person. Remove the label {NEEDS_HUMAN} to go on.")
    return None


def may_not_write(about: Known) -> Decision | None:
    """Ask whether anything that the agent does could be kept."""
    if about.facts.pull.is_fork:
        message = (
            "The branch is in a fork, where the workflow's token cannot push. Work on it there, or push the branch to "
            "this repository and open the pull request from it."
        )
        return decided("fork", message)
    if not about.facts.token.may_write:
        message = (
            "The token may only read, as it is for events of forks and of Dependabot. Grant the job contents: write "
            "and pull-requests: write, and start it by an event of this repository."
        )
        return decided("read-only-token", message)
    return None


def which_agent(about: Known) -> Decision | None:
    """Ask whether it is clear which agent works."""
    asked = agents_asked(about.facts)
    if len(asked) > 1:
        names = ", ".join(f"agent:{name}" for name in asked)
        return decided("agent-ambiguous", f"Several agents are asked for: {names}. Leave one of the labels.")
    if not about.facts.agents:
        return decided("agent-missing", "The registry has no enabled agent that may do this. Enable one.")
    return None


def agents_asked(facts: LoopFacts) -> tuple[str, ...]:
    """Name the agents of the registry that the labels ask for; other ``agent:`` labels are none."""
    return tuple(name for name in facts.agents if has(facts, f"agent:{name}".casefold()))


def agent_of(facts: LoopFacts) -> str:
    """Name the agent that works: the one that is asked for, else the default."""
    return (agents_asked(facts) or facts.agents)[0]


def is_running(about: Known) -> Decision | None:
    """Ask whether a run is under way."""
    running, now = about.state.running, about.facts.now
    if running is None:
        return None
    longest = lost_at(running) - running.started_at
    left = min(lost_at(running) - now, longest)
    message = f"Run {running.run_id} is under way."
    return decided("running", message, wait_seconds=int(left.total_seconds()) + 1)


def is_within_budgets(about: Known) -> Decision | None:
    """Ask whether a budget is used up."""
    state, budgets = about.state, about.settings.budgets
    go_on = f"Fix the cause, then remove the label {NEEDS_HUMAN}."
    if state.failures_in_a_row >= budgets.failures:
        return decided("failure-budget", f"{state.failures_in_a_row} runs failed without progress. {go_on}")
    if state.transient_in_a_row > budgets.transient:
        message = f"{state.transient_in_a_row} runs in a row ended by a failure that should pass. {go_on}"
        return decided("transient-budget", message)
    if state.iterations >= budgets.iterations:
        message = (
            f"All {budgets.iterations} runs are used. Raise max_iterations in the pull request's settings, then remove "
            f"the label {NEEDS_HUMAN}."
        )
        return decided("iteration-budget", message)
    return None


_NOTHING: dict[LoopName, str] = {"bot-comments": "no answered thread", "autofix": "no fixed check"}
"""What a run did not do, where it is no task that it works on."""


def is_getting_somewhere(about: Known) -> Decision | None:
    """Ask whether the last runs repeat each other."""
    repeated = stands_still(about.state)
    go_on = f"Say in the pull request what to do otherwise, then remove the label {NEEDS_HUMAN}."
    if repeated == "error":
        return decided("same-error", f"The same error ended two runs. {go_on}")
    if repeated == "tree":
        return decided(
            "no-progress",
            f"Two runs led to no new files and {_NOTHING.get(about.state.loop, 'no completed task')}. {go_on}",
        )
    return None


def has_requests_left(about: Known) -> Decision | None:
    """Ask whether the token has requests left."""
    rate = about.facts.rate
    if rate.remaining >= REQUESTS_KEPT:
        return None
    message = f"The token has too few requests left: {rate.remaining}."
    return decided("rate-limit", message, wait_seconds=rate.resets_in_seconds)


def is_pause_over(about: Known) -> Decision | None:
    """Ask whether the pause after a passing failure is over."""
    left = seconds_until_retry(about.state, about.settings.budgets, about.facts.now)
    if not left:
        return None
    message = f"The last run ended by a failure that should pass; the next may begin in {left} s."
    return decided("back-off", message, wait_seconds=left, add_labels=(RETRY,))


BEFORE_A_RUN: tuple[Callable[[Known], Decision | None], ...] = (
    is_running,
    is_within_budgets,
    is_getting_somewhere,
    has_requests_left,
    is_pause_over,
)
"""What is asked last by each loop, after what it asks about its own work."""


def finished(decision: Decision, about: Known) -> Decision:
    """Add what every decision says: warnings, and the label of a retry that is over."""
    facts = about.facts
    warnings = [*decision.warnings, *(finding.message for finding in about.settings.findings)]
    if decision.action in ("run", "fix"):
        warnings += _odd_labels(facts)
        if not facts.token.triggers_workflows:
            warnings.append(
                "What this token pushes starts no workflow, so no check will run on it. Use the token of an app, or "
                "start the checks by workflow_dispatch."
            )
    is_over = decision.action in ("run", "fix") or NEEDS_HUMAN in decision.add_labels or decision.reason in PERSONS_STOP
    removed = (*decision.remove_labels, RETRY) if is_over and has(facts, RETRY) else decision.remove_labels
    return decision.model_copy(update={"warnings": tuple(warnings), "remove_labels": removed})


def _odd_labels(facts: LoopFacts) -> list[str]:
    names = {f"agent:{name}".casefold() for name in facts.agents} | NOT_AGENTS
    odd = [
        label for label in facts.pull.labels if label.casefold().startswith("agent:") and label.casefold() not in names
    ]
    return [f"The label {label} names no enabled agent of the registry and was left out." for label in odd]


def begin(decide: Callable[[Facts], Decision], facts: Facts, state: LoopState, running: Running) -> LoopState | None:
    """Return the state in which this run is under way; None where these facts with this state lead to no run.

    For the compare-and-set of ``accord.loops.state``: a state that another run changed meanwhile is judged anew.
    """
    if state.running is not None and state.running.run_id == running.run_id:
        return state.model_copy(update={"running": state.running.model_copy(update={"about": running.about})})
    known_anew = anew(facts, state)
    return begun(settled(known_anew), running) if decide(known_anew).action in ("run", "fix") else None


def anew(facts: Facts, state: LoopState) -> Facts:
    """Put another state into facts; what was found out about a run under way is not said of another one."""
    has_ended = facts.running_has_ended and state.running == facts.state.running
    return facts.model_copy(update={"state": state, "running_has_ended": has_ended})


def has_switch_off(about: Known, loop: LoopName) -> Decision | None:
    """Ask whether the settings turn this loop off."""
    if _switch(about, loop) is False:
        return decided("disabled", f"The pull request's settings turn {loop} off.")
    return None


def is_asked_for(about: Known, loop: LoopName) -> Decision | None:
    """Ask whether this loop has a go-ahead: the settings turn it on, a label does, or one names an agent."""
    off = has_switch_off(about, loop)
    if off is not None or _switch(about, loop):
        return off
    labels = (KEEPALIVE, AUTOFIX) if loop == "autofix" else (KEEPALIVE,)
    if any(has(about.facts, label) for label in labels) or agents_asked(about.facts):
        return None
    setting = f"{loop.replace('-', '_')}_enabled"
    message = f"It is not asked for. Add the label agent:NAME of an agent, or {setting} to the settings."
    return decided("not-enabled", message)


def _switch(about: Known, loop: LoopName) -> bool | None:
    """Return what the settings say of a loop; None when nothing."""
    switch: bool | None = getattr(about.settings, loop.replace("-", "_"))
    return switch
