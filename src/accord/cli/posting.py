"""Where commands that post texts connect to, with the policy that the repository has for posted texts."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli.sources import github_for
from accord.cli.step import warn
from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.github.models import Forbidden
from accord.text.posting import posting_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.agents.registry import Registry
    from accord.cli.options import PostingArguments
    from accord.git.trusted_files import TrustedFiles
    from accord.github.client import Connection, GitHub
    from accord.text.posting import PostingPolicy

_UNREADABLE = (
    "The token may not read the agent registry, so only `--allowed-hosts` and `--break-words` count. "
    "To add the registry's, grant the job `contents: read`."
)


@contextmanager
def posting_to(given: PostingArguments, registry: Registry | None = None) -> Iterator[tuple[Connection, PostingPolicy]]:
    """Connect to a repository, and yield the policy for texts that are posted there.

    The policy comes from the registry (the given one, or else the repository's own), options and the environment.
    """
    with github_for(given) as connection:
        yield connection, policy_at(connection.github, given.allowed_hosts, given.break_words, registry)


def policy_at(
    github: GitHub,
    allowed_hosts: Sequence[str] = (),
    break_words: Sequence[str] = (),
    registry: Registry | None = None,
) -> PostingPolicy:
    """Read the policy for texts that are posted to a repository. Raises BrokenContract for an invalid registry."""
    try:
        own = registry or _own_registry(github)
    except BrokenContract as broken:
        found = [replace(one, message=f"In the agent registry: {one.message}", line=None) for one in broken.findings]
        raise BrokenContract(broken.message, findings=found) from None
    return policy_of(own, allowed_hosts, break_words)


def policy_of(
    registry: Registry | None, allowed_hosts: Sequence[str] = (), break_words: Sequence[str] = ()
) -> PostingPolicy:
    """Return the policy of a registry, with the hosts and words of options and the environment."""
    hosts, words = (registry.allowed_hosts, registry.break_words) if registry else ([], [])
    return posting_policy(os.environ, hosts=[*hosts, *allowed_hosts], words=[*words, *break_words])


def local_policy(files: TrustedFiles | None = None, registry: Path | None = None) -> PostingPolicy:
    """Return the policy without a connection: of the checkout's registry, if that can be read and is valid.

    ``files`` are those of the checkout where the caller has them.
    """
    from accord.git.trusted_files import trusted_files
    from accord.runner.trusted_registry import load_registry

    with suppress(AccordError, OSError):
        return policy_of(load_registry(files or trusted_files(Path.cwd(), os.environ), registry))
    return policy_of(None)


def _own_registry(github: GitHub) -> Registry | None:
    """Read the registry from the checkout, or from GitHub's default branch where that has none to trust.

    Without one, the policy needs none: accord's own registry has neither hosts nor words.
    """
    from accord.agents.registry import REGISTRY_PATH
    from accord.git.trusted_files import WorkTreeFiles, trusted_files

    files = trusted_files(Path.cwd(), os.environ)
    is_checkout = not isinstance(files, WorkTreeFiles) or (files.top / ".git").exists()
    if is_checkout or (files.top / REGISTRY_PATH).is_file():
        with suppress(WrongUsage, OSError):  # the checkout does not have the default branch
            path = files.top / REGISTRY_PATH
            return _registry_in(files.read(path), path)
    try:
        raw = github.find_file(str(REGISTRY_PATH))
    except Forbidden:
        warn(_UNREADABLE)
        return None
    return _registry_in(raw, REGISTRY_PATH)


def _registry_in(raw: bytes | None, path: Path) -> Registry | None:
    if raw is None:
        return None
    from accord.agents.registry_rules import registry_from

    return registry_from(raw, path)
