"""``accord session ask|answer|cancel|skip``: questions to the user, on the terminal or on an issue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import click

from accord.cli.options import Choice, PostingArguments, argument, command, option
from accord.cli.output import one_line, redactor
from accord.cli.session_output import ChangeSessionArguments, run_change
from accord.cli.sources import posting_to, standard_input
from accord.cli.step import leave_outputs
from accord.core.errors import WrongUsage
from accord.sessions.apply import SessionWriter
from accord.sessions.folder import status_of
from accord.sessions.models import APPROVE_DESIGN, REVIEW_STRATEGY, UserDecision
from accord.sessions.questions import UserQuestion, next_step
from accord.sessions.run import answer, ask, close_question, interview

if TYPE_CHECKING:  # slow, and only for issues
    from accord.sessions.issue import AnswerCommand, PostedComment, SessionIssue

_HINTS = {
    APPROVE_DESIGN: "approved, or changes-requested: and what to change",
    REVIEW_STRATEGY: "per-batch or single-final",
}


class _AskArguments(ChangeSessionArguments, PostingArguments):
    questions: tuple[str, ...] = option("--question", "Text of a question (repeatable).", required=True)
    decision_id: str = option("--id", "UD-APPROVE-DESIGN, UD-REVIEW-STRATEGY or the next UD-<N>.")
    category: str | None = option(
        "--category", "Mark a security question, for the user alone.", type=Choice(["security"], False)
    )
    choices: tuple[str, ...] = option("--options", "Possible answer (repeatable).")
    issue: int | None = option("--issue N", "Ask in a comment on this issue.", least=1)


@command(_AskArguments, "ask")
def ask_question(given: _AskArguments) -> None:
    """Record questions as pending, before the user sees them.

    The question of the gate that comes next leads the session into that gate.
    """
    if given.decision_id and len(given.questions) > 1:
        raise WrongUsage("`--id` names one question, but several are given.", hint="Omit `--id`, or ask one by one.")
    wanted = [UserQuestion(text, given.decision_id, given.category or "", given.choices) for text in given.questions]
    if given.issue is None:
        run_change(given, lambda writer: ask(writer, wanted))
    else:
        from accord.sessions.issue import ask_on

        _run_on_issue(given, given.issue, lambda session_issue: (ask_on(session_issue, wanted), {}))


def _run_on_issue(
    given: _AskArguments | _AnswerArguments,
    number: int,
    change: Callable[[SessionIssue], tuple[PostedComment, Mapping[str, object]]],
) -> None:
    """Make a change of a session on the issue on which it asks, and print the session, the comment and more keys."""

    def work(writer: SessionWriter) -> Mapping[str, object]:
        from accord.sessions.issue import SessionIssue

        with posting_to(given) as (connection, policy):
            issue = SessionIssue(writer, connection.github, number, redactor(), policy)
            comment, more = change(issue)
        return {"issue": {"number": number, "action": comment.action, "url": comment.url, **more}}

    run_change(given, work)


class _AnswerArguments(ChangeSessionArguments, PostingArguments):
    answers: tuple[str, ...] = argument("[ID=TEXT]…")
    final: bool = option("--final", "Cancel the questions left open, except gates and security.")
    from_issue: int | None = option("--from-issue N", "Read answers from comments.", least=1)


@command(_AnswerArguments, "answer")
def answer_questions(given: _AnswerArguments) -> None:
    """Record answers of the user. Other questions stay pending.

    Without ID=TEXT, every pending question is asked on the terminal. `/defer REASON` defers a question. A gate is asked
    up to 4 times; then the session is blocked.
    """
    if given.from_issue is not None:
        if given.answers or given.final:
            raise WrongUsage("`--from-issue` excludes ID=TEXT and `--final`.", hint="Use one or the other.")
        _run_on_issue(given, given.from_issue, _answers_on)
    elif given.answers or given.final:
        texts = texts_of(given.answers)
        run_change(given, lambda writer: answer(writer, texts, is_final=given.final))
    else:

        def ask_all(writer: SessionWriter) -> None:
            if not status_of(writer.read()).pending:
                hint = "Run `accord session resume` to see what is next."
                raise WrongUsage("No question is pending, so nothing was changed.", hint=hint)
            if not interview(writer, prompt_user):
                hint = "Answer on a terminal, pass ID=TEXT, or pass `--final` if no answers will come."
                raise WrongUsage("The input ended before the first answer, so nothing was changed.", hint=hint)

        run_change(given, ask_all)


def texts_of(answers: Sequence[str]) -> dict[str, str]:
    """Return the answers by the ids of their questions. Raises WrongUsage."""
    parts = [part.partition("=") for part in answers]
    if wrong := [name for name, sign, _ in parts if not sign]:
        raise WrongUsage(f"`{one_line(wrong[0])}` is not ID=TEXT.", hint='Write `UD-1="the answer"`.')
    texts = {name: text for name, _, text in parts}
    if len(texts) < len(parts):
        raise WrongUsage("A question is answered twice.", hint="Use each id once.")
    return texts


def prompt_user(decision: UserDecision, problem: str) -> str | None:
    """Ask a question on the terminal; return the line of the answer, or None at the end of the input."""
    name = click.style(decision.decision_id, fg="yellow", bold=True)
    if problem:
        click.echo(click.style(one_line(problem), fg="red"), err=True)
    hint = _HINTS.get(decision.decision_id)
    click.echo(f"{name} {one_line(decision.question)}{f' [{hint}]' if hint else ''}\n> ", nl=False, err=True)
    line = standard_input().readline()
    try:
        return line.decode("utf-8").rstrip("\r\n") if line else None
    except UnicodeDecodeError:
        hint = "Set the terminal to UTF-8, and run the command again. Earlier answers are recorded."
        raise WrongUsage("The answer is not valid UTF-8.", hint=hint) from None


def _answers_on(session_issue: SessionIssue) -> tuple[PostedComment, Mapping[str, object]]:
    """Record the answers in the comments of an issue, and report those that are ignored on stderr."""
    from accord.sessions.issue import answer_from

    def document(given: AnswerCommand, **more: str) -> dict[str, str]:
        return {"id": given.decision_id, **more, "by": given.comment.author, "url": given.comment.url}

    selected, comment = answer_from(session_issue)
    found = next_step(session_issue.writer.read())
    leave_outputs({"state": found.state, "next": found.next, "taken": str(len(selected.accepted))})
    accepted = [document(command, how=command.how) for command in selected.accepted.values()]
    ignored = [document(one, reason=one.reason or "", message=one.message) for one in selected.ignored]
    for one in ignored:
        text = f"{one['by']}, {one['id'] or 'no question'}: {one['message']} ({one['reason']}) {one['url']}"
        click.echo(one_line(f"ignored: {text}"), err=True)
    return comment, {"taken": accepted, "ignored": ignored}


class _CloseArguments(ChangeSessionArguments):
    decision_id: str = argument("ID")
    reason: str = option("--reason", "Reason, recorded with the question.", required=True)


def _close_command(name: str, how: Literal["cancelled", "skipped"], help_: str) -> click.Command:
    def close(given: _CloseArguments) -> None:
        run_change(given, lambda writer: close_question(writer, given.decision_id, how, given.reason))

    return command(_CloseArguments, name, help=help_)(close)


cancel_question = _close_command(
    "cancel", "cancelled", "Record that the user cancelled a question.\n\nA cancelled gate blocks the session."
)
skip_question = _close_command("skip", "skipped", "Mark a question as skipped.")
