"""Fixtures of tests of implementor results: a clone of the default branch of their stage, and an agent's patch."""

import shutil
from pathlib import Path

import pytest
from support.implementations import clone, work_of_agent
from support.stage import Stage


@pytest.fixture(scope="module")
def patch(shared_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The patch of an agent that changed a file and wrote a test."""
    shared_stage.reset()
    return work_of_agent(shared_stage, tmp_path_factory.mktemp("agent") / "tree")


@pytest.fixture(scope="module")
def cloned(shared_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shared_stage.reset()
    return clone(shared_stage, tmp_path_factory.mktemp("cloned") / "tree")


@pytest.fixture
def tree(cloned: Path, tmp_path: Path) -> Path:
    """A clone of the default branch."""
    return shutil.copytree(cloned, tmp_path / "tree", symlinks=True)
