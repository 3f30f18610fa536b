"""The board as it is now: the newest snapshot with its pages, and answers to questions of sessions."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from accord.board.models import BoardSnapshot, Overview, SessionQuestion
from accord.board.pages import TABS, render_page
from accord.board.snapshot import with_documents
from accord.core.errors import AccordError, BrokenContract
from accord.core.findings import Finding

if TYPE_CHECKING:
    RecordAnswer = Callable[[SessionQuestion, str], Overview]
    """Records the answer of a question, and returns the documents after it."""


_MOST_TEXTS = 50_000
"""Cleaned texts that are kept: most are the same in every rendering."""


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
        self._stopped = threading.Event()

    @property
    def snapshot(self) -> BoardSnapshot:
        """The newest snapshot, as it was read when its content changed."""
        return self._shown.snapshot

    @property
    def version(self) -> int:
        """How often the content changed."""
        return self._shown.version

    @property
    def mark(self) -> str:
        """A word for the content: another one after each change, and in each process."""
        return self._mark_of(self._shown)

    def _mark_of(self, shown: _Shown) -> str:
        return f"{self._start}-{shown.version}"

    def page(self, name: str) -> str | None:
        """Return the HTML of a page; None for an unknown name."""
        shown = self._shown
        if name not in shown.pages:
            page = render_page(name, shown.snapshot, self.clean, self._mark_of(shown), self.token)
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
        while not self._stopped.wait(self._pause()):
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
        self._stopped.set()

    @property
    def has_stopped(self) -> bool:
        """Whether the server ends."""
        return self._stopped.is_set()


def _content(snapshot: BoardSnapshot) -> BoardSnapshot:
    """Return a snapshot without the times at which it was read."""
    fixed = snapshot.repositories[0].now.min
    facts = tuple(replace(facts, now=fixed) for facts in snapshot.repositories)
    return replace(snapshot, at=fixed, repositories=facts)
