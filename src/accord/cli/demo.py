"""``accord demo``: from an empty repository to a reviewed pull request on the embedded sandbox."""

from __future__ import annotations

import sys
import tempfile
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import Arguments, command, option
from accord.cli.output import Progress, print_wait
from accord.cli.receipts import print_receipt
from accord.cli.sources import sandbox_server
from accord.core.clock import SystemClock
from accord.core.errors import Interrupted
from accord.engine.operations import ApplyOptions
from accord.engine.receipts import Receipt
from accord.git.branches import Remote
from accord.github.client import GitHub
from accord.github.models import Access
from accord.results.label_sync import apply_labels, plan_labels, shipped_labels
from accord.results.run import apply_result, example_folder, read_result
from accord.results.run_options import PlanOptions, ReviewOptions, RevisionOptions
from accord.results.status import current_status, move_work_item
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.planting import INSTALLATION_TOKEN

if TYPE_CHECKING:
    from accord_sandbox.server import RunningSandbox

ITEMS = {
    "contacts": "csv-writer",
    "python-library": "parse-span",
    "typescript-app": "search",
    "documentation": "storm-page",
}
"""The examples, each with the item of its plan that its other results implement and review."""


class _DemoArguments(Arguments):
    directory: Path | None = option("--dir", "Keep the sandbox here; default: delete it.")
    no_stay: bool = option("--no-stay", "End at once, also on a terminal.")
    example: str = option("--example", "The repository.", among=ITEMS, default="contacts")


@command(_DemoArguments)
def demo(given: _DemoArguments) -> None:
    """Try accord on the embedded sandbox.

    Starts a local GitHub with an example repository, and applies a plan, a patch and a review, each twice.
    """
    name = given.example
    serving, seed = sandbox_server(), example_folder(name) / "sandbox-seed.yml"
    kept = nullcontext(given.directory) if given.directory else tempfile.TemporaryDirectory(prefix="accord-demo-")
    with kept as home, serving(Path(home), seed=seed) as server:
        pull_url = show_all(server, name)
        click.echo(f"Pull request:  {pull_url}")
        click.echo(f"Work items:    {server.url}/{server.repository}/issues")
        if not given.no_stay and sys.stdout.isatty() and sys.stdin.isatty():
            click.echo("\nServing until Ctrl-C.")
            with suppress(KeyboardInterrupt, Interrupted):
                threading.Event().wait()
            click.echo("")


def show_all(server: RunningSandbox, name: str) -> str:
    """Run all steps and return the address of the pull request. Exits with an error if a result is not applied."""

    def sign_in(token: str) -> GitHub:
        return GitHub(Access(server.repository, token, server.url), SystemClock(), print_wait)

    def apply_twice(step: int, role: str, github: GitHub, options: ApplyOptions) -> Receipt:
        """Apply an example, show its receipt, and show that applying it again writes nothing."""
        file = f"{role}-result.json"
        _say(f"{step}. Apply the {role}'s result: {file}")
        result = read_result((example_folder(name) / file).read_bytes())
        receipt = apply_result(github, result, options)
        print_receipt(receipt, file, most=1)
        if receipt.exit_code:
            raise click.exceptions.Exit(receipt.exit_code)
        again = apply_result(github, result, options)
        if again.error:
            raise again.error
        click.echo(f"and again: {again.outcome} ({again.reads} reads, {again.writes} writes)\n")
        return receipt

    app, person = sign_in(INSTALLATION_TOKEN), sign_in(server.token)
    setting = (server.repository, SystemClock(), Redactor(), PostingPolicy())
    _say(f"1. Synchronise the labels: {sync_labels(person)}\n")
    planned = apply_twice(2, "planner", app, PlanOptions(*setting))
    number = int(planned.items[ITEMS[name]].id)
    _say(f"3. Take up #{number}: {take_up(person, number)}\n")
    remote = Remote(f"{server.url}/{server.repository}.git", server.url, INSTALLATION_TOKEN, SystemClock())
    made = apply_twice(4, "implementor", app, RevisionOptions(*setting, work_item=number, remote=remote))
    revision = made.details["revision"]
    apply_twice(5, "reviewer", person, ReviewOptions(*setting, pull=int(revision["id"])))
    return str(revision["url"])


def sync_labels(github: GitHub) -> str:
    """Create the shipped labels, and say how many."""
    actions, _ = plan_labels(shipped_labels(), github.labels(), ())
    ended, problem = apply_labels(github, actions, Progress(len(actions)))
    if problem:
        raise problem
    return f"{sum(action.is_change for action in ended)} of {len(ended)} created"


def take_up(github: GitHub, number: int) -> str:
    """Move the item to in-progress, unless an earlier demo in this folder did; return the path."""
    issue = github.issue(number)
    way = ["pending", "ready", "in-progress"]
    if issue is None or current_status(issue) not in way[:2]:
        return "already taken up"
    way = way[way.index(current_status(issue)) :]
    for target in way[1:]:
        move_work_item(github, number, target)
    return " → ".join(way)


def _say(line: str) -> None:
    click.echo(click.style(line, bold=True))
