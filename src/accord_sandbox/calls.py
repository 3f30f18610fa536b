"""A request as a handler sees it: settings, caller and permissions, repository, and common checks.

A user's right is a role on the repository, an installation's (GITHUB_TOKEN) a permission for an area; a fine-grained
personal token needs both. Source: https://docs.github.com/organizations/managing-user-access-to-your-organizations-repositories
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from accord.core.clock import Clock, SystemClock
from accord_sandbox.database import fetch
from accord_sandbox.responses import DOCS, ApiResponse, Fields, PageRequest, Refusal, not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord_sandbox.database import Connection, Row
    from accord_sandbox.git_storage import BareRepository, GitStorage

TokenKind = Literal["user", "fine-grained", "installation"]
Area = Literal["issues", "pull_requests", "contents", "metadata", "checks", "statuses", "actions", "workflows"]
MOST_DIGITS = 18
"""Digits that SQLite's integers can hold."""


@dataclass(frozen=True)
class RateLimits:
    """GitHub's documented limits. A test may lower one to reach it sooner.

    Source: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    user_per_hour: int = 5000
    installation_per_hour: int = 1000
    anonymous_per_hour: int = 60
    search_per_minute: int = 30
    points_per_minute: int = 900
    content_per_minute: int = 80
    content_per_hour: int = 500


@dataclass(frozen=True)
class SandboxSettings:
    """Behaviour of one local GitHub. ``rate_limits=None`` turns all limits off."""

    clock: Clock = field(default_factory=SystemClock)
    rate_limits: RateLimits | None = field(default_factory=RateLimits)
    search_lag_seconds: float = 10.0
    latency_seconds: float = 0.0
    native_dependencies: bool = True


class AccessLevel(IntEnum):
    """GitHub's repository roles, weakest first; permissions of a token use the same scale."""

    NONE = 0
    READ = 1
    TRIAGE = 2
    WRITE = 3
    MAINTAIN = 4
    ADMIN = 5

    @classmethod
    def named(cls, name: str) -> AccessLevel:
        """Return the level of that name, in any case."""
        return cls[name.upper()]

    def permissions(self) -> dict[str, bool]:
        """Return the ``permissions`` of a repository or collaborator document."""
        levels = {"admin": 5, "maintain": 4, "push": 3, "triage": 2, "pull": 1}
        return {name: self >= level for name, level in levels.items()}


@dataclass(frozen=True)
class Actor:
    """The owner of a token. ``repositories`` is None when the token reaches all that the owner reaches."""

    user_id: int
    login: str
    token: str = field(repr=False)
    kind: TokenKind
    permissions: Mapping[str, str]
    repositories: frozenset[str] | None

    @property
    def may_write_workflows(self) -> bool:
        """Whether the token may write workflow files; GITHUB_TOKEN never has the permission."""
        return self.kind == "user" or self.permissions.get("workflows") in ("write", "admin")


@dataclass(frozen=True)
class Grant:
    """The rights of an actor (None: anonymous) in one repository."""

    actor: Actor | None
    role: AccessLevel
    private: bool
    in_reach: bool

    @property
    def sees(self) -> bool:
        """Whether the repository exists at all for this actor."""
        return not self.private or self.role >= AccessLevel.READ

    def level(self, area: Area) -> AccessLevel:
        """Return the access level in an area of the repository."""
        if self.actor is None or self.actor.kind == "user":
            return self.role
        granted = AccessLevel.NONE
        if self.in_reach:
            granted = AccessLevel.named(self.actor.permissions.get(area, "none"))
        if not self.private:
            granted = max(granted, AccessLevel.READ)
        return granted if self.actor.kind == "installation" else min(granted, self.role)

    def may(self, area: Area, level: AccessLevel, *, pull: bool = False) -> bool:
        """Tell whether the actor has the level; on a pull request the pull-request permission counts as well."""
        return self.level(area) >= level or (pull and self.level("pull_requests") >= level)

    def may_comment(self, *, pull: bool = False) -> bool:
        """Tell whether the actor may open issues and comment: any signed-in reader, any token with the permission."""
        return self._may_talk(("issues", "pull_requests") if pull else ("issues",))

    def may_review(self) -> bool:
        """Tell whether the actor may review: any signed-in reader, any token with ``pull_requests: write``."""
        return self._may_talk(("pull_requests",))

    def denial(self) -> Refusal:
        """Return the 403 that fits the kind of token, a 401 for an anonymous caller."""
        return denial(self.actor)

    def _may_talk(self, areas: Sequence[str]) -> bool:
        if self.actor is None or self.role < AccessLevel.READ:
            return False
        granted = any(self.actor.permissions.get(area) in ("write", "admin") for area in areas)
        return self.actor.kind == "user" or (self.in_reach and granted)


def denial(actor: Actor | None) -> Refusal:
    """Return GitHub's refusal of an action on something that the actor can see."""
    if actor is None:
        return Refusal(401, "Requires authentication")
    messages = {
        "installation": "Resource not accessible by integration",
        "fine-grained": "Resource not accessible by personal access token",
        "user": "Must have admin rights to Repository.",
    }
    return Refusal(403, messages[actor.kind])


def authenticate(connection: Connection, header: str | None) -> Actor | None:
    """Return the sender of a request, None without a header; an unknown token is a 401."""
    if not header:
        return None
    row = fetch(
        connection,
        "SELECT tokens.*, users.login FROM tokens JOIN users ON users.id = tokens.user_id WHERE token = ?",
        _token_of(header),
    )
    if row is None:
        raise Refusal(401, "Bad credentials", docs=DOCS.rstrip("/"))
    reach = None if row["repositories"] is None else frozenset(json.loads(row["repositories"]))
    return Actor(row["user_id"], row["login"], row["token"], row["kind"], json.loads(row["permissions"]), reach)


def grant_of(connection: Connection, actor: Actor | None, repository: Row) -> Grant:
    """Return the rights of the actor in the repository."""
    reach = None if actor is None else actor.repositories
    in_reach = actor is not None and (reach is None or repository["full_name"].lower() in reach)
    role = AccessLevel.NONE if repository["private"] else AccessLevel.READ
    if actor is not None and in_reach:
        is_app = actor.kind == "installation"
        role = AccessLevel.READ if is_app else role_of(connection, actor.user_id, repository)
    return Grant(actor, role, bool(repository["private"]), in_reach)


def role_of(connection: Connection, user_id: int, repository: Row) -> AccessLevel:
    """Return a user's role: the owner is admin, a collaborator has the given one, everyone reads public ones."""
    if user_id == repository["owner_id"]:
        return AccessLevel.ADMIN
    statement = "SELECT role FROM collaborators WHERE repository_id = ? AND user_id = ?"
    row = fetch(connection, statement, repository["id"], user_id)
    if row is not None:
        return AccessLevel.named(row["role"])
    return AccessLevel.NONE if repository["private"] else AccessLevel.READ


def _token_of(header: str) -> str:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return rest.strip()
    try:
        user, _, password = base64.b64decode(rest).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password or user


@dataclass
class Call:
    """One API request inside its transaction.

    ``api`` and ``web`` are the roots of the links in payloads, built from the request's Host. ``now`` is the time of
    the request in seconds since the epoch.
    """

    db: Connection
    settings: SandboxSettings
    now: float
    api: str
    web: str
    path: str
    query: Mapping[str, str]
    storage: GitStorage
    document: Any = None
    actor: Actor | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def fields(self) -> Fields:
        """The request's JSON object."""
        return Fields(self.document)

    @cached_property
    def page(self) -> PageRequest:
        """The page of a list that the client wants."""
        return PageRequest.of(self.query)

    @cached_property
    def repository(self) -> Row:
        """The repository of the path; a 404 when this token cannot see it."""
        row = self.fetch(
            "SELECT * FROM repositories WHERE full_name = ?", f"{self.params['owner']}/{self.params['repo']}"
        )
        if row is None or not grant_of(self.db, self.actor, row).sees:
            raise not_found()
        return row

    @cached_property
    def grant(self) -> Grant:
        """The caller's rights in the repository of the path."""
        return grant_of(self.db, self.actor, self.repository)

    @cached_property
    def bare(self) -> BareRepository:
        """The git repository of the path's repository."""
        return self.storage.open(self.repository["full_name"])

    @cached_property
    def issue(self) -> Row:
        """The issue or pull request of the path; pull requests exist even where issues are disabled."""
        row = self.fetch(
            "SELECT * FROM issues WHERE repository_id = ? AND number = ?", self.repository["id"], self.number("number")
        )
        if row is None or not row["is_pull"]:
            self.check_issues()
        if row is None:
            raise not_found()
        if not self.grant.may("issues", AccessLevel.READ, pull=bool(row["is_pull"])):
            raise self.grant.denial()
        return row

    @property
    def user(self) -> Actor:
        """The caller; a 401 for an anonymous one."""
        if self.actor is None:
            raise denial(None)
        return self.actor

    @property
    def repository_url(self) -> str:
        """The API address of the path's repository."""
        return f"{self.api}/repos/{self.repository['full_name']}"

    @property
    def repository_page(self) -> str:
        """The page of the path's repository."""
        return f"{self.web}/{self.repository['full_name']}"

    def number(self, name: str) -> int:
        """Return a number of the path; a 404 for one that is too large."""
        digits = self.params[name]
        if len(digits) > MOST_DIGITS:
            raise not_found()
        return int(digits)

    def fetch(self, statement: str, *values: Any) -> Row | None:
        """Return the first row of a query, or None."""
        return fetch(self.db, statement, *values)

    def fetch_all(self, statement: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        return self.db.execute(statement, values).fetchall()

    def count(self, table: str, *values: Any) -> int:
        """Return the number of rows; ``table`` is the part of the statement after FROM."""
        return int(self.db.execute(f"SELECT count(*) FROM {table}", values).fetchone()[0])

    def links(self, total: int) -> dict[str, str]:
        """Return the headers with links to the other pages of this list."""
        return self.page.links(self.api + self.path, self.query, total)

    def list_response(
        self, rows: Sequence[Any], payloads: Callable[[Sequence[Any]], Any], key: str = ""
    ) -> ApiResponse:
        """Answer with the requested page of all ``rows``; with ``key`` as an object that counts them."""
        found = payloads(self.page.cut(rows))
        body = {"total_count": len(rows), key: found} if key else found
        return ApiResponse(200, body, self.links(len(rows)))

    def check_issues(self) -> None:
        """Refuse where the repository has no issues, or the token may not read them."""
        if not self.repository["has_issues"]:
            raise Refusal(410, "Issues are disabled for this repo", docs="https://docs.github.com/v3/issues/")
        if not self.grant.may("issues", AccessLevel.READ, pull=True):
            raise self.grant.denial()

    def check_writable(self) -> None:
        """Refuse anonymous changes, and all changes in an archived repository."""
        _ = self.user, self.repository
        if self.repository["archived"]:
            raise Refusal(403, "Repository was archived so is read-only.")

    def require_read(self, area: Area) -> None:
        """Refuse reading that the token does not allow."""
        if not self.grant.may(area, AccessLevel.READ):
            raise self.grant.denial()

    def require(self, area: Area, level: AccessLevel, *, pull: bool = False) -> None:
        """Refuse a change that the token does not allow."""
        self.check_writable()
        if not self.grant.may(area, level, pull=pull):
            raise self.grant.denial()

    def require_on_issue(self, level: AccessLevel) -> None:
        """Refuse a change to the issue of the path that the token does not allow."""
        self.require("issues", level, pull=bool(self.issue["is_pull"]))


def locked() -> Refusal:
    """Return the 403 for a comment on a locked conversation."""
    docs = DOCS.replace("/rest/", "/articles/locking-conversations/")
    return Refusal(403, "Unable to create comment because issue is locked.", docs=docs)
