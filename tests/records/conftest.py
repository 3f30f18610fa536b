"""A stage for records: a repository with one commit on the local GitHub."""

from collections.abc import Iterator

import pytest
from support.stage import Stage, staged

SEED = """
repositories: [{name: octo/code, files: {a.txt: "One"}, issues: [{title: "Work", body: ""}]}]
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("records"), seed=SEED, search_lag_seconds=0) as stage:
        yield stage


@pytest.fixture
def stage(shared: Stage) -> Stage:
    shared.reset()
    return shared
