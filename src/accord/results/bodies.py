"""Bodies of work items: the templates of the agent's text, and the parts that accord adds.

A body is content, a visible list of blockers where the server has no native dependencies, then markers. Source of the
templates: workflow contracts, "Work Item Body Templates". The order of sections is free, as are additional ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import takewhile

from accord.core.frozen import Frozen
from accord.github.limits import BODY_CHARS
from accord.github.models import Issue
from accord.results.labels import ItemKind
from accord.results.scope_entries import Scopes
from accord.results.scope_lists import ScopeList, read_scope
from accord.text.hidden import GUARD
from accord.text.markdown import bare_title
from accord.text.markers import COPY_ROOM, find_markers, take_copy, take_markers, with_copy, write_marker
from accord.text.outline import Section, code_free_text, sections


class Heading(Frozen):
    """A heading that a template requires; under ``may_be_none``, the text "None" is an answer."""

    title: str
    level: int = 2
    parent: str = ""
    may_be_none: bool = False


IN_SCOPE = Heading("In Scope", 3, "Scope")
OUT_OF_SCOPE = Heading("Out of Scope", 3, "Scope", may_be_none=True)
OBJECTIVE = Heading("Objective")
CRITERIA = Heading("Acceptance Criteria")
SPEC_REFERENCE = Heading("Spec Reference")
OPTIONS = Heading("Options")

_CONTEXT, _CONSTRAINTS, _BLOCKED = (
    Heading(title, may_be_none=True) for title in ("Context", "Constraints", "Blocked Tasks")
)
_SCOPE = (Heading("Scope"), IN_SCOPE, OUT_OF_SCOPE)

TEMPLATES: dict[ItemKind, tuple[Heading, ...]] = {
    ItemKind.TASK: (OBJECTIVE, SPEC_REFERENCE, *_SCOPE, CRITERIA, _CONTEXT, _CONSTRAINTS),
    ItemKind.REFINEMENT: (Heading("Ambiguity"), SPEC_REFERENCE, OPTIONS, Heading("Recommendation"), _BLOCKED),
}

CLOSED = "closed"
UPDATED = "updated"

_SECTION_START = write_marker("blocked-by")
_SECTION_END = write_marker("blocked-by-end")
_BLOCKED_BY = re.compile(r"^Blocked by #([0-9]+)", re.MULTILINE)
_OWNER_WORD = r"[^\s)\],;`]+"
_PUNCTUATION = ".:!?*'\""
"""Characters that may follow an owner's name. They are part of it only if the plan has such a name."""

_WORD = re.compile(_OWNER_WORD)
_MORE_OWNERS = r"[*_`]*(?:\]\([^()\s]{0,200}\))?(?:[ \t]*[,&][ \t]*|[ \t]+)(?:and[ \t]+)?[*_\[`]*"
_OWNED_BY = re.compile(r"(?i:owned\s+by)[*_]{0,2}:?[*_]{0,2}\s+[*_\[`]*#")
_OWNERS = re.compile(rf"{_OWNED_BY.pattern}{_OWNER_WORD}(?:{_MORE_OWNERS}#{_OWNER_WORD})*")
_OWNER = re.compile(rf"#({_OWNER_WORD})")
_BARE_OWNER = re.compile(rf"(?i:owned\s+by)\s+(?!#)({_OWNER_WORD})(?=[ \t]*(?:[)\],;\r\n]|\Z))")
LONGEST_NUMBER = 9_999_999_999
LONGEST_TOKEN = "x" * 26


class Body(Frozen):
    """A parsed body."""

    text: str
    sections: tuple[Section, ...]

    @cached_property
    def scopes(self) -> tuple[ScopeList, ScopeList]:
        """The paths in scope, and those out of scope."""
        listed = read_scope(self.below(IN_SCOPE))
        return listed, read_scope(self.below(OUT_OF_SCOPE), listed.paths)

    @property
    def scope(self) -> Scopes:
        """The paths of both lists, which judge a path together."""
        return self.in_scope, self.out_of_scope

    @property
    def in_scope(self) -> tuple[str, ...]:
        """The paths of the scope."""
        return self.scopes[0].paths

    @property
    def out_of_scope(self) -> tuple[str, ...]:
        """The paths that are out of scope."""
        return self.scopes[1].paths

    def below(self, heading: Heading) -> Iterator[Section]:
        """Yield the section of a required heading and those below it."""
        if found := self.find(heading):
            below = self.sections[self.sections.index(found) + 1 :]
            yield from (found, *takewhile(lambda section: section.level > found.level, below))

    def find(self, heading: Heading) -> Section | None:
        """Return the section of a required heading, with its level and its parent."""
        return next(iter(self.find_all(heading)), None)

    def find_all(self, heading: Heading) -> list[Section]:
        """Return all sections of a required heading: those with its exact title, else those that dress it up."""
        found = [each for each in self.sections if each.level == heading.level and is_same(each.title, heading.title)]
        found = [each for each in found if not heading.parent or is_same(each.parent, heading.parent)]
        return [each for each in found if each.title.casefold() == heading.title.casefold()] or found


@lru_cache(maxsize=128)
def read_body(text: str) -> Body:
    """Parse a body once for all rules, and for a text that sanitising left as it was."""
    return Body(text, tuple(sections(text)))


def likely_kind(body: Body) -> ItemKind:
    """Guess the kind of a body by its headings, for an item without a type label."""
    return max(TEMPLATES, key=lambda kind: section_count(body, kind))  # of equals, the first: a task


def section_count(body: Body, kind: ItemKind) -> int:
    """Return how many headings of a template a body has."""
    return sum(body.find(heading) is not None for heading in TEMPLATES[kind])


def judged_kind(labelled: ItemKind | None, body: Body) -> ItemKind:
    """Return the kind whose rules an item keeps: that of its type label, unless its body is wholly of the other kind.

    Such a body has each section of the other template, and of its own template none but those that may say "None".
    """
    if labelled is None:
        return likely_kind(body)
    (other,) = (kind for kind in TEMPLATES if kind is not labelled)
    own = (each for each in TEMPLATES[labelled] if each not in TEMPLATES[other] and not each.may_be_none)
    return labelled if any(map(body.find, own)) or not all(map(body.find, TEMPLATES[other])) else other


def is_same(one: str, other: str) -> bool:
    """Return whether two titles are the same; case, emphasis, a number before them and a colon do not count."""
    return one == other or bare_title(one) == bare_title(other)


class BodyParts(Frozen):
    """A body by its parts: the numbers of the visible list, the text of markers, the fields of a handoff's copy."""

    content: str
    blocked_by: tuple[int, ...] = ()
    markers: tuple[str, ...] = ()
    copy: dict[str, str] | None = None

    def join(self) -> str:
        """Return the whole body."""
        pieces = [self.content] if self.content else []
        if self.blocked_by:
            lines = "\n".join(f"Blocked by #{number}" for number in self.blocked_by)
            pieces.append(f"{_SECTION_START}\n{lines}\n{_SECTION_END}")
        if self.markers:
            pieces.append("\n".join(self.markers))
        return with_copy(self.copy, "\n\n".join(pieces), BODY_CHARS)

    def with_marker(self, name: str, **fields: str) -> BodyParts:
        """Add a marker, unless it is there already."""
        marker = write_marker(name, **fields)
        return self if marker in self.markers else replace(self, markers=(*self.markers, marker))


def split_body(body: str) -> BodyParts:
    """Split a body into its parts, with LF as line end and without whitespace at the end, as GitHub may return it."""
    copy, body = take_copy(body.replace("\r\n", "\n"))
    before, start, rest = body.partition(_SECTION_START)
    section, end, after = rest.partition(_SECTION_END)
    if start and end:
        body = before + after
    blocked_by = [int(number) for number in _BLOCKED_BY.findall(section)] if start and end else []
    content, markers = take_markers(body)
    return BodyParts(content.rstrip(), tuple(dict.fromkeys(blocked_by)), tuple(markers), copy)


def update_limit(issue: Issue, token: str, digest: str, wrote: str) -> int:
    """Return how many characters new content of an issue's body may have, beside the parts that stay."""
    kept = split_body(issue.body).with_marker(UPDATED, run=token, sum=digest, wrote=wrote)
    return BODY_CHARS - COPY_ROOM - len(replace(kept, content="", copy=None).join()) - 2


def has_marker(body: str, name: str, token: str, **fields: str) -> bool:
    """Return whether this run left a marker of this name, with these fields too."""
    wanted = {"run": token, **fields}
    return any(wanted.items() <= found.items() for found in find_markers(body, name))


def name_owners(text: str, numbers: Mapping[str, int], names: Set[str] | None = None) -> str:
    """Rewrite ``owned by #temp-3`` and ``owned by #a and #b`` to the items' numbers, outside of code.

    Unknown names stay.

    ``names`` are all names of the plan, if ``numbers`` has only some of them so far.
    """
    known = numbers.keys() if names is None else names

    def with_number(match: re.Match[str]) -> str:
        name, rest = _owner(match[1], known)
        number = numbers.get(name)
        return f"#{number}{rest}" if number else match[0]

    if not _OWNED_BY.search(text):
        return text
    owned, owner = _owner_patterns(frozenset(known))
    return code_free_text(text, lambda part: owned.sub(lambda found: owner.sub(with_number, found[0]), part))


def longest_length(text: str, names: Set[str]) -> int:
    """Return the length of a text in which each owner's name has become the longest of numbers."""
    return len(name_owners(text, dict.fromkeys(names, LONGEST_NUMBER))) if _OWNED_BY.search(text) else len(text)


def owners_in(text: str, names: Set[str]) -> list[str]:
    """Return which of these names the text uses as an owner, outside of code."""
    return [owner for owner in all_owners(text, names) if owner in names] if _OWNED_BY.search(text) else []


def all_owners(text: str, names: Set[str], *, is_bare: bool = False) -> list[str]:
    """Return every owner of a text outside of code, one of these names or not, as ``name_owners`` reads it.

    Those that ``is_bare`` have no sign, so that it leaves them as they are.
    """
    found: list[str] = []
    owned, owner = (_BARE_OWNER, _BARE_OWNER) if is_bare else _owner_patterns(frozenset(names))

    def collect(part: str) -> str:
        for place in owned.finditer(part):
            found.extend(_owner(match[1], names)[0] for match in owner.finditer(place[0]))
        return part

    if owned.search(text):
        code_free_text(text, collect)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=4)
def _owner_patterns(names: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Match the owners of one place, and one of them: a name that is more than a word, the longest first, or a word."""
    odd = sorted((name for name in names if not _WORD.fullmatch(name)), key=len, reverse=True)
    if not odd:
        return _OWNERS, _OWNER
    known = "|".join(f"{GUARD}?".join(map(re.escape, name)) for name in odd)
    word = rf"(?:(?:{known})(?=[{_PUNCTUATION}]*(?:[\s)\],;`]|\Z))|{_OWNER_WORD})"
    return re.compile(rf"{_OWNED_BY.pattern}{word}(?:{_MORE_OWNERS}#{word})*"), re.compile(rf"#({word})")


def _owner(word: str, names: Set[str]) -> tuple[str, str]:
    """Return a name as the plan spells it, and the punctuation behind it: sanitising may have put a guard into it."""
    word = word.replace(GUARD, "")
    name = word
    while name and name not in names and name[-1] in _PUNCTUATION:
        name = name[:-1]
    name = name if name in names else word.rstrip(_PUNCTUATION) or word
    return name, word[len(name) :]


def marked_body(issue: Issue, name: str, content: str | None = None, **fields: str) -> str | None:
    """Return the issue's body with a marker and, if given, new content; None where only a marker would not fit."""
    parts = split_body(issue.body).with_marker(name, **fields)
    if content is not None:
        return replace(parts, content=content).join()
    body = parts.join()
    return body if len(body) <= BODY_CHARS else None
