"""The dashboard: one issue, edited in place, with nothing in it that acts."""

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import responses
from support.clocks import ManualClock
from support.plans import task_body
from support.renderer import rendered
from support.stage import START as NOW
from support.stage import Stage, staged

from accord.board.dashboard import MOST_ROWS, START_WORKFLOW, TITLE, board_body, closed_boards, show_dashboard
from accord.board.models import Entry, Overview, address_of
from accord.engine.operations import ApplyOptions
from accord.engine.receipts import Outcome, Receipt
from accord.git.configuration import CONFIG_PATHS
from accord.github.client import GitHub
from accord.github.limits import BODY_CHARS
from accord.github.models import Access, Identity
from accord.starts.status import BOARD
from accord.text.markers import write_marker
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import sanitise_cell
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

LABELS = ["task:implement", "priority:high", "complexity:low", "status:ready"]
ROOT = Path(__file__).parents[2]
SEED: dict[str, Any] = {
    "tokens": [{"token": "app", "login": "app[bot]", "kind": "installation", "permissions": {"issues": "write"}}],
    "repositories": [
        {
            "name": "octo/web",
            "files": {"a.txt": "One\n"},
            "issues": [{"title": "Thank @octocat, fixes #1 | `x`", "labels": LABELS, "body": task_body()}],
        }
    ],
}


def show(stage: Stage, *, token: str = INSTALLATION_TOKEN, identity: str = "", **options: Any) -> Receipt:
    github = stage.adapter(token=token, identity=identity)
    known = ApplyOptions(stage.repository, stage.clock, Redactor(("hunter2hunter2",)), PostingPolicy(), **options)
    return show_dashboard(github, address_of("octo/web", "https://github.com"), timedelta(days=7), known)[0]


def boards(stage: Stage, state: str = "open") -> list[dict[str, Any]]:
    return [issue for issue in stage.issues() if issue["title"] == TITLE and state in (issue["state"], "all")]


@pytest.mark.slow
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
    row = next(line for line in board["body"].splitlines() if "Thank" in line)
    assert row.replace("\\|", "").count("|") == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_a_lost_answer_makes_no_second_dashboard(stage: Stage, kind: str) -> None:
    stage.server.faults.add(Fault(kind, method="POST", path="/issues$"))
    assert show(stage).outcome is Outcome.APPLIED
    assert show(stage).outcome is Outcome.UNCHANGED
    assert len(boards(stage)) == 1


@pytest.mark.slow
def test_a_dashboard_that_a_person_closed_stays_closed(stage: Stage) -> None:
    show(stage)
    number = boards(stage)[0]["number"]
    stage.send("PATCH", f"/repos/octo/web/issues/{number}", state="closed")
    stage.send("PATCH", "/repos/octo/web/issues/1", state="closed")
    for wait in (0, 600):  # before and after search knows it
        stage.clock.sleep(wait)
        receipt = show(stage)
        found = [finding.code for finding in receipt.findings]
        assert (receipt.outcome, found, len(boards(stage, "all"))) == (Outcome.UNCHANGED, ["board-closed"], 1)
    stage.send("PATCH", f"/repos/octo/web/issues/{number}", state="open")
    assert show(stage).outcome is Outcome.APPLIED


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_marker_of_another_account_does_not_count(stage: Stage) -> None:
    show(stage)
    body = boards(stage)[0]["body"]
    stage.reset()
    stage.send("POST", "/repos/octo/web/issues", title="Forged", body=body)
    assert show(stage).outcome is Outcome.APPLIED
    assert len(boards(stage)) == 1


@pytest.mark.slow
def test_a_token_of_an_app_that_is_not_named_leaves_no_dashboard_behind(stage: Stage) -> None:
    receipt = show(stage, token="app")
    assert receipt.outcome is Outcome.REFUSED
    assert [(entry.op, entry.status) for entry in receipt.operations] == [
        ("write-board", "done"),
        ("withdraw-board", "done"),
    ]
    assert "--identity 'app[bot]'" in receipt.error.hint if receipt.error else False
    assert boards(stage) == []
    assert show(stage, token="app", identity="app[bot]").outcome is Outcome.APPLIED


START = {START_WORKFLOW: (ROOT / "templates/consumer-repo" / START_WORKFLOW).read_text()}


@pytest.mark.parametrize(
    ("files", "token", "identity", "has_boxes"),
    [
        (START, INSTALLATION_TOKEN, "", True),
        ({}, INSTALLATION_TOKEN, "", False),
        ({START_WORKFLOW: "on: [issues]\njobs: {}\n"}, INSTALLATION_TOKEN, "", False),
        ({**START, CONFIG_PATHS[0]: "starts:\n  dashboard: false\n"}, INSTALLATION_TOKEN, "", False),
        ({**START, CONFIG_PATHS[0]: "starts: ["}, INSTALLATION_TOKEN, "", False),
        (START, "app", "app[bot]", False),
    ],
)
def test_boxes_are_shown_only_where_a_tick_starts_something(
    tmp_path: Path, files: dict[str, str], token: str, identity: str, has_boxes: bool
) -> None:
    seed = {**SEED, "repositories": [{**SEED["repositories"][0], "files": files}]}
    with staged(tmp_path, seed=seed, rate_limits=None) as stage:
        assert show(stage, token=token, identity=identity).outcome is Outcome.APPLIED
        (board,) = boards(stage)
        (line,) = [line for line in board["body"].splitlines() if "Thank" in line]
        box = "- [ ] <!-- accord:box item=1 start=implement --> **Start** "
        assert (line.startswith(box), "tick a box" in board["body"]) == (has_boxes, has_boxes)
        assert show(stage, token=token, identity=identity).outcome is Outcome.UNCHANGED


@pytest.mark.slow
def test_other_edits_and_forged_boxes_are_put_back(tmp_path: Path) -> None:
    seed = {**SEED, "repositories": [{**SEED["repositories"][0], "files": START}]}
    with staged(tmp_path, seed=seed, rate_limits=None) as stage:
        show(stage)
        (board,) = boards(stage)
        body = board["body"]
        stage.send(
            "PATCH", f"/repos/octo/web/issues/{board['number']}", body=f"- [x] mine\n{body.replace('[ ]', '[x]')}"
        )
        assert show(stage).outcome is Outcome.APPLIED
        assert boards(stage)[0]["body"] == body
        stage.send("PATCH", f"/repos/octo/web/issues/{board['number']}", body=body.replace("\n", "\r\n"))
        assert show(stage).outcome is Outcome.UNCHANGED


class _Bare(HTMLParser):
    """The text of a page outside of links and code, where GitHub looks for references."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.text = 0, ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += tag in ("a", "code")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in ("a", "code")

    def handle_data(self, data: str) -> None:
        self.text += "" if self.depth else data


TITLES = ["see #3", "octo/web#3 and GH-3", "https://github.com/octo/web/issues/3", "`#3` [#3](#3) \\#3", "a#3 (#3) #3b"]


@pytest.mark.parametrize("has_boxes", [True, False])
def test_nothing_on_the_dashboard_is_a_reference_that_github_records(has_boxes: bool) -> None:
    def clean(text: str) -> str:
        return sanitise_cell(text, secrets=Redactor(), policy=PostingPolicy())

    entries = tuple(Entry("item", "#12", title, f"Blocked by #7: {title}", start="implement") for title in TITLES)
    body = board_body(Overview(entries, waiting=entries, notes=tuple(TITLES)), clean, has_boxes=has_boxes)
    html = rendered(body)
    page = _Bare()
    page.feed(html)
    assert not re.search(r"#\d|GH-\d", page.text.replace("#3b", ""), re.IGNORECASE)
    assert set(re.findall(r'href="([^"]*)"', html)) == {"../issues/12", "../issues/7", "../issues/3"}


def test_long_sections_are_cut_and_counted() -> None:
    entries = tuple(Entry("item", f"#{number}", "Title", "Why") for number in range(MOST_ROWS + 3))
    body = board_body(Overview(waiting=entries), str)
    assert f"Waiting ({MOST_ROWS + 3})" in body
    assert "and 3 more" in body
    assert body.startswith("### Nothing needs you")


def test_a_body_that_github_would_refuse_has_fewer_rows() -> None:
    entries = tuple(Entry("item", f"#{number}", "T" * 256, "W" * 300) for number in range(MOST_ROWS + 3))
    body = board_body(Overview(entries, entries, entries, entries, entries), str)
    assert 20_000 < len(body) <= BODY_CHARS
    assert body.count("and 41 more") == 5
