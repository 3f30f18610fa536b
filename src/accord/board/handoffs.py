"""The overview of handoffs: those stored with work items, and JSON files of a folder that hold a task's id."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.board.models import Entry
from accord.core.clock import time_of
from accord.core.documents import MAX_BYTES, read_object
from accord.core.errors import BrokenContract
from accord.git.program import Git, split_nul
from accord.handoffs.models import has_task_id, normalise, read_handoff
from accord.handoffs.stages import AWAITING, HandoffCommand, next_moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.board.models import Address, ItemHandoff, Placed
    from accord.core.machine import NextMove

MOST_HANDOFFS = 50
_OTHERS = ("tests", "test", "testdata", "fixtures", "samples", "examples")
"""Directories, at any depth, whose files are not work."""

_OVER = ("done", "cancelled")
_ONWARD = {
    "backlog": "planning",
    "planning": "implementing",
    "implementing": "review",
    "review": "verification",
    "verification": "done",
}
"""The status that usually follows."""


def read_handoffs(root: Path) -> Iterator[Placed]:
    """Yield the entries of the handoffs below a folder that git knows; none for a folder outside of a repository."""
    left_out = [f":(exclude,glob)**/{name}/**" for name in _OTHERS]
    found = Git(root).attempt(
        "grep", "-l", "-z", "-I", "--untracked", "-F", '"canonicalTaskId"', "--", "*.json", *left_out
    )
    for name in split_nul(found.stdout)[:MOST_HANDOFFS]:
        path = root / name
        with suppress(OSError, BrokenContract):  # other documents may hold the word, too
            with path.open("rb") as file:
                task = normalise(read_object(file.read(MAX_BYTES + 1)).value)
            if has_task_id(task):
                name, title = str(task["metadata"]["canonicalTaskId"]), str(task.get("title") or path.name)
                yield from place_handoff(task, name, title, shlex.quote(str(path)))


def place_item_handoff(handoff: ItemHandoff, address: Address) -> Iterator[Placed]:
    """Yield the entry of a handoff that is stored with an issue; none for a task that is over. Pure."""
    issue, place = handoff.issue, shlex.join(["--work-item", str(handoff.issue.number), *address.options])
    for section, entry in place_handoff(handoff.task, f"#{issue.number}", issue.title, place):
        yield section, replace(entry, url=issue.url)


def place_handoff(task: Mapping[str, Any] | None, name: str, title: str, place: str) -> Iterator[Placed]:
    """Yield the entry of a handoff; none for a task that is over. Pure.

    ``place`` names it in a command: its file, or options. Without a task, it cannot be read.
    """
    command = HandoffCommand(place)
    broken = Entry("broken", name, title, "The handoff breaks its contract.", command=f"accord handoff check {place}")
    if task is None:
        yield "needs_you", broken
        return
    status = str(task["status"])
    try:
        moves = next_moves(task, command) if status not in _OVER else ()
        question = read_handoff(task).metadata.awaiting_human_artifact
    except BrokenContract:
        yield "needs_you", broken
        return
    if status == AWAITING and moves:
        why = question.question if question and question.question else "It waits for a person."
        asked = time_of(question.requested_at) if question else None
        yield "needs_you", Entry("question", name, title, why, asked, command=_first(moves).command)
    elif status not in _OVER:
        move = next((one for one in moves if one.to == _ONWARD[status]), None)
        if move:
            yield _place_move(name, title, status, move)


def _place_move(name: str, title: str, status: str, move: NextMove) -> Placed:
    if move.missing:
        why = f"It cannot move from {status} to {move.to} without {', '.join(move.missing)}."
        return "needs_you", Entry("handoff", name, title, why, command=move.command)
    return "ready", Entry("handoff", name, title, f"It may move from {status} to {move.to}.", command=move.command)


def _first(moves: Sequence[NextMove]) -> NextMove:
    """Return the first legal move that goes on with the task."""
    return min(moves, key=lambda move: (move.to in _OVER, bool(move.missing)))
