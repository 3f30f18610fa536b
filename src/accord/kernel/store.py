"""Files that are whole or not there: written beside, then put in place in one step."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a system answers to a write for which there is no room."""


def write_whole(path: Path, text: str) -> None:
    """Replace a file's content so that a reader, or a crash, sees the old text or the new one and nothing between.

    A file that is there keeps its permissions; a new one has those that any program would give it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside(path)
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def can_be_written(path: Path) -> bool:
    """Tell before the first write whether a file could be put in place later, by a file beside it that goes again.

    Its folders may still be missing, and are so afterwards. Permissions alone do not tell: root has them all.
    """
    made: list[Path] = []
    try:
        made = [folder for folder in path.absolute().parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = _beside(path)
        beside.touch(exist_ok=False)
        beside.unlink()
        return not path.is_dir()
    except OSError:
        return False
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
