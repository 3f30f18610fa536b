"""Debian's Chromium, driven by Playwright, and the accessibility rules of axe-core that run in its pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
PHONE = {"width": 375, "height": 667}
SERIOUS = ("serious", "critical")


@contextmanager
def started_browser() -> Iterator["Browser"]:
    """Start Chromium without a window; skip where it or Playwright is not installed."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium: apt install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no Playwright: install Chromium, then ./dev adds it"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(OPTIONS), chromium_sandbox=False)
        yield browser
        browser.close()


@contextmanager
def opened_page(browser: "Browser", **options: Any) -> Iterator["Page"]:
    """Open a page in a window of its own; afterwards it must have logged no error, and no request may have failed."""
    context = browser.new_context(**{"viewport": {"width": 1120, "height": 800}, **options})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert problems == []


def serious_findings(page: "Page") -> list[tuple[str, list[str]]]:
    """Return the serious findings of axe-core on a page, with their elements."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found if one["impact"] in SERIOUS]
