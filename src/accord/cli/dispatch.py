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
    print_operations,
)
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
@folder_argument
@click.argument("task", metavar="T-XXX|meta")
@click.option("--role", required=True, type=Choice(ROLES), help="Agent that gets the task.")
@click.option("--goal", default="", help="Goal, where the task and the criteria have none.")
@click.option("--project-type", type=Choice(get_args(ProjectType)), help="Default: the session's, or mixed.")
@click.option("--base", default="", help="Base of the Reviewer's changed files (default: the session's start).")
@click.option("--constraint", "constraints", multiple=True, help="Hard constraint (repeatable).")
@click.option("--into", type=FOLDER, help="Write prompt.md, schema.json and input.json there, for `accord run`.")
@click.option("--take", "output", metavar="OUTPUT.json", help="Apply this output of the agent; - is stdin.")
@change_options
def dispatch(
    options: ChangeOptions, /, folder: Path, task: str, role: str, into: Path | None, output: str | None, **facts: Any
) -> None:
    """Print an agent's input, or apply the agent's output.

    Exits with 1 where the agent cannot start, or where its output breaks the contract; nothing is written then.
    """
    from accord.sessions.apply import SessionWriter
    from accord.sessions.dispatch import agent_input
    from accord.sessions.folder import read_session
    from accord.sessions.outputs import apply_output

    source = output or str(folder)
    try:
        read = _read_output(output, role) if output is not None else None
        source = str(folder)
        if read is None:
            session = read_session(folder)
            document = agent_input(session, task, role, **facts)
            if into is not None and not options.is_dry_run:
                _write_run_files(document, session, into)
            print_json(document)
            return
        writer = SessionWriter(folder, CLOCK, is_dry_run=options.is_dry_run)
        effects = apply_output(writer, task, role, read[0])
        warnings = [*read[1], *effects.findings]
    except BrokenContract as broken:
        if options.is_json:
            print_json({"ok": False, "findings": [finding.as_json() for finding in broken.findings]})
        else:
            print_findings(broken.findings, source)
        options.ctx.exit(BrokenContract.exit_code)
    if options.is_json:
        findings = [finding.as_json() for finding in warnings]
        keys = dry_run_keys(options, writer)
        print_json({"ok": True, "changed": effects.summary, "findings": findings, **keys})
        return
    print_findings(warnings, output or "")
    if options.is_dry_run:
        print_operations(writer)
    click.echo(one_line("; ".join(effects.summary) or "recorded in outputs.jsonl, no other change"))


def _write_run_files(document: dict[str, Any], session: Session, into: Path) -> None:
    """Write the files of an agent's run: its prompt, and the schema of its output."""
    from accord.files.store import write_whole
    from accord.sessions.dispatch import output_schema, prompt_of

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
