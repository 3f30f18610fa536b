"""A stage with every start switched on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starts import Starts, starts_stage

from accord.starts.models import Trigger

ALL = {trigger.value: True for trigger in Trigger}


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[Starts]:
    with starts_stage(tmp_path, ALL) as stage:
        yield Starts(stage)
