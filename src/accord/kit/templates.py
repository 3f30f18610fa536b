"""The kit as this version of accord ships it: every file that a consumer gets, by its path there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import accord
from accord import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = ".github"
"""All of the kit lies below it, so that one folder tells whether a repository is in step."""

_PROMPTS = ("autofix", "bot-comments", "implement", "keepalive", "plan", "review", "verifier")
_ALSO = {
    "results/labels.yml": ".github/labels.yml",
    **{f"runner/prompts/{mode}.md": f".github/prompts/{mode}.md" for mode in _PROMPTS},
}
"""Files of the package that consumers get as they are: there is no second copy of them among the templates."""


@dataclass(frozen=True)
class Kit:
    """A version's templates by path. Their pins are placeholders, see ``accord.kit.pins``."""

    version: str
    files: Mapping[str, str]


@cache
def shipped_kit() -> Kit:
    """Read the templates that come with this version."""
    return Kit(__version__, dict(sorted(_files())))


def _files() -> Iterator[tuple[str, str]]:
    installed = Path(__file__).parent / "consumer-repo"
    root = installed if installed.is_dir() else Path(__file__).parents[3] / "templates/consumer-repo"
    for path in root.rglob("*"):
        if path.is_file():
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
    for name, place in _ALSO.items():
        yield place, (Path(accord.__file__).parent / name).read_text(encoding="utf-8")
