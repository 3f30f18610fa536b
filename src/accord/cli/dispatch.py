"""``accord dispatch``: the input of an agent for a task of a session, and the effects of its output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from accord.cli.options import FOLDER, Choice, argument, command, option
from accord.cli.output import finding_lines, one_line, print_json
from accord.cli.session_output import (
    CLOCK,
    ChangeSessionArguments,
    dry_run_keys,
    planned_lines,
    print_change,
    refusals,
    session_next,
)
from accord.cli.sources import read_bytes
from accord.cli.step import present, redact
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, Severity, has_errors
from accord.core.kinds import KINDS
from accord.core.machine import moves_to_json
from accord.files.store import write_whole
from accord.sessions.apply import SessionWriter
from accord.sessions.dispatch import output_schema, prompt_of
from accord.sessions.folder import Session
from accord.sessions.models import ROLES, AgentOutput, ProjectType
from accord.sessions.next_moves import following_commands, next_moves
from accord.sessions.outputs import OutputEffects, apply_output, moves_between
from accord.sessions.run import fail_agent, start_agent
from accord.sessions.turns import NextActor, move_on
from accord.text.redaction import redact_json


class _DispatchArguments(ChangeSessionArguments):
    task: str = argument("T-XXX|meta")
    role: str = option("--role", "Agent that gets the task.", type=Choice(ROLES), required=True)
    goal: str = option("--goal", "Goal, where the task and the criteria have none.")
    project_type: ProjectType | None = option(
        "--project-type", "Default: the session's, or mixed.", type=Choice(get_args(ProjectType))
    )
    into: Path | None = option(
        "--into", "Write prompt.md, schema.json and input.json there, for `accord run`.", type=FOLDER
    )
    take: str | None = option("--take OUTPUT.json", "Apply this output of the agent; - is stdin.")
    failed: str | None = option("--failed REASON", "Block the session: the agent failed after its retries.")


@command(_DispatchArguments)
def dispatch(given: _DispatchArguments) -> None:
    """Print an agent's input, or apply the agent's output.

    The Coder's task is in progress then. Exits with 1 where the agent cannot start, or where its output breaks the
    contract; nothing is written then.
    """
    if given.take is not None and given.failed is not None:
        raise WrongUsage("`--take` excludes `--failed`.", hint="Use one or the other.")
    folder, task, role = given.folder, given.task, given.role
    writer = SessionWriter(folder, CLOCK, is_dry_run=given.dry_run)
    if given.take is not None:
        with refusals(given, folder, task, given.take):
            output, found = read_output(given.take, role)
        with refusals(given, folder, task, str(folder)):
            before = writer.read()
            effects = apply_output(writer, task, role, output)
        stop = move_on(writer) if output.status == "OK" else NextActor()
        _present_effects(given, writer, before, effects, [*found, *effects.findings], stop)
    elif given.failed is not None:
        with refusals(given, folder, task, str(folder)):
            fail_agent(writer, task, role, given.failed)
        print_change(given, writer)
    else:
        with refusals(given, folder, task, str(folder)):
            document = start_agent(writer, task, role, goal=given.goal, project_type=given.project_type)
        session = writer.read()
        if given.into is not None and not given.dry_run:
            write_run_files(document, session, given.into)
        print_json(document)
        if not given.is_json:
            commands = following_commands(session, task, role)
            click.echo("\n".join(["Next:", *(f"    {one_line(each)}" for each in commands)]), err=True)


def _present_effects(
    given: _DispatchArguments,
    writer: SessionWriter,
    before: Session,
    effects: OutputEffects,
    findings: Sequence[Finding],
    stop: NextActor,
) -> None:
    session = writer.read()
    is_repeated = session.outputs == before.outputs
    changed = [*effects.summary, *moves_between(before, session, effects)]
    document = {"ok": True, "changed": changed, "repeated": is_repeated}
    stopped = [replace(finding, severity=Severity.WARNING) for finding in stop.findings]
    document |= {"findings": [finding.as_json() for finding in (*findings, *stopped)]}
    gates = list(effects.open_gates)
    document |= {"open_gates": gates, "next_moves": moves_to_json(next_moves(session)), **dry_run_keys(given, writer)}
    lines = [*finding_lines(findings, given.take or ""), *(planned_lines(writer) if given.dry_run else ())]
    told = [*(["already recorded in outputs.jsonl"] if is_repeated else []), *changed]
    lines.append(one_line("; ".join(told) or "recorded in outputs.jsonl, no other change"))
    lines += [f"{given.task} is open until an OK of {' and '.join(gates)}"] if gates else []
    lines += [one_line(f"The session does not move on. {stop.reason}")] if stopped else []
    present(given, document, [*lines, *session_next(session)])


def write_run_files(document: dict[str, Any], session: Session, into: Path) -> None:
    """Write what `accord run` needs for an agent, and its input."""
    write_whole(into / "prompt.md", prompt_of(document, session))
    write_whole(into / "schema.json", json.dumps(output_schema(document["agent"]), indent=2) + "\n")
    write_whole(into / "input.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def read_output(path: str, role: str) -> tuple[AgentOutput, Sequence[Finding]]:
    """Return an agent's output, without secrets that it may repeat, and its warnings. Raises BrokenContract."""
    model, found = KINDS["agent-output"].read_model(read_object(read_bytes(path)), role)
    if model is None or has_errors(found):
        raise BrokenContract("The output breaks the contract.", findings=found)
    clean: dict[str, Any] = {"summary": redact(model.summary)}
    for key, texts in (("artifacts", {"findings", "review_comments"}), ("gates", {"security_concerns"})):
        part = getattr(model, key)
        clean[key] = part.model_copy(update=redact_json(part.model_dump(include=texts), redact))
    return model.model_copy(update=clean), found
