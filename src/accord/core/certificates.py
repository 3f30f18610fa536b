"""Which certificates accord trusts, and why one was refused.

It trusts the system's store and the files that the environment names.
"""

from __future__ import annotations

import os
import re
import ssl
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from accord.core.errors import Refused, WrongUsage
from accord.core.network import certificate_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truststore import SSLContext

_SECONDS = 5
"""For each step of a connection that only asks for the certificate."""

_EXPIRED, _NOT_YET, _HOSTS = 10, 9, (62, 64)
"""Results of OpenSSL's verification (X509_V_ERR_…)."""

_ODD = re.compile(r"[^\w .,'()&/:*@-]")


def trusted_context(environment: Mapping[str, str]) -> SSLContext:
    """Return the context for connections. Raises WrongUsage for a named file that holds no certificates."""
    from truststore import SSLContext

    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    files = certificate_files(environment)
    for variable, path in files.items():
        try:
            context.load_verify_locations(**{"capath" if os.path.isdir(path) else "cafile": path})
        except OSError as error:
            reason = "has no certificates" if isinstance(error, ssl.SSLError) else error.strerror
            raise WrongUsage(
                f"`{variable}` names `{path}`, which cannot be used: {reason}.",
                hint=f"Set `{variable}` to a file of certificates in PEM format, or unset it.",
            ) from None
    if not files:  # a machine without a store, such as a small container, still reaches GitHub
        from requests.utils import DEFAULT_CA_BUNDLE_PATH

        context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    return context


def certificate_refusal(
    url: str,
    environment: Mapping[str, str],
    proxy: str = "",
    error: ssl.SSLCertVerificationError | None = None,
) -> Refused:
    """Say why the certificate of a URL's host is refused. Without ``error``, the host is asked for it again.

    ``proxy`` is the URL of the proxy to ask through. Raises WrongUsage for a named file that holds no certificates.
    """
    host = urlsplit(url).hostname or ""
    error = error or _verification_error(url, proxy, trusted_context(environment))
    code = error.verify_code if error else 0
    if code in (_EXPIRED, _NOT_YET):
        said = "has expired" if code == _EXPIRED else "is not valid yet"
        return Refused(f"The certificate of {host} {said}.", hint="Renew it there, or correct this machine's clock.")
    if code in _HOSTS:
        message = f"The certificate of {host} is for another host{_names(_presented_certificate(url, proxy))}."
        return Refused(message, hint=f"Use the name of the certificate, or issue one for {host}.")
    issuer = _name_of(_presented_certificate(url, proxy).get("issuer", ()))
    unknown = f": its issuer `{issuer}` is unknown" if issuer else ""
    whose = f"`{issuer}`" if issuer else "its issuer"
    files = " and ".join(f"`{name}`" for name in certificate_files(environment))
    hint = f"Set `SSL_CERT_FILE=/path/to/ca.pem` to a file with the certificate of {whose}"
    more = f"; {files} has no such certificate" if files else ""
    return Refused(f"The certificate of {host} is not trusted{unknown}.", hint=f"{hint}{more}.")


def _verification_error(url: str, proxy: str, context: SSLContext) -> ssl.SSLCertVerificationError | None:
    try:
        _handshake(urlsplit(url), proxy, context)
    except ssl.SSLCertVerificationError as error:
        return error
    except (OSError, HTTPException, ValueError):
        pass
    return None


def _presented_certificate(url: str, proxy: str) -> dict[str, Any]:
    """Return the certificate that the host presents, unverified; empty where it cannot be read in time.

    Python parses only certificates that it has verified, so a second connection trusts exactly this one.
    """
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    parsing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    parsing.check_hostname = False
    parsing.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        encoded, _ = _handshake(urlsplit(url), proxy, asking)
        parsing.load_verify_locations(cadata=encoded)
        return _handshake(urlsplit(url), proxy, parsing)[1]
    except (OSError, HTTPException, ValueError):
        return {}


def _handshake(url: SplitResult, proxy: str, context: ssl.SSLContext | SSLContext) -> tuple[bytes, dict[str, Any]]:
    """Return the host's certificate, encoded and, if it was verified, parsed."""
    host, port = url.hostname or "", url.port or 443
    through = urlsplit(proxy if "://" in proxy or not proxy else f"http://{proxy}")
    if through.scheme not in ("", "http"):
        raise ValueError(through.scheme)
    if proxy:
        from requests.adapters import HTTPAdapter

        connection = HTTPConnection(through.hostname or "", through.port or 80, timeout=_SECONDS)
        connection.set_tunnel(host, port, HTTPAdapter().proxy_headers(proxy))
    else:
        connection = HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.connect()
        with context.wrap_socket(connection.sock, server_hostname=host) as secure:
            return secure.getpeercert(binary_form=True) or b"", secure.getpeercert() or {}
    finally:
        connection.close()


def _name_of(name: Any) -> str:
    """Return the readable part of a distinguished name, which anyone may have written."""
    fields = {key: value for part in name for key, value in part}
    found = next((fields[key] for key in ("commonName", "organizationName") if fields.get(key)), "")
    return _ODD.sub("", found)[:100]


def _names(certificate: Mapping[str, Any]) -> str:
    names = [_ODD.sub("", value)[:100] for _, value in certificate.get("subjectAltName", ())]
    return f" ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" if names else ""
