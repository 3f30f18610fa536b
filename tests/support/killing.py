"""SIGKILL at a chosen request: accord in a separate process that ends when GitHub has carried out its n-th request.

The code of the processes is imported once, by the server that forks them. Each imports this module: keep it fast.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess

from support.stage import Stage

from accord_sandbox.server import Exchange

_FORKS = multiprocessing.get_context("forkserver")
_PRELOADED = """
accord.cli.apply accord.cli.kit accord.cli.labels accord.cli.loops accord.cli.session accord.cli.start
accord.github.client accord.kit.sync accord.loops.run accord.results.implementor.run accord.results.planner.run
accord.results.reviewer.run accord.agents.registry accord.sessions.issue accord.starts.ends
github support.session_models
"""
_FORKS.set_forkserver_preload(_PRELOADED.split())


@cache
def _server() -> None:
    """Start the one server of this process, which finds modules where this process does."""
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        forkserver.ensure_running()
    finally:
        os.environ["PYTHONPATH"] = before


def forked(work: Callable[..., None], *arguments: object) -> ForkServerProcess:
    """Make a process for some work; the caller starts it."""
    _server()
    return _FORKS.Process(target=work, args=arguments)


def kill_at(nth: int, arguments: Sequence[str], stage: Stage, **variables: str) -> None:
    """Run accord on the stage, and kill it, and what it started, before the answer to its n-th request leaves.

    Requests of the API and of git count. Fails when the process ends before.
    """
    environment = {
        "GITHUB_API_URL": stage.server.url,
        "GITHUB_SERVER_URL": stage.server.url,
        "GITHUB_TOKEN": stage.server.token,
        "GITHUB_REPOSITORY": stage.repository,
        **variables,
    }
    kill_process_at(nth, forked(_run_accord, arguments, environment), stage)


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
