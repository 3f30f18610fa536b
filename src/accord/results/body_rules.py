"""The rules of work item bodies (workflow contracts, "Work Item Body Templates")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from accord.core.findings import Finding, warning
from accord.core.suggest import correct_spelling
from accord.core.texts import is_template, line_end_findings
from accord.results.bodies import (
    CRITERIA,
    IN_SCOPE,
    OBJECTIVE,
    OPTIONS,
    OUT_OF_SCOPE,
    SPEC_REFERENCE,
    TEMPLATES,
    Body,
    Heading,
    is_same,
    read_body,
    section_count,
)  # fmt: skip
from accord.results.contents import reference_gaps
from accord.results.labels import ItemKind
from accord.results.scope_entries import wider_entries
from accord.results.scope_words import NONE
from accord.text.criteria import unboxed_entries
from accord.text.outline import Section, seen_text

_ISSUE = re.compile(r"#\d")
_OUTSIDE_TREE = re.compile(r"(?:/|~|\\|[A-Za-z]:[\\/])|(?:.*[\\/])?\.\.(?:[\\/].*)?\Z", re.DOTALL)
_PLACEHOLDER = re.compile(r"<(?:relevant sections|issue-number|relevant text from spec)>")
_PLACEHOLDER_IN_SPEC = re.compile(r"<[a-z][a-z -]*>")
_ELEMENT = re.compile(r"(?<=\w )`<[a-z][a-z-]*>`|`<[a-z][a-z-]*>`(?= \w)")
"""Code beside a word that is one tag, as in "The `<name>` element"."""

_SENTENCE_BREAK = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)[.!?][\"')*_]{0,3}\s+[\"'(*_]{0,3}[A-Z\u0391-\u03a9\u0410-\u042f]"
    r"|[\u3002\uff01\uff1f]\s*\w"
)
_ASIDE = re.compile(r"`[^`]*`|\([^()]*\)")
"""Code, or a remark in brackets."""

_FENCED = re.compile(r"\s*(`{3,}|~{3,})[ \t\r]*(?:(?:markdown|md)[ \t\r]*)?\n(.*\n)\1\s*", re.DOTALL | re.IGNORECASE)
_CRITERION = re.compile(r"[^\w\n]*criterion[\W\d_]*", re.IGNORECASE)
_LETTER = re.compile(r"\w")
_PATHS_LEFT_OVER = "path/to/"
_UNREAD = (
    "Write each path that the task may change as an entry of its own in `In Scope`, and the others in `Out of Scope`. "
    "End a folder above others with `/`, and a title with `:`."
)


def body_findings(body: Body, kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check a body against the template of its kind. ``path`` points at the body."""
    if escaped := line_end_findings(body.text, path):
        yield from escaped
        return
    if (fenced := _FENCED.fullmatch(body.text)) and section_count(read_body(fenced[2]), kind) > section_count(
        body, kind
    ):
        message = "The body is in a code fence from its first to its last line, so its headings are code."
        yield Finding("body-fenced", message, path, hint="Remove these two lines.")
        return
    for heading in TEMPLATES[kind]:
        same = body.find_all(heading)
        section = same[0] if same else None
        for again in same[1:]:
            message = f"The section `{heading.title}` is on line {same[0].line} of the body and again on {again.line}."
            yield Finding("section-repeated", message, path, hint="Merge the two.")
        if section is None:
            message, hint = _missing_section(body, heading)
            yield Finding("section-missing", message, path, hint=hint)
        elif not _is_filled(body, section, heading):
            message = f"The section `{section.title}` (line {section.line} of the body) is empty."
            hint = "Fill it in, or write `None`." if heading.may_be_none else "Fill it in."
            yield Finding("section-empty", message, path, hint=hint)
    yield from _check_placeholders(body, path)
    yield from _reference_findings(body, kind, path)
    yield from (_task_findings if kind is ItemKind.TASK else _refinement_findings)(body, path)


def _reference_findings(body: Body, kind: ItemKind, path: str) -> Iterator[Finding]:
    reference = body.find(SPEC_REFERENCE)
    if reference is None or not reference.text:
        return
    text = _source_of(body, reference)
    gaps = reference_gaps(_PLACEHOLDER_IN_SPEC.sub("x", text))
    where = f"`Spec Reference` (line {reference.line} of the body)"
    if "path" in gaps and not _ISSUE.search(text):
        hint = "Add a line such as `- Spec: docs/specs/export.md`."
        yield Finding("spec-path-missing", f"{where} names no file.", path, hint=hint)
    elif "section" in gaps:
        hint = "Add a line such as `- Section(s): Limits`."
        yield warning("spec-section-missing", f"{where} names no section.", path, hint=hint)
    if "quote" in gaps and kind is ItemKind.REFINEMENT:
        hint = "Add a line `- Quote: …` with the words of the spec."
        yield Finding("quote-missing", f"{where} contains no quote.", path, hint=hint)


def _task_findings(body: Body, path: str) -> Iterator[Finding]:
    objective = body.find(OBJECTIVE)
    if objective and _has_sentences(objective):
        message = f"`Objective` (line {objective.line} of the body) has more than one sentence."
        yield warning("objective-long", message, path, hint="Move what it does not achieve to `Context`.")
    if (listed := body.find(IN_SCOPE)) and not body.in_scope:
        named = next((f"; line {line} has none: {text[:80]}" for line, text in body.scopes[0].unread), ".")
        message = f"`In Scope` (line {listed.line} of the body) lists no path{named}"
        yield Finding("scope-empty", message, path, hint="List the files that the task may change.")
    for outer in (each for each in (*body.in_scope, *body.out_of_scope) if _OUTSIDE_TREE.match(each)):
        message = f"`{outer[:80]}` is not a path below the top of the repository."
        yield Finding("scope-outside", message, path, hint="Write it as git does, such as `src/a.py`.")
    wider, outside = wider_entries([*body.in_scope, *body.out_of_scope]), {*body.out_of_scope}
    for both in (each for each in body.in_scope if any(each in wider[other] for other in outside & {*wider[each]})):
        message = f"`{both}` is both in scope and out of scope."
        yield Finding("scope-overlap", message, path, hint="Remove it from one list.")
    for heading, scope in zip((IN_SCOPE, OUT_OF_SCOPE), body.scopes, strict=True):
        for line, text in scope.unread if scope.paths or heading is OUT_OF_SCOPE else ():
            message = f"`{heading.title}` (line {line} of the body) has an entry that is not wholly read: {text[:80]}"
            yield warning("scope-unread", message, path, hint=_UNREAD)
    criteria = [section.items for section in body.below(CRITERIA)]
    boxes = [item for items in criteria for item in items if item.checked is not None]
    if criteria and not boxes:
        message = "`Acceptance Criteria` has no checkbox."
        yield Finding("criteria-missing", message, path, hint="Write each criterion as `- [ ] …`.")
    for box in (each for each in boxes if not _LETTER.search(seen_text(each.text))):
        message = f"`Acceptance Criteria` (line {box.line} of the body) has a checkbox without a text."
        yield Finding("criteria-missing", message, path, hint="Write its criterion, or remove it.")
    for entry in (each for items in criteria for each in unboxed_entries(items)) if boxes else ():
        message = f"`Acceptance Criteria` (line {entry.line} of the body) has an entry without a box: {entry.text[:80]}"
        yield warning(
            "criterion-unboxed", message, path, hint="Write it as `- [ ] …`, or indent it below its criterion."
        )


def _has_sentences(section: Section) -> bool:
    """Return whether a section has several sentences: a paragraph is one, or each entry where there is only a list."""
    paragraphs = [each.content.strip() for each in section.blocks if each.kind == "paragraph" and not each.around]
    entries = [each.text for each in section.items if each.depth == 1] if not paragraphs else []
    whole = [each for each in paragraphs or entries if not each.endswith((":", "\uff1a")) and seen_text(each)]
    return len(whole) > 1 or _SENTENCE_BREAK.search(_ASIDE.sub("x", section.text)) is not None


def _refinement_findings(body: Body, path: str) -> Iterator[Finding]:
    # imported here: their patterns take as long as ten bodies
    from accord.results.layouts import unwrapped_text
    from accord.results.options import labelled_options, trade_off_gaps

    options = body.find(OPTIONS)
    if options is None:
        return
    others = (each for each in body.sections if each.level == options.level and each is not options)
    texts = [_source_of(body, options), *(f"# {each.title}\n{_source_of(body, each)}" for each in others)]
    found = labelled_options(*map(unwrapped_text, texts))
    if len(found.found) < 2:
        message = f"`Options` lists {len(found.found)} of at least two options."
        yield Finding("options-too-few", message, path, hint="List each with its trade-offs.")
    for message, is_sure in trade_off_gaps(found):
        if is_sure:
            yield Finding("trade-off-missing", message, path, hint="Add its advantages and its costs.")
        else:
            yield warning("trade-off-missing", message, path, hint="Say what it costs.")


def _check_placeholders(body: Body, path: str) -> Iterator[Finding]:
    """Find what the author of a body left of the template."""
    criteria = {section.line for section in body.below(CRITERIA)}
    for section in body.sections:
        pattern = _PLACEHOLDER_IN_SPEC if is_same(section.title, SPEC_REFERENCE.title) else _PLACEHOLDER
        every = section.text.splitlines()
        passed = {line for line in every[:-1] if line.rstrip("*_").endswith(":") and len(line.split()) > 2}
        passed.update(cell for block in section.blocks if block.kind == "table" for cell in block.cells[0])
        items = section.items if section.line in criteria else []
        entries = [*(each for each in items if each.checked is not None), *unboxed_entries(items)]
        lines = [line for line in every if is_template(line) and line not in passed]
        lines += [each.text for each in entries if _CRITERION.fullmatch(each.text)]
        lines += pattern.findall(_ELEMENT.sub("x", section.text))
        for left in lines[:1]:
            message = f"`{section.title}` (line {section.line} of the body) still has the template's `{left.strip()}`."
            yield Finding("placeholder-left", message, path, hint="Replace it with your own words.")
    for left in (each for each in (*body.in_scope, *body.out_of_scope) if each.startswith(_PATHS_LEFT_OVER)):
        message = f"The scope still has the template's path `{left[:80]}`."
        yield Finding("placeholder-left", message, path, hint="Replace it with a file of the repository.")


def _missing_section(body: Body, heading: Heading) -> tuple[str, str]:
    """Return the message and the hint for a section that is missing."""
    wanted = f"`{'#' * heading.level} {heading.title}`" + (f" under `{heading.parent}`" if heading.parent else "")
    for section in body.sections:
        if is_same(section.title, heading.title):
            where = f"line {section.line} of the body has it at level {section.level}"
            where += f" under `{section.parent}`" if section.parent else ""
            return f"The section {wanted} is missing; {where}.", f"Write it as {wanted}."
    required = {heading.title.casefold() for headings in TEMPLATES.values() for heading in headings}
    titles = {section.title: section for section in body.sections if section.title.casefold() not in required}
    near = titles.get(correct_spelling(heading.title, titles) or "")
    if near is None:
        return f"The section {wanted} is missing.", "Add it."
    where = f"line {near.line} of the body has `{near.title}`"
    return f"The section {wanted} is missing; {where}.", f"Did you mean `{heading.title}`?"


def _is_filled(body: Body, section: Section, heading: Heading) -> bool:
    if not any(_LETTER.search(each.visible) for each in body.below(heading)):
        return heading is IN_SCOPE and body.in_scope != ()  # such as `**`
    return heading.may_be_none or not NONE.fullmatch(section.visible)


def _source_of(body: Body, top: Section) -> str:
    """Return the text below the heading of a section, with the sections in it."""
    end = next((each.line - 1 for each in body.sections if each.line > top.line and each.level <= top.level), None)
    return "\n".join(body.text.replace("\r\n", "\n").split("\n")[top.line : end])
