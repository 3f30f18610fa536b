"""GitHub's objects as small types of our own, and the errors of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from accord.core.clock import parse_timestamp
from accord.core.errors import Refused, Stopped
from accord.core.frozen import Frozen, json_field


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


def _role_reader(*names: str) -> Callable[[Mapping[str, Any]], bool | None]:
    return lambda role: any(role.get(name) for name in (*names, "push", "maintain", "admin")) if role else None


class Repository(Frozen):
    """The facts of a repository that writing to it depends on (schema "full-repository")."""

    full_name: str = json_field()
    is_archived: bool = json_field("archived", bool, empty=False)
    has_issues: bool = json_field(read=bool, empty=True)
    default_branch: str = json_field(empty="main")
    # as GitHub says of our role, which counts for people only; None where it says nothing
    may_triage: bool | None = json_field("permissions", _role_reader("triage"), empty=None)
    may_push: bool | None = json_field("permissions", _role_reader(), default=None)
    is_private: bool | None = json_field("private", default=None)


def _label_names(labels: list[Any]) -> tuple[str, ...]:
    """Return the names of labels in lower case: GitHub ignores their case, also in requests that set them."""
    names = (label if isinstance(label, str) else label["name"] for label in labels)
    return tuple(name.lower() if name.isascii() else name for name in names)


class Issue(Frozen):
    """An issue, or a pull request in its role as one (schemas "issue" and "issue-search-result-item")."""

    id: int = json_field()  # of the database; dependencies are made with it
    number: int = json_field()  # seen by people
    url: str = json_field("html_url")
    title: str = json_field()
    body: str = json_field(empty="")
    labels: tuple[str, ...] = json_field(read=_label_names)
    state: str = json_field()
    state_reason: str | None = json_field(empty=None)
    author: str = json_field("user.login", empty="")
    author_is_bot: bool = json_field("user.type", "Bot".__eq__, empty=False)
    closed_by: str | None = json_field("closed_by.login", empty=None)
    is_pull: bool = json_field("pull_request", lambda _: True, empty=False)
    created_at: datetime = json_field(read=parse_timestamp)
    # native ones, open and closed; None where the server does not tell
    blocker_count: int | None = json_field("issue_dependencies_summary.total_blocked_by", empty=None)
    assignees: tuple[str, ...] = json_field(read=lambda people: tuple(each["login"] for each in people), default=())
    open_blocker_count: int | None = json_field("issue_dependencies_summary.blocked_by", default=None)  # likewise
    updated_at: datetime | None = json_field(read=parse_timestamp, default=None)
    closed_at: datetime | None = json_field(read=parse_timestamp, default=None)
    merged_at: datetime | None = json_field("pull_request.merged_at", parse_timestamp, default=None)
    type_name: str | None = json_field("type.name", default=None)
    has_parent: bool = json_field("parent_issue_url", bool, default=False)
    milestone: int | None = json_field("milestone.number", default=None)

    @property
    def is_open(self) -> bool:
        """Whether the issue is open."""
        return self.state == "open"


class Label(Frozen):
    """A label of a repository; ``color`` is six hex digits in lower case."""

    name: str = json_field()
    description: str = json_field(empty="")
    color: str = json_field(read=str.lower)


class Milestone(Frozen):
    """A milestone of a repository."""

    number: int = json_field()
    title: str = json_field()
    is_open: bool = json_field("state", "open".__eq__)


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
    """A pull request (schemas "pull-request" and "pull-request-simple")."""

    number: int = json_field()
    url: str = json_field("html_url")
    title: str = json_field()
    body: str = json_field(empty="")
    state: str = json_field()
    is_merged: bool = json_field("merged_at", bool, empty=False)
    is_draft: bool = json_field("draft", bool, empty=False)
    is_locked: bool = json_field("locked", bool, empty=False)
    author: str = json_field("user.login", empty="")
    labels: tuple[str, ...] = json_field(read=_label_names, empty=())
    head_branch: str = json_field("head.ref")
    head_sha: str = json_field("head.sha")
    head_repository: str = json_field("head.repo.full_name", empty="")  # where its branch is; empty when that is gone
    base_branch: str = json_field("base.ref")
    base_sha: str = json_field("base.sha")
    merge_commit: str = json_field("merge_commit_sha", default="")  # on the base, empty until it is merged
    updated_at: datetime | None = json_field(read=parse_timestamp, default=None)  # its last change, a push included
    is_mergeable: bool | None = json_field("mergeable", default=None)
    """None in listings and until GitHub computed it; False for conflicts, and behind a base that it must contain."""
    created_at: datetime | None = json_field(read=parse_timestamp, default=None)
    merged_at: datetime | None = json_field(read=parse_timestamp, default=None)
    closed_at: datetime | None = json_field(read=parse_timestamp, default=None)
    default_branch: str = json_field("base.repo.default_branch", default="")  # of the repository


class PullFile(Frozen):
    """A file of a diff (schema "diff-entry")."""

    path: str = json_field("filename")
    status: str = json_field()  # GitHub's word (added, removed, modified, renamed, …)
    previous_path: str = json_field("previous_filename", empty="")  # what it was called before
    patch: str | None = json_field(empty=None)  # its hunks, None where GitHub shows none: binary, too large, unchanged


class Review(Frozen):
    """A review as GitHub lists it. ``state`` is PENDING, COMMENTED, APPROVED, CHANGES_REQUESTED or DISMISSED."""

    id: int = json_field()
    url: str = json_field("html_url")
    author: str = json_field("user.login", empty="")
    author_is_bot: bool = json_field("user.type", "Bot".__eq__, empty=False)
    body: str = json_field(empty="")
    state: str = json_field()
    commit: str = json_field("commit_id", empty="")
    submitted_at: datetime | None = json_field(read=parse_timestamp, default=None)


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
