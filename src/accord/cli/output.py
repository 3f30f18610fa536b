"""Printing: text for people, JSON for programs, without control sequences, runner commands and secrets."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import click

from accord.core.findings import Severity
from accord.core.moves import move_lines
from accord.gha.step import inert
from accord.text.hidden import as_seen
from accord.text.redaction import redact_json, redactor_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.core.findings import Finding
    from accord.core.moves import NextMove
    from accord.kit.many import ManyResult
    from accord.kit.sync import SyncResult
    from accord.results.label_sync import LabelAction
    from accord.text.redaction import Redactor


@dataclass
class Printed:
    """Whether stdout already holds a whole JSON document, in one call of the command line."""

    is_whole: bool = False


_REDACTOR = "accord.redactor"
_SEVERITY_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def redactor() -> Redactor:
    """Return a redactor that knows the secrets of the environment; a command builds it once."""
    context = click.get_current_context(silent=True)
    if context is None:
        return redactor_for(os.environ)
    if _REDACTOR not in context.meta:
        context.meta[_REDACTOR] = redactor_for(os.environ)
    known: Redactor = context.meta[_REDACTOR]
    return known


def one_line(text: str) -> str:
    """Return a text as one safe line: without control characters, secrets, line breaks and runner commands."""
    return inert(redactor()(as_seen(text)))


def print_moves(moves: Iterable[NextMove], *, err: bool = False) -> None:
    """Print what is legal next, with the commands to type; nothing without moves."""
    for line in move_lines(moves):
        indent = line[: len(line) - len(line.lstrip())]
        click.echo(f"{indent}{one_line(line.lstrip())}", err=err)


def print_json(document: Any) -> None:
    """Print one JSON document without secrets and runner commands."""
    print_clean_json(redact_json(document, redactor()))


def print_clean_json(document: Any) -> None:
    """Print a JSON document that is already redacted."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False).replace("##[", "#\\u0023["))
    context = click.get_current_context(silent=True)
    if context and isinstance(context.obj, Printed):
        context.obj.is_whole = True


def print_findings(findings: Sequence[Finding], file: str) -> None:
    """Print findings like a compiler: place, severity, code, message, hint."""
    lines = []
    for finding in findings:
        place = f"{file}:{finding.line}" if finding.line else file
        severity = click.style(finding.severity.value, fg=_SEVERITY_COLORS[finding.severity], bold=True)
        where = click.style(f"  at {one_line(finding.path)}", dim=True) if finding.path else ""
        lines += [f"{one_line(place)}: {severity} {finding.code}{where}", f"    {one_line(finding.message)}"]
        for line in finding.hint.splitlines():
            indent = len(line) - len(line.lstrip(" ")) + (4 if finding.has_sentence else 8)
            lines.append(f"{' ' * indent}{click.style(one_line(line), fg='cyan')}")
    if lines:
        click.echo("\n".join(lines))


def tell_wait(seconds: float, reason: str) -> None:
    """Report the start of a wait and its reason on stderr."""
    click.echo(f"waiting {seconds:.0f} s: {one_line(reason)}", err=True)


def is_screen(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which lines can be drawn again."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """A progress bar on stderr; nothing when stderr is not a terminal."""

    def __init__(self, total: int = 0) -> None:
        self._shows = is_screen(sys.stderr)
        self._total = total
        self._ended = 0

    def __call__(self, step: LabelAction | SyncResult | ManyResult) -> None:
        """Count a finished step."""
        self.show(step.name, self._ended + 1, self._total)

    def show(self, name: str, ended: int, total: int) -> None:
        """Show that ``ended`` of ``total`` steps are done."""
        self._ended = ended
        if self._shows:
            bar = "█" * (20 * ended // max(total, 1))
            sys.stderr.write(f"\r\x1b[K{bar:<20} {ended}/{total} {one_line(name)[:60]}")
            if ended == total:
                sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
