"""Who calls, and what the token lets them do.

A user's right is a role on the repository, an installation's (GITHUB_TOKEN) a permission an area; a fine-grained
personal token needs both. Source: https://docs.github.com/organizations/managing-user-access-to-your-organizations-repositories
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from accord_sandbox.answers import DOCS, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.database import Connection, Row

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
