"""Find new items whose title is nearly that of an open item of another plan. Pure."""

from __future__ import annotations

import re
from collections import Counter
from math import ceil
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.results.labels import ItemKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from accord.github.models import Issue
    from accord.results.planner.rules import Plan

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
