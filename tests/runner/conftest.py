from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.runs import Reader
from support.workshop import agent, runner_stage, workshop

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["agent", "runner_stage", "workshop"]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)
