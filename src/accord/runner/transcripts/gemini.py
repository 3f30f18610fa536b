"""``gemini --output-format stream-json`` and ``json``: events a line, or one document over many lines.

The message comes in pieces, and after a retry in mid-answer it comes again from its start. In ``json`` mode a failure
leaves stdout empty; the document with the error is the end of stderr.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from accord.runner.transcripts.account import AgentCommand, FileChange, Todo, Usage
from accord.runner.transcripts.events import (
    Began,
    Changed,
    Counted,
    Denied,
    Event,
    Failed,
    Noted,
    Planned,
    Ran,
    Said,
    Succeeded,
    Unread,
    Worked,
)
from accord.runner.transcripts.lines import (
    MAX_LINE_BYTES,
    LongLine,
    events_in,
    integer_of,
    object_of,
    objects_of,
    parsed,
    status_of,
    text_of,
)
from accord.runner.transcripts.wording import cut, error_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

INVALID_STREAM = "invalid-stream"
"""Our word for a failed result without an error: the model's answer was empty, broken or blocked."""

_WRITERS = {"write_file": "add", "replace": "update", "edit": "update"}
_API_ERROR = re.compile(r"\[API Error: (.*?)\](?:\n.*)?", re.DOTALL)
_NOT_ALLOWED = re.compile(r"tool_not_registered|denied|not_allowed|policy", re.IGNORECASE)
_OWN_TOOLS = frozenset({"run_shell_command", "write_file", "replace", "edit", "read_file", "web_fetch", "write_todos"})
_EXIT_CODE = re.compile(r"(?:Command exited with code|Exit Code): (\d{1,3})\b")
_MOST_PENDING = 500
_MOST_KEPT = 4_000
_MOST_CHARS = 1_000_000
_SHORTEST_REPEAT = 5
_WORKED = Worked()


def is_gemini(event: dict[str, Any]) -> bool:
    """Tell whether an object is an event of Gemini CLI."""
    kind = text_of(event, "type")
    wanted = {"init": "session_id", "message": "role", "tool_use": "tool_name", "tool_result": "tool_id"}
    if kind == "result":
        return "status" in event
    if kind == "error":
        return "severity" in event
    return kind in wanted and wanted[kind] in event


def is_document(value: Any) -> bool:
    """Tell whether a value is the one document of ``json`` mode."""
    if not isinstance(value, dict) or "type" in value:
        return False
    has_answer = isinstance(value.get("response"), str) and isinstance(value.get("stats"), dict)
    return has_answer or ("session_id" in value and isinstance(value.get("error"), dict))


class _Session:
    """What later lines refer to: an open document, pieces of the message, tools that run, the last reported error."""

    def __init__(self) -> None:
        self.document = bytearray()
        self.pieces: list[str] = []
        self.length = 0
        self.pending: dict[str, tuple[str, str, str]] = {}
        self.reported = ""


def gemini_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield what happens in the lines of a transcript."""
    session = _Session()
    for line in lines:
        if whole := _collected(session.document, line):
            if is_document(value := parsed(whole)):
                yield from document_events(value)
        elif not session.document:
            for event in events_in(line):
                if is_gemini(event):
                    if isinstance(line, LongLine):
                        yield Unread()
                    yield from _event(event, session, line)
                elif is_document(event):
                    yield from document_events(event)
    yield from _told(session)


def _collected(document: bytearray, line: bytes) -> bytes:
    """Add a line to a document, which starts and ends with a brace on a line of its own; return it when it is whole."""
    if document and (line.startswith(b"{") or len(document) + len(line) > MAX_LINE_BYTES):
        document.clear()
    if document or line.rstrip() == b"{":
        document += line
    if not document or line.rstrip() != b"}":
        return b""
    whole = bytes(document)
    document.clear()
    return whole


def document_events(document: dict[str, Any]) -> Iterator[Event]:
    """Yield what the one document of ``json`` mode tells."""
    yield Began()
    error = object_of(document, "error")
    models = object_of(object_of(document, "stats"), "models")
    tokens = [object_of(object_of(models, name), "tokens") for name in models]
    if tokens:
        spent = [sum(integer_of(entry, key) or 0 for entry in tokens) for key in ("prompt", "candidates")]
        yield Counted(Usage(*spent), max(models, key=lambda name: _written(models, name)))
    if error:
        told = error_from(text_of(error, "message"), _error_line(error), status=status_of(error, "code"))
        yield Failed(told)
    else:
        yield Succeeded(text_of(document, "response"))


def _written(models: dict[str, Any], name: str) -> int:
    return integer_of(object_of(object_of(models, name), "tokens"), "candidates") or 0


def _error_line(error: dict[str, Any]) -> str:
    return f'"code": {status_of(error, "code")}, "message": {text_of(error, "message")}'


def _event(event: dict[str, Any], session: _Session, line: bytes) -> Iterator[Event]:
    kind = event["type"]
    if kind == "message":
        if event.get("role") == "assistant":
            yield from _piece(event, session)
    elif kind == "tool_use":
        yield from _started(event, session)
    elif kind == "tool_result":
        yield from _ended(event, session)
    elif kind == "error":
        message = text_of(event, "message")
        if event.get("severity") == "error":
            session.reported = message
        else:
            yield Noted(f"The agent's CLI warned: {cut(message, 300)}")
    elif kind == "result":
        yield from _told(session)
        yield from _result(event, session, line)
    else:
        yield Began(text_of(event, "model"))


def _piece(event: dict[str, Any], session: _Session) -> Iterator[Event]:
    yield _WORKED
    session.reported = ""
    content = text_of(event, "content")
    if event.get("delta") is not True:
        session.pieces, session.length = [], 0
    if session.length + len(content) <= _MOST_CHARS:
        session.pieces.append(content)
        session.length += len(content)


def _told(session: _Session) -> Iterator[Event]:
    if session.pieces:
        yield Said(without_repeats(session.pieces))
        session.pieces, session.length = [], 0


def without_repeats(pieces: list[str]) -> str:
    """Join the pieces of a message; where they begin anew, as they do after a retry, only the last beginning counts."""
    text = "".join(pieces)
    start = position = 0
    for piece in pieces[:-1]:
        position += len(piece)
        length = position - start
        begins = text.startswith(text[start : start + _SHORTEST_REPEAT], position)
        if length >= _SHORTEST_REPEAT and begins and text.startswith(text[start:position], position):
            start = position
    return text[start:]


def _started(event: dict[str, Any], session: _Session) -> Iterator[Event]:
    session.pieces, session.length, session.reported = [], 0, ""
    yield Said("")
    yield _WORKED
    name = text_of(event, "tool_name")
    given = object_of(event, "parameters")
    if name == "write_todos":
        todos = objects_of(given, "todos")
        yield Planned(tuple(Todo(text_of(todo, "description"), todo.get("status") == "completed") for todo in todos))
    if len(session.pending) < _MOST_PENDING:
        command, path = text_of(given, "command")[:_MOST_KEPT], text_of(given, "file_path")[:_MOST_KEPT]
        session.pending[text_of(event, "tool_id")] = (name, command, path)


def _ended(event: dict[str, Any], session: _Session) -> Iterator[Event]:
    session.pieces, session.length = [], 0
    yield _WORKED
    name, command, path = session.pending.pop(text_of(event, "tool_id"), ("", "", ""))
    is_failed = event.get("status") != "success"
    if is_failed and name in _OWN_TOOLS and _NOT_ALLOWED.search(text_of(object_of(event, "error"), "type")):
        yield Denied(name)
    elif name == "run_shell_command":
        output = text_of(event, "output")
        told = _EXIT_CODE.search(output)
        exit_code = int(told[1]) if told else None if is_failed else 0
        yield Ran(AgentCommand(command, exit_code, is_failed or bool(exit_code), output))
    elif name in _WRITERS:
        yield Changed((FileChange(path, _WRITERS[name]),), is_failed=is_failed)


def _result(event: dict[str, Any], session: _Session, line: bytes) -> Iterator[Event]:
    stats = object_of(event, "stats")
    usage = Usage(integer_of(stats, "input_tokens"), integer_of(stats, "output_tokens"))
    models = object_of(stats, "models")
    yield Counted(
        usage, max(models, key=lambda name: integer_of(object_of(models, name), "output_tokens") or 0, default="")
    )
    if event.get("status") == "success":
        yield Succeeded()
    elif error := object_of(event, "error"):
        kind = text_of(error, "type")
        told = _API_ERROR.fullmatch(message := text_of(error, "message"))
        yield Failed(error_from(told[1] if told else message, line, kind="" if kind == "unknown" else kind))
    else:
        yield Failed(error_from(session.reported, line, kind=INVALID_STREAM))
