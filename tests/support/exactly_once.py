"""Evidence for "exactly once": one result, applied from the same beginning as often as it takes."""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from unittest.mock import patch

from support.killing import kill_at
from support.rotation import NIGHTLY, firsts, rotate
from support.stage import Stage

from accord.engine.receipts import Outcome, Receipt
from accord.github.client import GitHub
from accord.github.transport import Transport
from accord_sandbox.faults import Exchange, Fault


class Clean(NamedTuple):
    """A run that nothing disturbed: the state after it, its requests by kind, git's too, and its receipt."""

    state: Any
    kinds: Sequence[str]
    receipt: Receipt

    @property
    def count(self) -> int:
        """The number of requests."""
        return len(self.kinds)


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
        kinds: list[str] = []
        self.stage.server.observers.append(observe := lambda exchange: kinds.extend(_kind(exchange)))
        try:
            receipt = self.apply()
        finally:
            self.stage.server.observers.remove(observe)
        assert receipt.outcome is Outcome.APPLIED, receipt.error
        assert len(kinds) == len(self.stage.server.requests)
        state = self.state()
        assert self.apply().writes == 0
        return Clean(state, kinds, receipt)


def _kind(exchange: Exchange) -> list[str]:
    """Return the kind of a finished request: its method, its path without numbers, and what its document sets."""
    if exchange.phase != "applied":
        return []
    document = exchange.json if isinstance(exchange.json, dict) else {}
    query = " ".join(str(document.get("query", "")).partition("(")[0].split())
    path = re.sub(r"/(?:[0-9a-f]{40}|[0-9]+)(?=/|$)", "/N", exchange.path)
    return [" ".join((exchange.method, path, query, *sorted(document.keys() - {"query"})))]


def _writes(kind: str) -> bool:
    return not kind.startswith("GET ") and "/git-upload-pack" not in kind and " query" not in kind.partition("/")[2]


@dataclass(frozen=True)
class FaultCase:
    """A fault at one request or, with ``is_permanent``, at every later one too; ``path`` limits it to some requests."""

    kind: str
    is_permanent: bool = False
    path: str | None = None
    may_stop: bool = False


ENDING_A_LEASE = 2
"""The last requests of a run: what becomes of them changes nothing about its outcome."""


def assert_survives_faults(work: Work, cases: Sequence[FaultCase]) -> None:
    """Run into faults, then run again, at once or an hour later in turns.

    A write of each kind is lost before and after GitHub carries it out. All cases take turns at the other requests.
    """
    kinds = work.clean.kinds
    pairs = _encounters(kinds, cases)
    assert ({kinds[nth - 1] for nth, _ in pairs}, {case for _, case in pairs}) == ({*kinds}, {*cases})
    for nth, case in pairs:
        _survive(work, case, nth)


def _encounters(kinds: Sequence[str], cases: Sequence[FaultCase]) -> list[tuple[int, FaultCase]]:
    """Return the requests, from 1, that meet a fault, and the fault; all of them in the nightly workflow."""
    if NIGHTLY:
        return rotate(kinds, cases, _can_meet)
    lost = [case for case in cases if case.kind in ("lost-before", "lost-after") and not case.is_permanent]
    written = [nth for nth in firsts(kinds) if lost and _writes(kinds[nth - 1])]
    others = [nth for nth in range(1, len(kinds) + 1) if nth not in written]
    left = rotate([kinds[nth - 1] for nth in others], cases, _can_meet)
    return [(nth, case) for nth in written for case in lost] + [(others[i - 1], case) for i, case in left]


def _can_meet(kind: str, case: FaultCase) -> bool:
    return case.path is None or re.search(case.path, kind.split(" ")[1]) is not None


def _survive(work: Work, case: FaultCase, nth: int) -> None:
    """Run into a fault, then run again: the end is that of a clean run.

    GitHub's listing finds what an earlier run made at once, its search only later.
    """
    outcomes = {Outcome.STOPPED} if case.is_permanent else {Outcome.APPLIED}
    outcomes |= {Outcome.STOPPED} if case.may_stop else set()
    outcomes |= {Outcome.APPLIED} if nth > work.clean.count - ENDING_A_LEASE else set()
    times = 1000 if case.is_permanent else 1
    place = sum(_can_meet(each, case) for each in work.clean.kinds[:nth])
    work.begin()
    work.stage.server.faults.add(Fault(case.kind, nth=place, times=times, path=case.path, seconds=30))
    first = work.apply()
    work.stage.server.faults.clear()
    work.stage.clock.sleep(3600 * (nth % 2))
    second = work.apply()
    assert first.outcome in outcomes, (case, nth, first.error)
    assert second.exit_code == 0, (case, nth, second.error)
    assert first.outcome is Outcome.STOPPED or second.writes == 0, (case, nth)
    assert work.state() == work.clean.state, (case, nth)


def assert_survives_another_writer(work: Work) -> None:
    """Let another writer apply the same result, from any request of the first one on: the end is that of a clean run.

    The first one goes on when the other has ended or waits for it.
    """
    for nth in range(1, work.clean.count + 1) if NIGHTLY else firsts(work.clean.kinds):
        work.begin()
        first, other = _apply_twice(work, nth)
        assert (first.exit_code, other.exit_code) == (0, 0), (nth, first.error, other.error)
        assert work.state() == work.clean.state, nth
        assert work.apply().writes == 0, nth


def _apply_twice(work: Work, nth: int) -> tuple[Receipt, Receipt]:
    """Apply in two threads; the second one begins after the n-th request of the first, or after its end."""
    call, pause, left = Transport.call, GitHub.pause, nth
    waits, first_ended = threading.Event(), threading.Event()
    first_thread = threading.current_thread()

    def apply_second() -> Receipt:
        try:
            return work.apply()
        finally:
            waits.set()

    def count_and_call(*given: Any, **named: Any) -> Any:
        nonlocal left
        answer = call(*given, **named)
        if threading.current_thread() is first_thread:
            left -= 1
            if left == 0:
                second.append(pool.submit(apply_second))
                assert waits.wait(60)
        return answer

    def wait_for_first(*given: Any) -> None:
        waits.set()
        assert first_ended.wait(60)
        pause(*given)

    second: list[Future[Receipt]] = []
    patches = patch.object(Transport, "call", count_and_call), patch.object(GitHub, "pause", wait_for_first)
    with ThreadPoolExecutor(1) as pool, patches[0], patches[1]:
        first = work.apply()
        first_ended.set()
        other = second[0].result(60) if second else work.apply()
    return first, other


def assert_survives_kills(work: Work, command: Sequence[str]) -> None:
    """Kill ``accord`` at a write of each kind, run it again, and find the end of a clean run."""
    kinds = work.clean.kinds
    for nth in firsts(kinds):
        if not NIGHTLY and not _writes(kinds[nth - 1]):
            continue
        work.begin()
        kill_at(nth, command, work.stage, **work.variables)
        work.stage.clock.sleep(3600 * (nth % 2))
        receipt = work.apply()
        assert receipt.exit_code == 0, (nth, receipt.error)
        assert work.state() == work.clean.state, nth
