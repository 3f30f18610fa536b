"""Ends an agent whose accord was killed: a process beside both, which reads a pipe until accord is gone.

SIGKILL leaves no time to tidy up, and memory that runs out ends accord by it. The agent has a session of its own, so it
would go on to work, and to cost money, for a result that nobody takes. This file is also that process's program; it
imports nothing of accord, so that it begins at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
