from __future__ import annotations

import gc
import os
import random
import sys
from typing import TYPE_CHECKING, Any

from support.environment import enter_clean_environment, leave_clean_environment

HOME = None if "PYTEST_XDIST_WORKER" in os.environ else enter_clean_environment()
"""The HOME of all test processes; a worker has that of the process that started it."""

sys.dont_write_bytecode = False
"""Rewriting the assertions of all tests takes 7 s in each worker; their bytecode keeps it."""

import pytest  # noqa: E402 (nothing that is imported sees the environment of the caller)
from coverage import Coverage  # noqa: E402
from hypothesis import settings  # noqa: E402
from support.progress import Progress  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from support.stage import Stage

settings.register_profile("steady", derandomize=True, max_examples=50, print_blob=True, deadline=None)
settings.register_profile("nightly", print_blob=True, deadline=None)
settings.load_profile("nightly" if os.environ.get("ACCORD_NIGHTLY") else "steady")


FIRST = (
    "tests/actions/test_act_flow.py",
    "tests/kit/test_many_repositories.py",
    "tests/tools/test_patterns.py",
    "tests/tools/test_walkthrough.py",
    "tests/packages/",
    "tests/actions/test_act_",
    "tests/results/test_exactly_once.py",
    "tests/loops/test_loop_faults.py",
)
"""The tests that take longest, in this order: begun last, one of them would leave the other workers idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: ``FIRST``, then modules with slow tests.

    ``ACCORD_SHUFFLE``, a text, chooses an order among them.
    """
    if seed := os.environ.get("ACCORD_SHUFFLE"):
        random.Random(seed).shuffle(items)

    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def rank(item: pytest.Item) -> tuple[int, bool]:
        place = next((i for i, path in enumerate(FIRST) if item.nodeid.startswith(path)), len(FIRST))
        return place, item.path not in slow

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Hide the choices of this run from programs that tests start: accord warns of variables without an option."""
    for name in [name for name in os.environ if name.startswith("ACCORD_")]:
        del os.environ[name]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among thousands of new tests, which takes a quarter of the time; nor among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure no coverage in whole matrices, because measuring costs more than all else."""
    measuring = Coverage.current() if item.get_closest_marker("matrix") else None
    if measuring:
        measuring.stop()
    try:
        return (yield)
    finally:
        if measuring:
            measuring.start()
            _measure_no_processes()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Measure coverage in the workers; where several of them run, print progress in the process that prints."""
    if hasattr(config, "workerinput"):
        _measure_no_processes()
    elif config.getoption("numprocesses", None):
        config.pluginmanager.register(Progress(config))


def pytest_unconfigure() -> None:
    """Remove what the environment of the tests left on the disk."""
    if HOME:
        leave_clean_environment(HOME)


def _measure_no_processes() -> None:
    """Leave out the processes that tests start, because measuring them costs more than all else.

    Each start of a measurement asks for them again.
    """
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give modules to workers one by one, because their tests share what takes long to make.

    (The mark ``xdist_group`` does nothing with pytest 9.2.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0]

        def _reschedule(self, node: Any) -> None:
            """Forget finished units: the base class counts the tests of all units again after each test."""
            units = self.assigned_work[node]
            for scope in [scope for scope, tests in units.items() if all(tests.values())]:
                del units[scope]
            super()._reschedule(node)

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture(scope="module")
def shared_stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One stage for a module's tests: its ``STAGE``, its ``SEED`` without rate limits, or an empty one with them."""
    from support.stage import staged

    directory, module = tmp_path_factory.mktemp("sandbox"), request.module
    seeded = {"seed": module.SEED, "rate_limits": None} if hasattr(module, "SEED") else {}
    with module.STAGE(directory) if hasattr(module, "STAGE") else staged(directory, **seeded) as stage:
        stage.begin_at_present()
        yield stage


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    """The module's stage as it began."""
    shared_stage.reset()
    return shared_stage
