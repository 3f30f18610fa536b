"""One operation of the API: how it is asked for, who answers, and what it weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord_sandbox.rates import READ_POINTS, WRITE_POINTS, Load

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord_sandbox.calls import Call
    from accord_sandbox.responses import ApiResponse

    Handler = Callable[[Call], ApiResponse]


@dataclass(frozen=True)
class Route:
    """One operation. ``docs`` is the end of GitHub's documentation address, which refusals carry.

    ``creates`` marks what the limit on content-creating requests counts: things that people get notified of. ``asks``
    marks a POST that is a question.
    """

    method: str
    path: str
    handler: Handler
    docs: str
    creates: bool = False
    resource: str = "core"
    asks: bool = False

    @property
    def writes(self) -> bool:
        """Whether the operation may change something."""
        return self.method != "GET" and not self.asks

    @property
    def load(self) -> Load:
        """What a request weighs on the rate limits."""
        return Load(self.resource, WRITE_POINTS if self.writes else READ_POINTS, self.creates)
