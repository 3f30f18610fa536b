"""``codex exec --json``: one event a line, ended by ``turn.completed`` or ``turn.failed``.

``error`` events alone prove nothing: each retry prints one, even in runs that succeed. The final message is the last
``agent_message``, not the last item, as a to-do list is completed after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from accord.runner.transcripts.account import FileChange, Todo, TranscriptReader, Usage
from accord.runner.transcripts.lines import cut, integer_of, object_of, objects_of, text_of
from accord.runner.transcripts.wording import error_from

_TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
_ITEM_TYPES = frozenset({"item.started", "item.updated", "item.completed"})


class CodexReader(TranscriptReader):
    """Reads the events of codex."""

    codec = "codex"
    exits: ClassVar[Mapping[int, str]] = {2: "settings"}
    session_totals = ("tokens_input", "tokens_output")
    ends_with_result = True

    @staticmethod
    def is_event(event: dict[str, Any]) -> bool:
        """Return whether an object is an event of codex."""
        kind = text_of(event, "type")
        if kind == "error":
            return "severity" not in event and isinstance(event.get("message"), str)
        return kind in _TYPES or kind in _ITEM_TYPES

    def take(self, event: dict[str, Any], line: bytes) -> None:
        """Take the next event, and its line."""
        kind = event["type"]
        if kind in _ITEM_TYPES:
            item = object_of(event, "item")
            self.work()
            if kind == "item.completed" or item.get("type") == "todo_list":
                self._take_item(item)
        elif kind == "turn.completed":
            usage = object_of(event, "usage")
            self.set_usage(Usage(integer_of(usage, "input_tokens"), integer_of(usage, "output_tokens")))
            self.succeed()
        elif kind == "turn.failed":
            self.fail(error_from(text_of(object_of(event, "error"), "message"), line))
        elif kind == "error":
            self.report_trouble(error_from(text_of(event, "message"), line))
        else:
            self.start(session=text_of(event, "thread_id"))

    def _take_item(self, item: dict[str, Any]) -> None:
        match item.get("type"):
            case "agent_message":
                self.set_message(text_of(item, "text"))
            case "command_execution":
                exit_code = integer_of(item, "exit_code")
                is_failed = text_of(item, "status") in {"failed", "declined"} or bool(exit_code)
                output = text_of(item, "aggregated_output")
                self.add_command(text_of(item, "command"), exit_code, output, is_failed=is_failed)
            case "file_change":
                changes = (FileChange(text_of(c, "path"), text_of(c, "kind")) for c in objects_of(item, "changes"))
                self.add_files(changes, is_failed=item.get("status") == "failed")
            case "todo_list":
                todos = objects_of(item, "items")
                self.set_todos(Todo(text_of(todo, "text"), todo.get("completed") is True) for todo in todos)
            case "error":
                if message := text_of(item, "message"):
                    self.warn(f"The agent's CLI warned: {cut(message, 300)}")
