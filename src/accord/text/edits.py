"""What to change in a parsed page, so that its text informs and does not act.

A *hole* is a part that is not shown as text, such as code or a tag. It is *sure* if all readers agree on that. From the
position *doubt* on, readers of a block may differ. A *reading* is the text as one of them sees it: a view of the block.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter

from accord.text.addresses import is_misleading
from accord.text.hidden import GUARD, hidden_edits
from accord.text.html import attribute_edits, image_edits, is_allowed_tag, link_of_tag, without_tags
from accord.text.inlines import InlineSpan, plain_address
from accord.text.posting import PostingPolicy
from accord.text.regions import ODD_NOTE, TABLE_RULE, WORDS, ParsedMarkdown, Prose, is_odd_label
from accord.text.views import Cursor, Edit, View
from accord.text.words import (
    ADDRESS,
    CODE,
    ISSUE_LINK,
    LINK,
    TAG,
    address_edits,
    as_rendered,
    command_edits,
    entity_edits,
    keyword_edits,
    leads_to_issue,
    linked_addresses,
    mention_edits,
    reference_edits,
)

_START = attrgetter("start")
_FIRST = itemgetter(0)
_LINK_END = re.compile(r"(?<!\\)</a\s*>", re.IGNORECASE)
_LONGEST_LABEL = 2000
_MOST_TAGS = 40
_MOST_LABELS = 8
"""Ends that the label of what may be a link can have."""

_MARKER_LABEL = re.compile(r"[\s\\]*accord\b", re.IGNORECASE)
_MARKER_LINE = re.compile(r"^[ \t]*(\[)(?=[\s\\]*accord\b[^\]\n]*\]:)", re.IGNORECASE | re.MULTILINE)
_LINK_ADDRESS = re.compile(r"\]\([ \t\n]*(?![ \t\n])<?([^()\s<>]*)(?:[\s<>][^()]*)?(?:\([^()]*\)[^()]*)*\)")
_MAY_LINK = re.compile(r"(?<!\\)\](?=\([ \t\n]*<?([^\s<>)]{0,200})|\[)")
_OPENING = re.compile(r"(?<!\\)\[")
_STRAY = re.compile(r"<(?=!--)|(?:^[ \t]*)<(?=[A-Za-z/!?])", re.MULTILINE)
_NOTE = re.compile(r"\[\^[^\[\]\s]+\]")
_NOTE_SIGN = f"{LINK}1{LINK}"
"""A number that is not part of the word beside it, as the note may not exist, and its source be shown."""

_BOX = re.compile(r"\[[ xX]\][ \t]+\Z")
_IMAGE = re.compile(r"!\[[^\[\]]*\]\([^()]*(?:\([^()]*\)[^()]*)*\)")
_ODD_TARGET = re.compile(r"\s*(?:</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>|[^\s<\[`]*[\[`])")
"""An address that is markup for readers who see no definition, such as behind the box of a task."""

_MENTION = re.compile(r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9])")
_ANY_TAG = re.compile(r"<(?=[A-Za-z/!?])")
IMITATION = re.compile(r"<!--[\s/]*accord\b", re.IGNORECASE)


def page_edits(page: ParsedMarkdown, policy: PostingPolicy) -> list[Edit]:
    """Return what to change; edits may overlap."""
    if first := [*_hidden_edits(page)] or [*_note_edits(page)]:  # so that all else is looked at without
        return first
    code = [Edit(start, end) for start, end in page.code]
    edits = [*_definition_edits(page, policy), *command_edits(page.text, code)]
    between = "\n#1\n" if page.footnotes else "\n"  # where notes are shown, any may follow any block
    blocks = []
    for prose in page.prose:
        if WORDS.fullmatch(prose.content):
            blocks.append((prose.content, View(prose.content, ())))
            continue
        found, view = _prose_edits(page, prose, between, policy)
        odd_from = 0 if page.definitions and not prose.is_html else prose.doubt
        images = image_edits(prose.content, prose.spans, prose.doubt, policy.may_load, odd_from=odd_from)
        edits += map(prose.source_edit, (*found, *images))
        blocks.append((prose.content, view))
    edits += (page.prose[i].source_edit(edit) for i, edit in keyword_edits(blocks, between=between))
    return edits


def _hidden_edits(page: ParsedMarkdown) -> Iterator[Edit]:
    code, i = page.code, 0
    for edit in hidden_edits(page.text):
        while i < len(code) and code[i][1] <= edit.start:
            i += 1
        stop = min(edit.end, code[i][0]) if i < len(code) else edit.end
        if edit.start < stop:
            yield edit._replace(end=stop)


def _note_edits(page: ParsedMarkdown) -> Iterator[Edit]:
    """Turn footnotes with odd names into text, by a backslash."""
    for prose in page.prose:
        if prose.is_html or "[" not in prose.content:
            continue
        is_inside = Cursor(prose.parts("code", "html", "autolink", "address"))
        for hit in ODD_NOTE.finditer(prose.content):
            start = hit.end(1)
            if not is_inside(start):
                yield prose.source_edit(Edit(start, start + 1, "\\[", "links"))


def _definition_edits(page: ParsedMarkdown, policy: PostingPolicy) -> Iterator[Edit]:
    for definition in page.definitions:
        if _MARKER_LABEL.match(definition.label):
            yield Edit(definition.start, definition.start + 1, "\\[", "markers")
        elif (
            is_odd_label(definition.label)
            or not policy.may_link(plain_address(definition.address))
            or "<!--" in page.text[definition.start : definition.end]
            or definition.address.count("(") != definition.address.count(")")
            or _BOX.search(page.text, max(0, definition.start - len("[x]    ")), definition.start)
            or _ODD_TARGET.match(page.text, definition.start + len(definition.label) + len("[]:"), definition.end)
        ):
            yield Edit(definition.start, definition.start + 1, "\\[", "links")
        elif page.text.startswith(definition.label, begin := definition.start + 1):
            yield from _name_edits(page.text, begin, begin + len(definition.label))


def _name_edits(text: str, start: int, end: int) -> Iterator[Edit]:
    """Break mentions in the name of a reference, as it may be shown, and must be the same everywhere."""
    yield from (Edit(at.start(), at.end(), "@" + GUARD, "mentions") for at in _MENTION.finditer(text, start, end))


def _prose_edits(page: ParsedMarkdown, prose: Prose, between: str, policy: PostingPolicy) -> tuple[list[Edit], View]:
    """Return what to change in a block, except for keywords, and the block as a reader sees it.

    In ``evil/<b></b>x#1``, both tags are holes. The view has a sign for each, which is not part of the name ``evil/x``,
    so the edit puts a guard behind the ``#`` of the source.
    """
    content = prose.content
    edits, holes = _span_edits(page, prose, policy)
    sure = [
        hole
        for hole in holes
        if hole.end <= prose.doubt or hole.new == TAG or (hole.new == ISSUE_LINK and content[hole.start] == "<")
    ]
    bracket = "&#91;" if prose.is_html else "\\["
    edits += (Edit(hit.start(1), hit.end(1), bracket, "markers") for hit in _MARKER_LINE.finditer(content))
    edits += entity_edits(content, sure, is_html=prose.is_html)
    shown = prose.parts("address")
    view = as_rendered(content, holes, has_escapes=not prose.is_html, addresses=shown)
    images = [Edit(span.start, span.end, LINK) for span in prose.parts("image")]
    edits += address_edits(content, sure, policy)
    addresses = sorted(
        [*linked_addresses(content, prose.spans), *(Edit(span.start, span.end) for span in prose.parts("autolink"))]
    )
    edits += _naming_edits(content, view, addresses, policy)
    if not prose.is_html and "]" in content:
        known = {span.label_end for span in prose.spans}
        edits += _odd_links(content, sure, known, prose.doubt, policy)
    rules = [] if prose.doubt else [Edit(*hit.span()) for hit in TABLE_RULE.finditer(content)]
    notes = (
        [Edit(*hit.span(), _NOTE_SIGN) for hit in _NOTE.finditer(content)]
        if page.footnotes and not prose.is_html
        else []
    )
    readings = [view] if images or notes else []
    if images and notes:  # a note that does not exist shows its source, with images
        readings.append(as_rendered(content, [*holes, *images], has_escapes=True, addresses=shown))
    bare = () if prose.is_html else ADDRESS.finditer(content)
    with_entities = [Edit(*hit.span()) for hit in bare if "&" in hit[0]]
    if with_entities:  # GitHub shows their source, another reader may not
        decoded = as_rendered(content, holes, has_escapes=True)
        edits += _naming_edits(content, decoded, addresses, policy)
        readings.append(decoded)
    if prose.is_doubtful:
        doubtful = [*_doubtful_readings(prose, sure, rules, with_entities)]
        readings += doubtful
        acting = (edit for reading in doubtful for edit in _naming_edits(content, reading, (), policy))
        edits += (edit for edit in acting if edit.start >= prose.doubt)
    edits += (edit for reading in readings for _, edit in keyword_edits([(content, reading)], between=between))
    if more := [*images, *notes, *rules]:
        view = as_rendered(content, [*holes, *more], has_escapes=not prose.is_html, addresses=shown)
    return edits, view


def _naming_edits(content: str, view: View, addresses: Sequence[Edit], policy: PostingPolicy) -> Iterator[Edit]:
    yield from mention_edits(content, view, addresses)
    yield from reference_edits(content, view, addresses, policy)


def _doubtful_readings(
    prose: Prose, sure: Sequence[Edit], rules: Sequence[Edit], with_entities: Sequence[Edit]
) -> Iterator[View]:
    """Yield how a block may read where readers differ on what is code, a link or an address."""
    content = prose.content
    links = [
        Edit(*hit.span(), ISSUE_LINK if leads_to_issue(hit[1]) else LINK)
        for hit in _LINK_ADDRESS.finditer(content, max(prose.doubt, content.find("[")))
    ]
    yield as_rendered(content, [*sure, *rules], has_escapes=True)
    yield as_rendered(content, [*sure, *rules], has_escapes=False)
    yield as_rendered(content, [*sure, *links, *rules], has_escapes=True)
    yield View(content, [hole for hole in sure if hole.new == CODE])
    if with_entities:
        yield as_rendered(content, [*sure, *rules], has_escapes=True, addresses=with_entities)


def _without_comment(prose: Prose, span: InlineSpan) -> Edit:
    """Remove a comment; within other HTML with its line, as an empty one would end the block."""
    content, start, end = prose.content, span.start, span.end
    kind = "markers" if IMITATION.match(content, start) else "comments"
    before, after = content.rfind("\n", 0, start), content.find("\n", end)
    is_alone = before >= 0 <= after and not content[before:start].strip() and not content[end:after].strip()
    return Edit(before, after, "", kind) if prose.is_html and is_alone else Edit(start, end, "", kind)


def _span_edits(page: ParsedMarkdown, prose: Prose, policy: PostingPolicy) -> tuple[list[Edit], list[Edit]]:
    content = prose.content
    edits: list[Edit] = []
    holes: list[Edit] = []
    images = prose.parts("image")
    code = [(span.start, span.end) for span in prose.parts("code")]
    for span in prose.spans:
        if span.kind == "html":
            edits += _tag_edits(page, prose, span, policy)
            holes.append(Edit(span.start, span.end, _sign_of_tag(content[span.start : span.end])))
        elif span.kind == "autolink":
            is_mail = ":" not in (span.address or "")
            if not is_mail and not policy.may_link(span.address or ""):
                edits.append(Edit(span.start, span.start + 1, "&lt;", "links"))
            holes += (Edit(span.start, span.start + 1, LINK), Edit(span.end - 1, span.end, LINK))
        elif span.kind == "code":
            holes.append(Edit(span.start, span.end, CODE))
        elif span.kind in ("link", "image"):
            edits += _link_edits(content, span, images, code, policy)
            if span.kind == "link" and leads_to_issue(span.target or ""):
                holes.append(Edit(span.start, span.start + 1, ISSUE_LINK))
            holes.append(Edit(span.label_end, span.end, LINK))
    if "<" in content:
        known = prose.parts("html", "autolink", "code")
        sure = [span for span in known if span.kind != "code" or span.end <= prose.doubt]
        edits += _stray_edits(content, sure, 0 if prose.is_html else prose.doubt)
    return edits, sorted(holes)


def _sign_of_tag(tag: str) -> str:
    if tag.startswith("<!"):
        return CODE
    return ISSUE_LINK if leads_to_issue(link_of_tag(tag) or "") else TAG


def _tag_edits(page: ParsedMarkdown, prose: Prose, span: InlineSpan, policy: PostingPolicy) -> Iterator[Edit]:
    tag = prose.content[span.start : span.end]
    if tag.startswith("<!--"):
        yield _without_comment(prose, span)
    elif not is_allowed_tag(tag):
        yield Edit(span.start, span.start + 1, "&lt;", "html")
    elif _misleads(page, prose, span.start, span.end, policy):
        yield Edit(span.start, span.start + 1, "&lt;", "links")
    else:
        yield from attribute_edits(tag, span.start)


def _misleads(page: ParsedMarkdown, prose: Prose, start: int, end: int, policy: PostingPolicy) -> bool:
    """Return whether a tag opens a link that may not stay: also one whose text shows another host, or is long."""
    address = link_of_tag(prose.content[start:end])
    if address is None or not policy.may_link(address):
        return address is not None
    begin = prose.source(end - 1) + 1
    longest = min(begin + _LONGEST_LABEL, len(page.text))
    closing = _LINK_END.finditer(page.text, begin, longest)
    stop = next((hit.start() for hit in closing if not _is_inside(page.code, hit.start())), longest)
    if stop - begin == _LONGEST_LABEL or page.text.count("<", begin, stop) > _MOST_TAGS:
        return True
    labels = _without_tags(page.text, [(begin, stop)], page.code)
    return any(is_misleading(shown, address) for label in labels for shown in {label, _IMAGE.sub("", label)})


def _is_inside(code: Sequence[tuple[int, int]], position: int) -> bool:
    i = bisect_right(code, position, key=_FIRST) - 1
    return i >= 0 and position < code[i][1]


def _without_tags(text: str, parts: Iterable[tuple[int, int]], code: Sequence[tuple[int, int]]) -> set[str]:
    """Return these parts of a text without their allowed tags: those in code left out, and kept."""
    pieces, kept = [], []
    has_code = False
    for begin, end in parts:
        pieces.append(text[begin:end])
        for start, stop in code[bisect_left(code, (begin, begin)) : bisect_left(code, (end, end))]:
            kept += [without_tags(text[begin:start]), text[start:stop]]
            begin, has_code = stop, True
        kept.append(without_tags(text[begin:end]))
    whole, raw = "".join(kept), "".join(pieces)
    escaped = {raw} if "\\<" in raw else set[str]()  # a tag that is shown as text
    return {whole, without_tags(raw), *escaped} if has_code or len(pieces) > 1 else {whole, *escaped}


def _link_edits(
    content: str,
    span: InlineSpan,
    images: Sequence[InlineSpan],
    code: Sequence[tuple[int, int]],
    policy: PostingPolicy,
) -> Iterator[Edit]:
    """Turn a link or an image that leads nowhere good into text. One by reference is seen to where it is defined."""
    bracket = span.start + (span.kind == "image")
    is_odd = "<!--" in content[span.label_end : span.end]
    label, bare, begin = [], [], bracket + 1
    for image in images[bisect_left(images, begin, key=_START) : bisect_left(images, span.label_end, key=_START)]:
        label.append((begin, image.label_end))
        bare.append((begin, image.start))
        begin = max(begin, image.end)
    rest = (begin, span.label_end)
    readings = _without_tags(content, [*label, rest], code) | _without_tags(content, [*bare, rest], code)
    is_lie = span.kind == "link" and any(is_misleading(shown, span.target or "") for shown in readings)
    if is_odd or is_lie or (span.address is not None and not policy.may_link(span.address)):
        yield Edit(bracket, bracket + 1, "\\[", "links")
    if span.address is None:
        yield from _name_edits(content, min(span.label_end + 2, span.end), span.end)


def _odd_links(
    content: str, sure: Sequence[Edit], known: Container[int], doubt: int, policy: PostingPolicy
) -> Iterator[Edit]:
    """Break what only some readers take for a link, if it leads nowhere good; the labels of links end at ``known``.

    From ``doubt`` on, any bracket may begin a label.
    """
    code = [(hole.start, hole.end) for hole in sure if hole.new == CODE]
    openings = [hit.start() for hit in _OPENING.finditer(content)]
    labels = Counter[int]()
    for hit in _MAY_LINK.finditer(content):
        end = hit.start()
        i = bisect_left(openings, end) - 1
        if i < 0 or end in known or _is_inside(code, end):
            continue
        first = bisect_left(openings, doubt)
        opened = openings[min(i, first)]
        labels[opened] += 1
        label = content[max(opened, end - _LONGEST_LABEL) : end]
        leads_elsewhere = "://" in label  # of a link by reference
        if (address := hit[1]) is not None:
            leads_elsewhere = is_misleading(without_tags(label[1:]), address) or not policy.may_link(address)
        if labels[opened] > _MOST_LABELS or leads_elsewhere:
            yield Edit(end, end + 1, "\\]", "links")


def _stray_edits(content: str, spans: Sequence[InlineSpan], doubt: int) -> Iterator[Edit]:
    """Escape each ``<`` that some reader may take for the start of HTML, outside of what is known."""
    is_known = Cursor(spans)
    for start in [
        *(hit.end() - 1 for hit in _STRAY.finditer(content, 0, doubt + 1)),
        *(hit.start() for hit in _ANY_TAG.finditer(content, doubt)),
    ]:
        if not is_known(start):
            kind = "markers" if IMITATION.match(content, start) else "html"
            yield Edit(start, start + 1, "&lt;", kind)
