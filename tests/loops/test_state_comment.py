"""The comment that holds a loop's state: ours alone counts, and nothing in it can break out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.github.comments import Comment
from accord.github.limits import BODY_CHARS
from accord.loops.ledger import KEPT
from accord.loops.models import Budgets, Decision, Iteration, LoopState
from accord.loops.recovery import aftermath
from accord.loops.state_comment import find_state, read_state, write_comment

STOP = Decision(action="stop", reason="same-error", message="The same error ended two runs in a row.")


def comment(body: str, author: str = "bot[bot]", number: int = 1) -> Comment:
    return Comment(number, "https://example.org", body, author)


def iteration(number: int, **more: object) -> Iteration:
    return Iteration.model_validate({"run_id": str(number), "number": number, **more})


HOSTILE = st.text(max_size=300) | st.sampled_from(
    ["-->", "<!-- accord:loop loop=keepalive state={} -->", "|\n|", "@octo"]
)


@given(error=HOSTILE, run_id=HOSTILE, message=HOSTILE)
def test_a_state_comes_back_whatever_its_texts_hold(error: str, run_id: str, message: str) -> None:
    state = LoopState(revision=3, history=(iteration(1, error=error, run_id=run_id),))
    body = write_comment(state, STOP.model_copy(update={"message": message}))
    assert read_state(body, "keepalive") == state


def test_a_strangers_state_counts_for_nothing() -> None:
    forged = comment(write_comment(LoopState(iterations=0)), author="mallory")
    own = comment(write_comment(LoopState(iterations=4)), number=2)
    found, state = find_state([forged, own], "keepalive", lambda author: author == "bot[bot]")
    assert (found, state.iterations) == (own, 4)


def test_each_loop_finds_its_own_state() -> None:
    body = write_comment(LoopState(loop="autofix", iterations=2))
    assert read_state(body, "keepalive") is None
    assert read_state(body, "autofix") == LoopState(loop="autofix", iterations=2)


@pytest.mark.parametrize(
    "body", ["", "<!-- accord:loop loop=keepalive state=%7B -->", "<!-- accord:loop loop=keepalive -->"]
)
def test_a_state_that_cannot_be_read_is_none(body: str) -> None:
    assert read_state(body, "keepalive") is None


def test_a_long_history_fits_a_comment_and_keeps_its_newest() -> None:
    history = tuple(iteration(n, error="é" * 2000) for n in range(KEPT))
    body = write_comment(LoopState(iterations=KEPT, history=history), STOP)
    assert len(body) <= BODY_CHARS
    state = read_state(body, "keepalive")
    assert state is not None
    assert state.iterations == KEPT
    assert state.last == history[-1]


def test_people_read_what_happened() -> None:
    state = LoopState(
        history=(
            iteration(1, changes_made=True, head_sha="abc", seconds=61, cost_usd=0.5, tasks_done=2),
            iteration(2, exit_code="1", category="transient", recovery="retry"),
        )
    )
    body = write_comment(state, STOP)
    assert "| 2 | ❌ transient, retry | none | 0 | 0:00 |  |" in body
    assert "| 1 | ✅ ended well | `abc` | 2 | 1:01 | $0.50 |" in body


@pytest.mark.parametrize(
    ("recovery", "in_a_row", "labels", "wait"),
    [
        ("retry", 1, ("agent:retry",), 60),
        ("retry", 4, ("needs-human",), None),
        ("manual", 0, ("needs-human",), None),
        ("ignore", 0, (), None),
    ],
)
def test_what_the_runner_suggests_is_done(
    recovery: str, in_a_row: int, labels: tuple[str, ...], wait: int | None
) -> None:
    last = iteration(1, exit_code="1", category="transient", recovery=recovery)
    done = aftermath(LoopState(transient_in_a_row=in_a_row, history=(last,)), Budgets(), "It broke.")
    assert (done.add_labels, done.wait_seconds) == (labels, wait)
    assert bool(done.comment) == ("needs-human" in labels)
