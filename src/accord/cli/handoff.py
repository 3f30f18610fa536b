"""``accord handoff``: what the roles leave for each other on a task, and the moves that it allows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from accord.cli.handoff_github import dispatch, file_changer, gate, issue_changer
from accord.cli.output import format_option, one_line, print_findings, print_json
from accord.cli.sources import github_for, read_bytes, reading_options, repository_options, together
from accord.handoffs.kinds import HANDOFF as HANDOFF_KIND
from accord.handoffs.normal import OLD_STATUSES, normalised
from accord.handoffs.plan import Author, Decided, decide_move, decide_patch
from accord.handoffs.roles import ROLES
from accord.handoffs.rules import handoff_findings, read_handoff
from accord.handoffs.runtime import as_reason
from accord.handoffs.stages import HANDOFF
from accord.kernel.clock import SystemClock, timestamp
from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.kernel.findings import Severity, has_errors
from accord.kernel.redaction import redacted, redactor_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.kernel.findings import Finding

_issue_option = click.option(
    "--issue", type=click.IntRange(min=1), metavar="N", help="The handoff of work item N, instead of a file."
)


_writing_options = together(
    click.option("--role", required=True, type=click.Choice(list(ROLES)), help="In whose role this is asked."),
    click.option("--actor", default="", metavar="ID", help="Who asks; the role when not given."),
    _issue_option,
    click.option("--adopt", is_flag=True, help="Trust the block in the issue's body where no ref vouches for it."),
    click.option("--write", is_flag=True, help="Write the result; else it is only printed."),
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
            task, findings = normalised(document.value), HANDOFF_KIND.check(document)
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
    type=click.Choice([*HANDOFF.states, *OLD_STATUSES]),
    metavar="STATUS",
    help=f"Where the task goes: {', '.join(HANDOFF.states)}.",
)
@click.option("--patch", "patch_path", metavar="PATCH.json", help="Merge this patch first; both are done, or neither.")
@click.option(
    "--on-missing",
    type=click.Choice(["refuse", "redirect"]),
    default="refuse",
    show_default=True,
    help="Where an artifact is missing: refuse the move, or ask a person (awaiting_human).",
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
    write: bool,
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
            decided = file_changer(path)(decided_on, write)
        else:
            with github_for(**access) as (github, *_):
                decided = issue_changer(github, issue, adopts=adopt)(decided_on, write)
    except BrokenContract as broken:
        _print(None, broken.findings, "rejected", reading, output_format)
        ctx.exit(1)
    is_change = decided.task not in before
    done = ("applied" if write else "planned") if is_change else "unchanged"
    outcome = done if decided.is_ok else "rejected"
    _print(decided.task, decided.reasons, outcome, name, output_format, is_redirected=decided.is_redirected)
    ctx.exit(0 if decided.is_ok else 1)


def _named(files: Sequence[str], issue: int | None, more: int, what: str) -> Sequence[str]:
    """Return the path of the task, empty for an issue's, and the paths after it. Raises WrongUsage for other counts."""
    if issue is not None and len(files) == more:
        return ("", *files)
    if issue is None and len(files) == more + 1:
        return files
    raise WrongUsage(f"Name {what}, or --issue N in place of TASK.json.", mend="Try: accord handoff --help")


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
    hint = "  add --write to write it" if outcome == "planned" else ""
    click.echo(f"{one_line(name)}{at}: {click.style(outcome, fg=color)}{also}{hint}")


def _as_json(finding: Finding) -> dict[str, Any]:
    """Write a finding as a blocking reason, with its line where the file has one for it."""
    return {**as_reason(finding), **({"line": finding.line} if finding.line else {})}


handoff.add_command(gate)
handoff.add_command(dispatch)
