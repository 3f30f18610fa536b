"""``claude -p`` with ``--output-format stream-json`` or ``json``: events a line, ended by one ``result``.

A failed request is a ``result`` of subtype ``success`` with ``is_error: true`` and the error's text as its result; a
spent limit is a subtype ``error_…``, in some versions with ``is_error: false``. Either one is a failure. Classes and
statuses are in ``assistant.error`` and ``result.api_error_status``.
"""

from __future__ import annotations

import re
from typing import Any

from accord.runner.transcripts.account import Account, AgentError, FileChange, Todo, TranscriptReader, Usage
from accord.runner.transcripts.lines import (
    cut,
    evidence_line,
    integer_of,
    number_of,
    object_of,
    objects_of,
    status_of,
    text_of,
)  # fmt: skip
from accord.runner.transcripts.wording import bounded_delay, error_from

UNANSWERED = "no-http-answer"
"""accord's class for a request that failed without status and class: no answer, or not one of the API."""

DENIED = "tools-denied"
"""accord's class for a result that is an error without status and class, after tools were denied."""

NO_STRUCTURED_RESULT = "The agent returned no structured result although one was requested."

_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_PAIRED = _WRITERS | {"Bash", "TaskCreate", "TaskUpdate", "TodoWrite"}
_STOPPERS = {"TaskStop": "task_id", "KillShell": "shell_id", "KillBash": "shell_id"}
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,3})\b")
_MOST_PENDING = 500
_MOST_KEPT = 4_000
_MOST_NAMED = 10


class ClaudeReader(TranscriptReader):
    """Reads the events of Claude Code; it keeps running tools, tasks by number, and the class of the last error.

    A background task is not a task of the to-do list. It is unended while it runs in the background, and if something
    other than the agent stopped it; its events are those of the Agent SDK: ``task_started``, ``task_updated`` and
    ``task_notification``.
    """

    codec = "claude"
    session_totals = ("cost_usd",)

    def __init__(self, agent: str) -> None:
        super().__init__(agent)
        self._pending: dict[str, tuple[str, dict[str, Any]]] = {}
        self._tasks: dict[str, Todo] = {}
        self._background: dict[str, str] = {}
        self._unended: dict[str, None] = {}
        self._error = ""
        self._wants_result = False

    @staticmethod
    def is_event(event: dict[str, Any]) -> bool:
        """Return whether an object is an event of Claude Code."""
        kind = text_of(event, "type")
        if kind == "result":
            return "is_error" in event or "subtype" in event
        if kind in {"assistant", "user"}:
            return isinstance(event.get("message"), dict)
        return kind == "stream_event" or (kind == "system" and "subtype" in event)

    def take(self, event: dict[str, Any], line: bytes) -> None:
        """Take the next event, and its line."""
        match event["type"]:
            case "assistant":
                self._take_assistant(object_of(event, "message"), text_of(event, "error"))
            case "user":
                self._take_user(event)
            case "result":
                self._take_result(event, line)
            case "stream_event":
                self.work()
            case _:
                self._take_system(event, line)

    def finish(self) -> Account:
        """Return the account at the end of the transcript: name the background tasks that did not end."""
        names = list(dict.fromkeys(self._background[number] for number in self._unended))
        if names:
            more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            self.warn(
                f"The agent's background tasks were stopped or did not end: {', '.join(names[:_MOST_NAMED])}{more}. "
                "Their work may be missing. Tell the agent to wait for them."
            )
        return super().finish()

    def _take_system(self, event: dict[str, Any], line: bytes) -> None:
        if event.get("subtype") == "init":
            tools = event.get("tools")
            self._wants_result = isinstance(tools, list) and "StructuredOutput" in tools
            self.start(text_of(event, "model"), text_of(event, "session_id"))
        elif event.get("subtype") == "api_retry":
            kind, status = text_of(event, "error"), status_of(event, "error_status")
            kind = UNANSWERED if kind == "unknown" and status is None else kind
            delay = number_of(event, "retry_delay_ms")
            backoff = bounded_delay(delay / 1000) if delay is not None else None
            error = AgentError("", status=status, kind=kind, backoff_seconds=backoff, line=evidence_line(line))
            self.report_trouble(error)
        elif text_of(event, "task_id"):
            self._take_background(event, object_of(event, "patch"))

    def _take_background(self, event: dict[str, Any], patch: dict[str, Any]) -> None:
        number, status = text_of(event, "task_id"), text_of(event, "status") or text_of(patch, "status")
        is_new = event.get("subtype") == "task_started" and event.get("ambient") is not True
        if is_new and len(self._background) < _MOST_PENDING:
            self._background[number] = cut(text_of(event, "description") or number, 100)
        is_moved = event.get("is_backgrounded") is True or patch.get("is_backgrounded") is True
        if status in {"completed", "failed"}:
            self._unended.pop(number, None)
        elif number in self._background and (is_moved or status in {"stopped", "killed"}):
            self._unended[number] = None

    def _take_assistant(self, message: dict[str, Any], error: str) -> None:
        if message.get("model") == "<synthetic>":
            self._error = error
            return
        self._error = ""
        self.work()
        for part in objects_of(message, "content"):
            name = text_of(part, "name")
            if name in _STOPPERS:  # the agent itself stops a background task, such as a server
                number = text_of(object_of(part, "input"), _STOPPERS[name])
                self._background.pop(number, None)
                self._unended.pop(number, None)
            if part.get("type") == "tool_use" and name in _PAIRED and len(self._pending) < _MOST_PENDING:
                self._pending[text_of(part, "id")] = (name, _essential_input(object_of(part, "input")))

    def _take_user(self, event: dict[str, Any]) -> None:
        for part in objects_of(object_of(event, "message"), "content"):
            if part.get("type") == "tool_result":
                self.work()
                name, given = self._pending.pop(text_of(part, "tool_use_id"), ("", {}))
                if name == "Bash":
                    self._add_command(text_of(given, "command"), part, object_of(event, "tool_use_result"))
                elif name and part.get("is_error") is not True:
                    self._take_tool(name, given, object_of(event, "tool_use_result"))

    def _add_command(self, command: str, part: dict[str, Any], result: dict[str, Any]) -> None:
        output = text_of(part, "content") or "\n".join(text_of(piece, "text") for piece in objects_of(part, "content"))
        is_interrupted = result.get("interrupted") is True
        is_failed = part.get("is_error") is True or is_interrupted
        code = _EXIT_CODE.match(output) if is_failed and not is_interrupted else None
        self.add_command(command, int(code[1]) if code else None if is_failed else 0, output, is_failed=is_failed)

    def _take_tool(self, name: str, given: dict[str, Any], result: dict[str, Any]) -> None:
        if name in _WRITERS:
            path = text_of(given, "file_path") or text_of(given, "notebook_path")
            self.add_files([FileChange(path, "add" if result.get("type") == "create" else "update")])
        elif name == "TodoWrite":
            todos = objects_of(given, "todos")
            self.set_todos(Todo(text_of(todo, "content"), todo.get("status") == "completed") for todo in todos)
        else:
            self._update_tasks(given, object_of(result, "task"))
            self.set_todos(self._tasks.values())

    def _update_tasks(self, given: dict[str, Any], created: dict[str, Any]) -> None:
        number = text_of(created, "id") or text_of(given, "taskId")
        before = self._tasks.get(number, Todo("", is_done=False))
        status = text_of(given, "status")
        if status == "deleted":
            self._tasks.pop(number, None)
        elif number in self._tasks or len(self._tasks) < _MOST_PENDING:
            is_done = status == "completed" if status else before.is_done
            self._tasks[number] = Todo(text_of(given, "subject") or before.text, is_done)

    def _take_result(self, event: dict[str, Any], line: bytes) -> None:
        models = object_of(event, "modelUsage")
        written = {name: integer_of(object_of(models, name), "outputTokens") or 0 for name in models}
        self.set_usage(_usage(event), written)
        for denial in objects_of(event, "permission_denials"):
            self.deny(text_of(denial, "tool_name") or "a tool")
        if event.get("is_error") is not False or text_of(event, "subtype") not in {"", "success"}:
            self.fail(_error(event, self._error, line))
            return
        structured = event.get("structured_output")
        if self._wants_result and structured is None:
            self.warn(NO_STRUCTURED_RESULT)
        if event.get("stop_reason") == "max_tokens":
            self.warn("The message was cut at the limit of output tokens.")
        self.succeed(text_of(event, "result"), structured)


def _essential_input(given: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a tool's input that is needed with its result, without contents of files."""
    texts = ("command", "file_path", "notebook_path", "taskId", "status", "subject")
    kept: dict[str, Any] = {name: text_of(given, name)[:_MOST_KEPT] for name in texts if name in given}
    todos = [
        {name: text_of(todo, name)[:_MOST_KEPT] for name in ("content", "status")}
        for todo in objects_of(given, "todos")
    ]
    return {**kept, "todos": todos[:_MOST_PENDING]} if todos else kept


def _error(event: dict[str, Any], last: str, line: bytes) -> AgentError:
    """Combine the result and the class of the ``last`` error: the most specific class, status and text."""
    errors = event.get("errors")
    texts = [text for text in errors if isinstance(text, str)] if isinstance(errors, list) else []
    status = status_of(event, "api_error_status")
    subtype = text_of(event, "subtype")
    kind = subtype if subtype not in {"", "success"} else last
    if event.get("terminal_reason") == "prompt_too_long" or event.get("stop_reason") == "refusal":
        kind = "prompt_too_long" if event.get("terminal_reason") == "prompt_too_long" else "refusal"
    message = text_of(event, "result") or cut("; ".join(texts), 1000)
    if kind in {"", "unknown"} and status is None:
        kind = DENIED if objects_of(event, "permission_denials") else UNANSWERED if kind else ""
    return error_from(message, line, status=status, kind=kind)


def _usage(event: dict[str, Any]) -> Usage:
    """Add up the tokens of a result. Anthropic counts cached input separately."""
    usage = object_of(event, "usage")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [count for count in (integer_of(usage, name) for name in names) if count is not None]
    return Usage(
        sum(counts) if counts else None, integer_of(usage, "output_tokens"), number_of(event, "total_cost_usd")
    )
