"""The files of a step that the runner offers: outputs and summary. Nothing is written where it offers none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.gha.commands import command
from accord.gha.files import write_outputs, write_summary
from accord.kernel import markdown_text
from accord.kernel.redaction import redacted, redactor_for

if TYPE_CHECKING:
    from collections.abc import Mapping


def leave_outputs(values: Mapping[str, str]) -> None:
    """Write outputs for the steps after this one, redacted already: JSON or base64 would hide a secret by now."""
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        for name in write_outputs(Path(path), values):
            click.echo(
                command("warning", f"The output {name} is too large for GitHub; read the receipt instead."), err=True
            )


def as_output(document: Any) -> str:
    """Write a document as the JSON of an output; redacted first, as escapes would hide a secret from the search."""
    return json.dumps(redacted(document, redact), ensure_ascii=False, separators=(",", ":"))


def leave_summary(markdown: str) -> None:
    """Add Markdown to the summary of the step, redacted."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        write_summary(Path(path), redact(markdown))


def redact(text: str) -> str:
    """Take the secrets of the environment, and what looks like a token, out of a text."""
    return redactor_for(os.environ)(text)


def redacted_cell(text: str) -> str:
    """Write a cell; redacted first, as a backslash in a token would hide it from the search."""
    return markdown_text.cell(redact(text))
