"""The only way out of a container without other network: a proxy that connects to the allowed hosts."""

from __future__ import annotations

import socket
import socketserver
import threading
from base64 import b64encode
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from accord.runner.confine import PROXY, relay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_HEAD_BYTES = 16 * 1024
_SECONDS = 30
_MOST_NAMES = 20

PROXY_VARIABLES = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), f"http://{PROXY}"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}
"""The variables by which programs find it."""


class _Proxy(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, allowed: Sequence[str], upstream: str) -> None:
        super().__init__(str(path), _Connection)
        self.allowed = allowed
        self.upstream = urlsplit(upstream)
        self.refused: dict[str, None] = {}

    def handle_error(self, *_: object) -> None:
        """Let a broken connection end without a word."""


class _Connection(socketserver.StreamRequestHandler):
    timeout = _SECONDS
    rbufsize = 0  # the bytes after the head are for the host
    server: _Proxy

    def handle(self) -> None:
        """Answer ``CONNECT host:port``; other requests, such as plain HTTP, are refused."""
        method, target, *_ = [*self.rfile.readline(_HEAD_BYTES).decode("ascii", "replace").split(), "", ""]
        while self.rfile.readline(_HEAD_BYTES).strip():
            pass
        host, _, port = target.lower().rpartition(":")
        if method != "CONNECT" or not is_allowed(host, port, self.server.allowed):
            if len(self.server.refused) < _MOST_NAMES:
                self.server.refused[target[:100]] = None
            self.wfile.write(b"HTTP/1.1 403 Not in the network of the agent's registry entry\r\n\r\n")
            return
        through = self.server.upstream
        address = (through.hostname, through.port or 80) if through.hostname else (host.strip("[]"), int(port))
        with socket.create_connection(address, _SECONDS) as outer:
            outer.settimeout(None)
            self.connection.settimeout(None)
            if through.hostname:
                user = unquote(f"{through.username}:{through.password or ''}") if through.username else ""
                key = f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}\r\n" if user else ""
                outer.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{key}\r\n".encode())
            else:
                self.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=relay, args=(outer, self.connection), daemon=True)
            back.start()
            relay(self.connection, outer)
            back.join()


def is_allowed(host: str, port: str, allowed: Sequence[str]) -> bool:
    """Return whether an entry allows a host: ``host`` and ``*.host`` mean port 443, ``host:port`` another one."""
    for entry in allowed:
        name, _, number = entry.lower().partition(":")
        is_host = host.endswith(name[1:]) if name.startswith("*.") else host == name
        if is_host and port == (number or "443"):
            return True
    return False


@contextmanager
def allowing(allowed: Sequence[str], path: Path, job: Mapping[str, str]) -> Iterator[dict[str, None]]:
    """Serve the proxy at a socket; yield the targets that it refused. It uses the job's own proxy, if there is one."""
    upstream = next((job[name] for name in ("HTTPS_PROXY", "https_proxy") if job.get(name)), "")
    with _Proxy(path, allowed, upstream) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield proxy.refused
        finally:
            proxy.shutdown()
            with suppress(OSError):
                path.unlink()
