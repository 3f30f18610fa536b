"""Serve the board to this machine, live by server-sent events, and write it as files.

Only requests whose Host is this machine are answered, so that no page of another site can read the board.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from accord.board.pages import GENERATOR, HERE, TABS, page_names, render_page
from accord.core.errors import AccordError, WrongUsage
from accord.files.store import write_whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from starlette.requests import Request

    from accord.board.models import Snapshot

HOST = "127.0.0.1"
_ASSETS = {"board.css": "text/css", "board.js": "text/javascript"}
_POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"  # noqa: E501
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_TICK_SECONDS = 0.2


class _Shown(NamedTuple):
    """A snapshot, how often its content changed before, and its pages by name as far as they were rendered."""

    snapshot: Snapshot
    version: int
    pages: dict[str, str]


class LiveBoard:
    """The newest snapshot with its pages; ``pause`` returns the seconds until the next read.

    Pages are rendered once for each change, those of the tabs before a browser asks for them.
    """

    def __init__(self, read: Callable[[], Snapshot], clean: Callable[[str], str], pause: Callable[[], float]) -> None:
        self._read, self._clean, self._pause = read, clean, pause
        self._shown = self._rendered(read(), 0)
        self._stopped = threading.Event()

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot, as it was read when its content changed."""
        return self._shown.snapshot

    @property
    def version(self) -> int:
        """How often the content changed."""
        return self._shown.version

    def page(self, name: str) -> str | None:
        """Return the HTML of a page; None for an unknown name."""
        shown = self._shown
        if name not in shown.pages and (page := render_page(name, shown.snapshot, self._clean, shown.version)):
            shown.pages[name] = page
        return shown.pages.get(name)

    def refresh(self) -> None:
        """Read until ``stop``. A failed read keeps the last snapshot, and its page says why."""
        while not self._stopped.wait(self._pause()):
            last = self._shown
            try:
                found = self._read()
                facts = replace(found.facts, now=last.snapshot.facts.now)
                if replace(found, at=last.snapshot.at, facts=facts) != last.snapshot:
                    self._shown = self._rendered(found, last.version + 1)
            except AccordError as error:
                self._fail(f"{error.message} {error.hint}".strip())
            except Exception as error:  # a folder may vanish while it is read; the next read may succeed
                self._fail(f"The board could not be read: {type(error).__name__}.")

    def _fail(self, problem: str) -> None:
        last = self._shown
        if problem != last.snapshot.problem:
            self._shown = _Shown(replace(last.snapshot, problem=problem), last.version + 1, {})

    def _rendered(self, snapshot: Snapshot, version: int) -> _Shown:
        pages = ((name, render_page(name, snapshot, self._clean, version)) for name in TABS)
        return _Shown(snapshot, version, {name: page for name, page in pages if page})

    def stop(self) -> None:
        """End the thread and the streams."""
        self._stopped.set()

    @property
    def has_stopped(self) -> bool:
        """Whether the server ends."""
        return self._stopped.is_set()


def board_app(board: LiveBoard) -> Starlette:
    """Return the application: the pages, what they need, and the stream of changes."""

    def page(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        if name in _ASSETS:
            content = (HERE / "static" / name).read_text(encoding="utf-8")
            return Response(content, media_type=_ASSETS[name], headers=_HEADERS)
        shown = board.page(name)
        if shown is None:
            return PlainTextResponse("No such page.", 404, headers=_HEADERS)
        return HTMLResponse(shown, headers=_HEADERS)

    async def stream() -> AsyncIterator[str]:
        last = -1
        while not board.has_stopped:
            if board.version != last:
                last = board.version
                yield f"data: {last}\n\n"
            await asyncio.sleep(_TICK_SECONDS)

    def events(_: Request) -> Response:
        return StreamingResponse(stream(), media_type="text/event-stream", headers=_HEADERS)

    @asynccontextmanager
    async def reading(_: Starlette) -> AsyncIterator[None]:
        thread = threading.Thread(target=board.refresh, name="accord-board", daemon=True)
        thread.start()
        yield
        board.stop()

    routes = [Route("/events", events), Route("/", page), Route("/{name}", page)]
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    return Starlette(routes=routes, middleware=[hosts], lifespan=reading)


def check_target(folder: Path) -> None:
    """Refuse a folder with files that no board wrote. Raises WrongUsage."""
    index = folder / "index.html"
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not index.is_file() or GENERATOR not in index.read_text(encoding="utf-8", errors="replace"):
        message = f"`{folder}` contains files that are not of a board, so nothing was written."
        raise WrongUsage(message, hint="Pass a new folder, an empty one, or one that `accord board --static` wrote.")


def write_board(folder: Path, snapshot: Snapshot, clean: Callable[[str], str]) -> int:
    """Write all pages into a folder, and remove those of items that are gone; return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _ASSETS:
        write_whole(folder / name, (HERE / "static" / name).read_text(encoding="utf-8"))
    names = list(page_names(snapshot))
    for name in names:
        write_whole(folder / name, render_page(name, snapshot, clean) or "")
    for old in folder.glob("item-*.html"):
        if old.name not in names:
            old.unlink()
    return len(names)
