"""The states of a work item and the moves between them, kept in its status label.

Source: workflow contracts, outcomes of implementor and reviewer; the table is accord's decision "Status machine".
All here is pure; ``accord.results.status`` gathers and writes. Closing by ``accord apply`` is no move: a plan drops
an item in any state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.machine import Edge, Machine
from accord.github.markers import take_markers
from accord.github.models import IssueChange, NotThere
from accord.github.pulls import closing_references
from accord.results.bodies import split_body
from accord.results.labels import KNOWN_NAMES, Category, category_of, in_category, status_of
from accord.text.untrusted import visible_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.github.client import GitHub
    from accord.github.models import Issue, Pull


CLOSED = "closed"


@dataclass(frozen=True)
class StatusFacts:
    """What the guards look at: open blockers by number, and whether a person asks for the move."""

    open_blockers: tuple[int, ...] = ()
    is_person: bool = False


_NOTHING_KNOWN = StatusFacts()
_LEFT_BY_PEOPLE = ("blocked", "needs-refinement")


def _blockers_closed(facts: StatusFacts) -> str:
    if not facts.open_blockers:
        return ""
    return f"It still waits for {', '.join(f'#{n}' for n in facts.open_blockers)}; close them first."


def _person_asks(facts: StatusFacts) -> str:
    return "" if facts.is_person else "Only a person may take it up again; use a person's token."


WORK_ITEM: Machine[StatusFacts] = Machine(
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
class StatusMove:
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


def plan_move(issue: Issue, target: str, facts: StatusFacts = _NOTHING_KNOWN) -> StatusMove:
    """Judge a move. Raises BrokenContract, naming the legal moves, when it is illegal.

    Without ``facts`` the item's labels decide alone, which is enough for the moves that an agent's result asks for.
    """
    source = current_status(issue)
    if source == target:
        return StatusMove(issue, source, target, issue.labels)
    refusal = WORK_ITEM.refusal(source, target, facts)
    if refusal:
        raise BrokenContract.of(Finding("illegal-move", f"#{issue.number} cannot move: {refusal}"))
    return StatusMove(issue, source, target, _labels_at(issue, target))


def legal_moves(issue: Issue, facts: StatusFacts) -> list[str]:
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


def move_work_item(github: GitHub, number: int, target: str, *, is_dry_run: bool = False) -> StatusMove:
    """Move a work item, in one request; a rehearsal only judges the move.

    Raises BrokenContract, naming the legal moves, when it is illegal.
    """
    issue = find_work_item(github, number)
    move = plan_move(issue, target, move_facts(github, issue, target))
    if not is_dry_run:
        apply_move(github, move)
    return move


def move_facts(github: GitHub, issue: Issue, target: str) -> StatusFacts:
    """Read what a move is judged by, and nothing that this one does not need."""
    return StatusFacts(
        tuple(open_blockers(github, issue)) if asks_for_blockers(issue, target) else (),
        asks_for_person(issue, target) and github.identity().is_person,
    )


def find_work_item(github: GitHub, number: int) -> Issue:
    """Read a work item. Raises BrokenContract when there is none of this number."""
    issue = github.issue(number)
    if issue is None or issue.is_pull:
        message = f"There is no work item #{number} in this repository. Name one."
        raise BrokenContract.of(Finding("unknown-reference", message))
    return issue


def apply_move(github: GitHub, move: StatusMove) -> None:
    """Write a move in one request; nothing when the item is there already."""
    if not move.is_change:
        return
    if move.target == CLOSED:
        github.change_issue(move.issue.number, IssueChange(None, move.labels, "closed", "completed"))
    else:
        github.replace_labels(move.issue.number, move.labels)


def open_blockers(github: GitHub, issue: Issue) -> Iterator[int]:
    """Yield the numbers of open issues that an item waits for, natively or by the list in its body."""
    seen = set()
    if issue.blocker_count != 0:
        try:
            for blocker in github.blockers(issue.number):
                seen.add(blocker.number)
                if blocker.is_open:
                    yield blocker.number
        except NotThere:
            pass
    for number in split_body(issue.body).blocked_by:
        blocker_or_none = github.issue(number) if number not in seen else None
        if blocker_or_none and blocker_or_none.is_open:
            yield number


def work_items(github: GitHub, *, state: str) -> Iterator[Issue]:
    """Yield the work items of a repository, newest first."""
    return filter(is_work_item, github.issues(state=state))


def pull_at(github: GitHub, number: int) -> Pull | None:
    """Read the pull request of a number; None where the number is no pull request's."""
    issue = github.issue(number)
    return github.pull(number) if issue and issue.is_pull else None


def gather_item(github: GitHub, number: int) -> tuple[Issue, StatusFacts]:
    """Read a work item, and what its next move is judged by. Raises BrokenContract where there is none."""
    issue = find_work_item(github, number)
    blockers = tuple(open_blockers(github, issue))
    return issue, StatusFacts(blockers, asks_for_person(issue) and github.identity().is_person)


def item_closed_by(pull: Pull, repository: str) -> int:
    """Return the work item that a pull request closes. Raises BrokenContract where it does not close just one."""
    found = closing_references(pull.body, repository)
    if len(found) == 1:
        return found[0]
    closes = f"#{pull.number} is a pull request that closes {len(found)} work items."
    raise BrokenContract.of(Finding("work-item-unknown", f'{closes} Write one "Closes #N" into its body.'))


def item_of(issue: Issue) -> dict[str, Any]:
    """Write what a list tells of an item; ``status`` is None where its labels do not give exactly one."""

    def label(category: Category) -> str | None:
        return next((name.partition(":")[2] for name in in_category(issue.labels, category)), None)

    return {
        "id": str(issue.number),
        "title": " ".join(_seen(issue.title).split()),
        "state": issue.state,
        "status": status_if_clear(issue),
        "type": label(Category.TYPE),
        "priority": label(Category.PRIORITY),
        "complexity": label(Category.COMPLEXITY),
        "labels": list(issue.labels),
        "url": issue.url,
        "body": _seen(issue.body),
    }


def detail_of(issue: Issue, facts: StatusFacts) -> dict[str, Any]:
    """Write all that is told of an item: what it waits for too, and where it may move."""
    waits_for = [str(blocker) for blocker in facts.open_blockers]
    return {**item_of(issue), "waits_for": waits_for, "moves": legal_moves(issue, facts)}


def _seen(text: str) -> str:
    """Show what people wrote as a reader of the page sees it, since agents are given it; without accord's marks."""
    return visible_text(take_markers(text)[0]).strip()
