"""Ending a program and every process that it started, also if accord itself is killed (see ``accord.runner.guard``)."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from accord.runner import guard

_WAIT_SECONDS = 5
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 10
"""A process that still exists so long after SIGKILL hangs in a system call, and nothing can end it."""


@contextmanager
def watchdog(environment: Mapping[str, str]) -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
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
def adopting_orphans() -> Iterator[frozenset[int]]:
    """Become the parent of orphaned descendants; yield the existing descendants, which are to be left alone."""
    _set_subreaper(1)
    try:
        yield frozenset(process.pid for process in guard.descendants())
    finally:
        _set_subreaper(0)


def _set_subreaper(on: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)


@dataclass
class Termination:
    """Ends a program and everything it started: SIGTERM once to each, SIGKILL after ``patience_seconds``."""

    program: subprocess.Popen[bytes]
    spared: frozenset[int]
    patience_seconds: float
    _signaled: set[int] = field(default_factory=set)
    _began: float = field(default_factory=time.monotonic)

    def step(self) -> bool:
        """Send the signals that are due; return True when nothing is left, or nothing more can be done."""
        self.program.poll()
        remaining = self._remaining_processes()
        if not remaining and self.program.returncode is not None:
            return True
        seconds = time.monotonic() - self._began
        number = signal.SIGKILL if seconds > self.patience_seconds else signal.SIGTERM
        if sys.platform != "linux" and self._is_due(self.program.pid, number):
            guard.send_signal(-self.program.pid, number)
        for pid in remaining:
            if self._is_due(pid, number):
                guard.send_signal(pid, number)
        return seconds > self.patience_seconds + _KILL_SECONDS

    def _is_due(self, pid: int, number: signal.Signals) -> bool:
        is_new = pid not in self._signaled
        self._signaled.add(pid)
        return is_new or number == signal.SIGKILL

    def _remaining_processes(self) -> list[int]:
        """Return the processes that still have to end, and reap adopted orphans that ended."""
        remaining = []
        for process in guard.descendants():
            if process.pid in self.spared:
                continue
            if not process.is_dead:
                remaining.append(process.pid)
            elif process.parent == os.getpid() and process.pid != self.program.pid:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return remaining
