"""``accord dispatch`` and ``accord session run``: an agent's input, the effects of its output, and all turns of one."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import FOLDER, argument, command, option
from accord.cli.output import finding_lines, one_line, print_json
from accord.cli.session_output import (
    CLOCK,
    ChangeSessionArguments,
    as_document,
    dry_run_keys,
    planned_lines,
    print_change,
    refusals,
    screen,
    session_next,
)
from accord.cli.session_questions import prompt_user, texts_of
from accord.cli.sources import read_bytes
from accord.cli.step import present, redact
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, Interrupted, Refused, Stopped, WrongUsage
from accord.core.findings import Finding, Severity, has_errors
from accord.core.kinds import KINDS
from accord.core.machine import moves_to_json
from accord.files.store import write_whole
from accord.git.patch_text import lines_of_files
from accord.git.paths import some_of
from accord.git.program import Git
from accord.sessions.apply import SessionWriter
from accord.sessions.changes import foreign_changes
from accord.sessions.dispatch import output_schema, prompt_of
from accord.sessions.folder import Session
from accord.sessions.models import ROLES, AgentOutput
from accord.sessions.next_moves import following_commands, next_moves
from accord.sessions.outputs import OutputEffects, apply_output, moves_between
from accord.sessions.policy import INTO, WORK, refuse
from accord.sessions.run import answer, fail_agent, interview, start_agent
from accord.sessions.turns import NextActor, move_on, run_session, start_turn, stopped_by, take_turn
from accord.text.redaction import redact_json

if TYPE_CHECKING:
    from accord.runner.models import StopSignals


class _DispatchArguments(ChangeSessionArguments):
    task: str = argument("T-XXX|meta")
    role: str = option("--role", "Agent that gets the task.", among=ROLES, required=True)
    goal: str = option("--goal", "Goal, where the task and the criteria have none.")
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
            effects = apply_output(writer, task, role, output)
        stop = move_on(writer) if output.status == "OK" else NextActor()
        _present_effects(given, writer, effects, [*found, *effects.findings], stop)
    elif given.failed is not None:
        with refusals(given, folder, task, str(folder)):
            fail_agent(writer, task, role, given.failed)
        print_change(given, writer)
    else:
        with refusals(given, folder, task, str(folder)):
            document = start_agent(writer, task, role, goal=given.goal)
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
    effects: OutputEffects,
    findings: Sequence[Finding],
    stop: NextActor,
) -> None:
    session = writer.read()
    changed = [*effects.summary, *moves_between(effects, session)]
    document = {"ok": True, "changed": changed, "repeated": effects.is_repeated}
    stopped = [replace(finding, severity=Severity.WARNING) for finding in stop.findings]
    document |= {"findings": [finding.as_json() for finding in (*findings, *stopped)]}
    gates = list(effects.open_gates)
    document |= {"open_gates": gates, "next_moves": moves_to_json(next_moves(session)), **dry_run_keys(given, writer)}
    lines = [*finding_lines(findings, given.take or ""), *(planned_lines(writer) if given.dry_run else ())]
    told = [*(["already recorded in outputs.jsonl"] if effects.is_repeated else []), *changed]
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


class _RunSessionArguments(ChangeSessionArguments):
    answers: tuple[str, ...] = argument("[ID=TEXT]…")
    agent: str = option("--agent NAME", "Agent of the registry that takes the turns.")
    goal: str = option("--goal", "Goal of a new session.")
    take: str | None = option("--take OUTPUT.json", "Take this output of --role first; - is stdin.")
    role: str | None = option("--role", "Agent that gave the output.", among=ROLES)
    task: str = option("--task T-XXX|meta", "Task of the output.", default="meta")
    into: Path = option("--into", "Folder for the input of each agent.", type=FOLDER, default=INTO)


@command(_RunSessionArguments, "run")
def run_turns(given: _RunSessionArguments) -> int:
    """Let a session go on until a person is needed.

    With --agent, that agent takes each role in turn, and questions are asked on the terminal. Without it, the input of
    the next agent is written, and --take gives its output back. Exits with 3 where a person is needed; with 1 where an
    agent changed files that its role does not write.
    """
    if given.take is not None and given.role is None:
        raise WrongUsage("`--take` needs `--role`.", hint="Copy the command that was printed with the agent's input.")
    texts, writer = texts_of(given.answers), SessionWriter(given.folder, CLOCK, is_dry_run=given.dry_run)
    with refusals(given, given.folder):
        if texts:
            answer(writer, texts)
        turn, taken = None, list[str]()
        if given.take is not None and given.role:
            output, found = read_output(given.take, given.role)
            effects, turn = take_turn(writer, given.task, given.role, output)
            taken = finding_lines([*found, *effects.findings], given.take)
            taken += ["already recorded in outputs.jsonl"] if effects.is_repeated else []
        if turn is None:
            turn = _by_hand(given, writer) if given.dry_run or not given.agent else _by_agent(given, writer)
    session = writer.read()
    is_waiting = bool(turn.reason)
    # the command names role and task, because an agent can write the input's file
    words = ("--take", "OUTPUT.json", "--role", turn.role, "--task", turn.task)
    taking = shlex.join(["accord", "session", "run", str(given.folder), *words]) if turn.role else ""
    next_command = turn.command or taking
    shown = {"who": turn.role or ("user" if is_waiting else ""), "task": turn.task, "why": turn.reason}
    document = {**as_document(session), **dry_run_keys(given, writer), "turn": {**shown, "command": next_command}}
    lines = [*taken, *(planned_lines(writer) if given.dry_run else ()), *screen(session), ""]
    if turn.role:
        lines.append(one_line(f"{turn.role} works on {turn.task}, with {given.into / 'prompt.md'}"))
    lines += [f"A person is needed. {one_line(turn.reason)}"] if is_waiting else []
    present(given, document, [*lines, *(["Next:", f"    {one_line(next_command)}"] if next_command else [])])
    return Stopped.exit_code if is_waiting else 0


def _by_hand(given: _RunSessionArguments, writer: SessionWriter) -> NextActor:
    turn = move_on(writer, goal=given.goal)
    if turn.role:
        try:
            document = start_turn(writer, turn)
        except BrokenContract as broken:  # what was taken, answered or moved stays
            return stopped_by(broken)
        if not given.dry_run:
            write_run_files(document, writer.read(), given.into)
    return turn


def _by_agent(given: _RunSessionArguments, writer: SessionWriter) -> NextActor:
    from accord.runner.process import counting_stop_signals

    with counting_stop_signals() as stop:
        return run_session(
            writer,
            lambda document: _output_of(given, writer, document, stop),
            lambda: sys.stdin is not None and sys.stdin.isatty() and interview(writer, prompt_user),
            goal=given.goal,
        )


def _output_of(
    given: _RunSessionArguments, writer: SessionWriter, document: dict[str, Any], stop: StopSignals
) -> AgentOutput | str:
    """Run the agent with its input in the project; return its output, or why it gave none."""
    from accord.cli.run import run_with_output  # slow, as in the other functions of this module
    from accord.cli.run_step import finish_options, require_result
    from accord.cli.sources import local_policy
    from accord.runner.finish import finish, read_patch
    from accord.runner.models import RunRequest
    from accord.runner.record import RESULT

    session, role = writer.read(), str(document["agent"])
    run_dir = Path(tempfile.mkdtemp(prefix="accord-run-", dir=os.environ.get("RUNNER_TEMP") or None))
    click.echo(one_line(f"{role} works on {document['task']['id']}, with its log in {run_dir}"), err=True)
    write_run_files(document, session, given.into)
    request = RunRequest(
        agent=given.agent,
        run_dir=run_dir,
        directory=session.root,
        prompt_file=given.into.absolute() / "prompt.md",
        schema=given.into.absolute() / "schema.json",
        kind="agent-output",
    )
    record = run_with_output(request, stop)
    steering = [*dict.fromkeys([*record.steering, *record.left_out_steering])]
    above = Git(session.root).line("rev-parse", "--show-prefix") if steering else ""
    own = f"{above}{WORK}/{session.name}/", f"{above}{INTO}/"  # the input is written again for each turn
    if steering := [path for path in steering if not path.startswith(own)]:
        message = f"{role} on {document['task']['id']} changed files that steer the next agent: {some_of(steering)}."
        raise Refused(message, hint="Look at them, undo or commit them, and run the command again.")
    changed = lines_of_files(read_patch(run_dir, record)) if record.patch_sha256 else {}
    if forbidden := list(foreign_changes(session, role, changed)):
        raise refuse(f"{role} on {document['task']['id']} changed files that its role does not write.", forbidden)
    if stop:
        raise Interrupted("The agent was stopped.", hint="Run the same command again to continue.")
    outputs = finish(run_dir, finish_options(None, local_policy()), record)
    if outputs.exit_code != "0":
        return outputs.error_summary or "It gave no valid output."
    try:
        require_result(run_dir, outputs, record)
        output = read_output(str(run_dir / RESULT), role)[0]
    except BrokenContract as broken:
        return " ".join([str(broken), *(found.text for found in broken.findings if found.text not in broken.message)])
    said = output.artifacts
    for fix in next((turn.fixes for turn in reversed(record.attempts) if turn.outcome == "done"), ()):
        click.echo(one_line(f"Corrected the output of {role} on {document['task']['id']}: {fix}"), err=True)
    files = [*said.files_changed, *(changed if role == "Integrator" else ())]  # its code is reviewed
    return output.model_copy(update={"artifacts": said.model_copy(update={"files_changed": files})})
