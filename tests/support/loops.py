"""Facts under which a loop runs the agent, and states with a past; a test says only what is different."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from accord.engine.trust import PAUSED
from accord.loops.complete import KeepaliveFacts
from accord.loops.ledger import begin_run, end_run
from accord.loops.models import (
    NEEDS_HUMAN,
    REASONS,
    ActiveRun,
    Budgets,
    CheckFacts,
    HeldRun,
    Iteration,
    LoopDecision,
    LoopName,
    LoopState,
    PullFacts,
    RateFacts,
    TokenFacts,
)
from accord.loops.questions import KEEPALIVE

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=6)
HEAD = "a" * 40
BODY = "- [ ] Add tests\n- [x] Fix docs\n- [ ] Add a changelog entry\n"
TRANSIENT = {"category": "transient", "recovery": "retry"}


def pull(**parts: Any) -> PullFacts:
    return PullFacts(**{"number": 7, "is_open": True, "head_sha": HEAD, "labels": (KEEPALIVE,), "body": BODY, **parts})


def checks(**parts: Any) -> CheckFacts:
    return CheckFacts(**{"head_sha": HEAD, "passing": ("test",), **parts})


def keepalive(**parts: Any) -> KeepaliveFacts:
    """Facts under which the agent runs, except these parts; dicts change single keys of a part."""
    given = {"pull": pull(**parts.pop("pull", {})), "checks": checks(**parts.pop("checks", {}))}
    return KeepaliveFacts(**{"now": NOW, "agents": ("codex", "claude"), **given, **parts})


def held(hours: float = 1, **more: Any) -> HeldRun:
    """A workflow run that has waited for approval for so long."""
    return HeldRun(**{"id": 41, "name": "CI", "created_at": NOW - timedelta(hours=hours), **more})


def held_rows(make: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The reasons about held workflow runs, each with facts that lead to it."""
    return [
        ("checks-held", make(checks={"held": (held(),)})),
        ("checks-not-approved", make(checks={"held": (held(), held(25, id=42))})),
    ]


def well(run_id: str, **more: Any) -> Iteration:
    """A run that ended well, with new files unless told otherwise."""
    known = {"run_id": run_id, "number": 1, "tree_before": f"before {run_id}", "tree": f"after {run_id}"}
    return Iteration(**{**known, "ended_at": NOW, **more})


def failed(run_id: str, **more: Any) -> Iteration:
    known = {"run_id": run_id, "number": 1, "exit_code": "1", "category": "logic", "recovery": "manual"}
    return Iteration(**{**known, "error": f"error {run_id}", "ended_at": NOW, **more})


def running(run_id: str = "1", **more: Any) -> ActiveRun:
    return ActiveRun(**{"run_id": run_id, "head_sha": HEAD, "started_at": NOW, **more})


def state_of(*iterations: Iteration, **more: Any) -> LoopState:
    """The state after these runs, each begun and ended."""
    state = LoopState(**more)
    for iteration in iterations:
        started = begin_run(state, running(iteration.run_id))
        assert started is not None
        state = end_run(started, iteration)
    return state


def common_rows(
    make: Callable[..., Any], loop: LoopName, labels: tuple[str, ...], *, runs: int, failures: int
) -> list[tuple[str, Any]]:
    """The reasons that every loop has, each with facts that lead to it; ``runs`` and ``failures`` are its budgets."""

    def past(*iterations: Iteration) -> LoopState:
        return state_of(*iterations, loop=loop)

    same = {"tree_before": "t", "tree": "t"}
    transient = past(*(failed(str(number), **TRANSIENT) for number in range(4)))
    return [
        ("paused", make(pull={"labels": (*labels, PAUSED.title())})),
        ("needs-human", make(pull={"labels": (*labels, NEEDS_HUMAN)})),
        ("read-only-token", make(token=TokenFacts(may_write=False))),
        ("agent-ambiguous", make(pull={"labels": (*labels, "agent:codex", "agent:claude")})),
        ("running", make(state=LoopState(loop=loop, running=running()))),
        ("failure-budget", make(state=past(*(failed(str(number)) for number in range(failures))))),
        ("transient-budget", make(state=transient, budgets=Budgets(iterations=9))),
        ("iteration-budget", make(state=LoopState(loop=loop, iterations=runs))),
        ("cost-budget", make(state=LoopState(loop=loop, cost_usd=2), max_cost_usd=2)),
        ("same-error", make(state=past(failed("1", error="x"), failed("2", error="x")), budgets=Budgets())),
        ("manual-failure", make(state=past(failed("1")))),
        ("no-progress", make(state=past(well("1", **same), well("2", **same)))),
        ("rate-limit", make(rate=RateFacts(remaining=3, resets_in_seconds=99))),
        ("back-off", make(state=past(failed("1", **TRANSIENT)))),
    ]


def assert_reasons(loop: LoopName, rows: list[tuple[str, Any]], decide: Callable[[Any], LoopDecision]) -> None:
    """Check that each row's facts lead to its reason, and that no reason of the loop is left out.

    Only the end of a run knows that a verdict is missing, and only a merge that two branches conflict.
    """
    for reason, known in rows:
        decision = decide(known)
        assert (decision.reason, decision.action) == (reason, REASONS[reason].action)
        assert (NEEDS_HUMAN in decision.add_labels) == REASONS[reason].asks, reason
        assert decision.message.endswith("."), reason
    known_codes = {code for code, reason in REASONS.items() if loop in reason.loops}
    assert {code for code, _ in rows} == known_codes - {"verdict-missing", "conflict"}
