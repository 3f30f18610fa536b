"""A proxy for a container without other network. It connects to the allowed hosts only."""

from __future__ import annotations

import os
import socket
import socketserver
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from accord.runner.confine import PROXY, relay
from accord.runner.models import AgentNotStarted

_HEAD_BYTES = 16 * 1024
_SECONDS = 30
_MOST_NAMES = 20

_VARIABLES = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), f"http://{PROXY}"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}
"""The variables by which programs find it."""


def through_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that uses it, without the job's own proxies, which can have a password."""
    return {name: value for name, value in environment.items() if not name.lower().endswith("_proxy")} | _VARIABLES


def upstream_of(job: Mapping[str, str]) -> SplitResult | None:
    """Return the job's own proxy for HTTPS, if it has one. Raises AgentNotStarted if it is not an HTTP proxy."""
    names = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    name = next((name for name in names if job.get(name)), "")
    if not name:
        return None
    address = urlsplit(job[name] if "://" in job[name] else f"http://{job[name]}")
    with suppress(ValueError):  # of a port that is not a number
        if address.scheme == "http" and address.hostname and address.port != 0:
            return address
    message = f"The proxy of {name} cannot be used together with `network`."
    hint = f"Set {name} to an address such as `http://proxy.example.com:3128`, or remove `network`."
    raise AgentNotStarted("not-started", message, hint=hint)


class _Proxy(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, allowed: Sequence[str], job: Mapping[str, str]) -> None:
        self.allowed = allowed
        self.upstream = upstream_of(job)
        self.direct = {"no": job.get("NO_PROXY") or job.get("no_proxy") or ""}
        self.refused: list[str] = []
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:  # a socket's address has at most 107 bytes
            super().__init__(f"/proc/self/fd/{folder}/{path.name}" if sys.platform == "linux" else str(path), _Tunnel)
        finally:
            os.close(folder)

    def handle_error(self, *_: object) -> None:
        """Let a broken connection end without a word."""


class _Tunnel(socketserver.StreamRequestHandler):
    timeout = _SECONDS
    rbufsize = 0  # the bytes after the head are for the host
    server: _Proxy

    def handle(self) -> None:
        """Answer ``CONNECT host:port``; other requests, such as plain HTTP, are refused."""
        method, target, *_ = [*self.rfile.readline(_HEAD_BYTES).decode("ascii", "replace").split(), "", ""]
        while self.rfile.readline(_HEAD_BYTES).strip():
            pass
        host, _, port = target.lower().rpartition(":")
        is_direct = self.server.upstream is None or proxy_bypass_environment(target.lower(), self.server.direct)
        is_refused = method != "CONNECT" or not is_allowed(host, port, self.server.allowed)
        addresses = addresses_of(host, port) if is_direct and not is_refused else []
        if is_refused or (is_direct and not addresses):
            refused = self.server.refused
            if target[:100] not in refused and len(refused) < _MOST_NAMES:
                refused.append(target[:100])
            self.wfile.write(b"HTTP/1.1 403 Not in the network of the agent's registry entry\r\n\r\n")
            return
        through = None if is_direct else self.server.upstream
        hosts, number = ([str(through.hostname)], through.port or 80) if through else (addresses, int(port))
        with _connection(hosts, number) as outer:
            outer.settimeout(None)
            self.connection.settimeout(None)
            if through:
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


def addresses_of(host: str, port: str) -> list[str]:
    """Return the addresses of a host, without link-local ones, at which clouds serve the credentials of a machine.

    A link-local address that the entry allows itself counts.
    """
    found: list[str] = []
    with suppress(OSError, ValueError):
        found = [str(answer[4][0]) for answer in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)]
    parsed = {address: ip_address(address) for address in found}
    plain = {name: ip.ipv4_mapped or ip if isinstance(ip, IPv6Address) else ip for name, ip in parsed.items()}
    return [address for address, ip in plain.items() if address == host or not ip.is_link_local]


def _connection(hosts: Sequence[str], port: int) -> socket.socket:
    for host in hosts[:-1]:
        with suppress(OSError):
            return socket.create_connection((host, port), _SECONDS)
    return socket.create_connection((hosts[-1], port), _SECONDS)


@contextmanager
def serve_proxy(allowed: Sequence[str], path: Path, job: Mapping[str, str]) -> Iterator[list[str]]:
    """Serve the proxy at a socket; yield the targets that it refused. It uses the job's own proxy, if there is one."""
    with _Proxy(path, allowed, job) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield proxy.refused
        finally:
            proxy.shutdown()
            with suppress(OSError):
                path.unlink()
