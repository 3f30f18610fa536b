"""The steps of ``accord demo``: what a planner, an implementor and a reviewer wrote down is applied, each twice.

Who does what is as in a repository with agents: what they wrote down is applied by an app, the review by somebody
else, because GitHub takes no verdict on one's own pull request.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import Progress, tell_wait
from accord.cli.receipts import print_receipt
from accord.github.adapter import Adapter
from accord.github.port import Access
from accord.kernel.branches import Remote
from accord.kernel.clock import SystemClock
from accord.kernel.documents import read_object
from accord.kernel.redaction import Redactor
from accord.kernel.shapes import read_shape
from accord.results.implementor.facts import Implementation
from accord.results.implementor.run import apply_implementation
from accord.results.kinds import IMPLEMENTOR, PLANNER, REVIEWER
from accord.results.label_sync import plan_labels, sync_labels
from accord.results.labels import shipped_labels
from accord.results.planner.rules import read_plan
from accord.results.planner.run import apply_plan
from accord.results.reviewer.facts import Reviewed
from accord.results.reviewer.run import apply_review
from accord.results.setting import Setting
from accord.results.status import current_status
from accord.results.status_run import move_work_item
from accord.sandbox.seed import INSTALLATION_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.kernel.kinds import Kind
    from accord.kernel.shapes import Model
    from accord.results.receipts import Receipt
    from accord.sandbox.server import Running

ITEM = "csv-writer"
"""The item of the example plan that the other examples are about."""


def example(name: str) -> Path:
    """Return an example: beside the package where it is installed, in the checkout where it is not."""
    package = Path(__file__).parents[1]
    installed = package / "examples" / name
    return installed if installed.exists() else package.parents[1] / "examples" / name


def show_all(server: Running) -> str:
    """Go all steps, saying each, and return the address of the pull request. Exits where a result is not applied."""
    app, person = _signed_in(server, INSTALLATION_TOKEN), _signed_in(server, server.token)
    setting = Setting(server.repository, SystemClock(), Redactor())
    _say(f"1. Bring the labels in step: {_sync(person)}\n")

    plan = read_plan(_read(PLANNER))
    planned = _apply_twice("2", PLANNER, lambda: apply_plan(app, plan, setting))

    number = int(planned.items[ITEM].id)
    _say(f"3. Somebody takes up #{number}: {_take_up(person, number)}\n")

    work = _read(IMPLEMENTOR)
    remote = Remote(f"{server.url}/{server.repository}.git", server.url, INSTALLATION_TOKEN, setting.clock)
    implementation = Implementation(number, remote)
    made = _apply_twice("4", IMPLEMENTOR, lambda: apply_implementation(app, work, implementation, setting))

    review = _read(REVIEWER)
    reviewed = Reviewed(int(made.details["revision"]["id"]))
    _apply_twice("5", REVIEWER, lambda: apply_review(person, review, reviewed, setting))
    return str(made.details["revision"]["url"])


def _signed_in(server: Running, token: str) -> Adapter:
    return Adapter(Access(server.repository, token, server.url), SystemClock(), tell_wait)


def _read(kind: Kind[Model]) -> Model:
    return read_shape(kind.model, read_object(example(f"{kind.name}.json").read_bytes()).value)


def _sync(github: Adapter) -> str:
    """Bring the labels in step, and say how many that made."""
    actions, _ = plan_labels(shipped_labels(), github.labels(), ())
    ended, problem = sync_labels(github, actions, SystemClock(), Progress(len(actions)))
    if problem:
        raise problem
    return f"{sum(action.is_change for action in ended)} of {len(ended)} created"


def _apply_twice(step: str, kind: Kind[Any], apply: Callable[[], Receipt]) -> Receipt:
    """Apply an example, show what came of it, and show that doing it again writes nothing."""
    _say(f"{step}. Apply what the {kind.marks['role']} wrote down: {kind.name}.json")
    receipt = apply()
    print_receipt(receipt, f"{kind.name}.json", most=1)
    if receipt.exit_code:
        raise click.exceptions.Exit(receipt.exit_code)
    again = apply()
    click.echo(f"and again: {again.outcome} ({again.reads} reads, {again.writes} writes)\n")
    return receipt


def _take_up(github: Adapter, number: int) -> str:
    """Move the item to where an implementor may begin, unless an earlier demo of this folder did; say which way."""
    issue = github.issue(number)
    way = ["pending", "ready", "in-progress"]
    if issue is None or current_status(issue) not in way[:2]:
        return "it is taken up already"
    way = way[way.index(current_status(issue)) :]
    for target in way[1:]:
        move_work_item(github, number, target)
    return " → ".join(way)


def _say(line: str) -> None:
    click.echo(click.style(line, bold=True))
