"""A request as a handler sees it: who asks, for what, on which data, and the few questions every handler has."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from accord_sandbox.access import Area, AccessLevel, denial, grant
from accord_sandbox.answers import DOCS, PageRequest, Refusal, not_found
from accord_sandbox.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.access import Actor, Grant
    from accord_sandbox.bare import BareRepository, GitStorage
    from accord_sandbox.database import Connection, Row
    from accord_sandbox.rates import Meter
    from accord_sandbox.settings import SandboxSettings


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
