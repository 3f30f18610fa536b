"""``accord sandbox``: serve a local GitHub, show its content, print the schema of its seed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import click

from accord.cli.options import FOLDER, SANDBOX_DIRECTORY, Arguments, Group, command, option
from accord.cli.output import announce, print_json
from accord.cli.sources import sandbox_server
from accord.core.errors import WrongUsage


class _SandboxArguments(Arguments):
    directory: Path = option("--dir", "Directory of the sandbox.", type=FOLDER, default=SANDBOX_DIRECTORY)
    repo: str | None = option("--repo OWNER/NAME", "Repository; default: the home repository.")


class _ServeArguments(_SandboxArguments):
    port: int = option("--port", "Port on 127.0.0.1; 0 is a free one.", least=0, most=65535, default=0)
    seed: Path | None = option(
        "--seed",
        "Content of a new sandbox, as YAML or JSON.",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
    )
    no_rate_limits: bool = option("--no-rate-limits", "Turn off the rate limits.")


sandbox = Group("sandbox", help="Serve and show a local GitHub.")


@command(_ServeArguments, of=sandbox)
def serve(given: _ServeArguments) -> None:
    """Serve a local GitHub until interrupted.

    Prints one JSON line with url, token and repository when it is ready. The url is also a web page.
    """
    serving, directory, seed = sandbox_server(), given.directory, given.seed
    from accord_sandbox.calls import SandboxSettings
    from accord_sandbox.server import has_other_content
    from accord_sandbox.tokens import RateLimits

    if seed and has_other_content(directory, seed):
        message = f"`{directory}` has a sandbox with other content, so `--seed` would have no effect."
        hint = f"Pass a new directory as `--dir`, leave out `--seed`, or delete `{directory}` to begin again."
        raise WrongUsage(message, hint=hint)
    signaled, note = os.pipe()
    for number in (signal.SIGINT, signal.SIGTERM):  # an Event that its waiter itself sets can lock up
        signal.signal(number, lambda _number, _frame: os.write(note, b"x"))
    settings = SandboxSettings(rate_limits=None if given.no_rate_limits else RateLimits())
    with serving(directory, port=given.port, repository=given.repo, seed=seed, settings=settings) as running:
        ready = {"url": running.url, "token": running.token, "repository": running.repository}
        announce(json.dumps(ready))  # not through print_json: the token must not be redacted
        os.read(signaled, 1)


@command(_SandboxArguments, of=sandbox)
def show(given: _SandboxArguments) -> None:
    """Print the content of a sandbox as one JSON document.

    Shows issues, labels, pull requests and reviews. Needs no server.
    """
    from accord_sandbox.show import document

    print_json(document(given.directory, given.repo))


@sandbox.command()
def schema() -> None:
    """Print the JSON Schema of a seed file."""
    from accord.core.schemas import json_schema
    from accord_sandbox.seed import Seed

    print_json(json_schema(Seed, "sandbox-seed"))
