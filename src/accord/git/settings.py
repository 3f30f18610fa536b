"""The settings by which a person's git stores and hides files, read before an untrusted program can change them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accord.git.program import ask_as_caller, split_nul

if TYPE_CHECKING:
    from collections.abc import Mapping

_STORING = ("core.autocrlf", "core.eol", "core.ignorecase", "core.precomposeunicode", "core.checkroundtripencoding")
_FALSE = ("false", "no", "off", "0")


@dataclass(frozen=True)
class Settings:
    """How a repository stores files: ``storing`` are values of git's configuration, ``filters`` the drivers' names.

    ``has_modes`` is false where the executable bit of files does not count (``core.fileMode``). ``attributes`` and
    ``ignores`` are the contents of the files besides those of the tree, the user's first.
    """

    storing: Mapping[str, str]
    filters: tuple[str, ...] = ()
    has_modes: bool = True
    attributes: tuple[bytes, bytes] = (b"", b"")
    ignores: tuple[bytes, bytes] = (b"", b"")

    @property
    def without_filters(self) -> dict[str, str]:
        """The configuration of a git that stores files in the same way, but runs no program for it."""
        parts = ("clean", "smudge", "process")
        off = {f"filter.{name}.{part}": "" for name in self.filters for part in parts}
        off |= {f"filter.{name}.required": "false" for name in self.filters}
        return {**self.storing, **off}


def read_settings(directory: Path) -> Settings:
    """Read the settings that git has in a repository, those of the user and the system included."""
    values: dict[str, str] = {}
    for entry in split_nul(ask_as_caller(directory, "config", "--null", "--list")):
        name, separator, value = entry.partition("\n")
        values[name] = value if separator else "true"
    places = ask_as_caller(directory, "rev-parse", "--path-format=absolute", "--git-path", "info", "--show-toplevel")
    info, top = (Path(os.fsdecode(line)) for line in [*places.split(b"\n"), b".", b"."][:2])
    home = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")) / "git"

    def texts(name: str, key: str, default: str) -> tuple[bytes, bytes]:
        named = values.get(key, "")
        own = os.path.expanduser(named) if named else home / default
        return _read(top / own), _read(info / name)

    drivers = {name[len("filter.") : name.rindex(".")] for name in values if name.startswith("filter.")}
    return Settings(
        {name: values[name] for name in _STORING if name in values},
        tuple(sorted(drivers)),
        values.get("core.filemode", "true").lower() not in _FALSE,
        texts("attributes", "core.attributesfile", "attributes"),
        texts("exclude", "core.excludesfile", "ignore"),
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
