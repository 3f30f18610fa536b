"""The log of a mission: which of its lines are events, and which event counts for each work package.

Other tools write other lines into the log, too. A line that is not an event stays in the file and hides only itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.core.shapes import read_shape
from accord.core.suggest import did_you_mean
from accord.files.store import OF_ARRAY, is_cut_off, is_of_array
from accord.missions.models import STATUSES, StatusEvent, WorkPackageStatus, as_status

FILE = "status.events.jsonl"


class Log(Frozen):
    """The events of a mission, and the lines that are not events."""

    events: tuple[StatusEvent, ...] = ()
    latest: dict[str, StatusEvent] = field(default_factory=dict)  # the event that counts for each work package
    # lines that cannot be read, by the work package that they name, which does not move then; else by an empty key
    problems: dict[str, list[Finding]] = field(default_factory=dict)
    torn_at: int | None = None  # the line that a crash cut off
    others: dict[str, list[int]] = field(default_factory=dict)  # lines of other tools by their kind
    lines: dict[tuple[str, str], int] = field(default_factory=dict)  # the line of each event, by work package and id

    @cached_property
    def by_work_package(self) -> dict[str, list[StatusEvent]]:
        """The events of each work package, in the order of time."""
        found: dict[str, list[StatusEvent]] = {}
        for event in self.events:
            found.setdefault(event.wp_id, []).append(event)
        return found

    def check_readable(self, wp_id: str) -> None:
        """Raise BrokenContract where a line that names the work package cannot be read: what it says is unknown."""
        if found := self.problems.get(wp_id):
            raise BrokenContract(f"{FILE}, line {found[0].line}: {found[0].message}", findings=found)

    @property
    def note(self) -> str:
        """One sentence about all lines of other tools; empty without any."""
        count = sum(map(len, self.others.values()))
        kinds = ", ".join(short_name(kind or "no kind") for kind in sorted(self.others))
        verb = "line counts" if count == 1 else "lines count"
        return f"{count} {verb} for no status in {FILE}: {kinds}." if count else ""


_KINDS = ("kind", "type", "event_type", "event_name")
_LANES = ("from_lane", "to_lane")
_WP_ID = re.compile(rb'"wp_id"\s*:\s*"(WP[0-9]{2,})"')
_DAMAGED = "The line is not a JSON object.", "Restore it from git, or remove it."
_GLUED = "The line has more than one event.", "Put each event on its own line, and restore damaged ones from git."


def read_log(raw: bytes) -> Log:
    """Read a log. Text after the last line break that is not JSON was cut off by a crash, and is not an event."""
    *lines, tail = raw.split(b"\n")
    is_torn = bool(tail) and is_cut_off(tail)
    events: dict[tuple[str, str], StatusEvent] = {}
    places: dict[tuple[str, str], int] = {}
    first_lines: dict[str, tuple[int, StatusEvent]] = {}
    problems: dict[str, list[Finding]] = {}
    others: dict[str, list[int]] = {}
    for number, line in enumerate(lines if is_torn else [*lines, tail], start=1):
        read = _read_line(line, number) if line.strip() else None
        if isinstance(read, StatusEvent):
            line_before, before = first_lines.setdefault(read.event_id, (number, read))
            if before is not read and before != read:
                message = f"The line has the `event_id` of line {line_before}, but says something else."
                hint = f"Give one of them another `event_id`, or remove the wrong line about {read.wp_id}."
                again = Finding("event-id-repeated", message, "/event_id", line=number, hint=hint)
                problems.setdefault(read.wp_id if read.wp_id == before.wp_id else "", []).append(again)
            # an id counts once for a work package; of two that differ always the same one
            places.setdefault((read.wp_id, read.event_id), number)
            known = events.setdefault((read.wp_id, read.event_id), read)
            if known is not read:
                events[read.wp_id, read.event_id] = min(read, known, key=repr)
        elif isinstance(read, str):
            others.setdefault(read, []).append(number)
        elif read:
            for wp_id in read[0]:
                problems.setdefault(wp_id, []).append(read[1])
    ordered = tuple(sorted(events.values(), key=lambda event: (event.at, event.event_id)))
    return Log(ordered, _latest(ordered), problems, len(lines) + 1 if is_torn else None, others, places)


def read_mission_log(folder: Path, mission_id: str) -> Log:
    """Read the log of a mission, and mark the events of another: only older names of this one come before its name."""
    if not log_path(folder).is_file():
        return Log()
    log, slug = read_log(log_path(folder).read_bytes()), folder.name
    names = [event.mission_slug for event in log.events]
    older = names[: names.index(slug)] if slug in names else names
    own = {"", slug, *(name for name in dict.fromkeys(older) if not os.path.isdir(folder.parent / name))}

    def with_mark(event: StatusEvent) -> StatusEvent:
        is_own = event.mission_slug in own or (mission_id and (event.model_extra or {}).get("mission_id") == mission_id)
        return event if is_own else event.model_copy(update={"is_foreign": True})

    return replace(log, events=tuple(map(with_mark, log.events)))


def _read_line(line: bytes, number: int) -> StatusEvent | str | tuple[list[str], Finding]:
    """Return the event of a line; or the kind of a line about something else; or work packages and their problem."""
    try:
        value = json.loads(line)
        if not isinstance(value, dict):
            raise ValueError
    except (ValueError, RecursionError):
        named = [name.decode() for name in _WP_ID.findall(line)]
        message, hint = OF_ARRAY if is_of_array(line) else _GLUED if len(named) > 1 else _DAMAGED
        return [*dict.fromkeys(named or [""])], Finding("event-invalid", message, line=number, hint=hint)
    kind = next((text for name in _KINDS if isinstance(text := value.get(name), str) and text), "")
    is_known = "event_type" in value or kind == "annotation" or kind.lower().startswith("retrospective")
    if is_known or not any(name in value for name in _LANES):
        return kind
    try:
        if value.get("kind"):
            message = f"`{short_name(str(value['kind']))}` is not a kind of event with statuses."
            raise BrokenContract.of(Finding("event-invalid", message, "/kind", hint="Correct or remove the line."))
        return read_shape(StatusEvent, value)
    except BrokenContract as broken:
        first, wp_id = broken.findings[0], value.get("wp_id")
        message = f"The line is not an event. {first.path}: {first.message}"
        found = Finding("event-invalid", message, line=number, hint=first.hint)
        return [wp_id if isinstance(wp_id, str) else ""], found


def _latest(events: Iterable[StatusEvent]) -> dict[str, StatusEvent]:
    latest: dict[str, StatusEvent] = {}
    for event in events:
        before = latest.get(event.wp_id)
        is_back = before and before.to_lane == "in_progress" and before.from_lane in ("for_review", "in_review")
        is_rollback = before and is_back and (before.from_lane == "in_review" or before.review_ref)
        if not (before and is_rollback and before.at == event.at and event.from_lane != before.to_lane):
            latest[event.wp_id] = event
    return latest


def current_status(log: Log, wp_id: str, written: str) -> WorkPackageStatus:
    """Return the status of a work package by the log, else by ``written``, the status in its file in old missions.

    Raises BrokenContract ``status-unknown`` where that is not a status.
    """
    if wp_id in log.latest:
        return log.latest[wp_id].to_lane
    status = as_status(written or "planned")
    if found := next((known for known in STATUSES if known == status), None):
        return found
    hint = did_you_mean(written, STATUSES) or f"Statuses: {', '.join(STATUSES)}."
    message = f"The log has no event of {wp_id}, and its file has the unknown status `{short_name(written)}`."
    raise BrokenContract.of(Finding("status-unknown", message, "/lane", hint=hint))


def log_path(folder: Path) -> Path:
    """Return the path of a mission's log."""
    return folder / FILE
