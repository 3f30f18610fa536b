"""Access to one repository, for the API and for git."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from accord.core.clock import Clock
    from accord.git.branches import Remote
    from accord.github.client import GitHub


class Connection(NamedTuple):
    """Access to a repository: its GitHub client, its name, and the server and token that git uses."""

    github: GitHub
    repository: str
    server_url: str
    token: str

    @property
    def page(self) -> str:
        """The address of the repository's page."""
        return f"{self.server_url.rstrip('/')}/{self.repository}"

    def remote(self, clock: Clock) -> Remote:
        """Return the repository as a remote of git."""
        from accord.git.branches import Remote

        return Remote(f"{self.page}.git", self.server_url, self.token, clock)
