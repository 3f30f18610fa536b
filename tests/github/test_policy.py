"""One answer, one decision: what is sent again, what waits, what is lost, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.github.pacing import TRIES, NextStep, RequestAttempt, backoff, judge

NOW = 1_700_000_000.0
RESET = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 100)}
LEFT = {"x-ratelimit-remaining": "7", "x-ratelimit-reset": str(int(NOW) + 100)}
SECONDARY = "You have exceeded a secondary rate limit."
DENIED = "Resource not accessible by integration"


def attempt(
    status: int, *, method: str = "GET", tries: int = 1, message: str = "", is_whole: bool = True, **headers: str
) -> RequestAttempt:
    names = {key.replace("_", "-"): value for key, value in headers.items()}
    return RequestAttempt(method, tries, status, names, message, is_whole, NOW)


@pytest.mark.parametrize("method", ["GET", "PATCH", "PUT", "DELETE", "POST"])
@pytest.mark.parametrize(
    ("status", "headers", "message", "step", "seconds"),
    [
        (200, {}, "", "take", 0), (201, {}, "", "take", 0), (204, {}, "", "take", 0),
        (301, {}, "Moved Permanently", "refused", 0), (307, {}, "Temporary Redirect", "refused", 0),
        (400, {}, "", "refused", 0), (401, {}, "Bad credentials", "refused", 0),
        (403, {}, DENIED, "refused", 0), (403, LEFT, DENIED, "refused", 0),
        (404, RESET, "Not Found", "refused", 0), (410, {}, "", "refused", 0),
        (422, {"retry-after": "5"}, "", "refused", 0),
        (403, {"retry-after": "30"}, SECONDARY, "wait-for-limit", 30),
        (429, {"retry-after": "30"}, "", "wait-for-limit", 30),
        (429, {"retry-after": "30"} | RESET, "", "wait-for-limit", 30),
        (429, {"retry-after": "0"}, "", "wait-for-limit", 1),
        (403, RESET, "API rate limit exceeded for user", "wait-for-limit", 101),
        (429, RESET, "", "wait-for-limit", 101),
        (403, {**RESET, "x-ratelimit-reset": str(int(NOW) - 9)}, "", "wait-for-limit", 1),
        (403, {}, SECONDARY, "wait-for-limit", 60), (403, LEFT, SECONDARY, "wait-for-limit", 60),
        (403, {}, "You have triggered an abuse detection mechanism", "wait-for-limit", 60),
        (429, {}, "", "wait-for-limit", 60),
        (429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", "wait-for-limit", 60),
        (429, {"retry-after": "\u00b2"}, "", "wait-for-limit", 60),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, DENIED, "refused", 0),
    ],
)  # fmt: skip
def test_an_answer_decides_the_same_for_every_method(
    method: str, status: int, headers: dict[str, str], message: str, step: NextStep, seconds: float
) -> None:
    verdict = judge(RequestAttempt(method, 1, status, headers, message, True, NOW))
    assert (verdict.step, verdict.seconds) == (step, seconds)


LOST = [(0, True), (0, False), (500, True), (502, False), (503, True), (599, True), (200, False), (201, False)]


@pytest.mark.parametrize(("status", "is_whole"), LOST)
@pytest.mark.parametrize("method", ["GET", "PATCH", "PUT", "DELETE"])
def test_repeatable_requests_are_repeated_a_few_times(method: str, status: int, is_whole: bool) -> None:
    steps = [judge(attempt(status, method=method, tries=n, is_whole=is_whole)) for n in range(1, TRIES + 1)]
    assert [verdict.step for verdict in steps] == ["repeat"] * (TRIES - 1) + ["give-up"]
    assert [verdict.seconds for verdict in steps] == [1, 2, 4, 8, 0]


@pytest.mark.parametrize(("status", "is_whole"), LOST)
def test_a_post_without_an_answer_is_never_sent_again_blindly(status: int, is_whole: bool) -> None:
    assert judge(attempt(status, method="POST", is_whole=is_whole)).step == "lost"


def test_a_limit_without_a_hint_makes_each_wait_longer() -> None:
    waits = [judge(attempt(403, tries=n, message=SECONDARY)).seconds for n in (1, 2, 3)]
    assert waits == [60, 120, 240]
    assert judge(attempt(429, tries=6, retry_after="0")).seconds == 30


@given(st.integers(1, 10_000))
def test_a_pause_is_never_longer_than_half_a_minute(tries: int) -> None:
    assert 1 <= backoff(tries) <= 30


@pytest.mark.slow
@given(
    st.sampled_from(["GET", "POST", "PATCH", "PUT", "DELETE"]),
    st.integers(1, TRIES),
    st.integers(0, 599),
    st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-remaining", "x-ratelimit-reset"]), st.text(max_size=12)
    ),
    st.text(max_size=20),
    st.booleans(),
)
def test_any_answer_is_decided_and_no_wait_is_negative(
    method: str, tries: int, status: int, headers: dict[str, str], message: str, is_whole: bool
) -> None:
    verdict = judge(RequestAttempt(method, tries, status, headers, message, is_whole, NOW))
    assert verdict.seconds >= 0
    assert (verdict.step == "wait-for-limit") <= (verdict.seconds >= 1)
    assert not (method == "POST" and verdict.step in ("repeat", "give-up"))
