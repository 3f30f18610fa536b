"""The overview of a repository: entries by what they ask of people, and the facts of GitHub that they come from."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import inf
from typing import Any, Literal, get_args

from accord.core.clock import timestamp
from accord.core.frozen import Frozen
from accord.engine.trust import RefusedLabel
from accord.git.origin import gh_name
from accord.github.checks import Check
from accord.github.models import Identity, Issue, Pull, Review
from accord.github.workflows import WorkflowRun
from accord.loops.models import LoopState
from accord.records.models import PublicRecord
from accord.starts.models import StatusRow
from accord.starts.status import BoxWord

NeedKind = Literal[
    "question",
    "approval",
    "merge",
    "protected",
    "conflict",
    "failure",
    "budget",
    "needs-human",
    "handoff",
    "stale",
    "broken",
    "label",
]
"""Why a person is needed, in the order in which an overview lists them."""

_NEEDS: tuple[str, ...] = get_args(NeedKind)

EntryKind = NeedKind | Literal["item", "pull", "run", "loop", "session", "mission"]


class SessionQuestion(Frozen):
    """An open question of a session: the session's folder, and the question's id."""

    folder: str
    decision: str


class Entry(Frozen):
    """One line of the overview."""

    kind: EntryKind
    id: str  # of the subject in the repository: `#12`, a session, a work package
    title: str
    why: str  # a sentence or a few words
    since: datetime | None = None  # when it began, None if that is unknown
    url: str = ""
    command: str = ""  # to type next; empty where there is nothing to type
    cost: str = ""  # as the agent reported it, in words
    start: BoxWord | Literal[""] = ""  # by a box of the dashboard; empty for an entry that gets none
    repository: str = ""  # empty for documents of a folder
    question: SessionQuestion | None = None  # that an answer settles

    @property
    def full_id(self) -> str:
        """The id with its repository, as GitHub links it: ``octo/web#12``; that of documents names no repository."""
        return f"{self.repository}{self.id}" if self.id.startswith("#") else self.id

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of an entry."""
        names = ("kind", "id", "title", "why", "url", "command", "cost", "start", "repository")
        fields = {name: getattr(self, name) for name in names}
        return {**fields, "since": timestamp(self.since) if self.since else None}


HEADINGS = {
    "needs_you": "Needs you",
    "running": "Running",
    "waiting": "Waiting",
    "ready": "Ready to start",
    "done": "Done",
}
SECTIONS = tuple(HEADINGS)
WITH_COMMAND = ("needs_you", "ready")
"""Sections whose entries show what to type."""


class Overview(Frozen):
    """All entries by section: those that need a person, run, wait, can start, or ended."""

    needs_you: tuple[Entry, ...] = ()
    running: tuple[Entry, ...] = ()
    waiting: tuple[Entry, ...] = ()
    ready: tuple[Entry, ...] = ()
    done: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be read
    repositories: tuple[str, ...] = ()

    def sections(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return the entries by section, in the order of reading."""
        return {name: getattr(self, name) for name in SECTIONS}

    def as_json(self) -> dict[str, Any]:
        """Return the JSON document of an overview."""
        sections = {name: [entry.as_json() for entry in entries] for name, entries in self.sections().items()}
        return {**sections, "notes": list(self.notes)}


Placed = tuple[str, Entry]
"""A section of the overview, and an entry for it."""


def overview_from(
    placed: Iterable[Placed], notes: tuple[str, ...] = (), repositories: tuple[str, ...] = ()
) -> Overview:
    """Return the overview of entries with their sections."""
    found = list(placed)
    needs, running, waiting, ready, done = (tuple(one for where, one in found if where == name) for name in SECTIONS)
    return Overview(needs, running, waiting, ready, done, notes, repositories)


def join_overviews(*overviews: Overview) -> Overview:
    """Return one overview of several sources; what needs a person comes by kind, the oldest first."""
    found = [(name, entries) for overview in overviews for name, entries in overview.sections().items()]
    placed = [(name, entry) for name, entries in found for entry in entries]
    notes = tuple(note for overview in overviews for note in overview.notes)
    names = tuple(name for overview in overviews for name in overview.repositories)
    return overview_from(sorted(placed, key=_rank), notes, names)


def _rank(placed: Placed) -> tuple[int, float]:
    """Return the place in a section: by kind and time, running entries the oldest first, ended ones the newest first.

    Entries without a time come last.
    """
    section, entry = placed
    seconds = entry.since.timestamp() if entry.since else inf
    if section == "needs_you":
        return _NEEDS.index(entry.kind), seconds
    if section == "done":
        return 0, -seconds if entry.since else inf
    return 0, seconds if section == "running" else 0


class BoardItem(Frozen):
    """An open issue with its starts and its open blockers."""

    issue: Issue
    rows: tuple[StatusRow, ...] = ()  # oldest first
    open_blockers: int = 0
    blockers: tuple[int, ...] = ()  # those known by number
    refused: tuple[RefusedLabel, ...] = ()  # they start or steer work, and were set by someone who may not


class BoardPull(Frozen):
    """An open pull request that accord works on, read by itself, so that it says whether it can be merged."""

    pull: Pull
    items: tuple[int, ...] = ()  # the work items that it closes
    rows: tuple[StatusRow, ...] = ()
    loops: tuple[LoopState, ...] = ()
    checks: tuple[Check, ...] = ()
    held: tuple[WorkflowRun, ...] = ()  # runs of its head that wait for approval
    is_approved: bool = False  # a review approves this head, and no one requests changes
    wants_changes: bool = False
    judged_at: datetime | None = None  # by the newest review that says either
    is_item_closed: bool = False  # every item that it was opened for
    reviews: tuple[Review, ...] = ()  # of people who count and of accord, oldest first
    refused: tuple[RefusedLabel, ...] = ()  # labels that someone set who may not start or steer work

    @property
    def number(self) -> int:
        """The number of the pull request."""
        return self.pull.number


class EndedPull(Frozen):
    """A pull request of accord that was merged or closed, and its work items."""

    issue: Issue
    items: tuple[int, ...] = ()
    closes: tuple[int, ...] = ()  # the items of its body
    pull: Pull | None = None  # None unless an item is open
    has_branch: bool = True
    rows: tuple[StatusRow, ...] = ()  # empty, as the next two, where its history was not read
    loops: tuple[LoopState, ...] = ()
    reviews: tuple[Review, ...] = ()

    @property
    def number(self) -> int:
        """The number of the pull request."""
        return self.issue.number


class Address(Frozen):
    """How a repository is named: its page, and in commands."""

    repository: str
    page: str
    options: tuple[str, ...]  # of accord's commands, such as `--repo octo/web`
    gh: str = ""  # its name for the GitHub CLI, empty where that cannot reach it

    def run_page(self, run: object) -> str:
        """Return the page of a workflow run; empty for an id that GitHub did not give."""
        return f"{self.page}/actions/runs/{run}" if str(run).isdecimal() and int(str(run)) else ""

    def accord(self, *words: object) -> str:
        """Return a command of accord for this repository."""
        return shlex.join(["accord", *map(str, words), *self.options])

    def gh_command(self, *words: object) -> str:
        """Return a command of the GitHub CLI for this repository; empty where that cannot reach it."""
        return shlex.join(["gh", *map(str, words), "--repo", self.gh]) if self.gh else ""


def address_of(repository: str, server_url: str, sandbox: str | None = None) -> Address:
    """Return the address of a repository on a server, or in the folder of a sandbox."""
    page = f"{server_url.rstrip('/')}/{repository}"
    if sandbox is not None:
        return Address(repository, page, ("--sandbox", sandbox))
    return Address(repository, page, ("--repo", repository), gh_name(page))


class ItemHandoff(Frozen):
    """The handoff that is stored with an open issue; ``task`` is None where this version cannot read it."""

    issue: Issue
    task: Mapping[str, Any] | None


class BoardRepository(Frozen):
    """The facts of a repository on GitHub."""

    address: Address
    now: datetime  # GitHub's time
    identity: Identity  # of the token
    items: tuple[BoardItem, ...] = ()
    pulls: tuple[BoardPull, ...] = ()
    closed: tuple[BoardItem, ...] = ()  # work items that were closed lately
    ended: tuple[EndedPull, ...] = ()
    boards: tuple[Issue, ...] = ()  # open dashboards of the identity
    records: tuple[PublicRecord, ...] = ()  # of runs that ended lately, the oldest first
    handoffs: tuple[ItemHandoff, ...] = ()
    notes: tuple[str, ...] = ()
    has_keepalive: bool = True  # whether the label of keepalive starts anything

    @property
    def rows(self) -> tuple[StatusRow, ...]:
        """The starts of all items and pull requests."""
        of_items = (row for item in (*self.items, *self.closed) for row in item.rows)
        return (*of_items, *(row for pull in self.all_pulls for row in pull.rows))

    @property
    def loops(self) -> tuple[LoopState, ...]:
        """The loops of all pull requests."""
        return tuple(loop for pull in self.all_pulls for loop in pull.loops)

    @property
    def all_pulls(self) -> tuple[BoardPull | EndedPull, ...]:
        """The open and the ended pull requests."""
        return (*self.pulls, *self.ended)


class BoardSnapshot(Frozen):
    """All that a board shows of one or more repositories, as it was read ``at`` this time."""

    repositories: tuple[BoardRepository, ...]
    overview: Overview
    documents: Overview  # the entries of sessions, missions and handoffs, which `overview` has too
    at: datetime
    problem: str = ""  # why a later read failed; the rest is then that of the last one
