from pathlib import Path

import pytest
from support.agent_bench import bench
from support.runs import Reader
from support.workshop import agent, first_agent, runner_stage, workshop

__all__ = ["agent", "bench", "first_agent", "runner_stage", "workshop"]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)
