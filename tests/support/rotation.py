"""Accidents in turns: each request meets some of them in ``./dev test``, and every one in the nightly workflow."""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

Accident = TypeVar("Accident")

NIGHTLY = bool(os.environ.get("ACCORD_NIGHTLY"))


FAULTS = {
    "lost": (("lost-before", 1), ("lost-after", 1)),
    "answered wrongly": tuple((kind, 1) for kind in ("error-500", "error-500-after", "secondary-403", "truncated")),
    "lost for good": (("lost-after", 1000), ("lost-before", 1000)),
}
"""Faults by what a writer learns of them, and at how many requests each is met."""


def some(things: Sequence[Accident], each: int) -> Sequence[Accident]:
    """Return every ``each``-th, from the first; all of them in the nightly workflow."""
    return things if NIGHTLY else things[::each]


def in_turns(nth: int, accidents: Sequence[Accident]) -> Sequence[Accident]:
    """Return those that the n-th request meets: two neighbours meet the same one, with and without an hour between."""
    return accidents if NIGHTLY else [accidents[nth // 2 % len(accidents)]]


def killed(requests: Sequence[int]) -> Sequence[int]:
    """Return the requests at which a process is killed: every third.

    A connection that is lost for good leaves the same behind on GitHub, and meets every request.
    """
    return requests if NIGHTLY or len(requests) < 4 else requests[1::3]


def firsts(kinds: Sequence[str]) -> list[int]:
    """Return the number, from 1, of the first request of each kind; of all requests in the nightly workflow."""
    return [i + 1 for i, kind in enumerate(kinds) if NIGHTLY or kind not in kinds[:i]]


def rotate(
    kinds: Sequence[str], accidents: Sequence[Accident], can_meet: Callable[[str, Accident], bool]
) -> list[tuple[int, Accident]]:
    """Pair requests with accidents: nightly all with all, else each kind and each accident once or more.

    The first request of each kind comes first, then the second of each, and so on; the accidents take turns.
    """
    if NIGHTLY:
        numbers = range(1, len(kinds) + 1)
        return [(nth, each) for nth in numbers for each in accidents if can_meet(kinds[nth - 1], each)]
    order = sorted(range(len(kinds)), key=lambda i: kinds[:i].count(kinds[i]))
    waiting, pairs = [*accidents], list[tuple[int, Accident]]()
    while len(pairs) < len(set(kinds)) or {*accidents} - {met for _, met in pairs}:
        request = order[len(pairs) % len(order)]
        met = next(each for each in waiting if can_meet(kinds[request], each))
        waiting.remove(met)
        waiting.append(met)
        pairs.append((request + 1, met))
    return pairs
