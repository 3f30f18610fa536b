"""The operations of the API: a decorator registers each handler with its method, path and documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from accord_sandbox.calls import Call
    from accord_sandbox.responses import ApiResponse

    Handler = Callable[[Call], ApiResponse]

READ_POINTS = 1
WRITE_POINTS = 5
_PARAMETER = re.compile(r"{(\w+)(?::(\w+))?}")
_KINDS = {"": "[^/]+", "int": "[0-9]+", "path": ".*"}


@dataclass(frozen=True)
class Load:
    """Cost of one request: its resource (core, search or graphql), points, and whether it creates content."""

    resource: str
    points: int
    creates: bool = False


@dataclass(frozen=True)
class Route:
    """One operation. ``docs`` is the end of GitHub's documentation address, which refusals carry.

    ``creates`` marks operations that the limit on content-creating requests counts. ``only_reads`` marks a POST that
    changes nothing.
    """

    method: str
    path: str
    handler: Handler
    docs: str
    creates: bool = False
    resource: str = "core"
    only_reads: bool = False

    @property
    def writes(self) -> bool:
        """Whether the operation may change something."""
        return self.method != "GET" and not self.only_reads

    @property
    def load(self) -> Load:
        """Cost of a request on the rate limits."""
        return Load(self.resource, WRITE_POINTS if self.writes else READ_POINTS, self.creates)


ROUTES: list[Route] = []
_PATTERNS: dict[str, list[tuple[re.Pattern[str], Route]]] = {}


def route(
    method: str, path: str, docs: str, *, creates: bool = False, resource: str = "core", only_reads: bool = False
) -> Callable[[Handler], Handler]:
    """Register a handler. A path without a leading slash is below the repository's.

    ``{name}`` stands for one part of the path, ``{name:path}`` for several, ``:int`` for digits. No two operations of
    one method may match the same path.
    """
    if not path.startswith("/"):
        path = f"/repos/{{owner}}/{{repo}}/{path}".rstrip("/")

    def register(handler: Handler) -> Handler:
        operation = Route(method, path, handler, docs, creates, resource, only_reads)
        parts = _PARAMETER.split(path)
        pattern = re.escape(parts[0])
        for name, kind, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            pattern += f"(?P<{name}>{_KINDS[kind or '']}){re.escape(text)}"
        ROUTES.append(operation)
        _PATTERNS.setdefault(method, []).append((re.compile(pattern), operation))
        return handler

    return register


def match_route(method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
    """Return the operation for a decoded path and the values of its parameters, or None."""
    for pattern, operation in _PATTERNS.get(method, ()):
        found = pattern.fullmatch(path)
        if found is not None:
            return operation, found.groupdict()
    return None
