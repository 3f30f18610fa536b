"""Reading the facts of a loop from GitHub, stage by stage, in the order in which the loop asks.

Facts that are not read yet are None, and no question decides on them. Before each stage the loop decides on what is
known. A decision not to run the agent is final, and nothing more is read: a paused pull request costs one request.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from accord.core.clock import Clock
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.core.log import log
from accord.engine.operations import OperationLog
from accord.engine.owner import items_of_result, pull_state
from accord.engine.trust import NEEDS_HUMAN, approved_at, check_text, go_ahead_in, is_steering, refused_labels
from accord.git.configuration import item_of_branch
from accord.github.checks import Check
from accord.github.client import GitHub, LabelEvent
from accord.github.models import Forbidden, Identity, Pull
from accord.github.state import Stored
from accord.loops.ledger import state_before, without_future
from accord.loops.models import (
    ACTS,
    APPROVALS,
    ActiveRun,
    GoAhead,
    Iteration,
    LoopDecision,
    LoopFacts,
    LoopName,
    LoopState,
    PendingEffects,
    PullFacts,
    RateFacts,
    TokenFacts,
)
from accord.loops.outputs import iteration_of
from accord.loops.questions import KEEPALIVE, Question, Situation, first_decision, situation_of, with_state
from accord.loops.settings import may_have_settings
from accord.loops.state import StateStore, with_notice
from accord.loops.texts import Poster
from accord.runner.models import RunOutputs
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

if TYPE_CHECKING:
    from accord.git.branches import Remote


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

PARDONABLE = ("failure-budget", "transient-budget", "same-error", "no-progress", "manual-failure")
"""Reasons that a person's go-ahead overrules; only then is the go-ahead read."""


class LoopContext(Frozen):
    """A pull request, and the job that works on it."""

    github: GitHub
    repository: str
    number: int
    run_id: str  # the workflow run, or the run at a terminal; the same command has the same one
    agents: tuple[str, ...]  # the enabled ones, the default first
    clock: Clock
    redact: Redactor
    policy: PostingPolicy
    token: TokenFacts = field(default_factory=TokenFacts)
    minutes: int = 45  # limit of a run that begins
    max_cost_usd: float | None = None  # limit of all runs on the pull request
    bots: tuple[str, ...] = ()  # logins whose review threads are answered
    review_workflow: str = ""  # file of the workflow that reviews
    remote: Remote | None = None  # the repository for git
    is_asked: bool = False  # a person requested a verdict
    commenter: str = ""  # who requested it by a comment
    by_person: bool = False  # a person's action started this job, so a person reads the result
    workflow: str = ""  # path of the workflow file of this job
    log: OperationLog = field(default_factory=OperationLog)  # what the turn writes
    stores: dict[str, StateStore] = field(default_factory=dict, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """Our own login: one request, once."""
        return self.github.identity()

    @property
    def post(self) -> Poster:
        """The secrets and the policy of this job, for texts that are posted."""
        return Poster(self.redact, self.policy)

    def store(self, loop: LoopName) -> StateStore:
        """Return the store of a loop's state."""
        if loop not in self.stores:
            self.stores[loop] = StateStore(self.github, self.number, loop, self.identity.counts, self.log)
        return self.stores[loop]

    def with_notice(self, state: LoopState, decision: LoopDecision, problem: str = "") -> LoopState:
        """Put a decision and a problem into a state's notice, safe to post."""
        return with_notice(state, decision, self.post, problem)

    def pull(self) -> Pull:
        """Read the pull request. Raises BrokenContract when it does not exist."""
        pull = self.github.pull(self.number)
        if pull is None:
            message = f"{self.repository} has no pull request #{self.number}."
            hint = "Pass the number of an existing one with `--pull`."
            raise BrokenContract.of(Finding("unknown-reference", message, hint=hint))
        return pull

    def is_trusted(self, author: str) -> bool:
        """Tell whether an author's text may start the agent."""
        return self.github.is_trusted(author, lambda: self.identity)

    def is_ours(self, pull: Pull) -> bool:
        """Tell whether an implementor's result opened a pull request; our own login is read only for what says so."""
        is_of_result = item_of_branch(pull.head_branch) in items_of_result(pull.body)
        return is_of_result and self.identity.counts(pull.author)

    def base_facts(self, pull: Pull) -> dict[str, Any]:
        """Return what the pull request alone tells every loop; time is GitHub's, which all runners share."""
        facts = PullFacts(
            **{name: getattr(pull, name) for name in PullFacts.model_fields if hasattr(pull, name)},
            is_open=pull.state == "open",
            is_fork=pull.head_repository.lower() != self.repository.lower(),
            author_may_write=not may_have_settings(pull.body) or self.is_trusted(pull.author),
            is_ours=self.is_ours(pull),
            is_main=pull_state(pull).is_main,
        )
        known = {"agents": self.agents, "token": self.token, "max_cost_usd": self.max_cost_usd}
        return {"now": self.github.server_time(), "pull": facts, **known}

    def rate(self) -> RateFacts | None:
        """Return the requests left, as of the last response; None where GitHub did not say."""
        left = self.github.rate_left
        if left is None:
            return None
        seconds = (datetime.fromtimestamp(left.resets_at, UTC) - self.github.server_time()).total_seconds()
        return RateFacts(remaining=left.remaining, resets_in_seconds=max(0, int(seconds)))


class EndedRun(Frozen):
    """A run that ended, with the pull request as it is now; ``state`` has the run in progress, or its effects."""

    loop: Loop
    context: LoopContext
    pull: Pull
    state: LoopState
    outputs: RunOutputs


class CompletedWork(Frozen):
    """The work that a run completed; nothing of it is written yet."""

    tasks_done: int = 0  # counts as progress
    body: str | None = None  # the pull request's body with its ticks
    item: int = 0  # the work item that gets the same ticks
    worked_in: int = 0  # the newest review that the run worked in
    decision: LoopDecision | None = None  # what follows, where the loop knows it; else it decides again
    facts: Mapping[str, object] = field(default_factory=dict)  # on which it decides again
    verified: str = ""  # the commit that has a verdict now
    problem: str = ""  # what of a run that did not fail cannot be used


class Gathered(Frozen):
    """The facts read so far."""

    loop: Loop
    context: LoopContext
    pull: Pull
    facts: Any
    stored: Stored[LoopState] | None = None  # as read, None before
    label_events: tuple[LabelEvent, ...] = ()
    checks: tuple[Check, ...] = ()  # those that count

    def with_facts(self, **facts: object) -> Gathered:
        """Add facts."""
        return replace(self, facts=self.facts.model_copy(update=facts))

    def decide(self, state: LoopState | None = None) -> LoopDecision:
        """Decide on the facts, or on these facts with another state."""
        return self._decision if state is None else replace(self, facts=with_state(self.facts, state))._decision

    @cached_property
    def _decision(self) -> LoopDecision:
        decision = self.loop.decide(self.facts, self.context.redact)
        found = (self.loop.name, self.context.number, decision.action, decision.reason, decision.message)
        log("loop", "%s of #%d: %s (%s) %s", *found)
        return decision


Stage: TypeAlias = "Callable[[Gathered], Gathered]"


def read_labels(gathered: Gathered) -> Gathered:
    """Read who set the labels that turn loops on and choose the agent."""
    context, labels = gathered.context, gathered.pull.labels
    events = context.github.label_events(context.number) if any(map(is_steering, labels)) else ()
    found = refused_labels(labels, events, context.is_trusted)
    return replace(gathered, label_events=events).with_facts(refused_labels=found)


class Loop(ABC):
    """One loop: the facts that it reads, its decision, and what it does besides running the agent.

    A turn begins with ``facts_of`` and the stages, each followed by ``decide``, which calls ``run`` if the agent is to
    work. Then come ``settling``, and ``subjects`` of a run that starts or ``act``; ``complete`` and ``apply`` end it.
    """

    name: ClassVar[LoopName]
    model: ClassVar[type[LoopFacts]]
    questions: ClassVar[tuple[Question, ...]]
    trust: ClassVar[tuple[Stage, ...]] = (read_labels,)  # read whose words count
    stages: ClassVar[tuple[Stage, ...]]  # read facts in the order in which the questions need them
    details: ClassVar[tuple[Stage, ...]] = ()  # read what only the prompt needs
    settling: ClassVar[tuple[Stage, ...]] = ()  # change what needs no agent, before the decision counts
    unread: ClassVar[tuple[str, ...]] = ()  # facts that are None until a stage reads them
    schema: ClassVar[str] = ""  # the kind of the agent's structured result
    has_upkeep: ClassVar[bool] = False  # pull requests that accord opened have work though no label turns it on
    changes_code: ClassVar[bool] = True  # on open pull requests, which are searched for work

    @property
    def mode(self) -> str:
        """The runner contract's word for this work."""
        return "verifier" if self.name == "verify" else self.name

    def facts_of(self, context: LoopContext, pull: Pull, **more: Any) -> Any:
        """Return what the pull request alone tells; ``more`` are facts of one loop."""
        return self.model(**context.base_facts(pull), **dict.fromkeys((*self.unread, "refused_labels")), **more)

    def decide(self, facts: Any, redact: Callable[[str], str] = str) -> LoopDecision:
        """Decide what the loop does now; ``redact`` removes secrets from the agent's prompt. Pure."""
        return first_decision(self.questions, situation_of(facts), lambda about: self.run(about, redact))

    @abstractmethod
    def run(self, about: Situation, redact: Callable[[str], str]) -> LoopDecision:
        """Return the decision to run the agent, with the text that extends its prompt."""

    def subjects(self, _facts: Any) -> tuple[str, ...]:
        """Return what the agent works on, or refers to by number."""
        return ()

    def act(self, _gathered: Gathered, decision: LoopDecision) -> LoopDecision:
        """Carry out an action that runs no agent, and return the outcome."""
        return decision

    def complete(self, _run: EndedRun) -> CompletedWork:
        """Return what a run completed; write nothing."""
        return CompletedWork()

    def apply(self, run: EndedRun, effects: PendingEffects) -> None:  # noqa: B027 (autofix writes no more)
        """Write what the loop does more at the end of a run, or find what it wrote before a crash."""


def gather(
    loop: Loop,
    context: LoopContext,
    pull: Pull | None = None,
    stored: Stored[LoopState] | None = None,
    *,
    for_prompt: bool = True,
    decides_trust: bool = True,
    more: Mapping[str, object] | None = None,
) -> tuple[Gathered, LoopDecision]:
    """Read as many facts as the decision takes, and decide; ``for_prompt`` and ``decides_trust`` read more."""
    pull = pull or context.pull()
    gathered = Gathered(loop, context, pull, loop.facts_of(context, pull), stored).with_facts(**(more or {}))
    gathered, decision = read_on(gathered, loop.stages)
    if decides_trust and (decision.action in ACTS or decision.add_labels or decision.reason in APPROVALS):
        gathered = with_trust(gathered)
    return read_on(gathered, loop.details if for_prompt else ())


def with_trust(gathered: Gathered) -> Gathered:
    """Read whose words count, before anything is written on them."""
    for stage in gathered.loop.trust:
        gathered = stage(gathered)
    return gathered


def read_on(gathered: Gathered, stages: Iterable[Stage]) -> tuple[Gathered, LoopDecision]:
    """Read facts stage by stage, as long as the decision takes more."""
    decision = gathered.decide()
    for stage in stages:
        if decision.action not in ACTS:
            break
        gathered = stage(gathered)
        decision = gathered.decide()
    return gathered, decision


def read_end(run: EndedRun, running: ActiveRun) -> tuple[CompletedWork, Iteration]:
    """Read what a run did. Files are compared by their tree, so that a revert is recognised."""
    work, outputs, notice = run.loop.complete(run), run.outputs, run.state.notice
    before = after = _tree(run, running.head_sha)
    if outputs.changes_made == "true" and outputs.commit_sha:
        after = _tree(run, outputs.commit_sha)
    iteration = iteration_of(
        outputs,
        running,
        number=run.state.iterations,
        ended_at=run.context.github.server_time(),
        kind="fix" if notice is not None and notice.action == "fix" else "run",
        tree_before=before,
        tree=after,
        tasks_done=work.tasks_done,
    )
    return work, iteration


def _tree(run: EndedRun, sha: str) -> str:
    commit = run.context.github.commit_object(sha) if _COMMIT.fullmatch(sha) else None
    return commit.tree if commit else ""


def read_state(gathered: Gathered) -> Gathered:
    """Read the state, and the facts it depends on: whether a run is over, and whether a person gave a go-ahead."""
    context = gathered.context
    stored = gathered.stored or context.store(gathered.loop.name).load()
    state, now = state_before(stored.value, context.run_id), context.github.server_time()
    gathered = replace(gathered, stored=stored).with_facts(state=state, rate=context.rate(), now=now)
    if gathered.decide().reason == "running" and state.running and _has_ended(state.running, context):
        gathered = gathered.with_facts(running_has_ended=True)
    if gathered.decide().reason in PARDONABLE:
        last = without_future(state, now).last
        since = last.ended_at if last else None
        event = go_ahead_in(context.github.label_events(context.number), context.is_trusted, since=since)
        gathered = gathered.with_facts(go_ahead=GoAhead(by=event.login, at=event.at) if event else None)
    return gathered


def _has_ended(running: ActiveRun, context: LoopContext) -> bool:
    if not running.run_id.isdecimal():
        return False
    try:
        run = context.github.workflow_run(int(running.run_id))
    except Forbidden:  # the run counts as lost once its time is over
        return False
    return run is None or run.has_ended


def read_text(gathered: Gathered) -> Gathered:
    """Read whether the body is the one that was there when a person turned the loop on, or let it go on."""
    context, pull = gathered.context, gathered.pull
    if not gathered.label_events or context.is_trusted(pull.author):
        return gathered  # no one else without write access can change it
    at = approved_at(gathered.label_events, context.is_trusted, added=KEEPALIVE, removed=NEEDS_HUMAN)
    return gathered.with_facts(text_changed=text_change(context, at, [pull.number]))


def text_change(context: LoopContext, as_of: datetime | None, numbers: Iterable[int]) -> str:
    """Return why one of these texts is not the one of that time; empty where all are."""
    found = (check_text(context.github, as_of, lambda: context.identity, number) for number in numbers)
    return next((refusal.message for refusal in found if refusal), "")


def read_criteria(gathered: Gathered) -> Gathered:
    """Read whether the criteria are those of the merge, or of the request, unless a person read them since."""
    context, as_of = gathered.context, gathered.pull.merged_at
    numbers = [item.number for item in gathered.facts.work_items or ()]
    if not context.is_trusted(gathered.pull.author):
        numbers.insert(0, gathered.pull.number)  # its body names the items
    if as_of is None and context.run_id.isdecimal():
        run = context.github.workflow_run(int(context.run_id))
        as_of = run.created_at if run else None
    changed = text_change(context, as_of, numbers)
    if changed and as_of:
        again = approved_at(context.github.label_events(context.number), context.is_trusted, removed=NEEDS_HUMAN)
        changed = text_change(context, max(as_of, again or as_of), numbers)
    return gathered.with_facts(text_changed=changed)
