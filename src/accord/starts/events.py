"""Read the event of a workflow: of its texts only commands, boxes, and names of labels and accounts are kept. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from accord.core.clock import parse_timestamp
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding
from accord.starts.models import StartEvent, Trigger, key_of
from accord.starts.status import ticks_between

_BLANK = r"[^\S\r\n]|[\u200b\u2060\ufeff]"
_COMMAND = re.compile(
    rf"(?i:/accord)(?:(?:{_BLANK})+([A-Za-z]{{1,20}})(?=[.,;:!?]*(?:{_BLANK}|[\r\n]|\Z))|(?={_BLANK}|[\r\n]|\Z))"
)
"""A command may be followed by punctuation, and the blanks that phones and word processors write count."""

_MORE = re.compile(rf"(?:{_BLANK})+\w")
_NAMED = re.compile(rf"(?:{_BLANK})+#([1-9][0-9]{{0,14}})(?![\w-])")

_SHA = re.compile(r"[0-9a-f]{40,64}")
_LABEL_CHARS = 50
"""GitHub's limit for the name of a label."""

_FIRST_YEAR, _LAST_YEAR = 1970, 9999


def read_command(body: str) -> dict[str, Any] | None:
    """Return ``word``, ``named`` and ``has_more_words`` of a comment that begins with ``/accord``; None for others."""
    found = _COMMAND.match(body)
    if found is None or not found[1]:
        return None if found is None else {"word": ""}
    named = _NAMED.match(body, found.end())
    more = _MORE.match(body, (named or found).end())
    return {"word": found[1].lower(), "named": int(named[1]) if named else 0, "has_more_words": bool(more)}


def read_event(name: str, payload: Mapping[str, Any]) -> StartEvent | None:
    """Return the event; None for one that starts nothing whatever the configuration says.

    Its key comes from the payload alone, so every delivery and every re-run of a job has the same. Raises
    BrokenContract for a payload that GitHub does not send.
    """
    reader = _READERS.get((name, str(payload.get("action") or "")))
    return reader(payload) if reader else None


def _value(payload: Mapping[str, Any], place: str, *types: type) -> Any:
    value: Any = payload
    for key in place.split("/")[1:]:
        value = value.get(key) if isinstance(value, dict) else None
    if type(value) not in types:
        raise _broken_event(place)
    return value


def _broken_event(place: str) -> BrokenContract:
    message = f"The payload is not as GitHub documents it at `{place}`."
    hint = "Set `GITHUB_EVENT_PATH` to the file of the runner."
    return BrokenContract.of(Finding("schema", message, place, hint=hint))


def _number(payload: Mapping[str, Any], place: str) -> int:
    number: int = _value(payload, place, int)
    if not 0 < number < 2**53:
        raise _broken_event(place)
    return number


def _time(payload: Mapping[str, Any], place: str) -> datetime:
    value = _value(payload, place, str, int)
    try:
        at = datetime.fromtimestamp(value, UTC) if isinstance(value, int) else parse_timestamp(value)
    except (ValueError, OverflowError, OSError):
        raise _broken_event(place) from None
    if not _FIRST_YEAR <= at.year < _LAST_YEAR:
        raise _broken_event(place)
    return at


def check_repository(payload: Mapping[str, Any], repository: str) -> None:
    """Raise WrongUsage for an event of another repository, where its numbers name other issues."""
    origin = payload.get("repository")
    name = str(origin.get("full_name") or "") if isinstance(origin, dict) else ""
    if name.lower() != repository.lower():
        where = f"comes from {name[:140]}" if name else "names no repository"
        raise WrongUsage(f"The event {where}, not {repository}.", hint="Pass `--repo` with the event's repository.")


def _sender(payload: Mapping[str, Any]) -> dict[str, Any]:
    login = _value(payload, "/sender/login", str)
    return {"sender": login, "is_bot": payload["sender"].get("type") == "Bot" or login.lower().endswith("[bot]")}


def _comment(payload: Mapping[str, Any]) -> StartEvent | None:
    command = read_command(_value(payload, "/comment/body", str, type(None)) or "")
    if command is None:
        return None
    number, comment = _number(payload, "/issue/number"), _number(payload, "/comment/id")
    return StartEvent(
        Trigger.COMMENT,
        key_of("comment", comment),
        _time(payload, "/comment/created_at"),
        **_sender(payload),
        number=number,
        is_pull="pull_request" in payload["issue"],
        comment_id=comment,
        **command,
    )


def _of_issue(payload: Mapping[str, Any], trigger: Trigger, name: str, **more: Any) -> StartEvent:
    word = _value(payload, "/label/name", str)[:_LABEL_CHARS] if trigger is Trigger.LABEL else ""
    number, at = _number(payload, "/issue/number"), _time(payload, "/issue/updated_at")
    key = key_of(name, number, *filter(None, [word]), payload["issue"]["updated_at"])
    return StartEvent(trigger, key, at, **_sender(payload), number=number, word=word, **more)


def _edit_event(payload: Mapping[str, Any]) -> StartEvent | None:
    before, after = (_value(payload, place, str, type(None)) or "" for place in ("/changes/body/from", "/issue/body"))
    ticks = ticks_between(before, after)
    return _of_issue(payload, Trigger.DASHBOARD, "edited", ticks=ticks) if ticks else None


def _pull(payload: Mapping[str, Any], trigger: Trigger) -> StartEvent:
    """Return an event of a pull request. All but labels are one start for each head."""
    number, head = _number(payload, "/pull_request/number"), _value(payload, "/pull_request/head/sha", str)
    at, pull = _time(payload, "/pull_request/updated_at"), payload["pull_request"]
    label = _value(payload, "/label/name", str)[:_LABEL_CHARS] if trigger is Trigger.LABEL else ""
    origin = pull["head"].get("repo")
    home = origin.get("full_name") if isinstance(origin, dict) else None
    return StartEvent(
        trigger,
        key_of("label", number, label, pull["updated_at"]) if label else pull_key(number, head),
        at,
        **_sender(payload),
        number=number,
        is_pull=True,
        word=label,
        head=head,
        is_fork=home != _value(payload, "/repository/full_name", str),
        is_draft=bool(pull.get("draft")),
    )


def _merge(payload: Mapping[str, Any]) -> StartEvent | None:
    pull = _value(payload, "/pull_request", dict)
    is_default = _value(payload, "/pull_request/base/ref", str) == _value(payload, "/repository/default_branch", str)
    if is_default or not pull.get("merged"):  # GitHub closes the items of merges into the default branch
        return None
    event = _pull(payload, Trigger.MERGED)
    return replace(event, key=key_of("merged", event.number), at=_time(payload, "/pull_request/merged_at"))


def pull_key(number: int, head: str) -> str:
    """Return the key of a review that starts by itself: one for each head of a pull request."""
    return key_of("pull", number, head)


def _push(payload: Mapping[str, Any]) -> StartEvent | None:
    before, after = _value(payload, "/before", str), _value(payload, "/after", str)
    default = f"refs/heads/{_value(payload, '/repository/default_branch', str)}"
    has_ends = all(_SHA.fullmatch(sha) and sha.strip("0") for sha in (before, after))
    if _value(payload, "/ref", str) != default or not has_ends:
        return None
    at = _time(payload, "/repository/pushed_at")
    return StartEvent(Trigger.SPECS, key_of("push", after), at, **_sender(payload), before=before, head=after)


_READERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], StartEvent | None]] = {
    ("issue_comment", "created"): _comment,
    ("issues", "labeled"): partial(_of_issue, trigger=Trigger.LABEL, name="label"),
    ("issues", "edited"): _edit_event,
    ("issues", "closed"): partial(_of_issue, trigger=Trigger.CLOSED, name="closed"),
    ("push", ""): _push,
    ("pull_request", "labeled"): partial(_pull, trigger=Trigger.LABEL),
    ("pull_request", "opened"): partial(_pull, trigger=Trigger.PULL),
    ("pull_request", "ready_for_review"): partial(_pull, trigger=Trigger.PULL),
    ("pull_request", "review_requested"): partial(_pull, trigger=Trigger.REVIEW_REQUEST),
    ("pull_request", "closed"): _merge,
}
