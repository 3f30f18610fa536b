"""Read the event of a workflow: of its texts only a command, a label's name and names of accounts are kept. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from accord.core.clock import parse_timestamp
from accord.core.errors import WrongUsage
from accord.starts.models import StartEvent, Trigger, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_COMMAND = re.compile(r"/accord(?:[ \t]+([A-Za-z]{1,20}))?(?=\s|\Z)")
_SHA = re.compile(r"[0-9a-f]{40,64}")
_LABEL_CHARS = 50
"""GitHub's limit for the name of a label."""


def command_of(body: str) -> str | None:
    """Return the word after ``/accord`` at the beginning of a comment, "" without one; None for other comments."""
    found = _COMMAND.match(body)
    return None if found is None else (found[1] or "").lower()


def read_event(name: str, payload: Mapping[str, Any]) -> StartEvent | None:
    """Return the event; None for one that starts nothing whatever the configuration says.

    Its key comes from the payload alone, so every delivery and every re-run of a job has the same. Raises WrongUsage
    for a payload that GitHub does not send.
    """
    reader = _READERS.get((name, str(payload.get("action") or "")))
    try:
        return reader(payload) if reader else None
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        message = f"The payload of the event `{name}` is not as GitHub documents it ({type(error).__name__})."
        raise WrongUsage(message, hint="Set `GITHUB_EVENT_PATH` to the file of the runner.") from None


def check_repository(payload: Mapping[str, Any], repository: str) -> None:
    """Raise WrongUsage for an event of another repository, where its numbers name other issues."""
    origin = payload.get("repository")
    name = str(origin.get("full_name") or "") if isinstance(origin, dict) else ""
    if name.lower() != repository.lower():
        where = f"comes from {name[:140]}" if name else "names no repository"
        raise WrongUsage(f"The event {where}, not {repository}.", hint="Pass `--repo` with the event's repository.")


def _sender(payload: Mapping[str, Any]) -> dict[str, Any]:
    sender = payload["sender"]
    login = str(sender["login"])
    return {"sender": login, "is_bot": sender.get("type") == "Bot" or login.lower().endswith("[bot]")}


def _comment(payload: Mapping[str, Any]) -> StartEvent | None:
    comment, issue = payload["comment"], payload["issue"]
    word = command_of(comment["body"] or "")
    if word is None:
        return None
    return StartEvent(
        Trigger.COMMENT,
        key_of("comment", comment["id"]),
        parse_timestamp(comment["created_at"]),
        **_sender(payload),
        number=int(issue["number"]),
        is_pull="pull_request" in issue,
        word=word,
        comment_id=int(comment["id"]),
    )


def _issue_label(payload: Mapping[str, Any]) -> StartEvent:
    number, label = int(payload["issue"]["number"]), str(payload["label"]["name"])[:_LABEL_CHARS]
    changed = payload["issue"]["updated_at"]
    key, at = key_of("label", number, label, changed), parse_timestamp(changed)
    return StartEvent(Trigger.LABEL, key, at, **_sender(payload), number=number, word=label)


def _closed(payload: Mapping[str, Any]) -> StartEvent:
    number = int(payload["issue"]["number"])
    changed = payload["issue"]["updated_at"]
    return StartEvent(
        Trigger.CLOSED, key_of("closed", number, changed), parse_timestamp(changed), **_sender(payload), number=number
    )


def _pull(trigger: Trigger) -> Callable[[Mapping[str, Any]], StartEvent]:
    """Return a reader of events of pull requests. All but labels are one start for each head."""

    def read(payload: Mapping[str, Any]) -> StartEvent:
        pull = payload["pull_request"]
        number, head = int(pull["number"]), str(pull["head"]["sha"])
        label = str(payload["label"]["name"])[:_LABEL_CHARS] if trigger is Trigger.LABEL else ""
        home = (pull["head"].get("repo") or {}).get("full_name")
        return StartEvent(
            trigger,
            key_of("label", number, label, pull["updated_at"]) if label else pull_key(number, head),
            parse_timestamp(pull["updated_at"]),
            **_sender(payload),
            number=number,
            is_pull=True,
            word=label,
            head=head,
            is_fork=home != payload["repository"]["full_name"],
            is_draft=bool(pull.get("draft")),
        )

    return read


def pull_key(number: int, head: str) -> str:
    """Return the key of a review that starts by itself: one for each head of a pull request."""
    return key_of("pull", number, head)


def _push(payload: Mapping[str, Any]) -> StartEvent | None:
    before, after = str(payload["before"]), str(payload["after"])
    default = f"refs/heads/{payload['repository']['default_branch']}"
    has_ends = all(_SHA.fullmatch(sha) and sha.strip("0") for sha in (before, after))
    if payload["ref"] != default or not has_ends:
        return None
    pushed = payload["repository"]["pushed_at"]  # seconds in this event, a timestamp in others
    at = datetime.fromtimestamp(pushed, UTC) if isinstance(pushed, int) else parse_timestamp(pushed)
    return StartEvent(Trigger.SPECS, key_of("push", after), at, **_sender(payload), before=before, head=after)


_READERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], StartEvent | None]] = {
    ("issue_comment", "created"): _comment,
    ("issues", "labeled"): _issue_label,
    ("issues", "closed"): _closed,
    ("push", ""): _push,
    ("pull_request", "labeled"): _pull(Trigger.LABEL),
    ("pull_request", "opened"): _pull(Trigger.PULL),
    ("pull_request", "ready_for_review"): _pull(Trigger.PULL),
    ("pull_request", "review_requested"): _pull(Trigger.REVIEW_REQUEST),
}
