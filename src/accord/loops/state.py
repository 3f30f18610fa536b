"""The state of a loop: a stored document at a ref, and a comment that shows it to people and to readers.

Readers read the comment alone, and what they decide on an old state is judged again before it is written. Only a
comment of our own login counts. Its marker names the pull request, so a copy on another one says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from accord.core.clock import attempts
from accord.core.errors import Refused
from accord.github.client import GitHub
from accord.github.comments import Comment, show_comment
from accord.github.state import PAUSE_SECONDS, Link, Stored, StoredDocument
from accord.loops.models import Closed, Iteration, LoopDecision, LoopName, LoopState, Notice
from accord.loops.texts import Poster
from accord.text.markdown import cell, table
from accord.text.markers import find_markers, write_marker

if TYPE_CHECKING:
    from accord.engine.operations import OperationLog


README = (
    "accord maintains this ref. Each commit's message holds the state of a loop that works on a pull request; "
    "a comment there shows the newest. You can delete it when the pull request is closed.\n"
)
MARKER = "loop"
STATE_CHARACTERS = 30_000
"""The marker's share of a comment's 65,536 characters; the oldest iterations are dropped to fit."""

LONGEST_SENTENCE = 600

_TITLES = {
    "run": "Running",
    "fix": "Fixing checks",
    "update": "Updating the branch",
    "review": "Waiting for a review",
    "announce": "Ready to be merged",
    "wait": "Waiting",
    "stop": "Stopped",
    "defer": "Deferred",
    "report": "Verified",
    "follow-up": "Work is left",
    "ask": "Waiting for a person",
}
_DUE = {"run": "The next run is due", "fix": "The next fix is due"}
"""Titles while no run is in progress: one ended, and the next has not begun."""

CONTINUES = ("run", "fix", "review", "wait", "defer")
"""Actions after which the loop continues by itself."""

_HEAD = ["Iteration", "Result", "Changes", "Tasks done", "Duration", "Cost"]


class StateStore(StoredDocument[LoopState]):
    """The stored state of one loop on one pull request; ``comments`` are ours that show it, None before they are read.

    ``own_comments`` are all of ours there, as they were listed last.
    """

    def __init__(
        self, github: GitHub, pull: int, loop: LoopName, is_ours: Callable[[str], bool], log: OperationLog
    ) -> None:
        super().__init__(github, f"refs/accord/loops/{pull}/{loop}", README, f"the state of {loop} on #{pull}")
        self.github, self.pull, self.loop, self.is_ours, self.log = github, pull, loop, is_ours, log
        self.comments: tuple[Comment, ...] | None = None
        self.own_comments: tuple[Comment, ...] = ()

    def encode(self, value: LoopState) -> str:
        """Return a state as JSON."""
        return value.model_dump_json(exclude_defaults=True)

    def decode(self, text: str) -> LoopState:
        """Parse a state."""
        state = parse_state(text, self.loop)
        if state is None:
            hint = "Use the version that wrote it, or delete the ref to continue from the comment."
            raise Refused(f"{self.ref} holds no state of {self.loop} that this version can read.", hint=hint)
        return state

    def title(self, value: LoopState) -> str:
        """Return the first line of a commit message."""
        return f"{self.loop} of #{self.pull}, revision {value.revision}"

    def load(self) -> Stored[LoopState]:
        """Read the state: one request, and one or two more unless exactly one comment of ours shows it."""
        self.comments = self._our_comments()
        views = (read_view(comment.body, self.loop, self.pull) for comment in self.comments)
        shown = [view for view in views if view]
        if len(self.comments) != 1 or not shown:
            stored = self.newest()
            if stored or not shown:
                return stored or Stored(LoopState(loop=self.loop))
        return max(shown, key=lambda view: view.value.revision)

    def update(self, stored: Stored[LoopState], step: Callable[[LoopState], LoopState | None]) -> Stored[LoopState]:
        """Write ``step(state)`` of the newest state as the next revision, unless it is None or the state itself.

        A dry run returns the state that it would write.
        """

        def decide(state: LoopState) -> LoopState | None:
            wanted = step(state)
            if wanted is None or wanted == state:
                return None
            return wanted.model_copy(update={"revision": state.revision + 1})

        return self.log.change(self, stored, decide, self.pull)

    def render(self, stored: Stored[LoopState]) -> None:
        """Write the comment, and delete further ones of ours."""
        state, link = stored.value, stored.link
        page = self.github.run_page(state.started_run) if state.started_run else ""
        body = write_comment(state, self.pull, *((link.sha, link.tree) if link else ("", "")), page)
        show = partial(show_comment, self.github, self.pull, body, find=self._our_comments, is_ours=self.is_ours)
        known = self._our_comments() if self.comments is None else self.comments
        pauses = (PAUSE_SECONDS, 2 * PAUSE_SECONDS) if state.revision > 1 and not known else ()
        for _ in attempts(self.github.clock, pauses):  # the first writer gets time to create it
            if known := known or self._our_comments():
                break
        shown = show(known)
        if not known:  # another writer may have created one at the same time
            shown = show(self._our_comments() or (shown,))
        self.comments = (shown,)

    def _our_comments(self) -> tuple[Comment, ...]:
        self.own_comments = tuple(one for one in self.github.comments(self.pull) if self.is_ours(one.author))
        ours = (comment for comment in self.own_comments if _view_fields(comment.body, self.loop, self.pull))
        return tuple(sorted(ours, key=lambda comment: comment.id))


def _view_fields(body: str, loop: str, pull: int) -> Mapping[str, str]:
    """Return what the marker of a comment says; empty where it does not belong to this loop on this pull request."""
    found = (each for each in find_markers(body, MARKER) if (each.get("loop"), each.get("pull")) == (loop, str(pull)))
    return next(found, {})


def read_view(body: str, loop: str, pull: int) -> Stored[LoopState] | None:
    """Read the state that a comment shows; None without one of this loop on this pull request that can be read."""
    fields = _view_fields(body, loop, pull)
    state, commit = parse_state(fields.get("state", ""), loop), fields.get("commit", "")
    return Stored(state, Link(commit, fields.get("tree", "")) if commit else None, is_shown=True) if state else None


def parse_state(text: str, loop: str) -> LoopState | None:
    """Parse a state; None where it is not a state of this loop and version."""
    try:
        state = LoopState.model_validate_json(text)
    except ValidationError:
        return None
    return state if state.loop == loop else None


def with_notice(state: LoopState, decision: LoopDecision, post: Poster, problem: str = "") -> LoopState:
    """Put a decision and a problem into the notice, safe to post and of bounded length."""
    from accord.text.sanitise import sanitise_line

    def to_line(text: str) -> str:
        text = sanitise_line(post.secrets(text)[: 4 * LONGEST_SENTENCE], **post._asdict()).text
        return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"

    notice = Notice(
        action=decision.action,
        reason=decision.reason,
        message=to_line(decision.message),
        warnings=tuple(map(to_line, decision.warnings[:5])),
        problem=to_line(problem),
    )
    return state.model_copy(update={"notice": notice, "started_run": decision.started_run})


def write_comment(state: LoopState, pull: int, commit: str = "", tree: str = "", run_page: str = "") -> str:
    """Return the comment: the notice, the run that was started, a row for each iteration, and the state in a marker."""
    parts = [f"### accord {state.loop}"]
    notice = state.notice
    if notice is not None:
        title = _TITLES[notice.action] if state.running else _DUE.get(notice.action, _TITLES[notice.action])
        link = f" [Started run]({run_page})" if run_page else ""
        parts.append(f"**{title}** (`{cell(notice.reason)}`). {cell(notice.message)}{link}")
        parts += [f"> {cell(text)}" for text in (notice.problem, *notice.warnings) if text]
    parts += [iterations_table(state)] if state.history else []
    marker = ""
    for kept in range(len(state.history), -1, -1):  # as many of the newest iterations as fit
        newest = state.model_copy(update={"history": state.history[len(state.history) - kept :]})
        text = newest.model_dump_json(exclude_defaults=True)
        marker = write_marker(MARKER, loop=state.loop, pull=str(pull), commit=commit, tree=tree, state=text)
        if len(marker) <= STATE_CHARACTERS:
            break
    return "\n\n".join([*parts, marker])


def iterations_table(state: LoopState) -> str:
    """Return a table with a row for each iteration, newest first."""
    return table(_HEAD, [iteration_row(iteration) for iteration in reversed(state.history)])


def iteration_row(iteration: Iteration) -> list[str]:
    """Return the cells of an iteration."""
    word = "budget" if iteration.is_over_budget else iteration.category or "unknown"
    failure = f"❌ {word}, {iteration.recovery or 'manual'}"
    result = "✅ succeeded" if iteration.exit_code == "0" else failure
    cost = "" if iteration.cost_usd is None else f"${iteration.cost_usd:.2f}"
    minutes, seconds = divmod(round(iteration.seconds), 60)
    changes = f"`{cell(iteration.head_sha[:12])}`" if iteration.changes_made else "none"
    return [str(iteration.number), result, changes, str(iteration.tasks_done), f"{minutes}:{seconds:02}", cost]


class HistoryLine(Closed):
    """One run of a loop, as a line."""

    version: int = 1
    pull: int
    loop: LoopName
    iteration: Iteration


def write_history(pull: int, loop: LoopName, iterations: Iterable[Iteration]) -> str:
    """Return one line for each run, oldest first."""
    lines = (HistoryLine(pull=pull, loop=loop, iteration=iteration) for iteration in iterations)
    return "".join(line.model_dump_json() + "\n" for line in lines)
