"""Trust: labels count by who set them, and texts as they were when work was asked for. The decisions are pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from accord.core.clock import timestamp
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.github.client import GitHub, LabelEvent
from accord.github.graphql import TextChange
from accord.github.models import Identity, Issue
from accord.text.markdown import as_code

IsTrusted = Callable[[str], bool]
"""Whether decisions of an account count, as ``GitHub.is_trusted`` says."""


PAUSED, RETRY, ATTENTION = "agents:paused", "agent:retry", "agent:needs-attention"
NEEDS_HUMAN = "needs-human"
NOT_STEERING = frozenset({PAUSED, RETRY, ATTENTION})
"""Labels that start nothing: everyone who may label may pause the loops, and the rest are accord's own notes."""


def names_agent(label: str) -> bool:
    """Return whether a label chooses an agent, or would if there is one of its name."""
    return label.casefold().startswith("agent:") and label.casefold() not in NOT_STEERING


class RefusedLabel(Frozen):
    """A label that does not count, and who set it; ``by`` is empty for an unknown account."""

    label: str
    by: str

    @property
    def text(self) -> str:
        """The reason, and what to do."""
        who = as_code(self.by) if self.by else "an unknown account"
        return (
            f"The label {as_code(self.label)} was set by {who}, who has no write access, so it does not count "
            "(`label-not-allowed`). Someone with write access can remove it and add it again."
        )


def is_steering(label: str) -> bool:
    """Return whether a label starts or steers work."""
    name = label.casefold()
    return name not in NOT_STEERING and (name == "autofix" or name.startswith(("agent:", "agents:")))


def refused_labels(
    labels: Iterable[str], events: Iterable[LabelEvent], is_trusted: IsTrusted
) -> tuple[RefusedLabel, ...]:
    """Return the labels that start or steer work and that someone set who may not decide so. Pure.

    The last event counts that added the label; ``events`` are the oldest first.
    """
    setters = {event.label.casefold(): event.login for event in events if event.change == "added"}
    found = (RefusedLabel(label, setters.get(label.casefold(), "")) for label in labels if is_steering(label))
    return tuple(each for each in found if not is_trusted(each.by))


def approved_at(
    events: Iterable[LabelEvent], is_trusted: IsTrusted, *, added: str = "", removed: str = ""
) -> datetime | None:
    """Return when someone who may decide so last added or removed a label, having read the text. Pure."""
    wanted = {("added", added), ("removed", removed)}
    found = (each for each in events if (each.change, each.label.casefold()) in wanted and is_trusted(each.login))
    return max((each.at for each in found), default=None)


def go_ahead_in(
    events: Iterable[LabelEvent], is_trusted: IsTrusted, *, since: datetime | None = None
) -> LabelEvent | None:
    """Return the last event by which a person who may decide so removed the label that stops loops. Pure.

    Only accounts that removed it are asked for.
    """
    late = [each for each in events if since is None or each.at >= since]
    found = (each for each in reversed(late) if (each.change, each.label.casefold()) == ("removed", NEEDS_HUMAN))
    return next((each for each in found if not each.is_bot and is_trusted(each.login)), None)


def read_refused_labels(
    github: GitHub, number: int, labels: Iterable[str], identity: Callable[[], Identity]
) -> tuple[RefusedLabel, ...]:
    """Read who set the labels that start or steer work; no request without one."""
    steering = [label for label in labels if is_steering(label)]
    events = github.label_events(number) if steering else ()
    return refused_labels(steering, events, lambda login: github.is_trusted(login, identity))


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
    github: GitHub,
    as_of: datetime | None,
    identity: Callable[[], Identity],
    number: int,
    updated_at: datetime | None = None,
) -> Finding | None:
    """Return why the text of an issue or pull request is not the one of that time; None if it may be handed over.

    One request, none for one that was not updated since, and one for each account that changed it.
    """
    if as_of is None or (updated_at is not None and updated_at < as_of):
        return None
    changes = github.text_changes(number, as_of)
    change = refused_change(changes, as_of, lambda login: github.is_trusted(login, identity))
    return text_refusal(number, change, as_of) if change else None


def require_text(github: GitHub, as_of: datetime | None, identity: Callable[[], Identity], issue: Issue) -> None:
    """Raise BrokenContract where the text of an issue or pull request is not the one of that time."""
    if refusal := check_text(github, as_of, identity, issue.number, issue.updated_at):
        raise BrokenContract.of(refusal)
