"""Accidents in turns: each request meets some of them in ``./dev test``, and every one in the nightly workflow."""

import os
from collections.abc import Sequence
from typing import TypeVar

Accident = TypeVar("Accident")

NIGHTLY = bool(os.environ.get("ACCORD_NIGHTLY"))


def in_turns(nth: int, accidents: Sequence[Accident]) -> Sequence[Accident]:
    """Return those that the n-th request meets: two neighbours meet the same one, with and without an hour between."""
    return accidents if NIGHTLY else [accidents[nth // 2 % len(accidents)]]


def killed(requests: Sequence[int]) -> Sequence[int]:
    """Return the requests at which a process is killed: every third.

    A connection that is lost for good leaves the same behind on GitHub, and meets every request.
    """
    return requests if NIGHTLY or len(requests) < 4 else requests[1::3]
