"""Connections of accord over HTTP: directly to this machine, else by the proxies and certificates of the environment.

A certificate that is refused, or a proxy that says no, is an error that running again does not fix.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.exceptions import InvalidProxyURL, InvalidSchema, ProxyError, RequestException, SSLError
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_environ_proxies, select_proxy

from accord.core.errors import AccordError, Refused, WrongUsage
from accord.core.network import certificate_files, is_loopback, proxy_of

if TYPE_CHECKING:
    from truststore import SSLContext

_SECONDS = 5
"""For each step of a connection that only asks for a certificate."""

_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")


class ProxyDown(ProxyError):
    """The proxy does not answer now. The text says which one; ``hint`` what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def describe(error: RequestException) -> tuple[str, str]:
    """Return what went wrong with a request and, if there is more to do than to run it again, the hint."""
    return (str(error), error.hint) if isinstance(error, ProxyDown) else (type(error).__name__, "")


def session_for(url: str) -> requests.Session:
    """Return a session for requests to the host of a URL."""
    session = requests.Session()
    settle(session, url)
    return session


def settle(session: requests.Session, url: str) -> None:
    """Let a session reach a URL's host by the environment, read once, without ``~/.netrc``. Raises WrongUsage."""
    session.trust_env = False
    session.proxies = {} if is_loopback(urlsplit(url).hostname or "") else get_environ_proxies(url)
    if url.startswith("https:"):
        session.mount("https://", _Adapter(ssl_context=trusted_context(os.environ)))
    elif session.proxies:
        session.mount("http://", _Adapter())


def trusted_context(environment: Mapping[str, str]) -> SSLContext:
    """Trust the system's store and the files of the environment. Raises WrongUsage for a file without certificates."""
    from truststore import SSLContext

    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    files = certificate_files(environment)
    for path, variable in {path: name for name, path in reversed(files.items())}.items():  # each takes 20 ms
        try:
            context.load_verify_locations(**{"capath" if os.path.isdir(path) else "cafile": path})
        except OSError as error:
            reason = "has no certificates" if isinstance(error, ssl.SSLError) else error.strerror
            raise WrongUsage(
                f"`{variable}` names `{path}`, which cannot be used: {reason}.",
                hint=f"Set `{variable}` to a file of certificates in PEM format, or unset it.",
            ) from None
    if not files:  # a machine without a store, such as a small container, still reaches GitHub
        context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    return context


def failure_of(session: requests.Session, url: str) -> AccordError | ProxyDown | None:
    """Return why the last request did not reach its host, for callers that do not get its exception."""
    adapter = session.get_adapter(url)
    return adapter.failure if isinstance(adapter, _Adapter) else None


class _Adapter(HTTPAdapter):
    """Trusts the given context instead of the certificates of requests, and explains refusals."""

    def __init__(self, **tls: Any) -> None:
        self.failure: AccordError | ProxyDown | None = None
        self._tls = tls
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **kwargs, **self._tls)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, **kwargs, **self._tls)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        super().cert_verify(conn, url, verify, cert)  # type: ignore[no-untyped-call]
        if verify is True:
            conn.ca_certs = None

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        url = request.url or ""
        proxy = select_proxy(url, kwargs.get("proxies")) or ""
        try:
            response = super().send(request, *args, **kwargs)
        except (SSLError, ProxyError, InvalidProxyURL, InvalidSchema) as error:
            self.failure = _explain_failure(error, url, proxy)
            if self.failure is None:
                raise
            raise self.failure from error
        if proxy and (refused := response.status_code == 407 and proxy_of(url, os.environ).refusal(407)):
            raise refused
        return response


def _explain_failure(error: RequestException, url: str, proxy: str) -> AccordError | ProxyDown | None:
    """Return why a request did not reach its host, as an error that says what to do about it, if that is known."""
    certificate = _certificate_error(error)
    if isinstance(error, SSLError):
        return certificate_refusal(url, certificate.verify_message) if certificate else None
    if not proxy:
        return None
    used = proxy_of(url, os.environ)
    if certificate or not isinstance(error, ProxyError):
        subject, what = ("certificate of the proxy", "trusted") if certificate else ("proxy", "an HTTP proxy")
        return Refused(f"The {subject} {used.name} is not {what}.", hint=used.hint)
    tunnel = _TUNNEL.search(str(error))
    status = int(tunnel[1]) if tunnel else 0
    return used.refusal(status) or ProxyDown(*used.trouble(status))


def certificate_refusal(url: str, reason: str) -> Refused:
    """Say that the certificate of a URL's host is refused, and by whom it was issued where the host tells that.

    ``reason`` is that of OpenSSL or git.
    """
    host, files = urlsplit(url).hostname, " and ".join(f"`{name}`" for name in certificate_files(os.environ))
    said, hint = reason.rstrip("."), ""
    if "expired" in reason or "not yet valid" in reason:
        hint = "Renew it there, or correct this machine's clock"
    elif "match" in reason or "not valid for" in reason:
        hint = f"Use the name of the certificate, or issue one for {host}"
    else:
        issuer = _issuer(url)
        said = f"its issuer `{issuer}` is unknown" if issuer else said
        whose = f"`{issuer}`" if issuer else "its issuer"
        hint = f"Set `SSL_CERT_FILE=/path/to/ca.pem` to a file with the certificate of {whose}"
        hint += f"; {files} has no such certificate" if files else ""
    return Refused(f"The certificate of {host} is not trusted: {said}.", hint=f"{hint}.")


def _issuer(url: str) -> str:
    """Return the name of the authority that issued a host's certificate, or nothing; anyone may have written it.

    Python parses only certificates that it has verified, so a second connection trusts exactly the first one's.
    """
    proxy = "" if is_loopback(urlsplit(url).hostname or "") else select_proxy(url, get_environ_proxies(url)) or ""
    asking, parsing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    parsing.check_hostname = False
    parsing.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        with _handshake(url, proxy, asking) as secure:
            parsing.load_verify_locations(cadata=secure.getpeercert(binary_form=True) or b"")
        with _handshake(url, proxy, parsing) as secure:
            parts: Any = (secure.getpeercert() or {}).get("issuer", ())
    except (OSError, HTTPException, ValueError):
        return ""
    fields = {key: value for part in parts for key, value in part}
    return re.sub(r"[^\w .,'()&/:*@-]", "", fields.get("commonName") or fields.get("organizationName") or "")[:100]


def _handshake(url: str, proxy: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    target = urlsplit(url)
    host, port = target.hostname or "", target.port or 443
    through = urlsplit(proxy if "://" in proxy or not proxy else f"http://{proxy}")
    if through.scheme not in ("", "http"):
        raise ValueError(through.scheme)
    connection = HTTPConnection(through.hostname or host, (through.port or 80) if proxy else port, timeout=_SECONDS)
    if proxy:
        connection.set_tunnel(host, port, HTTPAdapter().proxy_headers(proxy))
    connection.connect()
    return context.wrap_socket(connection.sock, server_hostname=host)


def _certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Find the error of OpenSSL that led to another one, if there is one."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__context__
    return error
