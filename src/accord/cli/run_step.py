"""What the commands about a run print, and leave for the runner: outputs, a summary, annotations."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import one_line, print_clean_json
from accord.cli.step import leave_outputs, leave_summary
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding
from accord.files.store import can_be_written
from accord.gha.commands import command
from accord.runner.summary import analysis_page, error_table, summary_page
from accord.text.markdown import shortened
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.cli.sources import Way
    from accord.runner.models import Classification, RunOutputs
    from accord.runner.record import RunRecord

_SHOWN_CHARS = 100


def check_step(*, is_published: bool) -> None:
    """Find, before an agent works for nothing, what would keep its outputs or its changes from going anywhere."""
    path = os.environ.get("GITHUB_OUTPUT")
    if path and not _can_be_appended_to(Path(path)):
        raise WrongUsage(f"The file of GITHUB_OUTPUT, {path}, cannot be written.", hint="Outputs would be lost.")
    for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN") if is_published else ():
        if not os.environ.get(name, "").strip():
            raise WrongUsage(
                f"Changes are to be published to --pr-ref, and {name} is not set.",
                hint="Set it, or pass --no-publish and let `accord publish` of another job do that.",
            )


def require_result(run_dir: Path, outputs: RunOutputs) -> None:
    """Raise BrokenContract where a run ended well and left no result that fits its schema.

    For a runner that is no error (its warnings say so); who asked for a result would miss its file in a later step.
    """
    from accord.runner.prompt import UNFIT
    from accord.runner.record import FINAL_MESSAGE, RESULT

    if outputs.exit_code != "0" or (run_dir / RESULT).is_file():
        return
    problems = [text for text in json.loads(outputs.run_warnings or "[]") if text.startswith(UNFIT)]
    raise BrokenContract(
        f"There is no {RESULT}. {' '.join(problems) or 'It could not be written.'}",
        findings=[Finding("schema", text) for text in problems],
        hint=f"See what it answered in {run_dir / FINAL_MESSAGE}; let the prompt ask for this shape, or run it again.",
    )


def _can_be_appended_to(path: Path) -> bool:
    return os.access(path, os.W_OK) and not path.is_dir() if path.exists() else can_be_written(path)


def finished(run_dir: Path, way: Way | None, record: RunRecord | None = None, **choices: Any) -> RunOutputs:
    """Finish the run in a folder: with a way to its repository its changes are pushed and its tasks looked for."""
    from accord.core.clock import SystemClock
    from accord.runner.finish import FinishOptions, finish

    clock, redact = SystemClock(), redactor_for(os.environ)
    if way is None:
        return finish(run_dir, FinishOptions("", redact, clock, os.environ), record)
    remote = way.remote(clock)
    setting = FinishOptions(way.repository, redact, clock, os.environ, remote, way.github, **choices)
    return finish(run_dir, setting, record)


def report_run(outputs: RunOutputs, output_format: str) -> None:
    """Print a run's outputs, and leave them for the steps after this one.

    The texts were redacted when they became outputs; to search base64 for secrets again could only damage it.
    """
    leave_run(outputs)
    if output_format == "json":
        print_clean_json(outputs.as_outputs())
    else:
        _print(outputs)


def leave_run(outputs: RunOutputs) -> None:
    """Write the outputs for the steps after this one, and tell people by the page and the annotations of the run."""
    leave_outputs(outputs.as_outputs())
    with suppress(OSError):  # on a full disk the outputs matter more
        leave_summary(summary_page(outputs))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _annotate(outputs)


def report_classification(found: Classification | None) -> None:
    """Report ``accord classify``: the contract's error outputs, all empty where there was no error."""
    from accord.runner.outputs import error_outputs

    outputs = error_outputs(found, redactor_for(os.environ))
    leave_outputs(outputs)
    leave_summary(f"### accord classify: {outputs['error-category'] or 'no error'}\n\n{error_table(outputs)}")


def report_analysis(outputs: Mapping[str, str], warnings: Sequence[str]) -> None:
    """Report ``accord analyze``: the outputs ``llm-*``, and a page about them."""
    leave_outputs(outputs)
    leave_summary(analysis_page(outputs))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for text in warnings:
            click.echo(command("warning", text, title="accord"), err=True)


def _annotate(outputs: RunOutputs) -> None:
    if outputs.error_category:
        title = f"{outputs.agent_name or 'agent'}: {outputs.error_category}"
        click.echo(command("error", outputs.error_summary, title=title), err=True)
    for text in json.loads(outputs.run_warnings or "[]"):
        click.echo(command("warning", text, title=outputs.agent_name or "agent"), err=True)


def _print(outputs: RunOutputs) -> None:
    """Print one output a line; what is not available is not worth one."""
    values = outputs.as_outputs()
    values["final-message"] = f"{len(outputs.final_message)} characters of base64" if outputs.final_message else ""
    shown = {name: one_line(value) for name, value in values.items() if value}
    width = max(len(name) for name in shown)
    for name, value in shown.items():
        color = {"exit-code": "green" if value == "0" else "red", "error-category": "red"}.get(name)
        click.echo(
            f"{click.style(f'{name:<{width}}', dim=True)}  {click.style(shortened(value, _SHOWN_CHARS), fg=color)}"
        )
