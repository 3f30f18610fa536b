"""The servers that agent CLIs talk to, as far as the tests need them: three wire formats, scripted answers, 127.0.0.1.

An answer is a text, a tool call, an HTTP error, or silence. Each request for a turn takes the next answer; the last one
stays. The formats are those that the pinned CLIs send and accept (OpenAI responses, Anthropic messages, Gemini).
"""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.model_server import serving_http


@dataclass(frozen=True)
class Says:
    """The model ends its turn with a text."""

    text: str


@dataclass(frozen=True)
class Calls:
    """The model calls a tool of the CLI; Codex keeps the tools of an MCP server in a namespace."""

    tool: str
    arguments: dict[str, Any]
    namespace: str = ""


@dataclass(frozen=True)
class Fails:
    """The provider answers with an HTTP error."""

    status: int
    body: dict[str, Any]


@dataclass(frozen=True)
class Hangs:
    """The provider never answers."""


Answer = Says | Calls | Fails | Hangs
Events = list[tuple[str, dict[str, Any]]]


@dataclass
class Provider:
    """A running provider; ``requests`` are the paths and bodies of all requests for a turn."""

    url: str
    answers: list[Answer]
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_answer(self, path: str, body: dict[str, Any], credential: str) -> Answer:
        with self._lock:
            self.requests.append((path, body))
            self.credentials.append(credential)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def provider(*answers: Answer) -> Iterator[Provider]:
    """Serve these answers for as long as the block runs."""
    with serving_http(_Handler) as server:
        served = Provider(f"http://127.0.0.1:{server.server_address[1]}", list(answers))
        server.provider = served  # type: ignore[attr-defined]
        try:
            yield served
        finally:
            served.closing.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # a killed agent leaves in the middle of an answer
            super().handle()

    def do_GET(self) -> None:
        self._send_json(404, {"error": {"message": "not here"}})

    def do_HEAD(self) -> None:
        self._send_json(404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        wire = next((wire for end, wire in _WIRES.items() if path.endswith(end)), None)
        if wire is None:
            self._send_json(200, {"input_tokens": 1})
            return
        served: Provider = self.server.provider  # type: ignore[attr-defined]
        names = ("Authorization", "x-api-key", "x-goog-api-key")
        credential = next((self.headers[name] for name in names if self.headers.get(name)), "")
        answer = served.next_answer(path, body, credential)
        if isinstance(answer, Hangs):
            served.hanging.set()
            served.closing.wait(60)
            self.close_connection = True
        elif isinstance(answer, Fails):
            self._send_json(answer.status, answer.body)
        else:
            self._send_events(wire(answer, len(served.requests)))

    def _send_json(self, status: int, document: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(document).encode())

    def _send_events(self, events: Iterable[tuple[str, dict[str, Any]]]) -> None:
        lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
        self._send(200, "text/event-stream", "".join(lines).encode())

    def _send(self, status: int, content_type: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()


def _openai(answer: Says | Calls, number: int) -> Events:
    if isinstance(answer, Says):
        content = [{"type": "output_text", "text": answer.text}]
        item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}
    else:
        called = {"type": "function_call", "call_id": f"call_{number}", "name": answer.tool}
        item = {**called, "arguments": json.dumps(answer.arguments)}
        item |= {"namespace": answer.namespace} if answer.namespace else {}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": f"resp_{number}", "usage": {**usage, **details}}
    return [
        ("response.created", {"type": "response.created", "response": {"id": f"resp_{number}"}}),
        ("response.output_item.done", {"type": "response.output_item.done", "item": item}),
        ("response.completed", {"type": "response.completed", "response": response}),
    ]


def _anthropic(answer: Says | Calls, number: int) -> Events:
    begin: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": answer.text if isinstance(answer, Says) else ""}
    if isinstance(answer, Calls):
        begin = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
    usage = {"input_tokens": 100, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "mock", "content": []}
    stop = {"stop_reason": "tool_use" if isinstance(answer, Calls) else "end_turn", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": begin},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


def _gemini(answer: Says | Calls, _number: int) -> Events:
    if isinstance(answer, Says):
        part: dict[str, Any] = {"text": answer.text}
    else:
        part = {"functionCall": {"name": answer.tool, "args": answer.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    return [("", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-mock"})]


_WIRES = {"/responses": _openai, "/messages": _anthropic, ":streamGenerateContent": _gemini}
