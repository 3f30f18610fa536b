from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("sandbox")) as stage:
        yield stage


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    shared_stage.server.reset()
    shared_stage.waits.clear()
    return shared_stage
