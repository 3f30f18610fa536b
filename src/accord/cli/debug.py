"""``--debug``: accord's log on stderr, one redacted line for each entry."""

from __future__ import annotations

import logging
import shlex
import sys
from datetime import UTC, datetime

import click

from accord import __version__
from accord.cli.output import one_line, redactor
from accord.core.log import log

_LOGGER = logging.getLogger("accord")
_MOST_CHARS = 1_000


class _StderrHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Print one line: time, subject and text."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        subject = record.name.removeprefix("accord.")
        values = [  # each word of a command is redacted before it is quoted
            shlex.join(redactor()(str(word)) for word in value) if isinstance(value, tuple) else value
            for value in record.args or ()
        ]
        text = one_line(str(record.msg) % tuple(values))
        shown = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
        click.echo(f"{at} {subject}: {shown}", err=True)


_HANDLER = _StderrHandler()


def start_log() -> None:
    """Show accord's log until ``stop_log``."""
    if not is_started():
        _LOGGER.addHandler(_HANDLER)
        _LOGGER.setLevel(logging.DEBUG)
        log("main", "accord %s, Python %s: %s", __version__, sys.version.split()[0], tuple(sys.argv))


def stop_log() -> None:
    """Show accord's log no longer."""
    _LOGGER.removeHandler(_HANDLER)
    _LOGGER.setLevel(logging.NOTSET)


def is_started() -> bool:
    """Return whether the log is shown."""
    return _HANDLER in _LOGGER.handlers
