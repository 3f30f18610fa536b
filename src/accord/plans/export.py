"""Write open work items as a task list that ``accord plan from`` reads again. Pure.

Every entry ends with its issue, such as ``(#12)``, and carries the whole body, indented below it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from accord.github.models import Issue
from accord.results.bodies import split_body
from accord.results.labels import STATUS_AT_CREATION, Category, category_of, in_category
from accord.results.models import PlannedWorkItem, PlannerResult
from accord.results.planner.record import planned_blockers
from accord.results.planner.rules import numbered


def export_list(issues: Sequence[Issue], repository: str, *, is_tasks: bool) -> str:
    """Return work items as a Markdown checklist, or in the form of a Spec Kit ``tasks.md`` with ids such as T012."""
    head = f"# Tasks: {repository}\n\n## Phase 1: Open work items" if is_tasks else f"# Work items of {repository}"
    return "\n\n".join([head, *(_entry(issue, is_tasks=is_tasks) for issue in _in_order(issues))]) + "\n"


def export_plan(issues: Sequence[Issue]) -> dict[str, Any]:
    """Return work items as a planner result whose tempIDs name their issues."""
    create = [
        PlannedWorkItem(
            temp_id=numbered(_name(issue), issue.number),
            title=issue.title,
            body=split_body(issue.body).content,
            labels=_labels(issue),
            blocked_by=[f"#{number}" for number in sorted(planned_blockers(issue))],
        )
        for issue in _in_order(issues)
    ]
    return PlannerResult(role="planner", create=create, close=[], update=[]).model_dump(by_alias=True)


def _in_order(issues: Iterable[Issue]) -> list[Issue]:
    return sorted(issues, key=lambda issue: issue.number)


def _name(issue: Issue) -> str:
    return f"T{issue.number:03}"


def _labels(issue: Issue) -> list[str]:
    """Return the labels as at creation: the status moves on by itself."""
    kept = [label for label in issue.labels if category_of(label) is not Category.STATUS]
    kinds = in_category(kept, Category.TYPE)
    return [*kinds, STATUS_AT_CREATION, *(label for label in kept if label not in kinds)]


def _entry(issue: Issue, *, is_tasks: bool) -> str:
    blockers = ", ".join(f"#{number}" for number in sorted(planned_blockers(issue)))
    title = " ".join(issue.title.split())
    lines = [f"- [ ] {_name(issue)} [P] {title} (#{issue.number})" if is_tasks else f"- [ ] {title} (#{issue.number})"]
    if not is_tasks:
        lines.append(f"  - ID: {_name(issue)}")
    lines.append(f"  - Labels: {', '.join(f'`{label}`' for label in _labels(issue))}")
    lines += [f"  - Blocked by: {blockers}"] if blockers else []
    body = split_body(issue.body).content
    return "\n".join(lines) + (f"\n\n{textwrap.indent(body, '  ')}" if body.strip() else "")
