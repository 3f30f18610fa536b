"""``accord dispatch``: what an agent is given for a task of a session, and what it gives back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from accord.cli.options import Choice, dry_run_option, format_option
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.session_output import tried
from accord.cli.sources import read_bytes
from accord.core.documents import read_object
from accord.core.errors import BrokenContract
from accord.core.findings import has_errors
from accord.core.kinds import KINDS
from accord.sessions.models import ROLES, ProjectType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.findings import Finding
    from accord.sessions.folder import Session
    from accord.sessions.models import AgentOutput


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("task", metavar="T-XXX|meta")
@click.option("--role", required=True, type=Choice(ROLES), help="The agent.")
@click.option("--goal", default="", help="What to achieve; else what the task says, or the session's criteria.")
@click.option("--project-type", type=Choice(get_args(ProjectType)), help="Else the session's own, or mixed.")
@click.option(
    "--base", default="", help="What the Reviewer's changed files are counted from; else the session's beginning."
)
@click.option("--constraint", "constraints", multiple=True, help="A hard constraint; again for each.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write prompt.md, schema.json and input.json there, for `accord run --prompt-file … --schema …`.",
)
@click.option("--take", "output", metavar="OUTPUT.json", help="Take this output of the agent back in; - is stdin.")
@dry_run_option
@format_option
@click.pass_context
def dispatch(
    ctx: click.Context,
    /,
    folder: Path,
    task: str,
    role: str,
    goal: str,
    project_type: str | None,
    base: str,
    constraints: Sequence[str],
    into: Path | None,
    output: str | None,
    dry_run: bool,
    output_format: str,
) -> None:
    """Print the input of an agent for a task, as JSON; or take its output back into the session.

    Exits 1 when the agent could not start, or when its output breaks the contract; nothing is written then.
    """
    from accord.core.clock import SystemClock
    from accord.sessions.dispatch import agent_input
    from accord.sessions.folder import read_session
    from accord.sessions.outputs import apply_output

    about = output or str(folder)
    try:
        read = _output(output, role) if output is not None else None
        about = str(folder)
        if read is None:
            session, kind = read_session(folder), project_type or ""
            given = agent_input(session, task, role, goal=goal, project_type=kind, base=base, constraints=constraints)
            if into is not None and not dry_run:
                _put(given, session, into)
            print_json(given)
            return
        with tried(folder, is_dry_run=dry_run) as place:
            taken = apply_output(place, task, role, read[0], clock=SystemClock())
        warnings = [*read[1], *taken.findings]
    except BrokenContract as broken:
        _refuse(ctx, broken.findings, about, output_format)
        return
    if output_format == "json":
        more = {"dry_run": True} if dry_run else {}
        findings = [finding.as_json() for finding in warnings]
        print_json({"ok": True, "changed": taken.said, "findings": findings, **more})
    else:
        print_findings(warnings, output or "")
        click.echo("Dry run, nothing is written: " if dry_run else "", nl=False)
        click.echo(one_line("; ".join(taken.said) or "kept in outputs.jsonl; nothing else changes"))


def _put(given: dict[str, Any], session: Session, into: Path) -> None:
    """Leave what an agent's run takes: the prompt, and the schema that its result is held against."""
    from accord.files.store import write_whole
    from accord.sessions.dispatch import output_schema, prompt_of

    write_whole(into / "prompt.md", prompt_of(given, session))
    write_whole(into / "schema.json", json.dumps(output_schema(given["agent"]), indent=2) + "\n")
    write_whole(into / "input.json", json.dumps(given, indent=2, ensure_ascii=False) + "\n")


def _output(path: str, role: str) -> tuple[AgentOutput, Sequence[Finding]]:
    """Read what an agent gave back, without the secrets that it may repeat, and what was found in it.

    Raises BrokenContract.
    """
    from accord.cli.step import redact

    model, found = KINDS["agent-output"].read_model(read_object(read_bytes(path)), role)
    if model is None or has_errors(found):
        raise BrokenContract("The output breaks the contract.", findings=found)
    return model.model_copy(update={"summary": redact(model.summary)}), found


def _refuse(ctx: click.Context, findings: Sequence[Finding], path: str, output_format: str) -> None:
    if output_format == "json":
        print_json({"ok": False, "findings": [finding.as_json() for finding in findings]})
    else:
        print_findings(findings, path)
    ctx.exit(BrokenContract.exit_code)
