"""Ending an agent's session when accord is gone.

The agent has its own session and would go on to work, and to cost money, after a SIGKILL of accord (memory that runs
out, for example). So this file is also the program of a process beside both, which reads a pipe until accord is gone
and then kills the session. It imports hardly anything, so that it starts at once.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ROUNDS = 40
_PAUSE_SECONDS = 0.05
_SIGKILL = 9  # the import of signal takes as long as all the rest


class Process:
    """A process of the machine; ``is_dead`` until its parent has read its exit status."""

    def __init__(self, pid: int, parent: int, group: int, session: int, is_dead: bool) -> None:
        self.pid, self.parent, self.group, self.session, self.is_dead = pid, parent, group, session, is_dead


def processes() -> list[Process]:
    """Return the processes of the machine; none without /proc. Source: proc_pid_stat(5)."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, group, session = file.read().rpartition(b")")[2].split()[:4]
        except OSError:
            continue
        found.append(Process(int(name), int(parent), int(group), int(session), state in b"ZX"))
    return found


def _trees(roots: Iterable[Process], existing: Iterable[Process]) -> list[Process]:
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
        for number in (-leader, *(process.pid for process in remaining)):
            send_signal(number, _SIGKILL)
        if not remaining:
            return
        time.sleep(_PAUSE_SECONDS)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, or to a group by its negative number, if it is still there."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def main() -> None:
    """Wait until the other end of stdin is closed, then kill the session that was named there."""
    named = sys.stdin.buffer.read().split()
    if named:
        kill_session(int(named[0]))


if __name__ == "__main__":
    main()
