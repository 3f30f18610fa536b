"""Proxies and certificates that the environment names, and the ports of servers on this machine.

Servers on this machine, such as the sandbox, are reached directly, whatever proxy the environment or git names. The
variables are not changed for accord's own process: on macOS, a process with ``NO_PROXY`` ignores the system's proxies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from accord.core.errors import Refused, WrongUsage

if TYPE_CHECKING:
    import socket

_LOOPBACK = ("localhost", "127.0.0.1", "127.0.0.0/8", "::1")
"""Entries of NO_PROXY that curl, requests, Node and Go read, and that break none of them, as ``[::1]`` does httpx."""

_BUSY = (408, 425, 429)
"""Answers of a proxy that may be others later."""

_CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class Proxy(NamedTuple):
    """The proxy for a URL: the variable that names it, and its address without user and password.

    Without a variable it is that of the system. ``without`` is how to reach the host without a proxy.
    """

    url: str
    without: str
    variable: str = ""
    address: str = ""
    host: str = ""
    port: int = 0

    @property
    def name(self) -> str:
        """The address, and the variable that names it."""
        return f"`{self.address}` of `{self.variable}`" if self.variable else "of the system"

    @property
    def hint(self) -> str:
        """The hint where it does not work."""
        return f"Correct `{self.variable or 'HTTPS_PROXY'}`, or {self.without}."

    def trouble(self, status: int = 0) -> tuple[str, str]:
        """Return that it does not work now, as part of a sentence, and the hint."""
        return f"the proxy {self.name} {f'answers {status}' if status else 'does not answer'}", self.hint

    def refusal(self, status: int) -> Refused | None:
        """Return what its answer to a connection means; None for an answer that may be another one later."""
        if status == 407:
            hint = f"Put `USER:PASSWORD@` before the host in `{self.variable or 'HTTPS_PROXY'}`"
            message = f"The proxy {self.name} wants another user and password (407)."
            return Refused(message, hint=f"{hint}, or {self.without}.")
        if not 400 <= status < 500 or status in _BUSY:
            return None
        message = f"The proxy {self.name} does not connect to {urlsplit(self.url).hostname} ({status})."
        return Refused(message, hint=f"Have the host allowed there, or {self.without}.")


def is_loopback(host: str) -> bool:
    """Return whether a host, as a URL has it, is this machine."""
    name = host.lower().rstrip(".").removeprefix("[").removesuffix("]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def direct_loopback(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which a program reaches this machine without a proxy, with the entries of the user.

    Programs read one of both spellings, and curl reads them also where git's configuration names the proxy.
    """
    given = {name: environment.get(name, "").strip() for name in ("NO_PROXY", "no_proxy")}
    upper, lower = given["NO_PROXY"] or given["no_proxy"], given["no_proxy"] or given["NO_PROXY"]
    return {"NO_PROXY": _with_loopback(upper), "no_proxy": _with_loopback(lower)}


def _with_loopback(entries: str) -> str:
    """Add this machine. ``*`` alone means all hosts, and only alone."""
    known = {entry.strip() for entry in entries.split(",")}
    missing = [entry for entry in _LOOPBACK if entry not in known]
    return entries if entries == "*" else ",".join([*filter(None, [entries]), *missing])


def proxy_of(url: str, environment: Mapping[str, str]) -> Proxy:
    """Return the proxy that the environment names for a URL, exceptions aside. Small letters win, as in curl."""
    target, left_out = urlsplit(url), "no_proxy" if environment.get("no_proxy", "").strip() else "NO_PROXY"
    entries = [*filter(None, [environment.get(left_out, "").strip()]), target.hostname or ""]
    without = f"reach the host without a proxy: `export {left_out}={','.join(entries)}`"
    names = [name for kind in (target.scheme, "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())]
    name = next((name for name in names if environment.get(name)), "")
    if not name:
        return Proxy(url, without)
    parts = urlsplit(environment[name] if "://" in environment[name] else f"http://{environment[name]}")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return Proxy(url, without, name, address, parts.hostname or "", port)


def certificate_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the files, or folders, of trusted certificates that the environment names, by variable."""
    return {name: environment[name] for name in _CERTIFICATES if environment.get(name)}


HOST = "127.0.0.1"
"""The address of accord's own servers."""


@contextmanager
def open_listener(port: int) -> Iterator[socket.socket]:
    """Listen on a port of this machine; 0 takes a free one. Raises WrongUsage for one that cannot be used."""
    import socket  # slow, and most commands serve nothing

    # asyncio turns off Nagle (40 ms an answer) only for an explicit protocol
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            message = f"Port {port} cannot be used: {error.strerror}."
            raise WrongUsage(message, hint="Pass another port, or 0 for a free one.") from None
        listener.listen(128)
        yield listener
