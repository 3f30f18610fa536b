"""Patterns of paths in the notation of .gitignore, as people and agents write them down."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from accord.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pathspec import GitIgnoreSpec


def path_patterns(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return what matches the paths of these patterns, as git does. Raises WrongUsage for what is no pattern."""
    from pathspec import GitIgnoreSpec

    patterns = list(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of brackets in brackets, which mean what git takes them for
        for line in patterns:
            try:
                GitIgnoreSpec.from_lines([line])
            except (ValueError, re.error) as error:
                message = f'"{line[:80]}" is no pattern of paths: {error}.'
                raise WrongUsage(message, mend="Write it as in .gitignore; a backslash makes a sign plain.") from None
        return GitIgnoreSpec.from_lines(patterns)
