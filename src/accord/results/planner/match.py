"""Match the items of a plan to the issues of earlier versions of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from accord.core.frozen import Frozen
from accord.github.models import Issue
from accord.results.bodies import read_body
from accord.results.labels import ItemKind, kind_of, status_among
from accord.results.planner.record import ItemRecord, content_of, record_of, text_digest
from accord.results.planner.rules import Plan, split_temp_id

BEGUN = frozenset({"in-progress", "review", "approved"})
"""Statuses of items whose work began."""

_COUNTED = re.compile(r"[a-z]{0,5}[-_ .]*[0-9]+", re.IGNORECASE)
"""tempIDs such as ``temp-1`` and ``t2``, which a planner uses again for other items."""

_BY_NAME = 3
"""The rank of a pair that has only its tempID in common."""


class Matches(Frozen):
    """The issues of a plan's items, and those of earlier items."""

    items: dict[str, Issue]  # by tempID
    vanished: tuple[Issue, ...]
    repeated: tuple[tuple[Issue, Issue], ...]  # an issue that counts and its twin


class _Candidate(Frozen):
    """An issue of an earlier version of the plan."""

    issue: Issue
    record: ItemRecord

    @cached_property
    def titles(self) -> frozenset[str]:
        """The title of the issue, and the digest of the one that accord wrote last."""
        return frozenset((same_title(self.issue.title), self.record.title))

    @cached_property
    def scope(self) -> frozenset[str]:
        return frozenset(read_body(content_of(self.issue)).in_scope)

    @property
    def is_untouched(self) -> bool:
        return self.issue.is_open and not status_among(self.issue.labels, BEGUN)

    def has_kind(self, kind: ItemKind) -> bool:
        return kind_of(self.issue.labels) in (None, kind)

    def rank(self, name: str, titles: frozenset[str], scope: frozenset[str]) -> int | None:
        """Return how much the issue has in common with an item, 0 for the most; None where they are different items."""
        has_name, has_title = self.record.temp_id == name, not self.titles.isdisjoint(titles)
        if has_name and has_title:
            return 0
        is_same_scope, shares_scope = self.scope == scope, bool(self.scope & scope)
        if has_name and shares_scope and (not _COUNTED.fullmatch(name) or (is_same_scope and self.is_untouched)):
            return 1
        if has_title and (shares_scope or is_same_scope):
            return 2
        return _BY_NAME if has_name and self.is_untouched else None


def same_title(title: str) -> str:
    """Return a title in the form in which titles are compared: case and spaces do not count."""
    return " ".join(title.casefold().split())


def _titles(title: str) -> frozenset[str]:
    return frozenset((same_title(title), text_digest(title)))


def match_items(plan: Plan, own: Iterable[Issue], token: str, identified: Mapping[int, Issue | None]) -> Matches:
    """Match each item to the issue that has most in common with it; of two such issues, the oldest counts.

    The best pairs have tempID and title in common, then tempID and scope, title and scope, or only the tempID. A tempID
    with a number, such as ``T001#12``, is that issue of ``identified``, whichever run made it.

    A tempID alone proves nothing if a planner counts its items and nothing else of the plan matches: then it only
    adds items to an earlier plan. Nor does it for an issue that is closed or worked on. A counted tempID with another
    title needs the whole scope, and an issue whose work has not begun. An item of another kind is another item.
    """
    made = {issue.number: _Candidate(issue, record) for issue in own if (record := record_of(issue, token))}
    names = [item.temp_id for item in plan.result.create]
    numbers = [split_temp_id(name)[1] for name in names]
    found = {numbers.index(number): issue for number, issue in identified.items() if issue}
    taken = {issue.number for issue in found.values()}
    pairs = sorted(_pairs(plan, made))
    is_version = bool(found) or any(rank < _BY_NAME for rank, *_ in pairs)
    for rank, i, number in pairs:
        is_proved = rank < _BY_NAME or is_version or not _COUNTED.fullmatch(names[i])
        if is_proved and i not in found and number not in taken:
            found[i] = made[number].issue
            taken.add(number)
    items = {names[i]: found[i] for i in sorted(found)}
    rest = [made[number] for number in sorted(made.keys() - taken)]
    twins = [(items[each.record.temp_id], each.issue) for each in rest if _is_twin(each, items, plan)]
    repeated = {twin.number for _, twin in twins}
    vanished = tuple(each.issue for each in rest if each.issue.is_open and each.issue.number not in repeated)
    return Matches(items, vanished, tuple(twins))


def _pairs(plan: Plan, made: Mapping[int, _Candidate]) -> Iterator[tuple[int, int, int]]:
    """Yield the rank of each item and issue that may be the same, with the item's position and the issue's number."""
    by_key: dict[str, list[int]] = {}
    for number, candidate in made.items():
        for key in {candidate.record.temp_id, *candidate.titles}:
            by_key.setdefault(key, []).append(number)
    for i, item in enumerate(plan.result.create):
        titles, scope = _titles(item.title), frozenset(plan.bodies[i].in_scope)
        keys = () if split_temp_id(item.temp_id)[1] else (item.temp_id, *titles)
        for number in {number for key in keys for number in by_key.get(key, ())}:
            rank = made[number].rank(item.temp_id, titles, scope) if made[number].has_kind(plan.kinds[i]) else None
            if rank is not None:
                yield rank, i, number


def _is_twin(candidate: _Candidate, items: Mapping[str, Issue], plan: Plan) -> bool:
    name = candidate.record.temp_id
    has_item = name in items and candidate.has_kind(plan.kinds[plan.positions[name]])
    return has_item and not candidate.titles.isdisjoint(_titles(items[name].title))
