"""The processes that a program leaves behind: found by Linux's own books, and ended before anything is concluded.

A process that makes a session of its own escapes its group. With this process as the nearest reaper of orphans
(prctl(2), PR_SET_CHILD_SUBREAPER) it becomes our child when its parent ends, so none gets lost. Where there is no such
thing, the group is all that is known.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 10
"""What is still there so long after SIGKILL waits inside the kernel, and nothing can end it."""


class _Process(NamedTuple):
    pid: int
    parent: int
    is_dead: bool


def _processes() -> list[_Process]:
    """List the processes of the machine; none where there is no /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text(errors="replace").rpartition(")")[2].split()[:2]
            found.append(_Process(int(stat.parent.name), int(parent), state in "ZX"))
    return found


def descendants() -> list[_Process]:
    """List the processes below this one, parents first."""
    children: dict[int, list[_Process]] = {}
    for process in _processes():
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
class Ending:
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
