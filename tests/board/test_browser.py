"""The board in Chromium: in a window and on a phone, by mouse and by keys."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.browser import PHONE, opened_page, serious_findings
from test_pages import FOUR, served, snapshot
from test_work import GREEN, NOW, RED, TASK, item, pull

from accord.board.models import BoardSnapshot
from accord.board.server import LiveBoard
from accord.loops.models import Iteration, LoopState

ITERATION = Iteration(run_id="7", number=1, seconds=240, cost_usd=0.5, ended_at=NOW)
PULLS = (pull(checks=(GREEN, RED), is_approved=True, loops=(LoopState(history=(ITERATION,)),)),)
PAGES = ("index.html", "items.html", "graph.html", "documents.html", "charts.html", "item-1.html", "item-3.html")


class Shown:
    """A served board, and the snapshot that its next read finds."""

    def __init__(self, found: BoardSnapshot) -> None:
        self.now = found
        self.board = LiveBoard(lambda: self.now, str, lambda: 0.05)


@pytest.fixture
def shown() -> Iterator[Shown]:
    shown = Shown(snapshot(*FOUR, pulls=PULLS))
    with served(shown.board) as url:
        shown.url = url
        yield shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_on_any_page(browser: Any, shown: Shown, name: str, scheme: str) -> None:
    with opened_page(browser, color_scheme=scheme) as page:
        page.goto(f"{shown.url}/{name}")
        assert serious_findings(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_a_phone(browser: Any, shown: Shown, name: str) -> None:
    with opened_page(browser, viewport=PHONE) as page:
        page.goto(f"{shown.url}/{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert serious_findings(page) == []


def test_a_dark_board_is_dark(browser: Any, shown: Shown) -> None:
    paper = {}
    for scheme in ("light", "dark"):
        with opened_page(browser, color_scheme=scheme) as page:
            page.goto(shown.url)
            paper[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}


def test_a_change_shows_by_itself_and_keeps_what_was_typed_and_focused(browser: Any, shown: Shown) -> None:
    with opened_page(browser) as page:
        page.goto(f"{shown.url}/index.html")
        page.keyboard.press("/")
        page.keyboard.type("login")
        assert page.locator(".card:visible").count() == 1
        more = replace(shown.now, overview=replace(shown.now.overview, notes=("Something was not read.",)))
        shown.now = more
        page.get_by_text("Something was not read.").wait_for(timeout=600_000)
        assert page.locator("#filter").input_value() == "login"
        page.keyboard.type("x")
        assert page.locator("#filter").input_value() == "loginx"
        assert page.locator(".card:visible").count() == 0


def test_a_filter_unfolds_what_it_finds_and_folds_it_again(browser: Any, shown: Shown) -> None:
    shown.now = snapshot(*(item(*TASK, "status:ready", number=number) for number in range(1, 121)))
    with opened_page(browser) as page:
        page.goto(f"{shown.url}/items.html")
        page.get_by_text("100 more").wait_for(timeout=600_000)
        visible = page.locator(".card:visible")
        assert visible.count() == 20
        page.locator("#filter").fill("#119")
        assert visible.count() == 1
        page.locator("#filter").fill("")
        assert visible.count() == 20
        page.get_by_text("100 more").click()
        assert visible.count() == 120
        page.locator("#filter").fill("#11")
        page.locator("#filter").fill("")
        assert visible.count() == 120


def test_keys_change_the_page_and_move_between_entries(browser: Any, shown: Shown) -> None:
    with opened_page(browser) as page:
        page.goto(shown.url)
        page.keyboard.press("2")
        page.wait_for_url("**/items.html")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        page.wait_for_url("**/item-2.html")
        page.keyboard.press("1")
        page.wait_for_url("**/index.html")
        assert page.url.endswith("/index.html")


def test_a_link_to_an_item_works_by_itself_and_the_graph_leads_to_it(browser: Any, shown: Shown) -> None:
    with opened_page(browser) as page:
        page.goto(f"{shown.url}/item-3.html")
        assert page.locator("h1").inner_text() == "#3 Write"
        page.goto(f"{shown.url}/graph.html")
        page.locator("a[href='item-2.html']").last.click()
        page.wait_for_url("**/item-2.html")


def test_a_hostile_title_runs_nothing(browser: Any, shown: Shown) -> None:
    hostile = "<img src=x onerror='window.ran = 1'><script>window.ran = 1</script>"
    shown.now = snapshot(item(*TASK, "status:ready", number=1), title=hostile)
    with opened_page(browser) as page:
        for name in ("index.html", "items.html", "graph.html", "item-1.html"):
            page.goto(f"{shown.url}/{name}")
            page.locator("main").get_by_text("<img src=x").last.wait_for(timeout=600_000)
            assert page.evaluate("window.ran") is None
