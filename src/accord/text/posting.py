"""The policy of a repository for posted texts: hosts of images, and the words of its bots that posted texts break."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from accord.core.errors import WrongUsage
from accord.core.frozen import Frozen
from accord.text.addresses import host_of, is_safe_address, may_load, refers_elsewhere

_HOST = re.compile(r"\*|(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*")
_AROUND = re.compile(r"\A(?:[a-z]+:)?//|[/?#].*\Z|:[0-9]*(?=[/?#]|\Z)", re.DOTALL)
"""The parts of an address besides its host."""

HOSTS, WORDS = "ACCORD_ALLOWED_HOSTS", "ACCORD_BREAK_WORDS"
"""The variables that add to the policy of every command that posts."""


class PostingPolicy(Frozen):
    """Rules for texts that are posted."""

    image_hosts: tuple[str, ...] = ()  # other hosts that images may come from
    words: tuple[str, ...] = ()  # broken up in posted texts
    server: str = "github.com"
    repository: str | None = None  # the only one that texts may refer to; None: any

    def may_load(self, address: str) -> bool:
        """Return whether an image with this address stays one."""
        return may_load(address, self.image_hosts, self.server)

    def may_link(self, address: str) -> bool:
        """Return whether a link to this address stays one."""
        is_foreign = self.repository is not None and refers_elsewhere(address, self.repository, self.server)
        return not is_foreign and is_safe_address(address)

    def may_refer(self, name: str) -> bool:
        """Return whether ``NAME#1`` and ``NAME@COMMIT`` may stay, for an owner or ``OWNER/REPO``."""
        own = (self.repository or "").lower()
        return self.repository is None or name.lower() in (own, own.partition("/")[0])


def posting_policy(
    environment: Mapping[str, str],
    *,
    hosts: Iterable[str] = (),
    words: Iterable[str] = (),
    repository: str | None = None,
) -> PostingPolicy:
    """Return the policy of the server: what the variables of the environment and the caller add to it.

    Raises WrongUsage for a host in the environment or from the caller that no image could have.
    """
    server = host_of(environment.get("GITHUB_SERVER_URL", "")) or "github.com"
    given = [*split_hosts(environment.get(HOSTS, ""), f"`{HOSTS}`"), *map(normal_host, hosts)]
    broken = [*split_words(environment.get(WORDS, "")), *(word.strip() for word in words)]
    return PostingPolicy(tuple(dict.fromkeys(given)), tuple(dict.fromkeys(filter(None, broken))), server, repository)


def split_hosts(text: str, source: str = "") -> list[str]:
    """Return the hosts that blanks or commas separate. Raises WrongUsage; ``source`` says where they are from."""
    for host in (hosts := text.replace(",", " ").split()):
        if problem := host_problem(host):
            message, hint = problem
            raise WrongUsage(f"{source}: {message}" if source else message, hint=hint)
    return [normal_host(host) for host in hosts]


def split_words(text: str) -> list[str]:
    """Return the words that commas or line ends separate."""
    return [word.strip() for word in re.split(r"[,\n]", text) if word.strip()]


def normal_host(host: str) -> str:
    """Return a host as images' hosts are compared: in small letters, without ``www.`` and the last dot."""
    return host.strip().lower().rstrip(".").removeprefix("www.")


def host_problem(host: str) -> tuple[str, str] | None:
    """Return what is wrong with an allowed host, and a hint; None for a valid one."""
    if _HOST.fullmatch(normal_host(host)):
        return None
    message = f"`{host[:80]}` is not a host."
    bare = normal_host(_AROUND.sub("", host.strip().lower()))
    if _HOST.fullmatch(bare):
        return message, f"Use `{bare}`: protocol, port and path do not count."
    return message, "Use `img.example.org` or `*.example.org`."
