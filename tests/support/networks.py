"""A network between accord and GitHub: certificates made by openssl, a server over TLS, and a proxy with CONNECT."""

import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socket import create_connection
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.model_server import serving_http

from accord.runner.confine import relay

HOST = "ghes.example"
"""A name that no DNS server knows: only the proxy connects to it."""

DEAD = "http://127.0.0.1:9"
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")


def forget_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the proxies and certificates of the machine that runs the tests."""
    for name in (*VARIABLES, *CERTIFICATES):
        monkeypatch.delenv(name, raising=False)


def openssl(*arguments: object) -> str:
    ended = subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, text=True)
    return ended.stdout + ended.stderr


@dataclass(frozen=True)
class Authority:
    """An authority of a company, in a folder."""

    folder: Path
    name: str

    @property
    def file(self) -> Path:
        return self.folder / "ca.pem"

    def make(self) -> "Authority":
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.folder / "ca.key")
        openssl("req", "-x509", *key, "-out", self.file, "-days", 2, "-subj", f"/CN={self.name}")
        return self

    def issue(self, host: str, *, days: int = 2) -> Path:
        """Write a key and its certificate into one file; with negative days it has expired."""
        key, request, file = (self.folder / f"{host}{days}.{end}" for end in ("key", "csr", "pem"))
        if file.exists():
            return file
        names = self.folder / f"{host}.ext"
        names.write_text(f"subjectAltName = {'IP' if host[0].isdigit() else 'DNS'}:{host}\n")
        made = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key)
        openssl("req", *made, "-out", request, "-subj", f"/CN={host}")
        signed = ("-CA", self.file, "-CAkey", self.folder / "ca.key", "-CAcreateserial")
        ended = ("-not_before", "20200101000000Z", "-not_after", "20200102000000Z")  # OpenSSL 3.5 takes no days below 0
        knows = days < 0 and "-not_after" in openssl("x509", "-help")
        signed += ended if knows else ("-days", days)
        openssl("x509", "-req", "-in", request, *signed, "-extfile", names, "-out", file)
        file.write_bytes(file.read_bytes() + key.read_bytes())
        return file


@contextmanager
def serving_tls(certificate: Path, url: str) -> Iterator[int]:
    """Serve an HTTP server of this machine over TLS, as if it had the name of the certificate; yield the port."""
    inner = urlsplit(url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = HTTPConnection(inner.hostname or "", inner.port, timeout=600)
            connection.request(self.command, self.path, body, {**dict(self.headers.items()), "Host": inner.netloc})
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_POST = do_GET  # noqa: N815 (the server finds methods by this name)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving_http(Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        yield server.server_address[1]


@dataclass
class Tunnels:
    """A running proxy: which host is at which port of this machine, and what it was asked for."""

    url: str
    places: Mapping[str, int]
    user: str = ""
    status: int = 0
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving_tunnels(places: Mapping[str, int], *, user: str = "", status: int = 0) -> Iterator[Tunnels]:
    """Serve a proxy; with ``user`` ("name:password") it wants this one, with ``status`` it refuses everything."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def refuse(self, answer: int) -> None:
            self.send_response_only(answer)
            self.send_header("Proxy-Authenticate", 'Basic realm="company"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_CONNECT(self) -> None:
            tunnels.asked.append(self.path)
            key = f"Basic {b64encode(user.encode()).decode()}"
            if user and self.headers.get("Proxy-Authorization") != key:
                self.refuse(407)
            elif status or self.path not in places:
                self.refuse(status or 502)
            else:
                self.send_response_only(200)
                self.end_headers()
                with create_connection(("127.0.0.1", places[self.path]), 20) as outer:
                    back = threading.Thread(target=relay, args=(outer, self.connection), daemon=True)
                    back.start()
                    relay(self.connection, outer)
                    back.join()
                self.close_connection = True

        def do_GET(self) -> None:
            tunnels.asked.append(self.path)
            self.refuse(407 if user else 502)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with serving_http(Handler) as server:
        tunnels = Tunnels(f"http://127.0.0.1:{server.server_address[1]}", places, user, status)
        yield tunnels
