"""The figures of a report, from tables of runs and pull requests whose sums anyone can check."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.records import REPOSITORY, record
from support.stage import START

from accord.github.models import Pull
from accord.records.models import PublicRecord
from accord.records.report import (
    Report,
    RunHistory,
    class_of,
    figures_of,
    repeated_runs,
    report_of,
    results_of,
)

FAILED = {"disposition": "failure", "error_category": "transient"}


def history(*records: PublicRecord, pulls: tuple[Pull, ...] = (), **more: Any) -> RunHistory:
    fields = {"repository": REPOSITORY, "options": ("--repo", REPOSITORY), "since": START, "until": START} | more
    return RunHistory(records=records, pulls=pulls, **fields)


def pull(number: int = 7, *, merged: float | None = None, closed: float | None = None) -> Pull:
    """A pull request that was opened an hour after the period began, and ended so many hours after that."""
    opened = START + timedelta(hours=1)
    merged_at = None if merged is None else opened + timedelta(hours=merged)
    closed_at = merged_at if closed is None else opened + timedelta(hours=closed)
    found = Pull(
        number, "", "", "", "closed" if closed_at else "open", merged_at is not None, False, False, "", (), "", "", "",
        "", "",
    )  # fmt: skip
    return replace(found, created_at=opened, merged_at=merged_at, closed_at=closed_at)


def report(*records: PublicRecord, **more: Any) -> Report:
    return report_of([history(*records, **more)])


def test_sums_cover_the_runs_whose_agents_report_them() -> None:
    found = report(
        record(1, cost_usd=0.25, tokens_input=10, tokens_output=1, seconds=60),
        record(2, cost_usd=None, tokens_input=None, tokens_output=None, seconds=None),
        record(3, cost_usd=0.5, tokens_input=20, tokens_output=2, seconds=120, result=FAILED),
    )
    total = found.total
    assert (total.runs, total.ended_well, total.failed) == (3, 2, 1)
    assert (total.cost_usd, total.with_cost) == (0.75, 2)
    assert (total.tokens_input, total.tokens_output, total.with_tokens) == (30, 3, 2)
    assert (total.seconds, total.median_seconds) == (180, 90)
    total = report(record(cost_usd=None, tokens_input=None, tokens_output=None, seconds=None)).total
    assert (total.cost_usd, total.tokens_input, total.seconds, total.median_seconds) == (None, None, None, None)


def test_runs_are_grouped_the_most_frequent_first() -> None:
    found = report(record(1), record(2, agent="claude", model=""), record(3, kind="review", trigger={"cause": "hand"}))
    assert {name: figures.runs for name, figures in found.groups["agent"].items()} == {"codex": 2, "claude": 1}
    assert list(found.groups["kind"]) == ["implement", "review"]
    assert {name: figures.runs for name, figures in found.groups["model"].items()} == {"gpt-5": 2, "unknown": 1}
    assert list(found.groups["cause"]) == ["comment", "hand"]


def test_work_without_an_agent_is_not_a_run() -> None:
    applied = {"kind": "apply", "agent": "", "cost_usd": None}
    found = report(
        record(1, **applied, result={"outcome": "applied"}),
        record(2, **applied, result={"outcome": "refused", "disposition": "failure"}),
        record(3, kind="turn"),
    )
    assert (found.total.runs, found.applies, found.turns) == (0, {"applied": 1, "refused": 1}, 1)
    assert found.failures == {}


@pytest.mark.parametrize(
    ("result", "name"),
    [
        ({"error_category": "auth", "error": "job"}, "auth"), ({"error": "contract"}, "contract"), ({}, "unknown"),
    ],
)  # fmt: skip
def test_a_failure_has_one_class(result: dict[str, str], name: str) -> None:
    assert class_of(record(result={"disposition": "failure", **result})) == name


def test_failures_are_counted_by_class_and_runs_that_a_person_stopped_are_not_among_them() -> None:
    found = report(
        record(1, result=FAILED),
        record(2, result=FAILED),
        record(3, result={"disposition": "failure", "error": "contract"}),
        record(4, result={"disposition": "cancelled"}),
        record(5, result={"disposition": "blocked"}),
    )
    assert found.failures == {"transient": 2, "contract": 1}
    assert found.total.ended_well == 0


def test_turns_beyond_the_first_are_retries() -> None:
    attempts = [{"outcome": "broken"}, {"outcome": "failed"}, {"outcome": "done"}]
    assert report(record(1, attempts=attempts), record(2, attempts=attempts[2:]), record(3)).retries == 2


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        ([(1, "implement", True), (1, "implement", False)], 1),
        ([(1, "implement", True), (1, "implement", True), (1, "implement", False)], 2),
        ([(1, "implement", False), (1, "implement", False)], 0),
        ([(1, "implement", True), (2, "implement", False)], 0),
        ([(1, "implement", True), (1, "plan", False)], 0),
    ],
)
def test_a_run_after_a_failed_one_on_the_same_item_is_repeated(runs: list[tuple[int, str, bool]], count: int) -> None:
    found = [
        record(item, hours=hour, id=f"{hour:032}", kind=kind, result=FAILED if failed else {})
        for hour, (item, kind, failed) in enumerate(runs)
    ]
    assert repeated_runs(reversed(found)) == count


@pytest.mark.parametrize(
    ("pulls", "hour", "counts", "times", "share"),
    [
        ([pull(merged=1), pull(merged=3), pull(merged=20), pull(closed=2), pull()], 0, (3, 1, 1), (3, 20), 0.75),
        ([pull(merged=1), pull(closed=1), pull(merged=10)], 5, (1, 0, 0), (10, 10), 1),
        ([pull(merged=hour) for hour in range(1, 11)], 0, (10, 0, 0), (5.5, 9), 1),
        ([pull()], 0, (0, 0, 1), (None, None), None),
    ],
)
def test_results_are_the_pull_requests_that_did_not_end_before_the_period_by_what_became_of_them(
    pulls: list[Pull], hour: int, counts: Any, times: Any, share: float | None
) -> None:
    found = results_of(pulls, START + timedelta(hours=hour))
    assert (found.merged, found.closed, found.pending) == counts
    assert (found.median_hours, found.p90_hours, found.accepted_share) == (*times, share)


@pytest.mark.slow
@given(some.lists(some.tuples(some.sampled_from(["codex", "claude", ""]), some.booleans()), max_size=30))
def test_each_grouping_adds_up_to_the_total(runs: list[tuple[str, bool]]) -> None:
    records = [
        record(number, agent=agent, result=FAILED if failed else {}) for number, (agent, failed) in enumerate(runs)
    ]
    found = report(*records)
    for group in found.groups.values():
        assert sum(figures.runs for figures in group.values()) == len(runs)
        assert sum(figures.failed for figures in group.values()) == found.total.failed == sum(found.failures.values())
    assert found.total == figures_of(records)


def test_a_report_says_what_it_cannot_know() -> None:
    silent = record(1, agent="", cost_usd=None, tokens_input=None, tokens_output=None)
    notes = report(silent, record(2)).notes
    assert [note.partition(" of ")[0] for note in notes] == ["The cost", "The number", "The agent"]
    assert report(record()).notes == ()


@pytest.mark.parametrize(
    ("records", "pulls", "text", "command"),
    [
        ((), (), "No agent ran", f"accord status --repo {REPOSITORY}"),
        ((record(result=FAILED),), (), "Runs failed for reasons that pass", ""),
        ((record(),), (pull(),), "1 pull request of agents waits", f"accord status --repo {REPOSITORY}"),
        ((record(),), (), "Nothing is left to decide", f"accord status --repo {REPOSITORY}"),
    ],
)
def test_a_report_ends_with_what_is_next(
    records: tuple[PublicRecord, ...], pulls: tuple[Pull, ...], text: str, command: str
) -> None:
    first = report(*records, pulls=pulls).next_steps[0]
    assert first.text.startswith(text)
    assert first.command == command


def test_several_repositories_make_one_report() -> None:
    other = history(record(2, repository="octo/web"), repository="octo/web", options=("--repo", "octo/web"))
    found = report_of([history(record(1)), other])
    assert found.repositories == (REPOSITORY, "octo/web")
    assert {name: figures.runs for name, figures in found.groups["repository"].items()} == {
        REPOSITORY: 1,
        "octo/web": 1,
    }
    assert found.next_steps[0].command == f"accord status --repo {REPOSITORY} --repo octo/web"
