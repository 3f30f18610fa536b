"""Reports of commands: as text or JSON, and as outputs, summary and annotations of a step of a workflow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import FormatArguments
from accord.cli.output import attempt, one_line, operation_lines, print_json, printed_output, redactor
from accord.core.environment import is_in_actions
from accord.core.findings import Finding
from accord.gha.step import annotate, command, write_outputs, write_summary
from accord.text import markdown
from accord.text.redaction import redact_json

if TYPE_CHECKING:
    from accord.engine.operations import OperationLog

_HANDED_ON_BYTES = 128 * 1024 - 64
"""The most that a later step can take in a variable: Linux gives one 128 KiB, with its name."""
MOST_ROWS = 200


def present(
    given: FormatArguments,
    document: Mapping[str, object] | Callable[[], Mapping[str, object]],
    lines: Iterable[str],
    log: OperationLog | None = None,
) -> None:
    """Print a report in the format that is asked for: one JSON document, or lines of text.

    A ``log`` adds its operations to the document, and those of a dry run to the text.
    """
    if given.is_json:
        document = document() if callable(document) else document
        print_json({**document, "operations": log.as_json()} if log else document)
        return
    for line in (*lines, *(operation_lines(log.entries) if log and log.is_dry_run else ())):
        click.echo(line)


def report_step(
    title: str, outputs: Mapping[str, str], *parts: str, findings: Iterable[Finding] = (), file: str | None = None
) -> None:
    """Report a command to its step: outputs, a summary of parts in Markdown, and findings as annotations on a file.

    Outputs and parts are redacted; what empties a cell or an output of JSON is to be redacted before.
    """
    leave_outputs({name: redact(value) for name, value in outputs.items()})
    leave_summary(f"### accord {title}", *parts)
    annotate_file(findings, file)


def is_step() -> bool:
    """Return whether a runner takes outputs, a summary or annotations."""
    return any(name in os.environ for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"))


def leave_outputs(values: Mapping[str, str]) -> None:
    """Write outputs for the steps after this one, redacted already: JSON or base64 would hide a secret by now."""
    if path := os.environ.get("GITHUB_OUTPUT"):
        attempt(f"the outputs of this step to {path}", lambda: _append_outputs(Path(path), values))
    printed_output().has_outputs = True


def _append_outputs(path: Path, values: Mapping[str, str]) -> None:
    for name in write_outputs(path, values):
        warn(f"The output {name} is too large for GitHub; read the receipt instead.")


def leave_summary(*parts: str) -> None:
    """Add Markdown to the summary of the step, redacted. One that cannot be written is a warning."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            write_summary(Path(path), redact("\n\n".join(filter(None, parts))))
        except OSError as error:
            warn(f"Cannot write the summary of this step to {path}: {error.strerror or error}.")


def warn(text: str) -> None:
    """Show a warning on stderr, redacted: in a workflow as an annotation."""
    in_job = is_in_actions(os.environ)
    text = one_line(redact(text))
    click.echo(command("warning", text, title="accord") if in_job else f"warning: {text}", err=True)


def annotate_warnings(texts: Iterable[str], title: str) -> None:
    """Show warnings as annotations, redacted; nothing outside of a workflow."""
    if is_in_actions(os.environ):
        for text in texts:
            click.echo(command("warning", redact(text), title=title), err=True)


def annotate_file(findings: Iterable[Finding], file: str | None) -> None:
    """Annotate the file; commands go to stderr, so that stdout stays one document."""
    if not is_in_actions(os.environ):
        return
    safe = [replace(finding, message=redact(finding.message), hint=redact(finding.hint)) for finding in findings]
    for line in annotate(safe, None if file in (None, "-") else redact(file)):
        click.echo(line, err=True)


def report_error(name: str, message: str, hint: str) -> None:
    """Report what ended the command of this name before it could report anything itself."""
    leave_summary(f"### {name}: error\n\n{redacted_cell(message)} {redacted_cell(hint)}")
    if is_in_actions(os.environ):
        click.echo(command("error", redact(f"{message} {hint}".strip()), title=name), err=True)


def as_output(document: object) -> str:
    """Write a document as the JSON of an output; redacted first, as escapes would hide a secret from the search."""
    return json.dumps(redact_json(document, redact), ensure_ascii=False, separators=(",", ":"))


def document_output(document: object) -> str:
    """Write the document that is handed on to a later job; nothing where that job could not take it."""
    text = as_output(document)
    if len(text.encode("utf-8", "surrogatepass")) <= _HANDED_ON_BYTES:
        return text
    why = "The document is too long for the output document (128 KiB at most), so that is empty."
    warn(f"{why} Hand the file on as an artifact.")
    return ""


def redact(text: str) -> str:
    """Take the secrets of the environment, and what looks like a token, out of a text."""
    return redactor()(text)


def redacted_cell(text: str) -> str:
    """Write a cell; redacted first, as a backslash in a token would hide it from the search."""
    return markdown.cell(redact(text))


def long_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], place: str = "in the receipt", most: int = MOST_ROWS
) -> str:
    """Return a table of at most so many rows, and how many more are at another place; empty without rows."""
    more = f"\n\n{len(rows) - most} more are {place}." if len(rows) > most else ""
    return markdown.table(head, rows[:most]) + more if rows else ""


def findings_table(findings: Sequence[Finding]) -> str:
    """Return findings as a table, and below it the lines to paste, each with the place that they are for."""
    rows = [
        [finding.severity.value, redacted_cell(finding.code), _place(finding), redacted_cell(finding.text)]
        for finding in findings
    ]
    hints = [
        f"{redacted_cell(finding.code)} at {_place(finding)}:\n\n{markdown.code_block(redact(finding.hint), 'yaml')}"
        for finding in findings[:MOST_ROWS]
        if finding.hint and not finding.has_sentence
    ]
    return "\n\n".join(filter(None, [long_table(["Severity", "Code", "Place", "Finding"], rows), *hints]))


def _place(finding: Finding) -> str:
    line = f"line {finding.line} " if finding.line else ""
    return line + redacted_cell(finding.path)
