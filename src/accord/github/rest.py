"""The base of the clients: one server, one transport, how responses are read, and one repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from accord.core.clock import Clock, parse_timestamp
from accord.core.errors import WrongUsage
from accord.github.limits import PAGE_SIZE
from accord.github.models import Access, NotThere, RequestCount
from accord.github.pacing import Pacer
from accord.github.transport import RateLeft, Transport

Parsed = TypeVar("Parsed")

_NAME = re.compile(r"\A[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+")
_TOKEN = re.compile(r"[!-~]+")


def optional_timestamp(text: str | None) -> datetime | None:
    """Read a timestamp of GitHub; None where it gives none. Raises ValueError for any other text."""
    return parse_timestamp(text) if text else None


class Server:
    """A GitHub server over REST with one token. A ``pacer`` is shared by clients that use the token in turn."""

    def __init__(
        self, access: Access, clock: Clock, tell_wait: Callable[[float, str], None], pacer: Pacer | None = None
    ) -> None:
        if not access.token:
            raise WrongUsage("No GitHub token found.", hint="Set `GITHUB_TOKEN`, or log in with `gh auth login`.")
        if not _TOKEN.fullmatch(access.token):
            raise WrongUsage("`GITHUB_TOKEN` contains whitespace.", hint="Set it without spaces and line breaks.")
        self._access = access
        self._clock = clock
        self._transport = Transport(access, clock, tell_wait, pacer or Pacer())

    @property
    def requests(self) -> RequestCount:
        """Return how many requests this client has sent."""
        return self._transport.requests

    @property
    def rate_left(self) -> RateLeft | None:
        """Return what the last response said is left of the hourly limit; None where GitHub sets no limit."""
        return self._transport.rate_left

    def _list_items(
        self, path: str, parse: Callable[[dict[str, Any]], Parsed], *, key: str = "", **params: Any
    ) -> Iterator[Parsed]:
        """Yield the entries of a listing, page by page; ``key`` names them where a page is an object."""
        for page in self._transport.pages(path, {**params, "per_page": PAGE_SIZE}):
            yield from page.read(lambda data: [parse(entry) for entry in (data[key] if key else data)])

    def _find(self, path: str, parse: Callable[[dict[str, Any]], Parsed]) -> Parsed | None:
        """Read one object; None where GitHub answers 404."""
        try:
            return self._transport.call("GET", path).read(parse)
        except NotThere:
            return None

    def _delete(self, path: str) -> None:
        """Delete one object; a 404 counts as deleted."""
        try:
            self._transport.call("DELETE", path)
        except NotThere:
            return


class Rest(Server):
    """One repository over REST."""

    def __init__(
        self, access: Access, clock: Clock, tell_wait: Callable[[float, str], None], pacer: Pacer | None = None
    ) -> None:
        if not _NAME.fullmatch(access.repository):
            raise WrongUsage(
                f"`{access.repository}` is not a repository.",
                hint="Pass `--repo OWNER/NAME` or set `GITHUB_REPOSITORY`.",
            )
        super().__init__(access, clock, tell_wait, pacer)
        self._root = f"/repos/{access.repository}"
