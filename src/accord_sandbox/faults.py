"""Accidents on purpose: which request meets which one. What each does on the wire is in ``app`` and ``git_http``.

git's requests meet them too. Its curl sends a request once more by itself when a connection that it had kept open is
dropped before the first byte of an answer, so a push is only lost when both are (``times=2``).

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

import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from accord_sandbox.rates import primary_refusal, secondary_refusal
from accord_sandbox.responses import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

    from accord_sandbox.calls import Actor


KINDS = (
    "lost-before",
    "lost-after",
    "error-500",
    "error-502",
    "error-503",
    "error-500-after",
    "secondary-403",
    "secondary-429",
    "secondary-403-bare",
    "secondary-429-bare",
    "primary-403",
    "truncated",
    "slow",
)
AFTER = frozenset({"lost-after", "error-500-after", "truncated", "slow"})
"""The kinds whose request is carried out."""

_ERRORS = {"error-500": "Server Error", "error-502": "Server Error", "error-503": "Service Unavailable"}


@dataclass(frozen=True)
class Fault:
    """The ``nth`` request from now that matches, and the ``times - 1`` after it, meet an accident.

    ``path`` is a regular expression searched in the path (without /api/v3); None matches all, as it does for
    ``method``. ``seconds`` is the delay of slow, the retry-after of secondary-*, the time to the reset of primary-403.
    """

    kind: str
    nth: int = 1
    times: int = 1
    method: str | None = None
    path: str | None = None
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of fault {self.kind!r}; there are {', '.join(KINDS)}")
        if self.nth < 1 or self.times < 1:
            raise ValueError("nth and times count from 1")
        if self.path is not None:
            re.compile(self.path)

    @classmethod
    def parse(cls, document: Any) -> Fault:
        """Read a fault from JSON; a ValueError says what is wrong with it."""
        if not isinstance(document, dict):
            raise ValueError("a fault is a JSON object")
        unknown = document.keys() - {field.name for field in fields(cls)}
        if unknown or "kind" not in document:
            raise ValueError(f"a fault needs 'kind' and has no {sorted(unknown)}")
        try:
            return cls(**document)
        except (TypeError, re.error) as error:
            raise ValueError(str(error)) from error

    def matches(self, method: str, path: str) -> bool:
        """Tell whether a request counts for this fault."""
        if self.method is not None and self.method.upper() != method:
            return False
        return self.path is None or re.search(self.path, path) is not None


class Faults:
    """The faults that are still to come. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []
        self._seen: list[int] = []

    def add(self, fault: Fault) -> None:
        """Let a fault wait for its request."""
        with self._lock:
            self._waiting.append(fault)
            self._seen.append(0)

    def clear(self) -> None:
        """Forget all faults."""
        with self._lock:
            self._waiting.clear()
            self._seen.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Count a request, and return the first fault that it meets."""
        with self._lock:
            met = None
            for index, fault in enumerate(self._waiting):
                if not fault.matches(method, path):
                    continue
                self._seen[index] += 1
                if met is None and fault.nth <= self._seen[index] < fault.nth + fault.times:
                    met = fault
            return met


def refusal(fault: Fault, actor: Actor | None, now: float) -> Refusal | None:
    """Return the answer that a fault gives instead of GitHub's, None for one that is not an answer."""
    if fault.kind in _ERRORS:
        return Refusal(int(fault.kind.removeprefix("error-")), _ERRORS[fault.kind])
    if fault.kind == "error-500-after":
        return Refusal(500, "Server Error")
    if fault.kind == "primary-403":
        return primary_refusal(actor, math.ceil(now + fault.seconds), "core", 5000)
    if fault.kind.startswith("secondary-"):
        _, status, *bare = fault.kind.split("-")
        return secondary_refusal(int(status), None if bare else math.ceil(fault.seconds))
    return None


@dataclass(frozen=True)
class Exchange:
    """One request of the API or of git at one of two moments.

    ``received``: nothing was done yet; status and answer are None. ``applied``: the work is done and committed (if
    ``applied`` says so; a fault or a refusal may have prevented it), and no byte of the answer has left. ``path`` is
    without /api/v3; ``status`` is None when the connection is about to be dropped without an answer. What git sends and
    gets is no JSON and may be large: there is none of it here.
    """

    phase: Literal["received", "applied"]
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    json: Any
    status: int | None = None
    response_headers: Mapping[str, str] | None = None
    response_json: Any = None
    applied: bool = False


Observer: TypeAlias = Callable[[Exchange], None]
"""Called on the server's own thread: it must not ask this server anything, or both wait for ever."""


DROP = "accord.drop"
"""The scope's key for the function that drops the connection (see ``server``)."""


async def drop(request: Request) -> None:
    """Drop the connection without another byte."""
    request.scope[DROP]()
    await gone(request)


async def gone(request: Request) -> None:
    """Wait until the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
