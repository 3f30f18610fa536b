from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.runs import Bench

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
