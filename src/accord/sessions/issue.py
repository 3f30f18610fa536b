"""Questions of a session on an issue or pull request: put there in one comment, answered in those that follow.

Source: global agent contract, "ASK_USER protocol". What is asked is durable in ``status.json`` before the comment is
written, and an answer before the comment says that it was taken. The comment follows from the session and the comments
alone, so that the same command, run again after a crash, ends alike.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from accord.files.store import DISK
from accord.github.comments import Comment, refuse_lost
from accord.github.markers import defuse, find_markers, write_marker
from accord.github.once import send_once
from accord.sessions.folder import read_session, status_of
from accord.sessions.interview import (
    AskedAt,
    IgnoredCommand,
    SelectedAnswers,
    authors_to_check,
    parse_commands,
    select_answers,
)
from accord.sessions.models import APPROVE_DESIGN, GATES, REVIEW_STRATEGY
from accord.sessions.questions import answer, ask, close
from accord.sessions.rules import is_about_security
from accord.text.cuts import cut
from accord.text.markdown import cell, fenced
from accord.text.sanitise import sanitise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.files.store import Disk
    from accord.github.client import GitHub
    from accord.github.comments import Comment
    from accord.github.models import Identity
    from accord.sessions.interview import AskedAt
    from accord.sessions.models import SessionStatus, UserDecision
    from accord.sessions.protocol import UserQuestion
    from accord.text.redaction import Redactor


MARKER = "session-questions"
QUESTION_CHARACTERS = 4_000
QUESTION_LINES = 100
MOST_OPEN = 10
MOST_RESOLVED = 50
NOTES = 10
_LOOKED_AT = 2 * QUESTION_CHARACTERS

_ANSWERS = {
    APPROVE_DESIGN: "approved\n/answer UD-APPROVE-DESIGN changes-requested: what to change",
    REVIEW_STRATEGY: "per-batch\n/answer UD-REVIEW-STRATEGY single-final",
}


def read_asked(body: str, session: str) -> dict[str, AskedAt] | None:
    """Read since when the questions of a session are asked in a comment; None where it is none of this session."""
    for fields in find_markers(body, MARKER):
        if fields.get("session") == session:
            try:
                known = json.loads(fields.get("asked", "{}"))
                return {str(name): AskedAt(str(at), int(after)) for name, (at, after) in known.items()}
            except (ValueError, TypeError, AttributeError):
                return {}
    return None


def still_asked(status: SessionStatus, asked: Mapping[str, AskedAt], comments: Iterable[Comment]) -> dict[str, AskedAt]:
    """Return where each question stands once the comment shows it: what is new counts from the newest comment on.

    So many questions are open there at most that the comment has room for them whatever they say.
    """
    newest = max((comment.id for comment in comments), default=0)
    known = {d.decision_id: d for d in status.user_decisions if _at(asked, d.decision_id) == d.asked_at}
    waiting = sorted(status.pending, key=lambda decision: decision.decision_id not in known)[:MOST_OPEN]
    resolved = [name for name, decision in known.items() if decision.status != "pending"][-MOST_RESOLVED:]
    places = {name: asked[name] for name in resolved}
    for decision in waiting:
        name = decision.decision_id
        places[name] = asked[name] if name in known else AskedAt(decision.asked_at, newest)
    return places


def _at(asked: Mapping[str, AskedAt], name: str) -> str | None:
    return asked[name].at if name in asked else None


def write_questions(
    session: str,
    status: SessionStatus,
    asked: Mapping[str, AskedAt],
    ignored: Sequence[IgnoredCommand],
    secrets: Redactor,
) -> str:
    """Write the comment: the open questions, how to answer, which answers do not count, what is resolved."""
    waiting = [decision for decision in status.pending if decision.decision_id in asked]
    resolved = [d for d in status.user_decisions if d.decision_id in asked and d.status != "pending"]
    title = "Questions" if waiting else "No open questions"
    parts = [f"### {title} of the session {cell(secrets(session))}"]
    parts += [_question(decision, secrets) for decision in waiting]
    if waiting:
        later = len(status.pending) - len(waiting)
        parts += [f"{later} more follow when these are answered."] if later else []
        parts.append(_HOW)
        notes = [_note(one, secrets) for one in ignored if one.reason in _NOTED]
        parts += ["\n".join(notes[-NOTES:])] if notes else []
    if resolved:
        parts.append("Resolved: " + ", ".join(f"{d.decision_id} ({d.status})" for d in resolved) + ".")
    return "\n\n".join([*parts, write_marker(MARKER, session=session, asked=json.dumps(asked, separators=(",", ":")))])


_HOW = (
    "Answer in a comment: the command at the beginning of a line, the text behind it, as many lines as you like. "
    "`/defer UD-1 reason` puts a question off. Who may write to this repository can answer; the first answer counts."
)
_NOTED = ("unknown", "bot", "no-write-permission", "no-answer")


def _question(decision: UserDecision, secrets: Redactor) -> str:
    said = secrets(decision.question)[:_LOOKED_AT]
    whole, _ = defuse(sanitise(said, secrets=secrets).text)
    text = whole if len(whole) <= QUESTION_CHARACTERS else cut(whole, QUESTION_CHARACTERS)[0]
    lines = text.splitlines()
    if text != whole or len(said) == _LOOKED_AT or len(lines) > QUESTION_LINES:
        lines = [*lines[:QUESTION_LINES], "", "… The whole question is in `status.json`."]
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    name = decision.decision_id
    mark = " (security)" if is_about_security(decision.category) else " (gate)" if name in GATES else ""
    example = fenced(f"/answer {name} {_ANSWERS.get(name, 'your answer')}", "text")
    return f"**{name}**{mark}\n\n{quoted}\n\n{example}"


def _note(ignored: IgnoredCommand, secrets: Redactor) -> str:
    said = ignored.said
    who, what = cell(secrets(said.comment.author)), f" to {cell(said.decision_id)}" if said.decision_id else ""
    return f"- The answer of {who}{what} does not count. {cell(secrets(ignored.message))}"


Action = Literal["created", "updated", "unchanged", "none"]


@dataclass(frozen=True)
class IssueThread:
    """Where a session asks: the folder, and the issue or pull request ``number``."""

    folder: Path
    github: GitHub
    number: int
    clock: Clock
    secrets: Redactor
    disk: Disk = DISK


@dataclass(frozen=True)
class PostedComment:
    """What became of the comment; ``url`` is empty where there is none."""

    action: Action
    url: str = ""


@dataclass(frozen=True)
class _QuestionThread:
    """The comments of an issue, oldest first; ``ours`` are those that ask for this session, with what they ask."""

    identity: Identity
    comments: tuple[Comment, ...]
    ours: tuple[tuple[Comment, dict[str, AskedAt]], ...]

    @property
    def asked(self) -> dict[str, AskedAt]:
        return self.ours[0][1] if self.ours else {}


def ask_on(place: IssueThread, questions: Sequence[UserQuestion]) -> PostedComment:
    """Write questions as pending, then put all that wait into the comment. Nothing is written without the issue."""
    thread = _read(place)
    ask(place.folder, questions, clock=place.clock, disk=place.disk)
    return _show(place, thread, _heard(place, thread))


def answer_from(place: IssueThread) -> tuple[SelectedAnswers, PostedComment]:
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


def _read(place: IssueThread) -> _QuestionThread:
    name = place.folder.absolute().name
    identity = place.github.identity()
    comments = tuple(sorted(place.github.comments(place.number), key=lambda comment: comment.id))
    ours = [
        (comment, asked)
        for comment in comments
        if identity.counts(comment.author) and (asked := read_asked(comment.body, name)) is not None
    ]
    return _QuestionThread(identity, comments, tuple(ours))


def _heard(place: IssueThread, thread: _QuestionThread) -> SelectedAnswers:
    our_ids = {comment.id for comment, _ in thread.ours}
    said = [one for comment in thread.comments if comment.id not in our_ids for one in parse_commands(comment)]
    status = status_of(read_session(place.folder))
    writers = [login for login in sorted(authors_to_check(status, thread.asked, said)) if place.github.may_write(login)]
    return select_answers(status, thread.asked, said, writers)


def _show(place: IssueThread, thread: _QuestionThread, heard: SelectedAnswers) -> PostedComment:
    status = status_of(read_session(place.folder))
    if not thread.ours and not status.pending:
        return PostedComment("none")
    asked = still_asked(status, thread.asked, thread.comments)
    body = write_questions(place.folder.absolute().name, status, asked, heard.ignored, place.secrets)
    if not thread.ours:
        made = send_once(
            lambda: place.github.create_comment(place.number, body),
            lambda: next((comment for comment, _ in _read(place).ours), None),
            place.clock,
        )
        refuse_lost(place.github, made, is_ours=thread.identity.counts(made.author))
        return PostedComment("created", made.url)
    first = thread.ours[0][0]
    for spare, _ in thread.ours[1:]:
        place.github.delete_comment(spare.id)
    if first.body == body:
        return PostedComment("unchanged", first.url)
    return PostedComment("updated", place.github.change_comment(first.id, body).url)
