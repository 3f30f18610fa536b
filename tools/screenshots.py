"""Take the pictures of the documentation: pages of the sandbox and of the board, shown by Chromium.

    ./dev screenshots

Those of docs/getting-started.md show the local GitHub at their place in the page, those of docs/examples.md the pull
request that each example ends with. Writes docs/images/*.png.
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

from accord_sandbox.server import RunningSandbox, serving

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
_OTHERS = "article:not(#{newest}), .files"
VIEWS = {
    "work-items.png": View("issues", 560),
    "status-comment.png": View("issues/2", 480, _OTHERS),
    "pull-request.png": View("pull/12", 600),
    "board.png": View("board/index.html", 640),
    "review.png": View("pull/12", 600, ".columns article:not(.review)"),
    "timeline.png": View("board/item-2.html", 620),
}
EXAMPLES = {
    "python-library": View("pull/4", 600),
    "typescript-app": View("pull/3", 600, ".columns article:not(.review)"),
    "documentation": View("pull/4", 600),
}
"""The page of each example's pull request. Its picture is ``example-<name>.png``."""


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


def page_of(github: RunningSandbox, view: View) -> str:
    """Return a page of the sandbox without its hidden parts."""
    text = requests.get(f"{github.url}/{github.repository}/{view.path}", timeout=600).text
    newest = max(
        re.findall(r'id="(issuecomment-\d+)"', text), key=lambda name: int(name.partition("-")[2]), default="x"
    )
    base = f'<base href="{github.url}/">'
    style = f"<style>{view.hidden.replace('{newest}', newest)} {{ display: none }}</style>"
    return text.replace("<head>", f"<head>{base}", 1).replace("</head>", f"{style}</head>", 1)


def main() -> None:
    """Take all pictures."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("Chromium is not installed. Install it, such as with `apt-get install chromium`, and try again.")

    def picture(name: str, page: str, height: int) -> None:
        path = ROOT / "docs/images" / name
        take(browser, page, path, height)
        print(f"{name}: {path.stat().st_size:,} bytes")

    def picture_of_walk(walk: Walk, name: str) -> None:
        view = VIEWS[name]
        is_board = view.path.startswith(BOARD)
        page = board_of(walk, view.path.removeprefix(BOARD)) if is_board else page_of(walk.github, view)
        picture(name, page, view.height)

    with tempfile.TemporaryDirectory(prefix="accord-walk-") as home, begun(Path(home)) as walk:
        walk_through(walk, lambda name: picture_of_walk(walk, Path(name).name))
    for name, view in EXAMPLES.items():
        with tempfile.TemporaryDirectory(prefix="accord-example-") as home:
            demo = ["accord", "demo", "--example", name, "--dir", f"{home}/sandbox", "--no-stay"]
            subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
            with serving(Path(home) / "sandbox") as github:
                picture(f"example-{name}.png", page_of(github, view), view.height)


if __name__ == "__main__":
    main()
