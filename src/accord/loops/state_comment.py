"""The comment that holds a loop's state: a table for people, and below it the state for the loop itself.

The state counts only in a comment of our own identity; a stranger's imitation is a comment like any other. It travels
in a marker (``accord.github.markers``), whose values cannot end the HTML comment that they stand in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from accord.github.markers import find_markers, write_marker
from accord.kernel.markdown_text import cell, table
from accord.loops.models import LoopState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from accord.github.comments import Comment
    from accord.loops.models import Decision, Iteration

MARKER = "loop"
STATE_CHARACTERS = 30_000
"""The marker's share of a comment's 65,536 characters; the oldest iterations make room."""

_TITLES = {"run": "Running", "fix": "Mending checks", "wait": "Waiting", "stop": "Stopped", "defer": "Deferred"}


def find_state(
    comments: Iterable[Comment], loop: str, is_ours: Callable[[str], bool]
) -> tuple[Comment | None, LoopState]:
    """Find the oldest comment of ours that holds this loop's state; None with a fresh state where there is none.

    One of ours whose state cannot be read (edited by a person, or of a later version) is skipped, never guessed at.
    """
    for comment in comments:
        if is_ours(comment.author):
            state = read_state(comment.body, loop)
            if state is not None:
                return comment, state
    return None, LoopState(loop=loop)


def read_state(body: str, loop: str) -> LoopState | None:
    """Read the state of a loop out of a comment's body; None where there is none that can be read."""
    for fields in find_markers(body, MARKER):
        if fields.get("loop") == loop:
            try:
                return LoopState.model_validate_json(fields.get("state", ""))
            except ValidationError:
                return None
    return None


def write_comment(state: LoopState, decision: Decision | None = None) -> str:
    """Write the comment: what was decided, a row an iteration, and the state."""
    parts = [f"### accord {state.loop}"]
    if decision is not None:
        parts.append(f"**{_TITLES[decision.action]}** (`{decision.reason}`). {cell(decision.message)}")
        parts += [f"> {cell(warning)}" for warning in decision.warnings]
    if state.history:
        parts.append(table(_HEAD, [_row(iteration) for iteration in reversed(state.history)]))
    parts.append(_bounded(state))
    return "\n\n".join(parts)


_HEAD = ["Iteration", "Result", "Changes", "Tasks done", "Duration", "Cost"]


def _row(iteration: Iteration) -> list[str]:
    if iteration.exit_code == "0":
        result = "✅ ended well"
    else:
        result = f"❌ {iteration.category or 'unknown'}, {iteration.recovery or 'manual'}"
    cost = "" if iteration.cost_usd is None else f"${iteration.cost_usd:.2f}"
    minutes, seconds = divmod(round(iteration.seconds), 60)
    changes = f"`{cell(iteration.head_sha[:12])}`" if iteration.changes_made else "none"
    return [str(iteration.number), result, changes, str(iteration.tasks_done), f"{minutes}:{seconds:02}", cost]


def _bounded(state: LoopState) -> str:
    """Write the marker, with as many of the newest iterations as there is room for."""
    for kept in range(len(state.history), -1, -1):
        history = state.history[len(state.history) - kept :]
        text = state.model_copy(update={"history": history}).model_dump_json(exclude_defaults=True)
        marker = write_marker(MARKER, loop=state.loop, state=text)
        if len(marker) <= STATE_CHARACTERS:
            return marker
    raise AssertionError("a state without history always fits")  # its texts are bounded
