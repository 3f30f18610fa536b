"""GitHub as the rest of accord sees it: small types of our own, and the operations that somebody uses.

The one implementation is ``accord.github.adapter``; the local GitHub of ``accord.sandbox`` is reached through it
as well, over HTTP, so there is no second way in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from accord.kernel.errors import Refused, Stopped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Identity:
    """Who writes with our token, and whose markers count: our own, and those of a login that the user vouches for.

    An installation token cannot ask who it is; its login is the one the user gives, else the runner's.
    """

    login: str
    is_person: bool
    vouched: str = ""

    def counts(self, author: str | None) -> bool:
        """Tell whether what this author wrote is ours. GitHub's logins have no case."""
        return (author or "").lower() in {self.login.lower(), self.vouched.lower()} - {""}


@dataclass(frozen=True, slots=True)
class Repository:
    """What must be known of a repository before anything is written to it.

    ``may_triage`` and ``may_push`` are what GitHub says of our role, which counts for people only; None where it says
    nothing.
    """

    full_name: str
    is_archived: bool
    has_issues: bool
    default_branch: str
    may_triage: bool | None
    may_push: bool | None = None


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue, or a pull request in its role as one.

    ``id`` is the database id that dependencies are made with, ``number`` what people see. ``blocker_count``
    counts native blockers, open and closed; None where the server does not tell.
    """

    id: int
    number: int
    url: str
    title: str
    body: str
    labels: tuple[str, ...]
    state: str
    state_reason: str | None
    author: str
    author_is_bot: bool
    closed_by: str | None
    is_pull: bool
    created_at: datetime
    blocker_count: int | None

    @property
    def is_open(self) -> bool:
        """Whether the issue is open."""
        return self.state == "open"


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a repository; ``color`` is six hex digits in lower case."""

    name: str
    description: str
    color: str


@dataclass(slots=True)
class RequestCount:
    """Every request that went out, repeated ones too: ``read`` counts GET, ``write`` all else."""

    read: int = 0
    write: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found. ``is_complete`` is False when GitHub gave up early or holds more than it tells."""

    issues: tuple[Issue, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class IssueChange:
    """Fields to change in one request; None leaves a field as it is."""

    body: str | None = None
    labels: tuple[str, ...] | None = None
    state: str | None = None
    state_reason: str | None = None


class AnswerLost(Stopped):
    """A request that must not be repeated blindly got no answer: GitHub may or may not have carried it out."""


class NotThere(Refused):
    """GitHub answers 404 or 410, or that it has moved: there is no such thing, or none that this token may see."""


class Forbidden(Refused):
    """GitHub answers 403: this token may not do it, and so nothing like it."""


class Conflict(Refused):
    """GitHub answers 409 or 422: what is asked for does not fit what is there, or is no valid request."""


class EmptyRepository(Refused):
    """GitHub answers 409 where git data is asked for and the repository holds no commit yet."""


class GitHub(Protocol):
    """One repository on GitHub. Every method may raise Refused, or Stopped when GitHub cannot be reached."""

    @property
    def requests(self) -> RequestCount:
        """How many requests went out so far."""
        ...

    def identity(self) -> Identity:
        """Ask who we are."""
        ...

    def repository(self) -> Repository:
        """Ask what the repository is."""
        ...

    def server_time(self) -> datetime:
        """Return the time by GitHub's clock as of its last answer."""
        ...

    def issue(self, number: int) -> Issue | None:
        """Read one issue or pull request; None when there is none, or it was moved away."""
        ...

    def issues(self, *, state: str = "all") -> Iterator[Issue]:
        """List issues and pull requests, newest first, page by page as they are consumed."""
        ...

    def search(self, word: str) -> Found:
        """Search the bodies of issues for one word. Lags behind; see ``limits.SEARCH_LAG_SECONDS``."""
        ...

    def create_issue(self, title: str, body: str, labels: Sequence[str]) -> Issue:
        """Create an issue. Raises AnswerLost when it is unknown whether it was created."""
        ...

    def change_issue(self, number: int, change: IssueChange) -> Issue:
        """Change an issue in one request; safe to repeat."""
        ...

    def replace_labels(self, number: int, labels: Sequence[str]) -> None:
        """Replace all labels in one request; safe to repeat."""
        ...

    def blockers(self, number: int) -> list[Issue]:
        """List what blocks an issue. Raises NotThere where the server has no dependencies."""
        ...

    def add_blocker(self, number: int, blocker_id: int) -> Issue:
        """Add a native dependency by the blocker's database id. Raises AnswerLost, NotThere."""
        ...

    def labels(self) -> list[Label]:
        """List all labels."""
        ...

    def label(self, name: str) -> Label | None:
        """Read one label by its name, without case; None when there is none."""
        ...

    def create_label(self, label: Label) -> Label:
        """Create a label. Raises AnswerLost when it is unknown whether it was created."""
        ...

    def change_label(self, name: str, label: Label) -> None:
        """Rename or redraw a label; issues keep it."""
        ...

    def delete_label(self, name: str) -> None:
        """Delete a label; one that is gone counts as deleted."""
        ...


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a repository. The token is never printed."""

    repository: str
    token: str = field(repr=False)
    api_url: str = "https://api.github.com"
    identity: str = ""
    max_wait_seconds: float = 900.0
