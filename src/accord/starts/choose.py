"""Decide what an event asks for: a start, a stop, an answer, or nothing. Pure."""

from __future__ import annotations

from datetime import datetime

from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.engine.owner import PullState, next_statuses, owner_of, unclosed_text
from accord.engine.trust import RefusedLabel, names_agent
from accord.github.models import Issue, Pull
from accord.results.labels import STATUSES
from accord.results.status import is_work_item, item_state, status_if_clear, type_findings
from accord.starts.config import AccordConfig
from accord.starts.models import (
    ACTIVE,
    AGENT_PREFIX,
    COMMANDS,
    PLAN_LABEL,
    REVIEW_LABEL,
    StartEvent,
    Trigger,
    Work,
)
from accord.starts.status import StatusView
from accord.text.markdown import as_code


class Begin(Frozen):
    """Start this work with an agent, empty for the registry's default."""

    work: Work
    agent: str = ""


class Halt(Frozen):
    """Stop the running work, and on a pull request its loops."""


class Answer(Frozen):
    """Start nothing, and say why in the status comment; where ``is_silent``, only in the summary of the step."""

    text: str
    is_silent: bool = False


StartChoice = Begin | Halt | Answer


class ItemFacts(Frozen):
    """The issue or pull request of an event, and its status."""

    issue: Issue
    view: StatusView
    is_busy: bool = False  # its last start goes on
    agents: tuple[str, ...] | None = None  # the enabled ones, None where they were not read
    is_dashboard: bool = False  # the issue is the dashboard
    head: str = ""  # the commit of a pull request that the sender saw, empty where no one can tell
    pull: PullState | None = None  # the newest one of an item after its work
    refused: tuple[RefusedLabel, ...] = ()  # labels of agents that do not count


def head_at(pull: Pull, at: datetime, repository: str) -> str:
    """Return the head that a pull request had at a time; empty where no one can tell.

    Only people with write access push to the repository. To a fork anyone may have pushed since, if anything changed.
    """
    is_fork = pull.head_repository.lower() != repository.lower()
    is_unchanged = pull.updated_at is not None and pull.updated_at <= at
    return pull.head_sha if is_unchanged or not is_fork else ""


HEAD_UNKNOWN = "#{} comes from a fork and changed after the review was asked for. Look at its head, then ask again."


def check_event(event: StartEvent, config: AccordConfig) -> str:
    """Return why an event starts nothing, before anything is read about it; empty if it may start something."""
    if not getattr(config.starts, event.trigger.value.replace("-", "_")):
        return f"`{event.trigger.value}` is off under `starts` in the configuration."
    if event.is_bot and event.trigger not in (Trigger.CLOSED, Trigger.MERGED):
        return (
            "The event was caused by a bot, and bots start nothing. "
            "To start it, comment a command such as `/accord review`."
        )
    label, starts = event.word.lower(), REVIEW_LABEL if event.is_pull else PLAN_LABEL
    if event.trigger is Trigger.LABEL and label != starts and (event.is_pull or not names_agent(label)):
        return "This label starts nothing."
    if event.is_fork:
        is_merge = event.trigger is Trigger.MERGED
        todo = "`accord status` says how to close its items." if is_merge else "Comment `/accord review` on it instead."
        return f"#{event.number} comes from a fork, so the token of this event can only read. {todo}"
    if event.is_draft and event.trigger is Trigger.PULL:
        return f"#{event.number} is a draft. Its review starts when it is marked as ready."
    return ""


def choose(event: StartEvent, facts: ItemFacts) -> StartChoice:
    """Decide what an event of an issue or pull request asks for. Its sender may write."""
    if event.key in facts.view.status.answered:
        return Answer("This event was answered before.", is_silent=True)
    known = facts.view.status.row(event.key)
    if known is not None:
        return Begin(known.work, known.agent)
    word = event.word.lower()
    if event.trigger is Trigger.COMMENT:
        if answer := _answer_wrong_command(event, facts):
            return answer
        choice = _command(word, facts)
        if isinstance(choice, Begin) and word == "implement" and event.has_more_words:
            such_as = f", such as `{AGENT_PREFIX}{facts.agents[0]}`," if facts.agents else ""
            choice = Answer(
                "Words after `/accord implement` are not read, so nothing was started. Comment it alone, or add the "
                f"label of an agent{such_as} to start it with that agent."
            )
    elif event.trigger is Trigger.DASHBOARD:
        choice = _command(word, facts)
    elif event.trigger is Trigger.LABEL:
        commands = {PLAN_LABEL: "plan", REVIEW_LABEL: "review"}
        choice = _command(commands.get(word, "implement"), facts, word.removeprefix(AGENT_PREFIX))
    else:
        choice = _review(facts)
    if isinstance(choice, Begin) and facts.is_busy:
        choice = Answer("Something runs here already. Comment `/accord stop` to stop it, then ask again.")
    is_automatic = event.trigger in (Trigger.PULL, Trigger.REVIEW_REQUEST)
    return Answer(choice.text, is_silent=True) if isinstance(choice, Answer) and is_automatic else choice


def _answer_wrong_command(event: StartEvent, facts: ItemFacts) -> Answer | None:
    word = event.word.lower()
    if word not in COMMANDS:
        known = ", ".join(f"`/accord {command}`" for command in COMMANDS)
        problem = f"Unknown command `/accord {word}`. {did_you_mean(word, COMMANDS)}".rstrip()
        return Answer(f"{problem if word else 'No command after `/accord`.'} Use one of {known}.")
    if facts.is_dashboard:
        problem = f"#{event.named} does not exist. " if event.named else "This is the dashboard. "
        return Answer(f"{problem}Name an item here: `/accord {word} #12`.")
    if event.named and event.named != event.number:
        return Answer(f"This comment names #{event.named}. Comment `/accord {word}` there, or here without the number.")
    return None


def _command(word: str, facts: ItemFacts, agent: str = "", *, is_retry: bool = False) -> StartChoice:
    last = facts.view.status.last
    if word == "stop":
        is_active = last is not None and last.state in ACTIVE
        return Halt() if is_active or facts.issue.is_pull else Answer("Nothing runs here, so there is nothing to stop.")
    if word == "retry":
        if last is None:
            return Answer("There is nothing to retry: accord has not started anything here yet.")
        return _command(last.work, facts, last.agent, is_retry=True)
    if word == "plan":
        return _plan(facts.issue)
    if word == "review":
        return _review(facts)
    return _implement(facts, agent, is_retry=is_retry)


def _plan(issue: Issue) -> StartChoice:
    if issue.is_pull:
        return Answer("A pull request cannot be planned. Comment `/accord review` to review it.")
    if is_work_item(issue):
        return Answer(f"#{issue.number} is a work item already. Comment `/accord implement` to start on it.")
    return Begin("plan") if issue.is_open else _answer_closed(issue)


def _review(facts: ItemFacts) -> StartChoice:
    if not facts.issue.is_pull:
        return Answer("Only a pull request can be reviewed. Comment `/accord review` there.")
    if not facts.issue.is_open:
        return _answer_closed(facts.issue)
    return Begin("review") if facts.head else Answer(HEAD_UNKNOWN.format(facts.issue.number))


def _answer_closed(issue: Issue) -> Answer:
    return Answer(f"#{issue.number} is closed. Reopen it first.")


def _implement(facts: ItemFacts, agent: str, *, is_retry: bool = False) -> StartChoice:
    issue = facts.issue
    if issue.is_pull:
        return Answer("Only a work item can be implemented. Comment `/accord implement` there.")
    if not is_work_item(issue):
        return Answer(f"#{issue.number} is not a work item. Comment `/accord plan` to turn it into work items.")
    if not issue.is_open:
        return _answer_closed(issue)
    for found in type_findings(issue):
        return Answer(found.text)
    status = status_if_clear(issue)
    if status != "ready" and not (is_retry and status == "in-progress"):
        return Answer(_unready(issue, status, facts.pull))
    if facts.refused and not agent:
        return Answer(facts.refused[0].text)
    named = [label for label in map(str.lower, issue.labels) if names_agent(label)]
    agent = agent or (named[0].removeprefix(AGENT_PREFIX) if len(named) == 1 else "")
    agents = facts.agents or ()
    if agent and agent not in agents:
        known = ", ".join(map(as_code, agents))
        return Answer(f"No enabled agent has this name. {did_you_mean(agent, agents)} Use one of {known}.")
    return Begin("implement", agent)


def _unready(issue: Issue, status: str | None, pull: PullState | None) -> str:
    number, owner = issue.number, owner_of(item_state(issue), pull)
    if status is None:
        return f"#{number} does not have exactly one status label. Keep one of {', '.join(map(as_code, STATUSES))}."
    ways = {
        "pending": f"Run `accord items move {number} --to ready`, or replace `status:pending` with `status:ready`.",
        "in-progress": "If its run failed, comment `/accord retry`.",
        "review": f"It has the pull request #{owner.pull}. Comment `/accord review` there.",
        "approved": f"It has the approved pull request #{owner.pull}. Merge that.",
    }
    if status in ("review", "approved") and (pull is None or pull.state != "open" or not pull.closes):
        moves = [f"`accord items move {number} --to {step}`" for step in next_statuses(owner, status)]
        todo = f"Run {', then '.join(moves)}" if moves else "See `accord status`"
        return f"#{number} is {status}: {unclosed_text(owner, number)}. {todo}."
    back = f"Solve what it waits for, run `accord items move {number} --to pending`, then `--to ready`."
    return f"#{number} is {status}, and only a ready work item can be implemented. {ways.get(status, back)}"
