"""A stage with every start switched on."""

from collections.abc import Iterator

import pytest
from support.stage import Stage
from support.starts import Starts, starts_stage

from accord.starts.models import Trigger

ALL = {trigger.value: True for trigger in Trigger}


@pytest.fixture(scope="module")
def starts_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with starts_stage(tmp_path_factory.mktemp("starts"), ALL) as stage:
        yield stage


@pytest.fixture
def starts(starts_home: Stage) -> Starts:
    starts_home.reset()
    return Starts(starts_home)
