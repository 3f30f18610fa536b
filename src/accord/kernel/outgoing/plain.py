"""Texts in which nothing can need a change, told apart without parsing them.

Most of what agents write is of this kind, and parsing is most of what sanitising costs. The answer errs to one side:
what is called plain comes out of the parser unchanged (a property test holds both against each other), what is not
may as well.
"""

from __future__ import annotations

import re

from accord.kernel.hidden_text import invisible_runs

_LONGEST = 65_536
_MOST_BRACKETS = 60
_ACTIVE = re.compile(
    r"[<&@\\\t\r\ud800-\udfff]"  # HTML, entities, mentions, hosts with names, escapes, other blanks
    r"|```|~~~"  # fences may be left open
    r"|\]:"  # definitions, footnotes, markers
    r"|\]\((?!(?:https?://)?[A-Za-z0-9_./#?%=+,;~-]*\))"  # links, but for the plainest
    r"|^\s*/[A-Za-z]"  # commands
    r"|^[ *+>.)0-9-]{17}",  # deep nesting; each level takes two columns
    re.MULTILINE,
)
_KEYWORD = re.compile(r"(?<![A-Za-z0-9])(?:close|fix|resolve)", re.IGNORECASE)
_REFERENCE = re.compile(r"#[0-9]|GH-[0-9]|/(?:issues|pull|pulls|discussions)/[0-9]", re.IGNORECASE)


def is_plain(text: str) -> bool:
    """Tell whether nothing in this text can need a change. Secrets are another question."""
    return (
        len(text) <= _LONGEST
        and not _ACTIVE.search(text)
        and text.count("[") <= _MOST_BRACKETS
        and not next(invisible_runs(text), None)
        and not (_REFERENCE.search(text) and _KEYWORD.search(text))
    )
