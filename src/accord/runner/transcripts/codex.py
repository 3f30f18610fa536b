"""``codex exec --json``: one event a line, ended by ``turn.completed`` or ``turn.failed``.

``error`` events alone prove nothing: each retry prints one, even in runs that succeed. The final message is the last
``agent_message``, not the last item, as a to-do list is completed after it.
"""

from __future__ import annotations

from typing import Any

from accord.runner.transcripts.account import FileChange, Todo, TranscriptReader, Usage
from accord.runner.transcripts.lines import cut, integer_of, object_of, objects_of, text_of
from accord.runner.transcripts.wording import error_from

_TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
_ITEM_TYPES = frozenset({"item.started", "item.updated", "item.completed"})


def is_codex(event: dict[str, Any]) -> bool:
    """Return whether an object is an event of codex."""
    kind = text_of(event, "type")
    if kind == "error":
        return "severity" not in event and isinstance(event.get("message"), str)
    return kind in _TYPES or kind in _ITEM_TYPES


class CodexReader(TranscriptReader):
    """Adds events to an account."""

    def take(self, event: dict[str, Any], line: bytes) -> None:
        """Take the next event, and its line."""
        account, kind = self.account, event["type"]
        if kind in _ITEM_TYPES:
            item = object_of(event, "item")
            account.work()
            if kind == "item.completed" or item.get("type") == "todo_list":
                self._take_item(item)
        elif kind == "turn.completed":
            usage = object_of(event, "usage")
            account.set_usage(Usage(integer_of(usage, "input_tokens"), integer_of(usage, "output_tokens")))
            account.succeed()
        elif kind == "turn.failed":
            account.fail(error_from(text_of(object_of(event, "error"), "message"), line))
        elif kind == "error":
            account.report_trouble(error_from(text_of(event, "message"), line))
        else:
            account.start(session=text_of(event, "thread_id"))

    def _take_item(self, item: dict[str, Any]) -> None:
        account = self.account
        match item.get("type"):
            case "agent_message":
                account.set_message(text_of(item, "text"))
            case "command_execution":
                exit_code = integer_of(item, "exit_code")
                is_failed = text_of(item, "status") in {"failed", "declined"} or bool(exit_code)
                output = text_of(item, "aggregated_output")
                account.add_command(text_of(item, "command"), exit_code, output, is_failed=is_failed)
            case "file_change":
                changes = (FileChange(text_of(c, "path"), text_of(c, "kind")) for c in objects_of(item, "changes"))
                account.add_files(changes, is_failed=item.get("status") == "failed")
            case "todo_list":
                todos = objects_of(item, "items")
                account.set_todos(Todo(text_of(todo, "text"), todo.get("completed") is True) for todo in todos)
            case "error":
                if message := text_of(item, "message"):
                    account.warn(f"The agent's CLI warned: {cut(message, 300)}")
