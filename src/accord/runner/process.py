"""Running an untrusted program: limited in time, redacted while it prints, and no process of it left behind.

That holds even if this process is killed (see ``accord.runner.guard``).
"""

from __future__ import annotations

import ctypes
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from accord.agents.registry import OUTPUT_MIB
from accord.core.frozen import Frozen
from accord.core.log import log
from accord.files.store import DISK_FULL
from accord.runner import guard
from accord.runner.confine import CANNOT_START, NOT_STARTED
from accord.runner.isolation import WITHOUT_CONTAINER, Confinement
from accord.runner.models import InternalError, JobContext, LineWatcher, StopSignals
from accord.runner.record import restore_if_replaced
from accord.text.redacted_stream import RedactedStream

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""A runner that cancels a job sends SIGINT, 7.5 seconds later SIGTERM, and kills 2.5 seconds after that."""

_CHUNK_BYTES = 64 * 1024
_POLL_SECONDS = 0.05
_SHOWN_CHARS = 4000
_PATIENCE_SECONDS = {"": 2.0, "time-limit": 10.0, "stalled": 10.0, "cancelled": 4.0, "disk-full": 4.0}
"""Seconds to tidy up: for leftover processes, at the time limit, and while a runner waits to kill this process."""

_DRAIN_SECONDS = 2.0
_WAIT_SECONDS = 5
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 10
"""A process that still exists so long after SIGKILL hangs in a system call, and nothing can end it."""

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
            if signal.getsignal(number) is note:  # not where the third signal set another
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
        _watchdog(program.environment) as watch,
        _adopting_orphans() as spared,
    ):
        started = _start(program)
        watch(started)
        limit = program.output_mib * 1024 * 1024
        sinks = [
            _Sink(pipe.fileno(), CappedLog(file, limit), RedactedStream(job.redactor), job.show)  # type: ignore[union-attr]
            for pipe, file in ((started.stdout, out), (started.stderr, err))
        ]
        with started.stdout, started.stderr, selectors.DefaultSelector() as selector:  # type: ignore[union-attr]
            for sink in sinks:
                selector.register(sink.source, selectors.EVENT_READ, sink)
            running = _Running(started, selector, job.stop, sinks)
            error = running.wait(limit_seconds, silent_seconds)
            disk_error = running.end(spared, _PATIENCE_SECONDS[error.kind if error else ""])
            error = error or disk_error
        code = started.poll()
        line = os.pread(err.fileno(), _SHOWN_CHARS, 0).decode(errors="replace").partition("\n")[0]
        if code == NOT_STARTED and line.startswith(CANNOT_START):
            detail = f"Cannot start {line.removeprefix(CANNOT_START)}."
            return ProgramEnd(None, InternalError(kind="not-started", detail=detail))
        shortened = tuple(path.name for path, sink in zip((stdout, stderr), sinks, strict=True) if sink.log.left_out)
        replaced = tuple(path.name for path, file in ((stdout, out), (stderr, err)) if restore_if_replaced(path, file))
    return ProgramEnd(None if code is None else code if code >= 0 else 128 - code, error, replaced, shortened)


@contextmanager
def _watchdog(environment: Mapping[str, str]) -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Start the guard process; yield a function that tells it the leader of the agent's session.

    The guard ends with the block. An exception that leaves the block, such as a final Ctrl-C, ends the agent as well.
    ``environment`` is the agent's. Raises OSError if the guard cannot be started.
    """
    words = [sys.executable, "-I", "-S", guard.__file__]
    with subprocess.Popen(  # noqa: S603 (a file of accord)
        words,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as guarding:
        pipe = guarding.stdin
        assert pipe is not None  # noqa: S101 (a pipe was requested)
        leaders: list[subprocess.Popen[bytes]] = []

        def watch(leader: subprocess.Popen[bytes]) -> None:
            leaders.append(leader)
            with suppress(BrokenPipeError):  # the guard was killed
                os.write(pipe.fileno(), b"%d\n" % leader.pid)

        try:
            yield watch
        except BaseException:
            pipe.close()
            for leader in leaders:
                with suppress(subprocess.TimeoutExpired):
                    leader.wait(_WAIT_SECONDS)
            raise
        guarding.kill()  # before its pipe closes


@contextmanager
def _adopting_orphans() -> Iterator[frozenset[int]]:
    """Become the parent of orphaned descendants; yield the existing descendants, which are to be left alone."""
    _set_subreaper(1)
    try:
        yield frozenset(process.pid for process in guard.descendants())
    finally:
        _set_subreaper(0)


def _set_subreaper(on: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)


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


def span(seconds: float) -> str:
    """Return a time in minutes, or in seconds below a minute, rounded."""
    number, unit = (seconds / 60, "minute") if seconds >= 59.95 else (seconds, "second")
    number = round(number, 1 if number >= 1 else 2)
    return f"{number:g} {unit}{'' if number == 1 else 's'}"


class _Running(Frozen):
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

    def end(self, spared: frozenset[int], patience_seconds: float) -> InternalError | None:
        """End the program and all that it started but the ``spared``, and pass on what they still print.

        Each gets SIGTERM once, and SIGKILL when the patience is over; a further stop signal ends it.
        """
        count, began, signaled = self.stop.count, time.monotonic(), set[int]()
        while (seconds := time.monotonic() - began) <= patience_seconds + _KILL_SECONDS:
            self.started.poll()
            remaining = self._remaining_processes(spared)
            if not remaining and self.started.returncode is not None:
                break
            patience_seconds = 0 if self.stop.count > count else patience_seconds
            number = signal.SIGKILL if seconds > patience_seconds else signal.SIGTERM
            group = [] if sys.platform == "linux" else [-self.started.pid]  # without /proc
            for pid in (*group, *remaining):
                if number == signal.SIGKILL or pid not in signaled:
                    guard.send_signal(pid, number)
            signaled |= {*group, *remaining}
            self._pass_on()
        deadline = time.monotonic() + _DRAIN_SECONDS
        while self.selector.get_map() and time.monotonic() < deadline:
            self._pass_on()
        for sink in self.sinks:
            sink.finish()
        return self._disk_error()

    def _remaining_processes(self, spared: frozenset[int]) -> list[int]:
        """Return the processes that still have to end, and reap adopted orphans that ended."""
        found = [process for process in guard.descendants() if process.pid not in spared]
        for process in found:
            if process.is_dead and process.parent == os.getpid() and process.pid != self.started.pid:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return [process.pid for process in found if not process.is_dead]

    def _disk_error(self) -> InternalError | None:
        if not any(sink.log.is_full for sink in self.sinks):
            return None
        return InternalError(kind="disk-full", detail="The disk is full, so the agent's output could not be saved.")

    def _pass_on(self) -> None:
        if not self.selector.get_map():
            time.sleep(_POLL_SECONDS)
        for key, _ in self.selector.select(_POLL_SECONDS) if self.selector.get_map() else ():
            data = os.read(key.fd, _CHUNK_BYTES)
            key.data.take(data)
            if not data:
                self.selector.unregister(key.fd)


@dataclass
class _Sink:
    """The destination of one output: redacted, into its file, and line by line to the watcher."""

    source: int
    log: CappedLog
    stream: RedactedStream
    show: LineWatcher
    heard_at: float = field(default_factory=time.monotonic)
    begun: bytes = b""  # the beginning of the line that has not ended
    length: int = 0  # of all of that line

    def take(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        self._pass_on(self.stream.feed(data))

    def finish(self) -> None:
        self._pass_on(self.stream.end())
        if self.begun:
            self._show_line()
        self.log.finish()

    def _pass_on(self, data: bytes) -> None:
        self.log.write(data)
        for number, part in enumerate(data.split(b"\n")):
            if number:
                self._show_line()
            self.begun += part[: _SHOWN_CHARS - len(self.begun)]
            self.length += len(part)

    def _show_line(self) -> None:
        more = self.length - len(self.begun)
        self.show(self.begun.decode("utf-8", "replace") + (f" … ({more} more bytes)" if more else ""))
        self.begun, self.length = b"", 0


class CappedLog:
    """Writes an output to a file: of more than ``limit`` bytes, the first quarter and the end, cut between lines.

    The events that decide how a run ended are at the end. A line between both parts says how much is left out. A full
    disk takes no more.
    """

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self.left_out = 0
        self.is_full = False
        self._file = file
        self._head = limit // 4
        self._tail = limit - self._head
        self._written = 0
        self._is_head_full = False
        self._end = bytearray()

    def write(self, data: bytes) -> None:
        """Take the next piece."""
        self._end += data if self._is_head_full else self._to_head(data)
        self._leave_out(len(self._end) - self._tail)

    def finish(self) -> None:
        """Write the end."""
        if self.left_out:
            self._leave_out(self._end.find(b"\n", 0, _LINE_BYTES) + 1)
            self._to_file(b"\n... accord left out %d bytes of output ...\n" % self.left_out)
        self._to_file(self._end)

    def _leave_out(self, size: int) -> None:
        if size > 0:
            self.left_out += size
            del self._end[:size]

    def _to_head(self, data: bytes) -> bytes:
        """Write what belongs to the beginning, up to the end of a line; return the rest."""
        room = self._head - self._written
        cut = len(data) if len(data) < room else data.find(b"\n", max(0, room - 1)) + 1 or len(data)
        self._to_file(data[:cut])
        self._written += cut
        is_line_endless = self._written > 2 * self._head
        self._is_head_full = is_line_endless or (self._written >= self._head and data[:cut].endswith(b"\n"))
        return data[cut:]

    def _to_file(self, data: bytes | bytearray) -> None:
        try:
            with memoryview(data) as rest:
                written = 0
                while written < len(rest) and not self.is_full:
                    written += self._file.write(rest[written:])
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            self.is_full = True
