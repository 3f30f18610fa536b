"""Make untrusted text safe to post under a user's name.

A text may inform; it may not act. So mentions, closing keywords, bot commands, HTML beyond the plain, hidden
characters, markers like ours, links that lead elsewhere than they say, and secrets are taken out or broken, in a way
that people do not notice. Code stays byte for byte, except secrets and escape sequences.

A round changes what it finds; rounds follow until one finds nothing, for a change may uncover something (a comment
that held two halves of a name apart). So sanitising a result again changes nothing. A text
that has not settled after a few rounds, or cannot be parsed within bounds, was made to confuse, and is shown as code.

An open fence or tag is closed, so that text that accord adds below stays out of it.

Each thing that is counted adds at most four characters, a secret 36; a fence that the text left open is closed with
one of its length, a tag with one three characters longer, and a text shown as code gets two fences, each at most half
as long as the text and three more.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.text.addresses import is_misleading, is_safe_address
from accord.text.hidden import hidden_runs, in_place_of, invisible_runs, strip_hidden, without_escapes
from accord.text.html import closing_tags, html_parts, is_allowed_tag, link_of_tag
from accord.text.markdown import fence_for, in_fence, is_fenced, unfenced
from accord.text.redaction import Redactor, Secret, merge_overlaps, without_secrets
from accord.text.regions import InlineSpan, ParsedMarkdown, Prose, is_odd_label, parse_markdown
from accord.text.words import (
    CODE,
    ISSUE_LINK,
    TAG,
    Edit,
    Replacement,
    View,
    address_edits,
    as_rendered,
    command_edits,
    entity_edits,
    is_plain,
    keyword_edits,
    leads_to_issue,
    linked_addresses,
    mention_edits,
    skip_edits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from accord.text.redaction import Redactor


KINDS = (
    "mentions",
    "closing-keywords",
    "commands",
    "html",
    "comments",
    "hidden",
    "links",
    "markers",
    "secrets",
    "fences",
    "tags",
    "unreadable",
)
"""The kinds of changes, in the order of reports.

``fences`` and ``tags`` were left open and are closed; ``unreadable`` is a text shown whole as code.
"""

_ROUNDS = 8
_LINK_END = re.compile(r"</a", re.IGNORECASE)
_LONGEST_LABEL = 2000
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]+")
_IMITATION = re.compile(r"<!--[\s/]*accord\b", re.IGNORECASE)
_MARKER_LABEL = re.compile(r"[\s\\]*accord\b", re.IGNORECASE)
_MARKER_LINE = re.compile(r"^[ \t]*(\[)(?=[\s\\]*accord\b[^\]\n]*\]:)", re.IGNORECASE | re.MULTILINE)
_STRAY = re.compile(r"<(?=!--)|(?:^[ \t]*)<(?=[A-Za-z/!?])", re.MULTILINE)
_ANY_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_NOISE = re.compile(r"[*~`]+|(?:\\(?=[!-/:-@\[-`{-~]))+|</?[A-Za-z!][^<>]{0,200}>")
_CHARACTER = re.compile(r"&(?:#[0-9]{2,8}|#[xX][0-9a-fA-F]{2,8}|lowbar|hyphen|period);?")


@dataclass(frozen=True, slots=True)
class Sanitised:
    """A text that may be posted, and how often what was changed, by kind; a kind that did not occur is not there."""

    text: str
    counts: Mapping[str, int]


def sanitise(text: str, *, secrets: Redactor) -> Sanitised:
    """Make Markdown fit to be posted as a body or a comment."""
    if is_plain(text) and not _secrets_in(text, secrets):
        return Sanitised(text, {})
    return _settled(text, secrets, _round, _as_code)


def sanitise_plain(text: str, *, secrets: Redactor) -> Sanitised:
    """Make a text fit to be posted where Markdown means nothing, so that no backtick protects: a commit message."""
    return _settled(text, secrets, _plain_round, _as_words)


def sanitise_line(text: str, *, secrets: Redactor) -> Sanitised:
    """Make a title or another one-line text fit to be posted; blanks are drawn together.

    Titles are not Markdown, except for backticks, and end up in commit messages.
    """
    return _settled(_one_line(text), secrets, lambda text, secrets: _plain_round(_one_line(text), secrets), _as_words)


def _settled(
    text: str,
    secrets: Redactor,
    once: Callable[[str, Redactor], tuple[str, Counter[str]]],
    give_up: Callable[[str], str],
) -> Sanitised:
    text, unsendable = _UNSENDABLE.subn("", text)
    counts = Counter(hidden=unsendable)
    for _ in range(_ROUNDS):
        changed, found = once(text, secrets)
        if changed == text:
            break
        text = changed
        counts += found
    else:
        text = give_up(text)
        counts["unreadable"] += 1
    return Sanitised(text, {kind: counts[kind] for kind in KINDS if counts[kind]})


def _round(text: str, secrets: Redactor) -> tuple[str, Counter[str]]:
    text, taken = _shown(text, secrets)
    if is_fenced(text):
        return text, taken
    page = parse_markdown(text)
    if not page.is_readable:
        return _as_code(text), taken + Counter(unreadable=1)
    edits = [*_hidden_edits(page), *_definition_edits(page)]
    for prose in page.prose:
        edits += (_placed(edit, prose) for edit in _prose_edits(page, prose))
    text, counts = _edited(text, edits)
    if page.open_fence:
        text += ("" if text.endswith("\n") else "\n") + page.open_fence
    tags = closing_tags(page) if text == page.text else []
    if tags:
        text = "\n".join([text.rstrip("\n"), "", *tags])
    return text, counts + taken + Counter(fences=bool(page.open_fence), tags=len(tags))


def _plain_round(text: str, secrets: Redactor) -> tuple[str, Counter[str]]:
    text, taken = _shown(text, secrets)
    view = View(text, ())
    edits = [
        *(Edit(start, end, in_place_of(text[start:end]), "hidden") for start, end in hidden_runs(text)),
        *address_edits(text, ()),
        *mention_edits(text, view, linked_addresses(text, ())),
        *keyword_edits(text, view, ""),
        *command_edits(text, view),
        *skip_edits(text),
        *(Edit(hit.start(), hit.start() + 2, "<! ", "markers") for hit in _IMITATION.finditer(text)),
    ]
    text, counts = _edited(text, edits)
    return text, counts + taken


def _edited(text: str, edits: Iterable[Edit]) -> tuple[str, Counter[str]]:
    """Carry edits out; of those that overlap, the first, and the next round sees to the rest."""
    pieces = []
    counts: Counter[str] = Counter()
    end = 0
    for edit in sorted(edits):
        if edit.start >= end:
            pieces += [text[end : edit.start], edit.new]
            counts[edit.kind] += 1
            end = edit.end
    return "".join(pieces) + text[end:], counts


def _as_code(text: str) -> str:
    return in_fence(strip_hidden(text))


def _as_words(text: str) -> str:
    """Keep nothing but letters, digits, blanks and the plainest of marks."""
    return re.sub(r"[^\w\s.,-]", "", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shown(text: str, secrets: Redactor) -> tuple[str, Counter[str]]:
    """Take out what must not be there even as code: escape sequences, and then the secrets that they may have split."""
    text, escapes = without_escapes(text)
    found = _secrets_in(text, secrets)
    return without_secrets(found, text), Counter(hidden=escapes, secrets=len(found))


def _secrets_in(text: str, secrets: Redactor) -> list[Secret]:
    """Find what is a secret as it stands, and what is one to a reader: without hidden characters, without markup."""
    found = secrets.find(text)
    unseen = [Replacement(start, end, "") for start, end in invisible_runs(text)]
    markup = [Replacement(hit.start(), hit.end(), "") for hit in _NOISE.finditer(text)]
    markup += (Replacement(hit.start(), hit.end(), _character(hit[0])) for hit in _CHARACTER.finditer(text))
    for changes in (unseen, [*unseen, *markup]):
        if changes:
            found = _joined(found, secrets, View(text, changes))
    return found


def _character(entity: str) -> str:
    return html.unescape(entity)


def _joined(found: Sequence[Secret], secrets: Redactor, view: View) -> list[Secret]:
    """Add the secrets that only this view shows."""
    starts = [secret.start for secret in found]
    more = []
    for seen in secrets.find(view.text):
        secret = Secret(view.source(seen.start)[0], view.source(seen.end - 1)[1], seen.kind)
        i = bisect_right(starts, secret.end - 1) - 1
        if i < 0 or found[i].end <= secret.start:
            more.append(secret)
    return merge_overlaps([*found, *more])


def _hidden_edits(page: ParsedMarkdown) -> Iterator[Edit]:
    """Take hidden characters out of everything but code."""
    code = sorted(page.code)
    i = 0
    for start, end in hidden_runs(page.text):
        while i < len(code) and code[i][1] <= start:
            i += 1
        stop = min(end, code[i][0]) if i < len(code) else end
        if start < stop:
            yield Edit(start, stop, in_place_of(page.text[start:stop]), "hidden")


def _definition_edits(page: ParsedMarkdown) -> Iterator[Edit]:
    """Turn forbidden link reference definitions into text, by a backslash."""
    for definition in page.definitions:
        if _MARKER_LABEL.match(definition.label):
            yield Edit(definition.start, definition.start + 1, "\\[", "markers")
        elif (
            is_odd_label(definition.label)
            or not is_safe_address(definition.address)
            or "<!--" in page.text[definition.start : definition.end]
        ):
            yield Edit(definition.start, definition.start + 1, "\\[", "links")


def _placed(edit: Edit, prose: Prose) -> Edit:
    return edit._replace(start=prose.source(edit.start), end=prose.source(edit.end - 1) + 1)


def _prose_edits(page: ParsedMarkdown, prose: Prose) -> Iterator[Edit]:
    content = prose.content
    markup, holes = _raw_html(prose) if prose.is_html else _inline(prose, page)
    yield from markup
    bracket = "&#91;" if prose.is_html else "\\["
    yield from (Edit(hit.start(1), hit.end(1), bracket, "markers") for hit in _MARKER_LINE.finditer(content))
    yield from entity_edits(content, holes, is_html=prose.is_html)
    view = as_rendered(content, holes, has_escapes=not prose.is_html)
    yield from address_edits(content, holes)
    addresses = [] if prose.is_html else linked_addresses(content, holes)
    addresses += (Replacement(span.start, span.end, "") for span in prose.spans if span.kind == "autolink")
    yield from mention_edits(content, view, sorted(addresses))
    yield from keyword_edits(content, view, _following(page, prose))
    for edit in command_edits(content, view):
        if not _before_on_line(page.text, prose.source(edit.start)).strip():
            yield edit


def _following(page: ParsedMarkdown, prose: Prose) -> str:
    """Return the beginning of the text after a block."""
    end = prose.source(len(prose.content) - 1) + 1 if prose.content else len(page.text)
    blank = re.compile(r"\s*").match(page.text, end)
    end = blank.end() if blank else end
    return page.text[end : end + 300]


def _before_on_line(text: str, position: int) -> str:
    return text[max(text.rfind("\n", 0, position), text.rfind("\r", max(0, position - 300), position)) + 1 : position]


def _raw_html(prose: Prose) -> tuple[list[Edit], list[Replacement]]:
    """Look through an HTML block, in which nothing is Markdown."""
    edits, holes = [], []
    for piece in html_parts(prose.content):
        text = prose.content[piece.start : piece.end]
        if piece.kind == "comment":
            edits.append(_without_comment(prose.content, piece.start, piece.end))
        elif piece.kind == "refused":
            edits.append(Edit(piece.start, piece.end, "&lt;", "html"))
        elif _misleads(prose.content, piece.start, piece.end):
            edits.append(Edit(piece.start, piece.start + 1, "&lt;", "links"))
        if piece.kind != "refused":
            holes.append(Replacement(piece.start, piece.end, TAG if text[:2] != "<!" else CODE))
    return edits, holes


def _without_comment(content: str, start: int, end: int) -> Edit:
    """Remove a comment; within other HTML with its line, as an empty one would end the block."""
    kind = "markers" if _IMITATION.match(content, start) else "comments"
    before = content.rfind("\n", 0, start)
    after = content.find("\n", end)
    is_alone = before >= 0 <= after and not content[before:start].strip() and not content[end:after].strip()
    return Edit(before, after, "", kind) if is_alone else Edit(start, end, "", kind)


def _inline(prose: Prose, page: ParsedMarkdown) -> tuple[list[Edit], list[Replacement]]:
    """Look through what the wrapped rules noted in a paragraph."""
    content = prose.content
    edits: list[Edit] = []
    holes: list[Replacement] = []
    for span in prose.spans:
        if span.kind == "html":
            edits += _tag_edits(content, span)
            holes.append(Replacement(span.start, span.end, CODE if content.startswith("<!", span.start) else TAG))
        elif span.kind == "autolink":
            if not is_safe_address(span.address or "") and not _is_mail(span):
                edits.append(Edit(span.start, span.start + 1, "&lt;", "links"))
        elif span.kind == "code":
            if not prose.is_doubtful:
                holes.append(Replacement(span.start, span.end, CODE))
        else:
            edits += _link_edits(content, span)
            sign = ISSUE_LINK if leads_to_issue(span.target or "") else CODE
            holes.append(Replacement(span.label_end, span.end, sign))
    tags = [
        span for span in prose.spans if span.kind in ("html", "autolink", *(() if prose.is_doubtful else ("code",)))
    ]
    edits += _stray_edits(content, tags, _ANY_TAG if prose.is_doubtful or page.footnotes else _STRAY)
    return edits, sorted(holes)


def _is_mail(span: InlineSpan) -> bool:
    return ":" not in (span.address or "")


def _tag_edits(content: str, span: InlineSpan) -> Iterator[Edit]:
    tag = content[span.start : span.end]
    if tag.startswith("<!--"):
        yield Edit(span.start, span.end, "", "markers" if _IMITATION.match(tag) else "comments")
    elif not is_allowed_tag(tag):
        yield Edit(span.start, span.start + 1, "&lt;", "html")
    elif _misleads(content, span.start, span.end):
        yield Edit(span.start, span.start + 1, "&lt;", "links")


def _misleads(content: str, start: int, end: int) -> bool:
    """Return whether a tag opens a link whose text shows another host."""
    address = link_of_tag(content[start:end])
    if address is None:
        return False
    label = content[end : end + _LONGEST_LABEL]
    closing = _LINK_END.search(label)
    return is_misleading(label[: closing.start()] if closing else label, address)


def _link_edits(content: str, span: InlineSpan) -> Iterator[Edit]:
    """Turn a link or an image that leads nowhere good into text. One by reference is seen to where it is defined."""
    is_odd = "<!--" in content[span.label_end : span.end]
    is_lie = span.kind == "link" and is_misleading(content[span.start + 1 : span.label_end], span.target or "")
    if is_odd or is_lie or (span.address is not None and not is_safe_address(span.address)):
        bracket = span.start + (span.kind == "image")
        yield Edit(bracket, bracket + 1, "\\[", "links")


def _stray_edits(content: str, spans: Sequence[InlineSpan], pattern: re.Pattern[str]) -> Iterator[Edit]:
    """Escape each ``<`` that some reader may take for the start of HTML, outside of what is known."""
    i = 0
    for hit in pattern.finditer(content):
        start = hit.end() - 1
        while i < len(spans) and spans[i].end <= start:
            i += 1
        if i == len(spans) or start < spans[i].start:
            kind = "markers" if _IMITATION.match(content, start) else "html"
            yield Edit(start, start + 1, "&lt;", kind)


_NO_SECRETS = Redactor()
_FENCE_LINES = 8
"""The length of two fences of three, with their line ends."""


def cut(text: str, space: int) -> tuple[str, str]:
    """Cut a sanitised text so that the head fits into ``space`` characters, at least 20: after a paragraph or a line.

    Head and tail make up the text again, without the fences if it is shown as code.
    """
    code = parse_markdown(text).code
    for end in ("\n\n", "\n", " "):
        position = _last(text, end, space, code)
        if text[:position].strip() and _is_fit(text[:position]) and _is_fit(text[position:]):
            return text[:position], text[position:]
    return _cut_code(unfenced(text), space)


def _last(text: str, end: str, space: int, code: Sequence[tuple[int, int]]) -> int:
    """Return where the last of these ends outside of code, in the second half of the space; 0 if none does."""
    limit = space
    while (position := text.rfind(end, space // 2, limit)) >= 0:
        inside = [start for start, stop in code if start < position + len(end) < stop]
        if not inside:
            return position + len(end)
        limit = inside[0]
    return 0


def _is_fit(text: str) -> bool:
    return not sanitise(text, secrets=_NO_SECRETS).counts


def _cut_code(code: str, space: int) -> tuple[str, str]:
    overhead = 2 * (len(fence_for(code)) + 1)
    size = space - overhead if 2 * overhead <= space else (space - _FENCE_LINES) // 2
    position = code.rfind("\n", size // 2, size) + 1 or size
    return in_fence(code[:position]), in_fence(code[position:])
