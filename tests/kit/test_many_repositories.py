"""Many repositories in shards of one matrix, 500 in the nightly workflow: the figures of docs/scale.md, counted."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.consumers import NEW, SHIPPED, installed, older_kit
from support.rotation import NIGHTLY
from support.stage import Stage, staged

from accord.github.client import GitHub
from accord.github.models import Access
from accord.github.pacing import Pacer
from accord.github.rest import RepositoryLists
from accord.kit.many import ManyOutcome, ManyResult, counts, failed_result, run_shard, shard_of, shards
from accord.kit.sync import sync_repository

pytestmark = pytest.mark.slow

STATES = {"current": 92, "outdated": 7, "without": 3, "archived": 3}
if NIGHTLY:
    STATES = {"current": 380, "outdated": 80, "without": 25, "archived": 15}
COUNT = sum(STATES.values())


@pytest.fixture(scope="module")
def organisation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("organisation")
    files: dict[str, dict[str, str]] = {
        "current": installed(folder / "current", SHIPPED, NEW),
        "outdated": installed(folder / "outdated", older_kit()),
        "without": {"README.md": "# None\n"},
    }
    files["archived"] = files["outdated"]
    repositories: list[dict[str, Any]] = [
        {"name": f"octo/{state}-{n}", "files": files[state], "archived": state == "archived"}
        for state, count in STATES.items()
        for n in range(count)
    ]
    with staged(folder / "data", seed={"repositories": repositories}, rate_limits=None) as stage:
        yield stage


REQUESTS = {"current": (1, 0), "outdated": (9, 4), "without": (4, 0)}
"""Reads and writes for each repository; the figures of docs/scale.md."""


def work(stage: Stage, names: list[str], *, processes: int = 2) -> list[ManyResult]:
    """Sync a shard as a job does, with one pacer for all its repositories."""
    pacer = Pacer(processes)

    def task(name: str) -> ManyResult:
        access = Access(name, stage.server.token, stage.server.url, max_wait_seconds=1e6)
        github = GitHub(access, stage.clock, lambda *_: None, pacer)
        synced = sync_repository(github, name, SHIPPED, NEW)
        if synced.error:
            return failed_result(name, synced.error)
        url = synced.pull.url if synced.pull else ""
        return ManyResult(name, ManyOutcome(synced.outcome), "", url, github.requests.read, github.requests.write)

    return run_shard(names, task, lambda _: None)


def state_of(name: str) -> str:
    return name.partition("/")[2].rpartition("-")[0]


@pytest.mark.matrix
def test_repositories_cost_what_the_page_calculates_and_a_second_run_writes_nothing(organisation: Stage) -> None:
    stage = organisation
    access = Access("", stage.server.token, stage.server.url)
    listed = RepositoryLists(access, stage.clock, lambda *_: None).of_organisation("octo")
    pages = [entry for entry in stage.server.requests if entry[1].startswith("/orgs/")]
    assert (len(listed), len(pages)) == (COUNT, -(-COUNT // 100))
    names = sorted(each.full_name for each in listed if not each.is_archived)
    assert len(names) == COUNT - STATES["archived"]

    begun = stage.clock.now()
    ended = [each for shard in shards(len(names), 50) for each in work(stage, shard_of(names, shard["shard"]))]
    spent: dict[str, list[int]] = {name: [0, 0] for name in names}
    for method, path, _ in stage.server.requests[len(pages) :]:
        spent["/".join(path.split("/")[2:4])][method != "GET"] += 1
    assert {(state_of(name), *count) for name, count in spent.items()} == {(k, *v) for k, v in REQUESTS.items()}
    without, outdated, current = (STATES[state] for state in ("without", "outdated", "current"))
    assert counts(ended) == {"refused": without, "applied": outdated, "unchanged": current}
    hours = (stage.clock.now() - begun).total_seconds() / 3600
    assert hours < 1

    writes = len([entry for entry in stage.server.requests if entry[0] != "GET"])
    assert counts(work(stage, names)) == {"refused": without, "unchanged": current + outdated}
    assert len([entry for entry in stage.server.requests if entry[0] != "GET"]) == writes
