"""The status of a running agent: a line at the end of a terminal, and in a log a heartbeat while the agent is quiet."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click

from accord.cli.output import CLEAR_LINE, duration, is_screen
from accord.text.markdown import shorten

_TICK_SECONDS = 1.0
_QUIET_SECONDS = 2.0
"""Silence after which the line is shown, so that it does not flicker between lines of output."""

_HEARTBEAT_SECONDS = 180.0
"""Silence after which a log gets a line."""


class RunStatus:
    """Shows the output of an agent on a stream, and how the run goes on while the agent is quiet."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._is_screen = is_screen(stream)
        self._began = self._heard = self._told = now()
        self._is_drawn = False
        self._lock = threading.Lock()

    def show(self, line: str) -> None:
        """Write a line of output."""
        with self._lock, suppress(OSError, ValueError):  # a closed stream must not end the agent
            self._heard = self._now()
            self._erase()
            click.echo(line, file=self._stream)

    def tick(self) -> None:
        """Show how the run goes on, if the agent is quiet."""
        with self._lock, suppress(OSError, ValueError):
            now = self._now()
            elapsed, quiet = now - self._began, now - self._heard
            if self._is_screen and quiet >= _QUIET_SECONDS:
                text = f"{duration(elapsed)} · quiet {duration(quiet)}"
                width = shutil.get_terminal_size().columns - 1
                self._stream.write(f"{CLEAR_LINE}{shorten(text, max(width, 1))}")
                self._stream.flush()
                self._is_drawn = True
            elif not self._is_screen and now - max(self._heard, self._told) >= _HEARTBEAT_SECONDS:
                self._told = now
                click.echo(
                    f"accord: the agent runs for {duration(elapsed)}, quiet for {duration(quiet)}", file=self._stream
                )

    def end(self) -> None:
        """Remove the line."""
        with self._lock, suppress(OSError, ValueError):
            self._erase()
            self._stream.flush()

    def _erase(self) -> None:
        if self._is_drawn:
            self._stream.write(CLEAR_LINE)
            self._is_drawn = False


@contextmanager
def status_line(stream: TextIO) -> Iterator[RunStatus]:
    """Yield what shows a run, and let it tick until the end."""
    status, ended = RunStatus(stream), threading.Event()

    def tick() -> None:
        while not ended.wait(_TICK_SECONDS):
            status.tick()

    thread = threading.Thread(target=tick, name="accord-run-status", daemon=True)
    thread.start()
    try:
        yield status
    finally:
        ended.set()
        thread.join()
        status.end()
