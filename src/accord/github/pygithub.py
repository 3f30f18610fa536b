"""PyGithub's requester and connection, set up so that waiting, retrying and following redirects stay with accord.

PyGithub's package imports all of its classes, JSON web tokens and encryption at once, and accord uses none of them.
Only the two modules that accord uses are imported, and what these import is loaded lazily. ``actions/setup`` leaves
web tokens and encryption out.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec, module_from_spec
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from accord import __version__
from accord.core.errors import WrongUsage
from accord.core.lazy import LazyFinder
from accord.github.models import Access
from accord.text.addresses import is_web_address

if TYPE_CHECKING:
    import requests
    from github.Auth import Token
    from github.Requester import HTTPRequestsConnectionClass, Requester


TIMEOUT_SECONDS = 30
PER_PAGE = 30
API_VERSION = "2022-11-28"
"""Version of the REST API that accord asks for: 2026-03-10 removes fields that accord reads (``merge_commit_sha``)."""
LOCATION = "x-accord-location"
"""The header under which a redirect's address is kept where PyGithub does not look."""

_IMPORTING = Lock()


def _pygithub() -> tuple[type[Token], type[Requester], dict[str, type[HTTPRequestsConnectionClass]]]:
    """Return PyGithub's token, requester and connections by scheme, imported once, by one thread at a time."""
    with _IMPORTING:
        return _import_pygithub()


@cache
def _import_pygithub() -> tuple[type[Token], type[Requester], dict[str, type[HTTPRequestsConnectionClass]]]:
    """Import them without running the package.

    The modules are taken out of ``sys.modules`` again, so that another import of PyGithub gets a whole package.
    """
    if "github" not in sys.modules and (spec := find_spec("github")):
        sys.modules["github"] = module_from_spec(spec)
    else:
        spec = None
    if is_without_jwt := find_spec("jwt") is None:
        sys.modules["jwt"] = ModuleType("jwt")
    with LazyFinder("github.", "jwt"):
        from github.Auth import Token
        from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester
    if spec:
        for name in [name for name in sys.modules if name.partition(".")[0] == "github"]:
            del sys.modules[name]
    if is_without_jwt:
        del sys.modules["jwt"]
    connections: dict[str, Any] = {"http": HTTPRequestsConnectionClass, "https": HTTPSRequestsConnectionClass}
    return Token, Requester, connections


def requester_for(access: Access) -> Requester:
    """Return a requester that neither waits nor repeats. Raises WrongUsage for a URL that is not one of an API."""
    if not is_web_address(access.api_url):
        raise WrongUsage(f"`{access.api_url}` is not a URL.", hint="Set `GITHUB_API_URL`, beginning with `https://`.")
    token, requester, _ = _pygithub()
    return requester(
        auth=token(access.token),
        base_url=access.api_url.rstrip("/"),
        timeout=TIMEOUT_SECONDS,
        user_agent=f"accord/{__version__}",
        per_page=PER_PAGE,
        verify=True,
        retry=None,
        pool_size=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
        lazy=True,
        api_version=API_VERSION,
    )


def connection_for(access: Access) -> HTTPRequestsConnectionClass:
    """Return a connection that hides redirects: PyGithub would follow one without its query, to another list."""
    _, _, connections = _pygithub()
    from accord.core.connections import settle

    def hide_location(response: requests.Response, *_: Any, **__: Any) -> None:
        response.headers.pop(LOCATION, None)
        if location := response.headers.pop("location", None):
            response.headers[LOCATION] = location

    parts = urlsplit(access.api_url)
    connection = connections[parts.scheme](parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    connection.session.hooks["response"].append(hide_location)
    settle(connection.session, access.api_url)
    return connection
