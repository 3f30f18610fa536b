"""The comment that puts a session's questions to people, and remembers since when. Pure.

It is one of our own identity, found again by its marker; a stranger's imitation is a comment like any other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from accord.github.markers import defuse, find_markers, write_marker
from accord.kernel.markdown_text import cell, fenced
from accord.kernel.outgoing.cuts import cut
from accord.kernel.outgoing.sanitise import sanitise
from accord.sessions.models import APPROVE_DESIGN, GATES, REVIEW_STRATEGY
from accord.sessions.rules import is_about_security
from accord.sessions.said import Asked, Ignored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from accord.github.comments import Comment
    from accord.kernel.redaction import Redactor
    from accord.sessions.models import Decision, Status

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


def read_asked(body: str, session: str) -> dict[str, Asked] | None:
    """Read since when the questions of a session are asked in a comment; None where it is none of this session."""
    for fields in find_markers(body, MARKER):
        if fields.get("session") == session:
            try:
                known = json.loads(fields.get("asked", "{}"))
                return {str(name): Asked(str(at), int(after)) for name, (at, after) in known.items()}
            except (ValueError, TypeError, AttributeError):
                return {}
    return None


def still_asked(status: Status, asked: Mapping[str, Asked], comments: Iterable[Comment]) -> dict[str, Asked]:
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
        places[name] = asked[name] if name in known else Asked(decision.asked_at, newest)
    return places


def _at(asked: Mapping[str, Asked], name: str) -> str | None:
    return asked[name].at if name in asked else None


def write_questions(
    session: str, status: Status, asked: Mapping[str, Asked], ignored: Sequence[Ignored], secrets: Redactor
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


def _question(decision: Decision, secrets: Redactor) -> str:
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


def _note(ignored: Ignored, secrets: Redactor) -> str:
    said = ignored.said
    who, what = cell(secrets(said.comment.author)), f" to {cell(said.decision_id)}" if said.decision_id else ""
    return f"- The answer of {who}{what} does not count. {cell(secrets(ignored.message))}"
