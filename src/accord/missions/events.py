"""The log of a mission: what happened to its work packages, one JSON object a line, only ever added to.

The log is the truth about a work package's status. Reading it is a reduction that does not depend on the order of the
lines, so that git may merge two logs line by line. Source: mission contracts; the rules are accord's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.kernel.shapes import read_shape
from accord.kernel.store import is_json
from accord.missions.models import STATUSES, StatusEvent

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from accord.missions.models import Status

FILE = "status.events.jsonl"


@dataclass(frozen=True)
class Log:
    """What a log holds. ``latest`` is the event that counts for each work package.

    ``problems`` are lines that cannot be read, by the work package that they speak of; an empty key for those that
    do not even say that. They stop who asks for that work package, and nobody else. ``torn_at`` is the line that a
    crash cut off. What other tools log of the mission itself, objects without ``wp_id``, is none of our business.
    """

    events: tuple[StatusEvent, ...] = ()
    latest: dict[str, StatusEvent] = field(default_factory=dict)
    problems: dict[str, list[Finding]] = field(default_factory=dict)
    torn_at: int | None = None

    def need(self, wp_id: str) -> None:
        """Raise BrokenContract where a line that may speak of the work package cannot be read."""
        found = [*self.problems.get("", []), *self.problems.get(wp_id, [])]
        if found:
            raise BrokenContract(f"{FILE}, line {found[0].line}: {found[0].message}", findings=found)


def read_log(raw: bytes) -> Log:
    """Read a log. What stands after the last line break and is no JSON was cut off by a crash, and is no event."""
    *lines, tail = raw.split(b"\n")
    is_torn = bool(tail.strip()) and not is_json(tail)
    events: list[StatusEvent] = []
    problems: dict[str, list[Finding]] = {}
    for number, line in enumerate(lines if is_torn else [*lines, tail], start=1):
        if line.strip():
            _read_line(line, number, events, problems)
    distinct = _distinct(events)
    return Log(distinct, reduce_events(distinct), problems, len(lines) + 1 if is_torn else None)


def _read_line(line: bytes, number: int, events: list[StatusEvent], problems: dict[str, list[Finding]]) -> None:
    wp_id = ""
    try:
        value = json.loads(line)
        wp_id = str(value.get("wp_id", "")) if isinstance(value, dict) else ""
        if isinstance(value, dict) and "wp_id" not in value:
            return
        events.append(read_shape(StatusEvent, value))
    except (ValueError, RecursionError):
        message = "The line is no JSON object, so what happened is lost. Restore it from git, or remove it."
        problems.setdefault("", []).append(Finding("event-invalid", message, line=number))
    except BrokenContract as broken:
        message = f"The line is no event. {broken.findings[0].path}: {broken.findings[0].message}"
        problems.setdefault(wp_id, []).append(Finding("event-invalid", message, line=number))


def _distinct(events: Iterable[StatusEvent]) -> tuple[StatusEvent, ...]:
    """Keep one event of each id, in the order of time; of two that differ the same one whatever their order."""
    kept: dict[str, StatusEvent] = {}
    for event in events:
        other = kept.get(event.event_id)
        if other is None or _content(event) < _content(other):
            kept[event.event_id] = event
    return tuple(sorted(kept.values(), key=lambda event: (event.at, event.event_id)))


def _content(event: StatusEvent) -> str:
    return event.model_dump_json()


def reduce_events(events: Iterable[StatusEvent]) -> dict[str, StatusEvent]:
    """Tell which event counts for each work package; ``events`` are distinct and in the order of time.

    A review that sends work back beats another event of the same moment that does not go on from there.
    """
    latest: dict[str, StatusEvent] = {}
    for event in events:
        before = latest.get(event.wp_id)
        if before and before.at == event.at and is_rollback(before) and event.from_lane != before.to_lane:
            continue
        latest[event.wp_id] = event
    return latest


def is_rollback(event: StatusEvent) -> bool:
    """Tell whether an event is a review that sends work back."""
    return event.from_lane in ("for_review", "in_review") and event.to_lane == "in_progress" and bool(event.review_ref)


def current_status(log: Log, wp_id: str, written: str) -> Status:
    """Tell where a work package is: by the log, else by ``written``, the status in its file in old missions."""
    event = log.latest.get(wp_id)
    if event:
        return event.to_lane
    status = "in_progress" if written == "doing" else written
    return next((known for known in STATUSES if known == status), "planned")


def log_path(folder: Path) -> Path:
    """Say where the log of a mission is."""
    return folder / FILE
