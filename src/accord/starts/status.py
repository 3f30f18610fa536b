"""The texts on GitHub that start work: the status comment of an item, and the boxes of the dashboard. Pure.

The one status comment of an issue or pull request shows the run, its start, its result and the next step. Its marker
holds the data of all rows, so that an edit keeps the earlier ones. Only comments of our own login count. An edit of the
dashboard ticks boxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

from pydantic import ValidationError

from accord.core.clock import time_of
from accord.core.errors import BrokenContract
from accord.core.frozen import Frozen
from accord.files.yaml import read_mapping
from accord.github.comments import Comment
from accord.github.models import Identity, Issue
from accord.starts.models import NOUNS, ItemStatus, StatusRow, Tick
from accord.text.markdown import as_code, table
from accord.text.markers import find_markers, write_marker

MARKER = "status"
_STATES = {
    "queued": "is starting",
    "running": "is running",
    "done": "is done",
    "nothing": "found nothing to do",
    "failed": "failed",
    "cancelled": "was stopped",
}
_SIGNS = {"queued": "⏳", "running": "⏳", "done": "✅", "nothing": "✅", "failed": "❌", "cancelled": "⏹️"}

BOARD = "board"
"""The marker of the dashboard's issue."""

BoxWord = Literal["implement", "review", "retry", "ready"]
"""The effect of a box: a command of comments, or ``ready``, which moves a pending work item to ready."""

_WORDS: frozenset[str] = frozenset(get_args(BoxWord))
_MARKER = "box"
_BOX = re.compile(r"- \[([ xX])\] (<!-- accord:box [^<>]*-->)")
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")


class StatusView(Frozen):
    """The status of an item, and our comments that show it, oldest first: none before the first, one ever after."""

    status: ItemStatus
    comments: tuple[Comment, ...] = ()


def view_of(comments: Iterable[Comment], identity: Identity, number: int) -> StatusView:
    """Find the status comment among the comments of an item."""
    ours = [comment for comment in comments if identity.counts(comment.author)]
    shown = [(comment, status) for comment in ours if (status := read_body(comment.body, number)) is not None]
    status = shown[0][1] if shown else ItemStatus()
    return StatusView(status, tuple(comment for comment, _ in shown))


def read_body(body: str, number: int) -> ItemStatus | None:
    """Read a comment; None where it is not the status comment of this item, empty where its data is broken."""
    for fields in find_markers(body, MARKER):
        if fields.get("item") == str(number):
            try:
                return ItemStatus.model_validate_json(fields.get("data", ""))
            except ValidationError:
                return ItemStatus()
    return None


def write_body(status: ItemStatus, number: int, page: str) -> str:
    """Return the comment. ``page`` is the address of the repository."""
    marker = write_marker(MARKER, item=str(number), data=status.model_dump_json(exclude_defaults=True))
    parts = [_headline(status.last, page)] if status.last else []
    parts += [f"> {status.answer}"] if status.answer else []
    earlier = status.rows[-2::-1]
    if earlier:
        rows = [
            [_link(NOUNS[row.work], row, page), _time(row), _SIGNS[row.state], row.result, row.cost] for row in earlier
        ]
        parts.append(table(["Earlier", "Since (UTC)", "", "Result", "Cost"], rows))
    return "\n\n".join([*(parts or ["accord has not started anything here yet."]), marker])


def _headline(row: StatusRow, page: str) -> str:
    who = f", asked for by {as_code(row.by)}" if row.by else ""
    agent = f" with the agent {as_code(row.agent)}" if row.agent else ""
    run = f" ({_link('run', row, page)})" if row.run else ""
    lines = [
        f"{_SIGNS[row.state]} **accord: the {NOUNS[row.work]} {_STATES[row.state]}**{run}.",
        f"Since {_time(row)} UTC{who}{agent}.",
        row.result,
        f"Next: {row.next_step}" if row.next_step else "",
        f"Cost: {row.cost}." if row.cost else "",
    ]
    return "\n".join([lines[0], "", *(f"- {line}" for line in lines[1:] if line)])


def _link(text: str, row: StatusRow, page: str) -> str:
    return f"[{text}]({page}/actions/runs/{row.run})" if row.run else text


def _time(row: StatusRow) -> str:
    at = time_of(row.since)
    return f"{at:%Y-%m-%d %H:%M}" if at else "an unknown time"


def is_dashboard(issue: Issue, identity: Identity) -> bool:
    """Return whether an issue is a dashboard that this account wrote."""
    return bool(find_markers(issue.body, BOARD)) and identity.counts(issue.author) and not issue.is_pull


def write_box(number: int, word: BoxWord) -> str:
    """Return the beginning of a line with a box for an item; the text of the line follows after a blank."""
    return f"- [ ] {write_marker(_MARKER, item=str(number), start=word)}"


def ticks_between(before: str, after: str) -> tuple[Tick, ...]:
    """Return the boxes that were empty before an edit and are ticked after it, in the order of the later body."""
    empty = {tick for tick, is_ticked in _boxes(before).items() if not is_ticked}
    return tuple(tick for tick, is_ticked in _boxes(after).items() if is_ticked and tick in empty)


def _boxes(body: str) -> dict[Tick, bool]:
    found: dict[int, tuple[Tick, bool]] = {}
    for line in body.splitlines():
        box = _BOX.match(line)
        for fields in find_markers(box[2], _MARKER) if box else ():
            number, word = fields.get("item", ""), fields.get("start", "")
            if box and _NUMBER.fullmatch(number) and word in _WORDS:
                found.setdefault(int(number), (Tick(int(number), word), box[1] != " "))
    return dict(found.values())


def hears_edits(workflow: bytes | None) -> bool:
    """Return whether a workflow file is started by edits of issues; False without the file."""
    try:
        events: Any = read_mapping(workflow).value.get("on") if workflow else None
    except BrokenContract:
        return False
    issues = events.get("issues") if isinstance(events, dict) else None
    types = issues.get("types") if isinstance(issues, dict) else None
    return isinstance(types, list) and "edited" in types
