"""Faults that a test injects into requests, and the exchanges that an observer sees.

``app`` and ``git_http`` carry the faults out, for requests of git too. git's curl repeats a request by itself after a
connection that it kept open drops before the first byte of the answer, so a push is lost only with ``times=2``.

| kind | applied | what the client sees |
|---|---|---|
| lost-before | no | the connection drops |
| lost-after | yes | the connection drops |
| error-500, error-502, error-503 | no | that status |
| error-500-after | yes | 500 |
| secondary-403, secondary-429 | no | the secondary limit, with ``retry-after: seconds`` |
| secondary-403-bare, secondary-429-bare | no | the same without any hint |
| primary-403 | no | x-ratelimit-remaining 0, x-ratelimit-reset in ``seconds`` |
| truncated | yes | right headers, half the body, then the connection closes |
| slow | yes | the answer after ``seconds`` |
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from starlette.requests import Request
from starlette.types import Send

from accord.core.suggest import did_you_mean
from accord_sandbox.calls import SandboxSettings
from accord_sandbox.database import Database
from accord_sandbox.git_storage import GitStorage
from accord_sandbox.responses import DOCS, ApiResponse, Refusal, not_found
from accord_sandbox.tokens import Meter, primary_refusal, secondary_refusal

_ERRORS = {"error-500": "Server Error", "error-502": "Server Error", "error-503": "Service Unavailable"}
_LIMITS = ("secondary-403", "secondary-429", "secondary-403-bare", "secondary-429-bare", "primary-403")
AFTER = frozenset({"lost-after", "error-500-after", "truncated", "slow"})
"""Kinds whose request is carried out."""

LOST = ("lost-before", "lost-after")

KINDS = ("lost-before", *_ERRORS, *_LIMITS, *sorted(AFTER))


@dataclass(frozen=True)
class Fault:
    """The ``nth`` matching request from now, and the ``times - 1`` after it, fail."""

    kind: str
    nth: int = 1
    times: int = 1
    method: str | None = None  # None matches all
    path: str | None = None  # a regular expression searched in the path without /api/v3; None matches all
    seconds: float = 1.0  # the delay of slow, the retry-after of secondary-*, or the time to the reset of primary-403

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Unknown kind of fault `{self.kind}`. {did_you_mean(self.kind, KINDS)}".rstrip())
        if self.nth < 1 or self.times < 1:
            raise ValueError("`nth` and `times` must be at least 1.")
        if self.path is not None:
            re.compile(self.path)

    @classmethod
    def parse(cls, document: Any) -> Fault:
        """Read a fault from JSON. Raises ValueError."""
        if not isinstance(document, dict):
            raise ValueError("A fault must be a JSON object.")
        unknown = document.keys() - {field.name for field in fields(cls)}
        if unknown or "kind" not in document:
            raise ValueError(f"A fault needs `kind`. Unknown keys: {', '.join(sorted(unknown)) or 'none'}.")
        try:
            return cls(**document)
        except (TypeError, re.error) as error:
            raise ValueError(str(error)) from error

    def matches(self, method: str, path: str) -> bool:
        """Tell whether a request matches this fault."""
        if self.method is not None and self.method.upper() != method:
            return False
        return self.path is None or re.search(self.path, path) is not None


class Faults:
    """The injected faults. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[int, tuple[Fault, int]] = {}

    def add(self, fault: Fault) -> None:
        """Inject a fault."""
        with self._lock:
            self._seen[len(self._seen)] = fault, 0

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._seen.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Count a request, and return the first fault that matches."""
        with self._lock:
            met = None
            for key, (fault, seen) in self._seen.items():
                if fault.matches(method, path):
                    self._seen[key] = fault, seen + 1
                    is_now = fault.nth <= seen + 1 < fault.nth + fault.times
                    met = fault if met is None and is_now else met
            return met


def fault_refusal(fault: Fault | None, now: float, *, is_after: bool) -> Refusal | None:
    """Return the refusal that a fault sends before or after the request; None for a fault of the connection."""
    if fault is None or (fault.kind in AFTER) is not is_after:
        return None
    if fault.kind in _ERRORS:
        return Refusal(int(fault.kind.removeprefix("error-")), _ERRORS[fault.kind])
    if fault.kind == "error-500-after":
        return Refusal(500, "Server Error", docs=DOCS)
    if fault.kind == "primary-403":
        return primary_refusal(None, math.ceil(now + fault.seconds), "core", 5000)
    if fault.kind.startswith("secondary-"):
        _, status, *bare = fault.kind.split("-")
        return secondary_refusal(int(status), None if bare else math.ceil(fault.seconds))
    return None if is_after else not_found()  # of lost-before, which no one gets


@dataclass(frozen=True)
class Exchange:
    """One request of the API or of git, in one of two phases; bodies of git are left out.

    ``received``: nothing is done yet; status and answer are None. ``applied``: the request is finished, and no byte of
    the answer is sent yet.
    """

    phase: Literal["received", "applied"]
    method: str
    path: str  # without /api/v3
    query: Mapping[str, str]
    headers: Mapping[str, str]
    json: Any
    status: int | None = None  # None, too, when the connection is about to drop without an answer
    response_headers: Mapping[str, str] | None = None
    response_json: Any = None
    applied: bool = False  # whether it was committed


Observer: TypeAlias = Callable[[Exchange], None]
"""Called on the server's own thread: it must not send requests to this server, or both wait forever."""


DROP = "accord.drop"
"""Key of the function in the scope that drops the connection (see ``server``)."""


async def send_response(request: Request, response: ApiResponse, send: Send, fault: Fault | None) -> None:
    """Send an answer, late or half or not at all as a fault wants it."""
    kind = fault.kind if fault is not None else ""
    if kind in LOST:
        await drop(request)
        return
    if fault is not None and kind == "slow":
        try:
            await asyncio.wait_for(wait_until_closed(request), fault.seconds)
        except TimeoutError:
            pass
        else:
            return
    content, headers = response.content or b"", dict(response.headers)
    if response.content is None and response.body is not None:
        content = json.dumps(response.body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"content-type": "application/json; charset=utf-8", **headers}
    if response.status != 204:
        headers["content-length"] = str(len(content))
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": raw})
    is_cut = kind == "truncated"
    body = content[: len(content) // 2] if is_cut else content
    await send({"type": "http.response.body", "body": body, "more_body": is_cut})
    if is_cut:
        await drop(request)


async def drop(request: Request) -> None:
    """Drop the connection without another byte."""
    request.scope[DROP]()
    await wait_until_closed(request)


async def wait_until_closed(request: Request) -> None:
    """Wait until the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class ServerState:
    """The data, faults and counters. ``requests`` logs (method, path, status); a dropped connection has status 0."""

    def __init__(self, database: Database, settings: SandboxSettings) -> None:
        self.database = database
        self.settings = settings
        self.faults = Faults()
        self.meter = Meter(settings.rate_limits)
        self.storage = GitStorage(database.path.parent / "git")
        self.observers: list[Observer] = []
        self.requests: list[tuple[str, str, int]] = []

    def observe(self, exchange: Exchange) -> None:
        """Call the observers."""
        for observer in tuple(self.observers):
            try:
                observer(exchange)
            except Exception:  # the client gets a 500; stderr gets the reason
                traceback.print_exc(file=sys.stderr)
                raise
