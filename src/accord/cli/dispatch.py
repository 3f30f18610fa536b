"""``accord dispatch``: the input of an agent for a task of a session, and the effects of its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from accord.cli.options import FOLDER, Choice, argument, command, option
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.session_output import (
    CLOCK,
    ChangeSessionArguments,
    dry_run_keys,
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


class _DispatchArguments(ChangeSessionArguments):
    task: str = argument("T-XXX|meta")
    role: str = option("--role", "Agent that gets the task.", type=Choice(ROLES))
    goal: str = option("--goal", "Goal, where the task and the criteria have none.", default="")
    project_type: ProjectType | None = option(
        "--project-type", "Default: the session's, or mixed.", type=Choice(get_args(ProjectType))
    )
    into: Path | None = option(
        "--into", "Write prompt.md, schema.json and input.json there, for `accord run`.", type=FOLDER
    )
    take: str | None = option(
        "--take", "Apply this output of the agent; - is stdin.", was="OUTPUT", metavar="OUTPUT.json"
    )
    failed: str | None = option(
        "--failed", "Block the session: the agent failed after its retries.", was="FAILURE", metavar="REASON"
    )


@command(_DispatchArguments)
def dispatch(given: _DispatchArguments) -> int:
    """Print an agent's input, or apply the agent's output.

    The Coder's task is in progress then. Exits with 1 where the agent cannot start, or where its output breaks the
    contract; nothing is written then.
    """
    from accord.sessions.run import fail_agent, start_agent

    if given.take is not None and given.failed is not None:
        raise WrongUsage("`--take` excludes `--failed`.", hint="Use one or the other.")
    folder, task, role = given.folder, given.task, given.role
    source = given.take or str(folder)
    writer = SessionWriter(folder, CLOCK, is_dry_run=given.dry_run)
    try:
        if given.take is not None:
            output, found = _read_output(given.take, role)
            source = str(folder)
            _take(given, writer, output, found, given.take)
        elif given.failed is not None:
            fail_agent(writer, task, role, given.failed)
            print_change(given, writer)
        else:
            document = start_agent(writer, task, role, goal=given.goal, project_type=given.project_type)
            if given.into is not None and not given.dry_run:
                _write_run_files(document, writer.read(), given.into)
            print_json(document)
            if not given.is_json:
                commands = following(writer.read(), task, role)
                click.echo("\n".join(["Next:", *(f"    {one_line(each)}" for each in commands)]), err=True)
    except BrokenContract as broken:
        if given.is_json:
            findings = [finding.as_json() for finding in broken.findings]
            print_json({"ok": False, "findings": findings, "next_moves": moves_to_json(moves_in(folder, task))})
        else:
            print_findings(broken.findings, source)
            print_moves(folder, task)
        return BrokenContract.exit_code
    return 0


def _take(
    given: _DispatchArguments, writer: SessionWriter, output: AgentOutput, found: Sequence[Finding], source: str
) -> None:
    """Apply an agent's output, and print its effects and the next moves."""
    from accord.sessions.outputs import apply_output

    effects = apply_output(writer, given.task, given.role, output)
    warnings = [*found, *effects.findings]
    if given.is_json:
        document = {"ok": True, "changed": effects.summary, "findings": [finding.as_json() for finding in warnings]}
        moves = moves_to_json(next_moves(writer.read()))
        print_json({**document, "next_moves": moves, **dry_run_keys(given, writer)})
        return
    print_findings(warnings, source)
    if given.dry_run:
        print_operations(writer)
    lines = [one_line("; ".join(effects.summary) or "recorded in outputs.jsonl, no other change")]
    click.echo("\n".join([*lines, *next_lines(writer.read())]))


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
