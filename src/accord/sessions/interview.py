"""Putting the questions of a session to the user, one after the other, in one process.

Source: global agent contract, "ASK_USER protocol": partial response, and the exceptions for gates and for security. How
often a question was put is remembered by this process alone. Each answer is written and verified before the next
question is put; whatever cannot be written is handed back in the error.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from accord.core.errors import BrokenContract, Stopped
from accord.files.store import DISK
from accord.sessions.folder import read_session, status_of
from accord.sessions.models import GATES
from accord.sessions.protocol import MOST_ASKED, must_be_answered, normalised, unanswered
from accord.sessions.questions import ROLE, answer, close
from accord.sessions.store import change_status
from accord.text.markdown import blank_code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.files.store import Disk
    from accord.sessions.models import UserDecision

    Put = Callable[[UserDecision, str], str | None]
    """Puts a question to the user, with what was wrong with the last answer. Returns None at the end of the input."""
    from collections.abc import Collection, Iterable, Mapping

    from accord.github.comments import Comment
    from accord.sessions.models import SessionStatus


DEFER = "/defer"
"""What a user writes, with a reason, to put a question off."""

Settled = Literal["resolved", "open", "blocked", "ended"]


def interview(folder: Path, put: Put, *, clock: Clock, disk: Disk = DISK) -> bool:
    """Put every question that waits; return whether the user said anything at all.

    An empty answer is none. At the end of the input, or of the questions, those that nobody answered are cancelled, but
    for gates and questions about security. Where nothing was said, nothing is changed.
    """
    waiting = status_of(read_session(folder)).pending
    is_heard = False
    settled: Settled = "open"

    def heard(decision: UserDecision, wrong: str) -> str | None:
        nonlocal is_heard
        said = put(decision, wrong)
        is_heard = is_heard or said is not None
        return said

    for decision in waiting:
        settled = _settle(folder, decision, heard, clock, disk)
        if settled in ("blocked", "ended"):
            break
    if is_heard and settled != "blocked":
        left = [decision.decision_id for decision in waiting]
        change_status(
            folder, lambda session: unanswered(session, left, now=clock.now()), role=ROLE, clock=clock, disk=disk
        )
    return is_heard


def _settle(folder: Path, decision: UserDecision, put: Put, clock: Clock, disk: Disk) -> Settled:
    """Put one question, again while it must be answered and is not; a gate without an answer blocks the session."""
    name, wrong = decision.decision_id, ""
    tries = 1 + MOST_ASKED if must_be_answered(name, decision.category) else 1
    for _ in range(tries):
        said = put(decision, wrong)
        if said is None:
            return "ended"
        reason = _deferral(said)
        wrong = _wrong(name, said, reason)
        if not wrong:
            _keep(folder, name, said.strip(), reason, clock, disk)
            return "blocked" if name in GATES and reason else "resolved"
    if name not in GATES:
        return "open"
    close(folder, name, "cancelled", f"no valid answer in {tries} tries", clock=clock, disk=disk)
    return "blocked"


def _deferral(said: str) -> str | None:
    """Return the reason for which a question is put off; None for any other answer."""
    word, _, reason = said.strip().partition(" ")
    return reason.strip() if word == DEFER else None


def _wrong(name: str, said: str, reason: str | None) -> str:
    """Say why this is no answer to the question; empty when it is one."""
    if reason is not None:
        return "" if reason else f"Write why: {DEFER} REASON."
    try:
        normalised(name, said)
    except BrokenContract as broken:
        return broken.findings[0].message
    return ""


def _keep(folder: Path, name: str, said: str, reason: str | None, clock: Clock, disk: Disk) -> None:
    """Write what the user said. Raises Stopped, with the command that writes it later, when it could not be written."""
    try:
        if reason is None:
            answer(folder, {name: said}, clock=clock, disk=disk)
        else:
            close(folder, name, "cancelled", reason, clock=clock, disk=disk)
    except Stopped as stopped:
        words = ["answer", str(folder), f"{name}={said}"]
        words = words if reason is None else ["cancel", str(folder), name, "--reason", reason]
        raise Stopped(
            f"The session cannot go on: an answer could not be kept. {stopped.message}",
            hint=f"Fix that, and keep the answer by: {shlex.join(['accord', 'session', *words])}",
        ) from stopped


How = Literal["answer", "defer"]
Reason = Literal[
    "before-the-question", "unknown", "not-open", "bot", "no-write-permission", "answered-before", "no-answer"
]

_COMMAND = re.compile(
    r"^ {0,3}/(answer|defer)(?:[ \t]+(UD-[a-z0-9-]*[a-z0-9])(?:[ \t]*[:=]|(?!\S))|(?!\S))", re.MULTILINE | re.IGNORECASE
)


_HOW: Mapping[str, How] = {"answer": "answer", "defer": "defer"}


@dataclass(frozen=True)
class AnswerCommand:
    """One command of a comment; ``text`` is the answer, or the reason for putting the question off."""

    decision_id: str
    how: How
    text: str
    comment: Comment


class AskedAt(NamedTuple):
    """When a question was put, and the newest comment of that time; what counts comes after it."""

    at: str
    after: int


@dataclass(frozen=True)
class IgnoredCommand:
    """A command that changes nothing, and why."""

    said: AnswerCommand
    reason: Reason
    message: str


@dataclass(frozen=True)
class SelectedAnswers:
    """What the comments say: for each question the first valid answer or deferral, and what does not count."""

    taken: Mapping[str, AnswerCommand]
    ignored: tuple[IgnoredCommand, ...]


def parse_commands(comment: Comment) -> list[AnswerCommand]:
    """Read the commands of a comment."""
    text = comment.body.replace("\r\n", "\n")
    found = list(_COMMAND.finditer(blank_code(text)))
    starts = [*(match.start() for match in found), len(text)]
    return [
        AnswerCommand((match[2] or "").upper(), _HOW[match[1].lower()], text[match.end() : end].strip(), comment)
        for match, end in zip(found, starts[1:], strict=True)
    ]


def authors_to_check(status: SessionStatus, asked: Mapping[str, AskedAt], said: Iterable[AnswerCommand]) -> set[str]:
    """Name whose right to answer has to be known."""
    return {one.comment.author for one in said if one.comment.author and _beside(one, status, asked) is None}


def select_answers(
    status: SessionStatus, asked: Mapping[str, AskedAt], said: Iterable[AnswerCommand], writers: Collection[str]
) -> SelectedAnswers:
    """Choose what counts. ``asked`` are the questions that were put there, ``said`` all commands, oldest first."""
    taken: dict[str, AnswerCommand] = {}
    ignored = []
    for one in said:
        reason = _beside(one, status, asked) or _invalid(one, taken, writers)
        if reason:
            ignored.append(IgnoredCommand(one, *reason))
        else:
            taken[one.decision_id] = one
    return SelectedAnswers(taken, tuple(ignored))


def _beside(one: AnswerCommand, status: SessionStatus, asked: Mapping[str, AskedAt]) -> tuple[Reason, str] | None:
    """Say why a command concerns no question that waits, or comes from no person; None when it does."""
    name, place = one.decision_id, asked.get(one.decision_id)
    decision = status.decision(name)
    after = place.after if place else min((other.after for other in asked.values()), default=one.comment.id)
    if one.comment.id <= after or (decision and place and place.at != decision.asked_at):
        return "before-the-question", "This was said before the question was asked here."
    if decision is None:
        return "unknown", f"Name one of the questions, as in /{one.how} UD-1 and the text."
    if decision.status != "pending" or place is None:
        return "not-open", f"{name} does not wait for an answer."
    if one.comment.is_bot:
        return "bot", "Bots do not answer for the user."
    return None


def _invalid(
    one: AnswerCommand, taken: Mapping[str, AnswerCommand], writers: Collection[str]
) -> tuple[Reason, str] | None:
    """Say why a command on an open question does not count; None when it does."""
    name = one.decision_id
    if one.comment.author not in writers:
        return "no-write-permission", "Only who may write to this repository answers."
    if name in taken:
        return "answered-before", f"{name} was answered by an earlier comment."
    if one.how == "defer":
        return None if one.text else ("no-answer", f"Say why: /defer {name} and the reason.")
    try:
        normalised(name, one.text)
    except BrokenContract as broken:
        return "no-answer", broken.findings[0].message
    return None
