"""The files of a repository that steer agents and CI: whoever changes one decides over what runs next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.kernel.path_patterns import path_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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

    Raises WrongUsage for an extra one that is no pattern.
    """
    spec = path_patterns([*PROTECTED, *extra])
    return tuple(path for path in paths if spec.match_file(path))
