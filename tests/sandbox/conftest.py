"""One server a module, put back to its seed before each test, every exchange held against GitHub's own description."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from support.clocks import ManualClock
from support.code_repository import HOME, Client, Git
from support.openapi import conforming
from support.stage import keep, seed_file

from accord_sandbox.server import RunningSandbox, SandboxSettings, serving


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, clock: ManualClock, request: pytest.FixtureRequest
) -> Iterator[RunningSandbox]:
    """Serve the module's ``SEED``, without rate limits, or the home repository, with them."""
    directory, own = tmp_path_factory.mktemp("sandbox"), getattr(request.module, "SEED", "")
    settings = SandboxSettings(clock=clock, rate_limits=None) if own else SandboxSettings(clock=clock)
    with serving(directory / "home", seed=seed_file(directory, own or HOME), settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def put_back(server: RunningSandbox) -> Callable[[], None]:
    return keep(server)


@pytest.fixture
def sandbox(server: RunningSandbox, put_back: Callable[[], None]) -> Iterator[RunningSandbox]:
    put_back()
    with conforming(server):
        yield server


@pytest.fixture
def client(sandbox: RunningSandbox) -> Iterator[Client]:
    with requests.Session() as session:
        yield Client(sandbox, session)


@pytest.fixture
def git(sandbox: RunningSandbox, tmp_path: Path) -> Git:
    return Git(sandbox, tmp_path)
