"""The last word about a defect of accord: an error that nobody raised on purpose becomes one that says what to do."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import click

from accord.cli.output import one_line
from accord.kernel.errors import Stopped

REPORT_TO = "https://github.com/accord-ci/accord/issues"
_LONGEST = 300
_PACKAGE = Path(__file__).parents[1]


def as_stopped(error: Exception) -> Stopped:
    """Say that accord stopped because of its own defect. Prints the traceback where RUNNER_DEBUG is 1.

    What the error says may come from an agent or hold a secret: it is redacted whole, and then cut.
    """
    if os.environ.get("RUNNER_DEBUG") == "1":
        for line in "".join(traceback.format_exception(error)).splitlines():
            click.echo(f"  {one_line(line)}" if line.strip() else "", err=True)
    said = one_line(str(error))
    said = f"{said[:_LONGEST]}…" if len(said) > _LONGEST else said
    return Stopped(
        f"This is a defect of accord: {type(error).__name__}{f' ({said})' if said else ''} at {_place(error)}. "
        "Nothing tells whether anything was written.",
        mend="Run the same command again: what is there already is found, not written twice. If it ends like this "
        f"again, report it at {REPORT_TO}, with what RUNNER_DEBUG=1 prints.",
    )


def _place(error: Exception) -> str:
    """Name the last line of our own that was on the way to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(f"{_PACKAGE}{os.sep}")]
    frame = (ours or frames)[-1]
    return f"{frame.filename.removeprefix(f'{_PACKAGE}{os.sep}')}:{frame.lineno}"
