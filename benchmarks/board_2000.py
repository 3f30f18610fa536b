"""The board of 2,000 work items in Chromium, against the same board of none: first render, keys, and changes.

    .venv/bin/python benchmarks/board_2000.py [COUNT]

Needs Chromium and the dependency group ``browser``.
"""

import shutil
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import uvicorn
from playwright.sync_api import Page, sync_playwright

from accord.board.models import BoardItem, BoardRepository, BoardSnapshot, Overview, address_of
from accord.board.server import LiveBoard, board_app
from accord.board.work import overview_of_work
from accord.cli.output import one_line
from accord.github.models import Identity, Issue

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
STATUSES = ("pending", "ready", "in-progress", "review")
ROUNDS = 7
NOTES = [0]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FIRST_RENDER = """() => new Promise((resolve) =>
  new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    if (paint) resolve(paint.startTime);
  }).observe({ type: "paint", buffered: true }))"""
KEY = """text => new Promise((resolve) => {
  const field = document.getElementById("filter");
  const begin = performance.now();
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begin)));
})"""


def item(number: int) -> BoardItem:
    labels = ("task:implement", "priority:high", "complexity:low", f"status:{STATUSES[number % len(STATUSES)]}")
    issue = Issue(
        id=number, number=number, url=f"https://github.com/octo/web/issues/{number}", title=f"Write part {number}",
        body="", labels=labels, state="open", state_reason=None, author="bot", author_is_bot=True, closed_by=None,
        is_pull=False, created_at=NOW, blocker_count=0,
    )  # fmt: skip
    blockers = (number - 1,) if number % 10 != 1 else ()  # chains of ten
    return BoardItem(issue, (), len(blockers), blockers)


def snapshot_of(count: int) -> BoardSnapshot:
    items = tuple(item(number) for number in range(1, count + 1))
    facts = BoardRepository(address_of("octo/web", "https://github.com"), NOW, Identity("bot", False), items)
    return BoardSnapshot((facts,), overview_of_work(facts), Overview(), NOW)


@contextmanager
def served(count: int) -> Iterator[str]:
    made = snapshot_of(count)

    def read() -> BoardSnapshot:
        return replace(made, overview=replace(made.overview, notes=(f"Note {NOTES[-1]}",)))

    board = LiveBoard(read, one_line, lambda: 0.1)
    server = uvicorn.Server(uvicorn.Config(board_app(board), port=0, log_level="critical", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    board.stop()
    server.should_exit = True
    thread.join(5)


def first_render(page: Page, url: str) -> float:
    page.goto(url, wait_until="load")
    return float(page.evaluate(FIRST_RENDER))


def key(page: Page) -> float:
    return max(float(page.evaluate(KEY, text)) for text in ("p", "part 7", "part 77", "", "none of them", ""))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit("Chromium is not installed.")
    with sync_playwright() as driver, served(0) as empty, served(count) as full:
        browser = driver.chromium.launch(executable_path=program, chromium_sandbox=False)
        page = browser.new_page()
        updates: dict[str, list[float]] = {empty: [], full: []}
        for url in updates:
            page.goto(url)
            updates[url] += [update(page) for _ in range(ROUNDS)]
        report("a change until it shows", updates[empty], updates[full])
        for name in ("index.html", "items.html", "graph.html"):
            renders: dict[str, list[float]] = {empty: [], full: []}
            keys: dict[str, list[float]] = {empty: [], full: []}
            for _ in range(ROUNDS):
                for url in (empty, full):
                    renders[url].append(first_render(page, f"{url}/{name}"))
                    if name != "graph.html":
                        keys[url].append(key(page))
            report(f"{name}, first render", renders[empty], renders[full])
            if name != "graph.html":
                report(f"{name}, slowest filter", keys[empty], keys[full])
        browser.close()


def update(page: Page) -> float:
    """The time from a change of the facts until the page shows it; facts are read every 100 ms."""
    NOTES.append(NOTES[-1] + 1)
    begin = time.perf_counter()
    page.get_by_text(f"Note {NOTES[-1]}", exact=True).wait_for(timeout=20_000)
    return 1000 * (time.perf_counter() - begin)


def report(what: str, empty: list[float], full: list[float]) -> None:
    base, found = statistics.median(empty), statistics.median(full)
    print(f"{what:<28} ratio {found / base:5.2f}   {base:6.1f} ms empty, {found:6.1f} ms full")


if __name__ == "__main__":
    main()
