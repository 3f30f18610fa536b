"""What passes between a client and the local GitHub, for those who watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias


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
