"""Plain text with labelled parts: ``Type: spec-gap``, ``**Why** …``, ``### Options`` and what follows each.

Agents write the same thing as a label, in bold, in italics or as a heading, and in some scripts with a wide colon. All
are read, except in code blocks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.text.markdown import blank_code

if TYPE_CHECKING:
    from collections.abc import Mapping


_LEAD = r"^[ \t]*(?:>[ \t]*)?(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?"
_DRESSED = r"(?:\#{{1,6}}[ \t]+)(?P<h>{names})[ \t]*[:\uff1a]?[ \t]*\#*[ \t]*$|"
_BOLD = r"(?P<mark>\*\*|__)(?P<b>{names})[ \t]*[:\uff1a]?(?P=mark)[ \t]*[:\uff1a]?|"
_PLAIN = r"[*_]?(?P<p>{names})[*_]?[ \t]*[:\uff1a][*_]?"


def labelled_parts(text: str, labels: Mapping[str, str], *, inline: bool = False) -> dict[str, str]:
    """Split a text at its labels; return the text after each, by the name it stands for.

    ``labels`` maps the words of a label, in lower case, to that name. With ``inline`` a label followed by a colon
    counts in the middle of a line as well, as in ``What: a. Why: b. Fix: c.`` A repeated label adds to its part.
    """
    words = "|".join(re.escape(word) for word in sorted(labels, key=len, reverse=True))
    at_line = re.compile(
        _LEAD + "(?:" + (_DRESSED + _BOLD + _PLAIN).format(names=words) + ")", re.IGNORECASE | re.MULTILINE
    )
    outside = blank_code(text)
    found = list(at_line.finditer(outside))
    if inline:
        within = re.compile(
            rf"(?<![\w-])(?:\*\*|__)?(?P<p>{words})(?:\*\*|__)?[ \t]*[:\uff1a](?:\*\*|__)?", re.IGNORECASE
        )
        taken = {match.span(group) for match in found for group in ("h", "b", "p")}
        found += [match for match in within.finditer(outside) if match.span("p") not in taken]
        found.sort(key=lambda match: match.start())
    parts: dict[str, str] = {}
    for i, match in enumerate(found):
        groups = match.groupdict()
        word = groups.get("h") or groups.get("b") or groups["p"]
        end = found[i + 1].start() if i + 1 < len(found) else len(text)
        name = labels[word.lower()]
        parts[name] = f"{parts.get(name, '')}\n{text[match.end() : end]}".strip()
    return parts
