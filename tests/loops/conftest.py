"""Stages for turns; the sandbox is imported only where a test uses one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.stage import Stage
    from support.turns import Turns


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    from support.turns import opened

    with opened(tmp_path_factory.mktemp("turns")) as stage:
        yield stage


@pytest.fixture
def turns(shared: Stage) -> Turns:
    from support.turns import Turns

    shared.server.reset()
    return Turns(shared)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Callable[[], None]]]:
    from support.reviewing_turns import reviewed

    with reviewed(tmp_path_factory.mktemp("reviewed")) as stage:
        yield stage, stage.keep()


@pytest.fixture
def stage(kept: tuple[Stage, Callable[[], None]]) -> Stage:
    kept[1]()
    return kept[0]
