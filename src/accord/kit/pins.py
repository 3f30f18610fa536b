"""Pins: the commit and the repository of accord in ``uses:`` lines. Templates have placeholders for both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from accord import __version__
from accord.core.errors import WrongUsage
from accord.git.program import Git

if TYPE_CHECKING:
    from collections.abc import Collection

SOURCE = "accord-ci/accord"
"""accord's repository, as the templates name it."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PIN = re.compile(
    r"(?<![\w./@-])(?P<source>\w[\w.-]*/[\w.-]+)(?P<path>(?:/[^@\s]*)?)@(?P<commit>[0-9a-f]{64}|[0-9a-f]{40})\b"
    r"(?: # v[\w.+-]+)?"
)
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Pin:
    """A commit of accord, its version, and the repository that has it."""

    commit: str
    version: str
    source: str = SOURCE

    def __str__(self) -> str:
        return f"{self.commit} # v{self.version}"


def with_pin(text: str, pin: Pin | str, *, sources: Collection[str] = (SOURCE,), only: str = "") -> str:
    """Replace the pin of every ``uses: SOURCE…@COMMIT # vX``; ``only`` limits it to one commit.

    ``sources`` are the repositories that count as accord's. Tags, branches, shortened commits and other repositories
    are the consumer's choice, and stay.
    """

    def moved(found: re.Match[str]) -> str:
        if found["source"] not in sources or (only and found["commit"] != only):
            return found[0]
        source = pin.source if isinstance(pin, Pin) else found["source"]
        return f"{source}{found['path']}@{pin}"

    return _PIN.sub(moved, text)


def pin_for(ref: str | None) -> Pin:
    """Return the pin of a commit, by default of this version. Raises WrongUsage."""
    commit = ref or own_commit()
    if not _COMMIT.fullmatch(commit):
        problem = f"`{ref}` is not a full commit SHA." if ref else "The commit of this version of accord is unknown."
        raise WrongUsage(problem, hint="Pass `--ref` with the full SHA of the release, 40 hex digits.")
    return Pin(commit, __version__)


@cache
def own_commit() -> str:
    """Return the commit of accord's own checkout, or the one that the installed package was built from, if known."""
    released = Path(__file__).parents[1] / "COMMIT"
    if released.is_file():
        return released.read_text(encoding="ascii").strip()
    if not (_ROOT / ".git").exists() or not (_ROOT / "templates/consumer-repo").is_dir():
        return ""
    return Git(_ROOT).attempt("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode("ascii", "replace").strip()
