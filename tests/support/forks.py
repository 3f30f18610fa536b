"""Processes that fork from one with accord's modules imported: the import takes half of a small command.

Each imports the module of its work: keep what that imports to ``support.preloaded``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing import forkserver
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["support.preloaded"])


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


class Forked:
    """A running command of accord; what it offers is what :class:`subprocess.Popen` does."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        ends, (out, err) = zip(_FORKS.Pipe(duplex=False), _FORKS.Pipe(duplex=False), strict=True)
        self.process = forked(_run_command, arguments, folder, dict(environment), out, err)
        self.process.start()
        self.stdout, self.stderr = (open(os.dup(end.fileno()), encoding="utf-8") for end in ends)  # noqa: SIM115
        for end in (*ends, out, err):
            end.close()

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0]:
            self.send_signal(signal.SIGKILL)
        self.process.join()
        self.stdout.close()
        self.stderr.close()

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def poll(self) -> int | None:
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        if self.process.is_alive() and self.process.pid:
            os.kill(self.process.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Return all that it prints; kill it after these seconds."""
        timer = threading.Timer(timeout, self.process.kill)
        timer.start()
        with ThreadPoolExecutor() as readers:
            out, err = readers.map(lambda stream: stream.read(), (self.stdout, self.stderr))
        timer.cancel()
        self.process.join()
        return out, err


def _run_command(
    arguments: Sequence[str], folder: Path, environment: dict[str, str], out: Connection, err: Connection
) -> None:
    from accord.cli.main import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, end in enumerate((out, err), 1):
        os.dup2(end.fileno(), number)
        end.close()
    sys.argv[1:] = arguments
    main([*arguments])
