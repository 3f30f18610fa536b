"""SIGKILL at a chosen request: accord in a separate process that ends when GitHub has carried out its n-th request."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from support.forks import forked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.context import ForkServerProcess

    from support.stage import Stage

    from accord_sandbox.server import Exchange


def kill_at(nth: int, arguments: Sequence[str], stage: Stage, **variables: str) -> None:
    """Run accord on the stage, and kill it, and what it started, before the answer to its n-th request leaves.

    Requests of the API and of git count. Fails when the process ends before.
    """
    kill_process_at(nth, forked(_run_accord, arguments, environment_on(stage) | variables), stage)


def environment_on(stage: Stage) -> dict[str, str]:
    """Return the variables that point a process at a stage."""
    return {
        "GITHUB_API_URL": stage.server.url,
        "GITHUB_SERVER_URL": stage.server.url,
        "GITHUB_TOKEN": stage.server.token,
        "GITHUB_REPOSITORY": stage.repository,
    }


def kill_process_at(nth: int, process: ForkServerProcess, stage: Stage) -> None:
    """Run a process that leads its own group, and kill the group like ``kill_at``."""
    started = threading.Event()
    seen = 0

    def kill(exchange: Exchange) -> None:
        nonlocal seen
        seen += exchange.phase == "applied"
        if exchange.phase == "applied" and seen == nth:
            started.wait(10)  # the child may ask before its parent has learnt its number
            assert process.pid
            os.killpg(process.pid, signal.SIGKILL)

    stage.server.observers.append(kill)
    try:
        process.start()
        started.set()
        process.join(60)
    finally:
        stage.server.observers.remove(kill)
    assert process.exitcode == -signal.SIGKILL, (nth, process.exitcode)


def _run_accord(arguments: Sequence[str], environment: dict[str, str]) -> None:
    from accord.cli.main import main

    os.setsid()
    os.environ.update(environment)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    main([*arguments])
