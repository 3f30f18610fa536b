"""The dashboard: one issue, edited in place, with nothing in it that acts."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import responses
from support.plans import task_body
from support.stage import START as NOW
from support.stage import Stage, staged

from accord.board.dashboard import MOST_ROWS, TITLE, board_body, closed_boards, show_dashboard
from accord.board.models import BOARD, Entry, Overview, address_of
from accord.core.clock import ManualClock
from accord.github.client import GitHub
from accord.github.markers import write_marker
from accord.github.models import Access, Identity
from accord.results.operations import Outcome, Receipt, RunOptions
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

LABELS = ["task:implement", "priority:high", "complexity:low", "status:ready"]
SEED = {
    "tokens": [{"token": "app", "login": "app[bot]", "kind": "installation", "permissions": {"issues": "write"}}],
    "repositories": [
        {
            "name": "octo/web",
            "files": {"a.txt": "One\n"},
            "issues": [{"title": "Thank @octocat, fixes #1 | `x`", "labels": LABELS, "body": task_body()}],
        }
    ],
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, seed=SEED, rate_limits=None) as stage:
        yield stage


def show(stage: Stage, *, token: str = INSTALLATION_TOKEN, identity: str = "", **options: Any) -> Receipt:
    github = stage.adapter(token=token, identity=identity)
    known = RunOptions(stage.repository, stage.clock, Redactor(("hunter2hunter2",)), PostingPolicy(), **options)
    return show_dashboard(github, address_of("octo/web", "https://github.com"), timedelta(days=7), known)[0]


def boards(stage: Stage, state: str = "open") -> list[dict[str, Any]]:
    return [issue for issue in stage.issues() if issue["title"] == TITLE and state in (issue["state"], "all")]


def test_the_dashboard_is_written_once_and_then_only_where_it_changed(stage: Stage) -> None:
    assert show(stage, is_dry_run=True).outcome is Outcome.PLANNED
    assert boards(stage) == []
    assert show(stage).outcome is Outcome.APPLIED
    (board,) = boards(stage)
    assert "### Ready to start (1)" in board["body"]
    again = show(stage)
    assert (again.outcome, again.writes, again.details["board"]["id"]) == (Outcome.UNCHANGED, 0, str(board["number"]))
    stage.send("PATCH", "/repos/octo/web/issues/1", state="closed")
    assert show(stage).outcome is Outcome.APPLIED
    (changed,) = boards(stage)
    assert changed["number"] == board["number"]
    assert "Ready to start" not in changed["body"]


def test_titles_of_items_mention_no_one_and_close_nothing(stage: Stage) -> None:
    show(stage)
    (board,) = boards(stage)
    assert "@octocat" not in board["body"]
    assert "fixes #1" not in board["body"]
    row = next(line for line in board["body"].splitlines() if line.startswith("| #1 Thank"))
    assert row.replace("\\|", "").count("|") == 5


@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_a_lost_answer_makes_no_second_dashboard(stage: Stage, kind: str) -> None:
    stage.server.faults.add(Fault(kind, method="POST", path="/issues$"))
    assert show(stage).outcome is Outcome.APPLIED
    assert show(stage).outcome is Outcome.UNCHANGED
    assert len(boards(stage)) == 1


def test_a_dashboard_that_a_person_closed_stays_closed(stage: Stage) -> None:
    show(stage)
    number = boards(stage)[0]["number"]
    stage.send("PATCH", f"/repos/octo/web/issues/{number}", state="closed")
    stage.send("PATCH", "/repos/octo/web/issues/1", state="closed")
    stage.clock.sleep(600)
    receipt = show(stage)
    assert (receipt.outcome, [finding.code for finding in receipt.findings]) == (Outcome.UNCHANGED, ["board-closed"])
    assert len(boards(stage, "all")) == 1
    stage.send("PATCH", f"/repos/octo/web/issues/{number}", state="open")
    assert show(stage).outcome is Outcome.APPLIED


def test_a_dashboard_is_found_that_was_closed_before_search_knows_it(stage: Stage) -> None:
    show(stage)
    number = boards(stage)[0]["number"]
    stage.send("PATCH", f"/repos/octo/web/issues/{number}", state="closed")
    assert show(stage).outcome is Outcome.UNCHANGED
    assert len(boards(stage, "all")) == 1


@responses.activate
def test_a_closed_dashboard_is_found_where_search_is_refused() -> None:
    issue = {
        "id": 1, "number": 2, "html_url": "https://github.example/2", "title": TITLE, "state": "closed", "labels": [],
        "body": write_marker(BOARD, run="x"), "user": {"login": "bot"}, "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    api = "https://api.github.com:443"
    responses.get(f"{api}/search/issues", status=422, json={"message": "Validation Failed"})
    responses.get(f"{api}/repos/octo/web/issues", json=[issue])
    github = GitHub(Access("octo/web", "t", "https://api.github.com"), ManualClock(NOW), lambda *_: None)
    found = closed_boards(github, "octo/web", Identity("bot", is_person=False))
    assert [board.number for board in found] == [2]


def test_a_marker_of_another_account_does_not_count(stage: Stage) -> None:
    show(stage)
    body = boards(stage)[0]["body"]
    stage.reset()
    stage.send("POST", "/repos/octo/web/issues", title="Forged", body=body)
    assert show(stage).outcome is Outcome.APPLIED
    assert len(boards(stage)) == 1


def test_a_token_of_an_app_that_is_not_named_leaves_no_dashboard_behind(stage: Stage) -> None:
    receipt = show(stage, token="app")
    assert receipt.outcome is Outcome.REFUSED
    assert "--identity 'app[bot]'" in receipt.error.hint if receipt.error else False
    assert boards(stage) == []
    assert show(stage, token="app", identity="app[bot]").outcome is Outcome.APPLIED


def test_long_sections_are_cut_and_counted() -> None:
    entries = tuple(Entry("item", f"#{number}", "Title", "Why") for number in range(MOST_ROWS + 3))
    body = board_body(Overview(waiting=entries), str)
    assert f"Waiting ({MOST_ROWS + 3})" in body
    assert "and 3 more" in body
    assert body.startswith("### Nothing needs you")
