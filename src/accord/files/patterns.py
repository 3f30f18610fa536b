"""Path patterns, as in ``.gitignore``."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def path_patterns(lines: Iterable[str], *, may_negate: bool = True) -> GitIgnoreSpec:
    """Return what matches the paths of these patterns, as git does. Raises WrongUsage for an invalid pattern."""
    from pathspec import GitIgnoreSpec

    patterns = list(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of brackets in brackets, which mean what git takes them for
        for line in patterns:
            try:
                is_negated = any(one.include is False for one in GitIgnoreSpec.from_lines([line]).patterns)
            except (ValueError, re.error) as error:
                message = f"`{line[:80]}` is not a path pattern: {error}."
                raise WrongUsage(
                    message, hint="Write it as in `.gitignore`; escape special characters with a backslash."
                ) from None
            if is_negated and not may_negate:
                message = f"`{line[:80]}` is negated, but patterns here only add to those that are built in."
                raise WrongUsage(
                    message, hint="Remove it, or escape an exclamation mark that is part of the name: `\\!`."
                )
        return GitIgnoreSpec.from_lines(patterns)


def added_patterns(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return what matches the paths of these patterns, without negated ones. Raises WrongUsage for an invalid one."""
    spec = path_patterns(lines)
    return type(spec)(pattern for pattern in spec.patterns if pattern.include)
