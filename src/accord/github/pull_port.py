"""Pull requests and reviews as the rest of accord sees them: types of our own, and the operations that somebody uses.

Implemented by ``accord.github.pulls`` and ``accord.github.reviews``, which the adapter puts together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request. ``head_repository`` is the owner/name its branch lives in; empty when that is gone."""

    number: int
    url: str
    title: str
    body: str
    state: str
    is_merged: bool
    is_draft: bool
    is_locked: bool
    author: str
    labels: tuple[str, ...]
    head_branch: str
    head_sha: str
    head_repository: str
    base_branch: str
    base_sha: str


class PullPort(Protocol):
    """Pull requests of one repository. Every method may raise Refused or Stopped."""

    def pull(self, number: int) -> Pull | None:
        """Read one pull request; None when there is none of that number."""
        ...

    def pulls_from(self, branch: str, *, state: str = "all") -> list[Pull]:
        """List the pull requests whose head is this branch of this repository, newest first."""
        ...

    def create_pull(self, title: str, body: str, head: str, base: str, *, draft: bool) -> Pull:
        """Open a pull request. Raises AnswerLost when it is unknown whether it was opened."""
        ...

    def change_pull(self, number: int, *, title: str, body: str) -> Pull:
        """Change title and body in one request; safe to repeat."""
        ...

    def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Add labels to an issue or pull request; those it has stay, so it is safe to repeat."""
        ...
