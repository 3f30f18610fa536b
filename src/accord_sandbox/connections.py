"""A client's connection: dropping it, and waiting until it is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

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
