"""``accord handoff gate`` and ``dispatch``: what follows on GitHub from a handoff, a check and calls of who is next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import format_option, one_line, print_findings, print_json
from accord.cli.sources import github_for, repository_options
from accord.handoffs.files import change_file
from accord.handoffs.runtime import as_reason
from accord.kernel.clock import SystemClock, timestamp
from accord.kernel.errors import Stopped, WrongUsage
from accord.kernel.redaction import redactor_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.github.adapter import Adapter
    from accord.handoffs.dispatch import Sent
    from accord.handoffs.plan import Decided

    Decide = Callable[[dict[str, Any]], Decided]


def issue_changer(github: Adapter, number: int, *, adopts: bool = False) -> Callable[[Decide, bool], Decided]:
    """Return what decides about the handoff of a work item, and writes the decision if its second argument says so."""
    from accord.handoffs.issues import Place, change, load

    place = Place(github, number, SystemClock(), redactor_for(os.environ), adopts)
    return lambda decide, writes: change(place, decide) if writes else decide(load(place).task)


def file_changer(path: str) -> Callable[[Decide, bool], Decided]:
    """Return the same for the handoff in a file."""
    return lambda decide, writes: change_file(Path(path), decide, SystemClock(), writes=writes)


@click.command()
@click.option("--pull", required=True, type=click.IntRange(min=1), metavar="N", help="The pull request.")
@click.option("--work-item", type=click.IntRange(min=1), metavar="N", help='Its work item; "Closes #n" when not given.')
@click.option(
    "--to",
    "target",
    type=click.Choice(["review", "verification", "done"]),
    default="review",
    show_default=True,
    help="What the handoff must have: all that this stage asks for.",
)
@click.option("--dry-run", is_flag=True, help="Judge, and set no check.")
@repository_options
@format_option
@click.pass_context
def gate(
    ctx: click.Context,
    /,
    pull: int,
    work_item: int | None,
    target: str,
    dry_run: bool,
    output_format: str,
    **access: Any,
) -> None:
    """Judge the handoff of a pull request's work item, and set the check accord/handoff on its head.

    Exits 1 when something blocks it.
    """
    from accord.cli.step import report_handoff
    from accord.github.closing import closing_references
    from accord.handoffs.gate import judge_pull, show

    clock, redact = SystemClock(), redactor_for(os.environ)
    with github_for(**access) as (github, repository, *_):
        found = github.pull(pull)
        if found is None:
            raise WrongUsage(f"There is no pull request #{pull} in {repository}.", mend="Name one with --pull.")
        numbers = [work_item] if work_item else closing_references(found.body, repository)
        judged = judge_pull(github, found, numbers, target, clock)
        shown, is_new = (None, False) if dry_run else show(github, found, judged, clock, redact)
    outcome = "planned" if dry_run else "not-allowed" if shown is None else "applied" if is_new else "unchanged"
    document = {
        "ok": judged.is_open,
        "outcome": outcome,
        "pull": str(pull),
        "workItem": str(numbers[0]) if len(numbers) == 1 else None,
        "to": target,
        "status": judged.status or None,
        "blockingReasons": [as_reason(reason) for reason in judged.reasons],
        "check": {"kind": shown.kind, "url": shown.url} if shown else None,
    }
    report_handoff(document, judged.reasons)
    if output_format == "json":
        print_json(document)
    else:
        print_findings(judged.reasons, f"#{pull}")
        color, word = ("green", "open") if judged.is_open else ("red", "blocked")
        click.echo(f"#{pull}: {click.style(word, fg=color)} for {target}; check {outcome}")
    ctx.exit(0 if judged.is_open else 1)


@click.command()
@click.argument("file", required=False, metavar="[TASK.json]")
@click.option("--issue", type=click.IntRange(min=1), metavar="N", help="The handoff of work item N, instead of a file.")
@click.option("--again", is_flag=True, help="Send again what GitHub refused before.")
@click.option("--write", is_flag=True, help="Send, and write it down; else it is only printed what would be sent.")
@repository_options
@format_option
@click.pass_context
def dispatch(
    ctx: click.Context,
    /,
    file: str | None,
    issue: int | None,
    again: bool,
    write: bool,
    output_format: str,
    **access: Any,
) -> None:
    """Call who comes next: send each open action of a task as the event accord-handoff (repository_dispatch).

    Waits 5, 15 and 30 seconds where an error should pass (exit code 3 when it does not); an error that will not pass is
    written down and not tried again (4).
    """
    from accord.handoffs.dispatch import open_actions
    from accord.handoffs.plan import Decided

    if (file is None) == (issue is None):
        raise WrongUsage("Name TASK.json, or --issue N.", mend="Try: accord handoff dispatch --help")
    with github_for(**access) as (github, *_):
        change = file_changer(file) if file else issue_changer(github, issue or 0)
        actions = open_actions(change(Decided, False).task, again=again)
        sent = [_send(github, action, change, issue) for action in actions] if write else []
    entries = [_as_json(one) for one in sent] if write else [{**action, "status": "planned"} for action in actions]
    outcome = "unchanged" if not actions else "applied" if write else "planned"
    if output_format == "json":
        print_json({"ok": not any(one.error for one in sent), "outcome": outcome, "actions": entries})
    else:
        for entry in entries:
            click.echo(f"{entry['status']:<8} {one_line(entry['type']):<24} {one_line(entry['id'])}")
        click.echo(f"{outcome}{'  add --write to send' if outcome == 'planned' else ''}")
    for one in sent:
        if one.error:
            raise one.error
    ctx.exit(0)


def _send(
    github: Adapter, action: dict[str, Any], change: Callable[[Decide, bool], Decided], issue: int | None
) -> Sent:
    """Send one action, and write down what became of it."""
    from accord.handoffs.dispatch import EVENT, deliver, payload_of, recorded
    from accord.handoffs.plan import Decided

    clock = SystemClock()
    payload = payload_of(change(Decided, False).task, action, issue)
    sent = deliver(action, lambda: github.send_event(EVENT, payload), clock)
    change(lambda task: recorded(task, sent, timestamp(clock.now())), True)
    return sent


def _as_json(sent: Sent) -> dict[str, Any]:
    status = "sent" if sent.error is None else "stopped" if isinstance(sent.error, Stopped) else "refused"
    return {"id": sent.id, "type": sent.type, "status": status, **({"error": sent.error.message} if sent.error else {})}
