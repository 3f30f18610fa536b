"""Questions of a session on an issue or pull request: asked in one comment, answered by commands in later ones.

Source: global agent contract, "ASK_USER protocol". Questions and answers are durable before the comment shows them. The
comment follows from the session and the thread alone, so that the same command completes it after a crash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.engine.operations import OperationLog, skipped_if
from accord.github.comments import Comment, show_comment
from accord.github.models import Identity, NotThere
from accord.sessions.apply import SessionWriter
from accord.sessions.decision_rules import is_about_security
from accord.sessions.folder import status_of
from accord.sessions.models import APPROVE_DESIGN, GATES, REVIEW_STRATEGY, SessionStatus, UserDecision
from accord.sessions.policy import refuse
from accord.sessions.questions import UserQuestion, deferral
from accord.sessions.run import answer, answer_problem, ask, close_question
from accord.text.markdown import as_quote, code_block
from accord.text.markers import defuse, find_markers, write_marker
from accord.text.outline import blank_code
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import cut, sanitise, sanitise_cell
from accord.text.untrusted import visible_text

if TYPE_CHECKING:
    from accord.github.client import GitHub

MARKER = "session-questions"
QUESTION_CHARACTERS = 4_000
QUESTION_LINES = 100
MOST_OPEN = 10
MOST_RESOLVED = 50
NOTES = 10
_LOOKED_AT = 2 * QUESTION_CHARACTERS

CommandName = Literal["answer", "defer"]
IgnoreReason = Literal[
    "before-the-question", "unknown", "not-open", "bot", "no-write-permission", "answered-before", "no-answer"
]

_COMMAND = re.compile(
    r"^ {0,3}/(answer|defer)(?:[ \t]+(UD-[a-z0-9-]*[a-z0-9])(?:[ \t]*[:=]|(?!\S))|(?!\S))", re.MULTILINE | re.IGNORECASE
)


class AnswerCommand(Frozen):
    """One command of a comment; ``text`` is the answer, or the reason of a deferral."""

    decision_id: str
    how: CommandName
    text: str
    comment: Comment
    reason: IgnoreReason | None = None  # why it does not count
    message: str = ""


class AskedAt(NamedTuple):
    """When a question was asked, and the newest comment (id) of that time; only later comments answer it."""

    at: str
    after: int


Asked = Mapping[str, AskedAt]


class SelectedAnswers(Frozen):
    """The first valid answer or deferral of each question, and the commands that do not count."""

    accepted: Mapping[str, AnswerCommand]
    ignored: tuple[AnswerCommand, ...]


def parse_commands(comment: Comment) -> list[AnswerCommand]:
    """Return the commands of a comment, in their order."""
    text = comment.body.replace("\r\n", "\n")
    matches = list(_COMMAND.finditer(blank_code(text)))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    found = []
    for match, end in zip(matches, ends, strict=False):
        how, said = cast("CommandName", match[1].lower()), visible_text(text[match.end() : end]).strip()
        found.append(AnswerCommand((match[2] or "").upper(), how, said, comment))
    return found


def select_answers(
    status: SessionStatus, asked: Asked, commands: Iterable[AnswerCommand], writers: Collection[str]
) -> SelectedAnswers:
    """Select the commands that count. ``asked`` are the questions on the issue, ``commands`` come oldest first."""
    accepted: dict[str, AnswerCommand] = {}
    ignored = []
    for one in commands:
        if problem := _check_command(one, status, asked) or _check_answer(one, accepted, writers):
            ignored.append(replace(one, reason=problem[0], message=problem[1]))
        else:
            accepted[one.decision_id] = one
    return SelectedAnswers(accepted, tuple(ignored))


def _check_command(one: AnswerCommand, status: SessionStatus, asked: Asked) -> tuple[IgnoreReason, str] | None:
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
) -> tuple[IgnoreReason, str] | None:
    name = one.decision_id
    if one.comment.author not in writers:
        return "no-write-permission", "Only people with write access to this repository can answer."
    if name in accepted:
        return "answered-before", f"An earlier comment answered {name}."
    if one.how == "defer":
        return None if one.text else ("no-answer", f"No reason given. Write `/defer {name} REASON`.")
    problem = answer_problem(name, one.text)
    return ("no-answer", problem) if problem else None


_ANSWERS = {
    APPROVE_DESIGN: "approved\n/answer UD-APPROVE-DESIGN changes-requested: what to change",
    REVIEW_STRATEGY: "per-batch\n/answer UD-REVIEW-STRATEGY single-final",
}


def read_asked(body: str, session: str) -> dict[str, AskedAt] | None:
    """Return since when a comment asks the questions of a session; None where it belongs to another."""
    for fields in find_markers(body, MARKER):
        if fields.get("session") == session:
            try:
                known = json.loads(fields.get("asked", "{}"))
                return {str(name): AskedAt(str(at), int(after)) for name, (at, after) in known.items()}
            except (ValueError, TypeError, AttributeError):
                return {}
    return None


def questions_on_issue(status: SessionStatus, asked: Asked, comments: Iterable[Comment]) -> dict[str, AskedAt]:
    """Return since when each question is asked once the comment shows it; at most ``MOST_OPEN`` are open."""
    newest, never = max((comment.id for comment in comments), default=0), AskedAt("", 0)
    known = {d.decision_id: d for d in status.user_decisions if asked.get(d.decision_id, never).at == d.asked_at}
    waiting = sorted(status.pending, key=lambda decision: decision.decision_id not in known)[:MOST_OPEN]
    resolved = [decision for decision in known.values() if decision.status != "pending"][-MOST_RESOLVED:]
    new = {one.decision_id: AskedAt(one.asked_at, newest) for one in waiting if one.decision_id not in known}
    return {one.decision_id: new.get(one.decision_id) or asked[one.decision_id] for one in (*resolved, *waiting)}


def render_questions(
    session: str,
    status: SessionStatus,
    asked: Asked,
    ignored: Sequence[AnswerCommand],
    *,
    secrets: Redactor,
    policy: PostingPolicy,
) -> str:
    """Return the comment: open questions, how to answer them, answers that do not count, and resolved questions."""
    waiting = [decision for decision in status.pending if decision.decision_id in asked]
    resolved = [d for d in status.user_decisions if d.decision_id in asked and d.status != "pending"]
    title = "Questions" if waiting else "No open questions"
    parts = [f"### {title} of session {sanitise_cell(session, secrets=secrets, policy=policy)}"]
    parts += [_question(decision, secrets, policy) for decision in waiting]
    if waiting:
        later = len(status.pending) - len(waiting)
        parts += [f"{later} more questions follow after these."] if later else []
        parts.append(_HOW)
        notes = [_note(one, secrets, policy) for one in ignored if one.reason in _NOTED]
        parts += ["\n".join(notes[-NOTES:])] if notes else []
    if resolved:
        parts.append("Resolved: " + ", ".join(f"{d.decision_id} ({d.status})" for d in resolved) + ".")
    return "\n\n".join([*parts, write_marker(MARKER, session=session, asked=json.dumps(asked, separators=(",", ":")))])


_HOW = (
    "Answer in a comment: write the command at the start of a line, then your answer, on one line or more. "
    "`/defer UD-1 reason` defers a question. Anyone with write access can answer, and the first answer counts."
)
_NOTED = ("unknown", "bot", "no-write-permission", "no-answer")


def _question(decision: UserDecision, secrets: Redactor, policy: PostingPolicy) -> str:
    question = secrets(decision.question)[:_LOOKED_AT]
    whole, _ = defuse(sanitise(question, secrets=secrets, policy=policy).text)
    text = whole if len(whole) <= QUESTION_CHARACTERS else cut(whole, QUESTION_CHARACTERS)[0]
    lines = text.splitlines()
    if text != whole or len(question) == _LOOKED_AT or len(lines) > QUESTION_LINES:
        lines = [*lines[:QUESTION_LINES], "", "… The full question is in `status.json`."]
    name, shown = decision.decision_id, as_quote("\n".join(lines))
    mark = " (security)" if is_about_security(decision.category) else " (gate)" if name in GATES else ""
    example = code_block(f"/answer {name} {_ANSWERS.get(name, 'your answer')}", "text")
    return f"**{name}**{mark}\n\n{shown}\n\n{example}"


def _note(command: AnswerCommand, secrets: Redactor, policy: PostingPolicy) -> str:
    def safe(text: str) -> str:
        return sanitise_cell(text, secrets=secrets, policy=policy)

    what = f" to {safe(command.decision_id)}" if command.decision_id else ""
    return f"- The answer from {safe(command.comment.author)}{what} does not count. {safe(command.message)}"


_Outcome = Literal["created", "updated", "unchanged", "none"]


class PostedComment(Frozen):
    """The outcome for the comment, in a dry run the planned one; ``url`` is empty without a comment."""

    action: _Outcome
    url: str = ""


class SessionIssue(Frozen):
    """A session, and the issue or pull request ``number`` on which it asks."""

    writer: SessionWriter
    github: GitHub
    number: int
    secrets: Redactor
    policy: PostingPolicy


class ThreadFacts(Frozen):
    """The comments of an issue, oldest first; ``ours`` are those that ask for this session, with what they ask."""

    identity: Identity
    comments: tuple[Comment, ...]
    ours: tuple[tuple[Comment, dict[str, AskedAt]], ...]

    @property
    def questions(self) -> dict[str, AskedAt]:
        """The questions of our comment, by their ids."""
        return self.ours[0][1] if self.ours else {}


def ask_on(issue: SessionIssue, questions: Sequence[UserQuestion]) -> PostedComment:
    """Write questions as pending, then put all pending ones into the comment. A missing issue changes nothing."""
    thread = read_thread(issue)
    ask(issue.writer, questions)
    return _post(issue, thread, _select(issue, thread).ignored)


def answer_from(issue: SessionIssue) -> tuple[SelectedAnswers, PostedComment]:
    """Record the answers of the comments, then update our comment to what is still pending."""
    thread = read_thread(issue)
    selected = _select(issue, thread)
    answers = {name: command.text for name, command in selected.accepted.items() if command.how == "answer"}
    if answers:
        answer(issue.writer, answers)
    for name, command in selected.accepted.items():
        if command.how == "defer":
            session = issue.writer.read()
            close_question(issue.writer, name, "cancelled", deferral(session, name, command.text))
    return selected, _post(issue, thread, selected.ignored)


def read_thread(issue: SessionIssue) -> ThreadFacts:
    """Read the comments of the issue. Raises BrokenContract ``unknown-reference`` where it does not exist."""
    name = issue.writer.read().name
    identity = issue.github.identity()
    try:
        comments = tuple(sorted(issue.github.comments(issue.number), key=lambda comment: comment.id))
    except NotThere:
        message = f"This repository has no issue #{issue.number}."
        raise refuse(
            message, Finding("unknown-reference", message, hint="Pass the number of an existing one.")
        ) from None
    ours = [
        (comment, asked)
        for comment in comments
        if identity.counts(comment.author) and (asked := read_asked(comment.body, name)) is not None
    ]
    return ThreadFacts(identity, comments, tuple(ours))


def _select(issue: SessionIssue, thread: ThreadFacts) -> SelectedAnswers:
    our_ids = {comment.id for comment, _ in thread.ours}
    found = [one for comment in thread.comments if comment.id not in our_ids for one in parse_commands(comment)]
    status = status_of(issue.writer.read())
    open_ = [one for one in found if one.comment.author and _check_command(one, status, thread.questions) is None]
    logins = sorted({one.comment.author for one in open_})
    return select_answers(status, thread.questions, found, [login for login in logins if issue.github.may_write(login)])


def _post(issue: SessionIssue, thread: ThreadFacts, ignored: Sequence[AnswerCommand]) -> PostedComment:
    session = issue.writer.read()
    status = status_of(session)
    if not thread.ours and not status.pending:
        return PostedComment("none")
    asked = questions_on_issue(status, thread.questions, thread.comments)
    body = render_questions(session.name, status, asked, ignored, secrets=issue.secrets, policy=issue.policy)
    ours = [comment for comment, _ in thread.ours]
    is_same, target = bool(ours) and ours[0].body == body, f"#{issue.number}"
    changes = [("delete-comment", "") for _ in ours[1:]]
    changes += [] if is_same else [("update-comment" if ours else "create-comment", body)]
    issue.writer.operations += [{"op": op, "target": target, "body": text} for op, text in changes]

    def show() -> Comment:
        return show_comment(
            issue.github,
            issue.number,
            body,
            ours,
            find=lambda: [comment for comment, _ in read_thread(issue).ours],
            is_ours=thread.identity.counts,
        )

    log = OperationLog(issue.writer.is_dry_run)
    shown = log.write("ask-questions", target, show, number=issue.number, found=skipped_if(not changes))
    outcome: _Outcome = "unchanged" if is_same else "updated" if ours else "created"
    return PostedComment(outcome, shown.url if shown else ours[0].url if ours else "")
