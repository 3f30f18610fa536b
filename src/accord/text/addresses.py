"""Addresses of links: where a browser would go, and whether the text of a link says the same."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from accord.text.hidden import strip_hidden

_BLANK = re.compile(r"[\x00-\x20\x7f-\xa0]+")
_SCHEME = re.compile(r"\A([a-z][a-z0-9+-]*):")
_SCHEMES = frozenset(("ftp", "http", "https", "irc", "ircs", "mailto", "xmpp"))
_WITH_HOST = frozenset(("ftp", "http", "https"))
_AUTHORITY = re.compile(r"[/\\]*([^/\\?#]*)")
_NAMED = re.compile(r"[a-z]*:?[/\\]+(?:[^/\\?#@][^/?#@]*)?@")
"""A name before the host for GitHub, which writes a backslash as %5C."""

_BACKSLASH = re.compile(r"(?:https?|ftp)://+\\")
"""A backslash before the host, which GitHub writes as %5C, and a browser takes for a slash."""

_HOST_WITH_BLANK = re.compile(
    r"[^/\\]*[/\\]+(?:[\s\x00-\x1f\x7f]|[^/\\?#\s\x00-\x1f\x7f]+[\s\x00-\x1f\x7f]+[^/\\?#\s\x00-\x1f\x7f])"
)
"""An address with a blank or a control character before or within its host."""

_PORT = re.compile(r":[0-9]*\Z")
_MARKUP = re.compile(r"[*_`~\\]")
_TICKS = re.compile(r"[ \n]?`+[ \n]?")
"""Backticks around code, and the blank within that is not shown."""

_SHOWN_HOST = re.compile(r"(?:https?|ftp)://([^\s/\\?#<>()\[\]{}\"',;]+)", re.IGNORECASE)
_BARE_HOST = re.compile(
    r"\A(?:(?:[^\W_]|-)+\.)+(?:ai|app|cloud|co|com|dev|edu|eu|gov|info|int|io|mil|net|org|uk|us|xyz)(?=[/:?#]|\Z)",
    re.IGNORECASE,
)
_MIXED = frozenset(("ARMENIAN", "CHEROKEE", "CYRILLIC", "GREEK"))
"""Scripts with letters that look like Latin ones; no name mixes them with Latin (Unicode TR39, "Mixed scripts")."""

_LOOKALIKES = frozenset("асԁеһіјкӏмопрԛѕтуѵѡхԝгьвноυκνρτχωαβε")
"""Cyrillic and Greek letters that pass for Latin ones: a name of these alone is a Latin name to a reader."""

_CLEAN_HOST = re.compile(r"(?:https?:)?//([a-z0-9.-]+)(?::[0-9]*)?(?=[/?#]|\Z)([^?#]*)", re.IGNORECASE)
_HAS_HOST = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_UNCLEAR = re.compile(r"[\\\x00-\x1f\x7f-\x9f]")
_CONTENT_HOSTS = frozenset(
    f"{name}.githubusercontent.com" for name in ("raw", "user-images", "private-user-images", "avatars")
)
_CONTENT_OF_SERVER = frozenset(("raw", "media", "avatars"))
_CAMO = "camo.githubusercontent.com"
_CONTENT_PATH = re.compile(r"/(?:user-attachments|[\w.-]+/[\w.-]+/(?:blob|raw|assets))/[^/]")
_REFERENCE_PATH = re.compile(r"/+([^/]+/[^/]+)/(?:issues|pulls?|discussions|commits?)/[0-9a-f]")
_PLACES_OF_TEXTS = ("", "/issues", "/pull/1")
"""Folders in a repository that a relative address in a text on its pages may be below."""

_COUNTED_PATH = re.compile(r"(?:\A|/)releases/(?:latest/)?download(?:/|\Z)")
_NUMBER_OF_DECODINGS = 3


def is_safe_address(address: str) -> bool:
    """Return whether a link may lead there, with or without entities, read as leniently as the laxest browser does.

    Browsers skip blanks and control characters within a scheme, take backslashes for slashes, and send the part before
    ``@`` as a name, so ``https://github.com@evil.example`` leads to the latter (WHATWG URL Standard, "basic URL
    parser"). A scheme with a dot is not one that anything handles: ``[here](app.py:12)`` is a file and a line.
    """
    for plain in _readings(address):
        scheme, authority = _SCHEME.match(plain), _authority_of(plain)
        if scheme and scheme[1] not in _SCHEMES:
            return False
        is_odd = authority is not None and ("@" in authority or _NAMED.match(plain) or _BACKSLASH.match(plain))
        if is_odd or is_lookalike(authority or ""):
            return False
    return True


def refers_elsewhere(address: str, repository: str, server: str = "github.com") -> bool:
    """Return whether an address leads to an issue, pull request, discussion or commit of another repository on GitHub.

    The page of that one then shows a link back. An address without a host is below this server of GitHub, and one
    without a slash before it in the repository, unless it climbs out.
    """
    for reading in _readings(address):
        path = re.split("[?#]", reading)[0]
        for _ in range(_NUMBER_OF_DECODINGS):
            path = unquote(path).replace("\\", "/")
        authority = _authority_of(path)
        if authority is None:
            bases = [""] if path.startswith("/") else [f"/{repository.lower()}{place}/" for place in _PLACES_OF_TEXTS]
        elif _host_of(authority.rpartition("@")[2]) in ("github.com", server):
            path, bases = path.partition(authority)[2], [""]
        else:
            continue
        named = (_REFERENCE_PATH.match(normpath(base + path)) for base in bases)
        if any(hit[1] != repository.lower() for hit in named if hit):
            return True
    return False


def is_misleading(label: str, address: str) -> bool:
    """Return whether the text of a link shows another host than the one that the link leads to.

    A host counts as shown after a scheme anywhere in the text, or as the whole text under a common top-level domain.
    Links to github.com may bear the name of a project that is a host, too, and those to a host below it a bare name.
    """
    authorities = [_authority_of(plain) for plain in _readings(address)]
    targets = {_host_of(authority) for authority in authorities if authority is not None}
    if not targets:
        return False
    shown = html.unescape(address)
    if _HOST_WITH_BLANK.match(shown) or strip_hidden(shown) != shown:
        targets.add("")  # readers disagree about the host, so no text shows it
    texts = {_MARKUP.sub("", label), _MARKUP.sub("", _TICKS.sub("", label))}
    readings = texts | {html.unescape(text) for text in texts}
    return any(_shows_another(strip_hidden(words).strip(), targets) for words in readings)


def _shows_another(shown: str, targets: set[str]) -> bool:
    if any({_host_of(hit[1].lower())} != targets for hit in _SHOWN_HOST.finditer(shown)):
        return True
    bare = _BARE_HOST.match(shown)
    if bare is None or targets == {"github.com"}:
        return False
    host = _host_of(bare[0].lower())
    is_whole = bare.end() == len(shown)
    return any(host != target and not (is_whole and target.endswith("." + host)) for target in targets)


def may_load(address: str, hosts: Sequence[str], server: str = "github.com") -> bool:
    """Return whether an image may load from there when a text is shown: what loads tells its host who reads.

    A relative address may, and so may content on GitHub or this server of GitHub that has no counter, and these other
    hosts. ``*.x.test`` is any below x.test, ``*`` any; neither is a host of GitHub. ``camo`` never is one, as an
    attacker who prepares an address there for each character learns a text from what is loaded (CVE-2025-59145), and
    downloads of releases are counted in public. An address that readers may understand otherwise does not load.
    """
    return all(_may_load(reading, hosts, server) for reading in {address, html.unescape(address)})


def _may_load(address: str, hosts: Sequence[str], server: str) -> bool:
    path = address.partition("#")[0].partition("?")[0]
    for _ in range(_NUMBER_OF_DECODINGS):
        path = unquote(path)
    if _UNCLEAR.search(address + path) or "%25" in path or strip_hidden(address) != address:
        return False
    if not _HAS_HOST.match(_BLANK.sub("", address)):
        return not _COUNTED_PATH.search(normpath(path).lower())
    found = _CLEAN_HOST.match(address)
    host = found[1].lower().rstrip(".").removeprefix("www.") if found else ""
    if not found or {".", ".."} & set(path.split("/")):
        return False
    if host in ("github.com", server):
        return _CONTENT_PATH.match(found[2]) is not None
    if any(host.endswith("." + domain) for domain in ("github.com", "githubusercontent.com", server)):
        is_content = host in _CONTENT_HOSTS or host.removesuffix("." + server) in _CONTENT_OF_SERVER
        return is_content or (host in hosts and host != _CAMO)
    return any(name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:])) for name in hosts)


def host_of(address: str) -> str:
    """Return the host of an address as hosts are compared; empty without one."""
    return _host_of(_authority_of(_plain(address)))


def is_lookalike(authority: str) -> bool:
    """Return whether a host can pass for another one: a name in two scripts, or of letters that all look Latin."""
    for name in () if authority.isascii() else _host_of(authority).split("."):
        letters = [char for char in name if char.isalpha()]
        scripts = {unicodedata.name(char, "").partition(" ")[0] for char in letters}
        if scripts & _MIXED and (len(scripts) > 1 or _LOOKALIKES.issuperset(letters)):
            return True
    return False


@lru_cache(maxsize=1024)
def _readings(address: str) -> tuple[str, ...]:
    """Return the address as it is, and as it is if what looks like an entity in it is one."""
    decoded = html.unescape(address)
    return (_plain(address),) if decoded == address else (_plain(address), _plain(decoded))


def _plain(address: str) -> str:
    return _BLANK.sub("", strip_hidden(address)).lower()


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
