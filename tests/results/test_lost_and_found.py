"""Creations of earlier runs are found where the search is not whole, and are not taken for those of this run."""

from pathlib import Path

import pytest
from support.plans import plan, task
from support.stage import Stage, insert_issues, staged

from accord.engine.receipts import Outcome
from accord_sandbox.faults import Fault

pytestmark = pytest.mark.slow


def test_without_a_whole_search_the_listing_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.github.client.SEARCH_RESULTS", -1)
    with staged(tmp_path, search_lag_seconds=1e9) as stage:
        assert stage.apply(plan(task("a"))).outcome is Outcome.APPLIED
        stage.clock.sleep(366 * 86_400)
        insert_issues(stage.server, 120)
        stage.clock.sleep(3600)
        assert stage.apply(plan(task("a"))).outcome is Outcome.UNCHANGED


def test_a_lost_creation_adopts_no_item_of_an_earlier_version(stage: Stage) -> None:
    first = plan(task("t1", title="Read the file", in_scope="- src/read.py"))
    other = plan(task("t1", title="Write the file", in_scope="- src/write.py"))
    assert stage.apply(first, run_key="k").outcome is Outcome.APPLIED
    stage.server.faults.add(Fault("lost-before", method="POST", path=r"/issues$"))
    assert stage.apply(other, run_key="k").outcome is Outcome.APPLIED
    assert [issue["title"] for issue in stage.listed("/issues", state="open")] == ["Write the file", "Read the file"]
