"""The kinds of documents of this room, and the folder that they make up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.kernel.kinds import FolderKind
from accord.sessions.documents import ACCEPTANCE, INPUT, OUTPUT, STATUS, TASKS

if TYPE_CHECKING:
    from pathlib import Path

    from accord.kernel.findings import Finding


def _is_session(folder: Path) -> bool:
    from accord.sessions.folder import is_session

    return is_session(folder)


def _check_session(folder: Path) -> list[tuple[Path, str, list[Finding]]]:
    from accord.sessions.folder import check_session

    return check_session(folder)


KINDS = (INPUT, OUTPUT, STATUS, TASKS, ACCEPTANCE)
SESSION = FolderKind("session", _is_session, _check_session)
FOLDERS = (SESSION,)
