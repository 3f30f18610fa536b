"""Moving a work item: gather, judge, write. What the moves are is in ``accord.results.status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.port import IssueChange, NotThere
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.results.bodies import split_body
from accord.results.status import (
    CLOSED,
    Move,
    MoveFacts,
    asks_for_blockers,
    asks_for_person,
    is_work_item,
    plan_move,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.github.port import GitHub, Issue


def move_work_item(github: GitHub, number: int, target: str, *, is_dry_run: bool = False) -> Move:
    """Move a work item, in one request; a rehearsal only judges the move.

    Raises BrokenContract, naming the legal moves, when it is illegal.
    """
    issue = find_work_item(github, number)
    move = plan_move(issue, target, move_facts(github, issue, target))
    if not is_dry_run:
        carry_out_move(github, move)
    return move


def move_facts(github: GitHub, issue: Issue, target: str) -> MoveFacts:
    """Read what a move is judged by, and nothing that this one does not need."""
    return MoveFacts(
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


def carry_out_move(github: GitHub, move: Move) -> None:
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
