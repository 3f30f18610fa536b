"""Addresses of links: where a browser would go, and whether the text of a link says the same."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from accord.text.hidden import strip_hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_BLANK = re.compile(r"[\x00-\x20\x7f-\xa0]+")
_SCHEME = re.compile(r"\A([a-z][a-z0-9+-]*):")
_SCHEMES = frozenset(("ftp", "http", "https", "irc", "ircs", "mailto", "xmpp"))
_WITH_HOST = frozenset(("ftp", "http", "https"))
_AUTHORITY = re.compile(r"[/\\]*([^/\\?#]*)")
_NAMED = re.compile(r"[a-z]*+:?[/\\]++[^/?#@]*+@")
"""A name before the host for GitHub, which writes a backslash as %5C."""

_PORT = re.compile(r":[0-9]*\Z")
_MARKUP = re.compile(r"[*_`~\\]")
_SHOWN_HOST = re.compile(r"(?:https?|ftp)://([^\s/\\?#<>()\[\]{}\"',;]+)", re.IGNORECASE)
_BARE_HOST = re.compile(
    r"\A(?:[a-z0-9-]+\.)+(?:ai|app|cloud|co|com|dev|edu|eu|gov|info|int|io|mil|net|org|uk|us|xyz)(?=[/:?#]|\Z)",
    re.IGNORECASE,
)
_MIXED = frozenset(("ARMENIAN", "CHEROKEE", "CYRILLIC", "GREEK"))
"""Scripts with letters that look like Latin ones; no name mixes them with Latin (Unicode TR39, "Mixed scripts")."""

_LOOKALIKES = frozenset("асԁеһіјкӏмопрԛѕтуѵѡхԝгьвноυκνρτχωαβε")
"""Cyrillic and Greek letters that pass for Latin ones: a name of these alone is a Latin name to a reader."""


GITHUB_HOSTS = ("github.com", "*.githubusercontent.com")
"""Where images of a repository are, on github.com."""


def is_safe_address(address: str) -> bool:
    """Return whether a link may lead there, read as leniently as the laxest browser does.

    Browsers skip blanks and control characters within a scheme, take backslashes for slashes, and send the part before
    ``@`` as a name, so ``https://github.com@evil.example`` leads to the latter (WHATWG URL Standard, "basic URL
    parser"). A scheme with a dot is not one that anything handles: ``[here](app.py:12)`` is a file and a line.
    """
    plain = _plain(address)
    scheme = _SCHEME.match(plain)
    if scheme and scheme[1] not in _SCHEMES:
        return False
    authority = _authority_of(plain)
    if authority is None:
        return True
    return "@" not in authority and not is_lookalike(authority) and not _NAMED.match(plain)


def is_misleading(label: str, address: str) -> bool:
    """Return whether the text of a link shows another host than the one that the link leads to.

    A host counts as shown after a scheme anywhere in the text, or as the whole text under a common top-level domain.
    Links to github.com may bear the name of a project that is a host, too.
    """
    target = _host_of(_authority_of(_plain(address)))
    if not target:
        return False
    shown = strip_hidden(html.unescape(_MARKUP.sub("", label))).strip()
    if any(_host_of(hit[1].lower()) != target for hit in _SHOWN_HOST.finditer(shown)):
        return True
    bare = _BARE_HOST.match(shown)
    return bare is not None and target != "github.com" and _host_of(bare[0].lower()) != target


def is_at_host(address: str, hosts: Iterable[str]) -> bool:
    """Return whether an address has one of these hosts, or none at all. ``*.x.test`` is any below x.test, ``*`` any."""
    authority = _authority_of(_plain(address))
    if authority is None:
        return True
    host = _host_of(authority)
    shown = html.unescape(address)
    if _BLANK.search(shown) or strip_hidden(shown) != shown:
        hosts = ()
    return any(name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:])) for name in hosts)


def allowed_hosts(environment: Mapping[str, str], hosts: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the hosts that images may come from: GitHub's own, those of ``ACCORD_ALLOWED_HOSTS``, and these."""
    server = _host_of(_authority_of(_plain(environment.get("GITHUB_SERVER_URL", ""))))
    given = environment.get("ACCORD_ALLOWED_HOSTS", "").replace(",", " ").lower().split()
    return tuple(
        dict.fromkeys((*GITHUB_HOSTS, *((server, f"*.{server}") if server else ()), *given, *map(str.lower, hosts)))
    )


def is_lookalike(authority: str) -> bool:
    """Return whether a host can pass for another one: a name in two scripts, or of letters that all look Latin."""
    return not authority.isascii() and any(map(_imitates_latin, _host_of(authority).split(".")))


def _imitates_latin(name: str) -> bool:
    letters = [char for char in name if char.isalpha()]
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in letters}
    if not scripts & _MIXED:
        return False
    return len(scripts) > 1 or all(char in _LOOKALIKES for char in letters)


def _plain(address: str) -> str:
    return _BLANK.sub("", strip_hidden(html.unescape(address))).lower()


def _authority_of(plain: str) -> str | None:
    """Return the part of an address that names user, host and port; None for an address without a host."""
    scheme = _SCHEME.match(plain)
    has_host = scheme[1] in _WITH_HOST if scheme else plain[:2] in ("//", "\\\\", "/\\", "\\/")
    authority = _AUTHORITY.match(plain, scheme.end() if scheme else 0) if has_host else None
    return authority[1] if authority else None


def _host_of(authority: str | None) -> str:
    return _PORT.sub("", unicodedata.normalize("NFKC", authority or "")).rstrip(".").removeprefix("www.")


def is_web_address(url: str) -> bool:
    """Return whether a URL can be requested over http or https."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
