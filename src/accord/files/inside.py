"""Reading files of a repository that an untrusted branch may have replaced by links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.core.documents import MAX_BYTES
from accord.core.errors import BrokenContract
from accord.core.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

LINK_OUT = "This link leads out of the repository. Replace it with a file, or remove it."


def read_inside(root: Path, path: str) -> bytes:
    """Read a file of the repository. Raises BrokenContract for a link that leads out of it and for an OSError."""
    file = root / path
    if not is_inside(root, file):
        raise BrokenContract.of(Finding("file-unreadable", LINK_OUT))
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"Cannot read this file: {error.strerror}. Replace it with a readable file, or remove it."
        raise BrokenContract.of(Finding("file-unreadable", message)) from None


def is_inside(root: Path, path: Path) -> bool:
    """Return whether a path is in the directory after following links, which an untrusted branch may contain."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # links in a circle
        return False
