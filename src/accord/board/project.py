"""The mirror in a project: the status labels of work items become the value of a single-select field, one way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.core.errors import Refused
from accord.core.findings import Finding, warning
from accord.results.labels import KNOWN_NAMES, Category, in_category
from accord.results.operations import LedgerEntry, Operation, OperationStatus, Receipt, apply_in_order, reporting
from accord.results.status import CLOSED, is_work_item, status_if_clear

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.github.client import GitHub
    from accord.github.models import Issue
    from accord.github.projects import Project, ProjectItem
    from accord.results.operations import RunOptions

STATUS_FIELD = "Status"
"""The field that each new project has."""

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "pending": ("Pending", "Backlog", "Todo"),
    "ready": ("Ready",),
    "in-progress": ("In progress",),
    "blocked": ("Blocked",),
    "needs-refinement": ("Needs refinement",),
    "review": ("In review", "Review"),
    "approved": ("Approved",),
    CLOSED: ("Done", "Closed"),
}
"""The options that stand for a status, the first that the field has; case, blanks and emoji do not matter."""


@dataclass(frozen=True)
class MirrorFacts:
    """A project, its items by the number of their issue, and the open work items of the repository."""

    project: Project
    items: Mapping[int, ProjectItem]
    open_items: tuple[Issue, ...]


@dataclass(frozen=True, slots=True)
class AddItem(Operation):
    """Add a work item to the project."""

    op: ClassVar[str] = "add-to-project"
    number: int
    node_id: str


@dataclass(frozen=True, slots=True)
class SetOption(Operation):
    """Set the field of a work item; ``item`` is its id in the project, empty for one that is added just before."""

    op: ClassVar[str] = "set-item-status"
    number: int
    item: str
    option: str


def mirror_status(github: GitHub, owner: str, number: int, field_name: str, options: RunOptions) -> Receipt:
    """Write the status of the repository's work items into a project. Raises no AccordError: the receipt has it."""
    receipt = Receipt("project", options.repository, "")
    with reporting(github, receipt):
        facts = _facts(github, owner, number, field_name)
        receipt.details = {"project": {"url": facts.project.url, "title": facts.project.title}}
        operations, findings = plan_mirror(facts)
        receipt.findings += findings
        added: dict[int, str] = {}

        def apply(operation: AddItem | SetOption) -> None:
            _apply(github, facts.project, operation, added)

        entries, error = apply_in_order(operations, apply, _entry, options)
        receipt.end(entries, error, is_dry_run=options.is_dry_run)
    return receipt


def _facts(github: GitHub, owner: str, number: int, field_name: str) -> MirrorFacts:
    project = github.project(owner, number, field_name)
    if project.options is None:
        raise Refused(
            f"The project {project.url} has no single-select field `{field_name}`.",
            hint="Add the field to the project, or pass the name of another one with `--field`.",
        )
    items = {item.number: item for item in github.project_items(project, field_name)}
    return MirrorFacts(project, items, tuple(filter(is_work_item, github.issues(state="open"))))


def plan_mirror(facts: MirrorFacts) -> tuple[list[AddItem | SetOption], list[Finding]]:
    """Return what makes the project show the status of each work item, and the options that the field lacks. Pure.

    Closed work items are not added, archived items stay as they are, and so do items without a clear status.
    """
    chosen = {status: _option_of(status, facts.project.options or {}) for status in OPTIONS}
    operations: list[AddItem | SetOption] = []
    missing: dict[str, list[int]] = {}
    for number, status, issue in _wanted(facts):
        item = facts.items.get(number)
        if item is None and issue is not None:
            operations.append(AddItem(f"#{number}", None, number, issue.node_id))
        option = chosen[status]
        if option is None:
            missing.setdefault(status, []).append(number)
        elif item is None or item.option != option[1]:
            operations.append(SetOption(f"#{number} to {option[0]}", None, number, item.id if item else "", option[1]))
    return operations, [_missing(facts.project, status, numbers) for status, numbers in missing.items()]


def _wanted(facts: MirrorFacts) -> Iterator[tuple[int, str, Issue | None]]:
    """Yield number and status of each work item to show, with the issue of an open one."""
    open_numbers = {issue.number for issue in facts.open_items}
    for issue in sorted(facts.open_items, key=lambda issue: issue.number):
        item, status = facts.items.get(issue.number), status_if_clear(issue)
        if status is not None and not (item and item.is_archived):
            yield issue.number, status, issue
    for number, item in sorted(facts.items.items()):
        is_ours = any(label in KNOWN_NAMES for label in in_category(item.labels, Category.TYPE))
        if is_ours and not item.is_open and not item.is_archived and number not in open_numbers:
            yield number, CLOSED, None


def _option_of(status: str, options: Mapping[str, str]) -> tuple[str, str] | None:
    """Return name and id of the option for a status."""
    by_words = {_words(name): (name, option) for name, option in options.items()}
    return next((by_words[_words(name)] for name in OPTIONS[status] if _words(name) in by_words), None)


def _words(name: str) -> str:
    return re.sub(r"[\W_]+", " ", name).strip().casefold()


def _missing(project: Project, status: str, numbers: Sequence[int]) -> Finding:
    name = OPTIONS[status][0]
    who = f"#{numbers[0]} is" if len(numbers) == 1 else f"{len(numbers)} items are"
    return warning(
        "project-option-missing",
        f"The field of the project has no option for the status `{status}`: {who} not shown as such.",
        hint=f"Add the option `{name}` to the field: {project.url}/settings",
    )


def _apply(github: GitHub, project: Project, operation: AddItem | SetOption, added: dict[int, str]) -> None:
    """Apply an operation; ``added`` has the items that this run added, by the number of their issue."""
    if isinstance(operation, AddItem):
        added[operation.number] = github.add_to_project(project, operation.node_id)
    else:
        github.set_project_option(project, operation.item or added[operation.number], operation.option)


def _entry(operation: AddItem | SetOption, status: OperationStatus) -> LedgerEntry:
    return LedgerEntry(operation.op, operation.key, status, str(operation.number))
