"""Answers in comments on an issue: how they are written, whose count, and for which question. All pure.

Source: global agent contract, "ASK_USER protocol"; who may answer, and how, is accord's decision. A command stands at
the beginning of a line, outside of code and quotes; what follows, up to the next command, is its text::

    /answer UD-1 Postgres,
    because we run it already
    /defer UD-2 next sprint
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from accord.kernel.errors import BrokenContract
from accord.kernel.markdown import blank_code
from accord.sessions.protocol import normalised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from accord.github.comments import Comment
    from accord.sessions.models import Status

How = Literal["answer", "defer"]
Reason = Literal[
    "before-the-question", "unknown", "not-open", "bot", "no-write-permission", "answered-before", "no-answer"
]

_COMMAND = re.compile(
    r"^ {0,3}/(answer|defer)(?:[ \t]+(UD-[a-z0-9-]*[a-z0-9])(?:[ \t]*[:=]|(?!\S))|(?!\S))", re.MULTILINE | re.IGNORECASE
)


_HOW: Mapping[str, How] = {"answer": "answer", "defer": "defer"}


@dataclass(frozen=True)
class Said:
    """One command of a comment; ``text`` is the answer, or the reason for putting the question off."""

    decision_id: str
    how: How
    text: str
    comment: Comment


class Asked(NamedTuple):
    """When a question was put, and the newest comment of that time; what counts comes after it."""

    at: str
    after: int


@dataclass(frozen=True)
class Ignored:
    """A command that changes nothing, and why."""

    said: Said
    reason: Reason
    message: str


@dataclass(frozen=True)
class Heard:
    """What the comments say: for each question the first valid answer or deferral, and what does not count."""

    taken: Mapping[str, Said]
    ignored: tuple[Ignored, ...]


def commands(comment: Comment) -> list[Said]:
    """Read the commands of a comment."""
    text = comment.body.replace("\r\n", "\n")
    found = list(_COMMAND.finditer(blank_code(text)))
    starts = [*(match.start() for match in found), len(text)]
    return [
        Said((match[2] or "").upper(), _HOW[match[1].lower()], text[match.end() : end].strip(), comment)
        for match, end in zip(found, starts[1:], strict=True)
    ]


def authors(status: Status, asked: Mapping[str, Asked], said: Iterable[Said]) -> set[str]:
    """Name whose right to answer has to be known."""
    return {one.comment.author for one in said if one.comment.author and _beside(one, status, asked) is None}


def hear(status: Status, asked: Mapping[str, Asked], said: Iterable[Said], writers: Collection[str]) -> Heard:
    """Choose what counts. ``asked`` are the questions that were put there, ``said`` all commands, oldest first."""
    taken: dict[str, Said] = {}
    ignored = []
    for one in said:
        reason = _beside(one, status, asked) or _invalid(one, taken, writers)
        if reason:
            ignored.append(Ignored(one, *reason))
        else:
            taken[one.decision_id] = one
    return Heard(taken, tuple(ignored))


def _beside(one: Said, status: Status, asked: Mapping[str, Asked]) -> tuple[Reason, str] | None:
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


def _invalid(one: Said, taken: Mapping[str, Said], writers: Collection[str]) -> tuple[Reason, str] | None:
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
