"""What the loops know and decide: the facts of a pull request, the state that a loop keeps, and its decision.

Source: runner output contract, "Caller Expectations". A state is written and read by accord alone; facts are what a
workflow gathered. Both are closed: an unknown key is a mistake of the caller. Moments are ISO-8601 with a zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from accord.runner.models import Category, Recovery

Action = Literal["run", "fix", "wait", "stop", "defer", "report", "follow-up", "ask"]
"""Run the agent, run it on failing checks, look again later by itself, end until a person acts, come back when the
rate limit allows. What follows a verdict: tell it, tell it and open a follow-up work item, or ask a person.
"""

LoopName = Literal["keepalive", "autofix", "verify", "bot-comments"]

Word = Annotated[str, StringConstraints(max_length=100)]
"""An identifier: a commit, a run, a digest. Bounded, so that the state fits the comment that holds it."""

Seconds = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


class Closed(BaseModel):
    """A model that refuses what it does not know and never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Budgets(Closed):
    """How often a loop may run the agent; a person may change it in the pull request's settings, within these bounds.

    ``iterations`` counts every run that began. ``failures`` counts failures that need a change, ``transient`` those
    that pass by themselves; both in a row. ``wait_seconds`` is the first pause after a transient failure, doubled each
    time up to ``longest_wait_seconds``.
    """

    iterations: int = Field(5, ge=0, le=100)
    failures: int = Field(3, ge=1, le=20)
    transient: int = Field(3, ge=0, le=20)
    wait_seconds: int = Field(60, ge=0, le=86_400)
    longest_wait_seconds: int = Field(3600, ge=0, le=86_400)


class PullFacts(Closed):
    """The pull request as it is now; ``body`` holds its tasks and settings.

    Where not ``author_may_write``, the body is a stranger's, and its settings can only turn a loop off. Anybody who
    may read a repository may open a pull request of one of its branches.
    """

    number: int = Field(ge=1)
    is_open: bool
    is_merged: bool = False
    is_fork: bool = False
    author_may_write: bool = True
    head_sha: Word
    labels: tuple[str, ...] = ()
    body: str = ""


class CheckFacts(Closed):
    """The checks of one commit, by their names. ``seconds_since_push`` is the age of that commit on the branch.

    The check of the loop's own workflow must be left out, or it would wait for itself.
    """

    head_sha: Word
    passing: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    seconds_since_push: int = Field(0, ge=0)


class RateFacts(Closed):
    """What is left of the token's requests, and when there are more."""

    remaining: int = Field(5000, ge=0)
    resets_in_seconds: int = Field(0, ge=0)


class TokenFacts(Closed):
    """What the loop's token may do, and whether what it pushes starts workflows: the job's own token never does."""

    triggers_workflows: bool = True
    may_write: bool = True


class GoAhead(Closed):
    """A person who may write here took the label ``needs-human`` off, at that moment.

    The last event of that kind counts, and only one by a person; a program that removes labels gives no go-ahead.
    """

    by: str
    at: AwareDatetime


class Running(Closed):
    """An agent's run that began and has not been told of yet; ``minutes`` is its own time limit.

    ``about`` is what its answer refers to by number, as it was when the run began.
    """

    run_id: Word
    head_sha: Word
    started_at: AwareDatetime
    minutes: int = Field(45, ge=1, le=6000)
    about: tuple[Word, ...] = Field((), max_length=50)


class Iteration(Closed):
    """One run of the agent, as it ended.

    ``tasks_done`` counts what the loop is for: tasks ticked, threads answered, criteria judged. ``tree_before`` and
    ``tree`` are the trees of the head before and after it; ``error`` identifies its error, so that
    two can be compared, and says nothing else.
    """

    run_id: Word
    number: int = Field(ge=0)
    kind: Literal["run", "fix"] = "run"
    exit_code: Word = "0"
    changes_made: bool = False
    head_sha: Word = ""
    tree_before: Word = ""
    tree: Word = ""
    category: Category | Literal[""] = ""
    recovery: Recovery | Literal[""] = ""
    error: Word = ""
    retry_after_seconds: Seconds | None = None
    tasks_done: int = Field(0, ge=0)
    seconds: Seconds = 0
    cost_usd: Seconds | None = None
    ended_at: AwareDatetime


Sentence = Annotated[str, StringConstraints(max_length=600)]


class Told(Closed):
    """What the comment says above its table: the last decision, and ``said`` of the last failure, text of others."""

    action: Action
    reason: Word
    message: Sentence
    warnings: tuple[Sentence, ...] = Field((), max_length=5)
    said: Sentence = ""


class Ending(Closed):
    """What is left to do for a run that ended: decided and written down before any of it is done.

    ``body`` identifies the body that the ticks lead to, empty without any. ``asks`` says that a comment asks a person,
    ``is_due`` that the loop is to be started again. ``about`` is the run's. All
    of it is gone when it is done.
    """

    run_id: Word
    body: Word = ""
    add_labels: tuple[Word, ...] = ()
    remove_labels: tuple[Word, ...] = ()
    asks: bool = False
    is_due: bool = False
    about: tuple[Word, ...] = Field((), max_length=50)


class LoopState(Closed):
    """What a loop remembers of one pull request.

    ``iterations`` only grows. ``*_in_a_row`` begin anew with progress, or with a person's go-ahead at ``resumed_at``.
    ``verified`` is the commit that has a verdict. ``history`` holds the last iterations, newest last. ``revision``
    counts the writes; the store alone sets it.
    """

    version: Literal[1] = 1
    loop: LoopName = "keepalive"
    revision: int = Field(0, ge=0)
    iterations: int = Field(0, ge=0)
    failures_in_a_row: int = Field(0, ge=0)
    transient_in_a_row: int = Field(0, ge=0)
    resumed_at: AwareDatetime | None = None
    verified: Word = ""
    running: Running | None = None
    ending: Ending | None = None
    told: Told | None = None
    history: tuple[Iteration, ...] = ()

    @property
    def last(self) -> Iteration | None:
        """The newest iteration."""
        return self.history[-1] if self.history else None


class LoopFacts(Closed):
    """What every loop decides from.

    ``agents`` are the enabled agents of the registry that may do this work, the default one first.
    ``running_has_ended`` says that the workflow run of ``state.running`` is over by GitHub's account, though nobody
    told the state.
    """

    now: AwareDatetime
    pull: PullFacts
    state: LoopState = LoopState()
    budgets: Budgets = Budgets()
    rate: RateFacts = RateFacts()
    token: TokenFacts = TokenFacts()
    agents: tuple[str, ...]
    go_ahead: GoAhead | None = None
    running_has_ended: bool = False


class Decision(Closed):
    """What to do and why. ``reason`` is a stable code (``accord.loops.models``), ``message`` a sentence for people.

    ``wait_seconds`` says when to look again, None when an event will tell. Labels are added and removed before the
    agent runs. ``appendix`` is what the agent's prompt is to be extended by.
    """

    action: Action
    reason: str
    message: str
    agent: str = ""
    iteration: int = 0
    wait_seconds: int | None = None
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    appendix: str = ""


NEEDS_HUMAN = "needs-human"
ALL: tuple[LoopName, ...] = get_args(LoopName)
PULLS: tuple[LoopName, ...] = ("keepalive", "autofix", "bot-comments")
"""The loops that change a pull request which is still open."""

CHECKS: tuple[LoopName, ...] = ("keepalive", "autofix")


PERSONS_STOP = ("paused", "needs-human", "not-enabled", "disabled")
"""Reasons by which a person stops a loop that could go on: a label put on or taken off, or a word in the settings."""


@dataclass(frozen=True)
class Reason:
    """``asks`` says that the label ``needs-human`` is put on."""

    action: Action
    meaning: str
    loops: tuple[LoopName, ...] = ALL
    asks: bool = False


REASONS: dict[str, Reason] = {
    "merged": Reason("stop", "The pull request is merged.", PULLS),
    "closed": Reason("stop", "The pull request is closed.", PULLS),
    "paused": Reason("stop", "It carries `agents:paused`."),
    "needs-human": Reason("stop", "It carries `needs-human`."),
    "not-enabled": Reason("stop", "No label asks for it.", PULLS),
    "disabled": Reason("stop", "The pull request's settings turn it off.", PULLS),
    "fork": Reason("stop", "The branch is in a fork, where the token cannot push.", PULLS),
    "read-only-token": Reason("stop", "The token may not write."),
    "agent-ambiguous": Reason("stop", "Labels ask for several agents of the registry.", asks=True),
    "agent-missing": Reason("stop", "The registry has no enabled agent that may do this.", asks=True),
    "keepalive-in-charge": Reason("stop", "Keepalive works on this pull request and fixes its checks.", ("autofix",)),
    "no-tasks": Reason("stop", "The body has no checklist.", ("keepalive",)),
    "tasks-complete": Reason("stop", "Every task is ticked.", ("keepalive",)),
    "running": Reason("wait", "A run is under way."),
    "failure-budget": Reason("stop", "So many runs in a row failed as the budget allows.", asks=True),
    "transient-budget": Reason("stop", "More passing failures in a row than the budget allows.", asks=True),
    "iteration-budget": Reason("stop", "All runs that the budget allows have begun.", asks=True),
    "same-error": Reason("stop", "Two failures came from the same error, without progress between them.", asks=True),
    "no-progress": Reason("stop", "Two runs left files that were seen before, and no task was completed.", asks=True),
    "rate-limit": Reason("defer", "The token has too few requests left."),
    "back-off": Reason("wait", "The last run ended by a failure that should pass; the pause is not over."),
    "stale-checks": Reason("wait", "The checks are those of another commit than the head.", CHECKS),
    "checks-pending": Reason("wait", "Checks of the head are not done.", CHECKS),
    "checks-missing": Reason("wait", "No check has begun for this head yet.", CHECKS),
    "checks-red": Reason("wait", "Checks fail, and the settings turn fixing off.", ("keepalive",)),
    "checks-failing": Reason("fix", "Checks of the head fail.", CHECKS),
    "checks-green": Reason("stop", "No check of the head fails.", ("autofix",)),
    "tasks-open": Reason("run", "Tasks are open and no check of the head fails.", ("keepalive",)),
    "retry": Reason("run", "The same, after a failure that should have passed.", ("keepalive",)),
    "threads-open": Reason("run", "Bots wait for answers in review threads.", ("bot-comments",)),
    "no-threads": Reason("stop", "No bot waits for an answer.", ("bot-comments",)),
    "not-merged": Reason("stop", "The pull request is not merged, and nobody asked.", ("verify",)),
    "fork-unmerged": Reason(
        "stop", "It comes from a fork and is not merged, so its code is a stranger's.", ("verify",)
    ),
    "already-verified": Reason("stop", "This very commit has a verdict.", ("verify",)),
    "no-work-item": Reason("stop", "No work item is linked.", ("verify",)),
    "no-criteria": Reason("stop", "No linked work item has acceptance criteria.", ("verify",)),
    "verify-merged": Reason("run", "The pull request is merged.", ("verify",)),
    "verify-asked": Reason("run", "A person asked for it.", ("verify",)),
    "verdict-pass": Reason("report", "Every criterion is met.", ("verify",)),
    "verdict-fail": Reason("follow-up", "Criteria are not met, and the verdict says what is left.", ("verify",)),
    "verdict-unsure": Reason("ask", "The verdict leaves open whether the criteria are met.", ("verify",), asks=True),
    "verdict-missing": Reason("ask", "The run ended without a verdict.", ("verify",), asks=True),
    "verdict-inconsistent": Reason("ask", "The verdict contradicts itself or misses criteria.", ("verify",), asks=True),
    "follow-up-empty": Reason("ask", "Criteria are not met, and the verdict proposes nothing.", ("verify",), asks=True),
    "follow-up-chain": Reason("ask", "The work item is a follow-up itself.", ("verify",), asks=True),
}


def decided(code: str, message: str, **more: Any) -> Decision:
    """Make the decision of a reason; ``more`` are its other fields."""
    reason = REASONS[code]
    if reason.asks:
        more["add_labels"] = (*more.get("add_labels", ()), NEEDS_HUMAN)
    return Decision(action=reason.action, reason=code, message=message, **more)
