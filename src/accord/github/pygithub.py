"""PyGithub's requester and connection, set up so that waiting, retrying and following redirects stay with accord.

PyGithub imports all of its classes, JSON web tokens and encryption at once, and accord uses none of them. They are
loaded lazily, which halves the time of the import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from accord import __version__
from accord.core.errors import WrongUsage
from accord.core.lazy import LazyFinder
from accord.core.urls import is_web_address

if TYPE_CHECKING:
    import requests
    from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester

    from accord.github.models import Access


TIMEOUT_SECONDS = 30
LOCATION = "x-accord-location"
"""The header under which a redirect's address is kept where PyGithub does not look."""

_UNUSED = LazyFinder("github.", "jwt", "nacl.encoding", "nacl.public")
"""PyGithub's classes, and what only apps and encrypted secrets need."""


def requester_for(access: Access) -> Requester:
    """Return a requester that neither waits nor repeats. Raises WrongUsage for a URL that is not one of an API."""
    with _UNUSED:
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
