"""Sessions that a change touches, held against how they were before it. Reads git and files only.

Source: global agent contract, "Required repository artifacts": previous sessions are read only, the history only grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.core.findings import Finding
from accord.git.program import Git, split_nul
from accord.sessions.folder import HISTORY_FILE, OUTPUTS_FILE, STATUS_FILE, Part
from accord.sessions.policy import WORK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from accord.sessions.models import SessionStatus


def touched_sessions(root: Path, start: str) -> list[Path]:
    """Name the folders of sessions whose files differ from those of a commit; new files count, and moved ones twice."""
    git = Git(root)
    changed = split_nul(git("diff", "--name-only", "--no-renames", "--relative", "-z", start, "--", WORK))
    changed += split_nul(git("ls-files", "--others", "--exclude-standard", "-z", "--", WORK))
    names = sorted({path.split("/")[1] for path in changed if path.count("/") > 1})
    return [root / WORK / name for name in names]


def change_findings(root: Path, name: str, start: str) -> Iterator[Finding]:
    """Find what was done to a session since a commit that the session forbids: going on when done, losing history."""
    git = Git(root)
    folder = f"{WORK}/{name}"
    before = _content(git, start, f"{folder}/{STATUS_FILE}")
    status = Part(STATUS_FILE, before).model if before is not None else None
    if status and status.current_state == "DONE" and not _is_reopened(status, root / folder):
        message = (
            f"{name} was done before this change, and is read only since. Begin a new session, or reopen this one."
        )
        yield Finding("session-done", message)
    for file in (HISTORY_FILE, OUTPUTS_FILE):
        lines = _content(git, start, f"{folder}/{file}")
        if lines is not None and not _now(root / folder / file).startswith(lines):
            message = f"{file} only grows, and this change takes lines out of it or alters them. Put them back."
            yield Finding("history-shortened", message)


def _is_reopened(before: SessionStatus, folder: Path) -> bool:
    """Tell whether a session that was done was opened again since, also when it is done once more."""
    now: SessionStatus | None = Part(STATUS_FILE, _now(folder / STATUS_FILE)).model
    return now is not None and (now.current_state != "DONE" or now.reopened_at != before.reopened_at)


def _content(git: Git, commit: str, path: str) -> bytes | None:
    found = git.attempt("cat-file", "blob", f"{commit}:./{path}")
    return None if found.returncode else found.stdout


def _now(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""
