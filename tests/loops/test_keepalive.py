"""Keepalive's decisions: a row for each reason, and random lives of a pull request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.loops.keepalive import ATTENTION, ENABLED, LOST_AFTER_SECONDS, NEEDS_HUMAN, PAUSED, RETRY, decide
from accord.loops.ledger import begun, ended
from accord.loops.models import (
    Budgets,
    CheckFacts,
    Iteration,
    KeepaliveFacts,
    LoopState,
    PullFacts,
    RateFacts,
    Running,
    TokenFacts,
)

NOW = "2026-11-01T12:00:00Z"
HEAD = "a" * 40


def facts(**parts: Any) -> KeepaliveFacts:
    """Facts under which the agent runs, but for these parts; dicts change single keys of a part."""
    pull = {
        "number": 7,
        "is_open": True,
        "head_sha": HEAD,
        "labels": (ENABLED,),
        "tasks_total": 3,
        "tasks_open": 2,
        **parts.pop("pull", {}),
    }
    checks = {"head_sha": HEAD, "passing": ("test",), **parts.pop("checks", {})}
    return KeepaliveFacts(
        **{
            "now": NOW,
            "pull": PullFacts(**pull),
            "checks": CheckFacts(**checks),
            "agents": ("codex", "claude"),
            **parts,
        }
    )


def failed(run_id: str, **more: Any) -> Iteration:
    return Iteration(
        **{
            "run_id": run_id,
            "number": 1,
            "exit_code": "1",
            "category": "logic",
            "recovery": "manual",
            "error": f"error {run_id}",
            "ended_at": NOW,
            **more,
        }
    )


def state_of(*iterations: Iteration, **more: Any) -> LoopState:
    state = LoopState(**more)
    for iteration in iterations:
        state = ended(begun(state, Running(run_id=iteration.run_id, head_sha=HEAD, started_at=NOW)), iteration)
    return state


TRANSIENT = {"category": "transient", "recovery": "retry"}
LONG_AGO = "2026-11-01T06:00:00Z"

REASONS = [
    ("merged", "stop", facts(pull={"is_open": False, "is_merged": True})),
    ("closed", "stop", facts(pull={"is_open": False})),
    ("paused", "stop", facts(pull={"labels": (ENABLED, PAUSED)})),
    ("needs-human", "stop", facts(pull={"labels": (ENABLED, NEEDS_HUMAN)})),
    ("not-enabled", "stop", facts(pull={"labels": ()})),
    ("fork", "stop", facts(pull={"is_fork": True})),
    ("agent-ambiguous", "stop", facts(pull={"labels": (ENABLED, "agent:codex", "agent:claude")})),
    ("agent-missing", "stop", facts(agents=())),
    ("no-tasks", "stop", facts(pull={"tasks_total": 0, "tasks_open": 0})),
    ("tasks-complete", "stop", facts(pull={"tasks_open": 0})),
    ("running", "wait", facts(state=LoopState(running=Running(run_id="1", head_sha=HEAD, started_at=NOW)))),
    ("failure-budget", "stop", facts(state=state_of(failed("1"), failed("2"), failed("3")))),
    (
        "transient-budget",
        "stop",
        facts(state=state_of(*(failed(str(n), **TRANSIENT) for n in range(4))), budgets=Budgets(iterations=9)),
    ),
    ("iteration-budget", "stop", facts(state=LoopState(iterations=5))),
    ("same-error", "stop", facts(state=state_of(failed("1", error="x"), failed("2", error="x")))),
    (
        "no-progress",
        "stop",
        facts(state=state_of(*(Iteration(run_id=str(n), number=n, tree="t", ended_at=NOW) for n in (1, 2)))),
    ),
    ("rate-limit", "defer", facts(rate=RateFacts(remaining=3, resets_in_seconds=99))),
    ("back-off", "wait", facts(state=state_of(failed("1", **TRANSIENT)))),
    ("stale-checks", "wait", facts(checks={"head_sha": "b" * 40})),
    ("checks-pending", "wait", facts(checks={"pending": ("lint",)})),
    ("checks-missing", "wait", facts(checks={"passing": (), "seconds_since_push": 5})),
    ("checks-failing", "fix", facts(checks={"failing": ("lint",)})),
    ("tasks-open", "run", facts()),
    ("retry", "run", facts(state=state_of(failed("1", **TRANSIENT, ended_at=LONG_AGO)))),
]


@pytest.mark.parametrize(("reason", "action", "known"), REASONS, ids=[row[0] for row in REASONS])
def test_each_reason_has_facts_that_lead_to_it(reason: str, action: str, known: KeepaliveFacts) -> None:
    decision = decide(known)
    assert (decision.reason, decision.action) == (reason, action)
    assert decision.message.endswith(".")


def test_a_pull_request_without_any_check_is_worked_on_once_it_had_time_to_get_one() -> None:
    assert decide(facts(checks={"passing": (), "seconds_since_push": 600})).action == "run"


def test_only_agents_of_the_registry_count_as_agents() -> None:
    decision = decide(facts(pull={"labels": (ENABLED, RETRY, ATTENTION, "agent:unheard-of", "agent:claude")}))
    assert (decision.action, decision.agent) == ("run", "claude")


def test_a_run_that_was_lost_holds_nothing_up_and_has_cost_its_iteration() -> None:
    state = begun(LoopState(iterations=4), Running(run_id="1", head_sha=HEAD, started_at=LONG_AGO))
    assert decide(facts(state=state)).reason == "iteration-budget"
    assert decide(facts(state=state, budgets=Budgets(iterations=6))).action == "run"


def test_a_run_told_of_twice_counts_once() -> None:
    state = state_of(failed("1"))
    assert ended(state, failed("1")) == state


def test_the_pause_doubles_and_keeps_to_what_the_provider_asked_for() -> None:
    budgets = Budgets(iterations=50, transient=10, wait_seconds=60)
    once = facts(state=state_of(failed("1", **TRANSIENT)), budgets=budgets)
    twice = facts(state=state_of(failed("1", **TRANSIENT), failed("2", **TRANSIENT)), budgets=budgets)
    asked = facts(state=state_of(failed("1", **TRANSIENT, retry_after_seconds=900.0)), budgets=budgets)
    endless = facts(state=state_of(failed("1", **TRANSIENT, retry_after_seconds=1e9)), budgets=budgets)
    assert [decide(known).wait_seconds for known in (once, twice, asked, endless)] == [60, 120, 900, 3600]


def test_a_token_that_starts_no_workflow_is_said_out_loud() -> None:
    assert "starts no workflow" in decide(facts(token=TokenFacts(triggers_workflows=False))).warnings[0]


EVENTS = st.sampled_from(
    [
        "succeed",
        "succeed-same-tree",
        "fail",
        "transient",
        "cancelled",
        "lost",
        "push",
        "relabel",
        "pause",
        "unpause",
        "human-done",
        "red",
        "green",
        "pending",
        "later",
        "evaluate",
    ]
)


class Life:
    """A pull request to which things happen, and a loop that keeps to its budgets or does not."""

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets
        self.state = LoopState()
        self.now = datetime(2026, 11, 1, tzinfo=UTC)
        self.labels = {ENABLED}
        self.head = 1
        self.checked = 1
        self.checks: dict[str, Any] = {"passing": ("test",)}
        self.tasks_open = 1000
        self.runs = 0

    def known(self) -> KeepaliveFacts:
        return facts(
            now=self.now.isoformat(),
            pull={"head_sha": str(self.head), "labels": tuple(sorted(self.labels)), "tasks_open": self.tasks_open},
            checks={"head_sha": str(self.checked), **self.checks},
            state=self.state,
            budgets=self.budgets,
        )

    def evaluate(self, event: str) -> None:
        known = self.known()
        decision = decide(known)
        self.labels |= set(decision.add_labels)
        self.labels -= set(decision.remove_labels)
        if decision.action not in ("run", "fix"):
            return
        assert PAUSED not in known.pull.labels
        assert NEEDS_HUMAN not in known.pull.labels
        assert known.checks.head_sha == known.pull.head_sha, "it ran on a stale head"
        self.runs += 1
        run_id = str(self.runs)
        self.state = begun(self.state, Running(run_id=run_id, head_sha=str(self.head), started_at=self.now.isoformat()))
        self._end(event, run_id)

    def _end(self, event: str, run_id: str) -> None:
        end = {"run_id": run_id, "number": self.runs, "ended_at": self.now.isoformat()}
        if event == "lost":
            return
        if event == "transient":
            self.state = ended(self.state, failed(**end | {"run_id": run_id}, **TRANSIENT))
        elif event in ("fail", "cancelled"):
            more = {"recovery": "ignore", "category": "unknown"} if event == "cancelled" else {}
            self.state = ended(self.state, failed(**end, **more))
        else:
            tree = "same" if event == "succeed-same-tree" else run_id
            self.state = ended(self.state, Iteration(**end, tree=tree, changes_made=True))
            self.head += 1

    def happen(self, event: str) -> None:
        changes: dict[str, Any] = {
            "push": lambda: setattr(self, "head", self.head + 1),
            "relabel": lambda: self.labels.symmetric_difference_update({"agent:claude"}),
            "pause": lambda: self.labels.add(PAUSED),
            "unpause": lambda: self.labels.discard(PAUSED),
            "human-done": lambda: self.labels.discard(NEEDS_HUMAN),
            "red": lambda: self._checked({"failing": ("test",)}),
            "green": lambda: self._checked({"passing": ("test",)}),
            "pending": lambda: self._checked({"pending": ("test",)}),
            "later": lambda: setattr(self, "now", self.now + timedelta(seconds=LOST_AFTER_SECONDS)),
        }
        changes.get(event, lambda: self.evaluate(event))()

    def _checked(self, checks: dict[str, Any]) -> None:
        self.checks, self.checked = checks, self.head


@settings(max_examples=300, deadline=None)
@given(events=st.lists(EVENTS, max_size=80), iterations=st.integers(0, 6))
def test_whatever_happens_the_agent_runs_no_oftener_than_its_budget(events: list[str], iterations: int) -> None:
    life = Life(Budgets(iterations=iterations, failures=2, transient=2))
    for event in events:
        life.happen(event)
    assert life.runs <= iterations


@settings(max_examples=100, deadline=None)
@given(kind=st.sampled_from(["succeed", "fail", "transient", "cancelled", "lost"]))
def test_a_loop_that_is_left_alone_comes_to_an_end(kind: str) -> None:
    life = Life(Budgets(iterations=5))
    for _ in range(40):
        life.happen("green")
        life.happen(kind)
        life.happen("later")
    assert decide(life.known()).action == "stop"
