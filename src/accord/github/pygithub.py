"""PyGithub's requester and connection, set up so that waiting, retrying and following redirects stay with accord.

PyGithub imports all of its classes, JSON web tokens and encryption at once, and accord uses none of them. They are
imported lazily (``importlib.util.LazyLoader``), which halves the time of the import.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from importlib.util import LazyLoader
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from accord import __version__
from accord.core.errors import WrongUsage
from accord.core.urls import is_web_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec

    import requests
    from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester

    from accord.github.models import Access


TIMEOUT_SECONDS = 30
LOCATION = "x-accord-location"
"""The header under which a redirect's address is kept where PyGithub does not look."""

_LAZY = ("jwt", "nacl.encoding", "nacl.public")


class _LazyFinder(MetaPathFinder):
    """Finds the modules of PyGithub, and those that only apps and secrets need, to be loaded at their first use."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith("github.") and fullname not in _LAZY:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def _lazy_imports() -> Iterator[None]:
    finder = _LazyFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def requester_for(access: Access) -> Requester:
    """Return a requester that neither waits nor repeats. Raises WrongUsage for a URL that is not one of an API."""
    with _lazy_imports():
        from github import Auth, Github

    if not is_web_address(access.api_url):
        raise WrongUsage(f"`{access.api_url}` is not a URL.", hint="Set `GITHUB_API_URL`, beginning with `https://`.")
    github = Github(
        auth=Auth.Token(access.token),
        base_url=access.api_url.rstrip("/"),
        timeout=TIMEOUT_SECONDS,
        user_agent=f"accord/{__version__}",
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
        lazy=True,
    )
    return github.requester


def connection_for(access: Access) -> HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass:
    """Return a connection that hides redirects: PyGithub would follow one without its query, to another list."""
    from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

    def hide_location(response: requests.Response, *_: Any, **__: Any) -> None:
        response.headers.pop(LOCATION, None)
        if location := response.headers.pop("location", None):
            response.headers[LOCATION] = location

    parts = urlsplit(access.api_url)
    kind = HTTPSRequestsConnectionClass if parts.scheme == "https" else HTTPRequestsConnectionClass
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    connection.session.hooks["response"].append(hide_location)
    return connection
