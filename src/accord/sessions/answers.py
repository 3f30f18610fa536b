"""Answers of the user: one question after the other on a terminal, and commands in the comments of an issue.

Source: global agent contract, "ASK_USER protocol": partial response, and the exceptions for gates and for security. On
a terminal, each answer is written and verified before the next question.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from accord.core.errors import BrokenContract, Stopped
from accord.core.suggest import did_you_mean
from accord.sessions.folder import status_of
from accord.sessions.models import GATES
from accord.sessions.questions import MAX_REPEATS, needs_answer, normalize_answer, with_silence
from accord.sessions.run import ROLE, answer, close_question
from accord.text.outline import blank_code
from accord.text.untrusted import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from accord.github.comments import Comment
    from accord.sessions.apply import SessionWriter
    from accord.sessions.models import SessionStatus, UserDecision

    Prompt = Callable[[UserDecision, str], str | None]
    """Asks the user, with what was wrong with the last answer. Returns None at the end of the input."""

DEFER = "/defer"
"""The command with which a user defers a question, followed by a reason."""

_Settled = Literal["resolved", "open", "blocked", "ended"]


def interview(writer: SessionWriter, prompt: Prompt) -> bool:
    """Ask every pending question; return whether the user wrote anything at all.

    An empty answer does not count. At the end of the input, or of the questions, those without an answer are cancelled,
    except gates and questions about security. Where the user wrote nothing, nothing changes.
    """
    waiting = status_of(writer.read()).pending
    has_input = False
    settled: _Settled = "open"

    def prompt_once(decision: UserDecision, problem: str) -> str | None:
        nonlocal has_input
        line = prompt(decision, problem)
        has_input = has_input or line is not None
        return line

    for decision in waiting:
        settled = _settle(writer, decision, prompt_once)
        if settled in ("blocked", "ended"):
            break
    if has_input and settled != "blocked":
        names = [decision.decision_id for decision in waiting]
        writer.change_status(lambda session: with_silence(session, names, now=writer.clock.now()), role=ROLE)
    return has_input


def _settle(writer: SessionWriter, decision: UserDecision, prompt: Prompt) -> _Settled:
    """Ask one question, repeatedly while it needs an answer; a gate without an answer blocks the session."""
    name, problem = decision.decision_id, ""
    tries = 1 + MAX_REPEATS if needs_answer(name, decision.category) else 1
    for _ in range(tries):
        line = prompt(decision, problem)
        if line is None:
            return "ended"
        word, _, rest = line.strip().partition(" ")
        reason = rest.strip() if word == DEFER else None
        problem = _answer_problem(name, line, reason)
        if not problem:
            _record_answer(writer, name, line.strip(), reason)
            return "blocked" if name in GATES and reason else "resolved"
    if name not in GATES:
        return "open"
    close_question(writer, name, "cancelled", f"no valid answer in {tries} tries")
    return "blocked"


def _answer_problem(name: str, text: str, reason: str | None) -> str:
    """Return why a text does not answer the question; empty when it does. ``reason`` is that of a deferral."""
    if reason is not None:
        return "" if reason else f"No reason given. Write `{DEFER} REASON`."
    try:
        normalize_answer(name, text)
    except BrokenContract as broken:
        return broken.findings[0].text
    return ""


def _record_answer(writer: SessionWriter, name: str, text: str, reason: str | None) -> None:
    """Write the user's answer. Raises Stopped, with the command that writes it later, when the disk refuses it."""
    try:
        if reason is None:
            answer(writer, {name: text})
        else:
            close_question(writer, name, "cancelled", reason)
    except Stopped as stopped:
        words = ["answer", str(writer.folder), f"{name}={text}"]
        words = words if reason is None else ["cancel", str(writer.folder), name, "--reason", reason]
        raise Stopped(
            f"The answer to {name} could not be written. {stopped.message}",
            hint=f"Fix that, then record the answer with `{shlex.join(['accord', 'session', *words])}`",
        ) from stopped


CommandName = Literal["answer", "defer"]
Reason = Literal[
    "before-the-question", "unknown", "not-open", "bot", "no-write-permission", "answered-before", "no-answer"
]

_COMMAND = re.compile(
    r"^ {0,3}/(answer|defer)(?:[ \t]+(UD-[a-z0-9-]*[a-z0-9])(?:[ \t]*[:=]|(?!\S))|(?!\S))", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True)
class AnswerCommand:
    """One command of a comment; ``text`` is the answer, or the reason of a deferral."""

    decision_id: str
    how: CommandName
    text: str
    comment: Comment


class AskedAt(NamedTuple):
    """When a question was asked, and the newest comment (id) of that time; only later comments answer it."""

    at: str
    after: int


Asked = Mapping[str, AskedAt]


@dataclass(frozen=True)
class IgnoredCommand:
    """A command that changes nothing, and why."""

    command: AnswerCommand
    reason: Reason
    message: str


@dataclass(frozen=True)
class SelectedAnswers:
    """The first valid answer or deferral of each question, and the commands that do not count."""

    accepted: Mapping[str, AnswerCommand]
    ignored: tuple[IgnoredCommand, ...]


def parse_commands(comment: Comment) -> list[AnswerCommand]:
    """Return the commands of a comment, in their order."""
    text = comment.body.replace("\r\n", "\n")
    found = list(_COMMAND.finditer(blank_code(text)))
    ends = [*(match.start() for match in found[1:]), len(text)]
    spans = [(match, visible_text(text[match.end() : end]).strip()) for match, end in zip(found, ends, strict=False)]
    return [
        AnswerCommand((match[2] or "").upper(), cast("CommandName", match[1].lower()), said, comment)
        for match, said in spans
    ]


def authors_to_check(status: SessionStatus, asked: Asked, commands: Iterable[AnswerCommand]) -> set[str]:
    """Return the accounts whose right to answer has to be looked up."""
    return {one.comment.author for one in commands if one.comment.author and _check_command(one, status, asked) is None}


def select_answers(
    status: SessionStatus, asked: Asked, commands: Iterable[AnswerCommand], writers: Collection[str]
) -> SelectedAnswers:
    """Select the commands that count. ``asked`` are the questions on the issue, ``commands`` come oldest first."""
    accepted: dict[str, AnswerCommand] = {}
    ignored = []
    for one in commands:
        problem = _check_command(one, status, asked) or _check_answer(one, accepted, writers)
        if problem:
            ignored.append(IgnoredCommand(one, *problem))
        else:
            accepted[one.decision_id] = one
    return SelectedAnswers(accepted, tuple(ignored))


def _check_command(one: AnswerCommand, status: SessionStatus, asked: Asked) -> tuple[Reason, str] | None:
    """Return why a command does not concern a pending question or comes from a bot; None when it counts so far."""
    name, since = one.decision_id, asked.get(one.decision_id)
    decision = status.decision(name)
    after = since.after if since else min((other.after for other in asked.values()), default=one.comment.id)
    if one.comment.id <= after or (decision and since and since.at != decision.asked_at):
        return "before-the-question", "The comment is older than the question."
    if decision is None:
        example = f"Name a question, as in `/{one.how} UD-1 …`."
        return "unknown", f"Unknown question `{name}`. {did_you_mean(name, asked) or example}" if name else example
    if decision.status != "pending" or since is None:
        return "not-open", f"{name} is not waiting for an answer."
    if one.comment.is_bot:
        return "bot", "Bots cannot answer for the user."
    return None


def _check_answer(
    one: AnswerCommand, accepted: Mapping[str, AnswerCommand], writers: Collection[str]
) -> tuple[Reason, str] | None:
    """Return why a command on an open question does not count; None when it does."""
    name = one.decision_id
    if one.comment.author not in writers:
        return "no-write-permission", "Only people with write access to this repository can answer."
    if name in accepted:
        return "answered-before", f"An earlier comment answered {name}."
    if one.how == "defer":
        return None if one.text else ("no-answer", f"No reason given. Write `/defer {name} REASON`.")
    problem = _answer_problem(name, one.text, None)
    return ("no-answer", problem) if problem else None
