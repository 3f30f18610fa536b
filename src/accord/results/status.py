"""The states of a work item and the moves between them, kept in its status label.

Source: workflow contracts, outcomes of implementor and reviewer; the table is accord's decision "Status machine".
All here is pure; ``accord.results.status_run`` gathers and writes. Closing by ``accord apply`` is no move: a plan drops
an item in any state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.kernel.machine import Edge, Machine
from accord.results.labels import KNOWN_NAMES, Category, category_of, in_category, status_of

if TYPE_CHECKING:
    from accord.github.port import Issue

CLOSED = "closed"


@dataclass(frozen=True)
class MoveFacts:
    """What the guards look at: open blockers by number, and whether a person asks for the move."""

    open_blockers: tuple[int, ...] = ()
    is_person: bool = False


_NOTHING_KNOWN = MoveFacts()


def _blockers_closed(facts: MoveFacts) -> str:
    if not facts.open_blockers:
        return ""
    return f"It still waits for {', '.join(f'#{n}' for n in facts.open_blockers)}; close them first."


def _person_asks(facts: MoveFacts) -> str:
    return "" if facts.is_person else "Only a person may take it up again; use a person's token."


WORK_ITEM: Machine[MoveFacts] = Machine(
    "work item",
    "pending",
    frozenset({CLOSED}),
    (
        Edge("pending", "ready", "all blockers closed", _blockers_closed),
        Edge("ready", "in-progress"),
        Edge("in-progress", "review"),
        Edge("in-progress", "blocked"),
        Edge("in-progress", "needs-refinement"),
        Edge("in-progress", "pending"),
        Edge("review", "approved"),
        Edge("review", "needs-refinement"),
        Edge("review", "pending"),
        Edge("blocked", "pending", "a person", _person_asks),
        Edge("needs-refinement", "pending", "a person", _person_asks),
        Edge("approved", CLOSED, "merge"),
    ),
)


@dataclass(frozen=True)
class Move:
    """A legal move, ready to be carried out. ``labels`` is the whole new list."""

    issue: Issue
    source: str
    target: str
    labels: tuple[str, ...]

    @property
    def is_change(self) -> bool:
        """Whether there is anything to write."""
        return self.source != self.target


def current_status(issue: Issue) -> str:
    """Tell where an item stands. Raises BrokenContract when its labels say nothing, or several things."""
    if not issue.is_open:
        return CLOSED
    statuses = in_category(issue.labels, Category.STATUS)
    status = (status_of(issue.labels) or "").lower()
    if len(statuses) == 1 and status in WORK_ITEM.states:
        return status
    has = " and ".join(statuses) if statuses else "no status label"
    raise _rejected("status-unclear", f"#{issue.number} has {has}. Give it exactly one that the contract knows.")


def plan_move(issue: Issue, target: str, facts: MoveFacts = _NOTHING_KNOWN) -> Move:
    """Judge a move. Raises BrokenContract, naming the legal moves, when it is illegal.

    Without ``facts`` the item's labels decide alone, which is enough for the moves that an agent's result asks for.
    """
    source = current_status(issue)
    if source == target:
        return Move(issue, source, target, issue.labels)
    refusal = WORK_ITEM.refusal(source, target, facts)
    if refusal:
        raise _rejected("illegal-move", f"#{issue.number} cannot move: {refusal}")
    return Move(issue, source, target, _labels_at(issue, target))


def is_work_item(issue: Issue) -> bool:
    """Tell a work item from other issues and from pull requests: it carries a type label."""
    return not issue.is_pull and any(label in KNOWN_NAMES for label in in_category(issue.labels, Category.TYPE))


def _labels_at(issue: Issue, target: str) -> tuple[str, ...]:
    kept = tuple(label for label in issue.labels if category_of(label) is not Category.STATUS)
    return kept if target == CLOSED else (*kept, f"{Category.STATUS}:{target}")


def _rejected(code: str, message: str) -> BrokenContract:
    return BrokenContract(message, findings=[Finding(code, message)])
