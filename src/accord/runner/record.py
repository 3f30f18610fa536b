"""The folder of a run: everything that the second job, which may write to GitHub, knows about the run.

``attempt-1`` and so on have the files of the other attempts than the one that counts: the last one, or the one before
it if the last one was to repair a result and failed. Secrets are redacted while the files are written; a patch that
contains a secret of the job is not written.

The agent runs as the same user and can change anything in the folder. So its files are opened only by
``open_regular``, which follows no link, and written only after ``make_writable``.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.runner.models import InternalError, RunContext
from accord.runner.transcripts.account import Usage

if TYPE_CHECKING:
    from accord.git.snapshots import Snapshot

RECORD = "record.json"  # written last: without it the run did not end
STDOUT = "stdout.log"
STDERR = "stderr.log"
FINAL_MESSAGE = "final-message.md"  # if the agent wrote one to a file
SUBMITTED = "submitted-result.json"  # if it submitted a result by accord's tools
PROMPT = "prompt.md"
PATCH = "changes.patch"  # git's binary-safe patch against ``base_sha``
UNDO = "undo-refs.sh"  # if refs moved: puts them back
SCHEMA = "schema.json"  # the JSON Schema of the result, if one was requested
RESULT = "result.json"  # added when the run is finished
OUTPUTS = "outputs.json"  # added by the turn of a loop, which continues with them after an interruption


class Attempt(BaseModel):
    """One turn of one agent, with its own tokens and cost.

    ``outcome`` is ``failed`` if the agent failed or was ended, ``broken`` if its result breaks its contract, ``budget``
    if its money was spent, ``skipped`` if it could not start, else ``done``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    agent: str
    turn: int = 1  # counts those of this agent from 1
    outcome: Literal["done", "broken", "failed", "budget", "skipped"]
    cause: str = ""  # why it failed, a key of ``accord.runner.causes.CAUSES``
    reason: str = ""  # the cause for people
    exit_code: int | None = None  # None if no process ended
    model: str = ""
    session: str = ""  # the conversation, as the CLI names it
    tokens_input: int | None = None
    tokens_output: int | None = None
    cost_usd: float | None = None
    duration_seconds: float = 0
    findings: tuple[Finding, ...] = ()  # of its result
    fixes: tuple[str, ...] = ()  # small faults that accord corrected in its result


class RunRecord(BaseModel):
    """The facts of one run."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    version: Literal[1] = 1
    agent: str  # of the attempt that counts, like codec, exit_code and error
    codec: str = "plain"
    kind: str = ""  # of the document that the result must be, empty without one
    context: RunContext = RunContext()
    base_sha: str = ""  # the commit checked out before the agent started, empty outside a repository
    is_skipped: bool = False
    exit_code: int | None = None
    error: InternalError | None = None
    secret_names: tuple[str, ...] = ()  # variables that the registry declares as secrets
    started_at: str = ""
    duration_seconds: float = 0
    patch_sha256: str = ""  # empty without a patch
    merged: tuple[str, ...] = ()  # commits of elsewhere that HEAD has since the start, newest first
    pushed: Mapping[str, str] = {}  # branches of remotes with commits that the agent made and pushed there
    messages: tuple[str, ...] = ()  # of the agent's own commits
    steering: tuple[str, ...] = ()  # changed paths that steer agents or CI, as the checkout tells
    left_out_steering: tuple[str, ...] = ()  # paths that steer agents, and stay in the tree without being in the patch
    warnings: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()

    @property
    def usage(self) -> Usage:
        """Add up the tokens and the cost of all attempts."""

        def total(name: str) -> Any:
            known = [number for attempt in self.attempts if (number := getattr(attempt, name)) is not None]
            return sum(known[1:], known[0]) if known else None

        return Usage(total("tokens_input"), total("tokens_output"), total("cost_usd"))


@dataclass
class RunProgress:
    """A run under way: its record so far, and the work tree before it. ``has_run``: an agent was started."""

    record: RunRecord
    snapshot: Snapshot | None = None
    has_run: bool = False

    def warn(self, *texts: str) -> None:
        """Add warnings, each once."""
        new = dict.fromkeys(text for text in texts if text and text not in self.record.warnings)
        self.record.warnings += tuple(new)


def read_record(run_dir: Path) -> RunRecord:
    """Read ``record.json``. Raises BrokenContract if it is missing or invalid."""
    try:
        with open_regular(run_dir / RECORD) as file:
            return RunRecord.model_validate_json(file.read())
    except (OSError, ValidationError) as error:
        problem = "is missing" if isinstance(error, OSError) else "was not written by `accord run`"
        hint = "Pass the folder that `accord run` wrote. The agent's job may have ended before it wrote one."
        raise BrokenContract.of(Finding("run-record", f"{run_dir / RECORD} {problem}.", hint=hint)) from None


def open_regular(path: Path) -> IO[bytes]:
    """Open a file of the folder for reading. Raises FileNotFoundError for links and other irregular files.

    The agent, or anyone who can write to the artifact, may have put a link to a secret there, or an endless pipe.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.ENOTDIR):
            raise _not_regular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_regular(path)
    return os.fdopen(handle, "rb", buffering=1024 * 1024)


def _not_regular(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "Not a regular file", str(path))


def make_writable(path: Path) -> None:
    """Make sure that a file can be written: create its folder and remove anything there that is not a regular file."""
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
    """Write a file again from its open handle if it was removed or replaced; return whether it was."""
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
