"""Work items on GitHub: their status, which is a label, and its legal moves (workflow contracts, outcomes)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, finding_of, warning
from accord.core.frozen import Frozen
from accord.core.machine import Edge, Machine
from accord.engine.operations import Operation, OperationLog, OperationStatus
from accord.engine.owner import ItemState, clear_status
from accord.github.models import Identity, Issue, IssueChange, NotThere, Pull, Repository
from accord.github.pulls import closing_references
from accord.results.bodies import split_body
from accord.results.labels import KNOWN_NAMES, Category, ItemKind, category_of, in_category, kind_of
from accord.results.planner.record import latest_record
from accord.text.markers import take_markers

if TYPE_CHECKING:
    from accord.github.client import GitHub


CLOSED = "closed"


class StatusFacts(Frozen):
    """The facts of the guards; None where one was not read.

    They are the numbers of open blockers, whether a person asks, and the open pull requests that close the item.
    """

    open_blockers: tuple[int, ...] | None = None
    is_person: bool | None = None
    open_pulls: tuple[int, ...] | None = None


_NOT_READ = StatusFacts()
_FOR_PEOPLE = ("blocked", "needs-refinement")


def _blockers_closed(facts: StatusFacts) -> str:
    if not facts.open_blockers:
        return ""
    blockers = ", ".join(f"#{number}" for number in facts.open_blockers)
    return f"Blocked by {blockers}. Close {'it' if len(facts.open_blockers) == 1 else 'them'} first."


def _person_asks(facts: StatusFacts) -> str:
    return "" if facts.is_person else "Only a person may make this move. Use a person's token."


def _pulls_closed(facts: StatusFacts) -> str:
    pulls = ", ".join(f"#{number}" for number in facts.open_pulls or ())
    return f"Its pull request {pulls} is open. Merge it first, or close it." if pulls else ""


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
        Edge("approved", CLOSED, "merge", _pulls_closed),
    ),
)


class MoveWorkItem(Operation, op="move-work-item"):
    """Make a legal move of a work item. ``labels`` is the whole new list."""

    issue: Issue
    source: str
    target: str
    labels: tuple[str, ...]

    @property
    def is_change(self) -> bool:
        """Whether there is anything to write."""
        return self.source != self.target or self.labels != self.issue.labels


def status_if_clear(issue: Issue) -> str | None:
    """Return the status of an item; None when its labels do not give exactly one."""
    status = clear_status(issue.labels) if issue.is_open else CLOSED
    return status if status in WORK_ITEM.states else None


def item_state(issue: Issue, open_blockers: int = 0) -> ItemState:
    """Return what of an item decides who acts next; an open one with both type labels has no clear status."""
    is_refinement = kind_of(issue.labels) is ItemKind.REFINEMENT
    status = None if issue.is_open and any(type_findings(issue)) else status_if_clear(issue)
    return ItemState(issue.is_open, status, is_refinement, open_blockers)


def current_status(issue: Issue) -> str:
    """Return the status of an item. Raises BrokenContract when its labels do not give exactly one."""
    status = status_if_clear(issue)
    if status is None:
        has = " and ".join(f"`{label}`" for label in in_category(issue.labels, Category.STATUS)) or "no status label"
        message = f"#{issue.number} has {has}."
        hint = "Give it exactly one status label of the contract."
        raise BrokenContract.of(Finding("status-unclear", message, hint=hint))
    return status


def plan_move(issue: Issue, target: str, facts: StatusFacts = _NOT_READ) -> MoveWorkItem:
    """Plan a move; without ``facts`` the labels decide. Raises BrokenContract, naming the legal moves."""
    source = current_status(issue)
    key, number = f"#{issue.number} to {target}", issue.number
    kept = tuple(label for label in issue.labels if category_of(label) is not Category.STATUS)
    if source == target and (source != CLOSED or kept == issue.labels):
        return MoveWorkItem(key, OperationStatus.SKIPPED, issue, source, target, issue.labels, number=number)
    if source != target and (reason := WORK_ITEM.refusal(source, target, facts)):
        finding = finding_of("illegal-move", f"#{issue.number} cannot move: {reason}")
        hint = f"Reopen it: `gh issue reopen {issue.url}`." if source == CLOSED else finding.hint
        raise BrokenContract.of(replace(finding, hint=hint))
    labels = kept if target == CLOSED else (*kept, f"{Category.STATUS}:{target}")
    return MoveWorkItem(key, None, issue, source, target, labels, number=number)


def plan_cleared(issue: Issue) -> Iterator[MoveWorkItem]:
    """Yield the move that takes the status labels off an item that a person or a merge closed."""
    if is_work_item(issue) and not issue.is_open:
        yield from (move for move in [plan_move(issue, CLOSED)] if move.is_change)


def legal_moves(issue: Issue, facts: StatusFacts) -> list[str]:
    """Return the statuses to which an item may move now; none while its status is unclear."""
    source = status_if_clear(issue)
    targets = WORK_ITEM.targets(source) if source else ()
    return [target for target in targets if not WORK_ITEM.refusal(source or "", target, facts)]


def is_work_item(issue: Issue) -> bool:
    """Return whether an issue is a work item: not a pull request, and with a type label."""
    return not issue.is_pull and any(label in KNOWN_NAMES for label in in_category(issue.labels, Category.TYPE))


def type_findings(issue: Issue, identity: Callable[[], Identity] | None = None, token: str = "") -> Iterator[Finding]:
    """Find an issue that is not one work item: both type labels; with ``identity`` also none and no plan's marker."""
    if {*ItemKind} <= {*issue.labels}:
        message = f"#{issue.number} has both type labels, {' and '.join(f'`{kind}`' for kind in ItemKind)}."
        yield Finding("type-unclear", message, hint="Remove one of them.")
    elif identity and not is_work_item(issue) and not latest_record(issue, token, identity()):
        message = f"#{issue.number} is not a work item: it has no type label, and no plan made it."
        yield Finding("not-a-work-item", message, hint=f"Give it a type label, such as `{ItemKind.TASK}`.")


def newest_items(github: GitHub, *, status: str | None, state: str, limit: int) -> tuple[list[Issue], int | None]:
    """Return the newest work items, and how many more there are: None if there are some, and search does not tell.

    GitHub filters by labels, so only pages with work items are read, as far as the limit reaches.
    """
    wanted = [] if status in (None, CLOSED) else [f"{Category.STATUS.value}:{status}"]
    filters = [[kind.value, *wanted] for kind in ItemKind]
    listings = (github.issues(state=state, label=",".join(labels)) for labels in filters)
    merged = heapq.merge(*listings, key=lambda issue: (-issue.created_at.timestamp(), -issue.number))
    distinct = (next(same) for _, same in groupby(merged, key=lambda issue: issue.number))
    found = (each for each in distinct if is_work_item(each) and status in (None, status_if_clear(each)))
    shown = list(islice(found, limit + 1))
    if len(shown) <= limit:
        return shown, 0
    counts = [github.count_issues(*labels, state=state) for labels in filters]
    total = sum(filter(None, counts))
    return shown[:limit], total - limit if None not in counts and total > limit else None


def move_work_item(github: GitHub, number: int, target: str, log: OperationLog | None = None) -> MoveWorkItem:
    """Move a work item in one request. Raises BrokenContract for an illegal move."""
    issue = find_work_item(github, number)
    for found in type_findings(issue, github.identity):
        raise BrokenContract.of(found)
    move = plan_move(issue, target, gather_facts(github, issue, target))
    write = partial(apply_move, github, move)
    (log or OperationLog()).write(move.op, move.key, write, number=number, found=move.found)
    return move


def gather_facts(github: GitHub, issue: Issue, target: str | None = None) -> StatusFacts:
    """Read what the guard of a move looks at; without a target, what the guards of all moves look at."""
    source = status_if_clear(issue)
    needs_blockers = target is None or (source, target) == ("pending", "ready")
    needs_pulls = source == "approved" and target in (None, CLOSED)
    needs_person = source in _FOR_PEOPLE and source != target
    pulls = github.open_pulls() if needs_pulls else ()
    return StatusFacts(
        tuple(open_blockers(github, issue)) if needs_blockers else None,
        github.identity().is_person if needs_person else None,
        tuple(pull.number for pull in pulls if issue.number in closing_references(pull)) if needs_pulls else None,
    )


def labels_removed(github: GitHub, number: int, since: datetime, *, or_added: bool = False) -> frozenset[str]:
    """Return the labels that were taken off an issue or pull request at or after a time, in lower case.

    Those that were put on after it count with ``or_added``, which needs a time of GitHub: other clocks may be behind.
    """
    events = (event for event in github.label_events(number) if event.at >= since)
    changed = (event for event in events if event.change == "removed" or (or_added and event.at > since))
    return frozenset(event.label.lower() for event in changed)


def find_work_item(github: GitHub, number: int) -> Issue:
    """Read an issue. Raises BrokenContract when the number is not one of an issue."""
    issue = github.issue(number)
    if issue is None or issue.is_pull:
        message = f"The repository has no work item #{number}."
        raise BrokenContract.of(Finding("unknown-reference", message, hint="Use the number of an existing issue."))
    return issue


def apply_move(github: GitHub, move: MoveWorkItem) -> None:
    """Write a move in one request; nothing when the item has the status already."""
    if not move.is_change:
        return
    if move.target == CLOSED and move.issue.is_open:
        github.change_issue(move.issue.number, IssueChange(None, move.labels, "closed", "completed"))
    else:
        github.replace_labels(move.issue.number, move.labels)


def open_blockers(github: GitHub, issue: Issue) -> Iterator[int]:
    """Yield the numbers of open issues that block an item, natively or by the list in its body."""
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


def foreign_marker(name: str, author: str, identity: Identity, *, is_bot: bool) -> Finding:
    """Return a warning about a marker of this run by another author. Raises Refused if it may be this very token."""
    message = f"{name} has the marker of this run, but its author is {author}, not {identity.login}."
    if is_bot and not identity.is_person:
        raise Refused(message, hint=f"If this token belongs to that app, pass `--identity '{author}'`.")
    hint = f"Leave it as it is. Only if accord wrote it with another token of yours, pass `--identity '{author}'`."
    return warning("foreign-marker", f"{message} It does not count.", hint=hint)


def require_unarchived(repository: Repository) -> None:
    """Raise Refused for an archived repository."""
    if repository.is_archived:
        hint = "Unarchive it in its settings, or use another repository."
        raise Refused(f"{repository.full_name} is archived, so nothing can be written to it.", hint=hint)


def require_writable(github: GitHub, identity: Identity) -> Repository:
    """Raise Refused where GitHub would refuse later, or create an issue and silently drop its labels."""
    repository = github.repository()
    require_unarchived(repository)
    if not repository.has_issues:
        message = f"Issues are disabled in {repository.full_name}."
        raise Refused(message, hint="Enable them under Settings → General → Features.")
    if identity.is_person and repository.may_triage is False:
        message = f"{identity.login} may read {repository.full_name}, but not label or change its issues."
        raise Refused(message, hint="Use a token of a person with the role Triage or higher.")
    return repository


def item_closed_by(pull: Pull) -> int:
    """Return the number of the work item that a pull request closes. Raises BrokenContract unless it is just one."""
    found = closing_references(pull)
    if len(found) == 1:
        return found[0]
    message = f"Pull request #{pull.number} closes {len(found)} work items."
    raise BrokenContract.of(Finding("work-item-unknown", message, hint="Write one `Closes #N` into its body."))


def item_of(issue: Issue) -> dict[str, Any]:
    """Return the JSON object of an item in a list; ``status`` is None where it is unclear."""

    def label(category: Category) -> str | None:
        return next((name.partition(":")[2] for name in in_category(issue.labels, category)), None)

    return {
        "id": str(issue.number),
        "title": " ".join(_visible(issue.title).split()),
        "state": issue.state,
        "status": status_if_clear(issue),
        "type": label(Category.TYPE),
        "priority": label(Category.PRIORITY),
        "complexity": label(Category.COMPLEXITY),
        "labels": list(issue.labels),
        "url": issue.url,
        "body": _visible(issue.body),
    }


def detail_of(issue: Issue, facts: StatusFacts) -> dict[str, Any]:
    """Return the JSON object of one item: also what blocks it, and where it may move."""
    blockers = [str(blocker) for blocker in facts.open_blockers or ()]
    return {**item_of(issue), "waits_for": blockers, "moves": legal_moves(issue, facts)}


def _visible(text: str) -> str:
    """Return a text as a reader of the page sees it, without accord's markers: agents are given it."""
    from accord.text.untrusted import visible_text  # imported here: few commands show texts

    return visible_text(take_markers(text)[0]).strip()
