"""Moving a work item: gather, judge, write. What the moves are is in ``accord.results.status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.port import IssueChange, NotThere
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.results.bodies import split_body
from accord.results.status import CLOSED, WORK_ITEM, Move, MoveFacts, current_status, is_work_item, plan_move

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.github.port import GitHub, Issue

_LEFT_BY_PEOPLE = ("blocked", "needs-refinement")


def move_work_item(github: GitHub, number: int, target: str, *, is_dry_run: bool = False) -> Move:
    """Move a work item, in one request; a rehearsal only judges the move.

    Raises BrokenContract, naming the legal moves, when it is illegal.
    """
    issue, facts = gather_move(github, number, target)
    move = plan_move(issue, target, facts)
    if not is_dry_run:
        carry_out_move(github, move)
    return move


def gather_move(github: GitHub, number: int, target: str) -> tuple[Issue, MoveFacts]:
    """Read what a move is judged by, and nothing that this one does not need.

    Raises BrokenContract when there is no such work item, or its labels do not say where it stands.
    """
    issue = find_work_item(github, number)
    source = current_status(issue)
    return issue, MoveFacts(
        tuple(open_blockers(github, issue)) if (source, target) == ("pending", "ready") else (),
        github.identity().is_person if source in _LEFT_BY_PEOPLE and source != target else False,
    )


def find_work_item(github: GitHub, number: int) -> Issue:
    """Read a work item. Raises BrokenContract when there is none of this number."""
    issue = github.issue(number)
    if issue is None or issue.is_pull:
        message = f"There is no work item #{number} in this repository. Name one."
        raise BrokenContract(message, findings=[Finding("unknown-reference", message)])
    return issue


def legal_moves(github: GitHub, issue: Issue, blockers: Sequence[int]) -> list[str]:
    """List where an item may move now, given its open blockers; nowhere while its labels are unclear."""
    try:
        source = current_status(issue)
    except BrokenContract:
        return []
    facts = MoveFacts(tuple(blockers), github.identity().is_person if source in _LEFT_BY_PEOPLE else False)
    return [target for target in WORK_ITEM.targets(source) if not WORK_ITEM.refusal(source, target, facts)]


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
