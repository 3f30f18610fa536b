"""``accord handoff``: what the roles leave for each other on a task, and the moves that it allows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Choice, dry_run_option, format_option, reading_options, repository_options, together
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.sources import github_for, read_bytes
from accord.core.clock import SystemClock, timestamp
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, Stopped, WrongUsage
from accord.core.findings import Severity, has_errors
from accord.core.kinds import KINDS
from accord.handoffs.files import change_file
from accord.handoffs.models import OLD_STATUSES, normalised
from accord.handoffs.plan import Author, Decided, decide_move, decide_patch
from accord.handoffs.rules import ROLES, handoff_findings, read_handoff
from accord.handoffs.runtime import as_reason
from accord.handoffs.stages import HANDOFF
from accord.text.redaction import redacted, redactor_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.github.client import GitHub
    from accord.handoffs.gate import Sent
    from accord.handoffs.plan import Decided

    Decide = Callable[[dict[str, Any]], Decided]
    from collections.abc import Callable, Sequence

    from accord.core.kinds import KINDS
from accord.core.findings import Finding


def issue_changer(github: GitHub, number: int, *, adopts: bool = False) -> Callable[[Decide, bool], Decided]:
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
    type=Choice(["review", "verification", "done"]),
    default="review",
    show_default=True,
    help="What the handoff must have: all that this stage asks for.",
)
@dry_run_option
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
    from accord.github.pulls import closing_references
    from accord.handoffs.gate import judge_pull, show

    clock, redact = SystemClock(), redactor_for(os.environ)
    with github_for(**access) as (github, repository, *_):
        found = github.pull(pull)
        if found is None:
            raise WrongUsage(f"There is no pull request #{pull} in {repository}.", hint="Name one with --pull.")
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
@click.option(
    "--work-item",
    "issue",
    type=click.IntRange(min=1),
    metavar="N",
    help="The handoff of work item N, instead of a file.",
)
@click.option("--again", is_flag=True, help="Send again what GitHub refused before.")
@dry_run_option
@repository_options
@format_option
@click.pass_context
def dispatch(
    ctx: click.Context,
    /,
    file: str | None,
    issue: int | None,
    again: bool,
    dry_run: bool,
    output_format: str,
    **access: Any,
) -> None:
    """Call who comes next: send each open action of a task as the event accord-handoff (repository_dispatch).

    Waits 5, 15 and 30 seconds where an error should pass (exit code 3 when it does not); an error that will not pass is
    written down and not tried again (4).
    """
    from accord.handoffs.gate import open_actions
    from accord.handoffs.plan import Decided

    if (file is None) == (issue is None):
        raise WrongUsage("Name TASK.json, or --work-item N.", hint="Try: accord handoff dispatch --help")
    with github_for(**access) as (github, *_):
        change = file_changer(file) if file else issue_changer(github, issue or 0)
        actions = open_actions(change(Decided, False).task, again=again)
        sent = [_send(github, action, change, issue) for action in actions] if not dry_run else []
    entries = (
        [{**action, "status": "planned"} for action in actions]
        if dry_run
        else [_as_json_handoff_github(one) for one in sent]
    )
    outcome = "unchanged" if not actions else "planned" if dry_run else "applied"
    if output_format == "json":
        print_json({"ok": not any(one.error for one in sent), "outcome": outcome, "actions": entries})
    else:
        for entry in entries:
            click.echo(f"{entry['status']:<8} {one_line(entry['type']):<24} {one_line(entry['id'])}")
        click.echo(outcome)
    for one in sent:
        if one.error:
            raise one.error
    ctx.exit(0)


def _send(github: GitHub, action: dict[str, Any], change: Callable[[Decide, bool], Decided], issue: int | None) -> Sent:
    """Send one action, and write down what became of it."""
    from accord.handoffs.gate import EVENT, deliver, payload_of, recorded
    from accord.handoffs.plan import Decided

    clock = SystemClock()
    payload = payload_of(change(Decided, False).task, action, issue)
    sent = deliver(action, lambda: github.send_event(EVENT, payload), clock)
    change(lambda task: recorded(task, sent, timestamp(clock.now())), True)
    return sent


def _as_json_handoff_github(sent: Sent) -> dict[str, Any]:
    status = "sent" if sent.error is None else "stopped" if isinstance(sent.error, Stopped) else "refused"
    return {"id": sent.id, "type": sent.type, "status": status, **({"error": sent.error.message} if sent.error else {})}


_issue_option = click.option(
    "--work-item",
    "issue",
    type=click.IntRange(min=1),
    metavar="N",
    help="The handoff of work item N, instead of a file.",
)


_writing_options = together(
    click.option("--role", required=True, type=Choice(list(ROLES)), help="In whose role this is asked."),
    click.option("--actor", default="", metavar="ID", help="Who asks; the role when not given."),
    _issue_option,
    click.option("--adopt", is_flag=True, help="Trust the block in the issue's body where no ref vouches for it."),
    dry_run_option,
    repository_options,
    format_option,
)


@click.group()
def handoff() -> None:
    """Check a task's handoff, change it in a role, and move it through its stages."""


@handoff.command()
@click.argument("files", nargs=-1, metavar="[TASK.json]")
@_issue_option
@reading_options
@format_option
@click.pass_context
def check(ctx: click.Context, /, files: Sequence[str], issue: int | None, output_format: str, **access: Any) -> None:
    """Tell whether a handoff has the form of its contract, and what its status rests on is there."""
    (path,) = _named(files, issue, 0, "TASK.json")
    task: dict[str, Any] | None = None
    try:
        if issue is None:
            document = read_object(read_bytes(path))
            task, findings = normalised(document.value), KINDS["handoff"].check(document)
        else:
            from accord.handoffs.issues import Place, load

            with github_for(**access) as (github, *_):
                held = load(Place(github, issue, SystemClock()))
            task, findings = held.task, [*handoff_findings(read_handoff(held.task)), *held.warnings]
    except BrokenContract as broken:
        findings = list(broken.findings)
    _print(task, findings, "rejected" if has_errors(findings) else "ok", f"#{issue}" if issue else path, output_format)
    ctx.exit(1 if has_errors(findings) else 0)


@handoff.command()
@click.argument("files", nargs=-1, required=True, metavar="[TASK.json] PATCH.json")
@_writing_options
@click.pass_context
def patch(ctx: click.Context, /, files: Sequence[str], role: str, actor: str, issue: int | None, **more: Any) -> None:
    """Merge a patch into a handoff, if the role may make each of its changes."""
    path, patch_path = _named(files, issue, 1, "TASK.json and PATCH.json")

    def decide(author: Author, given: dict[str, Any], task: dict[str, Any]) -> Decided:
        return decide_patch(task, given, author)

    _change(ctx, decide, path, issue, role, actor, patch_path, **more)


@handoff.command()
@click.argument("files", nargs=-1, metavar="[TASK.json]")
@click.option(
    "--to",
    "target",
    required=True,
    type=Choice([*HANDOFF.states, *OLD_STATUSES]),
    metavar="STATUS",
    help="The status to move to.",
)
@click.option("--patch", "patch_path", metavar="PATCH.json", help="Merge this patch first; both are done, or neither.")
@click.option(
    "--on-missing",
    type=Choice(["refuse", "redirect"]),
    default="refuse",
    show_default=True,
    help="Where an artifact is missing: refuse, or ask a person.",
)
@_writing_options
@click.pass_context
def move(
    ctx: click.Context,
    /,
    files: Sequence[str],
    target: str,
    patch_path: str | None,
    on_missing: str,
    role: str,
    actor: str,
    issue: int | None,
    **more: Any,
) -> None:
    """Move a task to another status, if what the stage asks for is there.

    A refused move changes nothing but metadata.workflowRuntime, which says why; it exits with 1.
    """
    (path,) = _named(files, issue, 0, "TASK.json")

    def decide(author: Author, given: dict[str, Any], task: dict[str, Any]) -> Decided:
        to = OLD_STATUSES.get(target, target)
        return decide_move(task, to, author, given, redirects=on_missing == "redirect")

    _change(ctx, decide, path, issue, role, actor, patch_path, **more)


def _change(
    ctx: click.Context,
    decide: Callable[[Author, dict[str, Any], dict[str, Any]], Decided],
    path: str,
    issue: int | None,
    role: str,
    actor: str,
    patch_path: str | None,
    *,
    adopt: bool,
    dry_run: bool,
    output_format: str,
    **access: Any,
) -> None:
    """Decide, write if that is asked for, print, and end with the exit code of what was decided."""
    redact = redactor_for(os.environ)
    author = Author(role, timestamp(SystemClock().now()), redact(actor))
    name = f"#{issue}" if issue else path
    before: list[dict[str, Any]] = []

    def decided_on(task: dict[str, Any]) -> Decided:
        before[:] = [task]
        return decide(author, given, task)

    reading = patch_path or name
    try:
        given = redacted(read_object(read_bytes(patch_path)).value, redact) if patch_path else {}
        reading = name
        if issue is None:
            decided = file_changer(path)(decided_on, not dry_run)
        else:
            with github_for(**access) as (github, *_):
                decided = issue_changer(github, issue, adopts=adopt)(decided_on, not dry_run)
    except BrokenContract as broken:
        _print(None, broken.findings, "rejected", reading, output_format)
        ctx.exit(1)
    is_change = decided.task not in before
    done = ("planned" if dry_run else "applied") if is_change else "unchanged"
    outcome = done if decided.is_ok else "rejected"
    _print(decided.task, decided.reasons, outcome, name, output_format, is_redirected=decided.is_redirected)
    ctx.exit(0 if decided.is_ok else 1)


def _named(files: Sequence[str], issue: int | None, more: int, what: str) -> Sequence[str]:
    """Return the path of the task, empty for an issue's, and the paths after it. Raises WrongUsage for other counts."""
    if issue is not None and len(files) == more:
        return ("", *files)
    if issue is None and len(files) == more + 1:
        return files
    raise WrongUsage(f"Name {what}, or --work-item N in place of TASK.json.", hint="Try: accord handoff --help")


def _print(
    task: dict[str, Any] | None,
    findings: Sequence[Finding],
    outcome: str,
    name: str,
    output_format: str,
    *,
    is_redirected: bool = False,
) -> None:
    reasons = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = [finding for finding in findings if finding.severity is Severity.WARNING]
    status = task.get("status") if task else None
    if output_format == "json":
        print_json(
            {
                "ok": outcome != "rejected",
                "outcome": outcome,
                "status": status,
                "redirected": is_redirected,
                "blockingReasons": [_as_json(reason) for reason in reasons],
                "warnings": [_as_json(warning) for warning in warnings],
                "task": task,
            }
        )
        return
    print_findings(findings, name)
    color = {"rejected": "red", "unchanged": None, "planned": "cyan"}.get(outcome, "green")
    at = f" at {click.style(one_line(str(status)), bold=True)}" if task else ""
    also = " (redirected: a person is asked)" if is_redirected else ""
    click.echo(f"{one_line(name)}{at}: {click.style(outcome, fg=color)}{also}")


def _as_json(finding: Finding) -> dict[str, Any]:
    """Write a finding as a blocking reason, with its line where the file has one for it."""
    return {**as_reason(finding), **({"line": finding.line} if finding.line else {})}


handoff.add_command(gate)
handoff.add_command(dispatch)
