"""Printing: text for people, JSON for programs, without control sequences, runner commands and secrets."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import click

from accord.core.findings import Finding
from accord.core.machine import NextMove, move_lines
from accord.gha.step import inert
from accord.text.hidden import as_seen
from accord.text.markdown import shorten
from accord.text.redaction import Redactor, redact_json, redactor_for

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from accord.core.errors import Problem
    from accord.engine.operations import LedgerEntry
    from accord.kit.many import ManyResult
    from accord.plans.links import LinkedDocument
    from accord.results.label_sync import LabelAction


Json: TypeAlias = "Mapping[str, Any]"
"""An object of a JSON document, whose values have any type."""


@dataclass
class Printed:
    """The state of the report of one call of the command line."""

    is_whole: bool = False  # stdout already holds a whole JSON document
    has_outputs: bool = False  # the step already has the outputs of the command
    ending: str = "The command itself ended well."
    failures: list[str] = field(default_factory=list)  # parts of its report that could not be written
    keys: dict[str, object] = field(default_factory=dict)  # what the JSON document of an error says, too

    @cached_property
    def redactor(self) -> Redactor:
        """A redactor that knows the secrets of the environment."""
        return redactor_for(os.environ)


def printed_output() -> Printed:
    """Return what this call of the command line reported; a new one outside of a command."""
    context = click.get_current_context(silent=True)
    return context.obj if context and isinstance(context.obj, Printed) else Printed()


def attempt(what: str, write: Callable[[], None]) -> bool:
    """Write a part of the report, and return whether that worked; for one that failed ``main`` ends with code 3."""
    try:
        write()
    except OSError as error:
        printed_output().failures.append(f"Cannot write {what}: {error.strerror or error}.")
        return False
    return True


class ReportStream(io.FileIO):
    """A standard stream that discards what is written after its first ``error``: what a command did counts anyway."""

    error: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or discard; return how many bytes were taken."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


def write_error() -> OSError | None:
    """Return why stdout did not take what was printed; None also for a reader that left, such as ``head``."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    error = raw.error if isinstance(raw, ReportStream) else None
    return None if isinstance(error, BrokenPipeError) else error


def announce(line: str) -> None:
    """Print the address of a server. Raises Abort where stdout does not take it: no one could use the server."""
    click.echo(line)
    if write_error():
        raise click.Abort


def guard_streams() -> None:
    """Make stdout and stderr streams that take any text and never fail, also where the caller closed them.

    A terminal still fails, so that a command that shows something live ends with it.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and (stream is not getattr(sys, f"__{name}__") or stream.isatty()):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
            continue
        number = os.open(os.devnull, os.O_RDONLY) if stream is None else stream.fileno()
        raw = io.BufferedWriter(ReportStream(number, "w", closefd=False))
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=name == "stderr"))


CLEAR_LINE = "\r\x1b[K"
"""Empties the line of a terminal that the cursor is on."""
_END_OF_STYLE = "\x1b[0m"
CLEAR_SCREEN = "\x1b[H\x1b[2J"

_LEAST_COLUMNS = 16
"""Columns that a cut text keeps, also on a terminal that is narrower."""

_WORDS = {
    "green": "ok add applied approved completed created done fix in-progress in_progress report review run",
    "cyan": "adopted announce implemented merge planned renamed update updated",
    "yellow": "ask canceled declined deleted findings keep needs-refinement remove stop warning",
    "red": "blocked conflict error failed refused rejected stopped",
    "bright_black": "skipped up-to-date",
}
COLORS = {word: color for color, words in _WORDS.items() for word in words.split()}
"""The color of each word for a status, an outcome or an action; other words have none."""


def redactor() -> Redactor:
    """Return a redactor that knows the secrets of the environment; a command builds it once."""
    return printed_output().redactor


def one_line(text: str) -> str:
    """Return a text as one safe line: without control characters, secrets, line breaks and runner commands."""
    return inert(redactor()(as_seen(text)))


def indented_line(text: str) -> str:
    """Return a text as one safe line that keeps its indentation."""
    words = text.lstrip(" ")
    return " " * (len(text) - len(words)) + one_line(words)


def next_lines(moves: Iterable[NextMove]) -> list[str]:
    """Return what is legal next, with the commands to type; nothing without moves."""
    return [indented_line(line) for line in move_lines(moves)]


def print_json(document: object) -> None:
    """Print one JSON document without secrets and runner commands."""
    print_clean_json(redact_json(document, redactor()))


def print_clean_json(document: object) -> None:
    """Print a JSON document that is already redacted."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False).replace("##[", "#\\u0023["))
    printed_output().is_whole = True


def colored_word(word: str, width: int = 0, *, bold: bool = False, shown: str = "") -> str:
    """Return a word in its color, padded to a width; ``shown`` replaces it."""
    return click.style(f"{shown or word:<{width}}", fg=COLORS.get(word), bold=bold or None)


def aligned_lines(rows: Iterable[Sequence[str]], *, has_numbers: bool = False) -> list[str]:
    """Return rows of as many cells as lines whose columns are aligned: numbers, which follow a name, to the right."""
    table = [[(cell, len(click.unstyle(cell))) for cell in row] for row in rows]
    widths = [max(width for _, width in column) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        blanks = [" " * (most - width) for (_, width), most in zip(row, widths, strict=True)]
        first, *others = zip(row, blanks, strict=True)
        cells = [blank + cell if has_numbers else cell + blank for (cell, _), blank in others]
        lines.append("  ".join([first[0][0] + first[1], *cells]).rstrip())
    return lines


def error_lines(error: Problem) -> str:
    """Return an error and its hint, each on a line."""
    return f"{one_line(error.message)}\n  {one_line(error.hint)}"


def finding_lines(findings: Iterable[Finding], file: str) -> list[str]:
    """Return findings like those of a compiler: place, severity, code, message, hint."""
    lines = []
    for finding in findings:
        place = f"{file}:{finding.line}" if finding.line else file
        severity = colored_word(finding.severity.value, bold=True)
        where = click.style(f"  at {one_line(finding.path)}", dim=True) if finding.path else ""
        lines += [f"{one_line(place)}: {severity} {finding.code}{where}", f"    {one_line(finding.message)}"]
        for line in finding.hint.splitlines():
            indent = len(line) - len(line.lstrip(" ")) + (4 if finding.has_sentence else 8)
            lines.append(f"{' ' * indent}{click.style(one_line(line), fg='cyan')}")
    return lines


def operation_lines(operations: Sequence[LedgerEntry], indent: str = "", *, most: int | None = None) -> Iterator[str]:
    """Yield how each operation ended, at most ``most`` of a kind in a row (None: all)."""
    names = {entry.key: one_line(entry.key) for entry in operations}
    width = max(map(len, names.values()), default=0)
    for (status, op), group in groupby(operations, key=lambda entry: (entry.status.value, entry.op)):
        entries = list(group)
        shown = entries if most is None or len(entries) <= most + 1 else entries[:most]
        for entry in shown:
            parts = f"  {', '.join(entry.parts)}" if entry.parts else ""
            line = f"{colored_word(status, 8)} {op:<17} {names[entry.key]:<{width}}  {issue_or_commit(entry.target)}"
            yield f"{indent}{line}{parts}".rstrip()
        if len(shown) < len(entries):
            yield f"{indent}{'':<8} … {len(entries) - len(shown)} more"


def issue_or_commit(target: str | None) -> str:
    """Return the target of an operation: an issue as #12, a commit by the beginning of its id."""
    if not target:
        return ""
    return f"#{target}" if target.isdecimal() and len(target) < 20 else target[:10]


def duration(seconds: float | None) -> str:
    """Return a time span in its two largest units; empty for an unknown one."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((at for at, (count, _) in enumerate(units) if count), len(units) - 1)
    return " ".join(f"{count} {unit}" for count, unit in units[first : first + 2] if count) or "0 s"


def document_lines(documents: Iterable[LinkedDocument]) -> Iterator[str]:
    """Return the documents of a work item for people, each with its status and the command that shows it."""
    for each in documents:
        yield f"{each.kind} {one_line(each.id)} of {one_line(each.name)}: {one_line(each.status)}"
        yield f"  {one_line(each.command)}"


def print_wait(seconds: float, reason: str) -> None:
    """Report the start of a wait and its reason on stderr, in the place of a progress bar."""
    if is_screen(sys.stderr):
        sys.stderr.write(CLEAR_LINE)
    click.echo(f"waiting {seconds:.0f} s: {one_line(reason)}", err=True)


def print_lines(lines: Sequence[str]) -> None:
    """Print a list: on a terminal with a pager (PAGER, or less) if it is longer than the screen."""
    if is_screen(sys.stdout) and is_screen(sys.stdin) and len(lines) >= shutil.get_terminal_size().lines:
        click.echo_via_pager("\n".join(lines))
    elif lines:
        click.echo("\n".join(lines))


def screen_columns() -> int | None:
    """Return the width of the terminal that stdout is; None for a file or a pipe, whose lines stay whole."""
    return shutil.get_terminal_size().columns if is_screen(sys.stdout) else None


def cut_text(text: str, columns: int | None, before: int = 0) -> str:
    """Cut a text to so many columns, of which some are taken ``before`` it; None leaves it whole."""
    return text if columns is None else shorten(text, max(columns - before, _LEAST_COLUMNS))


def cut_line(line: str, size: os.terminal_size | None) -> str:
    """Cut a line, which may end in a style, to the width of a terminal; None leaves it whole."""
    spare = len(click.unstyle(line)) - size.columns + 1 if size else 0
    if spare <= 0:
        return line
    body = line.removesuffix(_END_OF_STYLE)
    return f"{body[: -spare - 1]}…{'' if body == line else _END_OF_STYLE}"


def is_screen(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which lines can be drawn again."""
    return bool(stream) and stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """A progress bar on stderr; nothing when stderr is not a terminal."""

    def __init__(self, total: int = 0) -> None:
        self._shows = is_screen(sys.stderr)
        self._total = total
        self._ended = 0

    def __call__(self, step: LabelAction | ManyResult) -> None:
        """Count a finished step."""
        self.show(step.name, self._ended + 1, self._total)

    def show(self, name: str, ended: int, total: int) -> None:
        """Show that ``ended`` of ``total`` steps are done."""
        self._ended = ended
        if self._shows:
            bar = "█" * (20 * ended // max(total, 1))
            room = shutil.get_terminal_size().columns - 24 - len(f"{ended}/{total}")
            sys.stderr.write(f"{CLEAR_LINE}{bar:<20} {ended}/{total} {one_line(name)[: max(room, 0)]}")
            if ended == total:
                sys.stderr.write(CLEAR_LINE)
            sys.stderr.flush()
