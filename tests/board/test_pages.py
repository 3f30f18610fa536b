"""The board's pages: what they show, and that nothing in a title acts."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from support.growth import grows_too_fast
from test_work import ADDRESS, BOT, GREEN, NOW, PAGE, RUNNING, TASK, item, pull

from accord.board.charts import BOX_HEIGHT, BOX_WIDTH, draw_graph, graph_groups, longest_path
from accord.board.facts import with_documents
from accord.board.models import BoardRepository, BoardSnapshot, Entry, Overview, address_of, join_overviews
from accord.board.pages import GENERATOR, TABS, columns_of, graph_of, items_of, page_names, render_page, safe_url
from accord.board.server import LiveBoard, board_app, check_target, write_board
from accord.board.work import overview_of_work
from accord.core.errors import Refused, WrongUsage
from accord.github.models import Identity
from accord.loops.models import LoopState

HOSTILE = '<script>alert(1)</script> "><img src=x onerror=alert(1)> {{ 7 * 7 }} ghp_secret'


def snapshot(*items: Any, pulls: tuple[Any, ...] = (), title: str = "", **more: Any) -> BoardSnapshot:
    items = tuple(replace(one, issue=replace(one.issue, title=title)) if title else one for one in items)
    facts = BoardRepository(ADDRESS, NOW, Identity("bot", False), items, pulls, **more)
    session = Entry("session", "2026-11-02_login", "DESIGN", "No tasks.", NOW)
    documents = Overview(running=(session,))
    return BoardSnapshot((facts,), join_overviews(overview_of_work(facts), documents), documents, NOW)


def page(name: str, found: BoardSnapshot) -> str:
    shown = render_page(name, found, lambda text: text.replace("ghp_secret", "***"))
    assert shown is not None
    return shown


FOUR = (
    item(*TASK, "status:ready", number=1),
    item(*TASK, "status:pending", number=2, blockers=(1,)),
    item(*TASK, "status:in-progress", number=3, rows=(RUNNING,)),
    item("task:implement", number=4),
)


def test_every_page_escapes_titles_and_hides_secrets() -> None:
    found = snapshot(*FOUR, title=HOSTILE)
    for name in page_names(found):
        text = page(name, found)
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "ghp_secret" not in text
        assert ("{{ 7 * 7 }}" in text) is ("&lt;script" in text)
    assert "&lt;script&gt;" in page("item-1.html", found)


def test_a_page_has_no_script_of_its_own_and_no_link_to_elsewhere() -> None:
    text = page("index.html", snapshot(*FOUR))
    assert re.findall(r"<script[^>]*>([^<]*)</script>", text) == [""]
    assert {link for link in re.findall(r'(?:href|src)="([^"]+)"', text) if "://" in link} == {
        ADDRESS.page, *(f"{PAGE}/issues/{number}" for number in (1, 2, 4)), f"{ADDRESS.page}/actions/runs/7",
    }  # fmt: skip


def test_every_link_of_a_written_board_leads_to_a_file(tmp_path: Path) -> None:
    assert write_board(tmp_path / "out", snapshot(*FOUR, pulls=(pull(),)), str) == 9
    for path in (tmp_path / "out").glob("*.html"):
        for link in re.findall(r'(?:href|src)="([^":]+)"', path.read_text(encoding="utf-8")):
            assert (tmp_path / "out" / link).is_file(), (path.name, link)
        assert "data-live" not in path.read_text(encoding="utf-8")


def two_repositories() -> BoardSnapshot:
    other = address_of("octo/my.api", "https://github.com")
    facts = (
        BoardRepository(ADDRESS, NOW, BOT, FOUR),
        BoardRepository(other, NOW, BOT, (item(*TASK, "status:ready", number=1), *FOUR[3:]), (pull(),)),
    )
    return with_documents(BoardSnapshot(facts, Overview(), Overview(), NOW), Overview())


def test_items_of_several_repositories_have_pages_of_their_own() -> None:
    found = two_repositories()
    assert list(page_names(found))[len(TABS) :] == [
        "item-1.html", "item-2.html", "item-3.html", "item-4.html",
        "item-octo~my.api-1.html", "item-octo~my.api-4.html",
    ]  # fmt: skip
    assert "octo/web#1" in page("item-1.html", found)
    assert "octo/my.api#1" in page("item-octo~my.api-1.html", found)
    assert page("item-octo~web-1.html", found) == page("item-1.html", found)
    assert [render_page(name, found, str) for name in ("item-octo~my.api-2.html", "item-evil~web-1.html")] == [None] * 2


def test_entries_of_several_repositories_name_theirs_and_link_to_it() -> None:
    found = two_repositories()
    assert {entry.repository for entries in found.overview.sections().values() for entry in entries} == {
        "octo/web", "octo/my.api",
    }  # fmt: skip
    text = page("index.html", found)
    assert '<a href="item-octo~my.api-1.html">octo/my.api#1</a>' in text
    assert '<a href="item-1.html">octo/web#1</a>' in text
    assert "--repo octo/my.api" in text
    for name in ("items.html", "graph.html"):
        assert 'href="item-octo~my.api-1.html"' in page(name, found)
    graph = graph_of(items_of(found))
    assert [set(drawing.boxes) for drawing in graph["drawings"]] == [{0, 1}]  # #1 of the other one is alone
    assert [placed.facts.address.repository for placed in graph["chain"]] == ["octo/web"] * 2


def test_an_unknown_page_and_an_unknown_item_do_not_exist() -> None:
    assert [render_page(name, snapshot(*FOUR), str) for name in ("x", "item-9.html", "../a")] == [None] * 3


BOTH = item("task:implement", "task:refinement", "status:ready", number=10)


def test_items_are_in_the_columns_of_their_status() -> None:
    columns = columns_of(items_of(snapshot(*FOUR, item("bug", rows=(RUNNING,), number=9), BOTH)))
    assert {name: [one.number for one in items] for name, items in columns.items() if items} == {
        "pending": [2], "ready": [1], "in-progress": [3], "unclear": [4, 10],
    }  # fmt: skip


def test_the_graph_has_every_item_and_marks_what_is_ready_and_the_longest_chain() -> None:
    found = graph_of(items_of(snapshot(*FOUR)))
    assert [set(drawing.boxes) for drawing in found["drawings"]] == [{0, 1}]
    assert [placed.number for placed in found["single"]] == [3, 4]
    assert [placed.number for placed in found["chain"]] == [1, 2]
    assert [found["nodes"][node].number for node in found["ready"]] == [1]


def test_a_graph_of_many_groups_continues_on_a_page_of_its_own(tmp_path: Path) -> None:
    pairs = [(number, number + 1) for number in range(1, 2 * 23, 2)]
    many = snapshot(
        *(item(*TASK, "status:pending", number=first) for first, _ in pairs),
        *(item(*TASK, "status:pending", number=second, blockers=(first,)) for first, second in pairs),
    )
    first, rest = page("graph.html", many), page("graph-all.html", many)
    assert (first.count('class="sheet"'), rest.count('class="sheet"')) == (12, 23)
    assert '<a href="graph-all.html">11 more</a>' in first
    assert "graph-all" not in rest
    write_board(tmp_path, many, str)
    assert (tmp_path / "graph-all.html").is_file()
    write_board(tmp_path, snapshot(*FOUR), str)
    assert not (tmp_path / "graph-all.html").exists()


@pytest.mark.parametrize(
    ("edges", "groups"),
    [
        ((), []),
        (((1, 2), (3, 4), (4, 5)), [[(3, 4), (4, 5)], [(1, 2)]]),
        (((1, 2), (3, 4), (2, 3)), [[(1, 2), (2, 3), (3, 4)]]),
        (((9, 8), (8, 9), (1, 9)), [[(1, 9), (8, 9), (9, 8)]]),
    ],
)
def test_items_that_are_connected_are_one_group(edges: Any, groups: list[list[tuple[int, int]]]) -> None:
    assert graph_groups(edges) == groups


@pytest.mark.parametrize(
    "edges",
    [
        [], [(1, 2)], [(1, 2), (2, 3), (1, 3), (4, 3)], [(1, 2), (2, 1)], [(1, 2), (2, 3), (3, 1), (3, 4)],
        [(number, number + 1) for number in range(1500)],
        [(blocker, blocked) for blocker in range(12) for blocked in range(12, 24)],
    ],
)  # fmt: skip
def test_the_graph_puts_blockers_to_the_left_and_nothing_on_top_of_another(edges: list[tuple[int, int]]) -> None:
    drawing = draw_graph(edges)
    places = drawing.boxes
    assert places.keys() == {key for edge in edges for key in edge}
    cyclic = any((blocked, blocker) in edges for blocker, blocked in edges) or (3, 1) in edges
    if not cyclic:
        assert all(places[blocker][0] < places[blocked][0] for blocker, blocked in edges)
    boxes = sorted(places.values())
    for (x, y), (next_x, next_y) in pairwise(boxes):
        assert next_x >= x + BOX_WIDTH or next_y >= y + BOX_HEIGHT
    assert len(drawing.arrows) == len(edges)
    assert all(0 <= x <= drawing.width - BOX_WIDTH and 0 <= y <= drawing.height - BOX_HEIGHT for x, y in boxes)


@pytest.mark.parametrize(
    ("edges", "chain"),
    [((), ()), (((1, 2), (2, 3), (1, 3)), (1, 2, 3)), (((1, 2), (3, 2)), (1, 2)), (((1, 2), (2, 1)), None)],
)
def test_the_longest_chain_is_found_also_where_there_is_a_cycle(
    edges: tuple[tuple[int, int], ...], chain: tuple[int, ...] | None
) -> None:
    assert chain is None or longest_path(edges) == chain
    assert len(longest_path(edges)) <= len({node for edge in edges for node in edge})


@pytest.mark.slow
def test_four_times_the_items_take_four_times_as_long_to_draw() -> None:
    def drawn(items: int) -> int:
        edges = [(number, number + step) for number in range(1, items) for step in (1, 7) if number + step <= items]
        return len(draw_graph(edges).boxes)

    assert drawn(1000) == 1000
    assert not grows_too_fast(drawn, 1000)


def test_long_lists_are_folded_but_whole() -> None:
    many = snapshot(*(item(*TASK, "status:ready", number=number) for number in range(1, 121)))
    for name, left in (("index.html", 70), ("items.html", 100)):
        text = page(name, many)
        assert f"<summary>{left} more</summary>" in text
        assert [f'href="item-{number}.html"' in text for number in (1, 50, 51, 120)] == [True] * 4


def test_pages_are_rendered_once_for_each_change() -> None:
    cleaned: list[str] = []

    def clean(text: str) -> str:
        cleaned.append(text)
        return text

    board = LiveBoard(lambda: snapshot(*FOUR), clean, lambda: 60)
    board.page("item-1.html")
    count = len(cleaned)
    assert board.page("index.html")
    assert board.page("item-1.html") == board.page("item-1.html")
    assert len(cleaned) == count
    assert board.page("x.html") is None


@pytest.mark.parametrize(
    ("files", "may"),
    [({}, True), ({"index.html": GENERATOR}, True), ({"index.html": "Mine"}, False), ({"a": ""}, False)],
)
def test_a_folder_with_foreign_files_is_not_written_into(tmp_path: Path, files: dict[str, str], may: bool) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with nullcontext() if may else pytest.raises(WrongUsage, match="not of a board"):
        check_target(tmp_path)
    check_target(tmp_path / "new")


def test_a_written_board_may_be_written_again(tmp_path: Path) -> None:
    for items in (FOUR, FOUR[:1]):
        check_target(tmp_path)
        write_board(tmp_path, snapshot(*items), str)
    assert [path.name for path in tmp_path.glob("item-*.html")] == ["item-1.html"]


def test_the_story_of_an_item_names_its_starts_and_its_pull_request() -> None:
    text = page("item-3.html", snapshot(*FOUR, pulls=(pull(checks=(GREEN,), is_approved=True),)))
    assert "Implementation by codex: running" in text
    assert "Pull request #5" in text
    assert "open, approved" in text
    assert "passing: test" in text
    assert "gh pr merge 5" in text
    assert "Cost so far" not in text


def test_the_cost_of_an_item_is_that_of_its_starts_and_of_all_runs_of_its_loops() -> None:
    paid = RUNNING.model_copy(update={"cost": "0.25 US dollars, 10 tokens in"})
    pulls = (pull(rows=(paid,), loops=(LoopState(cost_usd=1.5),)),)
    assert "Cost so far: 2.00 US dollars." in page("item-3.html", snapshot(item(*TASK, rows=(paid,)), pulls=pulls))


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//evil.example", ""])
def test_a_link_with_another_scheme_is_left_out(url: str) -> None:
    assert safe_url(url) == ""


@contextmanager
def served(board: LiveBoard) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(board_app(board), port=0, log_level="critical", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        board.stop()
        server.should_exit = True
        thread.join(5)


def test_a_change_reaches_an_open_page_by_itself() -> None:
    found = [snapshot(*FOUR)]
    board = LiveBoard(lambda: found[0], str, lambda: 0.05)
    with served(board) as url, requests.get(f"{url}/events", stream=True, timeout=600) as stream:
        lines = stream.iter_lines()
        first = next(lines)
        assert "Nothing needs you" not in requests.get(f"{url}/", timeout=600).text
        found[0] = replace(snapshot(), at=datetime(2026, 11, 2, 10, tzinfo=UTC))
        second = next(line for line in lines if line)
        assert first != second
        assert "Nothing needs you" in requests.get(f"{url}/", timeout=600).text


def test_a_page_of_an_earlier_process_hears_of_a_change() -> None:
    first, second = (LiveBoard(lambda: snapshot(*FOUR), str, lambda: 60) for _ in range(2))
    assert f'data-live="{first.mark}"' in str(first.page("index.html"))
    assert first.mark != second.mark


def test_only_this_machine_is_answered_and_only_with_reads() -> None:
    with served(LiveBoard(lambda: snapshot(*FOUR), str, lambda: 60)) as url:
        answer = requests.get(f"{url}/index.html", timeout=600)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert requests.get(url, headers={"Host": "evil.example"}, timeout=600).status_code == 400
        assert requests.post(url, timeout=600).status_code == 405
        assert requests.get(f"{url}/../../etc/passwd", timeout=600).status_code == 404
        assert requests.get(f"{url}/board.js", timeout=600).headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    ("problem", "shown"),
    [
        (Refused("GitHub did not answer.", hint="Wait."), "GitHub did not answer. Wait."),
        (FileNotFoundError("gone"), "The board could not be read: FileNotFoundError."),
    ],
)
def test_a_failed_read_keeps_the_last_pages_and_says_why_at_once(problem: Exception, shown: str) -> None:
    answers = iter([snapshot(*FOUR)])

    def read() -> BoardSnapshot:
        try:
            return next(answers)
        except StopIteration:
            raise problem from None

    board = LiveBoard(read, str, lambda: 0.01)
    thread = threading.Thread(target=board.refresh, daemon=True)
    thread.start()
    for _ in range(300):
        if board.snapshot.problem:
            break
        time.sleep(0.01)
    board.stop()
    thread.join(5)
    text = page("index.html", board.snapshot)
    assert shown in text
    assert board.mark.endswith("-1")
    assert "#1" in text
