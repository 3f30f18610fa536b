"""How many requests a run costs: a repository's age and size must not be paid for with its rate limit."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path

import pytest
from support.plans import plan, task, update
from support.reviews import FINDING, comment, needs_changes, post, review_stage
from support.stage import FIRST_LEASE, NO_LEASE, Stage, insert_issues, staged

from accord.engine.receipts import Outcome

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def aged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A repository with 5,000 issues of the past year."""
    with staged(tmp_path_factory.mktemp("old"), rate_limits=None) as stage:
        insert_issues(stage.server, 5000)
        for number in (1, 2, 3, 4, 11, 12, 13, 14):
            stage.send("POST", f"/repos/{stage.repository}/issues/{number}/labels", labels=["task:implement"])
        stage.begin_at_present()
        yield stage


@pytest.fixture
def old_stage(aged: Stage) -> Stage:
    aged.reset()
    return aged


@pytest.mark.parametrize("items", [12, 120, *(pytest.param(n, marks=pytest.mark.matrix) for n in (1, 250))])
def test_a_first_run_writes_once_an_item_and_edge_and_reads_next_to_nothing(old_stage: Stage, items: int) -> None:
    create = [task(f"r{items}-{i}", *([f"r{items}-{i // 2}"] if i % 3 == 1 and i > 1 else [])) for i in range(items)]
    old = {1: 1, 12: 2, 120: 3, 250: 4}[items]
    result = plan(*create, close=[str(old)], update=[update(old + 10, labels=["priority:low"])])
    edges = sum(len(item["blockedBy"]) for item in create)
    first = old_stage.apply(result)
    assert first.outcome is Outcome.APPLIED
    assert first.writes == NO_LEASE + items + edges + 1 + 1
    open_items, read_again = 1, 2 * (items > 30)  # an issue that was read 30 s ago, at one item a second
    assert first.reads <= 1 + 3 + ceil(items / 100) + 1 + 2 + open_items + read_again, (
        "more than one page of open items"
    )

    for seconds, pages in ((0, ceil(items / 100) + 1), (3600, ceil(items / 100))):  # at first, search finds nothing yet
        old_stage.clock.sleep(seconds)
        again = old_stage.apply(result)
        assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
        assert again.reads <= 1 + 3 + pages + 1 + 2, seconds


def test_an_empty_plan_asks_nothing(old_stage: Stage) -> None:
    receipt = old_stage.apply(plan())
    assert (receipt.outcome, receipt.reads, receipt.writes) == (Outcome.UNCHANGED, 0, 0)


@pytest.mark.matrix
def test_a_thousand_items_wait_for_githubs_limits_instead_of_running_into_them(tmp_path: Path) -> None:
    result = plan(*(task(f"t{i}") for i in range(600)))
    with staged(tmp_path) as stage:
        rehearsal = stage.apply(result, is_dry_run=True, most_items=600)
        begin = stage.clock.now()
        receipt = stage.apply(result, most_items=600)
        took = (stage.clock.now() - begin).total_seconds()
        refused = [entry for entry in stage.server.requests if entry[2] in (403, 429)]
    assert receipt.outcome is Outcome.APPLIED
    assert refused == [], "a request was sent that GitHub's documented limits forbid"
    assert took <= rehearsal.estimated_seconds <= took + 600


def test_a_wait_beyond_the_bound_stops_and_says_when_to_go_on(tmp_path: Path) -> None:
    result = plan(*(task(f"t{i}") for i in range(85)))
    with staged(tmp_path) as stage:
        receipt = stage.apply(result, adapter=stage.adapter(max_wait=10))
        assert (receipt.outcome, receipt.exit_code) == (Outcome.STOPPED, 3)
        assert "again after 2026-11-02T09:01" in receipt.error.hint
        stage.clock.sleep(60)
        rest = stage.apply(result, adapter=stage.adapter(max_wait=10))
        assert rest.outcome is Outcome.APPLIED
        assert len(stage.issues()) == 85


def test_a_review_of_fifty_comments_on_lines_costs_the_requests_of_one_with_five(tmp_path: Path) -> None:
    costs = []
    with review_stage(tmp_path) as stage:
        for count in (5, 50):
            stage.server.reset()
            result = needs_changes(*(comment("src/long.txt", 1 + n % 6, f"{FINDING}\n\n{n}") for n in range(count)))
            first = post(stage, result)
            assert first.details["review"]["inline"] == count
            again = post(stage, result)
            assert again.outcome is Outcome.UNCHANGED
            costs.append(((first.reads, first.writes), (again.reads, again.writes)))
    assert costs == [((7, FIRST_LEASE + 2), (7, 0))] * 2
