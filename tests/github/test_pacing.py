"""Pacing keeps every documented limit, and never waits when it need not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.github.limits import CONTENT_PER_HOUR, CONTENT_PER_MINUTE, POINTS_PER_MINUTE
from accord.github.pacing import Pacer, estimate_seconds

REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "content"]), st.integers(1, 90), st.sampled_from([0, 0, 1, 7, 30, 61, 700])
    ),
    max_size=9,
)
"""Bursts: the request, how often, and the seconds before the burst."""


def cost(kind: str) -> int:
    return 1 if kind == "read" else 5


def keeps_limits(log: list[tuple[int, str]], now: int, kind: str) -> bool:
    """The documented limits, said the slow way: sums over windows that end now."""
    minute = [what for moment, what in log if moment > now - 60]
    hour = [what for moment, what in log if moment > now - 3600]
    points = sum(cost(what) for what in minute) + cost(kind)
    if kind != "content":
        return points <= POINTS_PER_MINUTE
    return (
        points <= POINTS_PER_MINUTE
        and minute.count("content") < CONTENT_PER_MINUTE
        and hour.count("content") < CONTENT_PER_HOUR
    )


@pytest.mark.slow
@settings(max_examples=40)
@given(REQUESTS)
def test_each_request_goes_out_at_the_first_second_that_keeps_all_limits(bursts: list[tuple[str, int, int]]) -> None:
    pacer, now, log = Pacer(), 0, []
    for kind, times, pause in bursts:
        now += pause
        for _ in range(times):
            is_write, creates = kind != "read", kind == "content"
            wait = pacer.wait(now, is_write=is_write, creates_content=creates)
            assert wait == int(wait)
            log = [entry for entry in log if entry[0] > now - 3600]
            assert keeps_limits(log, now + int(wait), kind)
            if wait:
                assert not keeps_limits(log, now + int(wait) - 1, kind)
            now += int(wait)
            pacer.spend(now, is_write=is_write, creates_content=creates)
            log.append((now, kind))


def test_the_estimate_knows_the_minute_and_the_hour() -> None:
    assert estimate_seconds(0, 0) == 0
    assert estimate_seconds(80, 0, latency=0) == 0
    assert estimate_seconds(81, 0, latency=0) == 60
    assert estimate_seconds(0, 181, latency=0) == 60
    assert estimate_seconds(501, 0, latency=0) == 3600
    assert estimate_seconds(10, 10, latency=0.5) == 10


def test_of_four_processes_each_keeps_to_a_quarter_of_the_limits() -> None:
    for kind, most in (("content", CONTENT_PER_MINUTE // 4), ("read", POINTS_PER_MINUTE // 4)):
        pacer, request = Pacer(4), {"is_write": kind == "content", "creates_content": kind == "content"}
        for _ in range(most):
            assert pacer.wait(0, **request) == 0
            pacer.spend(0, **request)
        assert pacer.wait(0, **request) == 60
