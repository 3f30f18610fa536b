"""GitHub's objects as small types of our own, and the errors of requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from accord.core.errors import Refused, Stopped
from accord.core.frozen import Frozen


class Identity(Frozen):
    """The login that writes with our token, and the logins whose markers count: it, and those that the user names.

    An installation token cannot ask who it is; its login is the one the user gives, else the runner's.
    """

    login: str
    is_person: bool
    others: tuple[str, ...] = ()

    def counts(self, author: str | None) -> bool:
        """Return whether an author is us. GitHub's logins have no case."""
        return bool(author) and (author or "").lower() in {login.lower() for login in (self.login, *self.others)}


class Repository(Frozen):
    """The facts of a repository that writing to it depends on."""

    full_name: str
    is_archived: bool
    has_issues: bool
    default_branch: str
    may_triage: bool | None  # as GitHub says of our role, which counts for people only; None where it says nothing
    may_push: bool | None = None  # likewise
    is_private: bool | None = None


class Issue(Frozen):
    """An issue, or a pull request in its role as one."""

    id: int  # of the database; dependencies are made with it
    number: int  # seen by people
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
    blocker_count: int | None  # native ones, open and closed; None where the server does not tell
    assignees: tuple[str, ...] = ()
    open_blocker_count: int | None = None  # None where the server does not tell
    updated_at: datetime | None = None
    closed_at: datetime | None = None
    merged_at: datetime | None = None  # of a pull request
    type_name: str | None = None
    has_parent: bool = False
    milestone: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the issue is open."""
        return self.state == "open"


class Label(Frozen):
    """A label of a repository; ``color`` is six hex digits in lower case."""

    name: str
    description: str
    color: str


class Milestone(Frozen):
    """A milestone of a repository."""

    number: int
    title: str
    is_open: bool


@dataclass(slots=True)
class RequestCount:
    """Every request that went out, repeated ones too."""

    read: int = 0  # GET
    write: int = 0  # all else


class Found(Frozen):
    """The results of a search. ``is_complete`` is False when GitHub gave up early or holds more than it tells."""

    issues: tuple[Issue, ...]
    is_complete: bool


class IssueChange(Frozen):
    """Fields to change in one request; None leaves a field as it is."""

    body: str | None = None
    labels: tuple[str, ...] | None = None
    state: str | None = None
    state_reason: str | None = None
    title: str | None = None
    type_name: str | None = None
    milestone: int | None = None


class AnswerLost(Stopped):
    """A request that must not be repeated blindly got no answer: GitHub may or may not have carried it out."""


class NotThere(Refused):
    """GitHub answers 404 or 410, or that it has moved: the object does not exist, or this token may not see it."""


class Forbidden(Refused):
    """GitHub answers 403: this token may not do it, and so nothing like it."""


class PullsNotAllowed(Forbidden):
    """GitHub answers 403: the repository does not let GitHub Actions create pull requests."""


class Conflict(Refused):
    """GitHub answers 409 or 422: the request conflicts with the current state, or is invalid."""


class EmptyRepository(Refused):
    """GitHub answers 409 where git data is asked for and the repository holds no commit yet."""


class Access(Frozen):
    """How to reach a repository. The token is never printed."""

    repository: str
    token: str = field(repr=False)
    api_url: str = "https://api.github.com"
    identity: str = ""  # logins, that of the token first
    max_wait_seconds: float = 900.0
    read_only: str = ""  # why the caller must not write: a request that writes is a bug then; empty where it may

    @property
    def server_url(self) -> str:
        """The address of GitHub's pages and of git."""
        return server_of(self.api_url)


def server_of(api_url: str) -> str:
    """Return the address of the pages and of git that belong to an API.

    Source: GitHub documentation, "Network access for GHE.com" and "GitHub Enterprise Server, REST API".
    """
    url = urlsplit(api_url)
    host = url.netloc.lower()
    if host == "api.github.com" or (host.startswith("api.") and host.endswith(".ghe.com")):
        return f"{url.scheme}://{host.removeprefix('api.')}"
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/').removesuffix('/api/v3')}"


class Pull(Frozen):
    """A pull request."""

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
    head_repository: str  # the owner/name its branch lives in; empty when that is gone
    base_branch: str
    base_sha: str
    merge_commit: str = ""  # on the base, empty until it is merged
    updated_at: datetime | None = None  # its last change, a push included
    is_mergeable: bool | None = None
    """None in listings and until GitHub computed it; False for conflicts, and behind a base that it must contain."""
    created_at: datetime | None = None
    merged_at: datetime | None = None
    closed_at: datetime | None = None
    default_branch: str = ""  # of the repository


class PullFile(Frozen):
    """A file of a diff."""

    path: str
    status: str  # GitHub's word (added, removed, modified, renamed, …)
    previous_path: str  # what it was called before
    patch: str | None  # its hunks, None where GitHub shows none: binary, too large, or not changed


class Review(Frozen):
    """A review as GitHub lists it. ``state`` is PENDING, COMMENTED, APPROVED, CHANGES_REQUESTED or DISMISSED."""

    id: int
    url: str
    author: str
    author_is_bot: bool
    body: str
    state: str
    commit: str
    submitted_at: datetime | None = None


class InlineComment(Frozen):
    """A comment on one line of a diff; ``side`` is RIGHT for the new version of the file, LEFT for the old one."""

    path: str
    line: int
    side: str
    body: str


class NewReview(Frozen):
    """A review to post in one request. ``event`` is APPROVE, REQUEST_CHANGES or COMMENT."""

    event: str
    body: str
    commit: str
    comments: tuple[InlineComment, ...]


class AnchorRefused(Refused):
    """A comment has no place in the diff. GitHub does not say which one, and keeps nothing of the review."""


class VerdictRefused(Refused):
    """Our identity may not approve or request changes here; it may still comment."""
