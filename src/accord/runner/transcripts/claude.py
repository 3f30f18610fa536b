"""``claude -p`` with ``--output-format stream-json`` or ``json``: events a line, ended by one ``result``.

A failed request is a ``result`` of subtype ``success`` with ``is_error: true`` and the error's text as its result, so
only ``is_error`` counts. Classes and statuses are in ``assistant.error`` and ``result.api_error_status``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from accord.runner.transcripts import events
from accord.runner.transcripts.lines import (
    LongLine,
    events_in,
    integer_of,
    number_of,
    object_of,
    objects_of,
    status_of,
    text_of,
)
from accord.runner.transcripts.wording import bounded_delay, cut, error_from, evidence_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.runner.transcripts.events import Event

UNANSWERED = "no-http-answer"
"""accord's class for a request that failed without status and class: no answer, or not one of the API."""

NO_STRUCTURED_RESULT = "The agent returned no structured result although one was requested."

_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_PAIRED = _WRITERS | {"Bash", "TaskCreate", "TaskUpdate", "TodoWrite"}
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,3})\b")
_MOST_PENDING = 500
_MOST_KEPT = 4_000
_STREAMED = b'{"type":"stream_event",'
_WORKED = events.AgentWorked()


def is_claude(event: dict[str, Any]) -> bool:
    """Return whether an object is an event of Claude Code."""
    kind = text_of(event, "type")
    if kind == "result":
        return "is_error" in event or "subtype" in event
    if kind in {"assistant", "user"}:
        return isinstance(event.get("message"), dict)
    return kind == "stream_event" or (kind == "system" and "subtype" in event)


class _ClaudeSession:
    """State for later events: running tools, tasks by number, the class of the last error."""

    def __init__(self) -> None:
        self.pending: dict[str, tuple[str, dict[str, Any]]] = {}
        self.tasks: dict[str, events.Todo] = {}
        self.error = ""
        self.wants_result = False


def claude_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events in the lines of a transcript."""
    session = _ClaudeSession()
    for line in lines:
        if line.startswith(_STREAMED) and line.endswith(b"}\n"):
            yield _WORKED
            continue
        for event in events_in(line):
            if not is_claude(event):
                continue
            if isinstance(line, LongLine):
                yield events.EventTruncated()
            kind = event["type"]
            if kind == "assistant":
                yield from _assistant(event, session)
            elif kind == "user":
                yield from _user(event, session)
            elif kind == "result":
                yield from _result(event, session, line)
            elif kind == "stream_event":
                yield _WORKED
            else:
                yield from _system(event, session, line)


def _system(event: dict[str, Any], session: _ClaudeSession, line: bytes) -> Iterator[Event]:
    if event.get("subtype") == "init":
        tools = event.get("tools")
        session.wants_result = isinstance(tools, list) and "StructuredOutput" in tools
        yield events.RunStarted(text_of(event, "model"), text_of(event, "session_id"))
    elif event.get("subtype") == "api_retry":
        kind = text_of(event, "error")
        status = status_of(event, "error_status")
        delay = number_of(event, "retry_delay_ms")
        yield events.ErrorReported(
            events.AgentError(
                "",
                status=status,
                kind=UNANSWERED if kind == "unknown" and status is None else kind,
                backoff_seconds=bounded_delay(delay / 1000) if delay is not None else None,
                line=evidence_line(line),
            )
        )


def _assistant(event: dict[str, Any], session: _ClaudeSession) -> Iterator[Event]:
    message = object_of(event, "message")
    if message.get("model") == "<synthetic>":
        session.error = text_of(event, "error")
        return
    session.error = ""
    yield _WORKED
    for part in objects_of(message, "content"):
        name = text_of(part, "name")
        if part.get("type") == "tool_use" and name in _PAIRED and len(session.pending) < _MOST_PENDING:
            session.pending[text_of(part, "id")] = (name, _essential_input(object_of(part, "input")))


def _essential_input(given: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a tool's input that is needed with its result, without contents of files."""
    texts = ("command", "file_path", "notebook_path", "taskId", "status", "subject")
    kept: dict[str, Any] = {name: text_of(given, name)[:_MOST_KEPT] for name in texts if name in given}
    todos = [
        {name: text_of(todo, name)[:_MOST_KEPT] for name in ("content", "status")}
        for todo in objects_of(given, "todos")
    ]
    return {**kept, "todos": todos[:_MOST_PENDING]} if todos else kept


def _user(event: dict[str, Any], session: _ClaudeSession) -> Iterator[Event]:
    for part in objects_of(object_of(event, "message"), "content"):
        if part.get("type") != "tool_result":
            continue
        yield _WORKED
        name, given = session.pending.pop(text_of(part, "tool_use_id"), ("", {}))
        if name == "Bash":
            yield _command(given, part, event)
        elif name and part.get("is_error") is not True:
            yield from _tool_events(name, given, object_of(event, "tool_use_result"), session)


def _tool_events(name: str, given: dict[str, Any], result: dict[str, Any], session: _ClaudeSession) -> Iterator[Event]:
    if name in _WRITERS:
        path = text_of(given, "file_path") or text_of(given, "notebook_path")
        yield events.FilesChanged((events.FileChange(path, "add" if result.get("type") == "create" else "update"),))
    elif name == "TodoWrite":
        todos = objects_of(given, "todos")
        yield events.TodosUpdated(
            tuple(events.Todo(text_of(todo, "content"), todo.get("status") == "completed") for todo in todos)
        )
    elif name in {"TaskCreate", "TaskUpdate"}:
        _update_tasks(given, object_of(result, "task"), session)
        yield events.TodosUpdated(tuple(session.tasks.values()))


def _update_tasks(given: dict[str, Any], created: dict[str, Any], session: _ClaudeSession) -> None:
    number = text_of(created, "id") or text_of(given, "taskId")
    before = session.tasks.get(number, events.Todo("", is_done=False))
    subject = text_of(given, "subject") or before.text
    status = text_of(given, "status")
    if status == "deleted":
        session.tasks.pop(number, None)
    elif number in session.tasks or len(session.tasks) < _MOST_PENDING:
        session.tasks[number] = events.Todo(subject, status == "completed" if status else before.is_done)


def _command(given: dict[str, Any], part: dict[str, Any], event: dict[str, Any]) -> events.AgentCommand:
    output = text_of(part, "content") or "\n".join(text_of(piece, "text") for piece in objects_of(part, "content"))
    is_failed = part.get("is_error") is True
    code = _EXIT_CODE.match(output)
    exit_code = int(code[1]) if code and is_failed else None if is_failed else 0
    if object_of(event, "tool_use_result").get("interrupted") is True:
        exit_code, is_failed = None, True
    return events.AgentCommand(text_of(given, "command"), exit_code, is_failed, output)


def _result(event: dict[str, Any], session: _ClaudeSession, line: bytes) -> Iterator[Event]:
    yield events.UsageReported(_usage(event), _model(object_of(event, "modelUsage")))
    for denial in objects_of(event, "permission_denials"):
        yield events.ToolDenied(text_of(denial, "tool_name") or "a tool")
    if event.get("is_error") is not False:
        yield events.RunFailed(_error(event, session, line))
        return
    structured = event.get("structured_output")
    if session.wants_result and structured is None:
        yield events.WarningReported(NO_STRUCTURED_RESULT)
    if event.get("stop_reason") == "max_tokens":
        yield events.WarningReported("The message was cut at the limit of output tokens.")
    yield events.RunSucceeded(text_of(event, "result"), structured)


def _error(event: dict[str, Any], session: _ClaudeSession, line: bytes) -> events.AgentError:
    """Combine the result and the last assistant event: the most specific class, status and text."""
    errors = event.get("errors")
    texts = [text for text in errors if isinstance(text, str)] if isinstance(errors, list) else []
    status = status_of(event, "api_error_status")
    subtype = text_of(event, "subtype")
    kind = subtype if subtype not in {"", "success"} else session.error
    if event.get("terminal_reason") == "prompt_too_long" or event.get("stop_reason") == "refusal":
        kind = "prompt_too_long" if event.get("terminal_reason") == "prompt_too_long" else "refusal"
    if kind == "unknown" and status is None:
        kind = UNANSWERED
    message = text_of(event, "result") or cut("; ".join(texts), 1000)
    return error_from(message, line, status=status, kind=kind)


def _usage(event: dict[str, Any]) -> events.Usage:
    """Add up the tokens of a result. Anthropic counts cached input separately."""
    usage = object_of(event, "usage")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [count for count in (integer_of(usage, name) for name in names) if count is not None]
    return events.Usage(
        sum(counts) if counts else None, integer_of(usage, "output_tokens"), number_of(event, "total_cost_usd")
    )


def _model(usage: dict[str, Any]) -> str:
    """Return the model that wrote the most."""
    written = {name: integer_of(object_of(usage, name), "outputTokens") or 0 for name in usage}
    return max(written, key=lambda name: written[name], default="")
