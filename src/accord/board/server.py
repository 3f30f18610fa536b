"""Serve the board as it is now to this machine, live by server-sent events, and write it as files.

Only requests whose Host is this machine are answered, so that no page of another site can read the board. An answer
also needs the Origin and the token of the board's own pages, so that no other page can send one.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from accord.board.documents import read_documents
from accord.board.facts import with_documents
from accord.board.models import BoardSnapshot, Overview, SessionQuestion
from accord.board.pages import ALL_GROUPS, GENERATOR, HERE, TABS, page_names, render_page, render_refusal
from accord.core.clock import Clock
from accord.core.errors import AccordError, BrokenContract, Refused, WrongUsage
from accord.core.findings import Finding
from accord.core.network import HOST
from accord.files.store import write_whole
from accord.sessions.apply import SessionWriter
from accord.sessions.run import answer as record_answers

if TYPE_CHECKING:
    from starlette.requests import Request

    RecordAnswer = Callable[[SessionQuestion, str], Overview]
    """Records the answer of a question, and returns the documents after it."""

_ASSETS = {"board.css": "text/css", "board.js": "text/javascript"}
_POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"  # noqa: E501
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TICK_SECONDS = 0.2
_MOST_BYTES = 65_536
"""Bytes of an answer with its form."""

_MOST_TEXTS = 50_000
"""Cleaned texts that are kept: most are the same in every rendering."""


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
        last = ""
        while not board.stopped.is_set():
            if board.mark != last:
                last = board.mark
                yield f"data: {last}\n\n"
            await asyncio.sleep(_TICK_SECONDS)

    def events(_: Request) -> Response:
        return StreamingResponse(stream(), media_type="text/event-stream", headers=_HEADERS)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        thread = threading.Thread(target=board.refresh, name="accord-board", daemon=True)
        thread.start()
        yield
        board.stop()

    routes = [Route("/events", events), Route("/", page), Route("/{name}", page)]
    if board.token:
        routes.insert(0, _answer_route(board))
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    return Starlette(routes=routes, middleware=[hosts], lifespan=lifespan)


def _answer_route(board: LiveBoard) -> Route:
    async def answer(request: Request) -> Response:
        try:
            form = await _form_of(request)
            is_own = request.headers.get("origin") == f"http://{request.headers.get('host')}"
            if not is_own or not hmac.compare_digest(form.get("token", "").encode(), board.token.encode()):
                raise Refused("The form is not of this board.", hint="Reload the board, and answer again.")
            await run_in_threadpool(board.answer, form["folder"], form["decision"], form.get("answer", ""))
        except AccordError as error:
            return HTMLResponse(render_refusal(error, board.snapshot, board.clean), 403, headers=_HEADERS)
        name = form.get("page", "")
        return RedirectResponse(name if name in TABS else "index.html", 303, headers=_HEADERS)

    return Route("/answer", answer, methods=["POST"])


async def _form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises Refused for one that is too long or incomplete."""
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > _MOST_BYTES:
            raise Refused("The answer is too long.", hint="Shorten it.")
    form = {name: values[0] for name, values in parse_qs(raw.decode(errors="replace")).items()}
    if not {"folder", "decision"} <= form.keys():
        raise Refused("The form is incomplete.", hint="Use the form of the board.")
    return form


def answer_question(question: SessionQuestion, text: str, root: Path, clock: Clock) -> Overview:
    """Record the answer of the user as ``accord session answer`` does; return the documents after it.

    Raises BrokenContract where the text does not answer the question, or the question is not open any more.
    """
    record_answers(SessionWriter(Path(question.folder), clock), {question.decision: text})
    return read_documents(root, clock.now())


def check_target(folder: Path) -> None:
    """Refuse a folder with files that no board wrote. Raises WrongUsage."""
    index = folder / "index.html"
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not index.is_file() or GENERATOR not in index.read_text(encoding="utf-8", errors="replace"):
        message = f"`{folder}` contains files that are not of a board, so nothing was written."
        raise WrongUsage(message, hint="Pass a new folder, an empty one, or one that `accord board --static` wrote.")


def write_board(folder: Path, snapshot: BoardSnapshot, clean: Callable[[str], str]) -> int:
    """Write all pages into a folder, and remove those of items that are gone; return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _ASSETS:
        write_whole(folder / name, (HERE / "static" / name).read_text(encoding="utf-8"))
    names = list(page_names(snapshot))
    for name in names:
        write_whole(folder / name, render_page(name, snapshot, clean) or "")
    for old in (*folder.glob("item-*.html"), folder / ALL_GROUPS):
        if old.name not in names:
            old.unlink(missing_ok=True)
    return len(names)


class _Shown(NamedTuple):
    """A snapshot, how often its content changed before, and its pages by name as far as they were rendered."""

    snapshot: BoardSnapshot
    version: int
    pages: dict[str, str]


class LiveBoard:
    """The newest snapshot with its pages; ``pause`` returns the seconds until the next read.

    Pages are rendered once for each change, and those of the tabs before a browser asks for them. Without ``record``
    the board takes no answers. ``token`` is a word that only its own pages know.
    """

    def __init__(
        self,
        read: Callable[[], BoardSnapshot],
        clean: Callable[[str], str],
        pause: Callable[[], float],
        record: RecordAnswer | None = None,
    ) -> None:
        self._read, self._pause, self._record = read, pause, record
        self.clean = lru_cache(maxsize=_MOST_TEXTS)(clean)
        self._start = secrets.token_hex(4)
        self.token = secrets.token_urlsafe(32) if record else ""
        self._shown = _Shown(read(), 0, {})
        self._render_tabs()
        self._changing = threading.Lock()
        self._answers = 0
        self.stopped = threading.Event()

    @property
    def snapshot(self) -> BoardSnapshot:
        """The newest snapshot, as it was read when its content changed."""
        return self._shown.snapshot

    @property
    def mark(self) -> str:
        """A word for the content: another one after each change, and in each process."""
        return f"{self._start}-{self._shown.version}"

    def page(self, name: str) -> str | None:
        """Return the HTML of a page; None for an unknown name."""
        shown = self._shown
        if name not in shown.pages:
            page = render_page(name, shown.snapshot, self.clean, f"{self._start}-{shown.version}", self.token)
            if page is None:
                return None
            shown.pages[name] = page
        return shown.pages.get(name)

    def answer(self, folder: str, decision: str, text: str) -> None:
        """Record the answer of a question that the board shows. Raises BrokenContract for any other one."""
        listed = (entry.question for entry in self.snapshot.documents.needs_you if entry.question)
        question = next((one for one in listed if (one.folder, one.decision) == (folder, decision)), None)
        if question is None or self._record is None:
            raise BrokenContract.of(
                Finding("unknown-reference", "This question is not open.", hint="Reload the board.")
            )
        documents = self._record(question, text)
        with self._changing:
            self._answers += 1
            self._show(with_documents(self.snapshot, documents))

    def refresh(self) -> None:
        """Read until ``stop``. A failed read keeps the last snapshot, and its page says why."""
        while not self.stopped.wait(self._pause()):
            answers = self._answers
            try:
                found = self._read()
                with self._changing:
                    is_older = answers != self._answers  # than the documents after an answer
                    self._show(with_documents(found, self.snapshot.documents) if is_older else found)
                self._render_tabs()
            except AccordError as error:
                self._fail(f"{error.message} {error.hint}".strip())
            except Exception as error:  # a folder may vanish while it is read; the next read may succeed
                self._fail(f"The board could not be read: {type(error).__name__}.")

    def _show(self, found: BoardSnapshot) -> None:
        last = self._shown
        if _content(found) != _content(last.snapshot):
            self._shown = _Shown(found, last.version + 1, {})

    def _fail(self, problem: str) -> None:
        with self._changing:
            last = self._shown
            if problem != last.snapshot.problem:
                self._shown = _Shown(replace(last.snapshot, problem=problem), last.version + 1, {})

    def _render_tabs(self) -> None:
        for name in TABS:
            self.page(name)

    def stop(self) -> None:
        """End the thread and the streams."""
        self.stopped.set()


def _content(snapshot: BoardSnapshot) -> BoardSnapshot:
    """Return a snapshot without the times at which it was read."""
    fixed = snapshot.repositories[0].now.min
    facts = tuple(replace(facts, now=fixed) for facts in snapshot.repositories)
    return replace(snapshot, at=fixed, repositories=facts)
