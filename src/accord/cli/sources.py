"""Where commands read from: files, stdin, and the environment of a runner."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.kernel.documents import MAX_BYTES
from accord.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from accord.github.adapter import Adapter
    from accord.sandbox.server import Running

SANDBOX_DIRECTORY = ".accord/sandbox"


def read_bytes(path: str) -> bytes:
    """Read a file, or stdin for ``-``; one byte more than the limit at most, so that the reader can tell."""
    if path == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {error.strerror}.", mend="Name a file that exists.") from None


def repository_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which repository on which GitHub, and how patient to be with it."""
    options = [
        click.option("--repo", metavar="OWNER/NAME", help="The repository; GITHUB_REPOSITORY when not given."),
        click.option(
            "--sandbox",
            is_flag=False,
            flag_value=SANDBOX_DIRECTORY,
            metavar="[DIR]",
            help=f"Work on the embedded local GitHub that is kept in DIR ({SANDBOX_DIRECTORY}).",
        ),
        click.option(
            "--identity",
            default="",
            metavar="LOGIN",
            help="Who the token writes as; needed only for tokens of other apps than GitHub Actions.",
        ),
        click.option(
            "--max-wait",
            type=click.FloatRange(min=0),
            default=900.0,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait in all for GitHub's rate limits before stopping with exit code 3.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def sandbox_server() -> Callable[..., AbstractContextManager[Running]]:
    """Import the embedded local GitHub. Raises WrongUsage when what it needs is not installed."""
    try:
        from accord.sandbox.server import serving
    except ImportError as error:
        raise WrongUsage(
            f"The sandbox needs the package {error.name}, which is not installed.", mend="Install accord[sandbox]."
        ) from None
    return serving


@contextmanager
def github_for(repo: str | None, sandbox: str | None, identity: str, max_wait: float) -> Iterator[tuple[Adapter, str]]:
    """Open the way to a repository; yield it with the repository's name. A sandbox serves as long as it is open."""
    from accord.cli.output import tell_wait
    from accord.github.adapter import Adapter
    from accord.github.port import Access
    from accord.kernel.clock import SystemClock

    if sandbox is not None:
        with sandbox_server()(Path(sandbox), repository=repo) as server:
            access = Access(server.repository, server.token, server.url, identity, max_wait)
            yield Adapter(access, SystemClock(), tell_wait), server.repository
        return
    repository = repo or os.environ.get("GITHUB_REPOSITORY", "")
    if not repository:
        raise WrongUsage("It is not said which repository.", mend="Pass --repo OWNER/NAME, or set GITHUB_REPOSITORY.")
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    api_url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    yield Adapter(Access(repository, token, api_url, identity, max_wait), SystemClock(), tell_wait), repository
