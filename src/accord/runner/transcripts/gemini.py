"""``gemini --output-format stream-json`` and ``json``: events a line, or one document over many lines.

The message is streamed in pieces; after a retry within an answer it starts again. In ``json`` mode a failure leaves
stdout empty, and the document with the error is at the end of stderr.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from accord.runner.transcripts import events
from accord.runner.transcripts.lines import (
    MAX_LINE_BYTES,
    LongLine,
    events_in,
    integer_of,
    json_value,
    object_of,
    objects_of,
    status_of,
    text_of,
)
from accord.runner.transcripts.wording import cut, error_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.runner.transcripts.events import Event

INVALID_STREAM = "invalid-stream"
"""accord's class for a failed result without an error: the answer was empty, invalid or blocked."""

_FIELDS = {
    "init": "session_id", "message": "role", "tool_use": "tool_name", "tool_result": "tool_id", "result": "status",
    "error": "severity",
}  # fmt: skip
_WRITERS = {"write_file": "add", "replace": "update", "edit": "update"}
_API_ERROR = re.compile(r"\A\[API Error: (.*?)\](?:\n.*)?", re.DOTALL)
_NOT_ALLOWED = re.compile(r"tool_not_registered|denied|not_allowed|policy", re.IGNORECASE)
_WAITED_FOR = frozenset({"run_shell_command", "read_file", "web_fetch", *_WRITERS})
_EXIT_CODE = re.compile(r"(?:Command exited with code|Exit Code): (\d{1,3})\b")
_MOST_PENDING = 500
_MOST_KEPT = 4_000
_MOST_CHARS = 1_000_000
_SHORTEST_REPEAT = 5
_PIECE_BEGIN = b'{"type":"message"'
_PIECE_END = b',"delta":true}\n'
_ASSISTANT = b'"role":"assistant"'
_LONGEST_PIECE = 4_096
_PARSED_TOGETHER = 200
_EXIT_CODE_WITHIN = 2_000
_TRUNCATED = re.compile(r"\btruncated\b.{0,80}\btoken|MAX_TOKENS", re.IGNORECASE)
_CUT = events.WarningReported("The message was cut at the limit of output tokens.")
_WORKED = events.AgentWorked()
_SILENT = events.MessageUpdated("")


def is_gemini(event: dict[str, Any]) -> bool:
    """Return whether an object is an event of Gemini CLI."""
    return _FIELDS.get(text_of(event, "type")) in event


def is_document(value: Any) -> bool:
    """Return whether a value is the document of ``json`` mode."""
    if not isinstance(value, dict) or "type" in value:
        return False
    has_answer = isinstance(value.get("response"), str) and isinstance(value.get("stats"), dict)
    return has_answer or ("session_id" in value and isinstance(value.get("error"), dict))


class _GeminiSession:
    """State for later lines: an open document, pieces of the message, running tools, the last reported error.

    ``unparsed`` are lines with the next pieces: they are parsed together, and not at all if the message is replaced.
    """

    def __init__(self) -> None:
        self.document = bytearray()
        self.unparsed: list[bytes] = []
        self.pieces: list[str] = []
        self.length = 0
        self.pending: dict[str, tuple[str, dict[str, str]]] = {}
        self.reported = ""


def gemini_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events in the lines of a transcript."""
    session = _GeminiSession()
    is_streaming = False
    for line in lines:
        if is_streaming and _is_piece(line):
            _add_unparsed(line, session)
        else:
            is_streaming = False
            for event in _events_of(line, session):
                yield event
                is_streaming = event is _WORKED and _is_piece(line)
    yield from _message_events(session)


def _events_of(line: bytes, session: _GeminiSession) -> Iterator[Event]:
    is_event = line.startswith(b'{"') and not session.document
    if whole := b"" if is_event else _add_to_document(session.document, line):
        if is_document(value := json_value(whole)):
            yield from document_events(value)
    elif not session.document:
        for event in events_in(line):
            if is_gemini(event):
                if isinstance(line, LongLine):
                    yield events.EventTruncated()
                yield from _event(event, session, line)
            elif is_document(event):
                yield from document_events(event)


def _command(command: str, event: dict[str, Any]) -> events.AgentCommand:
    is_failed = event.get("status") != "success"
    output = text_of(event, "output")
    code = _EXIT_CODE.search(output[-_EXIT_CODE_WITHIN:])
    exit_code = int(code[1]) if code else None if is_failed else 0
    return events.AgentCommand(command, exit_code, is_failed or bool(exit_code), output)


def _is_piece(line: bytes) -> bool:
    """Return whether a line is a piece of a message, without parsing it: quotes in texts are escaped."""
    is_whole = line.endswith(_PIECE_END) and len(line) <= _LONGEST_PIECE
    return is_whole and line.startswith(_PIECE_BEGIN) and _ASSISTANT in line


def _add_unparsed(line: bytes, session: _GeminiSession) -> None:
    """Keep a line with a piece of the message, up to the limit of the message."""
    session.reported = ""
    if session.length <= _MOST_CHARS:
        session.unparsed.append(line)
        if len(session.unparsed) >= _PARSED_TOGETHER:
            _parse_pieces(session)


def _parse_pieces(session: _GeminiSession) -> None:
    """Parse the lines that were kept, all at once or, if one of them is broken, one by one."""
    kept, session.unparsed = session.unparsed, []
    found = events_in(b"[" + b",".join(kept) + b"]") if kept else []
    if len(found) != len(kept):
        found = [event for line in kept for event in events_in(line)]
    for event in found:
        if event.get("role") == "assistant":
            _add_piece(text_of(event, "content"), session)


def _forget_message(session: _GeminiSession) -> None:
    session.unparsed, session.pieces, session.length, session.reported = [], [], 0, ""


def _add_to_document(document: bytearray, line: bytes) -> bytes:
    """Add a line to a document, which is delimited by lines with one brace; return the document when it is complete."""
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
    """Yield the events in the document of ``json`` mode."""
    yield events.RunStarted()
    error = object_of(document, "error")
    models = object_of(object_of(document, "stats"), "models")
    tokens = [object_of(object_of(models, name), "tokens") for name in models]
    if tokens:
        spent = [sum(integer_of(entry, key) or 0 for entry in tokens) for key in ("prompt", "candidates")]
        yield events.UsageReported(events.Usage(*spent), max(models, key=lambda name: _written(models, name)))
    if error:
        status = status_of(error, "code")
        line = f'"code": {status}, "message": {text_of(error, "message")}'
        yield events.RunFailed(error_from(text_of(error, "message"), line, status=status))
    else:
        yield from _cut_warning(document)
        yield events.RunSucceeded(text_of(document, "response"))


def _cut_warning(result: dict[str, Any]) -> Iterator[Event]:
    """Yield a warning if a result, or its statistics, names the limit of output tokens as the reason for its end."""
    holders = (result, object_of(result, "stats"))
    reasons = {text_of(holder, key) for holder in holders for key in ("finish_reason", "finishReason", "stop_reason")}
    if "MAX_TOKENS" in {reason.upper() for reason in reasons}:
        yield _CUT


def _written(models: dict[str, Any], name: str) -> int:
    return integer_of(object_of(object_of(models, name), "tokens"), "candidates") or 0


def _event(event: dict[str, Any], session: _GeminiSession, line: bytes) -> Iterator[Event]:
    kind = event["type"]
    if kind == "message":
        if event.get("role") == "assistant":
            yield _WORKED
            if event.get("delta") is not True:
                _forget_message(session)
            _parse_pieces(session)
            _add_piece(text_of(event, "content"), session)
    elif kind == "tool_use":
        yield from _tool_use_events(event, session)
    elif kind == "tool_result":
        yield from _tool_result_events(event, session)
    elif kind == "error":
        message = text_of(event, "message")
        if event.get("severity") == "error":
            session.reported = message
        elif _TRUNCATED.search(message[:_MOST_KEPT]):
            yield _CUT
        else:
            yield events.WarningReported(f"The agent's CLI warned: {cut(message, 300)}")
    elif kind == "result":
        yield from _message_events(session)
        yield from _result(event, session, line)
    else:
        yield events.RunStarted(text_of(event, "model"), text_of(event, "session_id"))


def _add_piece(piece: str, session: _GeminiSession) -> None:
    """Keep a piece of the message, up to a limit."""
    session.reported = ""
    if session.length <= _MOST_CHARS:
        session.pieces.append(piece)
        session.length += len(piece)


def _message_events(session: _GeminiSession) -> Iterator[Event]:
    _parse_pieces(session)
    if session.pieces:
        yield events.MessageUpdated(without_repeats(session.pieces))
        session.pieces, session.length = [], 0


def without_repeats(pieces: list[str]) -> str:
    """Join the pieces of a message; where they start again after a retry, only the last start counts."""
    text = "".join(pieces)
    start = position = 0
    for piece in pieces[:-1]:
        position += len(piece)
        length = position - start
        begins = text.startswith(text[start : start + _SHORTEST_REPEAT], position)
        if length >= _SHORTEST_REPEAT and begins and text.startswith(text[start:position], position):
            start = position
    return text[start:]


def _tool_use_events(event: dict[str, Any], session: _GeminiSession) -> Iterator[Event]:
    _forget_message(session)
    yield _SILENT
    name = text_of(event, "tool_name")
    given = object_of(event, "parameters")
    if name == "write_todos":
        todos = objects_of(given, "todos")
        yield events.TodosUpdated(
            tuple(events.Todo(text_of(todo, "description"), todo.get("status") == "completed") for todo in todos)
        )
    if name in _WAITED_FOR and len(session.pending) < _MOST_PENDING:
        kept = {key: text_of(given, key)[:_MOST_KEPT] for key in ("command", "file_path")}
        session.pending[text_of(event, "tool_id")] = (name, kept)


def _tool_result_events(event: dict[str, Any], session: _GeminiSession) -> Iterator[Event]:
    _forget_message(session)
    yield _WORKED
    name, given = session.pending.pop(text_of(event, "tool_id"), ("", {}))
    is_failed = event.get("status") != "success"
    if is_failed and name and _NOT_ALLOWED.search(text_of(object_of(event, "error"), "type")):
        yield events.ToolDenied(name)
    elif name == "run_shell_command":
        yield _command(given.get("command", ""), event)
    elif name in _WRITERS:
        yield events.FilesChanged((events.FileChange(given.get("file_path", ""), _WRITERS[name]),), is_failed=is_failed)


def _result(event: dict[str, Any], session: _GeminiSession, line: bytes) -> Iterator[Event]:
    stats = object_of(event, "stats")
    usage = events.Usage(integer_of(stats, "input_tokens"), integer_of(stats, "output_tokens"))
    models = object_of(stats, "models")
    yield events.UsageReported(
        usage, max(models, key=lambda name: integer_of(object_of(models, name), "output_tokens") or 0, default="")
    )
    if event.get("status") == "success":
        yield from _cut_warning(event)
        yield events.RunSucceeded()
    elif error := object_of(event, "error"):
        kind = text_of(error, "type")
        inner = _API_ERROR.fullmatch(message := text_of(error, "message"))
        yield events.RunFailed(error_from(inner[1] if inner else message, line, kind="" if kind == "unknown" else kind))
    else:
        yield events.RunFailed(error_from(session.reported, line, kind=INVALID_STREAM))
