"""Reports of the commands about a run: its status while the agent works, text and JSON, outputs, summary, annotations.

The status is a line at the end of a terminal, and in a log a heartbeat while the agent is quiet.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from accord.cli.options import Command, FormatArguments
from accord.cli.output import (
    CLEAR_LINE,
    Json,
    attempt,
    duration,
    is_screen,
    one_line,
    operation_lines,
    print_clean_json,
    redactor,
)
from accord.cli.sources import local_policy
from accord.cli.step import annotate_warnings, leave_outputs, leave_summary, long_table
from accord.core.clock import SystemClock
from accord.core.environment import is_in_actions
from accord.core.errors import AccordError, BrokenContract, Interrupted, NoToken, Problem, Stopped, WrongUsage
from accord.core.findings import count_of, has_errors
from accord.engine.operations import OperationLog
from accord.files.store import DISK_FULL, can_be_written, write_whole
from accord.gha.step import command
from accord.runner.causes import InternalErrorKind
from accord.runner.contract import BROKEN_RESULT, placed_text
from accord.runner.models import InternalError, RunOutputs
from accord.runner.outputs import FinishOptions
from accord.runner.record import FINAL_MESSAGE, RESULT, RunRecord
from accord.text.markdown import cell, shorten, table
from accord.text.posting import PostingPolicy

if TYPE_CHECKING:
    from accord.github.client import Connection

_SHOWN_CHARS = 100
_TASKS_SHOWN = 50
_RECOVERY = {
    "retry": "Running it again may help.",
    "manual": "A person must look at it first.",
    "ignore": "No action is needed.",
}
_TICK_SECONDS = 1.0
_QUIET_SECONDS = 2.0
"""Silence after which the line is shown, so that it does not flicker between lines of output."""

_HEARTBEAT_SECONDS = 180.0
"""Silence after which a log gets a line."""


class RunnerCommand(Command):
    """A command that leaves all outputs of the runner contract for later steps, also where it fails."""

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Parse the options."""
        with _outputs_of_failure():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _outputs_of_failure(ctx):
            return super().invoke(ctx)


@contextmanager
def _outputs_of_failure(ctx: click.Context | None = None) -> Iterator[None]:
    """Write the outputs if an error ends the command before it wrote them. The error stays what it is."""
    try:
        yield
    except (Problem, click.UsageError, OSError) as error:
        file = ctx and ctx.params.get("outputs")
        if (file or os.environ.get("GITHUB_OUTPUT")) and not (
            ctx and (ctx.obj.has_outputs or ctx.params.get("dry_run"))
        ):
            from accord.cli.main import to_problem
            from accord.runner.finish import outputs_of_error

            problem = to_problem(error)
            failure = InternalError.of(_kind_of(error, problem), problem)
            found = outputs_of_error(failure, redactor(), local_policy())
            if file and can_be_written(file):
                leave_outputs_file(file, found)
            with suppress(AccordError):
                leave_outputs(found.as_outputs())
                leave_summary(summary_page(found))
        raise


def leave_outputs_file(file: Path, outputs: RunOutputs) -> None:
    """Write a run's outputs, which are redacted already, as JSON."""
    text = json.dumps(outputs.as_outputs(), indent=2, ensure_ascii=True) + "\n"
    attempt(f"the outputs to {file}", lambda: write_whole(file, text))


def _kind_of(error: BaseException, problem: Problem) -> InternalErrorKind:
    if isinstance(problem, Interrupted):
        return "cancelled"
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return "disk-full"
    if isinstance(error, NoToken):
        return "credential-missing"
    return "push-unreachable" if isinstance(error, Stopped) else "command-failed"


def check_step(*, is_published: bool) -> None:
    """Raise WrongUsage, before the agent runs, if its outputs or its changes could not be written."""
    path = os.environ.get("GITHUB_OUTPUT")
    target = Path(path or "")
    is_writable = os.access(target, os.W_OK) and not target.is_dir() if target.exists() else can_be_written(target)
    if path and not is_writable:
        raise WrongUsage(f"`GITHUB_OUTPUT` names {path}, which cannot be written.", hint="Set a writable file.")
    for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN") if is_published else ():
        if not os.environ.get(name, "").strip():
            raise (NoToken if name == "GITHUB_TOKEN" else WrongUsage)(
                f"`{name}` is not set, but changes are to be pushed to `--pr-ref`.",
                hint="Set it, or pass `--no-publish` and publish with `accord publish` in another job.",
            )


def require_result(run_dir: Path, outputs: RunOutputs, record: RunRecord) -> None:
    """Raise BrokenContract if a successful run left no valid result, which a later step would miss."""
    if outputs.exit_code != "0" or (run_dir / RESULT).is_file():
        return
    counted = (attempt for attempt in reversed(record.attempts) if attempt.outcome in ("done", "broken"))
    findings = next((attempt.findings for attempt in counted), ())
    errors = [f"{BROKEN_RESULT}{placed_text(finding)}" for finding in findings if has_errors([finding])]
    raise BrokenContract(
        f"The run left no {RESULT}. {' '.join(errors) or 'It could not be written.'}",
        findings=findings,
        hint=f"See the answer in {run_dir / FINAL_MESSAGE}. Ask for this shape in the prompt, or run it again.",
    )


def finish_options(way: Connection | None, policy: PostingPolicy) -> FinishOptions:
    """Return the options of finishing a run. With a connection its changes are pushed and its tasks analyzed."""
    common = (redactor(), policy, clock := SystemClock(), os.environ)
    if way is None:
        return FinishOptions("", *common)
    return FinishOptions(way.repository, *common, way.remote(clock), way.github)


def report_run(
    outputs: RunOutputs, given: FormatArguments, run_dir: Path | None = None, log: OperationLog | None = None
) -> None:
    """Print a run's outputs, which are redacted already, and unless it is a dry run write them for later steps.

    ``run_dir`` is the folder of the run; in text, it is named with what is next for changes that were not pushed.
    """
    planned = log.entries if log and log.is_dry_run else ()
    if not (log and log.is_dry_run):
        leave_outputs(outputs.as_outputs())
        leave_summary(summary_page(outputs))
        name = outputs.agent_name or "agent"
        if outputs.error_category and is_in_actions(os.environ):
            title = f"{name}: {outputs.error_category}"
            click.echo(command("error", outputs.error_summary, title=title), err=True)
        annotate_warnings(parse_list(outputs.run_warnings), name)
    if given.is_json:
        print_clean_json(outputs.as_outputs())
        return
    lines = [*_output_lines(outputs), *operation_lines(planned)]
    if run_dir:
        lines.append(f"Run folder: {one_line(str(run_dir))}")
    if run_dir and outputs.files_not_pushed:
        folder = shlex.quote(str(run_dir))
        push = f" Push it: accord publish {folder} --pr-ref BRANCH" if outputs.exit_code == "0" else ""
        lines.append(one_line(f"Next: read {folder}/changes.patch.{push}"))
    click.echo("\n".join(lines))


def _output_lines(outputs: RunOutputs) -> Iterator[str]:
    """Yield the outputs that are set, one on a line; the error, its hint and the warnings in full."""
    values = outputs.as_outputs()
    del values["run-warnings"]
    if unpushed := outputs.files_not_pushed:
        values["files-changed"] = f"{values['files-changed']} pushed, {unpushed} in changes.patch"
    values["final-message"] = f"{len(outputs.final_message)} characters of base64" if outputs.final_message else ""
    shown = {name: one_line(value) for name, value in values.items() if value}
    width = max(len(name) for name in shown)
    for name, value in shown.items():
        color = {"exit-code": "green" if value == "0" else "red", "error-category": "red"}.get(name)
        label = click.style(f"{name:<{width}}", dim=True)
        text = value if name == "error-summary" else shorten(value, _SHOWN_CHARS)
        yield f"{label}  {click.style(text, fg=color)}"
    for text in parse_list(outputs.run_warnings):
        yield f"{click.style('warning:', fg='yellow')} {one_line(text)}"


def summary_page(outputs: RunOutputs) -> str:
    """Return the step summary of a run from its outputs, which contain no secret and no command."""
    parts = [f"### accord: {_headline(outputs)}"]
    if outputs.error_category:
        retry = f" Wait {outputs.retry_after_seconds} seconds first." if outputs.retry_after_seconds else ""
        parts.append(f"{cell(outputs.error_summary)}\n\n{_RECOVERY[outputs.error_recovery]}{retry}")
    parts.append(table(["Fact", "Value"], [[name, cell(value)] for name, value in _facts(outputs) if value]))
    if tasks := parse_list(outputs.llm_completed_tasks):
        parts.append(f"**Completed tasks**\n\n{task_list(tasks)}")
    parts.append("\n".join(f"- ⚠️ {cell(text)}" for text in parse_list(outputs.run_warnings)))
    parts.append(attempts_table([each for each in parse_list(outputs.llm_attempts) if each["outcome"] != "answered"]))
    parts.append(_turns_table(parse_list(outputs.attempts)))
    if outputs.final_message_summary:
        quoted = "\n".join(f"> {line}" for line in outputs.final_message_summary.splitlines())
        parts.append(f"**The agent's message**\n\n{quoted}")
    return "\n\n".join(filter(None, parts))


def task_list(tasks: Sequence[str]) -> str:
    """Return the first of some tasks as a list, and how many more there are."""
    shown = [f"- ✅ {cell(task)}" for task in tasks[:_TASKS_SHOWN]]
    more = [f"- and {len(tasks) - _TASKS_SHOWN} more"] if len(tasks) > _TASKS_SHOWN else []
    return "\n".join([*shown, *more])


def attempts_table(attempts: Sequence[Json]) -> str:
    """Show how each provider answered."""
    rows = [[cell(entry["provider"]), entry["outcome"], str(entry["ms"]), cell(entry["reason"])] for entry in attempts]
    return long_table(["Provider", "Outcome", "ms", "Reason"], rows)


def _turns_table(attempts: Sequence[Json]) -> str:
    """Show the attempts if there is more to tell than one that went well."""
    if len(attempts) == 1 and not attempts[0]["findings"] and not attempts[0]["fixed"]:
        return ""
    rows = []
    for entry in attempts:
        found = [f"{finding['code']} at {finding['path']}" for finding in entry["findings"]]
        texts = [
            f"{entry['agent']}, turn {entry['turn']}" if entry["turn"] else entry["agent"],
            entry["outcome"],
            "; ".join(found) or entry["reason"],
            "; ".join([*entry["fixed"], *entry["repaired"]]),
            "" if entry["seconds"] is None else f"{entry['seconds']:.1f}",
            "" if entry["cost_usd"] is None else f"{entry['cost_usd']:.4f}",
        ]
        rows.append(list(map(cell, texts)))
    return long_table(["Attempt", "Outcome", "Found", "Fixed", "Seconds", "US dollars"], rows)


def _headline(outputs: RunOutputs) -> str:
    agent, ended = cell(outputs.agent_name) or "the agent", outputs.terminal_disposition
    if ended == "cancelled":
        return f"⏹️ {agent} was cancelled"
    if outputs.error_category:
        return f"❌ {agent} failed ({outputs.error_category})"
    if outputs.changes_made == "true":
        return f"✅ {agent} changed {count_of(int(outputs.files_changed), 'file')}"
    unpushed = outputs.files_not_pushed
    if unpushed and ended == "no-change":
        return f"✅ {agent} changed {count_of(unpushed, 'file')}, not pushed yet"
    if ended == "failure":
        return f"❌ {agent} ended without a valid result"
    return f"✋ {agent} is blocked" if ended == "blocked" else f"✅ {agent} ended, and accord pushed nothing"


def _facts(outputs: RunOutputs) -> list[tuple[str, str]]:
    tokens = f"{outputs.tokens_input or '?'} in, {outputs.tokens_output or '?'} out"
    analysis = " ".join(filter(None, [outputs.llm_provider, outputs.llm_model]))
    unpushed = outputs.files_not_pushed
    return [
        ("Exit code", outputs.exit_code),
        ("Model", outputs.agent_model),
        ("Duration", f"{outputs.duration_seconds} s" if outputs.duration_seconds else ""),
        ("Tokens", tokens if outputs.tokens_input or outputs.tokens_output else ""),
        ("Cost", f"{outputs.cost_usd} US dollars" if outputs.cost_usd else ""),
        ("Commit", outputs.commit_sha),
        ("Files changed", outputs.files_changed if outputs.changes_made == "true" else ""),
        ("Files not pushed", f"{unpushed}, in changes.patch of the run folder or artifact" if unpushed else ""),
        ("Error", " / ".join(filter(None, [outputs.error_category, outputs.error_type, outputs.error_recovery]))),
        ("Tasks analyzed by", f"{analysis}, confidence {outputs.llm_confidence}" if analysis else ""),
    ]


def parse_list(text: str) -> list[Any]:
    """Return the array that an output holds."""
    return list(json.loads(text or "[]"))


class RunStatus:
    """Shows the output of an agent on a stream, and as a context how the run goes on while the agent is quiet."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._is_screen = is_screen(stream)
        self._began = self._heard = self._told = now()
        self._is_drawn = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticking = threading.Thread(target=self._tick_until_end, name="accord-run-status", daemon=True)

    def __enter__(self) -> RunStatus:
        self._ticking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._ticking.join()
        with self._lock, suppress(OSError, ValueError):
            self._erase()
            self._stream.flush()

    def _tick_until_end(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            self.tick()

    def show(self, line: str) -> None:
        """Write a line of output."""
        with self._lock, suppress(OSError, ValueError):  # a closed stream must not end the agent
            self._heard = self._now()
            self._erase()
            click.echo(line, file=self._stream)

    def tick(self) -> None:
        """Show how the run goes on, if the agent is quiet."""
        with self._lock, suppress(OSError, ValueError):
            now = self._now()
            elapsed, quiet = now - self._began, now - self._heard
            if self._is_screen and quiet >= _QUIET_SECONDS:
                text = f"{duration(elapsed)} · quiet {duration(quiet)}"
                width = shutil.get_terminal_size().columns - 1
                self._stream.write(f"{CLEAR_LINE}{shorten(text, max(width, 1))}")
                self._stream.flush()
                self._is_drawn = True
            elif not self._is_screen and now - max(self._heard, self._told) >= _HEARTBEAT_SECONDS:
                self._told = now
                click.echo(
                    f"accord: the agent runs for {duration(elapsed)}, quiet for {duration(quiet)}", file=self._stream
                )

    def _erase(self) -> None:
        if self._is_drawn:
            self._stream.write(CLEAR_LINE)
            self._is_drawn = False
