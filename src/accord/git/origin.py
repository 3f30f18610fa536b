"""The remote `origin` of a checkout, as an address on a GitHub server, and what a server has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from accord.core.frozen import Frozen
from accord.git.program import Git, own_repository

_ORIGIN = re.compile(
    r"(?:(?P<scheme>https?|ssh|git)://)?(?:[^@/\s]{1,500}@)?(?P<host>[\w.-]{1,253})(?P<port>:\d{1,5}(?=/))?[:/]"
    r"(?P<owner>[\w.-]{1,100})/(?P<name>[\w.-]{1,100}?)(?:\.git)?/?"
)
_SECONDS = 15
_NOT_THERE = re.compile(r"not our ref|unadvertised object|no such remote ref", re.IGNORECASE)


class RemoteRepository(Frozen):
    """A repository on a server, such as `https://github.com` and `octo/web`."""

    server_url: str
    repository: str

    @property
    def url(self) -> str:
        """The address of its first page."""
        return f"{self.server_url}/{self.repository}"

    @property
    def owner(self) -> str:
        """The account that the repository belongs to."""
        return self.repository.partition("/")[0]


def parse_origin(url: str) -> RemoteRepository | None:
    """Read the URL of a remote, without its user and password; None for folders and for aliases of ssh."""
    found = _ORIGIN.fullmatch(url.strip())
    if not found or "." not in found["host"].strip("."):
        return None
    is_web = (found["scheme"] or "").startswith("http")
    host = "github.com" if found["host"] == "ssh.github.com" else found["host"]  # ssh over the port of HTTPS
    server_url = f"{found['scheme']}://{host}{found['port'] or ''}" if is_web else f"https://{host}"
    return RemoteRepository(server_url, f"{found['owner']}/{found['name']}")


def gh_name(page: str) -> str:
    """Return the name of a repository for the GitHub CLI, by its page or one below it; empty without a page."""
    parts = urlsplit(page)
    repository = "/".join(parts.path.split("/")[1:3])
    return repository if parts.netloc in ("", "github.com") else f"{parts.netloc}/{repository}"


def read_origin(root: Path) -> RemoteRepository | None:
    """Read the remote `origin` of a checkout; None without one."""
    done = Git(root).attempt("remote", "get-url", "origin")
    return parse_origin(done.stdout.decode("utf-8", "replace"))


def has_commit(url: str, commit: str) -> bool | None:
    """Ask a public repository for a commit, without its files; None where it cannot be reached."""
    with own_repository() as git:
        try:
            done = git.attempt("fetch", "--quiet", "--depth=1", "--filter=tree:0", url, commit, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            return None
    if done.returncode == 0:
        return True
    return False if _NOT_THERE.search(done.stderr.decode("utf-8", "replace")) else None
