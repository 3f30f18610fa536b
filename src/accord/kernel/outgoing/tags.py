"""HTML that a text leaves open, and that would reach into whatever is written below it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.kernel.outgoing.html import pieces_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.kernel.outgoing.places import Page, Prose

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
_CLOSE_THEMSELVES = frozenset(
    "br hr img caption dd dt li p rp rt tbody td tfoot th thead tr".split()  # noqa: SIM905 - reads as a list of tags
)
"""Tags without an end, and those that whatever follows ends (HTML Standard, "Optional tags")."""


def closing_tags(page: Page) -> list[str]:
    """List the tags that close what a text leaves open, in the order to write them.

    A closing tag takes away the last opening one of its name and nothing in between: a browser carries bold or a link
    on beyond the box in which it began.
    """
    opened: list[str] = []
    for prose in page.prose:
        for tag in _tags(prose):
            name = tag[2].lower()
            if not tag[1] and name not in _CLOSE_THEMSELVES:
                opened.append(name)
            elif tag[1] and name in opened:
                del opened[len(opened) - 1 - opened[::-1].index(name)]
    return [f"</{name}>" for name in reversed(opened)]


def _tags(prose: Prose) -> Iterator[re.Match[str]]:
    if prose.is_html:
        places = [piece.start for piece in pieces_of(prose.content) if piece.kind == "tag"]
    else:
        places = [span.start for span in prose.spans if span.kind == "html"]
    for place in places:
        tag = _TAG.match(prose.content, place)
        if tag:
            yield tag
