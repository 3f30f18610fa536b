"""Running an untrusted program: limited in time, redacted while it prints, and no process of it left behind.

That holds even if this process is killed (see ``accord.runner.guard``).
"""

from __future__ import annotations

import math
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from accord.agents.registry import OUTPUT_MIB
from accord.core.frozen import Frozen
from accord.core.log import log
from accord.files.store import DISK_FULL
from accord.runner.confine import CANNOT_START, NOT_STARTED
from accord.runner.isolation import WITHOUT_CONTAINER, Confinement
from accord.runner.models import InternalError, JobContext, LineWatcher, StopSignals
from accord.runner.record import restore_if_replaced
from accord.runner.termination import Termination, adopting_orphans, watchdog
from accord.text.redacted_stream import RedactedStream

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""A runner that cancels a job sends SIGINT, 7.5 seconds later SIGTERM, and kills 2.5 seconds after that."""

_CHUNK_BYTES = 64 * 1024
_POLL_SECONDS = 0.05
_SHOWN_CHARS = 4000
_PATIENCE_SECONDS = {"": 2.0, "time-limit": 10.0, "stalled": 10.0, "cancelled": 4.0, "disk-full": 4.0}
"""Seconds to tidy up: for leftover processes, at the time limit, and while a runner waits to kill this process."""

_DRAIN_SECONDS = 2.0
_PIECE_BYTES = 64 * 1024
_LINE_BYTES = 4 * 1024 * 1024
"""A longer line at the beginning of the end is not cut off."""


@contextmanager
def counting_stop_signals() -> Iterator[StopSignals]:
    """Count the signals that ask this process to stop instead of ending it; the third one takes its usual effect."""
    stop = StopSignals()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        stop.count += 1
        if stop.count > len(SIGNALS) and callable(before[number]):
            before[number](number, frame)

    before |= {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Program(Frozen):
    """A program to run."""

    words: Sequence[str]  # the first is its path
    directory: Path
    environment: Mapping[str, str]
    stdin: Path | None = None  # a file, None for an empty input
    confinement: Confinement | None = WITHOUT_CONTAINER  # None: it keeps every right
    output_mib: int = OUTPUT_MIB


class ProgramEnd(Frozen):
    """How a program ended."""

    exit_code: int | None  # as a shell reports it (128 + signal)
    error: InternalError | None = None  # if accord ended it
    replaced: tuple[str, ...] = ()  # output files that it removed or replaced, and that were written again
    shortened: tuple[str, ...] = ()  # output files without the middle of a very long output


def run_program(
    program: Program,
    job: JobContext,
    *,
    stdout: Path,
    stderr: Path,
    limit_seconds: float,
    silent_seconds: float = math.inf,
) -> ProgramEnd:
    """Run a program until it ends, the time limit, a stop signal or a full disk; then end everything it started.

    A program that prints nothing on stdout for ``silent_seconds`` has stalled, and is ended too. Raises OSError if it
    cannot be started or the files cannot be opened.
    """
    with (
        stdout.open("w+b", buffering=0) as out,
        stderr.open("w+b", buffering=0) as err,
        watchdog(program.environment) as watch,
        adopting_orphans() as spared,
    ):
        started = _start(program)
        watch(started)
        limit = program.output_mib * 1024 * 1024
        sinks = [
            _Sink(pipe.fileno(), CappedLog(file, limit), RedactedStream(job.redactor), _Lines(job.show))  # type: ignore[union-attr]
            for pipe, file in ((started.stdout, out), (started.stderr, err))
        ]
        with started.stdout, started.stderr, selectors.DefaultSelector() as selector:  # type: ignore[union-attr]
            for sink in sinks:
                selector.register(sink.source, selectors.EVENT_READ, sink)
            running = _Running(started, selector, job.stop, sinks)
            error = running.wait(limit_seconds, silent_seconds)
            patience = _PATIENCE_SECONDS[error.kind if error else ""]
            disk_error = running.end(Termination(started, spared, patience))
            error = error or disk_error
        code = started.poll()
        if code == NOT_STARTED and (reason := _reason_not_started(err)):
            return ProgramEnd(None, InternalError(kind="not-started", detail=reason))
        shortened = tuple(path.name for path, sink in zip((stdout, stderr), sinks, strict=True) if sink.is_shortened)
        replaced = tuple(path.name for path, file in ((stdout, out), (stderr, err)) if restore_if_replaced(path, file))
    return ProgramEnd(None if code is None else code if code >= 0 else 128 - code, error, replaced, shortened)


def _start(program: Program) -> subprocess.Popen[bytes]:
    words, before = list(program.words), b""
    if program.confinement and sys.platform == "linux":
        words, before = program.confinement.command(words, program.directory, program.environment)
    with tempfile.TemporaryFile() as given:  # a copy, because a program can open its input again to write to it
        given.write(before)
        if program.stdin:
            with program.stdin.open("rb") as source:
                shutil.copyfileobj(source, given)
        given.seek(0)
        log("runner", "%s in %s", tuple(words), program.directory)
        return subprocess.Popen(  # noqa: S603 - a list of words, and the program is one of the registry
            words,
            cwd=program.directory,
            env=dict(program.environment),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def _reason_not_started(stderr: BinaryIO) -> str:
    line = os.pread(stderr.fileno(), _SHOWN_CHARS, 0).decode(errors="replace").partition("\n")[0]
    return f"Cannot start {line.removeprefix(CANNOT_START)}." if line.startswith(CANNOT_START) else ""


def span(seconds: float) -> str:
    """Return a time in minutes, or in seconds below a minute, rounded."""
    number, unit = (seconds / 60, "minute") if seconds >= 59.95 else (seconds, "second")
    number = round(number, 1 if number >= 1 else 2)
    return f"{number:g} {unit}{'' if number == 1 else 's'}"


class _Running(Frozen):
    """A program that runs, and where its output goes."""

    started: subprocess.Popen[bytes]
    selector: selectors.BaseSelector
    stop: StopSignals
    sinks: Sequence[_Sink]

    def wait(self, limit_seconds: float, silent_seconds: float) -> InternalError | None:
        """Pass output on until the program ends; return why it must be ended before that."""
        deadline = time.monotonic() + limit_seconds
        while self.started.poll() is None:
            self._pass_on()
            if self.stop:
                return InternalError(kind="cancelled", detail="The run was cancelled by a signal.")
            if time.monotonic() > deadline:
                detail = f"The agent reached its time limit of {span(limit_seconds)}."
                return InternalError(kind="time-limit", detail=detail)
            if time.monotonic() > self.sinks[0].heard_at + silent_seconds:
                return InternalError(kind="stalled", detail=f"The agent printed no event for {span(silent_seconds)}.")
            if error := self._disk_error():
                return error
        return None

    def end(self, termination: Termination) -> InternalError | None:
        """End the processes that are left and pass their last output on; a further stop signal kills them at once."""
        count = self.stop.count
        while not termination.step():
            if self.stop.count > count:
                termination.patience_seconds = 0
            self._pass_on()
        deadline = time.monotonic() + _DRAIN_SECONDS
        while self.selector.get_map() and time.monotonic() < deadline:
            self._pass_on()
        for sink in self.sinks:
            sink.finish()
        return self._disk_error()

    def _disk_error(self) -> InternalError | None:
        if not any(sink.is_full for sink in self.sinks):
            return None
        return InternalError(kind="disk-full", detail="The disk is full, so the agent's output could not be saved.")

    def _pass_on(self) -> None:
        """Wait shortly for output and pass it on; without an open source, just wait."""
        if not self.selector.get_map():
            time.sleep(_POLL_SECONDS)
            return
        for key, _ in self.selector.select(_POLL_SECONDS):
            data = os.read(key.fd, _CHUNK_BYTES)
            key.data.take(data)
            if not data:
                self.selector.unregister(key.fd)


@dataclass
class _Sink:
    """The destination of one output: redacted, into its file and to the watcher."""

    source: int
    log: CappedLog
    stream: RedactedStream
    lines: _Lines
    is_full: bool = False
    is_shortened: bool = False
    heard_at: float = field(default_factory=time.monotonic)

    def take(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        self._write(self.stream.feed(data))

    def finish(self) -> None:
        self._write(self.stream.end())
        self.lines.finish()
        with self._noting_a_full_disk():
            self.is_shortened = self.log.finish() > 0

    def _write(self, data: bytes) -> None:
        self.lines.take(data)
        with self._noting_a_full_disk():
            if not self.is_full:
                self.log.write(data)

    @contextmanager
    def _noting_a_full_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            self.is_full = True


class _Lines:
    """Cuts output into lines to show; of an endless line only the beginning."""

    def __init__(self, show: LineWatcher) -> None:
        self._show = show
        self._begun = b""
        self._more = 0

    def take(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            self._show_line()
        self._add(rest)

    def finish(self) -> None:
        if self._begun:
            self._show_line()

    def _add(self, part: bytes) -> None:
        room = max(0, _SHOWN_CHARS - len(self._begun))
        self._begun += part[:room]
        self._more += len(part[room:])

    def _show_line(self) -> None:
        more = f" … ({self._more} more bytes)" if self._more else ""
        self._show(self._begun.decode("utf-8", "replace") + more)
        self._begun, self._more = b"", 0


class CappedLog:
    """Writes an output to a file: of more than ``limit`` bytes, the first quarter and the end, cut between lines.

    The events that decide how a run ended are at the end. A line between both parts says how much is left out.
    """

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self._head = limit // 4
        self._tail = limit - self._head
        self._written = self._passed = 0
        self._is_head_full = False
        self._spools: list[IO[bytes]] = []
        self._open = ExitStack()

    def write(self, data: bytes) -> None:
        """Take the next piece. Raises OSError, for example if the disk is full."""
        self._to_spool(data if self._is_head_full else self._to_head(data))

    def finish(self) -> int:
        """Write the end; return the number of bytes left out."""
        with self._open:
            start = left_out = 0
            if self._passed > self._tail:
                older, newer = self._spools
                start = max(0, older.tell() + newer.tell() - self._tail)
                left_out = self._passed - (older.tell() + newer.tell() - start)
                older.seek(start)
                line = older.readline(_LINE_BYTES)
                if line.endswith(b"\n"):
                    start, left_out = start + len(line), left_out + len(line)
                self._write_all(b"\n... accord left out %d bytes of output ...\n" % left_out)
            for spool in self._spools:
                spool.seek(start)
                start = 0
                while data := spool.read(_PIECE_BYTES):
                    self._write_all(data)
            return left_out

    def _to_head(self, data: bytes) -> bytes:
        """Write what belongs to the beginning, up to the end of a line; return the rest."""
        room = self._head - self._written
        cut = len(data) if len(data) < room else data.find(b"\n", max(0, room - 1)) + 1 or len(data)
        self._write_all(data[:cut])
        self._written += cut
        is_line_endless = self._written > 2 * self._head
        self._is_head_full = is_line_endless or (self._written >= self._head and data[:cut].endswith(b"\n"))
        return data[cut:]

    def _to_spool(self, data: bytes) -> None:
        """Keep the last pieces in two files, each as long as the end may be."""
        for begin in range(0, len(data), _PIECE_BYTES):
            piece = data[begin : begin + _PIECE_BYTES]
            if not self._spools or self._spools[-1].tell() + len(piece) > self._tail:
                for old in self._spools[:-1]:
                    old.close()
                spool = tempfile.TemporaryFile()  # noqa: SIM115 (finish closes it)
                self._spools = [*self._spools[-1:], self._open.enter_context(spool)]
            self._spools[-1].write(piece)
            self._passed += len(piece)

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
