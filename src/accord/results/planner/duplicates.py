"""Find new items whose title is nearly that of an open item of another plan. Pure."""

from __future__ import annotations

import re
from collections import Counter
from math import ceil
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.results.labels import kind_of

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


def near_duplicates(plan: Plan, new: Iterable[int], others: Sequence[Issue]) -> Iterator[Finding]:
    """Warn of each new item, by its position, whose title is nearly that of an open item of another plan."""
    words = [title_words(issue.title) for issue in others]
    frequency = Counter(word for each in words for word in each)
    index: dict[str, list[int]] = {}
    for position, each in enumerate(words):
        for word in _rarest(each, frequency):
            index.setdefault(word, []).append(position)
    for i in new:
        item = plan.result.create[i]
        wanted = title_words(item.title)
        candidates = {position for word in _rarest(wanted, frequency) for position in index.get(word, ())}
        near = sorted(
            others[position].number
            for position in candidates
            if kind_of(others[position].labels) is plan.kinds[i] and _similarity(wanted, words[position]) >= SIMILARITY
        )
        if near:
            shown = ", ".join(f"#{number}" for number in near[:_MOST_NAMED]) + (" …" if len(near) > _MOST_NAMED else "")
            message = f"`{item.temp_id}` has nearly the same title as {shown}, which another plan or a person made."
            hint = "If it is the same work, remove the item, or pass the request of that plan."
            yield warning("near-duplicate", message, pointer("create", i, "title"), hint=hint)


def title_words(title: str) -> frozenset[str]:
    """Return the words of a title that carry its meaning, without case and plural."""
    words = [word.casefold() for word in _WORD.findall(title)]
    kept = [word for word in words if word not in _FILLERS] or words
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in kept)


def _similarity(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def _rarest(words: frozenset[str], frequency: Counter[str]) -> list[str]:
    """Return so many of the rarest words that two titles which are similar enough share one of them."""
    count = len(words) - ceil(SIMILARITY * len(words)) + 1
    return sorted(words, key=lambda word: (frequency[word], word))[:count]
