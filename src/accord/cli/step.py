"""Outputs, summary and annotations of a step of a workflow, each where the runner offers a place for it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import one_line, redactor
from accord.core.environment import is_in_actions
from accord.core.findings import Finding, has_errors
from accord.gha.step import annotate, command, write_outputs, write_summary
from accord.text import markdown
from accord.text.markdown import table
from accord.text.redaction import redact_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def leave_outputs(values: Mapping[str, str]) -> None:
    """Write outputs for the steps after this one, redacted already: JSON or base64 would hide a secret by now."""
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        for name in write_outputs(Path(path), values):
            text = f"The output {name} is too large for GitHub; read the receipt instead."
            click.echo(command("warning", text), err=True)


def warn(text: str) -> None:
    """Show a warning on stderr, redacted: in a workflow as an annotation."""
    in_job = is_in_actions(os.environ)
    text = one_line(redact(text))
    click.echo(command("warning", text, title="accord") if in_job else f"warning: {text}", err=True)


def as_output(document: Any) -> str:
    """Write a document as the JSON of an output; redacted first, as escapes would hide a secret from the search."""
    return json.dumps(redact_json(document, redact), ensure_ascii=False, separators=(",", ":"))


def leave_summary(markdown: str) -> None:
    """Add Markdown to the summary of the step, redacted."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        write_summary(Path(path), redact(markdown))


def redact(text: str) -> str:
    """Take the secrets of the environment, and what looks like a token, out of a text."""
    return redactor()(text)


def redacted_cell(text: str) -> str:
    """Write a cell; redacted first, as a backslash in a token would hide it from the search."""
    return markdown.cell(redact(text))


_HANDED_ON_BYTES = 128 * 1024 - 64
"""The most that a later step can take in a variable: Linux gives one 128 KiB, with its name."""
MOST_ROWS = 200


def report_checks(
    documents: Sequence[tuple[str, str | None, list[Finding]]], handed_on: object = None, name: str = "check"
) -> None:
    """Report a check of documents: outputs ``ok`` and ``document``, a table, annotations on the documents."""
    is_ok = not any(has_errors(findings) for _, _, findings in documents)
    leave_outputs({"ok": str(is_ok).lower(), "document": _one_line(handed_on)})
    rows = [[redacted_cell(path), redacted_cell(kind or "unknown"), _verdict(found)] for path, kind, found in documents]
    shown = table(["Document", "Kind", "Verdict"], rows)
    leave_summary("\n\n".join([f"### accord {name}", shown, *map(_details, documents)]))
    for path, _, findings in documents:
        annotate_file(findings, path)


def _one_line(document: object) -> str:
    """Write the document that is handed on to a later job; nothing where that job could not take it."""
    if document is None:
        return ""
    text = as_output(document)
    if len(text.encode("utf-8", "surrogatepass")) <= _HANDED_ON_BYTES:
        return text
    if os.environ.get("GITHUB_OUTPUT"):
        why = "The document is too long for the output document (128 KiB at most), so that is empty."
        click.echo(command("warning", f"{why} Hand the file on as an artifact.", title="accord"), err=True)
    return ""


def report_error(message: str, hint: str) -> None:
    """Report what ended a command before it could report anything itself."""
    leave_summary(f"### accord: error\n\n{redacted_cell(message)} {redacted_cell(hint)}")
    if is_in_actions(os.environ):
        text = redact(f"{message} {hint}".strip())
        click.echo(command("error", text, title="accord"), err=True)


def leave_redacted(values: Mapping[str, str]) -> None:
    """Write outputs, without secrets."""
    leave_outputs({name: redact(value) for name, value in values.items()})


def annotate_file(findings: Sequence[Finding], file: str | None) -> None:
    """Annotate the file; commands go to stderr, so that stdout stays one document."""
    if not is_in_actions(os.environ):
        return
    safe = [replace(finding, message=redact(finding.message), hint=redact(finding.hint)) for finding in findings]
    for line in annotate(safe, None if file in (None, "-") else redact(file)):
        click.echo(line, err=True)


def _verdict(findings: Sequence[Finding]) -> str:
    if has_errors(findings):
        return "❌ rejected"
    return "⚠️ ok, with warnings" if findings else "✅ ok"


def _details(document: tuple[str, str | None, list[Finding]]) -> str:
    return "\n\n".join([findings_table(document[2]), *hints(document[2])]) if document[2] else ""


def hints(findings: Sequence[Finding]) -> list[str]:
    """Show the lines to paste, each below the place that they are for."""
    return [
        f"{redacted_cell(finding.code)} at {_place(finding)}:\n\n{markdown.code_block(redact(finding.hint), 'yaml')}"
        for finding in findings[:MOST_ROWS]
        if finding.hint and not finding.has_sentence
    ]


def findings_table(findings: Sequence[Finding]) -> str:
    """Return findings as a table, with the number of rows left out."""
    rows = [
        [finding.severity.value, redacted_cell(finding.code), _place(finding), redacted_cell(finding.text)]
        for finding in findings[:MOST_ROWS]
    ]
    return table(["Severity", "Code", "Place", "Finding"], rows) + rest_line(len(findings), MOST_ROWS)


def _place(finding: Finding) -> str:
    line = f"line {finding.line} " if finding.line else ""
    return line + redacted_cell(finding.path)


def rest_line(count: int, shown: int, place: str = "in the receipt") -> str:
    """Say how many more there are than a table shows, and where."""
    return f"\n\n{count - shown} more are {place}." if count > shown else ""
