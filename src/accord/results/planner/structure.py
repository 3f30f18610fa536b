"""The structure of a plan's items on GitHub: parent, milestone, type and assignees, as ``plan.yml`` asks for them.

Each part is set where an open item has none of it and its work has not begun, so that people's choices stay. A part
that GitHub does not have, or does not allow, becomes a warning.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from accord.agents.registry import shipped_registry
from accord.core.errors import Refused
from accord.core.findings import Finding, warning
from accord.engine.operations import Operation, OperationStatus
from accord.github.models import IssueChange, NotThere
from accord.github.once import send_once
from accord.results.labels import status_of
from accord.results.planner.match import BEGUN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Issue
    from accord.results.planner.settings import IssueStructure

MOST_SUB_ISSUES = 100
"""Source: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/adding-sub-issues"""


@cache
def _accounts() -> dict[str, str]:
    """Return the accounts of agents that begin to work when they are assigned, by the agent's name."""
    return {name: agent.assignee for name, agent in shipped_registry().agents.items() if agent.assignee}


@dataclass(frozen=True)
class StructureFacts:
    """``parent`` is the number of the parent, 0 without one; ``children`` are its sub-issues, None without a parent.

    ``milestone`` is the number of the milestone, 0 without one. ``removed`` are the parts that were taken from an
    issue: milestone, type or assignees, by the issue's number.
    """

    wanted: IssueStructure
    parent: int = 0
    children: frozenset[int] | None = None
    milestone: int = 0
    removed: Mapping[int, Set[str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class AddSubIssue(Operation):
    """Make an item a sub-issue of the plan's parent."""

    op: ClassVar[str] = "add-sub-issue"
    item: str
    parent: int


@dataclass(frozen=True, slots=True)
class SetMilestone(Operation):
    """Put an item into a milestone."""

    op: ClassVar[str] = "set-milestone"
    part: ClassVar[str] = "milestone"
    item: str
    milestone: int


@dataclass(frozen=True, slots=True)
class SetType(Operation):
    """Give an item its issue type."""

    op: ClassVar[str] = "set-type"
    part: ClassVar[str] = "type"
    item: str
    name: str


@dataclass(frozen=True, slots=True)
class AssignItem(Operation):
    """Assign an item."""

    op: ClassVar[str] = "assign"
    part: ClassVar[str] = "assignees"
    item: str
    logins: tuple[str, ...]


StructureOperation = AddSubIssue | SetMilestone | SetType | AssignItem


def gather_structure(github: GitHub, wanted: IssueStructure, requested: int) -> StructureFacts:
    """Read the parent of a plan with its sub-issues, and its milestone."""
    facts = _gather_parent(github, wanted, requested)
    if not wanted.milestone:
        return facts
    title = wanted.milestone.strip().lower()
    for milestone in github.milestones():
        if milestone.title.strip().lower() == title:
            return replace(facts, milestone=milestone.number)
    message = f"The repository has no milestone `{wanted.milestone}`."
    found = Finding("milestone-missing", message, hint="Create it, or correct `milestone` in plan.yml.")
    return replace(facts, findings=(*facts.findings, found))


def _gather_parent(github: GitHub, wanted: IssueStructure, requested: int) -> StructureFacts:
    parent = requested if wanted.parent == "request" else wanted.parent or 0
    if wanted.parent == "request" and not parent:
        message = "`parent: request` needs a request that is an issue."
        return StructureFacts(wanted, findings=(Finding("parent-missing", message, hint="Pass `--request '#12'`."),))
    if not parent:
        return StructureFacts(wanted)
    issue = github.issue(parent)
    if issue is None or issue.is_pull:
        found = Finding(
            "parent-missing", f"The parent #{parent} is not an issue.", hint="Correct `parent` in plan.yml."
        )
        return StructureFacts(wanted, findings=(found,))
    try:
        return StructureFacts(wanted, parent, frozenset(each.number for each in github.sub_issues(parent)))
    except NotThere:
        return StructureFacts(wanted, findings=(_unavailable("sub-issues", "`parent`"),))


def with_removed_parts(
    github: GitHub, facts: StructureFacts, operations: Sequence[StructureOperation], issues: Mapping[str, Issue]
) -> StructureFacts:
    """Read which parts were taken from the existing issues that are to get one: one listing for each."""
    lacking = {
        issues[each.item].number
        for each in operations
        if not isinstance(each, AddSubIssue) and each.found is None and each.item in issues
    }
    return replace(facts, removed={number: github.removed_parts(number) for number in sorted(lacking)})


def without_removed_parts(
    operations: Sequence[StructureOperation], facts: StructureFacts, issues: Mapping[str, Issue]
) -> tuple[list[StructureOperation], list[Finding]]:
    """Skip parts that someone took from an issue, and warn of each: a person's edit wins. Pure."""
    kept: list[StructureOperation] = []
    found = []
    for each in operations:
        issue = issues.get(each.item)
        if issue and not isinstance(each, AddSubIssue) and each.part in facts.removed.get(issue.number, ()):
            message = (
                f"Someone removed the {each.part} of #{issue.number} `{each.item}`, so accord does not set it again."
            )
            hint = "Set it by hand if the issue is to have it."
            found.append(warning("structure-removed", message, hint=hint))
            each = replace(each, found=OperationStatus.SKIPPED)
        kept.append(each)
    return kept, found


def plan_structure(
    names: Sequence[str], issues: Mapping[str, Issue], facts: StructureFacts, blocked: Set[str] = frozenset()
) -> Iterator[StructureOperation]:
    """Yield the operations for items that are new, or open and not begun. Pure.

    An agent with an account begins to work when it is assigned, so that it gets no item that is ``blocked``.
    """
    for name in names:
        issue = issues.get(name)
        if issue and (not issue.is_open or status_of(issue.labels) in BEGUN):
            continue
        if facts.children is not None:
            found = _done(issue is not None and issue.number in facts.children)
            if found or issue is None or not (issue.has_parent or issue.number == facts.parent):
                yield AddSubIssue(f"{name} below #{facts.parent}", found, name, facts.parent)
        if facts.milestone:
            found = _done(issue is not None and issue.milestone is not None)
            yield SetMilestone(f"{name} in {facts.wanted.milestone}", found, name, facts.milestone)
        if facts.wanted.type:
            found = _done(issue is not None and issue.type_name is not None)
            yield SetType(f"{name} is {facts.wanted.type}", found, name, facts.wanted.type)
        accounts = _accounts() if facts.wanted.assign else {}
        logins = [accounts.get(login.lower(), login) for login in facts.wanted.assign]
        logins = [login for login in logins if login not in accounts.values() or name not in blocked]
        if logins:
            found = _done(issue is not None and bool(issue.assignees))
            yield AssignItem(f"{name} to {', '.join(logins)}", found, name, tuple(logins))


def check_structure(operations: Sequence[StructureOperation], facts: StructureFacts) -> list[Finding]:
    """Check that the parent can take all items."""
    coming = sum(isinstance(each, AddSubIssue) and each.found is None for each in operations)
    total = coming + len(facts.children or ())
    if not coming or total <= MOST_SUB_ISSUES:
        return list(facts.findings)
    message = f"#{facts.parent} would have {total} sub-issues; GitHub allows {MOST_SUB_ISSUES}."
    return [*facts.findings, Finding("sub-issues-too-many", message, hint="Split the plan, or remove `parent`.")]


def apply_structure(
    github: GitHub, operation: StructureOperation, issue: Issue, clock: Clock, findings: list[Finding]
) -> OperationStatus | None:
    """Carry out one operation on an item; return ``skipped``, with a warning, where GitHub does not allow it."""
    match operation:
        case AddSubIssue(parent=parent):
            return _add(github, parent, issue, clock, findings)
        case SetMilestone(milestone=milestone):
            return _change(github, issue, IssueChange(milestone=milestone), "the milestone", "`milestone`", findings)
        case SetType(name=name):
            return _change(github, issue, IssueChange(type_name=name), f"the issue type {name}", "`type`", findings)
        case AssignItem(logins=logins):
            return _assign(github, issue, logins, clock, findings)


def _change(
    github: GitHub, issue: Issue, change: IssueChange, what: str, key: str, findings: list[Finding]
) -> OperationStatus | None:
    try:
        github.change_issue(issue.number, change)
    except NotThere:
        raise
    except Refused:
        return _skip(findings, _unavailable(what, key))
    return None


def _add(github: GitHub, parent: int, issue: Issue, clock: Clock, findings: list[Finding]) -> OperationStatus | None:
    def find() -> Issue | None:
        return next((each for each in github.sub_issues(parent) if each.id == issue.id), None)

    try:
        send_once(lambda: github.add_sub_issue(parent, issue.id), find, clock)
    except Refused as refused:
        if find():
            return None
        message = f"#{issue.number} did not become a sub-issue of #{parent}: {refused.message}"
        return _skip(findings, warning("structure-unavailable", message, hint="Check `parent` in plan.yml."))
    return None


def _assign(
    github: GitHub, issue: Issue, logins: Sequence[str], clock: Clock, findings: list[Finding]
) -> OperationStatus | None:
    def find() -> Issue | None:
        now = github.issue(issue.number)
        return now if now and not _unassigned(now, logins) else None

    try:
        now = send_once(lambda: github.add_assignees(issue.number, logins), find, clock)
    except NotThere:
        raise
    except Refused as refused:
        return _skip(
            findings, warning("structure-unavailable", f"GitHub refused to assign #{issue.number}: {refused.message}")
        )
    if left := _unassigned(now, logins):
        message = f"GitHub did not assign {', '.join(left)}: not all accounts can be assigned with this token."
        agents = " or ".join(_accounts()).title()
        hint = f"Give them access to the repository; {agents} needs a token of a user who has it."
        findings.append(warning("structure-unavailable", message, hint=hint))
        return None if now.assignees else OperationStatus.SKIPPED
    return None


def _unassigned(issue: Issue, logins: Sequence[str]) -> list[str]:
    has = {login.lower() for login in issue.assignees}
    for names in _accounts().items():
        has |= {*names} if has & {*names} else set()
    return [login for login in logins if login.lower() not in has]


def _done(is_done: bool) -> OperationStatus | None:
    return OperationStatus.SKIPPED if is_done else None


def _skip(findings: list[Finding], found: Finding) -> OperationStatus:
    findings.append(found)
    return OperationStatus.SKIPPED


def _unavailable(what: str, key: str) -> Finding:
    message = f"GitHub does not have {what} here, so the items were created without."
    return warning("structure-unavailable", message, hint=f"Remove {key} from plan.yml.")
