"""The dashboard as far as it starts work: its marker, its check boxes, and the boxes that an edit ticked. Pure."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from accord.core.errors import BrokenContract
from accord.files.yaml import read_mapping
from accord.github.models import Identity, Issue
from accord.starts.models import Tick
from accord.text.markers import find_markers, write_marker

BOARD = "board"
"""The marker of the dashboard's issue."""

BoxWord = Literal["implement", "review", "retry", "ready"]
"""The effect of a box: a command of comments, or ``ready``, which moves a pending work item to ready."""

_WORDS: frozenset[str] = frozenset(get_args(BoxWord))
_MARKER = "box"
_BOX = re.compile(r"- \[([ xX])\] (<!-- accord:box [^<>]*-->)")
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")


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
    """Return the boxes of a body and whether each is ticked. The first box of an item counts."""
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
