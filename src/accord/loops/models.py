"""What the loops know and decide: the facts of a pull request, the state that a loop keeps, and its decision.

Source: runner output contract, "Caller Expectations". A state is written and read by accord alone; facts are what a
workflow gathered. Both are closed: an unknown key is a mistake of the caller.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from accord.runner.models import Category, Recovery

Action = Literal["run", "fix", "wait", "stop", "defer"]
"""Run the agent, run it on failing checks, look again later by itself, end until a person acts, come back when the
rate limit allows.
"""


class Closed(BaseModel):
    """A model that refuses what it does not know and never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Budgets(Closed):
    """How often a loop may run the agent; a person may raise them in the pull request's settings.

    ``failures`` counts failures that need a change, ``transient`` those that pass by themselves; both in a row.
    ``wait_seconds`` is the first pause after a transient failure, doubled each time up to ``longest_wait_seconds``.
    """

    iterations: int = Field(5, ge=0, le=100)
    failures: int = Field(3, ge=1, le=20)
    transient: int = Field(3, ge=0, le=20)
    wait_seconds: int = Field(60, ge=0, le=86_400)
    longest_wait_seconds: int = Field(3600, ge=0, le=86_400)


class PullFacts(Closed):
    """The pull request as it is now. ``tasks_open`` of ``tasks_total`` checkboxes in its body are not ticked."""

    number: int
    is_open: bool
    is_merged: bool = False
    is_fork: bool = False
    head_sha: str
    head_ref: str = ""
    labels: tuple[str, ...] = ()
    tasks_total: int = 0
    tasks_open: int = 0


class CheckFacts(Closed):
    """The checks of one commit, by their names. ``seconds_since_push`` is the age of that commit on the branch."""

    head_sha: str
    passing: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    seconds_since_push: int = 0


class RateFacts(Closed):
    """What is left of the token's requests, and when there are more."""

    remaining: int = 5000
    resets_in_seconds: int = 0


class TokenFacts(Closed):
    """Whether what the loop's token pushes starts workflows: the job's own token never does."""

    triggers_workflows: bool = True


class Running(Closed):
    """An agent's run that began and has not been told of yet."""

    run_id: str
    head_sha: str
    started_at: str


class Iteration(Closed):
    """One run of the agent, as it ended. ``tree`` is the head's tree after it, ``error`` what identifies its error."""

    run_id: str
    number: int
    kind: Literal["run", "fix"] = "run"
    exit_code: str = "0"
    changes_made: bool = False
    head_sha: str = ""
    tree: str = ""
    category: Category | Literal[""] = ""
    recovery: Recovery | Literal[""] = ""
    error: str = ""
    retry_after_seconds: float | None = None
    tasks_done: int = 0
    seconds: float = 0
    cost_usd: float | None = None
    ended_at: str = ""


class LoopState(Closed):
    """What a loop remembers of one pull request. Counters only grow; ``*_in_a_row`` begin anew with a success.

    ``history`` holds the last iterations, newest last; older ones are in the artifact.
    """

    version: Literal[1] = 1
    loop: str = "keepalive"
    revision: int = 0
    iterations: int = 0
    failures_in_a_row: int = 0
    transient_in_a_row: int = 0
    running: Running | None = None
    history: tuple[Iteration, ...] = ()

    @property
    def last(self) -> Iteration | None:
        """The newest iteration."""
        return self.history[-1] if self.history else None


class KeepaliveFacts(Closed):
    """All that keepalive decides from. ``agents`` are the enabled agents of the registry, the default one first."""

    now: str
    pull: PullFacts
    checks: CheckFacts
    state: LoopState = LoopState()
    budgets: Budgets = Budgets()
    rate: RateFacts = RateFacts()
    token: TokenFacts = TokenFacts()
    agents: tuple[str, ...]


class Decision(Closed):
    """What to do and why. ``reason`` is a stable code, ``message`` a sentence for people.

    ``wait_seconds`` says when to look again, None when an event will tell. Labels are added and removed before the
    agent runs.
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
