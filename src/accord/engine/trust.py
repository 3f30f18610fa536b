"""Trust: texts count as they were when the work was asked for. The decisions are pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from accord.core.clock import timestamp
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.github.client import GitHub
from accord.github.graphql import TextChange
from accord.github.models import Identity, Issue
from accord.text.markdown import as_code

IsTrusted = Callable[[str], bool]
"""Whether decisions of an account count, as ``GitHub.is_trusted`` says."""


def refused_change(changes: Iterable[TextChange], as_of: datetime, is_trusted: IsTrusted) -> TextChange | None:
    """Return the first change that no one can have read at a time, by an account that may not write. Pure.

    GitHub's times are whole seconds, so a change within the same one is later.
    """
    late = [each for each in changes if each.at > as_of or (each.at == as_of and each.what != "opened")]
    return next((each for each in sorted(late, key=lambda each: each.at) if not is_trusted(each.login)), None)


def text_refusal(number: int, change: TextChange, as_of: datetime) -> Finding:
    """Return why a text is not handed to an agent."""
    who = as_code(change.login) if change.login else "an unknown account"
    what = {"opened": "was opened", "edited": "was edited", "renamed": "got another title"}[change.what]
    message = (
        f"#{number} {what} by {who}, who has no write access, at {timestamp(change.at)}. "
        f"The work was asked for at {timestamp(as_of)}, so the text is not handed to the agent."
    )
    return Finding("text-changed", message, hint="Read it as it is now, then ask for the work again.")


def check_text(
    github: GitHub, as_of: datetime | None, identity: Callable[[], Identity], issue: Issue
) -> Finding | None:
    """Return why the text of an issue or pull request is not the one of that time; None if it may be handed over.

    One request, none for one that did not change since, and one for each account that changed it.
    """
    if as_of is None or (issue.updated_at is not None and issue.updated_at < as_of):
        return None
    changes = github.text_changes(issue.number, as_of)
    change = refused_change(changes, as_of, lambda login: github.is_trusted(login, identity))
    return text_refusal(issue.number, change, as_of) if change else None


def require_text(github: GitHub, as_of: datetime | None, identity: Callable[[], Identity], issue: Issue) -> None:
    """Raise BrokenContract where the text of an issue or pull request is not the one of that time."""
    if refusal := check_text(github, as_of, identity, issue):
        raise BrokenContract.of(refusal)
