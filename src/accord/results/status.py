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
_LEFT_BY_PEOPLE = ("blocked", "needs-refinement")


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


def status_if_clear(issue: Issue) -> str | None:
    """Tell where an item stands; None when its labels say nothing, or several things."""
    if not issue.is_open:
        return CLOSED
    statuses = in_category(issue.labels, Category.STATUS)
    status = (status_of(issue.labels) or "").lower()
    return status if len(statuses) == 1 and status in WORK_ITEM.states else None


def current_status(issue: Issue) -> str:
    """Tell where an item stands. Raises BrokenContract when its labels say nothing, or several things."""
    status = status_if_clear(issue)
    if status is None:
        has = " and ".join(in_category(issue.labels, Category.STATUS)) or "no status label"
        message = f"#{issue.number} has {has}. Give it exactly one that the contract knows."
        raise BrokenContract.of(Finding("status-unclear", message))
    return status


def asks_for_blockers(issue: Issue, target: str) -> bool:
    """Tell whether a move is judged by the blockers of its item, so that they must be known."""
    return (status_if_clear(issue), target) == ("pending", "ready")


def asks_for_person(issue: Issue, target: str = "") -> bool:
    """Tell whether a move, or where any other move leads, is judged by who asks for it."""
    status = status_if_clear(issue)
    return status in _LEFT_BY_PEOPLE and status != target


def plan_move(issue: Issue, target: str, facts: MoveFacts = _NOTHING_KNOWN) -> Move:
    """Judge a move. Raises BrokenContract, naming the legal moves, when it is illegal.

    Without ``facts`` the item's labels decide alone, which is enough for the moves that an agent's result asks for.
    """
    source = current_status(issue)
    if source == target:
        return Move(issue, source, target, issue.labels)
    refusal = WORK_ITEM.refusal(source, target, facts)
    if refusal:
        raise BrokenContract.of(Finding("illegal-move", f"#{issue.number} cannot move: {refusal}"))
    return Move(issue, source, target, _labels_at(issue, target))


def legal_moves(issue: Issue, facts: MoveFacts) -> list[str]:
    """List where an item may move now; nowhere while its labels are unclear."""
    source = status_if_clear(issue)
    targets = WORK_ITEM.targets(source) if source else ()
    return [target for target in targets if not WORK_ITEM.refusal(source or "", target, facts)]


def is_work_item(issue: Issue) -> bool:
    """Tell a work item from other issues and from pull requests: it carries a type label."""
    return not issue.is_pull and any(label in KNOWN_NAMES for label in in_category(issue.labels, Category.TYPE))


def _labels_at(issue: Issue, target: str) -> tuple[str, ...]:
    kept = tuple(label for label in issue.labels if category_of(label) is not Category.STATUS)
    return kept if target == CLOSED else (*kept, f"{Category.STATUS}:{target}")
