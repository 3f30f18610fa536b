"""Which work items a pull request closes, by the words of its body that GitHub itself obeys.

Source: GitHub documentation, "Linking a pull request to an issue". Words in code or in a comment link nothing.
"""

from __future__ import annotations

import re

from accord.kernel.markdown import blank_code

MOST_ITEMS = 10
_CODE_OR_COMMENT = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n).)*?(?<!`)\1(?!`)|<!--.*?(?:-->|\Z)", re.DOTALL)
_CLOSING = re.compile(
    r"(?<![\w/-])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]{1,8}"
    r"(?:(?:https?://[\w.-]{1,200}/)?(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})(?:/issues/|#)|#)"
    r"(?P<number>[1-9][0-9]{0,8})(?!\w)",
    re.IGNORECASE,
)


def closing_numbers(body: str, repository: str) -> tuple[int, ...]:
    """Return the numbers of this repository's issues that a body closes, in its order, ``MOST_ITEMS`` at most."""
    text = _CODE_OR_COMMENT.sub(" ", blank_code(body.replace("\r\n", "\n")))
    here = repository.casefold()
    numbers = [
        int(found["number"]) for found in _CLOSING.finditer(text) if (found["repository"] or here).casefold() == here
    ]
    return tuple(dict.fromkeys(numbers))[:MOST_ITEMS]
