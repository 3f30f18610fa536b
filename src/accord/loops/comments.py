"""The comment that shows a loop's state: a table for people, and below it the state for the loop itself.

The state counts only in a comment of our own identity; a stranger's imitation is a comment like any other. It travels
in a marker (``accord.github.markers``), whose values cannot end the HTML comment that they stand in, beside the commit
that holds the same state (``accord.loops.state``). The marker names its pull request: on another one, a copy of the
comment says nothing. A marker of an earlier version names none, and is read wherever it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from accord.github.markers import defuse, find_markers, write_marker
from accord.loops.models import LoopState, Told
from accord.text.markdown import cell, table
from accord.text.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.loops.models import Decision, Iteration
    from accord.text.redaction import Redactor


MARKER = "loop"
STATE_CHARACTERS = 30_000
"""The marker's share of a comment's 65,536 characters; the oldest iterations make room."""

LONGEST_SENTENCE = 600

_TITLES = {
    "run": "Running",
    "fix": "Fixing checks",
    "wait": "Waiting",
    "stop": "Stopped",
    "defer": "Deferred",
    "report": "Verified",
    "follow-up": "Work is left",
    "ask": "A person is asked",
}
_DUE = {"run": "The next run is due", "fix": "Checks are to be fixed"}
"""Titles while no run is under way: one ended, and the next did not begin."""

_GOES_ON = ("run", "fix", "wait", "defer")
_HEAD = ["Iteration", "Result", "Changes", "Tasks done", "Duration", "Cost"]


class Shown(NamedTuple):
    """What a comment of a loop holds; ``state`` is None where it cannot be read."""

    state: LoopState | None
    commit: str = ""
    tree: str = ""


def read_shown(body: str, loop: str, pull: int) -> Shown | None:
    """Read the comment of a loop; None where it is none of this loop on this pull request."""
    for fields in find_markers(body, MARKER):
        if fields.get("loop") == loop and fields.get("pull", str(pull)) == str(pull):
            state = read_state(fields.get("state", ""), loop)
            return Shown(state, fields.get("commit", ""), fields.get("tree", "")) if state else Shown(None)
    return None


def read_state(text: str, loop: str) -> LoopState | None:
    """Read a state; None for what is none of this loop and of this version."""
    try:
        state = LoopState.model_validate_json(text)
    except ValidationError:
        return None
    return state if state.loop == loop else None


def promises_more(state: LoopState) -> bool:
    """Tell whether the comment says that the loop goes on by itself, though no run is under way."""
    return state.running is None and state.told is not None and state.told.action in _GOES_ON


def telling(state: LoopState, decision: Decision, said: str = "", secrets: Redactor | None = None) -> LoopState:
    """Let the comment tell a decision, and what was said of a failure, without secrets and of bounded length."""
    redact = secrets or Redactor()
    told = Told(
        action=decision.action,
        reason=decision.reason,
        message=_cut(redact(decision.message)),
        warnings=tuple(_cut(redact(warning)) for warning in decision.warnings[:5]),
        said=_cut(redact(said)),
    )
    return state.model_copy(update={"told": told})


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"


def state_text(state: LoopState) -> str:
    """Write a state as JSON."""
    return state.model_dump_json(exclude_defaults=True)


def write_comment(state: LoopState, pull: int, commit: str = "", tree: str = "") -> str:
    """Write the comment: what was decided, a row an iteration, and the state with its place."""
    parts = [f"### accord {state.loop}"]
    told = state.told
    if told is not None:
        title = _TITLES[told.action] if state.running else _DUE.get(told.action, _TITLES[told.action])
        parts.append(f"**{title}** (`{cell(told.reason)}`). {cell(told.message)}")
        parts += [f"> {cell(text)}" for text in (told.said, *told.warnings) if text]
    if state.history:
        parts.append(iterations_table(state))
    parts.append(_bounded(state, pull, commit, tree))
    return "\n\n".join(parts)


def iterations_table(state: LoopState) -> str:
    """Write a row an iteration, newest first."""
    return table(_HEAD, [row(iteration) for iteration in reversed(state.history)])


def row(iteration: Iteration) -> list[str]:
    """Write the cells of an iteration."""
    if iteration.exit_code == "0":
        result = "✅ ended well"
    else:
        result = f"❌ {iteration.category or 'unknown'}, {iteration.recovery or 'manual'}"
    cost = "" if iteration.cost_usd is None else f"${iteration.cost_usd:.2f}"
    minutes, seconds = divmod(round(iteration.seconds), 60)
    changes = f"`{cell(iteration.head_sha[:12])}`" if iteration.changes_made else "none"
    return [str(iteration.number), result, changes, str(iteration.tasks_done), f"{minutes}:{seconds:02}", cost]


def _bounded(state: LoopState, pull: int, commit: str, tree: str) -> str:
    """Write the marker, with as many of the newest iterations as there is room for."""
    for kept in range(len(state.history), -1, -1):
        history = state.history[len(state.history) - kept :]
        text = state_text(state.model_copy(update={"history": history}))
        marker = write_marker(MARKER, loop=state.loop, pull=str(pull), commit=commit, tree=tree, state=text)
        if len(marker) <= STATE_CHARACTERS or not kept:
            return marker
    raise AssertionError("range ends with 0")


_CUT = "\n\n[…]"


def text_to_post(text: str, secrets: Redactor, characters: int) -> str:
    """Return Markdown that may be posted, about ``characters`` of it and never twice as many.

    Secrets go first, as half of one is not found any more. A marker is made void in code too: to a program it is one.
    """
    from accord.text.sanitise import sanitise

    def fit(cut: str) -> str:
        return defuse(sanitise(cut, secrets=secrets).text)[0].strip()

    return _short(secrets(text.replace("\r\n", "\n")), fit, characters, 2 * characters, _CUT)


def line_to_post(text: str, secrets: Redactor, characters: int) -> str:
    """Return a title that may be posted, never longer than ``characters``."""
    from accord.text.sanitise import sanitise_line

    def fit(cut: str) -> str:
        return defuse(sanitise_line(cut, secrets=secrets).text)[0].strip()

    return _short(secrets(text), fit, characters, characters, "…")


def _short(text: str, fit: Callable[[str], str], characters: int, most: int, end: str) -> str:
    """Cut before the text is made fit, as what is cut afterwards may act again; made to grow, it is cut shorter."""
    made = fit(text if len(text) <= characters else text[: characters - len(end)] + end)
    while len(made) > most:
        characters //= 2
        made = fit(text[:characters] + end)
    return made
