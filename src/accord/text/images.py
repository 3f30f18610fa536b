"""Images of hosts that are not allowed: they become links, so that showing a text asks no other host for anything."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.text.addresses import is_at_host
from accord.text.html import read_tag, tag_spans
from accord.text.views import Cursor, Edit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.text.inlines import InlineSpan
    from accord.text.regions import ParsedMarkdown, Prose

_IMAGE = re.compile(r"!\[")


def image_edits(page: ParsedMarkdown, prose: Prose, hosts: Sequence[str]) -> Iterator[Edit]:
    """Make links of images from other hosts than these, and plain text of those inside a link.

    Where readers may differ on what an image is, nothing is one that another does not see. cmark-gfm sees one by
    reference in what else looks like one.
    """
    spans = prose.parts("link", "image")
    yield from _of_markdown(prose, spans, hosts)
    known = {span.start for span in spans}
    is_code = Cursor([span for span in prose.parts("code") if span.end <= prose.doubt])
    for hit in _IMAGE.finditer(prose.content, 0 if page.definitions and not prose.is_html else prose.doubt):
        if not is_code(hit.start()) and hit.start() not in known:
            yield Edit(hit.start(), hit.end(), "!\\[", "images")
    links = [(span.start, span.label_end) for span in spans if span.kind == "link"]
    yield from _of_html(prose.content, tag_spans(prose), links, hosts)


def _of_markdown(prose: Prose, spans: Sequence[InlineSpan], hosts: Sequence[str]) -> Iterator[Edit]:
    linked_until = 0
    for span in spans:
        if span.kind == "link":
            linked_until = max(linked_until, span.label_end)
        elif not is_at_host(span.target or "", hosts):
            label = prose.content[span.start + 2 : span.label_end].strip() or "image"
            if span.start < linked_until:
                yield Edit(span.start, span.end, label, "images")
            else:
                before = "\\!" if prose.content.endswith("!", 0, span.start) else ""
                yield Edit(span.start, span.label_end, f"{before}[{label}", "images")


def _of_html(
    content: str, tags: Iterator[tuple[int, int]], links: Sequence[tuple[int, int]], hosts: Sequence[str]
) -> Iterator[Edit]:
    is_linked = False
    linked_until = passed = 0
    for start, end in tags:
        while passed < len(links) and links[passed][0] < start:
            linked_until = max(linked_until, links[passed][1])
            passed += 1
        name, values = read_tag(content[start:end])
        is_linked = (is_linked or name == "a") and name != "/a"
        address = values.get("src", "")
        if name == "img" and not is_at_host(address, hosts):
            label = " ".join(values.get("alt", "").split()) or "image"
            quote = "'" if '"' in address else '"'
            is_plain = is_linked or start < linked_until
            yield Edit(start, end, label if is_plain else f"<a href={quote}{address}{quote}>{label}</a>", "images")
