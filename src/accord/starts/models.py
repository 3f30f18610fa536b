"""Events that may start something, and the data of an item's status comment."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from accord.core.frozen import Frozen


class Trigger(StrEnum):
    """The kinds of events, by the line of the configuration that switches them on."""

    LABEL = "labels"
    COMMENT = "comments"
    DASHBOARD = "dashboard"
    SPECS = "specs"
    PULL = "pull-requests"
    REVIEW_REQUEST = "review-requests"
    CLOSED = "ready"
    MERGED = "merges"


Work = Literal["plan", "implement", "review"]
"""The kinds of work that can be started."""

NOUNS: Mapping[Work, str] = {"plan": "plan", "implement": "implementation", "review": "review"}
WORKFLOWS: Mapping[Work, str] = {work: f"accord-{work}.yml" for work in ("plan", "implement", "review")}
ITEM_INPUT: Mapping[Work, str] = {"plan": "item", "implement": "work-item", "review": "pull"}
"""The input of each workflow that names its issue or pull request."""

PLAN_LABEL = "agents:plan"
REVIEW_LABEL = "agents:review"
AGENT_PREFIX = "agent:"
COMMANDS = ("plan", "implement", "review", "retry", "stop")


class Tick(NamedTuple):
    """A ticked box of the dashboard: the issue or pull request, and what to do with it."""

    number: int
    word: str


class StartEvent(Frozen):
    """An event as far as it matters."""

    trigger: Trigger
    key: str  # the same in every delivery of one event
    at: datetime  # of the event
    sender: str
    is_bot: bool = False
    number: int = 0
    is_pull: bool = False
    word: str = ""  # the command of a comment or the name of a label
    has_more_words: bool = False  # the command is followed by others
    named: int = 0  # the item that a command names, 0 without one
    ticks: tuple[Tick, ...] = ()  # boxes that an edit of the dashboard ticked
    comment_id: int = 0
    before: str = ""  # the commit before a push
    head: str = ""  # the commit of a push or of a pull request
    is_fork: bool = False
    is_draft: bool = False


def key_of(*parts: object) -> str:
    """Return a word by which a start is found again, in a run's name too: the same parts give the same word."""
    return f"accord-{hashlib.sha256(chr(10).join(map(str, parts)).encode()).hexdigest()[:12]}"


RowState = Literal["queued", "running", "done", "nothing", "failed", "cancelled"]
ACTIVE: frozenset[RowState] = frozenset({"queued", "running"})


class StatusRow(BaseModel):
    """One start."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    work: Work
    state: RowState
    since: str  # a timestamp
    by: str = ""  # who asked
    agent: str = ""
    run: int = 0  # the workflow run, 0 until it began
    result: str = ""
    next_step: str = ""
    cost: str = ""
    cause: str = ""  # the event's line of the configuration; empty for a run that a person started by hand
    head: str = ""  # the commit to review


MOST_ROWS = 10
_MOST_ANSWERED = 20


class ItemStatus(BaseModel):
    """The data of the status comment of an item: its starts, oldest first, and the last answer to a person.

    ``answered`` are the keys of events that got an answer instead of a start.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    rows: tuple[StatusRow, ...] = ()
    answer: str = ""
    answered: tuple[str, ...] = ()

    def row(self, key: str) -> StatusRow | None:
        """Return the start with this key."""
        return next((row for row in self.rows if row.key == key), None)

    @property
    def last(self) -> StatusRow | None:
        """The newest start."""
        return self.rows[-1] if self.rows else None

    def with_row(self, row: StatusRow) -> ItemStatus:
        """Put a start in the place of the one with its key, else at the end; an answer before it is out of date."""
        if self.row(row.key):
            rows = tuple(row if old.key == row.key else old for old in self.rows)
        else:
            rows = (*self.rows, row)[-MOST_ROWS:]
        return ItemStatus(rows=rows, answered=self.answered)

    def with_answer(self, key: str, answer: str) -> ItemStatus:
        """Record the answer to an event."""
        answered = (*(old for old in self.answered if old != key), key)[-_MOST_ANSWERED:]
        return self.model_copy(update={"answer": answer, "answered": answered})
