"""``gemini --output-format stream-json`` and ``json``: events a line, or one document over many lines.

The message is streamed in pieces; after a retry within an answer it starts again. In ``json`` mode a failure leaves
stdout empty, and the document with the error is at the end of stderr.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from accord.runner.transcripts.account import Account, FileChange, Todo, TranscriptReader, Usage
from accord.runner.transcripts.lines import cut, integer_of, object_of, objects_of, status_of, text_of
from accord.runner.transcripts.wording import error_from

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
_EXIT_CODE_WITHIN = 2_000
_TRUNCATED = re.compile(r"\btruncated\b.{0,80}\btoken|MAX_TOKENS", re.IGNORECASE)
_CUT = "The message was cut at the limit of output tokens."


class GeminiReader(TranscriptReader):
    """Reads the events of Gemini CLI; it keeps pieces of the message, running tools, and the last reported error."""

    codec = "gemini"
    exits: ClassVar[Mapping[int, str]] = {
        41: "credential", 42: "settings", 44: "settings", 52: "settings", 53: "turns", 55: "settings",
    }  # fmt: skip
    statuses: ClassVar[Mapping[int, int]] = {
        status % 256: status for status in (400, 401, 402, 403, 404, 429, 500, 502, 503, 504)
    }
    fails_on_stderr = True

    def __init__(self, agent: str) -> None:
        super().__init__(agent)
        self._pieces: list[str] = []
        self._length = 0
        self._pending: dict[str, tuple[str, dict[str, str]]] = {}
        self._reported = ""

    @staticmethod
    def is_event(event: dict[str, Any]) -> bool:
        """Return whether an object is an event of Gemini CLI, or the document of ``json`` mode."""
        if "type" in event:
            return _FIELDS.get(text_of(event, "type")) in event
        has_answer = isinstance(event.get("response"), str) and isinstance(event.get("stats"), dict)
        return has_answer or ("session_id" in event and isinstance(event.get("error"), dict))

    def take(self, event: dict[str, Any], line: bytes) -> None:
        """Take the next event, and its line."""
        match event.get("type"):
            case "message" if event.get("role") == "assistant":
                self.work()
                if event.get("delta") is not True:
                    self._pieces, self._length = [], 0
                self._reported = ""
                if self._length <= _MOST_CHARS:
                    self._pieces.append(piece := text_of(event, "content"))
                    self._length += len(piece)
            case "tool_use":
                self._take_tool_use(text_of(event, "tool_name"), object_of(event, "parameters"), event)
            case "tool_result":
                self._take_tool_result(event)
            case "error":
                self._take_error(text_of(event, "message"), text_of(event, "severity"), line)
            case "result":
                self._end_message()
                self._take_result(event, line)
            case "init":
                self.start(text_of(event, "model"), text_of(event, "session_id"))
            case None:
                self._take_document(event)

    def finish(self) -> Account:
        """Return the account at the end of the transcript."""
        self._end_message()
        return super().finish()

    def _end_message(self) -> None:
        if self._pieces:
            self.set_message(without_repeats(self._pieces))
            self._pieces, self._length = [], 0

    def _forget_message(self) -> None:
        self._pieces, self._length, self._reported = [], 0, ""

    def _take_tool_use(self, name: str, given: dict[str, Any], event: dict[str, Any]) -> None:
        self._forget_message()
        self.set_message("")
        if name == "write_todos":
            todos = objects_of(given, "todos")
            self.set_todos(Todo(text_of(todo, "description"), todo.get("status") == "completed") for todo in todos)
        if name in _WAITED_FOR and len(self._pending) < _MOST_PENDING:
            kept = {key: text_of(given, key)[:_MOST_KEPT] for key in ("command", "file_path")}
            self._pending[text_of(event, "tool_id")] = (name, kept)

    def _take_tool_result(self, event: dict[str, Any]) -> None:
        self._forget_message()
        self.work()
        name, given = self._pending.pop(text_of(event, "tool_id"), ("", {}))
        is_failed = event.get("status") != "success"
        if is_failed and name and _NOT_ALLOWED.search(text_of(object_of(event, "error"), "type")):
            self.deny(name)
        elif name == "run_shell_command":
            output = text_of(event, "output")
            code = _EXIT_CODE.search(output[-_EXIT_CODE_WITHIN:])
            exit_code = int(code[1]) if code else None if is_failed else 0
            self.add_command(given["command"], exit_code, output, is_failed=is_failed or bool(exit_code))
        elif name in _WRITERS:
            self.add_files([FileChange(given["file_path"], _WRITERS[name])], is_failed=is_failed)

    def _take_error(self, message: str, severity: str, line: bytes) -> None:
        if severity == "error":
            self._reported = message
            self._end_message()
            self.report_trouble(error_from(message, line))
        elif _TRUNCATED.search(message[:_MOST_KEPT]):
            self.warn(_CUT)
        else:
            self.warn(f"The agent's CLI warned: {cut(message, 300)}")

    def _take_result(self, event: dict[str, Any], line: bytes) -> None:
        stats = object_of(event, "stats")
        models = object_of(stats, "models")
        usage = Usage(integer_of(stats, "input_tokens"), integer_of(stats, "output_tokens"))
        written = {name: integer_of(object_of(models, name), "output_tokens") or 0 for name in models}
        self.set_usage(usage, written)
        if event.get("status") == "success" and self._reported:
            self.fail(error_from(self._reported, line))
        elif event.get("status") == "success":
            self._succeed(event)
        elif error := object_of(event, "error"):
            kind, message = text_of(error, "type"), text_of(error, "message")
            inner = _API_ERROR.fullmatch(message)
            kind = "" if kind == "unknown" else kind
            self.fail(error_from(inner[1] if inner else message, line, kind=kind))
        else:
            self.fail(error_from(self._reported, line, kind=INVALID_STREAM))

    def _take_document(self, document: dict[str, Any]) -> None:
        self.start()
        error = object_of(document, "error")
        models = object_of(object_of(document, "stats"), "models")
        if tokens := {name: object_of(object_of(models, name), "tokens") for name in models}:
            spent = (sum(integer_of(of, key) or 0 for of in tokens.values()) for key in ("prompt", "candidates"))
            written = {name: integer_of(of, "candidates") or 0 for name, of in tokens.items()}
            self.set_usage(Usage(*spent), written)
        if error:
            status, message = status_of(error, "code"), text_of(error, "message")
            self.fail(error_from(message, f'"code": {status}, "message": {message}', status=status))
        else:
            self._succeed(document, text_of(document, "response"))

    def _succeed(self, result: dict[str, Any], message: str | None = None) -> None:
        """End with a success; a result or its statistics may name the limit of output tokens as the reason."""
        holders, keys = (result, object_of(result, "stats")), ("finish_reason", "finishReason", "stop_reason")
        if "MAX_TOKENS" in {text_of(holder, key).upper() for holder in holders for key in keys}:
            self.warn(_CUT)
        self.succeed(message)


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
