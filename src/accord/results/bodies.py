"""Bodies of work items: the templates of the agent's text with their rules, and the parts that accord adds.

A body is content, a visible list of blockers where the server has no native dependencies, then markers. Source of the
templates: workflow contracts, "Work Item Body Templates". The order of sections is free, as are additional ones.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accord.core.findings import Finding
from accord.core.suggest import nearest
from accord.github.limits import BODY_CHARS
from accord.github.markers import COPY_ROOM, find_markers, take_copy, take_markers, with_copy, write_marker
from accord.results.labels import ItemKind
from accord.text.hidden import GUARD
from accord.text.markdown import Section, code_free_lines, list_items, sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from accord.github.models import Issue


@dataclass(frozen=True)
class Heading:
    """A heading that a template requires; under ``may_be_none``, the text "None" is an answer."""

    title: str
    level: int = 2
    parent: str = ""
    may_be_none: bool = False


IN_SCOPE = Heading("In Scope", 3, "Scope")
OUT_OF_SCOPE = Heading("Out of Scope", 3, "Scope", may_be_none=True)
CRITERIA = Heading("Acceptance Criteria")
SPEC_REFERENCE = Heading("Spec Reference")
OPTIONS = Heading("Options")

_CONTEXT, _CONSTRAINTS, _BLOCKED = (
    Heading(title, may_be_none=True) for title in ("Context", "Constraints", "Blocked Tasks")
)
_SCOPE = (Heading("Scope"), IN_SCOPE, OUT_OF_SCOPE)

TEMPLATES: dict[ItemKind, tuple[Heading, ...]] = {
    ItemKind.TASK: (Heading("Objective"), SPEC_REFERENCE, *_SCOPE, CRITERIA, _CONTEXT, _CONSTRAINTS),
    ItemKind.REFINEMENT: (Heading("Ambiguity"), SPEC_REFERENCE, OPTIONS, Heading("Recommendation"), _BLOCKED),
}

CLOSED = "closed"
UPDATED = "updated"

_SECTION_START = write_marker("blocked-by")
_SECTION_END = write_marker("blocked-by-end")
_BLOCKED_BY = re.compile(r"^Blocked by #([0-9]+)", re.MULTILINE)
_OWNER_WORD = r"[^\s)\],;]+"
_WORD = re.compile(_OWNER_WORD)
_OWNER = re.compile(rf"((?i:owned by) )#({_OWNER_WORD})")
LONGEST_NUMBER = 9_999_999_999
LONGEST_TOKEN = "x" * 26

_NONE = re.compile(r"\A(?:[-*+]\s+)?[*_]*(?:none|n/a|nothing)[*_]*[.]?", re.IGNORECASE)
_QUOTE_LABEL = re.compile(r"^[^\w\n]*+quotes?[^\w\n:\uff1a]*+[:\uff1a][^\w]*+\w", re.IGNORECASE | re.MULTILINE)
_OPTION_WORD = re.compile(r"^[*_]{0,3}option\b", re.IGNORECASE | re.MULTILINE)
_CODE_SPAN = re.compile(r"\A(`++)\s?(.+?)\s?(?<!`)\1(?!`)")
_AFTER_PATH = "(\N{EM DASH}\N{EN DASH}-#"
_LINK = re.compile(r"\A\[`*([^\]`]+)`*\]\(")
_EMPHASISED = re.compile(r"\A(\*\*|[\"'])(?!/)([^\s*]+)(?<!/)\1(?=[\s:,;]|$)")
_NAMED_LATER = re.compile(r"`([^`\s()]*[./][^`\s()]*)`")
_LINES = re.compile(r"(?::\d+(?:[-\u2013]\d+)?|#L\d+(?:-L\d+)?)$")


@dataclass(frozen=True)
class Body:
    """A parsed body: its sections, and the paths of its scope."""

    sections: tuple[Section, ...]
    in_scope: tuple[str, ...] = field(default=())
    out_of_scope: tuple[str, ...] = field(default=())

    def find(self, heading: Heading) -> Section | None:
        """Return the section of a required heading, with its level and its parent."""
        for section in self.sections:
            is_below = not heading.parent or _same(section.parent, heading.parent)
            if _same(section.title, heading.title) and section.level == heading.level and is_below:
                return section
        return None


def read_body(text: str) -> Body:
    """Parse a body once for all rules."""
    body = Body(tuple(sections(text)))
    return Body(body.sections, _paths(body.find(IN_SCOPE)), _paths(body.find(OUT_OF_SCOPE)))


def likely_kind(body: Body) -> ItemKind:
    """Guess the kind of a body by its headings, for an item without a type label."""
    hits = {kind: sum(body.find(heading) is not None for heading in headings) for kind, headings in TEMPLATES.items()}
    return ItemKind.REFINEMENT if hits[ItemKind.REFINEMENT] > hits[ItemKind.TASK] else ItemKind.TASK


def body_findings(body: Body, kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check a body against the template of its kind. ``path`` points at the body."""
    for heading in TEMPLATES[kind]:
        section = body.find(heading)
        if section is None:
            message, hint = _missing(body, heading)
            yield Finding("section-missing", message, path, hint=hint)
        elif not _is_filled(body, section, heading):
            message = f"The section `{section.title}` (line {section.line} of the body) is empty."
            hint = "Fill it in, or write `None`." if heading.may_be_none else "Fill it in."
            yield Finding("section-empty", message, path, hint=hint)
    yield from (_task_findings if kind is ItemKind.TASK else _refinement_findings)(body, path)


def _task_findings(body: Body, path: str) -> Iterator[Finding]:
    if body.find(IN_SCOPE) and not body.in_scope:
        yield Finding("scope-empty", "`In Scope` lists no path.", path, hint="List the files that the task may change.")
    for both in sorted(set(body.in_scope) & set(body.out_of_scope)):
        yield Finding(
            "scope-overlap", f"`{both}` is both in scope and out of scope.", path, hint="Remove it from one list."
        )
    criteria = body.find(CRITERIA)
    if criteria and not any(item.checked is not None for item in list_items(criteria.tokens)):
        message = "`Acceptance Criteria` has no checkbox."
        hint = "Write each criterion as `- [ ] …`."
        yield Finding("criteria-missing", message, path, hint=hint)


def _refinement_findings(body: Body, path: str) -> Iterator[Finding]:
    reference = body.find(SPEC_REFERENCE)
    if reference and not _has_quote(reference):
        message = "`Spec Reference` contains no quote."
        hint = "Add a line `- Quote: …` with the words of the spec."
        yield Finding("quote-missing", message, path, hint=hint)
    options = body.find(OPTIONS)
    if options and (count := _count_options(body, options)) < 2:
        message = f"`Options` lists {count} of at least two options."
        hint = "List each with its trade-offs."
        yield Finding("options-too-few", message, path, hint=hint)


def _missing(body: Body, heading: Heading) -> tuple[str, str]:
    """Return the message and the hint for a section that is missing."""
    wanted = f"`{'#' * heading.level} {heading.title}`" + (f" under `{heading.parent}`" if heading.parent else "")
    for section in body.sections:
        if _same(section.title, heading.title):
            where = f"line {section.line} of the body has it at level {section.level}"
            where += f" under `{section.parent}`" if section.parent else ""
            return f"The section {wanted} is missing; {where}.", "Move it."
    required = {heading.title.casefold() for headings in TEMPLATES.values() for heading in headings}
    titles = {section.title: section for section in body.sections if section.title.casefold() not in required}
    near = titles.get(nearest(heading.title, titles) or "")
    if near is None:
        return f"The section {wanted} is missing.", "Add it."
    where = f"line {near.line} of the body has `{near.title}`"
    return f"The section {wanted} is missing; {where}.", f"Did you mean `{heading.title}`?"


def _is_filled(body: Body, section: Section, heading: Heading) -> bool:
    text = section.text
    if not text:
        return any(child.level > section.level and _same(child.parent, section.title) for child in body.sections)
    return heading.may_be_none or not _NONE.fullmatch(text)


def _has_quote(section: Section) -> bool:
    quoted = [i for i, token in enumerate(section.tokens) if token.type == "blockquote_open"]
    if any(section.tokens[i + 1].type != "blockquote_close" for i in quoted):
        return True
    return bool(_QUOTE_LABEL.search(section.text))


def _count_options(body: Body, options: Section) -> int:
    """Count the top-level list entries, the headings, or the paragraphs that begin with the word option."""
    nested = sum(child.level == options.level + 1 and _same(child.parent, options.title) for child in body.sections)
    listed = sum(item.depth == 1 and bool(item.text) for item in list_items(options.tokens))
    worded = len(_OPTION_WORD.findall(options.text))
    return max(listed, worded, nested)


def _paths(section: Section | None) -> tuple[str, ...]:
    """Read the paths of a scope section: one for each entry, in backticks or as its first word."""
    if section is None:
        return ()
    found = (_path(item.text) for item in list_items(section.tokens))
    return tuple(dict.fromkeys(path for path in found if path))


def _path(entry: str) -> str:
    """Return the normalised path that an entry begins with, else the first one in backticks; empty without one."""
    entry = entry.replace(GUARD, "")
    if dressed := _EMPHASISED.match(entry):
        entry = dressed.group(2) + entry[dressed.end() :]
    if marked := _CODE_SPAN.match(entry) or _LINK.match(entry):
        candidate = marked.group(marked.lastindex or 1)
    else:
        words = entry.split()
        candidate = words[0].rstrip(",;:") if words else ""
        looks_like_path = len(words) == 1 or any(sign in candidate for sign in "/.*") or words[1][0] in _AFTER_PATH
        if not looks_like_path or _NONE.fullmatch(candidate):
            later = _NAMED_LATER.search(entry)
            candidate = later.group(1) if later else ""
    candidate = _LINES.sub("", candidate)
    return posixpath.normpath(candidate) if candidate else ""


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


@dataclass(frozen=True)
class BodyParts:
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
        return with_copy(self.copy, "\n\n".join(pieces))

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


def update_limit(issue: Issue, token: str, digest: str) -> int:
    """Return how many characters new content of an issue's body may have, beside the parts that stay."""
    kept = split_body(issue.body).with_marker(UPDATED, run=token, sum=digest)
    return BODY_CHARS - COPY_ROOM - len(replace(kept, content="", copy=None).join()) - 2


def has_marker(body: str, name: str, token: str, **fields: str) -> bool:
    """Return whether this run left a marker of this name, with these fields too."""
    wanted = {"run": token, **fields}
    return any(wanted.items() <= found.items() for found in find_markers(body, name))


def name_owners(text: str, numbers: Mapping[str, int]) -> str:
    """Rewrite ``owned by #temp-3`` to the item's number, outside of code; unknown names stay."""

    def with_number(match: re.Match[str]) -> str:
        number = numbers.get(_owner(match))
        return f"{match[1]}#{number}" if number else match[0]

    owner = _owner_pattern(numbers.keys())
    return code_free_lines(text, lambda line: owner.sub(with_number, line)) if owner.search(text) else text


def longest_length(text: str, names: Set[str]) -> int:
    """Return the length of a text in which each owner's name has become the longest of numbers."""
    return len(name_owners(text, dict.fromkeys(names, LONGEST_NUMBER)))


def owners_in(text: str, names: Set[str]) -> list[str]:
    """Return which of these names the text uses as an owner, outside of code."""
    found: list[str] = []
    pattern = _owner_pattern(names)

    def collect(text: str) -> str:
        found.extend(owner for match in pattern.finditer(text) if (owner := _owner(match)) in names)
        return text

    if pattern.search(text):
        code_free_lines(text, collect)
    return list(dict.fromkeys(found))


def _owner_pattern(names: Set[str]) -> re.Pattern[str]:
    """Match an owner: one of the names that are more than a word, the longest first, else any word."""
    odd = sorted((name for name in names if not _WORD.fullmatch(name)), key=len, reverse=True)
    if not odd:
        return _OWNER
    known = "|".join(f"{GUARD}?".join(map(re.escape, name)) for name in odd)
    return re.compile(rf"((?i:owned by) )#((?:{known})(?=[\s)\],;]|\Z)|{_OWNER_WORD})")


def _owner(match: re.Match[str]) -> str:
    """Return a name as the plan spells it: sanitising may have put a guard into it."""
    return match[2].replace(GUARD, "")


def closing_body(issue: Issue, token: str, marker: str = CLOSED) -> str | None:
    """Return the issue's body with the marker that this run closed it; None where the marker does not fit."""
    body = split_body(issue.body).with_marker(marker, run=token).join()
    return body if len(body) <= BODY_CHARS else None


def updated_body(issue: Issue, content: str | None, token: str, digest: str) -> str | None:
    """Return the issue's body with new content and the marker of this run; None where only a marker would not fit."""
    parts = split_body(issue.body).with_marker(UPDATED, run=token, sum=digest)
    if content is not None:
        return replace(parts, content=content).join()
    body = parts.join()
    return body if len(body) <= BODY_CHARS else None
