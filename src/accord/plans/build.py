"""Make a planner result of a source. Pure.

Only text that the source states becomes text of an item. A part that the contract needs and the source lacks is a
finding with its place in the source. Priority and complexity are the only defaults: they are labels of a plan, not
facts about the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from accord.core.findings import Finding, Severity, has_errors
from accord.github.limits import TITLE_CHARS
from accord.plans.models import Source, SourceTask
from accord.results.bodies import read_body
from accord.results.body_rules import body_findings
from accord.results.labels import STATUS_AT_CREATION, Category, ItemKind, category_of, kind_of
from accord.results.models import PlannedWorkItem, PlannerResult
from accord.results.planner.rules import item_id, limit_findings, result_findings
from accord.results.run_options import MOST_ITEMS
from accord.text.markdown import as_code, shorten

_BOLD = re.compile(r"(`[^`]*`)|(?<![\w/\\*])\*\*(?![\s/*])((?:(?!\*\*).)+)(?<![\s/])\*\*(?![\w/*])")
"""Bold words, which GitHub shows with their asterisks in titles; those in globs stay."""

PlacedFindings = list[tuple[str, Finding]]
"""Findings, each with the file of its line."""


def build_plan(
    source: Source, priority: str = "medium", complexity: str = "medium"
) -> tuple[PlannerResult, PlacedFindings]:
    """Return the planner result of a source, and what keeps it from being valid or deserves a warning.

    ``priority`` and ``complexity`` are for items whose source states none.
    """
    found: PlacedFindings = [*source.findings, *_repeated_ids(source.tasks)]
    open_tasks = [task for task in source.tasks if not task.is_done]
    by_id = {task.id: task for task in source.tasks}
    found += _unknown_references(source.tasks, by_id)
    items = {}
    for task in open_tasks:
        items[task.id] = _item(task, source.spec, task.priority or priority, complexity)
        found += ((task.file, each) for each in _missing_parts(task, items[task.id]))
    if not source.tasks and not has_errors(each for _, each in found):
        hint = "Write each task as `- [ ] What to do in path/to/file`."
        found.append((source.spec, Finding("no-tasks", "The source has no tasks.", hint=hint)))
    blockers = (_blockers(task, by_id, items) for task in open_tasks)
    create = [items[task.id].model_copy(update={"blocked_by": next(blockers)}) for task in open_tasks]
    result = PlannerResult(role="planner", create=create, close=[], update=[])
    if not any(has_errors([each]) for _, each in found):
        found += _source_findings(result, open_tasks)
        many = limit_findings(result, MOST_ITEMS)  # a caller of `accord apply` may allow more
        found += (("", replace(each, severity=Severity.WARNING)) for each in many)
    return result, found


def _item(task: SourceTask, spec: str, priority: str, complexity: str) -> PlannedWorkItem:
    stated = kind_of(list(task.labels)) if task.body else None
    kind = stated or (ItemKind.REFINEMENT if "## Ambiguity" in task.body else ItemKind.TASK)
    wanted = {
        Category.TYPE: kind.value,
        Category.STATUS: STATUS_AT_CREATION,
        Category.PRIORITY: f"priority:{priority}",
        Category.COMPLEXITY: f"complexity:{complexity}",
    }
    if kind is ItemKind.REFINEMENT:
        del wanted[Category.COMPLEXITY]
    own = [label for label in task.labels if label and category_of(label) is not Category.STATUS]
    present = set(map(category_of, own))
    labels = [*(label for category, label in wanted.items() if category not in present), *own]
    body = task.body or _body(task, spec)
    title = task.title if task.body else _BOLD.sub(r"\1\2", task.title)  # a whole body is of an item with its title
    title = shorten(" ".join(title.split()), TITLE_CHARS)
    return PlannedWorkItem(temp_id=item_id(task.id, task.number), title=title, body=body, labels=labels, blocked_by=[])


def _body(task: SourceTask, spec: str) -> str:
    reference = spec if "#" in spec else as_code(spec)
    origin = f"Source: {as_code(task.file)}, {task.id}" if "#" not in task.file else ""
    parts = [
        ("## Objective", task.objective or task.title),
        ("## Spec Reference", f"- Spec: {reference}\n- Section(s): {task.section or task.title}"),
        ("## Scope", ""),
        ("### In Scope", "\n".join(f"- {as_code(path)}" for path in task.scope)),
        ("### Out of Scope", "\n".join(f"- {as_code(path)}" for path in task.out_of_scope) or "None"),
        ("## Acceptance Criteria", "\n".join(f"- [ ] {text}" for text in dict.fromkeys(task.criteria))),
        ("## Context", "\n".join(f"- {text}" for text in (origin, *task.context) if text) or "None"),
        ("## Constraints", "\n".join(f"- {text}" for text in task.constraints) or "None"),
    ]
    return "\n\n".join(f"{heading}\n\n{text}".rstrip() for heading, text in parts)


def _blockers(task: SourceTask, by_id: dict[str, SourceTask], items: dict[str, PlannedWorkItem]) -> list[str]:
    """Return the references to what blocks a task: a done task passes on what blocked it, unless it has an issue."""
    found: dict[str, None] = {}
    seen, waiting = {task.id}, [*reversed(task.blockers)]
    while waiting:
        name = waiting.pop()
        if name in items and (name != task.id or name in task.blockers):
            found[items[name].temp_id] = None
        elif name.startswith("#"):
            found[name] = None
        elif name in by_id and name not in seen:
            seen.add(name)
            done = by_id[name]
            waiting += [f"#{done.number}"] if done.number else reversed(done.blockers)
    return list(found)


def _repeated_ids(tasks: Sequence[SourceTask]) -> Iterator[tuple[str, Finding]]:
    first: dict[str, SourceTask] = {}
    for task in tasks:
        known = first.setdefault(task.id, task)
        if known is not task:
            message = f"The id `{task.id}` is already on line {known.line}."
            yield task.file, Finding("duplicate-temp-id", message, line=task.line, hint="Give this task another one.")


def _unknown_references(tasks: Sequence[SourceTask], by_id: dict[str, SourceTask]) -> Iterator[tuple[str, Finding]]:
    for task, name in ((each, name) for each in tasks for name in each.blockers):
        if name not in by_id and not name.startswith("#"):
            message = f"`{task.id}` waits for `{name}`, which the source does not have."
            finding = Finding("unknown-reference", message, line=task.line, hint="Correct the id, or remove it.")
            yield task.file, finding


def _missing_parts(task: SourceTask, item: PlannedWorkItem) -> Iterator[Finding]:
    """Find what an item of a source lacks, at the place in the source where it can be added."""
    if task.body:
        return
    if not task.scope:
        yield Finding("scope-empty", f"`{task.id}` names no file that it may change.", line=task.line, hint=task.hint)
    if not task.criteria:
        hint = f"Add what must hold when `{task.id}` is done, each as `- [ ] …`."
        yield Finding("criteria-missing", f"`{task.id}` has no acceptance criterion.", line=task.line, hint=hint)
    if task.scope and task.criteria:
        for each in body_findings(read_body(item.body), ItemKind.TASK, ""):
            yield replace(each, message=f"`{task.id}`: {each.message}", line=task.line)


def _source_findings(result: PlannerResult, tasks: Sequence[SourceTask]) -> Iterator[tuple[str, Finding]]:
    for each in result_findings(result):
        steps = each.path.split("/")
        task = tasks[int(steps[2])] if len(steps) > 2 and steps[1] == "create" else None
        yield (task.file, replace(each, line=task.line)) if task else ("", each)
