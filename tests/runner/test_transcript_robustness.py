"""Reading the output of a process never fails and takes little memory."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rotation import NIGHTLY

from accord.runner.classify import classify, contract_exit_code
from accord.runner.transcripts.account import Account
from accord.runner.transcripts.lines import lines
from accord.runner.transcripts.read import FORMATS, RunEvidence, account_of, plain_account

TYPES = [
    "thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated",
    "item.completed", "system", "assistant", "user", "result", "init", "message", "tool_use", "tool_result", "error",
]  # fmt: skip
KEYS = [
    "item", "message", "content", "subtype", "text", "id", "name", "input", "command", "exit_code", "status",
    "aggregated_output", "changes", "path", "kind", "items", "completed", "usage", "input_tokens", "error", "is_error",
    "result", "errors", "api_error_status", "error_status", "retry_delay_ms", "permission_denials", "modelUsage", "m",
    "structured_output", "tool_use_id", "tool_use_result", "task", "model", "tools", "role", "delta", "severity",
    "tool_name", "tool_id", "parameters", "output", "stats", "models", "session_id", "response", "code", "tokens",
]  # fmt: skip
WORDS = [
    *TYPES,
    *["agent_message", "command_execution", "file_change", "todo_list", "Bash", "Write", "TaskCreate", "TodoWrite"],
]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(WORDS), st.just("x" * 3000),
    st.sampled_from(["api_retry", "init", "success", "assistant", "\ud800", "write_todos", "run_shell_command"]),
)  # fmt: skip
LEAVES = st.one_of(SCALARS, st.lists(SCALARS, max_size=2))
OBJECTS = st.dictionaries(st.sampled_from(KEYS), LEAVES, max_size=6)
VALUES = st.one_of(LEAVES, OBJECTS, st.lists(OBJECTS, max_size=2))
DEEP = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)
EVENTS = st.builds(
    lambda kind, members, inner: {"type": kind, **members, **inner},
    st.sampled_from(TYPES),
    DEEP,
    st.dictionaries(
        st.sampled_from(["item", "message", "error", "stats", "tool_use_result", "usage"]), DEEP, max_size=2
    ),
)
LINES = st.one_of(st.binary(max_size=200), EVENTS.map(lambda event: json.dumps(event, separators=(",", ":")).encode()))


def account_in(codec: str, stream: Any) -> Account:
    return account_of(codec, lines(stream), codec) if codec in FORMATS else plain_account(stream, codec)


def assert_readable(codec: str, raw: bytes, exit_code: int | None, stderr: str) -> None:
    account = account_in(codec, io.BytesIO(raw))
    evidence = RunEvidence(
        exit_code, account, stderr=stderr, text="" if account.is_structured else account.final_message
    )
    found = classify(evidence)
    assert (contract_exit_code(evidence) == 0) == (found is None) or exit_code is None
    json.dumps([account.structured, account.final_message, [c.command for c in account.commands]]).encode()
    if found:
        assert len(found.summary) <= 500
        assert "\n" not in found.summary
        assert found.model_dump_json()


@pytest.mark.parametrize("codec", [*FORMATS, "plain"])
@settings(max_examples=100 if NIGHTLY else 25)
@given(
    raw=st.lists(LINES, max_size=8).map(b"\n".join), exit_code=st.sampled_from([None, 0, 1, 137, 173]), stderr=st.text()
)
@pytest.mark.slow
def test_no_bytes_make_reading_fail(codec: str, raw: bytes, exit_code: int | None, stderr: str) -> None:
    assert_readable(codec, raw, exit_code, stderr)


@pytest.mark.parametrize("codec", [*FORMATS, "plain"])
@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000, b'{"a":' * 50_000, b'{"type":' + b"9" * 10_000 + b"}", b"\n" * 50_000, b"\x00" * 5000,
        b'{"type": "\\ud800", "a": ' + b"[" * 600 + b"]" * 600 + b"}",
    ],
)  # fmt: skip
def test_no_nesting_and_no_number_makes_reading_fail(codec: str, raw: bytes) -> None:
    assert_readable(codec, raw, 1, "")


class Endless(io.RawIOBase):
    """A stream that repeats a piece, so that a test needs no file."""

    def __init__(self, piece: bytes, count: int) -> None:
        self.piece, self.left, self.rest = piece, count, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.rest and self.left:
            self.left -= 1
            self.rest = self.piece
        size = min(len(buffer), len(self.rest))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size


def event(**more: Any) -> bytes:
    return json.dumps(more, separators=(",", ":")).encode() + b"\n"


OUTPUT = "output of a command\n" * 400


def claude_tool(number: str, name: str, **given: str) -> bytes:
    return event(
        type="assistant", message={"content": [{"type": "tool_use", "id": number, "name": name, "input": given}]}
    )


def codex_item(kind: str, **more: Any) -> bytes:
    return event(type="item.completed", item={"type": kind, **more})


PIECES = {
    "codex": codex_item("command_execution", command="ls", aggregated_output=OUTPUT)
    + codex_item("file_change", changes=[{"path": "x", "kind": "add"}])
    + codex_item("agent_message", text=OUTPUT),
    "claude": claude_tool("1", "Bash", command=OUTPUT)
    + claude_tool("2", "Write", content=OUTPUT)
    + event(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "1", "content": OUTPUT}]}),
    "gemini": event(type="message", role="assistant", content=OUTPUT, delta=True),
    "plain": OUTPUT.encode(),
}


@pytest.mark.parametrize("codec", PIECES)
@pytest.mark.parametrize("is_one_line", [False, True])
def test_memory_is_bounded_for_any_length(monkeypatch: pytest.MonkeyPatch, codec: str, is_one_line: bool) -> None:
    limit, size = 256 * 1024, 4_000_000 if is_one_line else 12_000_000
    monkeypatch.setattr("accord.runner.transcripts.lines.MAX_LINE_BYTES", limit)
    monkeypatch.setattr("accord.runner.transcripts.gemini._MOST_CHARS", limit)
    for module in ("account", "read"):
        monkeypatch.setattr(f"accord.runner.transcripts.{module}.MAX_MESSAGE_CHARS", limit)
    piece = PIECES[codec].replace(b"\n", b" ") if is_one_line else PIECES[codec]
    stream = io.BufferedReader(Endless(piece, size // len(piece)))
    tracemalloc.start()
    try:
        account = account_in(codec, stream)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size * 0.8
    assert len(account.final_message) <= limit + 100
