"""``codex exec --json``: one event a line, ended by ``turn.completed`` or ``turn.failed``.

``error`` events alone prove nothing: each retry prints one, even in runs that succeed. The final message is the last
``agent_message``, not the last item, as a to-do list is completed after it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from accord.runner.transcripts import events
from accord.runner.transcripts.lines import LongLine, events_in, integer_of, object_of, objects_of, text_of
from accord.runner.transcripts.wording import cut, error_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.runner.transcripts.events import Event

_TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
_ITEM_TYPES = frozenset({"item.started", "item.updated", "item.completed"})
_UNFINISHED = (b'{"type":"item.started"', b'{"type":"item.updated"')
_COMPLETED = b'{"type":"item.completed"'
_TYPE_WITHIN = 100
_WHOLE = (b"}\n", b"}\r\n", b"}")
_MAX_WAITING_BYTES = 16 * 1024
_WORKED = events.AgentWorked()


def is_codex(event: dict[str, Any]) -> bool:
    """Return whether an object is an event of codex."""
    kind = text_of(event, "type")
    if kind == "error":
        return "severity" not in event and isinstance(event.get("message"), str)
    return kind in _TYPES or kind in _ITEM_TYPES


def codex_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events in the lines of a transcript; of messages with nothing else between, only the last one."""
    message: bytes | None = None
    for line in lines:
        kind = _quick_kind(line)
        if kind == "message":
            message = line
        elif kind != "work" or message is None:
            if message is not None:
                yield events.DeferredEvent("message", partial(_events_of, message))
                message = None
            if kind == "work":
                yield _WORKED
            elif kind == "command":
                yield events.DeferredEvent("command", partial(_events_of, line))
            else:
                yield from _events_of(line)
    if message is not None:
        yield events.DeferredEvent("message", partial(_events_of, message))


def _quick_kind(line: bytes) -> Literal["message", "command", "work", ""]:
    """Return the kind of a line by its beginning, without parsing it; empty if it must be parsed."""
    if not line.endswith(_WHOLE) or len(line) > _MAX_WAITING_BYTES:
        return ""
    if not line.startswith(_COMPLETED):  # only to-do lists matter before they are completed
        return "work" if line.startswith(_UNFINISHED) and b'"todo_list"' not in line else ""
    if line.find(b'"type":"agent_message"', 0, _TYPE_WITHIN) > 0:
        return "message"
    if line.find(b'"type":"reasoning"', 0, _TYPE_WITHIN) > 0:
        return "work"
    is_command = line.find(b'"type":"command_execution"', 0, _TYPE_WITHIN) > 0
    return "command" if is_command and b'"status":"completed"' in line else ""  # failures are counted at once


def _events_of(line: bytes) -> Iterator[Event]:
    for event in events_in(line):
        if is_codex(event):
            if isinstance(line, LongLine):
                yield events.EventTruncated()
            yield from _event(event, line)


def _event(event: dict[str, Any], line: bytes) -> Iterator[Event]:
    kind = event["type"]
    if kind in _ITEM_TYPES:
        item = object_of(event, "item")
        yield _WORKED
        if kind == "item.completed" or item.get("type") == "todo_list":
            yield from _item_events(item)
    elif kind == "turn.completed":
        usage = object_of(event, "usage")
        yield events.UsageReported(events.Usage(integer_of(usage, "input_tokens"), integer_of(usage, "output_tokens")))
        yield events.RunSucceeded()
    elif kind == "turn.failed":
        yield events.RunFailed(error_from(text_of(object_of(event, "error"), "message"), line))
    elif kind == "error":
        yield events.ErrorReported(error_from(text_of(event, "message"), line))
    else:
        yield events.RunStarted(session=text_of(event, "thread_id"))


def _item_events(item: dict[str, Any]) -> Iterator[Event]:
    match item.get("type"):
        case "agent_message":
            yield events.MessageUpdated(text_of(item, "text"))
        case "command_execution":
            exit_code = integer_of(item, "exit_code")
            is_failed = text_of(item, "status") in {"failed", "declined"} or bool(exit_code)
            output = text_of(item, "aggregated_output")
            yield events.AgentCommand(text_of(item, "command"), exit_code, is_failed, output)
        case "file_change":
            changes = (events.FileChange(text_of(c, "path"), text_of(c, "kind")) for c in objects_of(item, "changes"))
            yield events.FilesChanged(tuple(changes), is_failed=item.get("status") == "failed")
        case "todo_list":
            todos = (events.Todo(text_of(t, "text"), t.get("completed") is True) for t in objects_of(item, "items"))
            yield events.TodosUpdated(tuple(todos))
        case "error":
            if message := text_of(item, "message"):
                yield events.WarningReported(f"The agent's CLI warned: {cut(message, 300)}")
