"""Which commit of accord the files of the kit use: written by us, and so no edit of the consumer's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from accord import __version__
from accord.kernel.errors import WrongUsage
from accord.kernel.git import Git

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PIN = re.compile(r"(?P<uses>\baccord-ci/accord(?:/[^@\s]*)?)@(?P<commit>[0-9a-f]{64}|[0-9a-f]{40})\b(?: # v[\w.+-]+)?")


@dataclass(frozen=True)
class Pin:
    """A commit of accord, and the version that it is."""

    commit: str
    version: str

    def __str__(self) -> str:
        return f"{self.commit} # v{self.version}"


def repinned(text: str, pin: Pin | str, *, only: str = "") -> str:
    """Write every ``uses: accord-ci/accord…@COMMIT # vX`` of a file with this pin; ``only`` those with one commit.

    Only whole commits count. A tag, a branch or a fork is somebody's own choice, and stays.
    """

    def moved(found: re.Match[str]) -> str:
        return found[0] if only and found["commit"] != only else f"{found['uses']}@{pin}"

    return _PIN.sub(moved, text)


def pin_for(ref: str | None) -> Pin:
    """Return the pin that the user asks for, else that of this very version. Raises WrongUsage."""
    commit = ref or _own_commit()
    if not _COMMIT.fullmatch(commit):
        said = f'"{ref}" is no commit.' if ref else "It is not known which commit this version of accord is."
        raise WrongUsage(said, mend="Pass --ref with the whole SHA of the release, 40 hex digits.")
    return Pin(commit, __version__)


@cache
def _own_commit() -> str:
    """Ask git, where accord runs from a checkout of its own; an installed package does not know."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists() or not (root / "templates/consumer-repo").is_dir():
        return ""
    return Git(root).attempt("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode("ascii", "replace").strip()
