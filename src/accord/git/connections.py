"""Why git could not connect, by its own words: a certificate, or the proxy."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from accord.core.network import certificate_refusal, proxy_of, proxy_refusal, proxy_trouble

if TYPE_CHECKING:
    from accord.core.errors import Refused

_CERTIFICATE = re.compile(
    r"(?:SSL certificate problem|certificate verification failed|certificate subject name|alternative certificate"
    r"|SSL CA cert|certificate verify locations)[^\n]{0,200}",
    re.IGNORECASE,
)
"""OpenSSL's words and those of GnuTLS, which Debian's git uses."""

_TUNNEL = re.compile(r"HTTP code (\d{3}) from proxy|tunnel failed, response (\d{3})", re.IGNORECASE)
_PROXY = re.compile(r"resolve proxy|from proxy|proxy CONNECT|tunnel failed|SOCKS|unsupported proxy", re.IGNORECASE)
_PLACE = re.compile(r"connect to (\S{1,300}) port (\d+)(?: via (\S{1,300}))?")
"""Where git could not connect; since version 8, curl names the host and then the proxy."""


def is_final(said: str) -> bool:
    """Return whether git could not connect for a reason that another try does not change."""
    return bool(_CERTIFICATE.search(said)) or proxy_refusal("", {}, _tunnel_status(said)) is not None


def connection_refusal(said: str, url: str) -> Refused:
    """Say why git did not connect to a URL, after ``is_final``. Raises WrongUsage for an unusable file."""
    if refused := proxy_refusal(url, os.environ, _tunnel_status(said)):
        return refused
    from accord.core.connections import trusted_context

    trusted_context(os.environ)
    reason = _CERTIFICATE.search(said)
    return certificate_refusal(url, os.environ, reason[0] if reason else "git cannot verify it")


def trouble_of_proxy(said: str, url: str) -> tuple[str, str]:
    """Return what is wrong with the proxy for a URL, and the hint; empty where git does not speak of it."""
    proxy = proxy_of(url, os.environ)
    if not proxy:
        return "", ""
    place = _PLACE.search(said)
    is_proxy = place and (place[3] == proxy.host or (place[1], place[2]) == (proxy.host, str(proxy.port)))
    speaks = is_proxy or _PROXY.search(said)
    return proxy_trouble(url, os.environ, _tunnel_status(said)) if speaks else ("", "")


def _tunnel_status(said: str) -> int:
    found = _TUNNEL.search(said)
    return int(found[1] or found[2]) if found else 0
