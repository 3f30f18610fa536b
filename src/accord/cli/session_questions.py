"""``accord session ask|answer|cancel|skip``: questions to the user, on the terminal or on an issue."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from accord.cli.options import Choice, repository_options
from accord.cli.output import one_line
from accord.cli.session_output import Showing, carry_out, showing_options
from accord.cli.sources import github_for, standard_input
from accord.core.clock import SystemClock
from accord.core.errors import WrongUsage
from accord.sessions.models import APPROVE_DESIGN, REVIEW_STRATEGY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.github.client import GitHub
    from accord.sessions.interview import SelectedAnswers
    from accord.sessions.issue import IssueThread, PostedComment
    from accord.sessions.models import UserDecision

_CLOCK = SystemClock()
_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_HINTS = {
    APPROVE_DESIGN: "approved, or changes-requested: and what to change",
    REVIEW_STRATEGY: "per-batch or single-final",
}


@click.command("ask")
@_FOLDER
@click.option("--question", "questions", required=True, multiple=True, help="What to ask; again for one more question.")
@click.option("--id", "decision_id", default="", help="UD-APPROVE-DESIGN, UD-REVIEW-STRATEGY or the next UD-<N>.")
@click.option(
    "--category",
    type=Choice(["security"], case_sensitive=False),
    help="security: only the user may resolve it.",
)
@click.option("--options", multiple=True, help="A possible answer; again for each.")
@click.option("--issue", type=click.IntRange(min=1), metavar="N", help="Put all that waits in a comment there.")
@repository_options
@showing_options
def ask_question(
    showing: Showing,
    /,
    folder: Path,
    questions: Sequence[str],
    decision_id: str,
    category: str | None,
    options: Sequence[str],
    issue: int | None,
    **access: Any,
) -> None:
    """Write questions as pending, and verify them, before anybody is asked."""
    from accord.sessions.protocol import UserQuestion
    from accord.sessions.questions import ask

    if decision_id and len(questions) > 1:
        raise WrongUsage("One id is for one question.", hint="Leave --id out, or ask once for each.")
    wanted = [UserQuestion(text, decision_id, category or "", tuple(options)) for text in questions]
    if issue is None:
        carry_out(showing, folder, lambda place: ask(place, wanted, clock=_CLOCK))
        return
    from accord.sessions.issue import ask_on

    more: dict[str, Any] = {}

    def change(copy: Path) -> None:
        with _place(copy, issue, showing, access) as place:
            more["issue"] = _comment(issue, ask_on(place, wanted))

    carry_out(showing, folder, change, more)


@click.command("answer")
@_FOLDER
@click.argument("answers", metavar="[ID=TEXT]…", nargs=-1)
@click.option(
    "--final", is_flag=True, help="Nothing more comes: what is left is cancelled, but for gates and security."
)
@click.option("--from-issue", "issue", type=click.IntRange(min=1), metavar="N", help="Take the answers in comments.")
@repository_options
@showing_options
def answer_questions(
    showing: Showing,
    /,
    folder: Path,
    answers: Sequence[str],
    final: bool,
    issue: int | None,
    **access: Any,
) -> None:
    """Keep what the user answered. Other questions wait, unless --final says that no more comes.

    Without ID=TEXT, each question that waits is put on the terminal, or to whoever writes stdin, a line an answer;
    /defer REASON puts one off. A gate is put again up to 3 times; then it is cancelled, and the session is blocked.
    """
    from accord.sessions.questions import answer

    if issue is not None:
        if answers or final:
            raise WrongUsage("Answers come from the issue or from here, not from both.", hint="Leave one of them out.")
        _answer_from_issue(showing, folder, issue, access)
    elif answers or final:
        texts = _texts(answers)
        carry_out(showing, folder, lambda place: answer(place, texts, is_all=final, clock=_CLOCK))
    else:
        carry_out(showing, folder, _interview)


def _texts(answers: Sequence[str]) -> dict[str, str]:
    given = [part.partition("=") for part in answers]
    if wrong := [name for name, sign, _ in given if not sign]:
        raise WrongUsage(f"{wrong[0]} is no ID=TEXT.", hint='Write UD-1="the answer".')
    texts = {name: text for name, _, text in given}
    if len(texts) < len(given):
        raise WrongUsage("One question is answered twice.", hint="Give each id once.")
    return texts


def _interview(folder: Path) -> None:
    from accord.sessions.interview import interview

    if not interview(folder, _put, clock=_CLOCK):
        raise WrongUsage(
            "The input ended before anything was answered, so nothing was changed.",
            hint="Answer on a terminal, give ID=TEXT, or say --final when no answer comes.",
        )


def _put(decision: UserDecision, wrong: str) -> str | None:
    """Put a question on stderr, and read a line of stdin."""
    name = click.style(decision.decision_id, fg="yellow", bold=True)
    if wrong:
        click.echo(click.style(one_line(wrong), fg="red"), err=True)
    hint = _HINTS.get(decision.decision_id)
    click.echo(f"{name} {one_line(decision.question)}{f' [{hint}]' if hint else ''}\n> ", nl=False, err=True)
    line = standard_input().readline()
    try:
        return line.decode("utf-8").rstrip("\r\n") if line else None
    except UnicodeDecodeError:
        raise WrongUsage(
            "The answer is not UTF-8.", hint="Set the terminal to UTF-8; earlier answers are kept."
        ) from None


def _answer_from_issue(showing: Showing, folder: Path, issue: int, access: dict[str, Any]) -> None:
    from accord.cli.step import leave_outputs
    from accord.sessions.folder import read_session
    from accord.sessions.issue import answer_from
    from accord.sessions.protocol import resumed

    more: dict[str, Any] = {}

    def change(copy: Path) -> None:
        with _place(copy, issue, showing, access) as place:
            heard, shown = answer_from(place)
        more["issue"] = {**_comment(issue, shown), **_heard(heard)}
        found = resumed(read_session(copy))
        leave_outputs({"state": found.state, "next": found.next, "taken": str(len(heard.taken))})
        for one in more["issue"]["ignored"]:
            said = f"{one['by']}, {one['id'] or 'no question'}: {one['message']} ({one['reason']}) {one['url']}"
            click.echo(one_line(f"ignored: {said}"), err=True)

    carry_out(showing, folder, change, more)


@contextmanager
def _place(folder: Path, issue: int, showing: Showing, access: dict[str, Any]) -> Iterator[IssueThread]:
    """Open the issue; a dry run only listens there, and shows on stderr what it would say."""
    from accord.sessions.issue import IssueThread
    from accord.sessions.rehearsal import Listening
    from accord.text.redaction import redactor_for

    with github_for(**access) as way:
        listening = Listening(way.github)
        github = listening if showing.is_dry_run else way.github
        yield IssueThread(folder, cast("GitHub", github), issue, _CLOCK, redactor_for(os.environ))
        for body in listening.said:
            said = "\n".join(one_line(line) for line in body.splitlines())
            click.echo(f"#{issue} would say:\n\n{said}\n", err=True)


def _comment(issue: int, shown: PostedComment) -> dict[str, Any]:
    return {"number": issue, "action": shown.action, "url": shown.url}


def _heard(heard: SelectedAnswers) -> dict[str, Any]:
    taken = [
        {"id": said.decision_id, "how": said.how, "by": said.comment.author, "url": said.comment.url}
        for said in heard.taken.values()
    ]
    ignored = [
        {
            "id": one.said.decision_id,
            "by": one.said.comment.author,
            "url": one.said.comment.url,
            "reason": one.reason,
            "message": one.message,
        }
        for one in heard.ignored
    ]
    return {"taken": taken, "ignored": ignored}


def _closing(name: str, how: Literal["cancelled", "skipped"], help_: str) -> click.Command:
    @click.command(name, help=help_)
    @_FOLDER
    @click.argument("decision_id", metavar="ID")
    @click.option("--reason", required=True, help="Why; kept with the question.")
    @showing_options
    def command(showing: Showing, /, folder: Path, decision_id: str, reason: str) -> None:
        from accord.sessions.questions import close

        carry_out(showing, folder, lambda place: close(place, decision_id, how, reason, clock=_CLOCK))

    return command


cancel_question = _closing(
    "cancel", "cancelled", "Keep that the user put a question off. A gate blocks the session then."
)
skip_question = _closing("skip", "skipped", "Keep that a question does not apply any more.")
