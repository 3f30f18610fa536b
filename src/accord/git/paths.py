"""Steering files: a change to one decides what agents and CI run next."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pathspec import GitIgnoreSpec


def path_patterns(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return what matches the paths of these patterns, as git does. Raises WrongUsage for an invalid pattern."""
    from pathspec import GitIgnoreSpec

    patterns = list(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of brackets in brackets, which mean what git takes them for
        for line in patterns:
            try:
                GitIgnoreSpec.from_lines([line])
            except (ValueError, re.error) as error:
                message = f"`{line[:80]}` is not a path pattern: {error}."
                raise WrongUsage(
                    message, hint="Write it as in `.gitignore`; escape special characters with a backslash."
                ) from None
        return GitIgnoreSpec.from_lines(patterns)


PROTECTED = (
    ".github/",
    "CODEOWNERS",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "copilot-instructions.md",
    ".claude/",
    ".codex/",
    ".cursor/",
    ".cursorrules",
    ".gemini/",
    ".windsurfrules",
    ".circleci/",
    ".gitlab-ci.yml",
    ".travis.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
)
"""Files that steer agents and CI, in gitignore's notation. A change to one is shown to a person, never dropped."""


def protected_paths(paths: Iterable[str], extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Return those of the paths that are protected, by the patterns here and ``extra`` ones.

    Raises WrongUsage for an extra one that is invalid.
    """
    spec = path_patterns([*PROTECTED, *extra])
    return tuple(path for path in paths if spec.match_file(path))
