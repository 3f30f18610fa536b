"""Ending an agent and every process that it started, even if accord itself is killed.

The agent has its own session and would go on to work, and to cost money, after a SIGKILL of accord (memory that runs
out, for example). So this file is also the program of a process beside both, which reads a pipe until accord is gone
and then kills the session. It imports nothing of accord, so that it starts at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_ROUNDS = 40
_PAUSE_SECONDS = 0.05
_WAIT_SECONDS = 5
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 10
"""A process that still exists so long after SIGKILL hangs in a system call, and nothing can end it."""


class Process(NamedTuple):
    """A process of the machine; ``is_dead`` until its parent has read its exit status."""

    pid: int
    parent: int
    group: int
    session: int
    is_dead: bool


def processes() -> list[Process]:
    """Return the processes of the machine; none without /proc. Source: proc_pid_stat(5)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, group, session = stat.read_text(errors="replace").rpartition(")")[2].split()[:4]
            found.append(Process(int(stat.parent.name), int(parent), int(group), int(session), state in "ZX"))
    return found


def _trees(roots: Iterable[Process], existing: Iterable[Process]) -> list[Process]:
    """Return the roots and all their descendants, parents first."""
    children: dict[int, list[Process]] = {}
    for process in existing:
        children.setdefault(process.parent, []).append(process)
    found = dict.fromkeys(roots)
    waiting = list(found)
    for process in waiting:
        new = [child for child in children.get(process.pid, []) if child not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return waiting


def descendants() -> list[Process]:
    """Return the processes below this one, parents first."""
    existing = processes()
    return _trees([process for process in existing if process.parent == os.getpid()], existing)


def kill_session(leader: int) -> None:
    """Kill a session and the processes that it started elsewhere, until none is left."""
    for _ in range(_ROUNDS):
        alive = [process for process in processes() if not process.is_dead]
        members = [process for process in alive if leader in (process.pid, process.group, process.session)]
        remaining = _trees(members, alive)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for process in remaining:
            _send(process.pid, signal.SIGKILL)
        if not remaining:
            return
        time.sleep(_PAUSE_SECONDS)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


@contextmanager
def watchdog(environment: Mapping[str, str]) -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Start the guard process; yield a function that tells it the leader of the agent's session.

    The guard ends with the block. An exception that leaves the block, such as a final Ctrl-C, ends the agent as well.
    ``environment`` is the agent's. Raises OSError if the guard cannot be started.
    """
    words = [sys.executable, "-I", "-S", __file__]
    with subprocess.Popen(  # noqa: S603 (this very file)
        words,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as guard:
        pipe = guard.stdin
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
        guard.kill()  # before its pipe closes


@contextmanager
def adopting_orphans() -> Iterator[frozenset[int]]:
    """Become the parent of orphaned descendants; yield the existing descendants, which are to be left alone."""
    _set_subreaper(1)
    try:
        yield frozenset(process.pid for process in descendants())
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
        remaining = self._remaining()
        if not remaining and self.program.returncode is not None:
            return True
        seconds = time.monotonic() - self._began
        number = signal.SIGKILL if seconds > self.patience_seconds else signal.SIGTERM
        if sys.platform != "linux" and self._is_due(self.program.pid, number):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.program.pid, number)
        for pid in remaining:
            if self._is_due(pid, number):
                _send(pid, number)
        return seconds > self.patience_seconds + _KILL_SECONDS

    def _is_due(self, pid: int, number: signal.Signals) -> bool:
        is_new = pid not in self._signaled
        self._signaled.add(pid)
        return is_new or number == signal.SIGKILL

    def _remaining(self) -> list[int]:
        """Return the processes that still have to end, and reap adopted orphans that ended."""
        remaining = []
        for process in descendants():
            if process.pid in self.spared:
                continue
            if not process.is_dead:
                remaining.append(process.pid)
            elif process.parent == os.getpid() and process.pid != self.program.pid:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return remaining


def main() -> None:
    """Wait until the other end of stdin is closed, then kill the session that was named there."""
    named = sys.stdin.buffer.read().split()
    if named:
        kill_session(int(named[0]))


if __name__ == "__main__":
    main()
