"""What goes back to the client: answers, and refusals with GitHub's own words.

The texts are those that api.github.com sends; ``documentation_url`` comes from the route unless a refusal has its own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DOCS = "https://docs.github.com/rest/"
PER_PAGE = 30
MOST_PER_PAGE = 100
MOST_DIGITS = 9


@dataclass
class ApiResponse:
    """A status, a JSON document (None for an empty body) and the headers that are special to it.

    ``content`` stands instead of the document for what is no JSON, a diff for instance; its type is in the headers.
    """

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


class Refusal(Exception):
    """GitHub says no. Raised anywhere below a handler; whatever the transaction did so far is undone."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[Mapping[str, Any] | str] = (),
        docs: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = list(errors)
        self.docs = docs
        self.headers = dict(headers or {})

    def answer(self, route_docs: str) -> ApiResponse:
        """Return the body that GitHub sends, with the route's documentation unless this refusal names its own."""
        body: dict[str, Any] = {"message": self.message}
        if self.errors:
            body["errors"] = self.errors
        body["documentation_url"] = self.docs or DOCS + route_docs
        body["status"] = str(self.status)
        return ApiResponse(self.status, body, self.headers)


def not_found() -> Refusal:
    """Return GitHub's 404, which also stands for things the token may not see."""
    return Refusal(404, "Not Found")


def invalid(resource: str, name: str, code: str = "invalid", **more: Any) -> Refusal:
    """Return a 422 about one field, ``code`` being invalid, missing_field, already_exists, custom and so on."""
    error = {**more, "resource": resource, "code": code, "field": name}
    return Refusal(422, "Validation Failed", errors=[error])


def too_long(resource: str, name: str, limit: int) -> Refusal:
    """Return the 422 for a text over its limit."""
    return invalid(resource, name, "custom", message=f"{name} is too long (maximum is {limit} characters)")


def schema_violation(problem: str) -> Refusal:
    """Return the 422 for a body that does not fit the operation's schema."""
    return Refusal(422, f"Invalid request.\n\n{problem}")


@dataclass(frozen=True)
class PageRequest:
    """Which part of a list is asked for; ``number`` counts from 1."""

    size: int
    number: int

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PageRequest:
        """Read ``per_page`` and ``page`` as GitHub does: what makes no sense is the default, too much is the most."""
        size = _positive(query.get("per_page"), PER_PAGE)
        return cls(min(size, MOST_PER_PAGE), _positive(query.get("page"), 1))

    @property
    def offset(self) -> int:
        """How many entries come before this page."""
        return (self.number - 1) * self.size

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


def encode(body: Any) -> bytes:
    """Write a document the way it goes over the wire."""
    return b"" if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def etag(content: bytes) -> str:
    """Return the entity tag of a body; equal bodies have equal tags."""
    return f'W/"{hashlib.sha256(content).hexdigest()}"'


def _positive(text: str | None, default: int) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > MOST_DIGITS or int(text) == 0:
        return default
    return int(text)
