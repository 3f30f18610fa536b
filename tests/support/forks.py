"""``accord`` in a process of its own that forks from one with its modules imported: the import takes half of a run."""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = Path(__file__).parents[2] / "src"


class Forked:
    """A running command; what it offers is what :class:`subprocess.Popen` does."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        started = {"arguments": [*arguments], "folder": str(folder), "environment": {**environment}}
        self.pid = _ask(started, out_end, err_end)
        self.returncode: int | None = None
        self.stdout: IO[str] = open(out, encoding="utf-8")  # noqa: SIM115
        self.stderr: IO[str] = open(err, encoding="utf-8")  # noqa: SIM115
        for end in (out_end, err_end):
            os.close(end)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0]:
            self.send_signal(signal.SIGKILL)
        self._wait(0)
        self.stdout.close()
        self.stderr.close()

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Return all that it prints; kill it after these seconds."""
        timer = threading.Timer(timeout, os.kill, (self.pid, signal.SIGKILL))
        timer.start()
        with ThreadPoolExecutor() as readers:
            out, err = readers.map(lambda stream: stream.read(), (self.stdout, self.stderr))
        timer.cancel()
        self._wait(0)
        return out, err

    def _wait(self, flags: int) -> int | None:
        if self.returncode is None:
            self.returncode = _ask({"pid": self.pid, "flags": flags})
        return self.returncode


@cache
def _parent() -> socket.socket:
    """Start the process that the commands fork from; it ends with this one."""
    ours, its = socket.socketpair()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    words = [sys.executable, "-P", __file__, str(its.fileno())]
    parent = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
    its.close()
    atexit.register(_end, parent, ours)
    return ours


def _end(parent: subprocess.Popen[bytes], asking: socket.socket) -> None:
    asking.close()
    parent.wait(10)


def _ask(request: Mapping[str, Any], *streams: int) -> Any:
    data = json.dumps(request).encode() + b"\n"
    _parent().sendall(len(streams).to_bytes())
    if streams:
        socket.send_fds(_parent(), [b"+"], streams)
    _parent().sendall(data)
    answer = b""
    while not answer.endswith(b"\n"):
        answer += _parent().recv(1024) or b"null\n"
    return json.loads(answer)


def _serve(asked: socket.socket) -> list[str]:
    """Answer until no one asks any more; return the arguments in a process that forked to run them."""
    while count := asked.recv(1):
        streams = socket.recv_fds(asked, 1, 2)[1] if count[0] else []
        data = b""
        while not data.endswith(b"\n"):
            data += asked.recv(1 << 16)
        request = json.loads(data)
        if "pid" in request:
            pid, status = os.waitpid(request["pid"], request["flags"])
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                asked.close()
                return _enter(request, streams)
        asked.sendall(json.dumps(answer).encode() + b"\n")
        for stream in streams:
            os.close(stream)
    os._exit(0)


def _enter(request: dict[str, Any], streams: Sequence[int]) -> list[str]:
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    arguments: list[str] = request["arguments"]
    sys.argv[1:] = arguments
    return arguments


if __name__ == "__main__":
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    import accord.cli.main
    import accord.records
    import accord.runner

    for package in (accord.cli, accord.records, accord.runner):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    gc.freeze()
    connection = socket.socket(fileno=int(sys.argv[1]))
    try:
        accord.cli.main.main(_serve(connection))
    except SystemExit as ended:
        sys.stdout.flush()
        os._exit(int(ended.code or 0))  # to take all modules apart takes as long as a small command
