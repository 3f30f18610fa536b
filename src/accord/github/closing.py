"""Which work items a pull request closes, by the words of its body that GitHub itself obeys.

Source: GitHub documentation, "Linking a pull request to an issue". Words in code or in a comment link nothing.
"""

from __future__ import annotations

import re

from accord.kernel.markdown import blocks
from accord.kernel.spans import spans

MOST_ITEMS = 10
"""More than people close at once; each may cost a request."""

_CLOSING = re.compile(
    r"(?<![\w/-])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]{1,8}"
    r"(?:(?:https?://[\w.-]{1,200}/)?(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})(?:/issues/|#)|#)"
    r"(?P<number>[1-9][0-9]{0,8})(?!\w)",
    re.IGNORECASE,
)


def closing_references(body: str, repository: str) -> tuple[int, ...]:
    """Return the numbers of this repository's issues that a body closes, in its order, ``MOST_ITEMS`` at most."""
    paragraphs = (token.content for token in blocks(body) if token.type == "inline")
    text = "\n".join(span.text for paragraph in paragraphs for span in spans(paragraph) if span.kind == "text")
    here = repository.casefold()
    numbers = [
        int(found["number"]) for found in _CLOSING.finditer(text) if (found["repository"] or here).casefold() == here
    ]
    return tuple(dict.fromkeys(numbers))[:MOST_ITEMS]
