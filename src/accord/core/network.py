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
    """A proxy: the variable that names it, and its address without user and password."""

    variable: str
    address: str
    host: str
    port: int


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


def proxy_of(url: str, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment names for a URL, exceptions aside. Small letters win, as in curl."""
    scheme = urlsplit(url).scheme
    names = [name for kind in (scheme, "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())]
    name = next((name for name in names if environment.get(name)), "")
    if not name:
        return None
    parts = urlsplit(environment[name] if "://" in environment[name] else f"http://{environment[name]}")
    host = parts.hostname or ""
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    shown = parts.netloc.rpartition("@")[2]
    return Proxy(name, f"{parts.scheme}://{shown}", host, port)


def proxy_refusal(url: str, environment: Mapping[str, str], status: int) -> Refused | None:
    """Return what a proxy's answer to a connection means; None for an answer that may be another one later."""
    proxy = proxy_of(url, environment)
    if status == 407:
        hint = f"Put `USER:PASSWORD@` before the host in `{proxy.variable if proxy else 'HTTPS_PROXY'}`"
        message = f"The proxy {proxy_name(proxy)} wants another user and password (407)."
        return Refused(message, hint=f"{hint}, or {_without_proxy(url, environment)}.")
    if not 400 <= status < 500 or status in _BUSY:
        return None
    message = f"The proxy {proxy_name(proxy)} does not connect to {urlsplit(url).hostname} ({status})."
    return Refused(message, hint=f"Have the host allowed there, or {_without_proxy(url, environment)}.")


def proxy_name(proxy: Proxy | None) -> str:
    """Return the address of a proxy and the variable that names it; without a variable, it is the system's."""
    return f"`{proxy.address}` of `{proxy.variable}`" if proxy else "of the system"


def proxy_trouble(url: str, environment: Mapping[str, str], status: int = 0) -> tuple[str, str]:
    """Return that the proxy for a URL does not work now, as part of a sentence, and the hint."""
    proxy = proxy_of(url, environment)
    said = f"the proxy {proxy_name(proxy)} {f'answers {status}' if status else 'does not answer'}"
    return said, proxy_hint(proxy, url, environment)


def proxy_hint(proxy: Proxy | None, url: str, environment: Mapping[str, str]) -> str:
    """Return what to do where the proxy for a URL does not work."""
    return f"Correct `{proxy.variable if proxy else 'HTTPS_PROXY'}`, or {_without_proxy(url, environment)}."


def _without_proxy(url: str, environment: Mapping[str, str]) -> str:
    name = "no_proxy" if environment.get("no_proxy", "").strip() else "NO_PROXY"
    entries = [*filter(None, [environment.get(name, "").strip()]), urlsplit(url).hostname or ""]
    return f"reach the host without a proxy: `export {name}={','.join(entries)}`"


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
