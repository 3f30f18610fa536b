"""Handlers and what they are given: settings, caller and permissions, repository, common checks; and their routes.

A user's right is a role on the repository, an installation's (GITHUB_TOKEN) a permission for an area; a fine-grained
personal token needs both. Source: https://docs.github.com/organizations/managing-user-access-to-your-organizations-repositories
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal, get_args

from accord.core.clock import Clock, SystemClock
from accord_sandbox.database import Row, SqlConnection, fetch, find_repository
from accord_sandbox.git_storage import BareRepository, GitStorage
from accord_sandbox.responses import DOCS, ApiResponse, Fields, PageRequest, Refusal, not_found, token_of
from accord_sandbox.tokens import READ_POINTS, WRITE_POINTS, RateLimits, TokenOwner

PublicArea = Literal["issues", "pull_requests", "contents", "metadata", "checks", "statuses", "actions", "workflows"]
HiddenArea = Literal["administration", "secrets", "actions_variables", "environments"]
"""Areas that a token without the permission cannot read even in a public repository."""

Area = PublicArea | HiddenArea

MOST_RESULTS = 1000
_PARAMETER = re.compile(r"{(\w+)(?::(\w+))?}")
_KINDS = {"": "[^/]+", "int": "[0-9]{1,18}", "path": ".*"}
"""Patterns of parameters; SQLite's integers hold 18 digits."""


@dataclass(frozen=True)
class SandboxSettings:
    """Behaviour of one local GitHub. ``rate_limits=None`` turns all limits off.

    Without ``names_started_runs`` it refuses ``return_run_details``, like Enterprise Server before 3.21.
    """

    clock: Clock = field(default_factory=SystemClock)
    rate_limits: RateLimits | None = field(default_factory=RateLimits)
    search_lag_seconds: float = 10.0
    native_dependencies: bool = True
    native_sub_issues: bool = True
    names_started_runs: bool = True


class AccessLevel(IntEnum):
    """GitHub's repository roles, weakest first; permissions of a token use the same scale."""

    NONE = 0
    READ = 1
    TRIAGE = 2
    WRITE = 3
    MAINTAIN = 4
    ADMIN = 5

    @classmethod
    def from_name(cls, name: str) -> AccessLevel:
        """Return the level of that name, in any case."""
        return cls[name.upper()]

    def permissions(self) -> dict[str, bool]:
        """Return the ``permissions`` of a repository or collaborator document."""
        levels = {"admin": 5, "maintain": 4, "push": 3, "triage": 2, "pull": 1}
        return {name: self >= level for name, level in levels.items()}


@dataclass(frozen=True)
class Grant:
    """The rights of an actor (None: anonymous) in one repository."""

    actor: TokenOwner | None
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
            granted = AccessLevel.from_name(self.actor.permissions.get(area, "none"))
        if not self.private and area not in get_args(HiddenArea):
            granted = max(granted, AccessLevel.READ)
        return granted if self.actor.kind == "installation" else min(granted, self.role)

    def may(self, area: Area, level: AccessLevel, *, pull: bool = False) -> bool:
        """Tell whether the actor has the level; on a pull request the pull-request permission counts as well."""
        return self.level(area) >= level or (pull and self.level("pull_requests") >= level)

    def may_comment(self, *, pull: bool = False) -> bool:
        """Tell whether the actor may open issues and comment: any signed-in reader, any token with the permission."""
        return self.may_talk("issues", *(["pull_requests"] if pull else []))

    def may_talk(self, *areas: str) -> bool:
        """Tell whether the actor may write there what a reader may: any token that may write in one of the areas."""
        if self.actor is None or self.role < AccessLevel.READ:
            return False
        granted = any(self.actor.permissions.get(area) in ("write", "admin") for area in areas)
        return self.actor.kind == "user" or (self.in_reach and granted)


def denial(actor: TokenOwner | None) -> Refusal:
    """Return GitHub's refusal of an action on something that the actor can see."""
    if actor is None:
        return Refusal(401, "Requires authentication")
    messages = {
        "installation": "Resource not accessible by integration",
        "fine-grained": "Resource not accessible by personal access token",
        "user": "Must have admin rights to Repository.",
    }
    return Refusal(403, messages[actor.kind])


def authenticate(connection: SqlConnection, header: str | None) -> TokenOwner | None:
    """Return the sender of a request, None without a header; an unknown token is a 401."""
    if not header:
        return None
    statement = "SELECT tokens.*, users.login FROM tokens JOIN users ON users.id = tokens.user_id WHERE token = ?"
    row = fetch(connection, statement, token_of(header))
    if row is None:
        raise Refusal(401, "Bad credentials", docs=DOCS.rstrip("/"))
    reach = None if row["repositories"] is None else frozenset(json.loads(row["repositories"]))
    return TokenOwner(row["user_id"], row["login"], row["token"], row["kind"], json.loads(row["permissions"]), reach)


def grant_of(connection: SqlConnection, actor: TokenOwner | None, repository: Row) -> Grant:
    """Return the rights of the actor in the repository."""
    reach = None if actor is None else actor.repositories
    in_reach = actor is not None and (reach is None or repository["full_name"].lower() in reach)
    role = AccessLevel.NONE if repository["private"] else AccessLevel.READ
    if actor is not None and in_reach:
        is_app = actor.kind == "installation"
        role = AccessLevel.READ if is_app else role_of(connection, actor.user_id, repository)
    return Grant(actor, role, bool(repository["private"]), in_reach)


def role_of(connection: SqlConnection, user_id: int, repository: Row) -> AccessLevel:
    """Return a user's role: the owner is admin, a collaborator has the given one, everyone reads public ones."""
    if user_id == repository["owner_id"]:
        return AccessLevel.ADMIN
    statement = "SELECT role FROM collaborators WHERE repository_id = ? AND user_id = ?"
    row = fetch(connection, statement, repository["id"], user_id)
    if row is not None:
        return AccessLevel.from_name(row["role"])
    return AccessLevel.NONE if repository["private"] else AccessLevel.READ


@dataclass
class Call:
    """One API request inside its transaction."""

    db: SqlConnection
    settings: SandboxSettings
    now: float  # seconds since the epoch
    api: str  # root of the links in payloads, built from the request's Host
    web: str  # likewise, of pages
    path: str
    query: Mapping[str, str]
    storage: GitStorage
    document: Any = None
    content: bytes = b""  # of the request
    actor: TokenOwner | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def fields(self) -> Fields:
        """The request's JSON object."""
        if not isinstance(self.document, dict | None):
            raise Refusal(400, "Body should be a JSON object")
        return Fields(self.document or {})

    @cached_property
    def page(self) -> PageRequest:
        """The page of a list that the client wants."""
        return PageRequest.of(self.query)

    @cached_property
    def repository(self) -> Row:
        """The repository of the path; a 404 when this token cannot see it."""
        row = find_repository(self.db, f"{self.params['owner']}/{self.params['repo']}")
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
        statement = "SELECT * FROM issues WHERE repository_id = ? AND number = ?"
        row = self.fetch(statement, self.repository["id"], self.number("number"))
        if row is None or not row["is_pull"]:
            self.check_issues()
        if row is None:
            raise not_found()
        self.permit(self.grant.may("issues", AccessLevel.READ, pull=bool(row["is_pull"])))
        return row

    def check_unlocked(self, issue: Row, area: Area) -> None:
        """Refuse who may not talk in a locked conversation.

        People who may write can; the tokens of apps, such as that of a job, never.
        """
        if issue["locked"] and (
            self.user.kind == "installation" or not self.grant.may(area, AccessLevel.WRITE, pull=bool(issue["is_pull"]))
        ):
            docs = "https://docs.github.com/articles/locking-conversations/"
            raise Refusal(403, "Unable to create comment because issue is locked.", docs=docs)

    @property
    def user(self) -> TokenOwner:
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
        """Return a number of the path."""
        return int(self.params[name])

    def fetch(self, statement: str, *values: Any) -> Row | None:
        """Return the first row of a query, or None."""
        return fetch(self.db, statement, *values)

    def fetch_all(self, statement: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        return self.db.execute(statement, values).fetchall()

    def row(self, table: str, identifier: int) -> Row:
        """Return the row with this id, which exists."""
        (found,) = self.fetch_all(f"SELECT * FROM {table} WHERE id = ?", identifier)
        return found

    def select(self, statement: str, conditions: Sequence[tuple[str, Any]], order: str) -> list[Row]:
        """Return the rows that meet all conditions, each with one ``?`` for its value."""
        where = " AND ".join(condition for condition, _ in conditions)
        return self.fetch_all(f"{statement} WHERE {where} ORDER BY {order}", *(value for _, value in conditions))

    def count(self, table: str, *values: Any) -> int:
        """Return the number of rows; ``table`` is the part of the statement after FROM."""
        return int(self.db.execute(f"SELECT count(*) FROM {table}", values).fetchone()[0])

    def touch(self, issue_id: int) -> None:
        """Set when an issue was changed."""
        self.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (self.now, issue_id))

    def links(self, total: int) -> dict[str, str]:
        """Return the headers with links to the other pages of this list."""
        return self.page.links(self.api + self.path, self.query, total)

    def list_response(self, rows: Sequence[Any], payload: Callable[[Any], Any], key: str = "") -> ApiResponse:
        """Answer with the requested page of all ``rows``; with ``key`` as an object that counts them."""
        found = [payload(row) for row in self.page.cut(rows)]
        body = {"total_count": len(rows), key: found} if key else found
        return ApiResponse(200, body, self.links(len(rows)))

    def search_response(self, rows: Sequence[Any], payload: Callable[[Any], Any], **more: Any) -> ApiResponse:
        """Answer a search with the requested page; GitHub lists the first thousand results."""
        if self.page.offset >= MOST_RESULTS:
            raise Refusal(422, "Only the first 1000 search results are available")
        items = [{**payload(row), "score": 1.0} for row in self.page.cut(rows[:MOST_RESULTS])]
        document = {"total_count": len(rows), "incomplete_results": False, **more, "items": items}
        return ApiResponse(200, document, self.links(min(len(rows), MOST_RESULTS)))

    def check_issues(self) -> None:
        """Refuse where the repository has no issues, or the token may not read them."""
        if not self.repository["has_issues"]:
            raise Refusal(410, "Issues are disabled for this repo", docs="https://docs.github.com/v3/issues/")
        self.permit(self.grant.may("issues", AccessLevel.READ, pull=True))

    def check_writable(self) -> None:
        """Refuse anonymous changes, and all changes in an archived repository."""
        _ = self.user, self.repository
        if self.repository["archived"]:
            raise Refusal(403, "Repository was archived so is read-only.")

    def permit(self, allowed: bool) -> None:
        """Refuse what is not allowed, in the words for the kind of token."""
        if not allowed:
            raise denial(self.actor)

    def require_read(self, area: Area) -> None:
        """Refuse reading that the token does not allow."""
        self.permit(self.grant.may(area, AccessLevel.READ))

    def require(self, area: Area, level: AccessLevel, *, pull: bool = False) -> None:
        """Refuse a change that the token does not allow."""
        self.check_writable()
        self.permit(self.grant.may(area, level, pull=pull))

    def require_on_issue(self, level: AccessLevel) -> None:
        """Refuse a change to the issue of the path that the token does not allow."""
        self.require("issues", level, pull=bool(self.issue["is_pull"]))


Handler = Callable[[Call], ApiResponse]


ROUTES: list[Route] = []
_PATTERNS: dict[str, list[tuple[re.Pattern[str], Route]]] = {}


@dataclass
class Route:
    """One operation, which decorates its handler. A path without a leading slash is below the repository's.

    ``{name}`` stands for one part of the path, ``{name:path}`` for several, ``:int`` for digits. No two operations of
    one method may match the same path.
    """

    method: str
    path: str
    docs: str  # end of GitHub's documentation address, which refusals carry
    _: KW_ONLY
    creates: bool = False  # the limit on content-creating requests counts it
    resource: str = "core"
    only_reads: Callable[[Any], bool] | None = None  # tells of a POST by its document whether it changes nothing
    is_open: bool = False  # beside GitHub's API: no limits, and no token is needed
    setting: str = ""  # the field of SandboxSettings without which the server does not know the operation
    handler: Handler = field(init=False)

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            self.path = f"/repos/{{owner}}/{{repo}}/{self.path}".rstrip("/")

    def __call__(self, handler: Handler) -> Handler:
        """Register the handler."""
        self.handler = handler
        parts = _PARAMETER.split(self.path)
        pattern = rf"\A{re.escape(parts[0])}"
        for name, kind, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            pattern += f"(?P<{name}>{_KINDS[kind or '']}){re.escape(text)}"
        if not self.is_open:
            ROUTES.append(self)
        _PATTERNS.setdefault(self.method, []).append((re.compile(pattern), self))
        return handler

    def writes(self, document: Any) -> bool:
        """Return whether a request with this document may change something."""
        return self.method != "GET" and not (self.only_reads and self.only_reads(document))

    def costs(self, document: Any) -> dict[str, int]:
        """Return what a request takes of each budget: one of its resource, points, and what creates content."""
        content = {"content-minute": 1, "content-hour": 1} if self.creates else {}
        return {self.resource: 1, "points": WRITE_POINTS if self.writes(document) else READ_POINTS, **content}


def match_route(method: str, path: str) -> tuple[Route, Mapping[str, str]]:
    """Return the operation for a decoded path and the values of its parameters; for others, one that refuses."""
    for pattern, operation in _PATTERNS.get(method, ()):
        found = pattern.fullmatch(path)
        if found is not None:
            return operation, found.groupdict()

    def refuse(_call: Call) -> ApiResponse:
        hint = f"The sandbox has no {method} {path}. See docs/sandbox.md for its routes."
        raise Refusal(404, "Not Found", errors=[hint])

    unknown = Route(method, path, "")
    unknown.handler = refuse
    return unknown, {}
