"""What every part of the adapter is built on: one repository, one transport, and the ways in which answers are read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from accord.core.errors import WrongUsage
from accord.github.limits import PAGE_SIZE
from accord.github.models import NotThere
from accord.github.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accord.core.clock import Clock
    from accord.github.models import Access, RequestCount
    from accord.github.transport import RateLeft

Parsed = TypeVar("Parsed")

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+")
_TOKEN = re.compile(r"[!-~]+")


class Rest:
    """One repository over REST."""

    def __init__(
        self,
        access: Access,
        clock: Clock,
        tell_wait: Callable[[float, str], None],
    ) -> None:
        if not _NAME.fullmatch(access.repository):
            raise WrongUsage(
                f'"{access.repository}" is no repository.',
                hint="Name it as OWNER/NAME, with --repo or GITHUB_REPOSITORY.",
            )
        if not access.token:
            raise WrongUsage("There is no token to reach GitHub with.", hint="Set GITHUB_TOKEN.")
        if not _TOKEN.fullmatch(access.token):
            raise WrongUsage("The token holds what no token has, such as a blank.", hint="Set GITHUB_TOKEN anew.")
        self._access = access
        self._clock = clock
        self._root = f"/repos/{access.repository}"
        self._transport = Transport(access, clock, tell_wait)

    @property
    def requests(self) -> RequestCount:
        """How many requests went out so far."""
        return self._transport.requests

    @property
    def rate_left(self) -> RateLeft | None:
        """What is left of the token's hourly requests as of the last answer; None where GitHub does not count."""
        return self._transport.rate_left

    def _listed(
        self, path: str, parse: Callable[[dict[str, Any]], Parsed], *, key: str = "", **params: Any
    ) -> Iterator[Parsed]:
        """Read a listing page by page, as far as it is consumed; ``key`` is where a page holds it that is no list."""
        for page in self._transport.pages(path, {**params, "per_page": PAGE_SIZE}):
            yield from page.read(lambda data: [parse(entry) for entry in (data[key] if key else data)])

    def _found(self, path: str, parse: Callable[[dict[str, Any]], Parsed]) -> Parsed | None:
        """Read one thing; None where there is none."""
        try:
            return self._transport.call("GET", path).read(parse)
        except NotThere:
            return None

    def _delete(self, path: str) -> None:
        """Delete one thing; what is not there counts as deleted."""
        try:
            self._transport.call("DELETE", path)
        except NotThere:
            return
