"""Answers to the client, refusals in GitHub's words, pages of lists, and the fields and token of a request.

The texts are those that api.github.com sends; ``documentation_url`` comes from the route unless a refusal has its own.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

from accord.core.clock import parse_timestamp

DOCS = "https://docs.github.com/rest/"
PER_PAGE = 30
MOST_PER_PAGE = 100
_MOST_PAGE_DIGITS = 9
_Item = TypeVar("_Item")


@dataclass
class ApiResponse:
    """A status, a JSON document (None for an empty body) and extra headers.

    ``content`` replaces the document for anything but JSON, an archive for instance; its type is in the headers.
    """

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(eq=False)
class Refusal(Exception):
    """A refusal by GitHub. Raised anywhere below a handler; the transaction is undone."""

    status: int
    message: str
    errors: Sequence[Mapping[str, Any] | str] = field(default=(), kw_only=True)
    docs: str = field(default="", kw_only=True)
    headers: dict[str, str] = field(default_factory=dict, kw_only=True)

    def to_response(self, route_docs: str) -> ApiResponse:
        """Return the response that GitHub sends, with the route's documentation unless this refusal names its own."""
        body: dict[str, Any] = {"message": self.message}
        if self.errors:
            body["errors"] = self.errors
        body["documentation_url"] = self.docs or DOCS + route_docs
        body["status"] = str(self.status)
        return ApiResponse(self.status, body, self.headers)


def created(document: Any) -> ApiResponse:
    """Answer 201 with a new thing and its address."""
    return ApiResponse(201, document, {"location": document["url"]})


def not_found() -> Refusal:
    """Return GitHub's 404, which also hides things from a token that may not see them."""
    return Refusal(404, "Not Found")


def or_404(found: _Item | None) -> _Item:
    """Return what was found; a 404 without it."""
    if found is None:
        raise not_found()
    return found


def invalid(resource: str, name: str, code: str = "invalid", **more: Any) -> Refusal:
    """Return a 422 about one field, ``code`` being invalid, missing_field, already_exists, custom and so on."""
    return Refusal(422, "Validation Failed", errors=[{**more, "resource": resource, "code": code, "field": name}])


def too_long(resource: str, name: str, limit: int) -> Refusal:
    """Return the 422 for a text over its limit."""
    return invalid(resource, name, "custom", message=f"{name} is too long (maximum is {limit} characters)")


def schema_violation(problem: str) -> Refusal:
    """Return the 422 for a body that does not fit the operation's schema."""
    return Refusal(422, f"Invalid request.\n\n{problem}")


def since_of(text: str) -> float:
    """Return the seconds since the epoch of a timestamp in a query."""
    try:
        return parse_timestamp(text).timestamp()
    except ValueError:
        raise schema_violation(f"{json.dumps(text)} is not a valid timestamp.") from None


def search_text(query: Mapping[str, str]) -> str:
    """Return the text to search for; refuse a request without it."""
    if not (text := query.get("q", "").strip()):
        raise invalid("Search", "q", "missing")
    return text


@dataclass(frozen=True)
class PageRequest:
    """The page of a list that the client wants; ``number`` counts from 1."""

    size: int
    number: int

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PageRequest:
        """Read ``per_page`` and ``page``; like GitHub, use the default for nonsense and the maximum for too much."""
        size = _positive(query.get("per_page"), PER_PAGE)
        return cls(min(size, MOST_PER_PAGE), _positive(query.get("page"), 1))

    @property
    def offset(self) -> int:
        """Number of entries before this page."""
        return (self.number - 1) * self.size

    def cut(self, entries: Sequence[_Item]) -> Sequence[_Item]:
        """Return the entries on this page."""
        return entries[self.offset : self.offset + self.size]

    def links(self, url: str, query: Mapping[str, str], total: int) -> dict[str, str]:
        """Return the ``Link`` header for a list of ``total`` entries, nothing when one page holds all."""
        last = max(1, -(-total // self.size))
        numbers = {}
        if self.number > 1:
            numbers["prev"] = min(self.number - 1, last)
        if self.number < last:
            numbers |= {"next": self.number + 1, "last": last}
        if self.number > 1:
            numbers["first"] = 1
        parts = [f'<{url}?{urlencode({**query, "page": str(number)})}>; rel="{rel}"' for rel, number in numbers.items()]
        return {"link": ", ".join(parts)} if parts else {}


_KINDS = {
    **dict.fromkeys(
        ("can_approve_pull_request_reviews", "draft", "force", "replace_parent", "return_run_details"), bool
    ),
    **dict.fromkeys(("client_payload", "inputs", "output", "variables"), dict),
    "comments": list,
    "line": int,
}
"""The kinds of the optional fields that are not texts."""


class Fields(dict[str, Any]):
    """A request's JSON object."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an optional field, the default for null too; refuse a value of another kind."""
        value = super().get(name)
        return default if value is None else of_kind(name, value, _KINDS.get(name, str))

    def value_of(self, name: str, kind: type = str) -> Any:
        """Return a field of a kind; refuse a body that lacks it, or has another value."""
        if name not in self:
            raise schema_violation(f'"{name}" wasn\'t supplied.')
        return of_kind(name, self[name], kind)

    def names(self, name: str) -> list[str] | None:
        """Return the names in a list, each given plainly or as an object; None without it."""
        return names_of(name, self.value_of(name, list)) if name in self else None

    def choice(self, name: str, allowed: tuple[str, ...], *, is_required: bool = False) -> str | None:
        """Return a text out of a fixed set."""
        value: str | None = self.value_of(name) if is_required else self.get(name)
        if value is not None and value not in allowed:
            listing = ", ".join(allowed)
            raise schema_violation(f"For 'properties/{name}', {json.dumps(value)} is not a member of [{listing}].")
        return value


def of_kind(name: str, value: Any, kind: type = str) -> Any:
    """Return a value of a kind; refuse another one."""
    if type(value) is not kind:
        raise schema_violation(f"For 'properties/{name}', {json.dumps(value)} is not of the right type.")
    return value


def names_of(name: str, entries: Sequence[Any]) -> list[str]:
    """Return the names in the list of a field, each given plainly or as an object."""
    return [of_kind(name, each.get("name") if isinstance(each, dict) else each) for each in entries]


def _positive(text: str | None, default: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > _MOST_PAGE_DIGITS or int(text) == 0:
        return default
    return int(text)


def token_of(header: str) -> str:
    """Return the token of an ``authorization`` header, an empty text for a broken one."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return rest.strip()
    try:
        user, _, password = base64.b64decode(rest).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password or user
