from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from support.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One stage for the tests of a module."""
    with staged(tmp_path_factory.mktemp("sandbox")) as stage:
        yield stage


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    """The module's stage as it began."""
    shared_stage.server.reset()
    shared_stage.waits.clear()
    return shared_stage
