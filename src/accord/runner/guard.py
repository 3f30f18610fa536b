"""Ends an agent whose accord was killed: a process beside both, which reads a pipe until accord is gone.

SIGKILL leaves no time to tidy up, and memory that runs out ends accord by it. The agent has a session of its own, so it
would go on to work, and to cost money, for a result that nobody takes. This file is also that process's program; it
imports nothing of accord, so that it begins at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Mapping


_ROUNDS = 40
_PAUSE_SECONDS = 0.05
_WAIT_SECONDS = 5


@contextmanager
def guarded(environment: Mapping[str, str]) -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Start the process, and give what tells it who leads the agent's session; it ends with the block.

    An exception that leaves the block, such as a person's last Ctrl-C, ends the agent as well.

    ``environment`` is the agent's. Raises OSError when it cannot be started.
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
        assert pipe is not None  # noqa: S101 (a pipe was asked for)
        leaders: list[subprocess.Popen[bytes]] = []

        def tell(leader: subprocess.Popen[bytes]) -> None:
            leaders.append(leader)
            with suppress(BrokenPipeError):  # somebody ended it
                os.write(pipe.fileno(), b"%d\n" % leader.pid)

        try:
            yield tell
        except BaseException:
            pipe.close()
            for leader in leaders:
                with suppress(subprocess.TimeoutExpired):
                    leader.wait(_WAIT_SECONDS)
            raise
        guard.kill()  # before its pipe closes


class _Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int


def _processes() -> Iterator[_Process]:
    """List the living processes of the machine; none where there is no /proc."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, *numbers = stat.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if state not in "ZX":
                yield _Process(int(stat.parent.name), *map(int, numbers))


def _belonging(leader: int) -> set[int]:
    """Name what is in the session, and what that started elsewhere and is still the parent of."""
    there = list(_processes())
    found = {process.pid for process in there if leader in (process.pid, process.group, process.session)}
    size = -1
    while size != len(found):
        size = len(found)
        found |= {process.pid for process in there if process.parent in found}
    return found


def end(leader: int) -> None:
    """Kill a session and all that belongs to it, until nothing is left of it."""
    for _ in range(_ROUNDS):
        left = _belonging(leader)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(_PAUSE_SECONDS)


def main() -> None:
    """Wait until nobody holds the other end of stdin any more, and end the session that was named there."""
    named = sys.stdin.buffer.read().split()
    if named:
        end(int(named[0]))


if __name__ == "__main__":
    main()


_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 10
"""What is still there so long after SIGKILL waits inside the kernel, and nothing can end it."""


class _OwnProcess(NamedTuple):
    pid: int
    parent: int
    is_dead: bool


def _processes_descendants() -> list[_OwnProcess]:
    """List the processes of the machine; none where there is no /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text(errors="replace").rpartition(")")[2].split()[:2]
            found.append(_OwnProcess(int(stat.parent.name), int(parent), state in "ZX"))
    return found


def descendants() -> list[_OwnProcess]:
    """List the processes below this one, parents first."""
    children: dict[int, list[_OwnProcess]] = {}
    for process in _processes_descendants():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(os.getpid(), []))
    for process in found:
        found += children.get(process.pid, [])
    return found


@contextmanager
def adopting_orphans() -> Iterator[frozenset[int]]:
    """Become the parent of what is orphaned below; give the processes that are there already and are left alone."""
    _be_reaper(1)
    try:
        yield frozenset(process.pid for process in descendants())
    finally:
        _be_reaper(0)


def _be_reaper(on: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)


@dataclass
class Termination:
    """Ends a program and all that it started: first asked, once each, and after ``patience_seconds`` killed."""

    program: subprocess.Popen[bytes]
    spared: frozenset[int]
    patience_seconds: float
    _asked: set[int] = field(default_factory=set)
    _began: float = field(default_factory=time.monotonic)

    def step(self) -> bool:
        """Send the signals that are due; return True when nothing is left, or nothing more can be done."""
        self.program.poll()
        left = self._left()
        if not left and self.program.returncode is not None:
            return True
        is_due = self.lasted > self.patience_seconds
        if sys.platform != "linux":
            self._signal_group(is_due)
        for pid in left:
            if is_due or pid not in self._asked:
                self._asked.add(pid)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if is_due else signal.SIGTERM)
        return self.lasted > self.patience_seconds + _KILL_SECONDS

    @property
    def lasted(self) -> float:
        """For how many seconds it has been ending."""
        return time.monotonic() - self._began

    def _left(self) -> list[int]:
        """Name what is left to end, and bury adopted orphans that ended."""
        left = []
        for process in descendants():
            if process.pid in self.spared:
                continue
            if not process.is_dead:
                left.append(process.pid)
            elif process.parent == os.getpid() and process.pid != self.program.pid:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return left

    def _signal_group(self, is_due: bool) -> None:
        group = self.program.pid
        if is_due or group not in self._asked:
            self._asked.add(group)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL if is_due else signal.SIGTERM)
