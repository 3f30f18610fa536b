"""The structure of a plan's items on GitHub: parent, milestone, type and assignees, as ``plan.yml`` asks for them.

Each part is set where an open item has none of it and its work has not begun, so that people's choices stay. A part
that GitHub does not have, or does not allow, becomes a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from accord.core.errors import Refused
from accord.core.findings import Finding, warning
from accord.core.frozen import Frozen
from accord.core.kinds import KINDS
from accord.core.numbers import Integer
from accord.engine.operations import Operation, OperationStatus, skipped_if
from accord.github.models import Issue, IssueChange, NotThere
from accord.results.labels import status_among
from accord.results.planner.match import BEGUN
from accord.results.planner.rules import Plan

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.results.planner.facts import PlanFacts


class IssueStructure(BaseModel):
    """The structure of open items whose work has not begun; each part is set where an item has none of it yet."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)

    parent: Integer | Literal["request"] | None = Field(
        None, description="The issue whose sub-issues the items are; request is the issue of `--request`."
    )
    milestone: str | None = Field(
        None, min_length=1, max_length=255, description="Title of a milestone of the repository."
    )
    type: str | None = Field(None, min_length=1, max_length=100, description="The issue type of the organisation.")
    assign: list[str] = Field([], max_length=10, description="Logins to assign, or names of agents with an account.")


class PlanSettings(BaseModel):
    """The settings of plans."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    version: Literal[1] = Field(1, description="The version of the format.")
    plan: IssueStructure = Field(description="The structure of the items.")


def read_settings(raw: bytes, path: str) -> IssueStructure:
    """Read the settings of plans. Raises BrokenContract, with findings, for a broken file."""
    settings: PlanSettings = KINDS["plan-settings"].read_valid(raw, path)
    return settings.plan


MOST_SUB_ISSUES = 100
"""Source: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/adding-sub-issues"""


@cache
def _accounts() -> dict[str, str]:
    """Return the accounts of agents that begin to work when they are assigned, by the agent's name."""
    from accord.agents.registry import shipped_registry  # slow, and few plans assign anyone

    return {name: agent.assignee for name, agent in shipped_registry().agents.items() if agent.assignee}


class StructureFacts(Frozen):
    """Facts of the structure."""

    wanted: IssueStructure
    parent: int = 0  # its number, 0 without one
    children: frozenset[int] | None = None  # the sub-issues of the parent; None without a parent
    milestone: int = 0  # its number, 0 without one
    removed: Mapping[int, Set[str]] = field(default_factory=dict)  # parts that were taken from an issue, by its number
    findings: tuple[Finding, ...] = ()


class AddSubIssue(Operation, op="add-sub-issue"):
    """Make an item a sub-issue of the plan's parent."""

    setting: ClassVar[str] = "parent"
    item: str
    parent: int


class SetMilestone(Operation, op="set-milestone"):
    """Put an item into a milestone."""

    setting: ClassVar[str] = "milestone"
    item: str
    milestone: int


class SetType(Operation, op="set-type"):
    """Give an item its issue type."""

    setting: ClassVar[str] = "type"
    item: str
    name: str


class AssignItem(Operation, op="assign"):
    """Assign an item."""

    setting: ClassVar[str] = "assign"
    item: str
    logins: tuple[str, ...]


StructureOperation = AddSubIssue | SetMilestone | SetType | AssignItem


def gather_structure(github: GitHub, wanted: IssueStructure, requested: int, issues: Iterable[Issue]) -> StructureFacts:
    """Read the parent of a plan with its sub-issues, its milestone, and which parts people took from its issues."""
    facts = _gather_parent(github, wanted, requested)
    if wanted.milestone:
        title = wanted.milestone.strip().lower()
        found = (each.number for each in github.milestones() if each.title.strip().lower() == title)
        facts = replace(facts, milestone=next(found, 0))
    if wanted.milestone and not facts.milestone:
        message = f"The repository has no milestone `{wanted.milestone}`."
        hint = "Create it, or correct `milestone` in plan.yml."
        facts = replace(facts, findings=(*facts.findings, Finding("milestone-missing", message, hint=hint)))
    lacking = [issue.number for issue in issues if _can_change(issue) and not _parts_of(issue) >= _wanted_parts(wanted)]
    return replace(facts, removed={number: github.removed_parts(number) for number in sorted(lacking)})


def _gather_parent(github: GitHub, wanted: IssueStructure, requested: int) -> StructureFacts:
    parent = requested if wanted.parent == "request" else wanted.parent
    if not wanted.parent:
        return StructureFacts(wanted)
    issue = github.issue(parent) if parent else None
    try:
        if parent and issue and not issue.is_pull:
            return StructureFacts(wanted, parent, frozenset(each.number for each in github.sub_issues(parent)))
    except NotThere as refused:
        return StructureFacts(wanted, findings=(_unavailable("parent", "", refused),))
    message, hint = f"The parent #{parent} is not an issue.", "Correct `parent` in plan.yml."
    if not parent:
        message, hint = "`parent: request` needs a request that is an issue.", "Pass `--request '#12'`."
    return StructureFacts(wanted, findings=(Finding("parent-missing", message, hint=hint),))


def _can_change(issue: Issue) -> bool:
    return issue.is_open and not status_among(issue.labels, BEGUN)


def _wanted_parts(wanted: IssueStructure) -> set[str]:
    parts = {"milestone": wanted.milestone, "type": wanted.type, "assignees": wanted.assign}
    return {name for name, value in parts.items() if value}


def _parts_of(issue: Issue | None) -> set[str]:
    has = {"milestone": issue.milestone, "type": issue.type_name, "assignees": issue.assignees or None} if issue else {}
    return {name for name, value in has.items() if value is not None}


def plan_structure(plan: Plan, facts: PlanFacts, structure: StructureFacts) -> list[StructureOperation]:
    """Return the operations for items that are new, or open and not begun; a part that someone removed is skipped."""
    wanted, accounts = structure.wanted, _accounts() if structure.wanted.assign else {}
    logins = [accounts.get(login.lower(), login) for login in wanted.assign]
    operations: list[StructureOperation] = []
    for i, item in enumerate(plan.items):
        name, issue = item.temp_id, facts.items.get(item.temp_id)
        if issue and not _can_change(issue):
            continue
        parts = _parts_of(issue) | (structure.removed.get(issue.number, set()) if issue else set())
        is_child = issue is not None and issue.number in (structure.children or ())
        has_other = issue is not None and not is_child and (issue.has_parent or issue.number == structure.parent)
        if structure.children is not None and not has_other:
            key = f"{name} below #{structure.parent}"
            operations.append(AddSubIssue(key, skipped_if(is_child), name, structure.parent))
        if structure.milestone:
            found = skipped_if("milestone" in parts)
            operations.append(SetMilestone(f"{name} in {wanted.milestone}", found, name, structure.milestone))
        if wanted.type:
            operations.append(SetType(f"{name} is {wanted.type}", skipped_if("type" in parts), name, wanted.type))
        # an agent with an account begins to work when it is assigned, so it gets no item that is blocked
        is_blocked = bool(accounts) and _is_blocked(plan, i, facts)
        some = tuple(login for login in logins if not is_blocked or login not in accounts.values())
        if some:
            key = f"{name} to {', '.join(some)}"
            operations.append(AssignItem(key, skipped_if("assignees" in parts), name, some))
    return operations


def _is_blocked(plan: Plan, position: int, facts: PlanFacts) -> bool:
    closed = {name for name, issue in facts.items.items() if not issue.is_open}
    item = plan.items[position]
    existing = (facts.existing[number] for number in item.numbers)
    return not closed.issuperset(item.blockers) or any(issue and issue.is_open for issue in existing)


def check_structure(
    operations: Sequence[StructureOperation], facts: PlanFacts, structure: StructureFacts
) -> Iterator[Finding]:
    """Check that the parent can take all items, and warn of parts that someone removed: a person's edit wins."""
    yield from structure.findings
    coming = sum(isinstance(each, AddSubIssue) and each.found is None for each in operations)
    total = coming + len(structure.children or ())
    if coming and total > MOST_SUB_ISSUES:
        message = f"#{structure.parent} would have {total} sub-issues; GitHub allows {MOST_SUB_ISSUES}."
        yield Finding("sub-issues-too-many", message, hint="Split the plan, or remove `parent`.")
    for name, issue in facts.items.items():
        lost = structure.removed.get(issue.number, set()) & (_wanted_parts(structure.wanted) - _parts_of(issue))
        for part in sorted(lost, key=("milestone", "type", "assignees").index):
            message = f"Someone removed the {part} of #{issue.number} `{name}`, so accord does not set it again."
            yield warning("structure-removed", message, hint="Set it by hand if the issue is to have it.")


def apply_structure(
    github: GitHub, operation: StructureOperation, issue: Issue
) -> tuple[OperationStatus | None, Finding | None]:
    """Carry out one operation on an item; return ``skipped`` and a warning where GitHub does not allow it."""

    def find() -> Issue | None:
        """Return the issue as the operation leaves it."""
        if isinstance(operation, AddSubIssue):
            return next((each for each in github.sub_issues(operation.parent) if each.id == issue.id), None)
        now = github.issue(issue.number)
        return now if now and isinstance(operation, AssignItem) and not _absent_logins(now, operation.logins) else None

    try:
        match operation:
            case AddSubIssue(parent=parent):
                github.send_once(lambda: github.add_sub_issue(parent, issue.id), find)
            case SetMilestone(milestone=milestone):
                github.change_issue(issue.number, IssueChange(milestone=milestone))
            case SetType(name=name):
                github.change_issue(issue.number, IssueChange(type_name=name))
            case AssignItem(logins=logins):
                made = github.send_once(lambda: github.add_assignees(issue.number, logins), find)
                return _assignment(made, logins)
    except Refused as refused:
        if isinstance(operation, AddSubIssue) and find():
            return None, None
        if isinstance(refused, NotThere) and not isinstance(operation, AddSubIssue):
            raise
        return OperationStatus.SKIPPED, _unavailable(operation.setting, f" for #{issue.number}", refused)
    return None, None


def _assignment(now: Issue, logins: Sequence[str]) -> tuple[OperationStatus | None, Finding | None]:
    left = _absent_logins(now, logins)
    if not left:
        return None, None
    message = f"GitHub did not assign {', '.join(left)}: not all accounts can be assigned with this token."
    agents = " or ".join(_accounts()).title()
    hint = f"Give them access to the repository; {agents} needs a token of a user who has it."
    status = None if now.assignees else OperationStatus.SKIPPED
    return status, warning("structure-unavailable", message, hint=hint)


def _absent_logins(issue: Issue, logins: Sequence[str]) -> list[str]:
    has = {login.lower() for login in issue.assignees}
    for names in _accounts().items():
        has |= {*names} if has & {*names} else set()
    return [login for login in logins if login.lower() not in has]


def _unavailable(setting: str, where: str, refused: Refused) -> Finding:
    message = f"GitHub does not accept `{setting}` of plan.yml{where}: {refused.message}"
    return warning("structure-unavailable", message, hint=f"Correct or remove `{setting}` in plan.yml.")
