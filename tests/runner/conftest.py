from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.runs import Bench
from support.workshop import agent, runner_stage, workshop

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["agent", "runner_stage", "workshop"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
