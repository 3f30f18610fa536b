"""A running agent as far as its output tells by now: its last event and its usage, for the line that shows it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accord.runner.transcripts import events
from accord.runner.transcripts.events import Usage
from accord.runner.transcripts.formats import FORMATS
from accord.runner.transcripts.lines import events_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.runner.transcripts.events import Event


@dataclass(frozen=True, slots=True)
class LiveRun:
    """``last`` is the last event in a few words, empty before the first; ``usage`` is what was last reported."""

    last: str = ""
    usage: Usage = field(default_factory=Usage)


def with_line(run: LiveRun, line: str) -> LiveRun:
    """Return the run after one more line of output; a line that is not an event changes nothing."""
    for event in _events(line.encode("utf-8", "replace")):
        if isinstance(event, events.UsageReported):
            run = replace(run, usage=event.usage)
        elif words := _words(event):
            run = replace(run, last=words)
    return run


def _events(line: bytes) -> Iterator[Event]:
    values = events_in(line)
    form = next((form for value in values for form in FORMATS.values() if form.is_event(value)), None)
    for event in form.events([line]) if form else ():
        if isinstance(event, events.DeferredEvent):
            yield from event.read()
        else:
            yield event


def _words(event: Event) -> str:
    match event:
        case events.RunStarted():
            return "started"
        case events.AgentWorked():
            return "at work"
        case events.AgentCommand(command):
            return f"command {command}"
        case events.FilesChanged(files):
            return f"changed {_paths(file.path for file in files)}"
        case events.MessageUpdated():
            return "message"
        case events.TodosUpdated(todos):
            return f"{sum(todo.is_done for todo in todos)} of {len(todos)} to-dos done"
        case events.ErrorReported(error) | events.RunFailed(error):
            return f"error {error.message}"
        case events.RunSucceeded():
            return "done"
    return ""


def _paths(paths: Iterable[str]) -> str:
    first, *others = [*paths, ""]
    more = len(others) - 1
    return f"{first} and {more} more" if more > 0 else first
