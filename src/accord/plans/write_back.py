"""Write work items back into task lists: the issues of an applied plan into its source, and open items as a new list.

Of a source, only the lines of its tasks change. Every entry of a new list ends with its issue, such as ``(#12)``, and
carries the whole body, indented below it; ``accord plan from`` reads it again.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.clock import Clock
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.core.numbers import issue_number
from accord.engine.operations import OperationLog, skipped_if
from accord.files.store import Storage, change_file
from accord.github.limits import BODY_CHARS
from accord.github.models import Issue, IssueChange
from accord.plans.entries import NUMBER
from accord.plans.models import Source, SourceTask
from accord.plans.read import read_issue, read_source
from accord.results.bodies import split_body
from accord.results.labels import STATUS_AT_CREATION, Category, category_of, in_category
from accord.results.models import PlannedWorkItem, PlannerResult
from accord.results.planner.facts import gather_facts
from accord.results.planner.record import planned_blockers
from accord.results.planner.rules import item_id, read_plan, split_temp_id
from accord.results.planner.scope import plan_run_key
from accord.results.run_options import PlanOptions
from accord.text.markers import run_token
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

if TYPE_CHECKING:
    from accord.github.client import Connection, GitHub

_KEY = "work_item"
_RECORDED = re.compile(rb"([ \t]*(?:-[ \t]+)?)[\"']?work_item[\"']?[ \t]*:")
_ID = re.compile(r"([ \t]*(?:-[ \t]+)?)[\"']?(?:id|work_package_id)[\"']?[ \t]*:")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


def numbers_of_receipt(raw: bytes, path: str) -> dict[str, int]:
    """Return the issues of a receipt by the ids of their tasks. Raises BrokenContract where it is not one."""
    value: Any = read_object(raw).value
    items = value.get("items")
    if value.get("kind") != "planner-result" or not isinstance(items, dict):
        message, hint = f"`{path}` is not the receipt of a plan.", "Write it with `accord apply --receipt`."
        raise BrokenContract.of(Finding("schema", message, hint=hint))
    found = {name: issue_number(item.get("id")) for name, item in items.items() if isinstance(item, dict)}
    return {split_temp_id(name)[0]: number for name, number in found.items() if number}


def numbers_on_github(connection: Connection, result: PlannerResult, clock: Clock) -> dict[str, int]:
    """Return the issues that earlier runs of a plan made, by the ids of their tasks."""
    plan, repository = read_plan(result), connection.repository
    key = plan_run_key(plan, PlanOptions(repository, clock, Redactor(), PostingPolicy()))
    facts = gather_facts(connection.github, plan, run_token(repository, key), clock)
    return {split_temp_id(name)[0]: issue.number for name, issue in facts.items.items()}


class PlanFile(Frozen):
    """A file or folder with tasks, and the directory of its repository where that is known."""

    path: Path
    root: Path | None

    def read(self) -> Source:
        """Read its tasks."""
        return read_source(self.path, self.root)

    def write(self, numbers: Mapping[str, int], clock: Clock, log: OperationLog) -> list[str]:
        """Write the numbers of its tasks into their files, each file at once; return the new lines.

        Raises WrongUsage where a task's line has no place for one. A line that has the number stays as it is.
        """
        source, file = self.read(), self.path / "tasks.md" if self.path.is_dir() else self.path
        by_file: dict[Path, list[SourceTask]] = {}
        for task in _unnumbered_tasks(source, numbers):
            by_file.setdefault(source.numbers_into.get(task.id, file), []).append(task)
        changes = {target: _change(target, tasks, numbers) for target, tasks in by_file.items()}
        befores = {target: target.read_bytes() for target in changes}
        changed = [_new_lines(one.name, befores[one], change(befores[one])) for one, change in changes.items()]
        for target, change in changes.items():
            log.write("record-numbers", target.name, partial(change_file, target, change, Storage(clock)))
        return [line for lines in changed for line in lines]


class PlanIssue(Frozen):
    """An issue with a checklist; ``place`` names it in the plan."""

    github: GitHub
    number: int
    place: str

    def read(self) -> Source:
        """Read its tasks."""
        return read_issue(self.github, self.number, self.place)[0]

    def write(self, numbers: Mapping[str, int], _clock: Clock, log: OperationLog) -> list[str]:
        """Write the numbers of its tasks into the checklist as it is now; return the new lines.

        Raises BrokenContract where the body has no space for them.
        """
        source, body = read_issue(self.github, self.number, self.place)
        before = body.encode("utf-8", "surrogateescape")
        after = _with_numbers(before, _unnumbered_tasks(source, numbers), numbers)
        changed = _new_lines(self.place, before, after)
        text = after.decode("utf-8", "surrogateescape")
        if len(text) > BODY_CHARS:
            message = f"The body of {self.place} has no space for the numbers: GitHub allows {BODY_CHARS} characters."
            raise BrokenContract.of(Finding("body-too-long", message, hint="Shorten it, or split the list."))
        change = partial(self.github.change_issue, self.number, IssueChange(body=text))
        log.write("record-numbers", self.place, change, number=self.number, found=skipped_if(not changed))
        return changed


def _unnumbered_tasks(source: Source, numbers: Mapping[str, int]) -> list[SourceTask]:
    return [task for task in source.tasks if task.id in numbers and task.number != numbers[task.id]]


def _new_lines(name: str, before: bytes, after: bytes) -> list[str]:
    old = set(_LINE.findall(before))
    return [f"{name}: {line.decode('utf-8', 'replace').strip()}" for line in _LINE.findall(after) if line not in old]


def _with_numbers(raw: bytes, tasks: list[SourceTask], numbers: Mapping[str, int]) -> bytes:
    lines: list[bytes] = _LINE.findall(raw)
    for task in tasks:
        text = lines[task.line - 1].decode("utf-8", "surrogateescape")
        words = text.rstrip()
        ending = text[len(words) :]  # with the blanks of a hard line break
        new = f"{NUMBER.sub('', words)} (#{numbers[task.id]}){ending}"
        lines[task.line - 1] = new.encode("utf-8", "surrogateescape")
    return b"".join(lines)


def _change(target: Path, tasks: list[SourceTask], numbers: Mapping[str, int]) -> Callable[[bytes], bytes]:
    is_list = target.suffix == ".md" and not tasks[0].file.split("/")[-1].startswith("WP")

    def change(raw: bytes) -> bytes:
        if is_list:
            return _with_numbers(raw, tasks, numbers)
        lines: list[bytes] = _LINE.findall(raw)
        for task in sorted(tasks, key=lambda task: -task.line):
            _put_key(lines, task, numbers[task.id], target)
        return b"".join(lines)

    return change


def _put_key(lines: list[bytes], task: SourceTask, number: int, target: Path) -> None:
    """Put ``work_item: 12`` below the line of a task's id, or replace the one that is there."""
    line = lines[task.line - 1].decode("utf-8", "surrogateescape")
    key = _ID.match(line)
    if key is None or line.count("{"):
        message = f"`{task.id}` in {target.name} is not written as one key a line."
        raise WrongUsage(message, hint=f"Write `{_KEY}: {number}` into it yourself.")
    indent = " " * len(key[1])
    ending = "\r\n" if line.endswith("\r\n") else "\n"
    new = f"{indent}{_KEY}: {number}{ending}".encode()
    for position in range(task.line, len(lines)):
        here = lines[position]
        match = _RECORDED.match(here)
        if match and len(match[1]) == len(indent):
            lines[position] = new
            return
        if here.strip() and (len(here) - len(here.lstrip()) < len(indent) or here.startswith(b"---")):
            break
    if not lines[task.line - 1].endswith(b"\n"):
        lines[task.line - 1] += b"\n"
    lines.insert(task.line, new)


def export_list(issues: Sequence[Issue], repository: str, *, is_tasks: bool) -> str:
    """Return work items as a Markdown checklist, or in the form of a Spec Kit ``tasks.md`` with ids such as T012."""
    head = f"# Tasks: {repository}\n\n## Phase 1: Open work items" if is_tasks else f"# Work items of {repository}"
    ordered = sorted(issues, key=lambda issue: issue.number)
    return "\n\n".join([head, *(_entry(issue, is_tasks=is_tasks) for issue in ordered)]) + "\n"


def export_plan(issues: Sequence[Issue]) -> dict[str, Any]:
    """Return work items as a planner result whose tempIDs name their issues."""
    create = [
        PlannedWorkItem(
            temp_id=item_id(_name(issue), issue.number),
            title=issue.title,
            body=split_body(issue.body).content,
            labels=_labels(issue),
            blocked_by=[f"#{number}" for number in sorted(planned_blockers(issue))],
        )
        for issue in sorted(issues, key=lambda issue: issue.number)
    ]
    return PlannerResult(role="planner", create=create, close=[], update=[]).model_dump(by_alias=True)


def _name(issue: Issue) -> str:
    return f"T{issue.number:03}"


def _labels(issue: Issue) -> list[str]:
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
