"""``accord demo``: a work item's way on the embedded sandbox, from an empty repository to a reviewed pull request."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.sources import sandbox_server
from accord.kernel.errors import Stopped

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command()
@click.option("--dir", "directory", type=click.Path(path_type=Path), help="Keep the sandbox here; else it goes away.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Serve on this port; a free one when not given.")
@click.option("--stay/--no-stay", default=None, help="Serve until Ctrl-C; the default on a terminal.")
def demo(directory: Path | None, port: int, stay: bool | None) -> None:
    """Start a local GitHub, plan, implement and review on it, each twice, and say where to look.

    What it applies is in the folder examples: a plan of eleven work items, a patch for one of them, and its review.
    """
    serving = sandbox_server()
    from accord.cli.demo_steps import example, show_all

    with _kept(directory) as home, serving(home, port=port, seed=example("sandbox-seed.yml")) as server:
        pull_url = show_all(server)
        home_url = f"{server.url}/{server.repository}"
        click.echo(f"Look at the pull request:  {pull_url}")
        click.echo(f"at the work items:         {home_url}/issues")
        click.echo(f"and how they depend:       {home_url}/dependencies")
        if stay if stay is not None else sys.stdout.isatty() and sys.stdin.isatty():
            click.echo("\nServing until Ctrl-C.")
            _wait()


@contextmanager
def _kept(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="accord-demo-") as temporary:
        yield Path(temporary)


def _wait() -> None:
    import threading

    try:
        threading.Event().wait()
    except (KeyboardInterrupt, Stopped):
        click.echo("")
