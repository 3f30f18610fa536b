"""The registry of a repository, from files that no agent has written, over the shipped one."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from accord.agents.registry import REGISTRY_PATH, shipped_registry
from accord.agents.registry_rules import registry_from
from accord.core.errors import AccordError, WrongUsage
from accord.git.trusted_files import trusted_files

if TYPE_CHECKING:
    from pathlib import Path

    from accord.agents.registry import Registry
    from accord.git.trusted_files import TrustedFiles


def load_registry(files: TrustedFiles, named: Path | None = None) -> Registry:
    """Read the shipped registry, merged with the named one, or else with the repository's own if it has one.

    An agent's keys replace those of the shipped one. Raises BrokenContract with findings if the file breaks a rule,
    WrongUsage if it cannot be read.
    """
    path = named or files.top / REGISTRY_PATH
    try:
        raw = files.read(path, is_named=named is not None)
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    if raw is None and named:
        raise _unreadable(path, "File not found")
    return registry_from(raw, path)


def _unreadable(path: Path, reason: str) -> WrongUsage:
    hint = "Pass an existing file as `--registry`."
    return WrongUsage(f"Cannot read the registry {path}: {reason}.", hint=hint)


def registry_at(directory: Path) -> Registry:
    """Return the registry of the checkout around a directory; the shipped one where its own cannot be read."""
    with suppress(AccordError, OSError):
        return load_registry(trusted_files(directory, os.environ))
    return shipped_registry()
