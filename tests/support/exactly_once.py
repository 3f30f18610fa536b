"""Evidence for "exactly once": one result, applied from the same beginning as often as it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from support.killing import kill_at

from accord.results.operations import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from support.stage import Stage

    from accord.results.operations import Receipt


class Clean(NamedTuple):
    """A run that nothing disturbed: the state after it, how many requests it took, git's too, and its receipt."""

    state: Any
    count: int
    receipt: Receipt


@dataclass(frozen=True)
class Work:
    """A result and where it is applied. ``state`` returns all that a user can see, without what differs by nature."""

    stage: Stage
    begin: Callable[[], None]
    apply: Callable[[], Receipt]
    state: Callable[[], Any]

    def clean(self) -> Clean:
        """Apply it undisturbed, and see that it then writes nothing any more."""
        self.begin()
        receipt = self.apply()
        assert receipt.outcome is Outcome.APPLIED, receipt.error
        count = len(self.stage.server.requests)
        state = self.state()
        assert self.apply().writes == 0
        return Clean(state, count, receipt)


def assert_survives_kills(work: Work, command: Sequence[str], moments: Iterable[int], end: Any) -> None:
    """Kill ``accord`` at each of these requests, run it again, and find the end of a clean run.

    An end like that of a clean run is one after which a further run writes nothing: ``Work.clean`` has seen it.
    """
    for nth in moments:
        work.begin()
        kill_at(nth, command, work.stage)
        work.stage.clock.sleep(3600 * (nth % 3 == 0))
        receipt = work.apply()
        assert receipt.exit_code == 0, (nth, receipt.error)
        assert work.state() == end, nth
