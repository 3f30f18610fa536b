"""Which HTML and which addresses may stand in a text that accord posts.

GitHub sanitises what it renders (github/markup, "HTML sanitization"), but not what other programs make of the same
text. So of GitHub's tags and attributes, those stay that layout and typography need, and nothing that runs, styles or
names. Other attributes are left out, as GitHub does it. Other tags, and those with handlers, are shown as text.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from accord.text.addresses import is_misleading, is_safe_address
from accord.text.inlines import InlineSpan
from accord.text.views import Cursor, Edit

_NAMES = re.compile(
    r"a|abbr|b|blockquote|br|caption|cite|code|dd|del|details|dfn|div|dl|dt|em|figcaption|figure|h[1-6]|hr|i|img|ins|kbd"
    r"|li|mark|ol|p|picture|pre|q|rp|rt|ruby|s|samp|small|source|span|strike|strong|sub|summary|sup|table|tbody|td|tfoot"
    r"|th|thead|time|tr|tt|ul|var|wbr"
)
_ANY = re.compile(".*", re.DOTALL)
_SPAN = re.compile("[1-9][0-9]?")
_ATTRIBUTES = {
    "align": ("div h1 h2 h3 img p table td th tr", re.compile("left|center|right|justify", re.IGNORECASE)),
    "alt": ("img", _ANY), "href": ("a", _ANY), "media": ("source", _ANY), "src": ("img", _ANY),
    "srcset": ("source", _ANY), "title": ("a img", _ANY), "colspan": ("td th", _SPAN), "rowspan": ("td th", _SPAN),
    "height": ("img", re.compile("[1-9][0-9]{1,3}(?:px)?")),
    "open": ("details", re.compile("(?:open|true)?", re.IGNORECASE)), "start": ("ol", re.compile("[0-9]{1,9}")),
    "width": ("img", re.compile("[1-9][0-9]{1,3}(?:px)?|[1-9][0-9]%|100%")),
}  # fmt: skip
"""The tags of each attribute, and its values. An image of less than 10 pixels shows nothing."""

_ATTRIBUTE = r"""(?<!\s)\s+([A-Za-z_:][A-Za-z0-9_:.-]*)(?:\s*=\s*("[^"<]*"|'[^'<]*'|[A-Za-z0-9%_.-]+))?"""
_TAG = re.compile(rf"<(/?)([A-Za-z][A-Za-z0-9]*)((?:{_ATTRIBUTE})*)\s*/?>", re.ASCII)
_SHORT_COMMENT = re.compile("<!-->|<!--->")
_NEWER_BLOCK = re.compile(r"\s*</?source\b", re.IGNORECASE)
"""The start of an HTML block for GitHub, but of Markdown for readers of CommonMark 0.31."""

_ATTRIBUTES_IN = re.compile(_ATTRIBUTE, re.ASCII)


@lru_cache(maxsize=1024)
def read_tag(tag: str) -> tuple[str, Mapping[str, str]]:
    """Return the name of a tag, with a slash if it closes, and its attributes unchanged."""
    found = _TAG.fullmatch(tag)
    return (found[1] + found[2].lower(), _attributes(found)) if found else ("", {})


def _attributes(tag: re.Match[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for attribute in _ATTRIBUTES_IN.finditer(tag[3]):
        values.setdefault(attribute[1].lower(), _value_of(attribute))
    return values


def _value_of(attribute: re.Match[str]) -> str:
    return (attribute[2] or "").strip("\"'")


def link_of_tag(tag: str) -> str | None:
    """Return the address that this tag links to; None for a tag that is not an opening ``<a href=…>``."""
    name, values = read_tag(tag)
    return html.unescape(values["href"]) if name == "a" and "href" in values else None


def without_tags(text: str) -> str:
    """Return a text without its allowed tags."""
    return _TAG.sub(lambda tag: "" if is_allowed_tag(tag[0]) else tag[0], text)


@lru_cache(maxsize=1024)
def is_allowed_tag(tag: str) -> bool:
    """Return whether this one tag, from ``<`` to ``>``, may stay, at least without some of its attributes."""
    found = _TAG.fullmatch(tag)
    if found is None or not _NAMES.fullmatch(found[2].lower()):
        return False
    values = _attributes(found)
    is_odd = len(values) < len(_ATTRIBUTES_IN.findall(found[3])) or any(key.startswith("on") for key in values)
    if found[1] or is_odd:
        return not values
    return all(is_safe_address(values.get(key, "")) for key in ("href", "src"))


def attribute_edits(tag: str, start: int) -> Iterator[Edit]:
    """Take out the attributes of an allowed tag that may not stay; the tag begins at ``start``."""
    name, _ = read_tag(tag)
    for attribute in _ATTRIBUTES_IN.finditer(tag):
        tags, values = _ATTRIBUTES.get(attribute[1].lower(), ("", _ANY))
        if name not in tags.split() or not values.fullmatch(_value_of(attribute).strip()):
            yield Edit(start + attribute.start(), start + attribute.end(), "", "html")


def html_spans(text: str) -> list[InlineSpan]:
    """Return the comments and the allowed tags of raw HTML; a ``<`` that begins anything else is in none of them.

    A comment without an end hides all that follows, as it does in a CommonMark HTML block of kind 2.
    """
    spans, start, last_end = list[InlineSpan](), text.find("<"), text.rfind("-->")
    first = len(text) - len(text.lstrip())
    while start >= 0:
        is_first = start == first
        found = None if is_first and _NEWER_BLOCK.match(text) else _TAG.match(text, start)
        end = 0
        if text.startswith("<!--", start):
            short = _SHORT_COMMENT.match(text, start)
            whole = text.index("-->", start + 4) + 3 if start + 4 <= last_end else len(text) if is_first else 0
            end = short.end() if short else whole
        elif found and is_allowed_tag(found[0]):
            end = found.end()
        spans += [InlineSpan("html", start, end)] if end else []
        start = text.find("<", end or start + 1)
    return spans


_CLOSE_THEMSELVES = frozenset(
    "br hr img source wbr caption dd dt li p rp rt tbody td tfoot th thead tr".split()  # noqa: SIM905 - reads as a list of tags
)
"""Tags without an end, and those that whatever follows ends (HTML Standard, "Optional tags")."""


def closing_tags(tags: Iterable[str]) -> list[str]:
    """List the tags that close what these leave open, in the order to write them.

    A closing tag takes away the last opening one of its name and nothing in between: a browser carries bold or a link
    on beyond the box in which it began.
    """
    opened: defaultdict[str, list[int]] = defaultdict(list)
    for number, tag in enumerate(tags):
        name, _ = read_tag(tag)
        if name[:1] != "/" and name not in _CLOSE_THEMSELVES:
            opened[name].append(number)
        elif opened[name[1:]]:
            opened[name[1:]].pop()
    left = [(number, name) for name, numbers in opened.items() for number in numbers]
    return [f"</{name}>" for _, name in sorted(left, reverse=True)]


_IMAGE = re.compile(r"!\[")
_SIZE = re.compile(r"[0-9.]*[wxh]?")


def image_edits(
    content: str, spans: Sequence[InlineSpan], doubt: int, may_load: Callable[[str], bool], *, odd_from: int
) -> Iterator[Edit]:
    """Make links of images that may not load, and plain text of those inside a link.

    From ``doubt`` on, where readers may differ on what an image is, nothing is one that another does not see; from
    ``odd_from`` on, something else may look like one by reference.
    """
    known = [span for span in spans if span.kind in ("link", "image")]
    yield from _of_markdown(content, known, may_load)
    starts = {span.start for span in known}
    is_code = Cursor([span for span in spans if span.kind == "code" and span.end <= doubt])
    for hit in _IMAGE.finditer(content, odd_from):
        if not is_code(hit.start()) and hit.start() not in starts:
            yield Edit(hit.start(), hit.end(), "!\\[", "images")
    yield from _of_html(content, spans, may_load)


def _of_markdown(content: str, spans: Sequence[InlineSpan], may_load: Callable[[str], bool]) -> Iterator[Edit]:
    linked_until = 0
    for span in spans:
        if span.kind == "link":
            linked_until = max(linked_until, span.label_end)
        elif not may_load(span.target or ""):
            label = content[span.start + 2 : span.label_end].strip()
            if span.start < linked_until:
                yield Edit(span.start, span.end, label or "image", "images")
            else:
                has_own_label = span.address is None and span.end - span.label_end < len("][x]")
                before = "\\!" if content.endswith("!", 0, span.start) else ""
                shown = label if has_own_label else _label_of(label, span.target or "")
                yield Edit(span.start, span.label_end, f"{before}[{shown}", "images")


def _of_html(content: str, spans: Sequence[InlineSpan], may_load: Callable[[str], bool]) -> Iterator[Edit]:
    is_linked = False
    linked_until = 0
    for span in spans:
        linked_until = max(linked_until, span.label_end if span.kind == "link" else 0)
        name, values = read_tag(content[span.start : span.end]) if span.kind == "html" else ("", {})
        is_linked = (is_linked or name == "a") and name != "/a"
        address = values.get("src", "")
        if name == "img" and not may_load(address):
            label = " ".join(values.get("alt", "").split())
            quote = "'" if '"' in address else '"'
            link = f"<a href={quote}{address}{quote}>{_label_of(label, address)}</a>"
            yield Edit(
                span.start, span.end, (label or "image") if is_linked or span.start < linked_until else link, "images"
            )
        words = [word.strip(",") for word in values.get("srcset", "").split()]
        addresses = ["\\" if "," in word else word for word in words if not _SIZE.fullmatch(word)]  # one loads nowhere
        if name == "source" and not all(map(may_load, addresses)):
            yield Edit(span.start, span.end, "<source>", "images")


def _label_of(text: str, address: str) -> str:
    """Return the label of a link to an image: its text, unless that shows another host."""
    return text if text and not is_misleading(text, address) else "image"
