"""The module ``re`` with patterns that are compiled at their first use: most commands use few of those they import."""

from __future__ import annotations

import re
from re import *  # noqa: F403
from typing import TYPE_CHECKING, Any


class _LazyPattern:
    """A pattern with the methods of the compiled one. Functions of ``re`` do not take it."""

    def __init__(self, *given: Any) -> None:
        self.pattern, self._given = given[0], given

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy asks for them before there is a pattern
            raise AttributeError(name)
        self.__dict__[name] = found = getattr(re.compile(*self._given), name)
        return found


if not TYPE_CHECKING:
    compile = _LazyPattern  # noqa: A001
