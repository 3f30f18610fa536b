"""Evidence for "exactly once": one result, applied from the same beginning as often as it takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from support.killing import kill_at
from support.rotation import in_turns, killed
from support.stage import Stage

from accord.results.operations import Outcome, Receipt
from accord_sandbox.faults import Fault


class Clean(NamedTuple):
    """A run that nothing disturbed: the state after it, how many requests it took, git's too, and its receipt."""

    state: Any
    count: int
    receipt: Receipt


@dataclass(frozen=True)
class Work:
    """A result and where it is applied. ``state`` returns all that a user can see, without what differs by nature.

    ``options`` are those of ``accord apply``, ``variables`` of its environment.
    """

    stage: Stage
    begin: Callable[[], None]
    apply: Callable[[], Receipt]
    state: Callable[[], Any]
    result: dict[str, Any]
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def clean(self) -> Clean:
        """Apply it undisturbed, and see that a second run writes nothing."""
        self.begin()
        receipt = self.apply()
        assert receipt.outcome is Outcome.APPLIED, receipt.error
        count = len(self.stage.server.requests)
        state = self.state()
        assert self.apply().writes == 0
        return Clean(state, count, receipt)


@dataclass(frozen=True)
class FaultCase:
    """A fault at one request or, with ``is_permanent``, at every later one too; ``path`` limits it to some requests."""

    kind: str
    is_permanent: bool = False
    path: str | None = None
    may_stop: bool = False


def assert_survives_faults(work: Work, cases: Sequence[FaultCase]) -> None:
    """Run into a fault at each request, in turns, then run again, at once or an hour later in turns."""
    for nth in range(1, work.clean.count + 1):
        for case in in_turns(nth, cases):
            _survive(work, case, nth)


def _survive(work: Work, case: FaultCase, nth: int) -> None:
    """Run into a fault, then run again: the end is that of a clean run.

    GitHub's listing finds what an earlier run made at once, its search only later.
    """
    outcomes = {Outcome.STOPPED} if case.is_permanent else {Outcome.APPLIED}
    outcomes |= {Outcome.STOPPED} if case.may_stop else set()
    times = 1000 if case.is_permanent else 1
    work.begin()
    work.stage.server.faults.add(Fault(case.kind, nth=nth, times=times, path=case.path, seconds=30))
    first = work.apply()
    work.stage.server.faults.clear()
    work.stage.clock.sleep(3600 * (nth % 2))
    second = work.apply()
    assert first.outcome in outcomes, (case, nth, first.error)
    assert second.exit_code == 0, (case, nth, second.error)
    assert first.outcome is Outcome.STOPPED or second.writes == 0, (case, nth)
    assert work.state() == work.clean.state, (case, nth)


def assert_survives_kills(work: Work, command: Sequence[str]) -> None:
    """Kill ``accord`` at its requests, run it again, and find the end of a clean run."""
    for nth in killed(range(1, work.clean.count + 1)):
        work.begin()
        kill_at(nth, command, work.stage, **work.variables)
        work.stage.clock.sleep(3600 * (nth % 2))
        receipt = work.apply()
        assert receipt.exit_code == 0, (nth, receipt.error)
        assert work.state() == work.clean.state, nth
