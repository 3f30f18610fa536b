"""Compare an item of a plan with its issue and with what accord wrote last. Pure.

Each part is compared three ways. A change of the plan is written, unless a person edited the same part: that edit stays
and is reported.
"""

from __future__ import annotations

import difflib
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.core.frozen import Frozen
from accord.github.models import Issue, IssueChange
from accord.results.bodies import name_owners, split_body
from accord.results.labels import (
    CHANGEABLE,
    KNOWN_NAMES,
    SET_ONCE,
    STATUS_AT_CREATION,
    Category,
    category_of,
    in_category,
    labels_after_update,
    status_among,
)
from accord.results.planner.checks import has_update, is_reopened
from accord.results.planner.match import BEGUN
from accord.results.planner.record import (
    VANISHED,
    ItemRecord,
    body_digest,
    content_of,
    digests_of_updates,
    is_retired,
    label_digest,
    label_digests,
    labels_of_updates,
    latest_record,
    record_of,
    text_digest,
    with_record,
    without_marker,
    written_digests,
)
from accord.results.planner.rules import Plan, PlannedItem, split_temp_id
from accord.text.outline import ChecklistTask, Section, sections, tasks, with_ticks, without_ticks

if TYPE_CHECKING:
    from accord.results.models import PlannedWorkItemUpdate
    from accord.results.planner.facts import PlanFacts

_MOST_DIFF_LINES = 40


class Comparison(Frozen):
    """An issue beside its item. None leaves a text, the labels or the record as they are."""

    issue: Issue
    parts: tuple[str, ...] = ()  # to be written
    kept: tuple[str, ...] = ()  # changed by the plan and by a person
    title: str | None = None
    content: str | None = None
    labels: tuple[str, ...] | None = None
    record: ItemRecord | None = None
    reopens: bool = False
    wrote: str = ""  # digests of what an update writes over text of accord; over a person's, it has none

    @property
    def all_parts(self) -> tuple[str, ...]:
        """All parts that the plan changed."""
        return (*self.parts, *self.kept)

    @property
    def is_settled(self) -> bool:
        """Whether the issue stays as it is because it is closed."""
        return not self.issue.is_open and not self.reopens


def compare(item: PlannedItem, issue: Issue, plan: Plan, facts: PlanFacts, issues: Mapping[str, Issue]) -> Comparison:
    """Compare an item with its issue; ``issues`` are those of the plan by tempID, as far as they exist."""
    record = latest_record(issue, facts.token, facts.identity) or ItemRecord("")
    new = dict[str, Any]()
    parts, kept, updated = list[str](), list[str](), digests_of_updates(issue)

    def merge(part: str, ours: str, theirs: str, digest: Callable[[str], str]) -> str | None:
        """Return the text to write; None where it is the same, or others changed it since this plan wrote it.

        An update's text is not a person's, but stays until the plan changes.
        """
        wanted, present, written = digest(ours), digest(theirs), getattr(record, part)
        if present not in (wanted, written) and (wanted == written or present not in updated):
            kept.extend([part] if wanted != written else [])
            return None
        new[part] = wanted
        if wanted == present:
            return None
        parts.append(part)
        return ours

    name, _ = split_temp_id(item.temp_id)
    if record.temp_id != name == item.temp_id:
        parts.append("tempID")
        new["temp_id"] = name
    reopens = is_retired(issue, facts.token) and facts.identity.counts(issue.closed_by)
    if reopens:
        parts.append("state")
    title = merge("title", item.title.strip(), issue.title.strip(), text_digest)
    old = content_of(issue)
    content = merge("body", with_numbers(item.content, plan, issues), old, body_digest)
    labels, has_conflict = merge_labels([record.labels, *labels_of_updates(issue)], issue.labels, item.labels)
    if labels is not None:
        parts.append("labels")
    if has_conflict:
        kept.append("labels")
    else:
        new["labels"] = label_digests(item.labels)
    wanted, existing = item.blocker_numbers(issues), frozenset(facts.blockers.get(issue.number, ()))
    new["blockers"] = (record.blockers & wanted) | (wanted - existing)
    if new["blockers"] != record.blockers or any(name not in issues for name in item.blockers):
        parts.append("dependencies")
    if reopens and not in_category(issue.labels, Category.STATUS):
        labels = (*(issue.labels if labels is None else labels), STATUS_AT_CREATION)
    ticked = None if content is None else _with_old_ticks(content, old)
    return Comparison(issue, tuple(parts), tuple(kept), title, ticked, labels, replace(record, **new), reopens)


def compare_update(
    update: PlannedWorkItemUpdate, issue: Issue, plan: Plan, facts: PlanFacts, issues: Mapping[str, Issue]
) -> Comparison:
    """Compare an issue with an update of it: what differs after this update was applied is a person's edit."""
    old = content_of(issue)
    content = None if update.body is None else _with_old_ticks(with_numbers(update.body, plan, issues), old)
    labels = None if update.labels is None else labels_after_update(issue, update.labels)
    parts = () if content in (None, old) else ("body",)
    if labels is not None and {*map(str.lower, labels)} != {*map(str.lower, issue.labels)}:
        parts = (*parts, "labels")
    is_applied = has_update(issue, facts.token, update)
    record = latest_record(issue, facts.token, facts.identity)
    edited = [*_edited_parts(issue, record)] if record else ["body"]
    new = label_digests(labels or ()) - _edited_labels(issue, record) if record else ()
    wrote = ".".join(written_digests(None if "body" in edited else content, new))
    parts, kept = ((), parts) if is_applied else (parts, ())
    return Comparison(issue, parts, kept, None, content, labels, wrote=wrote)


def with_numbers(text: str, plan: Plan, issues: Mapping[str, Issue]) -> str:
    """Return a text with the numbers of items in place of their names as owners."""
    return name_owners(text, {name: issue.number for name, issue in issues.items() if name in plan.names}, plan.names)


def _with_old_ticks(content: str, old: str) -> str:
    """Tick the boxes that are ticked in the old content: by text, and by heading and order where a text is repeated."""
    counts = [Counter(task.text for task in tasks(text)) for text in (content, old)]
    repeated = {text for count in counts for text in count if count[text] > 1}
    ticked = {key for key, task in _keyed_boxes(old, repeated) if task.is_checked}
    return with_ticks(content, [task for key, task in _keyed_boxes(content, repeated) if key in ticked])


def _keyed_boxes(text: str, repeated: Set[str]) -> Iterator[tuple[tuple[str, str, int], ChecklistTask]]:
    above, seen = sections(text), Counter[tuple[str, str]]()
    for task in tasks(text):
        key = (task.text, _heading_above(above, task.line) if task.text in repeated else "")
        seen[key] += 1
        yield (*key, seen[key]), task


def merge_labels(
    written: Sequence[Set[str]], present: Sequence[str], wanted: Sequence[str]
) -> tuple[tuple[str, ...] | None, bool]:
    """Return the labels to set, None for no change, and whether a person chose another priority or complexity.

    ``written`` are the digests of those that the plan set last, and of those that each update wrote. A label stays that
    the plan did not change, or that people added or removed.
    """
    has = {label_digest(label): label for label in present if category_of(label) not in SET_ONCE}
    want = {label_digest(label): label for label in wanted if category_of(label) not in SET_ONCE}
    changed, contested = set[str](), False
    for unit in _label_units([*present, *wanted], written):
        now, new = has.keys() & unit, want.keys() & unit
        if new not in (now, written[0] & unit):
            is_ours = now in [each & unit for each in written]
            changed |= unit if is_ours else set()
            contested = contested or not is_ours
    added = [want[each] for each in want if each in changed and each not in has]
    removed = [has[each] for each in has if each in changed and each not in want]
    if not added and not removed:
        return None, contested
    return (*(label for label in present if label not in removed), *added), contested


def _label_units(labels: Iterable[str], written: Iterable[Set[str]]) -> list[Set[str]]:
    """Return the digests of labels that are judged together: those of a category, and each other one by itself."""
    names = {*KNOWN_NAMES, *labels}
    units = [frozenset(label_digest(name) for name in names if category_of(name) is each) for each in CHANGEABLE]
    return [*units, *(frozenset({each}) for each in label_digests(labels).union(*written).difference(*units))]


def to_issue_change(change: Comparison, token: str) -> IssueChange:
    """Return the one request that writes a comparison, with the new record."""
    parts = split_body(change.issue.body)
    if change.content is not None:
        parts = replace(parts, content=change.content)
    if change.reopens:
        parts = without_marker(parts, VANISHED, token)
    if change.record is not None:
        parts = with_record(parts, token, change.record)
    state = "open" if change.reopens else None
    return IssueChange(parts.join(), change.labels, state, title=change.title)


def reason_to_keep(issue: Issue, facts: PlanFacts) -> str:
    """Return why an item that vanished from its plan is not closed; empty where nothing speaks against it."""
    record, status = record_of(issue, facts.token), status_among(issue.labels, BEGUN)
    if is_reopened(issue, facts):
        return "a person reopened it"
    if status:
        return f"its status is {status}"
    if issue.assignees:
        return "it is assigned"
    edited = [] if record is None else list(_edited_parts(issue, record))
    return f"its {' and '.join(edited)} changed since accord wrote it" if edited else ""


def _edited_parts(issue: Issue, record: ItemRecord) -> Iterator[str]:
    content, updated = content_of(issue), digests_of_updates(issue)
    if text_digest(issue.title) != record.title:
        yield "title"
    if body_digest(content) not in {record.body, *updated} or content != without_ticks(content):
        yield "body"
    if _edited_labels(issue, record):
        yield "labels"


def _edited_labels(issue: Issue, record: ItemRecord) -> Set[str]:
    """Return the digests of labels that are not as the plan or an update wrote them."""
    now, written = label_digests(issue.labels), [record.labels, *labels_of_updates(issue)]
    units = _label_units(issue.labels, written)
    return {each for unit in units if now & unit not in [each & unit for each in written] for each in unit}


def difference(change: Comparison) -> str:
    """Return what a comparison would write, as lines that begin with + or -, below the heading of their section."""
    issue, lines = change.issue, list[str]()
    if change.title is not None:
        lines += [f"- {issue.title}", f"+ {change.title}"]
    if change.labels is not None:
        old, new = ({label.casefold(): label for label in labels} for labels in (issue.labels, change.labels))
        lines += [f"- label {old[name]}" for name in old if name not in new]
        lines += [f"+ label {new[name]}" for name in new if name not in old]
    if change.content is not None:
        lines += _body_difference(content_of(issue), change.content)
    rest = len(lines) - _MOST_DIFF_LINES
    return "\n".join([*lines[:_MOST_DIFF_LINES], f"… {rest} more lines"] if rest > 1 else lines)


def _body_difference(old: str, new: str) -> Iterable[str]:
    before, after = old.splitlines(), new.splitlines()
    above, old_above = sections(new), sections(old)
    matcher = difflib.SequenceMatcher(None, before, after)
    shown = ""
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        heading = _heading_above(above, first) or _heading_above(old_above, start)
        if heading != shown:
            shown = heading
            yield f"  {heading}"
        yield from (f"- {line}" for line in before[start:end] if line.strip())
        yield from (f"+ {line}" for line in after[first:last] if line.strip())


def _heading_above(found: Sequence[Section], position: int) -> str:
    count = bisect(found, position, key=lambda section: section.line)
    return f"{'#' * found[count - 1].level} {found[count - 1].title}" if count else ""
