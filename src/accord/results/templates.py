"""The two body templates of work items, and the rules a body must keep to be worked on.

Source: workflow contracts, "Work Item Body Templates". The order of sections and extra sections are free.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.core.findings import Finding
from accord.results.labels import ItemKind
from accord.text.hidden import GUARD
from accord.text.markdown import Section, list_items, sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Heading:
    """A heading that a template requires. ``may_be_none``: "None" is an answer here, not a gap."""

    title: str
    level: int = 2
    parent: str = ""
    may_be_none: bool = False


IN_SCOPE = Heading("In Scope", 3, "Scope")
OUT_OF_SCOPE = Heading("Out of Scope", 3, "Scope", may_be_none=True)
CRITERIA = Heading("Acceptance Criteria")
SPEC_REFERENCE = Heading("Spec Reference")
OPTIONS = Heading("Options")

TEMPLATES: dict[ItemKind, tuple[Heading, ...]] = {
    ItemKind.TASK: (
        Heading("Objective"),
        SPEC_REFERENCE,
        Heading("Scope"),
        IN_SCOPE,
        OUT_OF_SCOPE,
        CRITERIA,
        Heading("Context", may_be_none=True),
        Heading("Constraints", may_be_none=True),
    ),
    ItemKind.REFINEMENT: (
        Heading("Ambiguity"),
        SPEC_REFERENCE,
        OPTIONS,
        Heading("Recommendation"),
        Heading("Blocked Tasks", may_be_none=True),
    ),
}

_NONE = re.compile(r"(?:[-*+]\s+)?[*_]*(?:none|n/a|nothing)[*_]*[.]?", re.IGNORECASE)
_QUOTE_LABEL = re.compile(r"^[^\w\n]*+quotes?[^\w\n:\uff1a]*+[:\uff1a][^\w]*+\w", re.IGNORECASE | re.MULTILINE)
_OPTION_WORD = re.compile(r"^[*_]{0,3}option\b", re.IGNORECASE | re.MULTILINE)
_CODE_SPAN = re.compile(r"(`+)\s?(.+?)\s?\1(?!`)")
_AFTER_PATH = "(\N{EM DASH}\N{EN DASH}-#"
_LINK = re.compile(r"\[`*([^\]`]+)`*\]\(")
_EMPHASISED = re.compile(r"(\*\*|[\"'])(?!/)([^\s*]+)(?<!/)\1(?=[\s:,;]|$)")
_NAMED_LATER = re.compile(r"`([^`\s()]*[./][^`\s()]*)`")
_LINES = re.compile(r"(?::\d+(?:[-\u2013]\d+)?|#L\d+(?:-L\d+)?)$")


@dataclass(frozen=True)
class Body:
    """A body as the rules see it: its sections by title, and the paths of its scope."""

    sections: tuple[Section, ...]
    in_scope: tuple[str, ...] = field(default=())
    out_of_scope: tuple[str, ...] = field(default=())

    def find(self, heading: Heading) -> Section | None:
        """Return the section of a required heading, at its level and under its parent."""
        for section in self.sections:
            if (
                _same(section.title, heading.title)
                and section.level == heading.level
                and (not heading.parent or _same(section.parent, heading.parent))
            ):
                return section
        return None


def read_body(text: str) -> Body:
    """Parse a body once for all rules."""
    body = Body(tuple(sections(text)))
    return Body(body.sections, _paths(body.find(IN_SCOPE)), _paths(body.find(OUT_OF_SCOPE)))


def likely_kind(body: Body) -> ItemKind:
    """Guess the template that a body means to follow, where no label says it."""
    hits = {kind: sum(body.find(heading) is not None for heading in headings) for kind, headings in TEMPLATES.items()}
    return ItemKind.REFINEMENT if hits[ItemKind.REFINEMENT] > hits[ItemKind.TASK] else ItemKind.TASK


def body_findings(body: Body, kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check a body against the template of its kind. ``path`` points at the body."""
    for heading in TEMPLATES[kind]:
        section = body.find(heading)
        if section is None:
            yield Finding("section-missing", _missing(body, heading), path)
        elif not _is_filled(body, section, heading):
            message = f'The section "{section.title}" (line {section.line} of the body) says nothing. Fill it in'
            yield Finding("section-empty", message + (', or write "None".' if heading.may_be_none else "."), path)
    yield from (_task_findings if kind is ItemKind.TASK else _refinement_findings)(body, path)


def _task_findings(body: Body, path: str) -> Iterator[Finding]:
    if body.find(IN_SCOPE) and not body.in_scope:
        yield Finding("scope-empty", '"In Scope" lists no path. List the files that the task may touch.', path)
    for both in sorted(set(body.in_scope) & set(body.out_of_scope)):
        yield Finding("scope-overlap", f"`{both}` is both in and out of scope. Remove it from one list.", path)
    criteria = body.find(CRITERIA)
    if criteria and not any(item.checked is not None for item in list_items(criteria.tokens)):
        message = '"Acceptance Criteria" has no checkbox. Write each criterion as "- [ ] …".'
        yield Finding("criteria-missing", message, path)


def _refinement_findings(body: Body, path: str) -> Iterator[Finding]:
    reference = body.find(SPEC_REFERENCE)
    if reference and not _has_quote(reference):
        message = '"Spec Reference" quotes nothing. Add a line "- Quote: …" with the words of the spec.'
        yield Finding("quote-missing", message, path)
    options = body.find(OPTIONS)
    if options and (count := _count_options(body, options)) < 2:
        message = f'"Options" has {count} of at least two options. List each with its trade-offs.'
        yield Finding("options-too-few", message, path)


def _missing(body: Body, heading: Heading) -> str:
    wanted = "#" * heading.level + " " + heading.title
    under = f' under "{heading.parent}"' if heading.parent else ""
    for section in body.sections:
        if _same(section.title, heading.title):
            where = f"line {section.line} of the body has it at level {section.level}"
            where += f' under "{section.parent}"' if section.parent else ""
            return f'The template asks for "{wanted}"{under}; {where}. Move it.'
    return f'The template asks for a section "{wanted}"{under}. Add it.'


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
    """Count the entries of the top-level lists, the headings, or the paragraphs that begin with the word option."""
    nested: Callable[[Section], bool] = lambda child: (  # noqa: E731 - named for the sentence below
        child.level == options.level + 1 and _same(child.parent, options.title)
    )
    listed = sum(item.depth == 1 and bool(item.text) for item in list_items(options.tokens))
    worded = len(_OPTION_WORD.findall(options.text))
    return max(listed, worded, sum(map(nested, body.sections)))


def _paths(section: Section | None) -> tuple[str, ...]:
    """Read the paths that a scope section lists: one an entry, in backticks or as its first word."""
    if section is None:
        return ()
    found = (_path(item.text) for item in list_items(section.tokens))
    return tuple(dict.fromkeys(path for path in found if path))


def _path(entry: str) -> str:
    """Return the path an entry begins with, else the first one in backticks, normalised; empty when there is none.

    A guard that keeps ``src/@types`` from being a mention belongs to the text, not to the path.
    """
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
