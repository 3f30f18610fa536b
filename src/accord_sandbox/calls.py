"""A request as a handler sees it: who asks, for what, on which data, and the few questions every handler has."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from accord.core.clock import Clock, SystemClock
from accord_sandbox.responses import DOCS, Fields, PageRequest, Refusal, not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.database import Connection, Row
    from accord_sandbox.git_storage import BareRepository, GitStorage
    from accord_sandbox.rates import Meter


TokenKind = Literal["user", "fine-grained", "installation"]
Area = Literal[
    "issues", "pull_requests", "contents", "metadata", "checks", "statuses", "actions", "administration", "workflows"
]


class AccessLevel(IntEnum):
    """GitHub's repository roles, weakest first; a permission of a token is compared on the same scale."""

    NONE = 0
    READ = 1
    TRIAGE = 2
    WRITE = 3
    MAINTAIN = 4
    ADMIN = 5

    @classmethod
    def named(cls, name: str) -> AccessLevel:
        """Return the role of that name, in any case."""
        return cls[name.upper()]


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
        """Whether workflow files may come from this token; GITHUB_TOKEN never has the permission."""
        return self.kind == "user" or self.permissions.get("workflows") in ("write", "admin")


@dataclass(frozen=True)
class Grant:
    """What an actor (None: nobody signed in) may do in one repository."""

    actor: Actor | None
    role: AccessLevel
    private: bool
    in_reach: bool

    @property
    def sees(self) -> bool:
        """Whether the repository exists at all for this actor."""
        return not self.private or self.role >= AccessLevel.READ

    def level(self, area: Area) -> AccessLevel:
        """Return how far the actor may go in an area of the repository."""
        if self.actor is None or self.actor.kind == "user":
            return self.role
        granted = AccessLevel.named(self.actor.permissions.get(area, "none")) if self.in_reach else AccessLevel.NONE
        if not self.private:
            granted = max(granted, AccessLevel.READ)
        return granted if self.actor.kind == "installation" else min(granted, self.role)

    def may(self, area: Area, role: AccessLevel, *, pull: bool = False) -> bool:
        """Tell whether the level is reached; on a pull request the pull-request permission serves as well."""
        return self.level(area) >= role or (pull and self.level("pull_requests") >= role)

    def may_speak(self, *, pull: bool = False) -> bool:
        """Tell whether the actor may open issues and comment: any signed-in reader, any token with the permission."""
        if self.actor is None:
            return False
        if self.actor.kind == "user":
            return self.role >= AccessLevel.READ
        areas: tuple[Area, ...] = ("issues", "pull_requests") if pull else ("issues",)
        granted = (self.actor.permissions.get(area) in ("write", "admin") for area in areas)
        return self.in_reach and self.role >= AccessLevel.READ and any(granted)

    def may_review(self) -> bool:
        """Tell whether the actor may review: any signed-in reader, any token with ``pull_requests: write``."""
        if self.actor is None:
            return False
        granted = self.actor.kind == "user" or self.actor.permissions.get("pull_requests") in ("write", "admin")
        return granted and self.role >= AccessLevel.READ and (self.actor.kind == "user" or self.in_reach)

    def refusal(self) -> Refusal:
        """Return the 403 in the words that fit the kind of token, a 401 for nobody."""
        return denial(self.actor)


def denial(actor: Actor | None) -> Refusal:
    """Return GitHub's refusal of something the actor may see but not do."""
    if actor is None:
        return Refusal(401, "Requires authentication")
    words = {
        "installation": "Resource not accessible by integration",
        "fine-grained": "Resource not accessible by personal access token",
        "user": "Must have admin rights to Repository.",
    }
    return Refusal(403, words[actor.kind])


def authenticate(connection: Connection, header: str | None) -> Actor | None:
    """Return who sent the request; no header means nobody, an unknown token is a 401."""
    if not header:
        return None
    row = connection.execute(
        "SELECT tokens.*, users.login FROM tokens JOIN users ON users.id = tokens.user_id WHERE token = ?",
        (_token(header),),
    ).fetchone()
    if row is None:
        raise Refusal(401, "Bad credentials", docs=DOCS.rstrip("/"))
    reach = None if row["repositories"] is None else frozenset(json.loads(row["repositories"]))
    return Actor(row["user_id"], row["login"], row["token"], row["kind"], json.loads(row["permissions"]), reach)


def grant(connection: Connection, actor: Actor | None, repository: Row) -> Grant:
    """Work out what the actor may do in the repository."""
    in_reach = actor is not None and (
        actor.repositories is None or repository["full_name"].lower() in actor.repositories
    )
    private = bool(repository["private"])
    return Grant(actor, _role(connection, actor, repository, in_reach), private, in_reach)


def role_of(connection: Connection, user_id: int, repository: Row) -> AccessLevel:
    """Return a user's role: the owner's is admin, a collaborator's as given, anybody reads what is public."""
    if user_id == repository["owner_id"]:
        return AccessLevel.ADMIN
    row = connection.execute(
        "SELECT role FROM collaborators WHERE repository_id = ? AND user_id = ?", (repository["id"], user_id)
    ).fetchone()
    if row is not None:
        return AccessLevel.named(row["role"])
    return AccessLevel.NONE if repository["private"] else AccessLevel.READ


def _role(connection: Connection, actor: Actor | None, repository: Row, in_reach: bool) -> AccessLevel:
    public = AccessLevel.NONE if repository["private"] else AccessLevel.READ
    if actor is None:
        return public
    if actor.kind == "installation":
        return AccessLevel.READ if in_reach else public
    return role_of(connection, actor.user_id, repository) if in_reach else public


def _token(header: str) -> str:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return rest.strip()
    try:
        user, _, password = base64.b64decode(rest).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password or user


MOST_DIGITS = 18
"""What fits into SQLite's integers."""


@dataclass
class Call:
    """One API request inside its transaction.

    ``api`` and ``web`` are the roots of the two kinds of links in payloads, built from the Host that was asked, so that
    a client is sent back to where it came from. ``now`` is the moment of the request in seconds since the epoch.
    ``accept`` is the header of that name.
    """

    db: Connection
    settings: SandboxSettings
    now: float
    api: str
    web: str
    path: str
    query: Mapping[str, str]
    bares: GitStorage
    accept: str = ""
    document: Any = None
    actor: Actor | None = None
    meter: Meter | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def fields(self) -> Fields:
        """The request's JSON object."""
        return Fields(self.document)

    @cached_property
    def page(self) -> PageRequest:
        """The part of a list that is asked for."""
        return PageRequest.of(self.query)

    @cached_property
    def repository(self) -> Row:
        """The repository of the path; a 404 when it is not there for this token."""
        name = f"{self.params['owner']}/{self.params['repo']}"
        row: Row | None = self.db.execute("SELECT * FROM repositories WHERE full_name = ?", (name,)).fetchone()
        if row is None or not grant(self.db, self.actor, row).sees:
            raise not_found()
        return row

    @cached_property
    def grant(self) -> Grant:
        """What the caller may do in the repository of the path."""
        return grant(self.db, self.actor, self.repository)

    @cached_property
    def bare(self) -> BareRepository:
        """The git repository of the path's repository."""
        return self.bares.open(self.repository["full_name"])

    @cached_property
    def issue(self) -> Row:
        """The issue or pull request of the path; a pull request is there even where issues are disabled."""
        row: Row | None = self.db.execute(
            "SELECT * FROM issues WHERE repository_id = ? AND number = ?",
            (self.repository["id"], self.identifier("number")),
        ).fetchone()
        if row is None or not row["is_pull"]:
            self.check_issues()
        if row is None:
            raise not_found()
        if not self.grant.may("issues", AccessLevel.READ, pull=bool(row["is_pull"])):
            raise self.grant.refusal()
        return row

    @property
    def user(self) -> Actor:
        """Who calls; a 401 for nobody."""
        if self.actor is None:
            raise denial(None)
        return self.actor

    def identifier(self, name: str) -> int:
        """Return a number of the path; a 404 for one that nothing can have."""
        digits = self.params[name]
        if len(digits) > MOST_DIGITS:
            raise not_found()
        return int(digits)

    def links(self, total: int) -> dict[str, str]:
        """Return the headers that lead to the other pages of this list."""
        return self.page.links(self.api + self.path, self.query, total)

    def check_issues(self) -> None:
        """Refuse where the repository has no issues, or the token may not read them."""
        if not self.repository["has_issues"]:
            raise Refusal(410, "Issues are disabled for this repo", docs="https://docs.github.com/v3/issues/")
        if not self.grant.may("issues", AccessLevel.READ, pull=True):
            raise self.grant.refusal()

    def check_writable(self) -> None:
        """Refuse changes by nobody, and in an archived repository by anybody."""
        _ = self.user, self.repository
        if self.repository["archived"]:
            raise Refusal(403, "Repository was archived so is read-only.")

    def require(self, area: Area, role: AccessLevel, *, pull: bool = False) -> None:
        """Refuse a change that the token may not make."""
        self.check_writable()
        if not self.grant.may(area, role, pull=pull):
            raise self.grant.refusal()

    def require_on_issue(self, role: AccessLevel) -> None:
        """Refuse a change to the issue of the path that the token may not make."""
        pull = bool(self.issue["is_pull"])
        self.require("issues", role, pull=pull)

    def check_readable_by_writers(self) -> None:
        """Refuse what GitHub shows only to those who may push."""
        _ = self.user, self.repository
        if not self.grant.may("contents", AccessLevel.WRITE):
            raise Refusal(403, "Must have push access to view collaborator permission.")

    def locked_docs(self) -> str:
        """Return where GitHub points when a conversation is locked."""
        return DOCS.replace("/rest/", "/articles/locking-conversations/")


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
    """What a caller may choose. ``rate_limits=None`` turns all limits off."""

    clock: Clock = field(default_factory=SystemClock)
    rate_limits: RateLimits | None = field(default_factory=RateLimits)
    search_lag_seconds: float = 10.0
    latency_seconds: float = 0.0
    native_dependencies: bool = True
