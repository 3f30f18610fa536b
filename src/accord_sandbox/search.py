"""Search for issues and pull requests, some seconds behind the truth.

Docs: https://docs.github.com/rest/search/search

An item is found once it is older than ``Settings.search_lag_seconds``. (An edit of an older item is found at once,
which real GitHub does not promise either.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import grant
from accord_sandbox.database import words
from accord_sandbox.responses import ApiResponse, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

MOST_RESULTS = 1000
MOST_CHARACTERS = 256
"""Of the words searched for; qualifiers do not count."""

_TERM = re.compile(r'(?P<not>-?)(?:(?P<key>[A-Za-z-]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
_SOURCES = {
    "title": "title_words LIKE ? ESCAPE '!'",
    "body": "body_words LIKE ? ESCAPE '!'",
    "comments": "EXISTS (SELECT 1 FROM comments WHERE issue_id = issues.id AND words LIKE ? ESCAPE '!')",
}
_ORDERS = {
    "created": "created_at",
    "updated": "updated_at",
    "comments": "(SELECT count(*) FROM comments WHERE issue_id = issues.id)",
}
_STATES = {"open": "state = 'open'", "closed": "state = 'closed'"}
_TYPES = {"issue": "is_pull = 0", "pr": "is_pull = 1", "pull-request": "is_pull = 1"}
_PULLS = "id IN (SELECT issue_id FROM pulls WHERE {})"
_IS = {
    **_STATES,
    **_TYPES,
    "merged": _PULLS.format("merged_at IS NOT NULL"),
    "unmerged": _PULLS.format("merged_at IS NULL"),
    "draft": _PULLS.format("draft = 1"),
    "locked": "locked = 1",
    "unlocked": "locked = 0",
    "public": "repository_id IN (SELECT id FROM repositories WHERE private = 0)",
    "private": "repository_id IN (SELECT id FROM repositories WHERE private = 1)",
}
_RANGE = re.compile(r"(?P<operator>>=|<=|>|<)?(?P<first>[^.]+?)(?P<dots>\.\.(?P<second>.+))?")


@dataclass
class _Query:
    """A search taken apart: SQL conditions with their values, and the words to find in ``sources``."""

    call: Call
    conditions: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    phrases: list[tuple[str, bool]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    repositories: list[int] = field(default_factory=list)
    typed: bool = False

    def add(self, condition: str, *values: Any, negated: bool = False) -> None:
        self.conditions.append(f"NOT ({condition})" if negated else condition)
        self.values.extend(values)


def search_issues(call: Call) -> ApiResponse:
    """GET /search/issues."""
    text = call.query.get("q", "").strip()
    if not text:
        raise _refused("missing")
    query = _parse(call, text)
    if not query.typed:
        raise Refusal(422, "Query must include 'is:issue' or 'is:pull-request'")
    if call.page.offset + call.page.size > MOST_RESULTS and call.page.offset >= MOST_RESULTS:
        raise Refusal(422, "Only the first 1000 search results are available")
    total, rows = _run(query)
    items = [{**payload, "body": payload["body"] or "", "score": 1.0} for payload in payloads.issues(call, rows)]
    document = {"total_count": total, "incomplete_results": False, "search_type": "lexical", "items": items}
    return ApiResponse(200, document, call.links(min(total, MOST_RESULTS)))


def _run(query: _Query) -> tuple[int, list[Row]]:
    call = query.call
    _add_phrases(query)
    query.add("created_at <= ?", call.now - call.settings.search_lag_seconds)
    _add_repositories(query)
    where = " AND ".join(query.conditions)
    total = call.db.execute(f"SELECT count(*) FROM issues WHERE {where}", query.values).fetchone()[0]
    column = _ORDERS.get(call.query.get("sort", ""), "created_at")
    direction = "ASC" if call.query.get("order") == "asc" else "DESC"
    size = min(call.page.size, MOST_RESULTS - call.page.offset)
    rows = call.db.execute(
        f"SELECT * FROM issues WHERE {where} ORDER BY {column} {direction}, id {direction} LIMIT ? OFFSET ?",
        (*query.values, size, call.page.offset),
    )
    return total, rows.fetchall()


def _parse(call: Call, text: str) -> _Query:
    query, length = _Query(call), 0
    for term in _TERM.finditer(text):
        negated, key = bool(term["not"]), (term["key"] or "").lower()
        value = term["plain"] if term["quoted"] is None else term["quoted"]
        qualifier = _QUALIFIERS.get(key)
        if qualifier is not None:
            qualifier(query, value, negated)
            continue
        written = f"{term['key']}:{value}" if key else value
        length += len(written)
        if words(written).strip():
            query.phrases.append((words(written), negated))
    if length > MOST_CHARACTERS:
        raise Refusal(422, "Validation Failed", errors=[_error("invalid", "The search is longer than 256 characters.")])
    return query


def _add_phrases(query: _Query) -> None:
    sources = [_SOURCES[name] for name in query.sources or _SOURCES]
    for phrase, negated in query.phrases:
        pattern = f"%{phrase}%"  # words hold neither % nor _ nor !
        query.add(" OR ".join(sources) if negated else f"({' OR '.join(sources)})", *[pattern] * len(sources))
        if negated:
            query.conditions[-1] = f"NOT ({query.conditions[-1]})"


def _add_repositories(query: _Query) -> None:
    """Keep to the repositories asked for, else to all that the caller sees."""
    call = query.call
    identifiers = query.repositories
    if not identifiers:
        rows = call.db.execute("SELECT * FROM repositories").fetchall()
        identifiers = [row["id"] for row in rows if grant(call.db, call.actor, row).sees]
    query.add(f"repository_id IN ({', '.join('?' * len(identifiers))})", *identifiers)


def _repo(query: _Query, value: str, negated: bool) -> None:
    call = query.call
    row = call.db.execute("SELECT * FROM repositories WHERE full_name = ?", (value,)).fetchone()
    if row is None or not grant(call.db, call.actor, row).sees:
        message = (
            "The listed users and repositories cannot be searched either because the resources do not exist "
            "or you do not have permission to view them."
        )
        raise Refusal(422, "Validation Failed", errors=[_error("invalid", message)])
    if negated:
        query.add("repository_id != ?", row["id"])
    else:
        query.repositories.append(row["id"])


def _is(query: _Query, value: str, negated: bool) -> None:
    value = value.lower()
    query.typed = query.typed or (value in _TYPES and not negated)
    if value in _IS:
        query.add(_IS[value], negated=negated)


def _state(query: _Query, value: str, negated: bool) -> None:
    if value.lower() in _STATES:
        query.add(_STATES[value.lower()], negated=negated)


def _end(column: str) -> Callable[[_Query, str, bool], None]:
    def qualifier(query: _Query, value: str, negated: bool) -> None:
        query.add(_PULLS.format(f"{column} = ?"), value, negated=negated)

    return qualifier


def _author(query: _Query, value: str, negated: bool) -> None:
    query.add("author_id = (SELECT id FROM users WHERE login = ?)", _login(query, value), negated=negated)


def _assignee(query: _Query, value: str, negated: bool) -> None:
    condition = "id IN (SELECT issue_id FROM assignees JOIN users ON users.id = user_id WHERE login = ?)"
    query.add(condition, _login(query, value), negated=negated)


def _label(query: _Query, value: str, negated: bool) -> None:
    names = [name.strip(' "').casefold() for name in value.split(",")]
    marks = ", ".join("?" * len(names))
    condition = (
        f"id IN (SELECT issue_id FROM issue_labels JOIN labels ON labels.id = label_id WHERE folded IN ({marks}))"
    )
    query.add(condition, *names, negated=negated)


def _in(query: _Query, value: str, _negated: bool) -> None:
    query.sources += [name for name in value.lower().split(",") if name in _SOURCES]


def _no(query: _Query, value: str, negated: bool) -> None:
    tables = {"label": "issue_labels", "assignee": "assignees"}
    if value in tables:
        query.add(f"id NOT IN (SELECT issue_id FROM {tables[value]})", negated=negated)


def _reason(query: _Query, value: str, negated: bool) -> None:
    query.add("state_reason = ?", value.strip('"').replace(" ", "_"), negated=negated)


def _dates(column: str) -> Callable[[_Query, str, bool], None]:
    def qualifier(query: _Query, value: str, negated: bool) -> None:
        parts = _RANGE.fullmatch(value)
        if parts is None:
            return
        low, high = _bounds(parts)
        query.add(f"{column} >= ? AND {column} < ?", low, high, negated=negated)

    return qualifier


def _bounds(parts: re.Match[str]) -> tuple[float, float]:
    """Return the half-open span of a date or a range, in seconds since the epoch."""
    ends = (float("-inf"), float("inf"))
    first = ends if parts["first"] == "*" else _span(parts["first"])
    if parts["dots"]:
        second = ends if parts["second"] == "*" else _span(parts["second"])
        return first[0], second[1]
    spans = {">": (first[1], ends[1]), ">=": (first[0], ends[1]), "<": (ends[0], first[0]), "<=": (ends[0], first[1])}
    return spans.get(parts["operator"] or "", first)


def _span(text: str) -> tuple[float, float]:
    """Return where a written day or moment begins and ends; GitHub counts moments in whole seconds."""
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        message = f'"{text}" is not a recognized date/time format. Please provide an ISO 8601 date/time value.'
        raise Refusal(422, "Validation Failed", errors=[_error("invalid", message)]) from None
    start = start if start.tzinfo else start.replace(tzinfo=UTC)
    length = timedelta(days=1) if len(text) <= len("2026-01-01") else timedelta(seconds=1)
    return start.timestamp(), (start + length).timestamp()


def _login(query: _Query, value: str) -> str:
    if value == "@me":
        return query.call.actor.login if query.call.actor else ""
    return f"{value.removeprefix('app/')}[bot]" if value.startswith("app/") else value


def _error(code: str, message: str) -> dict[str, str]:
    return {"message": message, "resource": "Search", "field": "q", "code": code}


def _refused(code: str) -> Refusal:
    return Refusal(422, "Validation Failed", errors=[{"resource": "Search", "field": "q", "code": code}])


_QUALIFIERS: dict[str, Callable[[_Query, str, bool], None]] = {
    "repo": _repo,
    "is": _is,
    "type": _is,
    "state": _state,
    "head": _end("head_ref"),
    "base": _end("base_ref"),
    "author": _author,
    "assignee": _assignee,
    "label": _label,
    "in": _in,
    "no": _no,
    "reason": _reason,
    "created": _dates("created_at"),
    "updated": _dates("updated_at"),
    "closed": _dates("closed_at"),
}
