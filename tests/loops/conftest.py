"""Stages for turns; the sandbox is imported only where a test uses one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.flows import Flow
    from support.stage import Stage
    from support.turns import Turns


@pytest.fixture(scope="module")
def turns_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    from support.turns import opened

    with opened(tmp_path_factory.mktemp("turns")) as stage:
        yield stage


@pytest.fixture
def turns(turns_stage: Stage) -> Turns:
    from support.turns import Turns

    turns_stage.reset()
    return Turns(turns_stage)


@pytest.fixture(scope="module")
def flow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    from support.flows import flow_stage

    with flow_stage(tmp_path_factory.mktemp("flow")) as stage:
        yield stage


@pytest.fixture
def flow(flow_home: Stage) -> Flow:
    from support.flows import Flow

    flow_home.reset()
    return Flow(flow_home)
