"""Facts, states and decisions of the loops.

Source: runner output contract, "Caller Expectations". Only accord writes and reads a state; facts come from a workflow
too. Both refuse unknown keys. Timestamps are ISO-8601 with a zone.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from accord.core.clock import time_in_range
from accord.core.frozen import Frozen
from accord.engine.trust import NEEDS_HUMAN, RefusedLabel
from accord.runner.causes import ErrorCategory, Recovery

LoopAction = Literal[
    "run", "fix", "update", "review", "announce", "wait", "stop", "defer", "report", "follow-up", "ask"
]
"""Run the agent, run it on failing checks, merge the base into the branch, start a review, tell a person that all is
done, look again later, stop until a person acts, or come back when the rate limit allows. After a verdict: report it,
report it and open a follow-up work item, or ask a person.
"""

LoopName = Literal["keepalive", "autofix", "verify", "bot-comments"]

Identifier = Annotated[str, StringConstraints(max_length=100)]
"""An identifier: a commit, a run, a digest. Its length is bounded, so that the state fits its comment."""

Time = Annotated[AwareDatetime, AfterValidator(time_in_range)]
Seconds = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]
Sentence = Annotated[str, StringConstraints(max_length=600)]
RUNS = ("run", "fix")
"""Actions that run the agent."""

ACTS = (*RUNS, "update", "review", "announce")
"""Actions that change more than the loop's own comment and labels; they need every fact."""


class Closed(BaseModel):
    """An immutable model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Budgets(Closed):
    """How often a loop may run the agent; the pull request's settings may change it within these bounds.

    ``iterations`` counts every run. ``failures`` counts failures in a row that need a change, ``transient`` those that
    pass by themselves. ``wait_seconds`` is the first pause after a transient failure; it doubles up to
    ``longest_wait_seconds``. ``approval_hours`` is how long workflow runs may wait for approval before a person is
    asked; GitHub deletes them after 30 days.
    """

    iterations: int = Field(5, ge=0, le=100)
    failures: int = Field(3, ge=1, le=20)
    transient: int = Field(3, ge=0, le=20)
    wait_seconds: int = Field(60, ge=0, le=86_400)
    longest_wait_seconds: int = Field(3600, ge=0, le=86_400)
    approval_hours: int = Field(24, ge=1, le=720)


class PullFacts(Closed):
    """The pull request; ``body`` holds its tasks and settings. ``is_mergeable`` is None until GitHub has computed it.

    ``is_ours``: an implementor's result opened it, from the branch of its work item. ``is_main``: its base is the
    default branch, so that GitHub closes items at its merge.

    Without ``author_may_write`` the body is untrusted, and its settings can only turn a loop off: anyone with read
    access can open a pull request from an existing branch.
    """

    number: int = Field(ge=1)
    is_open: bool
    is_merged: bool = False
    is_draft: bool = False
    is_fork: bool = False
    author_may_write: bool = True
    head_sha: Identifier
    labels: tuple[str, ...] = ()
    body: str = ""
    url: str = ""
    is_ours: bool = False
    is_main: bool = True
    is_mergeable: bool | None = None


class HeldRun(Closed):
    """A workflow run that GitHub holds until a person approves it."""

    id: int = Field(ge=1)
    name: str
    created_at: Time


class InconclusiveCheck(Closed):
    """A check that ended without a result; ``workflow_run`` is 0 where it is not a job of GitHub Actions.

    ``is_retried``: that run is not the first attempt.
    """

    name: str
    conclusion: Identifier = ""
    workflow_run: int = Field(0, ge=0)
    is_retried: bool = False


class CheckFacts(Closed):
    """The checks of one commit, by name, without the kit's own; ``seconds_since_push`` is the commit's age.

    ``held`` are the workflow runs that wait for approval, None if the token may not read them.
    """

    head_sha: Identifier
    passing: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    inconclusive: tuple[InconclusiveCheck, ...] = ()
    seconds_since_push: int = Field(0, ge=0)
    held: tuple[HeldRun, ...] | None = ()


class RateFacts(Closed):
    """How many requests the token has left, and when its limit resets."""

    remaining: int = Field(5000, ge=0)
    resets_in_seconds: int = Field(0, ge=0)


class TokenFacts(Closed):
    """Permissions of the loop's token. Workflow runs that the job's own token causes wait for a person's approval.

    On Enterprise Server versions without that rule it causes none.
    """

    triggers_workflows: bool = True
    may_write: bool = True


class GoAhead(Closed):
    """A person with write access removed the label ``needs-human`` at this time. The last such event counts."""

    by: str
    at: Time


class ActiveRun(Closed):
    """A run in progress and its time limit; ``about`` lists what the agent's answer refers to by number."""

    run_id: Identifier
    head_sha: Identifier
    started_at: Time
    minutes: int = Field(45, ge=1, le=6000)
    about: tuple[Identifier, ...] = Field((), max_length=50)


class Iteration(Closed):
    """One finished run of the agent.

    ``tasks_done`` counts what the loop is for: tasks ticked, threads answered, criteria judged. ``tree_before`` and
    ``tree`` are the head's trees before and after the run. ``error`` is a digest of the error, for comparison only.
    ``is_over_budget``: the run failed because its money was spent.
    """

    run_id: Identifier
    number: int = Field(ge=0)
    kind: Literal["run", "fix"] = "run"
    exit_code: Identifier = "0"
    changes_made: bool = False
    head_sha: Identifier = ""
    tree_before: Identifier = ""
    tree: Identifier = ""
    category: ErrorCategory | Literal[""] = ""
    recovery: Recovery | Literal[""] = ""
    error: Identifier = ""
    retry_after_seconds: Seconds | None = None
    tasks_done: int = Field(0, ge=0)
    seconds: Seconds = 0
    cost_usd: Seconds | None = None
    is_over_budget: bool = False
    ended_at: Time


class Notice(Closed):
    """The text above the comment's table: the last decision, and the last run's ``problem`` (untrusted)."""

    action: LoopAction
    reason: Identifier
    message: Sentence
    warnings: tuple[Sentence, ...] = Field((), max_length=5)
    problem: Sentence = ""


class PendingEffects(Closed):
    """Effects of a finished run that are not written yet; stored before any of it is written, removed afterwards.

    ``body`` is the digest of the ticked body, empty without ticks. ``item`` is the work item whose criteria are ticked,
    too; 0 without one. ``asks``: a comment asks a person. ``is_due``: start the loop again. ``about`` is that of the
    run.
    """

    run_id: Identifier
    body: Identifier = ""
    item: int = Field(0, ge=0)
    add_labels: tuple[Identifier, ...] = ()
    remove_labels: tuple[Identifier, ...] = ()
    asks: bool = False
    is_due: bool = False
    about: tuple[Identifier, ...] = Field((), max_length=50)


class LoopState(Closed):
    """The stored state of a loop on one pull request.

    ``iterations`` only grows. ``*_in_a_row`` restart with progress, or with a person's go-ahead at ``resumed_at``.
    ``verified`` is the commit with a verdict. ``worked_in`` is the newest review that a successful run worked in,
    ``review_of`` the head for which a review was started. ``started_run`` is the workflow run that was started for the
    notice, 0 without one or where GitHub does not tell. ``cost_usd`` is what all runs cost,
    as far as agents say so. ``history`` holds the last iterations, newest last. Only the
    store sets ``revision``, the number of writes.
    """

    version: Literal[1] = 1
    loop: LoopName = "keepalive"
    revision: int = Field(0, ge=0)
    iterations: int = Field(0, ge=0)
    failures_in_a_row: int = Field(0, ge=0)
    transient_in_a_row: int = Field(0, ge=0)
    resumed_at: Time | None = None
    verified: Identifier = ""
    worked_in: int = Field(0, ge=0)
    review_of: Identifier = ""
    started_run: int = Field(0, ge=0)
    cost_usd: Seconds = 0
    running: ActiveRun | None = None
    pending: PendingEffects | None = None
    notice: Notice | None = None
    history: tuple[Iteration, ...] = ()

    @property
    def last(self) -> Iteration | None:
        """The newest iteration."""
        return self.history[-1] if self.history else None


class LoopFacts(Closed):
    """The facts of every loop. A fact that is None was not read."""

    now: Time
    pull: PullFacts
    state: LoopState = LoopState()
    budgets: Budgets = Budgets()
    rate: RateFacts | None = None
    token: TokenFacts = TokenFacts()
    agents: tuple[str, ...]  # enabled in the registry for this work, the default first
    go_ahead: GoAhead | None = None
    running_has_ended: bool = False  # GitHub says that the run of state.running is over, though the state does not
    max_cost_usd: Seconds | None = None  # of all runs on the pull request
    is_item_open: bool | None = None  # the item that a result opened the pull request for
    refused_labels: tuple[RefusedLabel, ...] | None = ()  # of the pull request; they do not count, for who set them
    text_changed: str = ""  # why the text to work on is not the one that was approved, empty where it is


class LoopDecision(Closed):
    """What to do and why. Labels change before the agent runs."""

    action: LoopAction
    reason: str  # a key of REASONS
    message: str  # a sentence for people
    agent: str = ""
    iteration: int = 0
    wait_seconds: int | None = None  # when to look again; None when an event will tell
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    appendix: str = ""  # of the agent's prompt
    about: str = ""  # the subject of a question to a person, who is asked once about each
    started_run: int = 0  # the workflow run that was started for it, 0 where GitHub does not tell


ALL: tuple[LoopName, ...] = get_args(LoopName)
PULLS: tuple[LoopName, ...] = ("keepalive", "autofix", "bot-comments")
"""The loops that change an open pull request."""

CHECKS: tuple[LoopName, ...] = ("keepalive", "autofix")
APPROVALS = ("checks-held", "checks-not-approved", "checks-inconclusive")
"""Reasons that wait for what a person does with workflow runs, and that the comment shows."""

PERSONS_STOP = ("paused", "needs-human", "not-enabled", "disabled")
"""Reasons by which a person stops a loop: a label added or removed, or a setting."""


class Reason(Frozen):
    """``asks``: the label ``needs-human`` is added."""

    action: LoopAction
    meaning: str
    loops: tuple[LoopName, ...] = ALL
    asks: bool = False


REASONS: dict[str, Reason] = {
    "merged": Reason("stop", "The pull request is merged.", PULLS),
    "closed": Reason("stop", "The pull request is closed.", PULLS),
    "paused": Reason("stop", "It carries `agents:paused`."),
    "needs-human": Reason("stop", "It carries `needs-human`."),
    "item-closed": Reason("stop", "The work item that it was opened for is closed.", ("keepalive",), asks=True),
    "unmergeable": Reason("update", "It cannot be merged: its base is merged into it.", ("keepalive",)),
    "conflict": Reason("stop", "Its base cannot be merged into it.", ("keepalive",), asks=True),
    "not-enabled": Reason("stop", "No label turns the loop on.", PULLS),
    "label-not-allowed": Reason("stop", "Someone without write access set the label that turns it on.", PULLS),
    "disabled": Reason("stop", "The pull request's settings turn it off.", PULLS),
    "fork": Reason("stop", "The branch is in a fork.", PULLS),
    "read-only-token": Reason("stop", "The token cannot write."),
    "text-changed": Reason("stop", "The text was changed without write access.", ("keepalive", "verify"), asks=True),
    "agent-ambiguous": Reason("stop", "Labels name several agents.", asks=True),
    "agent-missing": Reason("stop", "The registry has no agent for this.", asks=True),
    "keepalive-in-charge": Reason("stop", "Keepalive fixes its checks.", ("autofix",)),
    "no-tasks": Reason("stop", "The body has no checklist.", ("keepalive",)),
    "running": Reason("wait", "A run is in progress."),
    "announced": Reason("stop", "All is done, and a person was notified.", ("keepalive",)),
    "tasks-complete": Reason("stop", "Every task is ticked; a green, reviewed head is missing.", ("keepalive",)),
    "failure-budget": Reason("stop", "Too many runs failed in a row.", asks=True),
    "transient-budget": Reason("stop", "Too many transient failures came in a row.", asks=True),
    "iteration-budget": Reason("stop", "The budget of runs is used up.", asks=True),
    "cost-budget": Reason("stop", "The money for this pull request is spent.", asks=True),
    "same-error": Reason("stop", "Two runs failed with the same error.", asks=True),
    "no-progress": Reason("stop", "Two runs made no progress.", asks=True),
    "manual-failure": Reason("stop", "The last run failed for good.", asks=True),
    "rate-limit": Reason("defer", "The token has too few requests left."),
    "back-off": Reason("wait", "The pause after a transient failure is not over."),
    "stale-checks": Reason("wait", "The checks belong to another commit.", CHECKS),
    "checks-not-approved": Reason("stop", "Held runs waited longer than `approval_hours`.", CHECKS, asks=True),
    "checks-held": Reason("wait", "Workflow runs wait for a person's approval.", CHECKS),
    "checks-pending": Reason("wait", "Checks are not finished.", CHECKS),
    "checks-red": Reason("wait", "Checks fail, and fixing is off.", ("keepalive",)),
    "checks-failing": Reason("fix", "Checks fail.", CHECKS),
    "checks-inconclusive": Reason("wait", "Checks ended without a result, such as cancelled ones.", CHECKS),
    "checks-missing": Reason("wait", "No check has started yet.", CHECKS),
    "checks-green": Reason("stop", "No check fails.", ("autofix",)),
    "changes-requested": Reason("run", "A review requests changes.", ("keepalive",)),
    "retry": Reason("run", "Tasks are open, after a transient failure.", ("keepalive",)),
    "tasks-open": Reason("run", "Tasks are open and no check fails.", ("keepalive",)),
    "merge-unknown": Reason("wait", "GitHub does not know yet whether it can be merged.", ("keepalive",)),
    "review-due": Reason("review", "All is ticked and green, without a review.", ("keepalive",)),
    "complete": Reason("announce", "Tasks, checks and review are done: it can be merged.", ("keepalive",)),
    "threads-open": Reason("run", "Bots wait for answers in review threads.", ("bot-comments",)),
    "no-threads": Reason("stop", "No bot waits for an answer.", ("bot-comments",)),
    "not-merged": Reason("stop", "It is not merged, and no person asked.", ("verify",)),
    "fork-unmerged": Reason("stop", "It comes from a fork and is not merged.", ("verify",)),
    "already-verified": Reason("stop", "This commit already has a verdict.", ("verify",)),
    "no-work-item": Reason("stop", "No work item is linked.", ("verify",)),
    "no-criteria": Reason("stop", "No linked work item has acceptance criteria.", ("verify",)),
    "verify-merged": Reason("run", "The pull request is merged.", ("verify",)),
    "verify-asked": Reason("run", "A person requested it.", ("verify",)),
    "verdict-pass": Reason("report", "Every criterion is met.", ("verify",)),
    "verdict-fail": Reason("follow-up", "Some criteria are not met; the verdict proposes the rest.", ("verify",)),
    "verdict-unsure": Reason("ask", "The verdict is unsure.", ("verify",), asks=True),
    "verdict-missing": Reason("ask", "The run ended without a verdict.", ("verify",), asks=True),
    "verdict-inconsistent": Reason("ask", "The verdict contradicts itself or is incomplete.", ("verify",), asks=True),
    "follow-up-empty": Reason("ask", "Criteria are not met; the verdict proposes nothing.", ("verify",), asks=True),
    "follow-up-chain": Reason("ask", "The work item is itself a follow-up.", ("verify",), asks=True),
}


def decision_for(code: str, message: str, **more: Any) -> LoopDecision:
    """Return the decision for a reason; ``more`` are its other fields."""
    reason = REASONS[code]
    if reason.asks:
        more["add_labels"] = (*more.get("add_labels", ()), NEEDS_HUMAN)
    return LoopDecision(action=reason.action, reason=code, message=message, **more)
