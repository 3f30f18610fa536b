"""``--debug``: accord's log on stderr, one redacted line for each entry."""

from __future__ import annotations

import logging
import shlex
import sys
from datetime import UTC, datetime

import click

from accord import __version__
from accord.cli.output import one_line
from accord.core.log import cut, log

_LOGGER = logging.getLogger("accord")


class _StderrHandler(logging.Handler):
    """Shows entries on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line: time, subject and text."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        subject = record.name.removeprefix("accord.")
        click.echo(f"{at} {subject}: {one_line(record.getMessage())}", err=True)


def start_log() -> None:
    """Show accord's log until ``stop_log``."""
    if not is_started():
        _LOGGER.addHandler(_StderrHandler())
        _LOGGER.setLevel(logging.DEBUG)
        log("main", "accord %s, Python %s: %s", __version__, sys.version.split()[0], cut(shlex.join(sys.argv)))


def stop_log() -> None:
    """Show accord's log no longer."""
    for handler in [each for each in _LOGGER.handlers if isinstance(each, _StderrHandler)]:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(logging.NOTSET)


def is_started() -> bool:
    """Return whether the log is shown."""
    return any(isinstance(each, _StderrHandler) for each in _LOGGER.handlers)
