"""Printing: text for people, JSON for programs, and nothing of either that a terminal or a runner would obey."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

from accord.core.findings import Severity
from accord.gha.commands import inert
from accord.text.redaction import redacted, redactor_for
from accord.text.terminal import as_seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.findings import Finding


@dataclass
class Printed:
    """What stands on stdout already. It lives as long as one call of the command line."""

    is_whole: bool = False


_SEVERITY_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def one_line(text: str) -> str:
    """Make a text safe for a line of a terminal or a log: no control characters, secrets, line breaks or commands."""
    return inert(redactor_for(os.environ)(as_seen(text)))


def print_json(document: Any) -> None:
    """Print one JSON document, without secrets, and without what a runner would read as a command."""
    print_clean_json(redacted(document, redactor_for(os.environ)))


def print_clean_json(document: Any) -> None:
    """Print the same of a document that holds no secrets any more."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False).replace("##[", "#\\u0023["))
    context = click.get_current_context(silent=True)
    if context and isinstance(context.obj, Printed):
        context.obj.is_whole = True


def print_findings(findings: Sequence[Finding], file: str) -> None:
    """Print findings the way compilers do: place, severity, code, sentence."""
    for finding in findings:
        place = f"{file}:{finding.line}" if finding.line else file
        severity = click.style(finding.severity.value, fg=_SEVERITY_COLORS[finding.severity], bold=True)
        where = click.style(f"  at {one_line(finding.path)}", dim=True) if finding.path else ""
        click.echo(f"{one_line(place)}: {severity} {finding.code}{where}\n    {one_line(finding.message)}")
        for line in finding.hint.splitlines():
            indent = len(line) - len(line.lstrip(" "))
            click.echo(f"{' ' * (8 + indent)}{click.style(one_line(line), fg='cyan')}")


def tell_wait(seconds: float, reason: str) -> None:
    """Say on stderr that a wait begins, and why, so that silence is never a riddle."""
    click.echo(f"waiting {seconds:.0f} s: {one_line(reason)}", err=True)


class Step(Protocol):
    """What progress is told of: anything with a name."""

    @property
    def name(self) -> str:
        """What to call it."""
        ...


class Progress:
    """A line on a terminal's stderr that tells how far the work is; nothing where nobody watches."""

    def __init__(self, total: int = 0) -> None:
        self._shows = sys.stderr.isatty()
        self._total = total
        self._ended = 0

    def __call__(self, step: Step) -> None:
        """Count a step that ended."""
        self.show(step.name, self._ended + 1, self._total)

    def show(self, what: str, ended: int, total: int) -> None:
        """Show that so many steps of so many ended."""
        self._ended = ended
        if self._shows:
            bar = "█" * (20 * ended // max(total, 1))
            sys.stderr.write(f"\r\x1b[K{bar:<20} {ended}/{total} {one_line(what)[:60]}")
            if ended == total:
                sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
