"""Approved specifications: which changed files of a push they are, and what their front matter says. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract
from accord.files.yaml import read_mapping

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.github.models import PullFile

SPECS = "docs/specs/"
APPROVED = "approved"
MOST_SPECS = 10
"""Plans that one push starts; the summary names the rest."""

_SUFFIXES = {".md", ".markdown"}
_MOST_BYTES = 64 * 1024
"""The longest front matter that is read."""


def changed_specs(files: Iterable[PullFile]) -> list[str]:
    """Return the paths of specifications that a push added or changed."""
    return [
        file.path
        for file in files
        if file.path.startswith(SPECS)
        and PurePosixPath(file.path).suffix.lower() in _SUFFIXES
        and file.status != "removed"
        and file.path.isprintable()
    ]


def is_approved(text: bytes) -> bool:
    """Return whether the front matter of a specification says ``status: approved``."""
    lines = text[:_MOST_BYTES].removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
    if lines[0].rstrip() != b"---":
        return False
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == b"---"), None)
    if end is None:
        return False
    try:
        value = read_mapping(b"\n".join(lines[1:end])).value
    except BrokenContract:
        return False
    return str(value.get("status", "")).strip().lower() == APPROVED
