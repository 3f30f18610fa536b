"""``accord dispatch``: the input of an agent for a task of a session, and the effects of its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from accord.cli.options import FOLDER, Choice
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.session_output import (
    CLOCK,
    ChangeOptions,
    change_options,
    dry_run_keys,
    folder_argument,
    moves_in,
    next_lines,
    print_change,
    print_moves,
    print_operations,
)
from accord.cli.sources import read_bytes
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import has_errors
from accord.core.kinds import KINDS
from accord.core.moves import moves_to_json
from accord.sessions.apply import SessionWriter
from accord.sessions.models import ROLES, ProjectType
from accord.sessions.next_moves import following, next_moves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.findings import Finding
    from accord.sessions.folder import Session
    from accord.sessions.models import AgentOutput


@click.command()
@folder_argument
@click.argument("task", metavar="T-XXX|meta")
@click.option("--role", required=True, type=Choice(ROLES), help="Agent that gets the task.")
@click.option("--goal", default="", help="Goal, where the task and the criteria have none.")
@click.option("--project-type", type=Choice(get_args(ProjectType)), help="Default: the session's, or mixed.")
@click.option("--into", type=FOLDER, help="Write prompt.md, schema.json and input.json there, for `accord run`.")
@click.option("--take", "output", metavar="OUTPUT.json", help="Apply this output of the agent; - is stdin.")
@click.option("--failed", "failure", metavar="REASON", help="Block the session: the agent failed after its retries.")
@change_options
def dispatch(
    options: ChangeOptions,
    /,
    folder: Path,
    task: str,
    role: str,
    into: Path | None,
    output: str | None,
    failure: str | None,
    **facts: Any,
) -> None:
    """Print an agent's input, or apply the agent's output.

    The Coder's task is in progress then. Exits with 1 where the agent cannot start, or where its output breaks the
    contract; nothing is written then.
    """
    from accord.sessions.run import fail_agent, start_agent

    if output is not None and failure is not None:
        raise WrongUsage("`--take` excludes `--failed`.", hint="Use one or the other.")
    source = output or str(folder)
    writer = SessionWriter(folder, CLOCK, is_dry_run=options.is_dry_run)
    try:
        if output is not None:
            read = _read_output(output, role)
            source = str(folder)
            _take(options, writer, task, role, *read, output)
        elif failure is not None:
            fail_agent(writer, task, role, failure)
            print_change(options, writer)
        else:
            document = start_agent(writer, task, role, **facts)
            if into is not None and not options.is_dry_run:
                _write_run_files(document, writer.read(), into)
            print_json(document)
            if not options.is_json:
                commands = following(writer.read(), task, role)
                click.echo("\n".join(["Next:", *(f"    {one_line(command)}" for command in commands)]), err=True)
    except BrokenContract as broken:
        if options.is_json:
            findings = [finding.as_json() for finding in broken.findings]
            print_json({"ok": False, "findings": findings, "next_moves": moves_to_json(moves_in(folder, task))})
        else:
            print_findings(broken.findings, source)
            print_moves(folder, task)
        options.ctx.exit(BrokenContract.exit_code)


def _take(
    options: ChangeOptions,
    writer: SessionWriter,
    task: str,
    role: str,
    output: AgentOutput,
    found: Sequence[Finding],
    source: str,
) -> None:
    """Apply an agent's output, and print its effects and the next moves."""
    from accord.sessions.outputs import apply_output

    effects = apply_output(writer, task, role, output)
    warnings = [*found, *effects.findings]
    if options.is_json:
        document = {"ok": True, "changed": effects.summary, "findings": [finding.as_json() for finding in warnings]}
        moves = moves_to_json(next_moves(writer.read()))
        print_json({**document, "next_moves": moves, **dry_run_keys(options, writer)})
        return
    print_findings(warnings, source)
    if options.is_dry_run:
        print_operations(writer)
    lines = [one_line("; ".join(effects.summary) or "recorded in outputs.jsonl, no other change")]
    click.echo("\n".join([*lines, *next_lines(writer.read())]))


def _write_run_files(document: dict[str, Any], session: Session, into: Path) -> None:
    """Write the files of an agent's run: its prompt, and the schema of its output."""
    from accord.files.store import write_whole
    from accord.sessions.prompts import output_schema, prompt_of

    write_whole(into / "prompt.md", prompt_of(document, session))
    write_whole(into / "schema.json", json.dumps(output_schema(document["agent"]), indent=2) + "\n")
    write_whole(into / "input.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _read_output(path: str, role: str) -> tuple[AgentOutput, Sequence[Finding]]:
    """Return an agent's output, without secrets that it may repeat, and its warnings. Raises BrokenContract."""
    from accord.cli.step import redact

    model, found = KINDS["agent-output"].read_model(read_object(read_bytes(path)), role)
    if model is None or has_errors(found):
        raise BrokenContract("The output breaks the contract.", findings=found)
    return model.model_copy(update={"summary": redact(model.summary)}), found
