"""Search for issues and pull requests, some seconds late.

Docs: https://docs.github.com/rest/search/search

Search finds an item once it is older than ``SandboxSettings.search_lag_seconds``. It knows words, phrases in quotes
and four qualifiers: ``repo:``, ``is:issue``, ``is:pr``, and ``in:title,body``. It refuses GitHub's other qualifiers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import grant_of
from accord_sandbox.database import words
from accord_sandbox.repositories import find_repository
from accord_sandbox.responses import ApiResponse, Refusal
from accord_sandbox.routing import route

if TYPE_CHECKING:
    from accord_sandbox.calls import Call

MOST_RESULTS = 1000
MOST_CHARACTERS = 256
"""Characters of the search words; qualifiers do not count."""

_TERM = re.compile(r'(?P<not>-?)(?:(?P<key>[A-Za-z-]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
_TYPES = {"issue": "is_pull = 0", "pr": "is_pull = 1", "pull-request": "is_pull = 1"}
_SOURCES = ("title", "body")
_NOT_HERE = frozenset(
    [
        "archived",
        "assignee",
        "author",
        "base",
        "closed",
        "commenter",
        "comments",
        "created",
        "draft",
        "head",
        "involves",
        "label",
        "language",
        "linked",
        "mentions",
        "merged",
        "milestone",
        "no",
        "org",
        "project",
        "reactions",
        "reason",
        "review",
        "sha",
        "state",
        "status",
        "team",
        "type",
        "updated",
        "user",
    ]
)
"""Qualifiers that GitHub has and the sandbox does not."""


@dataclass
class _Query:
    """A parsed search."""

    types: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    repositories: list[int] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)


@route("GET", "/search/issues", "search/search#search-issues", resource="search")
def search_issues(call: Call) -> ApiResponse:
    """Search for issues or pull requests, newest first."""
    text = call.query.get("q", "").strip()
    if not text:
        raise Refusal(422, "Validation Failed", errors=[{"resource": "Search", "field": "q", "code": "missing"}])
    query = _parse(call, text)
    if call.page.offset >= MOST_RESULTS:
        raise Refusal(422, "Only the first 1000 search results are available")
    conditions = [*query.types, "created_at <= ?"]
    values: list[Any] = [call.now - call.settings.search_lag_seconds]
    for phrase in query.phrases:
        columns = [f"{name}_words LIKE ?" for name in query.sources or _SOURCES]  # words contain neither % nor _
        conditions.append(f"({' OR '.join(columns)})")
        values += [f"%{phrase}%"] * len(columns)
    visible = query.repositories or [
        row["id"] for row in call.fetch_all("SELECT * FROM repositories") if grant_of(call.db, call.actor, row).sees
    ]
    conditions.append(f"repository_id IN ({', '.join('?' * len(visible))})")
    values += visible
    table = f"issues WHERE {' AND '.join(conditions)}"
    total = call.count(table, *values)
    size = min(call.page.size, MOST_RESULTS - call.page.offset)
    statement = f"SELECT * FROM {table} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
    rows = call.fetch_all(statement, *values, size, call.page.offset)
    items = [{**payload, "body": payload["body"] or "", "score": 1.0} for payload in payloads.issues(call, rows)]
    document = {"total_count": total, "incomplete_results": False, "search_type": "lexical", "items": items}
    return ApiResponse(200, document, call.links(min(total, MOST_RESULTS)))


def _parse(call: Call, text: str) -> _Query:
    query, length = _Query(), 0
    for term in _TERM.finditer(text):
        value = term["plain"] if term["quoted"] is None else term["quoted"]
        names = value.lower().split(",")
        if term["not"] or term["key"] in _NOT_HERE:
            raise _unsupported(term[0])
        if term["key"] == "repo":
            query.repositories.append(_repository_id(call, value))
        elif term["key"] == "is":
            if value not in _TYPES:
                raise _unsupported(term[0])
            query.types.append(_TYPES[value])
        elif term["key"] == "in":
            if not set(names) <= set(_SOURCES):
                raise _unsupported(term[0])
            query.sources += names
        else:
            written = f"{term['key']}:{value}" if term["key"] else value
            length += len(written)
            query.phrases += [found] if (found := words(written)).strip() else []
    if not query.types:
        raise Refusal(422, "Query must include 'is:issue' or 'is:pull-request'")
    if length > MOST_CHARACTERS:
        raise _invalid("The search is longer than 256 characters.")
    return query


def _repository_id(call: Call, name: str) -> int:
    row = find_repository(call.db, name)
    if row is None or not grant_of(call.db, call.actor, row).sees:
        raise _invalid(
            "The listed users and repositories cannot be searched either because the resources do not exist "
            "or you do not have permission to view them."
        )
    return int(row["id"])


def _unsupported(term: str) -> Refusal:
    return _invalid(f"The sandbox does not support `{term}`. Use words, repo:, is:issue, is:pr and in:title,body.")


def _invalid(message: str) -> Refusal:
    error = {"message": message, "resource": "Search", "field": "q", "code": "invalid"}
    return Refusal(422, "Validation Failed", errors=[error])
