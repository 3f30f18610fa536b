"""Report how a plan differs from its earlier version: as findings, and item by item. Pure."""

from __future__ import annotations

import re
from collections import Counter
from math import ceil
from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, pointer, warning
from accord.github.limits import BODY_CHARS
from accord.results.bodies import longest_length, read_body
from accord.results.labels import ItemKind, kind_of
from accord.results.planner.changes import difference, reason_to_keep, to_issue_change
from accord.results.planner.record import record_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from accord.github.models import Issue
    from accord.results.planner.changes import Comparison
    from accord.results.planner.facts import PlanFacts
    from accord.results.planner.rules import Plan


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
            message = (
                f"The body of #{comparison.issue.number} would have {size} characters; GitHub allows {BODY_CHARS}."
            )
            hint = "Move details into files and link them."
            yield Finding("body-too-long", message, pointer("create", i, "body"), hint=hint)
    new = [i for i, item in enumerate(plan.result.create) if item.temp_id not in facts.items]
    yield from _vanished(plan, new, facts, closes_vanished=closes_vanished)
    yield from near_duplicates(plan, new, facts.others)


def item_findings(name: str, comparison: Comparison, path: str = "") -> Iterator[Finding]:
    """Warn of changes of the plan that an issue does not get: it is closed, or a person edited the same part."""
    shown = f"#{comparison.issue.number} `{name}`"
    if comparison.all_parts and comparison.is_settled:
        message = f"{shown} is closed and stays as it is; the plan changed {_listed(comparison.all_parts)}."
        yield warning("item-closed", message, path, hint="Reopen it and apply the plan again, or plan another item.")
    elif comparison.kept:
        parts = _listed(comparison.kept)
        message = f"{shown} was edited since accord wrote it, so accord does not apply the plan's {parts}."
        yield warning("item-edited", message, path, hint="Edit the issue by hand, or put the change into `update`.")


def _vanished(plan: Plan, new: Sequence[int], facts: PlanFacts, *, closes_vanished: bool) -> Iterator[Finding]:
    """Warn of items that stay open, and name the new item that has the same path in scope: it may be a copy."""
    by_path = {path: plan.result.create[i].temp_id for i in reversed(new) for path in plan.bodies[i].in_scope}
    left = []
    for issue in facts.vanished:
        reason = reason_to_keep(issue, facts.token)
        if reason and closes_vanished:
            message = f"{_named(issue, facts.token)} is no longer in the plan and stays open: {reason}."
            message += _twin_of(issue, by_path, "It")
            yield warning("item-vanished", message, hint="Close it by hand if it is no longer needed.")
        elif not closes_vanished:
            left.append(issue)
    if left:
        names = [_named(issue, facts.token) for issue in left[:_MOST_NAMED]]
        shown = ", ".join(names) + (f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else "")
        verb = (
            "is no longer in the plan and stays open" if len(left) == 1 else "are no longer in the plan and stay open"
        )
        hint = "Pass `--close-vanished` to close such items, unless the plan only adds to an earlier one."
        subjects = names if len(left) > 1 else ["It"]
        copies = "".join(_twin_of(issue, by_path, name) for issue, name in zip(left, subjects, strict=False))
        yield warning("item-vanished", f"{shown} {verb}.{copies}", hint=hint)


def _twin_of(issue: Issue, by_path: Mapping[str, str], name: str) -> str:
    """Return a sentence about the new item that shares a path with this issue; empty without one."""
    shared = next((path for path in read_body(issue.body).in_scope if path in by_path), None)
    return f" {name} may be `{by_path[shared]}` now: both have `{shared}` in scope." if shared else ""


def _named(issue: Issue, token: str) -> str:
    record = record_of(issue, token)
    return f"#{issue.number} `{record.temp_id}`" if record else f"#{issue.number}"


def _listed(parts: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def differences(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], *, closes_vanished: bool, with_texts: bool
) -> list[dict[str, Any]]:
    """Return how each item differs from its issue, in the order of the plan, then what vanished from it.

    ``change`` is create, update, unchanged, edited (only a person's edit differs), closed, close or vanished.
    """
    found: list[dict[str, Any]] = []
    for item in plan.result.create:
        entry: dict[str, Any] = {"item": item.temp_id, "id": None, "title": item.title}
        entry |= {"change": "create", "parts": [], "kept": []}
        if comparison := comparisons.get(item.temp_id):
            entry |= {"id": str(comparison.issue.number), "change": _change_of(comparison)}
            entry |= {"parts": list(comparison.parts), "kept": list(comparison.kept)}
            if with_texts and entry["change"] == "update":
                entry["diff"] = difference(comparison)
        found.append(entry)
    for issue in facts.vanished:
        record = record_of(issue, facts.token)
        closes = closes_vanished and not reason_to_keep(issue, facts.token)
        entry = {"item": record.temp_id if record else "", "id": str(issue.number), "title": issue.title}
        found.append({**entry, "change": "close" if closes else "vanished", "parts": [], "kept": []})
    return found


def _change_of(comparison: Comparison) -> str:
    if not comparison.all_parts:
        return "unchanged"
    if comparison.is_settled:
        return "closed"
    return "update" if comparison.parts else "edited"


SIMILARITY = 0.8
"""The share of common words from which two titles are nearly the same."""

_WORD = re.compile(r"\w+")
_FILLERS = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to", "with")
)
_MOST_NAMED = 3
_MOST_COMPARED = 50


def near_duplicates(plan: Plan, new: Iterable[int], others: Sequence[Issue]) -> Iterator[Finding]:
    """Warn of each new item, by its position, whose title is nearly that of an open item of another plan."""
    for kind in ItemKind:
        items = [i for i in new if plan.kinds[i] is kind]
        of_kind = [issue for issue in others if kind_of(issue.labels) is kind]
        similar = similar_titles([plan.result.create[i].title for i in items], [issue.title for issue in of_kind])
        for i, positions in zip(items, similar, strict=True):
            if positions:
                yield _finding(plan, i, sorted(of_kind[position].number for position in positions))


def _finding(plan: Plan, position: int, near: Sequence[int]) -> Finding:
    shown = ", ".join(f"#{number}" for number in near[:_MOST_NAMED]) + (" …" if len(near) > _MOST_NAMED else "")
    name = plan.result.create[position].temp_id
    message = f"`{name}` has nearly the same title as {shown} of another plan or a person."
    hint = "If it is the same work, remove the item, or pass the request of that plan."
    return warning("near-duplicate", message, pointer("create", position, "title"), hint=hint)


def similar_titles(titles: Iterable[str], others: Iterable[str]) -> Iterator[list[int]]:
    """Yield for each title the positions of other titles that are nearly the same.

    Titles are compared where they share one of their rarest words, with at most 50 titles for each such word: the time
    is in proportion to the number of titles. Titles with the same words are always found.
    """
    words = [title_words(title) for title in others]
    frequency = Counter(word for each in words for word in each)
    index: dict[object, list[int]] = {}
    for position, each in enumerate(words):
        index.setdefault(each, []).append(position)
        for word in _rarest(each, frequency):
            if len(listed := index.setdefault(word, [])) < _MOST_COMPARED:
                listed.append(position)
    for title in titles:
        wanted = title_words(title)
        candidates = {position for word in _rarest(wanted, frequency) for position in index.get(word, ())}
        near = (position for position in candidates if _similarity(wanted, words[position]) >= SIMILARITY)
        yield sorted({*near, *index.get(wanted, ())}) if wanted else []


def title_words(title: str) -> frozenset[str]:
    """Return the words of a title that carry its meaning, without case and plural."""
    words = [word.casefold() for word in _WORD.findall(title)]
    kept = [word for word in words if word not in _FILLERS] or words
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in kept)


def _similarity(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _rarest(words: frozenset[str], frequency: Counter[str]) -> list[str]:
    """Return so many of the rarest words that two titles which are similar enough share one of them."""
    count = len(words) - ceil(SIMILARITY * len(words)) + 1
    return sorted(words, key=lambda word: (frequency[word], word))[:count]
