"""The comment that shows a loop's state: nothing in it can break out, and it fits whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loops import failed, well

from accord.engine.trust import NEEDS_HUMAN as HUMAN
from accord.github.limits import BODY_CHARS
from accord.github.state import Link, Stored
from accord.loops.ledger import KEPT
from accord.loops.models import Budgets, LoopDecision, LoopState
from accord.loops.plan import aftermath
from accord.loops.state import read_view, with_notice, write_comment
from accord.loops.texts import Poster
from accord.runner.models import RunOutputs
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

STOP = LoopDecision(action="stop", reason="same-error", message="The same error ended two runs.")
HOSTILE = st.text(max_size=90) | st.sampled_from(
    ["-->", "<!-- accord:loop loop=keepalive state={} -->", "|\n|", "@octo", "![x](https://example.org)"]
)


POST = Poster(Redactor(), PostingPolicy())


@pytest.mark.slow
@given(error=HOSTILE, run_id=HOSTILE, message=HOSTILE, said=HOSTILE)
def test_a_state_comes_back_whatever_its_texts_hold(error: str, run_id: str, message: str, said: str) -> None:
    state = LoopState(revision=3, history=(well(run_id, error=error),))
    state = with_notice(state, STOP.model_copy(update={"message": message}), POST, said)
    found = read_view(write_comment(state, 7, "c" * 40, "d" * 40), "keepalive", 7)
    assert found == Stored(state, Link("c" * 40, "d" * 40), is_shown=True)


def test_each_loop_finds_its_own_state() -> None:
    body = write_comment(LoopState(loop="autofix", iterations=2), 7)
    assert read_view(body, "keepalive", 7) is None
    found = read_view(body, "autofix", 7)
    assert found.value == LoopState(loop="autofix", iterations=2)


def test_a_copy_of_a_comment_says_nothing_on_another_pull_request() -> None:
    body = write_comment(LoopState(iterations=4), 7)
    assert read_view(body, "keepalive", 8) is None
    both = f"{body}\n{write_comment(LoopState(iterations=1), 8)}"
    assert read_view(both, "keepalive", 8) == Stored(LoopState(iterations=1), is_shown=True)


@pytest.mark.parametrize(
    "state", ["", "state=%7B", "state=%7B%22version%22%3A2%7D", "state=%7B%22loop%22%3A%22verify%22%7D"]
)
def test_an_unreadable_state_is_recognised(state: str) -> None:
    assert read_view(f"<!-- accord:loop loop=keepalive pull=7 {state} -->", "keepalive", 7) is None


def test_a_long_history_fits_a_comment_and_keeps_its_newest() -> None:
    history = tuple(
        failed("é" * 100, number=n, error="é" * 100, tree="é" * 100, head_sha="é" * 100) for n in range(KEPT)
    )
    stop = STOP.model_copy(update={"warnings": ("<" * 600,) * 9})
    told = with_notice(LoopState(iterations=KEPT, history=history), stop, POST, "<" * 9000)
    body = write_comment(told, 7)
    assert len(body) <= BODY_CHARS
    found = read_view(body, "keepalive", 7)
    assert (found.value.iterations, found.value.last) == (KEPT, history[-1])


def test_people_read_what_happened_and_no_secret() -> None:
    history = (
        well("1", changes_made=True, head_sha="abc", seconds=61, cost_usd=0.5, tasks_done=2),
        failed("2", number=2, category="transient", recovery="retry"),
    )
    post = Poster(Redactor(("correct-horse",)), PostingPolicy(words=("recheck",)))
    said = "It said correct-horse to @octo, recheck."
    noted = with_notice(LoopState(history=history), STOP, post, said)
    body = write_comment(noted, 7)
    assert "| 2 | ❌ transient, retry | none | 0 | 0:00 |  |" in body
    assert "| 1 | ✅ succeeded | `abc` | 2 | 1:01 | $0.50 |" in body
    assert "**Stopped** (`same-error`). The same error ended two runs." in body
    assert "correct-horse" not in body
    assert "@octo" not in body
    assert "recheck" not in body, "not even in the marker"


@pytest.mark.parametrize(
    ("recovery", "in_a_row", "label"),
    [("retry", 1, "agent:retry"), ("retry", 4, HUMAN), ("manual", 0, HUMAN), ("", 0, HUMAN), ("ignore", 0, "")],
)
def test_the_suggestion_of_the_runner_is_followed(recovery: str, in_a_row: int, label: str) -> None:
    last = failed("1", category="transient", recovery=recovery)
    done = aftermath(
        LoopState(transient_in_a_row=in_a_row, history=(last,)), Budgets(), RunOutputs(error_summary="It broke")
    )
    assert done.add_labels == ((label,) if label else ())
    ending = "It broke. A person is needed." if label == HUMAN else "It broke"
    assert done.problem.endswith(ending), "every failure has its summary"
