"""``accord demo``: the main job on the embedded sandbox, from nothing to a tracker one can look at."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.apply import print_receipt
from accord.cli.output import Progress, tell_wait
from accord.cli.sources import sandbox_server
from accord.kernel.documents import read_object
from accord.kernel.errors import Stopped
from accord.kernel.shapes import read_shape
from accord.results.label_sync import plan_labels, sync_labels
from accord.results.labels import shipped_labels
from accord.results.models import PlannerResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.github.port import GitHub

EXAMPLE = "planner-result.json"


@click.command()
@click.option("--dir", "directory", type=click.Path(path_type=Path), help="Keep the sandbox here; else it goes away.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Serve on this port; a free one when not given.")
@click.option("--stay/--no-stay", default=None, help="Serve until Ctrl-C; the default on a terminal.")
def demo(directory: Path | None, port: int, stay: bool | None) -> None:
    """Start a local GitHub, sync labels, apply a plan of eleven items, apply it again, and say where to look."""
    from accord.github.adapter import Adapter
    from accord.github.port import Access
    from accord.kernel.clock import SystemClock

    with _kept(directory) as home, sandbox_server()(home, port=port) as server:
        github = Adapter(Access(server.repository, server.token, server.url), SystemClock(), tell_wait)
        _show(github, server.repository)
        click.echo(f"\nLook at the issues:        {server.url}/{server.repository}/issues")
        click.echo(f"and how they depend:       {server.url}/{server.repository}/dependencies")
        if stay if stay is not None else sys.stdout.isatty() and sys.stdin.isatty():
            click.echo("\nServing until Ctrl-C.")
            _wait()


def _show(github: GitHub, repository: str) -> None:
    from accord.kernel.clock import SystemClock
    from accord.kernel.redaction import Redactor
    from accord.results.run import Setting, apply_plan

    _say("1. Bring the labels of the repository in step")
    actions, _ = plan_labels(shipped_labels(), github.labels(), ())
    ended, problem = sync_labels(github, actions, SystemClock(), Progress(len(actions)))
    if problem:
        raise problem
    click.echo(f"{sum(action.is_change for action in ended)} of {len(ended)} labels created\n")

    file = example()
    result = read_shape(PlannerResult, read_object(file.read_bytes()).value)
    setting = Setting(repository, SystemClock(), Redactor())
    _say(f"2. Apply what the planner wrote down: {file.name}")
    print_receipt(apply_plan(github, result, setting), file.name)
    _say("\n3. Apply it again: nothing happens twice")
    before = github.requests.read
    again = apply_plan(github, result, setting)
    click.echo(
        f"{again.outcome}: all {len(again.items)} items were found, {github.requests.read - before} requests read"
    )


def example() -> Path:
    """Return the example plan: beside the package where it is installed, in the checkout where it is not."""
    package = Path(__file__).parents[1]
    installed = package / "examples" / EXAMPLE
    return installed if installed.exists() else package.parents[1] / "examples" / EXAMPLE


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


def _say(line: str) -> None:
    click.echo(click.style(line, bold=True))
