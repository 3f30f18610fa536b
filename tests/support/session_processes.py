"""What other processes do to a session in tests: end in the middle of a write, or write at the same time.

Each process imports this module: nothing slow in here.
"""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from accord.kernel.store import Disk

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["accord.sessions.moves", "support.disks", "support.sessions", "yaml", "markdown_it"])

HISTORY = {
    "at": "2026-01-31T09:30:00Z",
    "decision_id": "UD-APPROVE-DESIGN",
    "answer": "changes-requested: smaller",
    "state_context": "APPROVE_DESIGN",
}


def act(name: str, folder: Path, disk: Disk) -> None:
    """Make one change of a session, by its name."""
    from support.sessions import clock, status

    from accord.sessions import moves, store

    if name == "advance":
        moves.advance(folder, "BLOCKED", role="Orchestrator", clock=clock(), disk=disk, blocker="x")
    elif name == "task":
        moves.move_task(folder, "T-001", "blocked", role="QA", clock=clock(), disk=disk)
    elif name == "history":
        store.append_history(folder, HISTORY, role="Orchestrator", clock=clock(), disk=disk)
    else:
        (folder / "status.json").unlink(missing_ok=True)
        store.create_status(folder, status(), role="SpecAgent", clock=clock(), disk=disk)


def killed(name: str, folder: Path, nth: int, moment: str) -> bool:
    """Make a change in a process that ends at its n-th call of the disk; tell whether it came that far."""
    process = _FORKS.Process(target=_act_until, args=(name, str(folder), nth, moment))
    process.start()
    process.join(30)
    assert process.exitcode in (0, 77), process.exitcode
    return process.exitcode == 77


def _act_until(name: str, folder: str, nth: int, moment: str) -> None:
    from support.disks import LastCall

    act(name, Path(folder), LastCall(nth, moment))


def writer(folder: Path, who: str, rounds: int) -> ForkServerProcess:
    """Start a process that writes so many issues into a session, and moves a task to and fro."""
    process = _FORKS.Process(target=_write, args=(str(folder), who, rounds))
    process.start()
    return process


def _write(folder: str, who: str, rounds: int) -> None:
    from accord.kernel.clock import SystemClock
    from accord.sessions.moves import move_task
    from accord.sessions.store import change_status, status_value

    clock, place = SystemClock(), Path(folder)
    task = {"a": "T-001", "b": "T-002"}[who]
    for i in range(rounds):
        change_status(
            place,
            lambda session, said=f"{who}-{i}": {  # type: ignore[misc]
                **(value := status_value(session)),
                "known_issues": [*value["known_issues"], said],
            },
            role="Coder",
            clock=clock,
        )
        if i % 10 == 0:
            move_task(place, task, "blocked", role="Coder", clock=clock)
            move_task(place, task, "not-started", role="Orchestrator", clock=clock)
