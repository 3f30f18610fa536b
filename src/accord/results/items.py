"""Work items as people and later jobs read them: where each stands, what it waits for, where it may go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.github.closing import closing_references
from accord.github.markers import take_markers
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.kernel.incoming import visible_text
from accord.results.labels import Category, in_category
from accord.results.status import MoveFacts, asks_for_person, legal_moves, status_if_clear
from accord.results.status_run import find_work_item, open_blockers

if TYPE_CHECKING:
    from accord.github.adapter import Adapter
    from accord.github.port import GitHub, Issue
    from accord.github.pull_port import Pull


def pull_at(github: Adapter, number: int) -> Pull | None:
    """Read the pull request of a number; None where the number is no pull request's."""
    issue = github.issue(number)
    return github.pull(number) if issue and issue.is_pull else None


def gather_item(github: GitHub, number: int) -> tuple[Issue, MoveFacts]:
    """Read a work item, and what its next move is judged by. Raises BrokenContract where there is none."""
    issue = find_work_item(github, number)
    blockers = tuple(open_blockers(github, issue))
    return issue, MoveFacts(blockers, asks_for_person(issue) and github.identity().is_person)


def closed_item(pull: Pull, repository: str) -> int:
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


def detail_of(issue: Issue, facts: MoveFacts) -> dict[str, Any]:
    """Write all that is told of an item: what it waits for too, and where it may move."""
    waits_for = [str(blocker) for blocker in facts.open_blockers]
    return {**item_of(issue), "waits_for": waits_for, "moves": legal_moves(issue, facts)}


def _seen(text: str) -> str:
    """Show what people wrote as a reader of the page sees it, since agents are given it; without accord's marks."""
    return visible_text(take_markers(text)[0]).strip()
