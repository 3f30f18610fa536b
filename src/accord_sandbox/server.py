"""Starts a local GitHub on a thread of this process, any number of times.

Tests, rehearsals and ``accord sandbox serve`` use ``serving``::

    with serving(tmp_path) as sandbox:
        requests.get(f"{sandbox.url}/repos/{sandbox.repository}/issues")
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from accord.core.network import HOST, open_listener
from accord_sandbox.app import Application
from accord_sandbox.calls import SandboxSettings
from accord_sandbox.database import FILE_NAME, Database, find_repository, get_meta, open_snapshot, set_meta, wipe
from accord_sandbox.faults import DROP, Exchange, Fault, Faults, Observer
from accord_sandbox.planting import TOKEN, plant_seed, use_as_home
from accord_sandbox.tokens import RateLimits

if TYPE_CHECKING:
    from accord_sandbox.seed import Seed

__all__ = ["Exchange", "Fault", "Faults", "Observer", "RateLimits", "RunningSandbox", "SandboxSettings", "serving"]

START_SECONDS = 10.0
STOP_SECONDS = 1.0
IDLE_SECONDS = 600


@dataclass(frozen=True)
class RunningSandbox:
    """A local GitHub that answers at ``url`` (and, like GHES, below ``url``/api/v3)."""

    url: str
    token: str
    repository: str
    application: Application = field(repr=False)
    database: Database = field(repr=False)
    _seed: Seed | None = field(repr=False)

    @property
    def faults(self) -> Faults:
        """The injected faults."""
        return self.application.faults

    @property
    def observers(self) -> list[Observer]:
        """Called with every exchange of the API and git, on the server's thread."""
        return self.application.observers

    @property
    def requests(self) -> list[tuple[str, str, int]]:
        """The log of requests: method, path, status (0: dropped)."""
        return self.application.requests

    def reset(self) -> None:
        """Restore the seeded state: data, faults, rate limits and the log. Observers stay."""
        with self.database.writing() as connection:
            wipe(connection)
            self.application.storage.wipe()
            now = self.application.settings.clock.now().timestamp()
            plant_seed(connection, self.application.storage, self._seed, self.repository, now)
        self.forget_requests()

    def forget_requests(self) -> None:
        """Remove the faults, and forget the requests: their log, and what counts for rate limits."""
        self.faults.clear()
        self.application.meter.clear()
        self.requests.clear()


@contextmanager
def serving(
    directory: Path,
    *,
    port: int = 0,
    repository: str | None = None,
    seed: Path | None = None,
    settings: SandboxSettings | None = None,
    creates: bool = True,
) -> Iterator[RunningSandbox]:
    """Serve the local GitHub in ``directory`` until the block ends.

    Port 0 takes a free one. ``seed`` counts only for a new directory. ``repository`` ("owner/name") is created if it
    does not exist; without ``creates`` only in a new directory. Several processes may serve one directory at once.
    """
    settings = settings or SandboxSettings()
    directory = directory.absolute()  # git runs elsewhere
    with closing(Database(directory)) as store:
        application = Application(store, settings)
        running_seed, home = _open(application, repository, seed, settings.clock.now().timestamp(), creates=creates)
        with open_listener(port) as listener, _thread(application, listener):
            url = f"http://{HOST}:{listener.getsockname()[1]}"
            yield RunningSandbox(url, TOKEN, home, application, store, running_seed)


def has_other_content(directory: Path, seed: Path) -> bool:
    """Return whether a directory holds a sandbox that did not begin with this seed file."""
    if not (directory / FILE_NAME).exists():
        return False
    with open_snapshot(directory) as connection:
        return get_meta(connection, "home") is not None and str(get_meta(connection, "seed")) != _digest(seed)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _open(
    application: Application, repository: str | None, path: Path | None, now: float, *, creates: bool
) -> tuple[Seed | None, str]:
    seed = None
    if path is not None:
        from accord_sandbox.seed import read_seed  # imported here: most sandboxes have no seed file

        seed = read_seed(path)
    with application.database.writing() as connection:
        if get_meta(connection, "home") is None:
            plant_seed(connection, application.storage, seed, repository, now)
            if path is not None:
                set_meta(connection, "seed", _digest(path))
        home = repository or str(get_meta(connection, "home"))
        if creates or find_repository(connection, home):
            use_as_home(connection, home, now)
    return seed, home


@contextmanager
def _thread(application: Application, listener: socket.socket) -> Iterator[None]:
    started, stop = Future[None](), list[Callable[[], object]]()

    async def serve() -> None:
        is_stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        stop.append(partial(loop.call_soon_threadsafe, is_stopping.set))
        connections = ServerState()
        server = await loop.create_server(lambda: _Droppable(config, connections, {}), sock=listener)
        started.set_result(None)
        await is_stopping.wait()
        server.close()
        for connection in tuple(connections.connections):
            connection.shutdown()
        if connections.tasks:
            await asyncio.wait(connections.tasks, timeout=STOP_SECONDS)

    config = uvicorn.Config(
        application, http=_Droppable, ws="none", lifespan="off", log_config=None, log_level="critical",
        access_log=False, proxy_headers=False, timeout_keep_alive=IDLE_SECONDS,
    )  # fmt: skip

    def run() -> None:
        try:
            asyncio.run(serve())
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)

    config.load()
    thread = threading.Thread(target=run, name="accord-sandbox", daemon=True)
    thread.start()
    try:
        started.result(START_SECONDS)
    except Exception as error:
        raise RuntimeError("The sandbox did not start.") from error
    try:
        yield
    finally:
        stop[0]()
        thread.join(START_SECONDS)


class _Droppable(H11Protocol):
    """uvicorn's protocol, with a way for the application to drop the connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        serve: Any = self.app

        async def serve_droppable(scope: Any, receive: Any, send: Any) -> None:
            scope[DROP] = transport.close
            await serve(scope, receive, send)

        self.app = serve_droppable
