"""Questions of a session on an issue or pull request: put there in one comment, answered in those that follow.

Source: global agent contract, "ASK_USER protocol". What is asked is durable in ``status.json`` before the comment is
written, and an answer before the comment says that it was taken. The comment follows from the session and the comments
alone, so that the same command, run again after a crash, ends alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from accord.github.comments import Comment, CommentPort, refuse_lost
from accord.github.once import send_once
from accord.kernel.store import DISK
from accord.sessions.folder import read_session, status_of
from accord.sessions.questions import answer, ask, close
from accord.sessions.questions_comment import read_asked, still_asked, write_questions
from accord.sessions.said import Heard, authors, commands, hear

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from accord.github.port import Identity
    from accord.kernel.clock import Clock
    from accord.kernel.redaction import Redactor
    from accord.kernel.store import Disk
    from accord.sessions.protocol import Question
    from accord.sessions.said import Asked

Action = Literal["created", "updated", "unchanged", "none"]


class Conversation(CommentPort, Protocol):
    """What of GitHub this needs: to comment, to know ourselves, and to know who may write."""

    def identity(self) -> Identity:
        """Ask who we are."""
        ...

    def may_write(self, login: str) -> bool:
        """Ask whether an account may push to the repository."""
        ...


@dataclass(frozen=True)
class Place:
    """Where a session asks: the folder, and the issue or pull request ``number``."""

    folder: Path
    github: Conversation
    number: int
    clock: Clock
    secrets: Redactor
    disk: Disk = DISK


@dataclass(frozen=True)
class Shown:
    """What became of the comment; ``url`` is empty where there is none."""

    action: Action
    url: str = ""


@dataclass(frozen=True)
class _Thread:
    """The comments of an issue, oldest first; ``ours`` are those that ask for this session, with what they ask."""

    identity: Identity
    comments: tuple[Comment, ...]
    ours: tuple[tuple[Comment, dict[str, Asked]], ...]

    @property
    def asked(self) -> dict[str, Asked]:
        return self.ours[0][1] if self.ours else {}


def ask_on(place: Place, questions: Sequence[Question]) -> Shown:
    """Write questions as pending, then put all that wait into the comment. Nothing is written without the issue."""
    thread = _read(place)
    ask(place.folder, questions, clock=place.clock, disk=place.disk)
    return _show(place, thread, _heard(place, thread))


def answer_from(place: Place) -> tuple[Heard, Shown]:
    """Take the answers from the comments, then bring our comment in step with what still waits."""
    thread = _read(place)
    heard = _heard(place, thread)
    answers = {name: said.text for name, said in heard.taken.items() if said.how == "answer"}
    if answers:
        answer(place.folder, answers, clock=place.clock, disk=place.disk)
    for name, said in heard.taken.items():
        if said.how == "defer":
            close(place.folder, name, "cancelled", said.text, clock=place.clock, disk=place.disk)
    return heard, _show(place, thread, heard)


def _read(place: Place) -> _Thread:
    name = place.folder.absolute().name
    identity = place.github.identity()
    comments = tuple(sorted(place.github.comments(place.number), key=lambda comment: comment.id))
    ours = [
        (comment, asked)
        for comment in comments
        if identity.counts(comment.author) and (asked := read_asked(comment.body, name)) is not None
    ]
    return _Thread(identity, comments, tuple(ours))


def _heard(place: Place, thread: _Thread) -> Heard:
    our_ids = {comment.id for comment, _ in thread.ours}
    said = [one for comment in thread.comments if comment.id not in our_ids for one in commands(comment)]
    status = status_of(read_session(place.folder))
    writers = [login for login in sorted(authors(status, thread.asked, said)) if place.github.may_write(login)]
    return hear(status, thread.asked, said, writers)


def _show(place: Place, thread: _Thread, heard: Heard) -> Shown:
    status = status_of(read_session(place.folder))
    if not thread.ours and not status.pending:
        return Shown("none")
    asked = still_asked(status, thread.asked, thread.comments)
    body = write_questions(place.folder.absolute().name, status, asked, heard.ignored, place.secrets)
    if not thread.ours:
        made = send_once(
            lambda: place.github.create_comment(place.number, body),
            lambda: next((comment for comment, _ in _read(place).ours), None),
            place.clock,
        )
        refuse_lost(place.github, made, is_ours=thread.identity.counts(made.author))
        return Shown("created", made.url)
    first = thread.ours[0][0]
    for spare, _ in thread.ours[1:]:
        place.github.delete_comment(spare.id)
    if first.body == body:
        return Shown("unchanged", first.url)
    return Shown("updated", place.github.change_comment(first.id, body).url)
