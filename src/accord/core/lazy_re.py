"""The module ``re`` for modules of many patterns: each is compiled when it is first used, which most never are.

Compiled at import, they took a tenth of the time of ``accord apply``.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

ASCII, DOTALL, IGNORECASE, MULTILINE = re.ASCII, re.DOTALL, re.IGNORECASE, re.MULTILINE
Match = re.Match
Pattern = re.Pattern
escape, findall, finditer, fullmatch = re.escape, re.findall, re.finditer, re.fullmatch
match, search, split, sub = re.match, re.search, re.split, re.sub


class _LazyPattern:
    """A pattern that has its methods from the compiled one. Functions of ``re`` do not take it."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        self.__dict__[name] = found = getattr(re.compile(self.pattern, self._flags), name)
        return found


def compile(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:  # noqa: A001
    """Return a pattern that is compiled at its first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
