"""The folder that an agent's run leaves behind: all that the second job, which may write, knows about it.

``record.json`` holds the facts below. Beside it lie ``stdout.log`` and ``stderr.log`` (what the agent printed),
``final-message.md`` (where the agent wrote one to a file), ``prompt.md`` (what it was asked), ``changes.patch``
(what it changed, as git's binary-safe patch against ``base_sha``) and, where one was asked for, ``schema.json`` (the
JSON Schema of its structured result). The record is written last: without it the run did not end. Finishing the run
adds ``result.json``, the structured result, where there is one that fits.

Secrets are taken out of all of them while they are written; a patch with a secret of the job in it is not written.

The agent runs as the same user and can change anything in the folder. So its files are opened only by
``open_regular``, which follows no link, and written only after ``make_writable``.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.git.program import Git
from accord.text.hidden import strip_hidden

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


RECORD = "record.json"
STDOUT = "stdout.log"
STDERR = "stderr.log"
FINAL_MESSAGE = "final-message.md"
PROMPT = "prompt.md"
PATCH = "changes.patch"
SCHEMA = "schema.json"
RESULT = "result.json"

InternalErrorKind = Literal[
    "time-limit",
    "cancelled",
    "install-failed",
    "credential-missing",
    "prompt-invalid",
    "not-started",
    "record-missing",
    "changes-unreadable",
    "push-refused",
    "push-conflict",
    "push-unreachable",
    "disk-full",
]
"""What accord itself knows went wrong; the first evidence of all.

``record-missing`` is a job that ended before its agent's run did, such as by the loss of its machine.
``push-refused`` is a permission or protection, which a person must fix; ``push-conflict`` a branch that moved again
and again or a patch that no longer fits; ``push-unreachable`` a network or server.
"""


class InternalError(BaseModel):
    """What accord itself saw go wrong; ``detail`` is for people, ``has_hint`` tells that it says what to do as well."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: InternalErrorKind
    detail: str
    has_hint: bool = False


class RunRecord(BaseModel):
    """The facts of one run. Inputs stand as they were given; ``exit_code`` is None where no process ended.

    ``base_sha`` is the commit that the work tree stood on before the agent began, empty outside a repository.
    ``secret_names`` are the variables that its registry declares to be secrets; never their values.
    ``patch_sha256`` is the digest of the patch, empty where there is none; ``warnings`` are sentences for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    version: Literal[1] = 1
    agent: str
    codec: str
    mode: str = ""
    pr_number: str = ""
    pr_ref: str = ""
    base_ref: str = ""
    iteration: str = ""
    base_sha: str = ""
    is_skipped: bool = False
    exit_code: int | None = None
    own: InternalError | None = None
    secret_names: tuple[str, ...] = ()
    started_at: str = ""
    duration_seconds: float = 0
    patch_sha256: str = ""
    warnings: tuple[str, ...] = ()


def open_regular(path: Path) -> IO[bytes]:
    """Open a file of the folder to read it. Raises FileNotFoundError for anything but a regular file, links included.

    An agent, or whoever can write to an artifact, may have put a link to a secret there, or a pipe that never ends.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.ENOTDIR):
            raise _no_file(path) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _no_file(path)
    return os.fdopen(handle, "rb", buffering=1024 * 1024)


def _no_file(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "This is no regular file", str(path))


def make_writable(path: Path) -> None:
    """Make a file of the folder writable: the folder is there, and nothing that is no regular file is in its place."""
    folder = path.parent
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        folder.chmod(0o700)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or not path.is_file():
        path.unlink(missing_ok=True)


def restore_if_replaced(path: Path, file: IO[bytes]) -> bool:
    """Write a file of the folder again from its open handle when somebody took or replaced it; tell whether so."""
    ours = os.fstat(file.fileno())
    try:
        theirs = os.lstat(path)
    except OSError:
        theirs = None
    if theirs and (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino):
        return False
    make_writable(path)
    path.unlink(missing_ok=True)
    file.seek(0)
    with path.open("xb") as again:
        shutil.copyfileobj(file, again)
    return True


_PATH_CHARS = 200
_STAT_CHARS = 4000


@dataclass(frozen=True, slots=True)
class FileStat:
    """A file that changed, and by how many lines; None for a binary one. A renamed file is one, by its new name."""

    path: str
    added: int | None
    removed: int | None


def patch_stats(patch: bytes) -> list[FileStat]:
    """List the files that a patch changes. Raises BrokenContract when it is no patch that git can read."""
    if not patch.strip():
        return []
    with tempfile.TemporaryDirectory(prefix="accord-stat-") as nowhere:
        outside = Git(Path(nowhere), environment={"GIT_CEILING_DIRECTORIES": str(Path(nowhere).parent)})
        done = outside.attempt("apply", "--numstat", "-z", "-", data=patch)
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").replace("error: ", "").split())[:500]
        message = f"Git cannot read the patch of the run: {said}"
        raise BrokenContract.of(Finding("patch-invalid", message))
    return _numstat(done.stdout)


def range_stats(git: Git, base: str, head: str) -> list[FileStat]:
    """List the files that differ between two commits. Raises GitFailed when one of them is not there."""
    return _numstat(git("diff-tree", "-r", "-M", "--numstat", "-z", "--end-of-options", base, head))


def _numstat(output: bytes) -> list[FileStat]:
    """Read ``added TAB removed TAB path NUL``; a rename of a range has an empty path, then both names."""
    fields = iter(output.decode("utf-8", "surrogateescape").split("\0")[:-1])
    stats = []
    for field in fields:
        added, removed, path = field.split("\t", 2)
        if not path:
            next(fields)
            path = next(fields)
        stats.append(FileStat(path, _count(added), _count(removed)))
    return stats


def _count(field: str) -> int | None:
    return None if field == "-" else int(field)


def diff_stat(stats: Sequence[FileStat], *, limit: int = _STAT_CHARS) -> str:
    """Tell in a few lines, for a prompt, what changed: ``src/a.py +3 -1``; what goes beyond the limit is counted."""
    lines: list[str] = []
    room = limit
    for change in stats:
        line = f"{_shown(change.path)} {'binary' if change.added is None else f'+{change.added} -{change.removed}'}"
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*lines, f"and {len(stats) - len(lines)} more files"])
        lines.append(line)
    return "\n".join(lines)


def _shown(path: str) -> str:
    """Write a path on one line, whatever it holds."""
    text = strip_hidden(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return " ".join(text.split())[:_PATH_CHARS]
