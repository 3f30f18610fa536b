from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.missions import Project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).begin(target_branch="main")
