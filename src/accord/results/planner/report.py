"""Report how a plan differs from its earlier version: as findings, and item by item. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, names_of, pointer, warning
from accord.github.limits import BODY_CHARS
from accord.github.models import Issue
from accord.results.bodies import longest_length
from accord.results.labels import ItemKind, kind_of
from accord.results.planner.changes import Comparison, compare_update, difference, reason_to_keep, to_issue_change
from accord.results.planner.checks import existing_issue
from accord.results.planner.record import record_of
from accord.results.planner.rules import Plan

if TYPE_CHECKING:
    from accord.results.planner.facts import PlanFacts


_SIMILARITY = 0.8
"""The share of common words from which two titles are nearly the same."""

_WORD = re.compile(r"\w+")
_FILLERS = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to", "with")
)
_MOST_NAMED = 20


def change_findings(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], *, closes_vanished: bool
) -> Iterator[Finding]:
    """Warn of changes that are not made, of items that vanished, and of likely duplicates in other plans."""
    for i, item in enumerate(plan.result.create):
        if (comparison := comparisons.get(item.temp_id)) is None:
            continue
        yield from item_findings(item.temp_id, comparison, pointer("create", i))
        growth = longest_length(item.body, plan.names) - len(item.body)
        size = len(to_issue_change(comparison, facts.token).body or "") + growth
        if comparison.parts and size > BODY_CHARS and not comparison.is_settled:
            message = f"The body of #{comparison.issue.number} would have {size} characters; the limit is {BODY_CHARS}."
            hint = "Move details into files and link them."
            yield Finding("body-too-long", message, pointer("create", i, "body"), hint=hint)
    new = [i for i, item in enumerate(plan.result.create) if item.temp_id not in facts.items]
    yield from _vanished_items(facts, closes_vanished=closes_vanished)
    yield from near_duplicates(plan, new, facts.others)


def item_findings(name: str, comparison: Comparison, path: str = "") -> Iterator[Finding]:
    """Warn of changes of the plan that an issue does not get: it is closed, or a person edited the same part."""
    shown = f"#{comparison.issue.number} `{name}`"
    if comparison.all_parts and comparison.is_settled:
        message = f"{shown} is closed and stays as it is; the plan changed {' and '.join(comparison.all_parts)}."
        yield warning("item-closed", message, path, hint="Reopen it and apply the plan again, or plan another item.")
    elif comparison.kept:
        parts = " and ".join(comparison.kept)
        message = f"{shown} was edited since accord wrote it, so accord does not apply the plan's {parts}."
        update = ", or write an `update` whose body has the person's words too" if comparison.kept == ("body",) else ""
        yield warning("item-edited", message, path, hint=f"Edit the issue by hand{update}.")


def _vanished_items(facts: PlanFacts, *, closes_vanished: bool) -> Iterator[Finding]:
    """Warn of items that stay open though the plan has them no longer."""
    names = [f"#{issue.number} `{_temp_id(issue, facts)}`" for issue in facts.vanished]
    if closes_vanished:
        for issue, name in zip(facts.vanished, names, strict=True):
            if reason := reason_to_keep(issue, facts):
                message = f"{name} is no longer in the plan and stays open: {reason}."
                yield warning("item-vanished", message, hint="Close it by hand if it is no longer needed.")
    elif names:
        verb = "is no longer in the plan and stays" if len(names) == 1 else "are no longer in the plan and stay"
        hint = "Pass `--close-vanished` to close such items, unless the plan only adds to an earlier one."
        yield warning("item-vanished", f"{names_of(names, _MOST_NAMED)} {verb} open.", hint=hint)


def differences(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], *, closes_vanished: bool, with_texts: bool
) -> list[dict[str, Any]]:
    """Return how each item differs from its issue, in the order of the plan, then what vanished from it, then updates.

    ``change`` is create, update, unchanged, edited (only a person's edit differs), closed, close or vanished.
    """
    found = [
        _entry(item.temp_id, item.title, comparisons.get(item.temp_id), with_texts=with_texts) for item in plan.items
    ]
    for issue in facts.vanished:
        change = "close" if closes_vanished and not reason_to_keep(issue, facts) else "vanished"
        found.append({**_entry(_temp_id(issue, facts), issue.title, Comparison(issue)), "change": change})
    for update in plan.result.update:
        if target := existing_issue(update.work_item_id, facts):
            compared = compare_update(update, target, plan, facts, facts.items)
            found.append(_entry(_temp_id(target, facts), target.title, compared, with_texts=with_texts))
    return found


def _temp_id(issue: Issue, facts: PlanFacts) -> str:
    record = record_of(issue, facts.token)
    return record.temp_id if record else ""


def _entry(name: str, title: str, found: Comparison | None, *, with_texts: bool = False) -> dict[str, Any]:
    entry: dict[str, Any] = {"item": name, "id": None, "title": title, "change": "create", "parts": [], "kept": []}
    if found is None:
        return entry
    change = "closed" if found.is_settled else "update" if found.parts else "edited"
    entry["change"] = change if found.all_parts else "unchanged"
    entry |= {"id": str(found.issue.number), "parts": list(found.parts), "kept": list(found.kept)}
    return entry | ({"diff": difference(found)} if with_texts and entry["change"] == "update" else {})


def near_duplicates(plan: Plan, new: Iterable[int], others: Sequence[Issue]) -> Iterator[Finding]:
    """Warn of each new item, by its position, whose title is nearly that of an open item of another plan."""
    for kind in ItemKind:
        of_kind = [issue for issue in others if kind_of(issue.labels) is kind]
        items = [i for i in new if plan.kinds[i] is kind]
        similar = similar_titles([plan.result.create[i].title for i in items], [issue.title for issue in of_kind])
        for i, positions in zip(items, similar, strict=True):
            if positions:
                shown = names_of([f"#{of_kind[position].number}" for position in positions], 3)
                name = plan.result.create[i].temp_id
                message = f"`{name}` has nearly the same title as {shown} of another plan or a person."
                hint = "If it is the same work, remove the item, or pass the request of that plan."
                yield warning("near-duplicate", message, pointer("create", i, "title"), hint=hint)


def similar_titles(titles: Iterable[str], others: Iterable[str]) -> Iterator[list[int]]:
    """Yield for each title the positions of other titles that are nearly the same."""
    words = [_title_words(title) for title in others]
    by_word: dict[str, list[int]] = {}
    for position, each in enumerate(words):
        for word in each:
            by_word.setdefault(word, []).append(position)
    for wanted in map(_title_words, titles):
        shared = Counter[int]()
        for word in wanted:
            shared.update(by_word.get(word, ()))
        near = (at for at, count in shared.items() if count >= _SIMILARITY * (len(wanted) + len(words[at]) - count))
        yield sorted(near)


def _title_words(title: str) -> frozenset[str]:
    """Return the words of a title that carry its meaning, without case and plural."""
    words = [word.casefold() for word in _WORD.findall(title)]
    kept = [word for word in words if word not in _FILLERS] or words
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in kept)
