"""Running a program that nobody trusts: limited in time, redacted while it prints, nothing of it left running.

Not even where this process is killed: another one waits for that (``accord.runner.guard``).
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from accord.files.store import DISK_FULL
from accord.runner.guard import Termination, adopting_orphans, guarded
from accord.runner.record import InternalError, restore_if_replaced
from accord.text.redaction import RedactedStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import FileIO
    from pathlib import Path

    from accord.text.redaction import Redactor


_CHUNK_BYTES = 64 * 1024
_POLL_SECONDS = 0.05
_SHOWN_CHARS = 4000
_PATIENCE_SECONDS = {"": 2.0, "time-limit": 10.0, "cancelled": 4.0, "disk-full": 4.0}
"""How long a program may tidy up: what it left behind, itself at the limit, and when a runner waits to kill us."""

_DRAIN_SECONDS = 2.0

_WITHOUT_SUDO = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\n"  # PR_SET_NO_NEW_PRIVS
    "try:\n    os.execv(sys.argv[1], sys.argv[1:])\n"
    "except OSError as error:\n    sys.exit(f'{sys.argv[1]}: {error.strerror}')"
)
"""A step between, as a process can only give up privileges for itself, and forked Python must not do much."""


@dataclass(frozen=True)
class Program:
    """What to run. ``words[0]`` is the path of the program; ``stdin`` a file, None for nothing to read."""

    words: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    stdin: Path | None = None
    keeps_sudo: bool = False


@dataclass(frozen=True)
class ProgramEnd:
    """How it ended: ``exit_code`` as a shell reports it (128 + signal), and what accord did to it, if anything.

    ``replaced`` names the files of its output that it took or replaced, and that were written again.
    """

    exit_code: int | None
    own: InternalError | None = None
    replaced: tuple[str, ...] = ()


class Watcher(Protocol):
    """Who is shown the lines of a program while it runs."""

    def __call__(self, line: str) -> None:
        """Take one line, redacted, without its line break."""
        ...


def run_program(
    program: Program,
    *,
    stdout: Path,
    stderr: Path,
    redactor: Redactor,
    show: Watcher,
    told: StopSignals,
    limit_seconds: float,
) -> ProgramEnd:
    """Run to the end, the time limit, or until we are told to stop; then end everything that it started.

    Raises OSError when it cannot be started or the files cannot be opened.
    """
    with (
        stdout.open("w+b", buffering=0) as out,
        stderr.open("w+b", buffering=0) as err,
        guarded(program.environment) as guard,
        adopting_orphans() as spared,
    ):
        with program.stdin.open("rb") if program.stdin else open(os.devnull, "rb") as given:
            started = _start(program, given.fileno())
        guard(started)
        sinks = [
            _Sink(started.stdout.fileno(), out, RedactedStream(redactor), _Lines(show)),  # type: ignore[union-attr]
            _Sink(started.stderr.fileno(), err, RedactedStream(redactor), _Lines(show)),  # type: ignore[union-attr]
        ]
        with started.stdout, started.stderr, selectors.DefaultSelector() as selector:  # type: ignore[union-attr]
            for sink in sinks:
                selector.register(sink.source, selectors.EVENT_READ, sink)
            own = _watch(started, selector, told, limit_seconds, sinks)
            own = _end(
                Termination(started, spared, _PATIENCE_SECONDS[own.kind if own else ""]), selector, told, own, sinks
            )
        code = started.poll()
        replaced = tuple(path.name for path, file in ((stdout, out), (stderr, err)) if restore_if_replaced(path, file))
    return ProgramEnd(None if code is None else code if code >= 0 else 128 - code, own, replaced)


def _start(program: Program, stdin: int) -> subprocess.Popen[bytes]:
    words = list(program.words)
    if not program.keeps_sudo and sys.platform == "linux":
        words = [sys.executable, "-I", "-S", "-c", _WITHOUT_SUDO, *words]
    return subprocess.Popen(  # noqa: S603 - a list of words, and the program is one of the registry
        words,
        cwd=program.directory,
        env=dict(program.environment),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _watch(
    started: subprocess.Popen[bytes],
    selector: selectors.BaseSelector,
    told: StopSignals,
    limit_seconds: float,
    sinks: Sequence[_Sink],
) -> InternalError | None:
    """Pass output on until the program ends, or there is a reason to end it."""
    deadline = time.monotonic() + limit_seconds
    while started.poll() is None:
        _pass_on(selector)
        if told:
            return InternalError(kind="cancelled", detail="The run was told to stop.")
        if time.monotonic() > deadline:
            minutes = f"{limit_seconds / 60:g} minutes" if limit_seconds >= 60 else f"{limit_seconds:g} seconds"
            return InternalError(kind="time-limit", detail=f"The agent was ended at its time limit of {minutes}.")
        if any(sink.is_full for sink in sinks):
            return _disk_full()
    return None


def _end(
    ending: Termination,
    selector: selectors.BaseSelector,
    told: StopSignals,
    own: InternalError | None,
    sinks: Sequence[_Sink],
) -> InternalError | None:
    """End what is left, and take what it still has to say; then close the files."""
    heard = told.times
    while not ending.step():
        if told.times > heard:
            ending.patience_seconds = 0
        _pass_on(selector)
    deadline = time.monotonic() + _DRAIN_SECONDS
    while selector.get_map() and time.monotonic() < deadline:
        _pass_on(selector)
    for sink in sinks:
        sink.finish()
    return own or (_disk_full() if any(sink.is_full for sink in sinks) else None)


def _disk_full() -> InternalError:
    return InternalError(kind="disk-full", detail="The disk is full: what the agent printed could not be kept.")


def _pass_on(selector: selectors.BaseSelector) -> None:
    """Wait a moment for output, and hand it on; without any source, just wait."""
    if not selector.get_map():
        time.sleep(_POLL_SECONDS)
        return
    for key, _ in selector.select(_POLL_SECONDS):
        data = os.read(key.fd, _CHUNK_BYTES)
        key.data.take(data)
        if not data:
            selector.unregister(key.fd)


@dataclass
class _Sink:
    """Where one output goes: redacted, into its file and to whoever watches."""

    source: int
    file: FileIO
    stream: RedactedStream
    lines: _Lines
    is_full: bool = False

    def take(self, data: bytes) -> None:
        self._write(self.stream.feed(data))

    def finish(self) -> None:
        self._write(self.stream.end())
        self.lines.finish()

    def _write(self, data: bytes) -> None:
        self.lines.take(data)
        rest = memoryview(data)
        while rest and not self.is_full:
            try:
                rest = rest[self.file.write(rest) :]
            except OSError as error:
                if error.errno not in DISK_FULL:
                    raise
                self.is_full = True


class _Lines:
    """Cuts output into lines to show; of an endless line no more than its beginning is kept."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._begun = b""
        self._more = 0

    def take(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            self._tell()
        self._add(rest)

    def finish(self) -> None:
        if self._begun:
            self._tell()

    def _add(self, part: bytes) -> None:
        room = max(0, _SHOWN_CHARS - len(self._begun))
        self._begun += part[:room]
        self._more += len(part[room:])

    def _tell(self) -> None:
        more = f" … ({self._more} more bytes)" if self._more else ""
        self._show(self._begun.decode("utf-8", "replace") + more)
        self._begun, self._more = b"", 0


SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""A runner that cancels a job sends SIGINT, 7.5 seconds later SIGTERM, and 2.5 seconds later it kills."""


@dataclass
class StopSignals:
    """How often this process was told to stop."""

    times: int = 0

    def __bool__(self) -> bool:
        return self.times > 0


@contextmanager
def listening() -> Iterator[StopSignals]:
    """Count the signals that ask this process to stop, instead of ending it; the third ends it as before."""
    told = StopSignals()
    if threading.current_thread() is not threading.main_thread():
        yield told
        return
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        told.times += 1
        if told.times > len(SIGNALS) and callable(before[number]):
            before[number](number, frame)

    before |= {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
