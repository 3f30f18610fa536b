"""A model provider on this machine: real HTTP in both formats, answers and accidents by script, requests kept."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

CHAT_PATH, MESSAGES_PATH = "/v1/chat/completions", "/v1/messages"


@dataclass(frozen=True)
class Play:
    """What to answer to one request, ``delay`` seconds later; ``is_dripped`` is a header that comes byte by byte."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    is_lost: bool = False
    is_truncated: bool = False
    is_dripped: bool = False


@dataclass(frozen=True)
class Seen:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass
class ModelServer:
    """Plays the script in order, its last entry for ever, and keeps what it saw.

    ``on`` comes first: what to answer whenever a text is in the request.
    """

    url: str
    plays: list[Play] = field(default_factory=list)
    on: dict[str, Play] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    is_closing: threading.Event = field(default_factory=threading.Event)

    def play(self, *plays: Play) -> Self:
        """Start again with this script."""
        self.plays, self.seen = list(plays), []
        return self

    def next_play(self, body: Any) -> Play:
        for text, play in self.on.items():
            if text in json.dumps(body):
                return play
        return self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]


def chat(content: Any, *, reason: str = "stop", model: str = "gpt-test-2026", **message: Any) -> Play:
    """Answer as chat completions do; anything but a text is written as JSON."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text, **message}}
    return Play(body=json.dumps({"object": "chat.completion", "model": model, "choices": [choice]}).encode())


def messages(content: Any, *, reason: str = "end_turn", model: str = "claude-test-2026") -> Play:
    """Answer as Anthropic messages do, with a block of thinking first."""
    text = content if isinstance(content, str) else json.dumps(content)
    blocks = [{"type": "thinking", "thinking": "{}"}, {"type": "text", "text": text}]
    document = {"type": "message", "role": "assistant", "model": model, "content": blocks, "stop_reason": reason}
    return Play(body=json.dumps(document).encode())


def error(status: int, code: str = "", message: str = "No.", **headers: str) -> Play:
    """Refuse as both providers do."""
    body = json.dumps({"error": {"message": message, "type": code or "error_of_type", "code": code or None}}).encode()
    return Play(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    model_server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_GET(self) -> None:
        self.model_server.seen.append(Seen(self.path, dict(self.headers.items()), {}))
        self.send_error(405)

    def do_POST(self) -> None:
        server = self.model_server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        server.seen.append(Seen(self.path, headers, body))
        play = server.next_play(body)
        self.close_connection = True
        server.is_closing.wait(play.delay)
        if play.is_lost:
            return
        with suppress(OSError):  # the client has gone, which some tests want
            self._send(play, server)

    def _send(self, play: Play, server: ModelServer) -> None:
        self.send_response(play.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(play.body) + play.is_truncated))
        self.send_header("Connection", "close")
        for name, value in play.headers.items():
            self.send_header(name, value)
        if play.is_dripped:
            self.flush_headers()
            while not server.is_closing.wait(0.05):
                self.wfile.write(b"x")
                self.wfile.flush()
        self.end_headers()
        self.wfile.write(play.body)
        self.wfile.flush()


@contextmanager
def serving_http(handler: type[BaseHTTPRequestHandler]) -> Iterator[ThreadingHTTPServer]:
    """Serve on a free port of this machine until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield http
        finally:
            http.shutdown()
            thread.join()


@contextmanager
def serving_models() -> Iterator[ModelServer]:
    handler = type("Handler", (_Handler,), {})
    with serving_http(handler) as http:
        handler.model_server = server = ModelServer(f"http://127.0.0.1:{http.server_address[1]}")
        try:
            yield server
        finally:
            server.is_closing.set()
