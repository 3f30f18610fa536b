"""Match the items of a plan to the issues of earlier versions of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.results.bodies import read_body
from accord.results.labels import kind_of, status_of
from accord.results.planner.record import ItemRecord, content_of, record_of, text_digest
from accord.results.planner.rules import split_temp_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from accord.github.models import Issue
    from accord.results.planner.rules import Plan

BEGUN = frozenset({"in-progress", "review", "approved"})
"""Statuses of items whose work began."""

_COUNTED = re.compile(r"[a-z]{0,5}[-_ .]*[0-9]+", re.IGNORECASE)
"""tempIDs such as ``temp-1`` and ``t2``, which a planner uses again for other items."""


@dataclass(frozen=True)
class Matches:
    """``items`` maps tempIDs to issues. ``repeated`` are pairs of an issue that counts and its twin."""

    items: dict[str, Issue]
    vanished: tuple[Issue, ...]
    repeated: tuple[tuple[Issue, Issue], ...]


@dataclass
class _Candidate:
    """An issue of an earlier version; its scope is parsed when it is compared."""

    issue: Issue
    record: ItemRecord
    title: str = field(init=False)
    _scope: frozenset[str] | None = None

    def __post_init__(self) -> None:
        self.title = same_title(self.issue.title)

    def has_title(self, title: str) -> bool:
        """Return whether the issue has a title, or had it when accord wrote it last."""
        return self.title == same_title(title) or self.record.title == text_digest(title)

    @property
    def scope(self) -> frozenset[str]:
        if self._scope is None:
            self._scope = frozenset(read_body(content_of(self.issue)).in_scope)
        return self._scope

    @property
    def is_untouched(self) -> bool:
        return self.issue.is_open and status_of(self.issue.labels) not in BEGUN


def same_title(title: str) -> str:
    """Return a title in the form in which titles are compared: case and spaces do not count."""
    return " ".join(title.casefold().split())


def match_items(
    plan: Plan, own: Iterable[Issue], token: str, identified: Mapping[int, Issue | None] | None = None
) -> Matches:
    """Match by tempID and title, by tempID and scope, by title and scope, then by tempID; the oldest issue counts.

    A tempID with a number, such as ``T001#12``, is that issue of ``identified``, whichever run made it.

    A tempID alone proves nothing if a planner counts its items and nothing else of the plan matches: then it only
    adds items to an earlier plan. Nor does it for an issue that is closed or worked on. A counted tempID with another
    title needs the whole scope, and an issue whose work has not begun. An item of another kind is another item.
    """
    candidates = [
        _Candidate(issue, record)
        for issue in sorted(own, key=lambda issue: issue.number)
        if (record := record_of(issue, token))
    ]
    by_name: dict[str, list[_Candidate]] = {}
    by_title: dict[str, list[_Candidate]] = {}
    for candidate in candidates:
        by_name.setdefault(candidate.record.temp_id, []).append(candidate)
        for title in {candidate.title, candidate.record.title}:
            by_title.setdefault(title, []).append(candidate)
    titles = [item.title for item in plan.result.create]
    temp_ids = [item.temp_id for item in plan.result.create]
    names = [split_temp_id(name)[0] for name in temp_ids]
    scopes = [frozenset(body.in_scope) for body in plan.bodies]
    found = _identified(temp_ids, identified or {}, token)
    taken = {candidate.issue.number for candidate in found.values()}

    def assign(pool: Callable[[int], Sequence[_Candidate]], fits: Callable[[int, _Candidate], bool]) -> None:
        for i in range(len(names)):
            for candidate in pool(i) if i not in found and names[i] == temp_ids[i] else ():
                if candidate.issue.number not in taken and _has_kind(plan, i, candidate) and fits(i, candidate):
                    found[i] = candidate
                    taken.add(candidate.issue.number)
                    break

    def named(i: int) -> list[_Candidate]:
        return by_name.get(names[i], [])

    def titled(i: int) -> list[_Candidate]:
        return [*by_title.get(same_title(titles[i]), ()), *by_title.get(text_digest(titles[i]), ())]

    assign(named, lambda i, each: each.has_title(titles[i]))
    assign(named, lambda i, each: _continues_scope(each, names[i], scopes[i]))
    assign(titled, lambda i, each: bool(each.scope & scopes[i]) or each.scope == scopes[i])
    is_version = bool(found)
    assign(named, lambda i, each: each.is_untouched and (is_version or not _COUNTED.fullmatch(names[i])))
    items = {temp_ids[i]: found[i].issue for i in sorted(found)}
    rest = [each for each in candidates if each.issue.number not in taken]
    twins = [(items[each.record.temp_id], each.issue) for each in rest if _is_twin(each, items, plan)]
    numbers = {twin.number for _, twin in twins}
    vanished = tuple(each.issue for each in rest if each.issue.is_open and each.issue.number not in numbers)
    return Matches(items, vanished, tuple(twins))


def _identified(temp_ids: Sequence[str], issues: Mapping[int, Issue | None], token: str) -> dict[int, _Candidate]:
    """Return the issues that tempIDs say they are, by position; the first of two counts."""
    numbers = [split_temp_id(temp_id)[1] for temp_id in temp_ids]
    named = [
        (i, issue) for i, number in enumerate(numbers) if (issue := issues.get(number)) and i == numbers.index(number)
    ]
    return {i: _Candidate(issue, record_of(issue, token) or ItemRecord("")) for i, issue in named}


def _continues_scope(candidate: _Candidate, name: str, scope: frozenset[str]) -> bool:
    """Return whether a scope tells that an issue of this tempID, but of another title, is the same item."""
    if _COUNTED.fullmatch(name):
        return candidate.is_untouched and bool(scope) and candidate.scope == scope
    return bool(candidate.scope & scope)


def _has_kind(plan: Plan, position: int, candidate: _Candidate) -> bool:
    kind = kind_of(candidate.issue.labels)
    return kind is None or kind is plan.kinds[position]


def _is_twin(candidate: _Candidate, items: dict[str, Issue], plan: Plan) -> bool:
    name = candidate.record.temp_id
    kept = items.get(name)
    return kept is not None and _has_kind(plan, plan.positions[name], candidate) and candidate.has_title(kept.title)
