"""Take the pictures of docs/getting-started.md: walk through it, and show the sandbox's pages to Chromium.

    ./dev screenshots

Each picture shows the local GitHub at its place in the page. Writes docs/images/*.png.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import requests
from walkthrough import REPOSITORY, ROOT, Walk, begun, walk_through

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MOST_BYTES = 150_000
WAIT_SECONDS = 60
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class View(NamedTuple):
    """A page of the repository, the height of the window in pixels, and what of the page is left out.

    ``{newest}`` stands for the anchor of the newest comment.
    """

    path: str
    height: int
    hidden: str = "none"


WIDTH = 1120
BOARD = "board/"
"""The beginning of the path of a page of the board, which is not a page of the sandbox."""
_OTHERS = "article:not(#{newest}), .files, .event"
VIEWS = {
    "work-items.png": View("issues", 560),
    "status-comment.png": View("issues/2", 480, _OTHERS),
    "pull-request.png": View("pull/12", 600),
    "board.png": View("board/index.html", 640),
    "review.png": View("pull/12", 600, ".columns article:not(.review)"),
    "timeline.png": View("board/item-2.html", 620),
}


def take(browser: str, page: str, path: Path, height: int) -> None:
    """Write the picture of a page. Raises RuntimeError if the browser fails or the picture is too large."""
    with tempfile.TemporaryDirectory(prefix="accord-browser-") as home:
        file = Path(home) / "page.html"
        file.write_text(page, encoding="utf-8")
        size = (f"--window-size={WIDTH},{height}", f"--user-data-dir={home}/profile")
        command = [browser, *OPTIONS, *size, f"--screenshot={path}", file.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    if done.returncode or not path.is_file():
        raise RuntimeError(f"{browser} took no picture of {path.name}:\n{done.stderr}")
    if path.stat().st_size > MOST_BYTES:
        raise RuntimeError(f"{path.name} has {path.stat().st_size} bytes; at most {MOST_BYTES} are allowed.")


def board_of(walk: Walk, name: str) -> str:
    """Return a page of the board, with its style."""
    folder = walk.home / "board"
    where = {"GITHUB_API_URL": walk.github.url, "GITHUB_TOKEN": walk.github.token, "GITHUB_REPOSITORY": REPOSITORY}
    env = walk.environment(**where)
    walk.run("accord", "board", "--identity", "github-actions[bot]", "--static", str(folder), env=env, cwd=walk.home)
    page = (folder / name).read_text(encoding="utf-8")
    return page.replace("<head>", f'<head><base href="{folder.as_uri()}/">', 1)


def page_of(walk: Walk, view: View) -> str:
    """Return a page of the sandbox without its hidden parts, or of the board."""
    if view.path.startswith(BOARD):
        return board_of(walk, view.path.removeprefix(BOARD))
    text = requests.get(f"{walk.github.url}/{REPOSITORY}/{view.path}", timeout=30).text
    newest = max(
        re.findall(r'id="(issuecomment-\d+)"', text), key=lambda name: int(name.partition("-")[2]), default="x"
    )
    base = f'<base href="{walk.github.url}/">'
    style = f"<style>{view.hidden.replace('{newest}', newest)} {{ display: none }}</style>"
    return text.replace("<head>", f"<head>{base}", 1).replace("</head>", f"{style}</head>", 1)


def main() -> None:
    """Take all pictures."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("Chromium is not installed. Install it, such as with `apt-get install chromium`, and try again.")

    def take_picture(walk: Walk, name: str) -> None:
        view, path = VIEWS[Path(name).name], ROOT / "docs" / name
        path.parent.mkdir(exist_ok=True)
        take(browser, page_of(walk, view), path, view.height)
        print(f"{name}: {path.stat().st_size:,} bytes")

    with tempfile.TemporaryDirectory(prefix="accord-walk-") as home, begun(Path(home)) as walk:
        walk_through(walk, lambda name: take_picture(walk, name))


if __name__ == "__main__":
    main()
