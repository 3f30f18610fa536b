"""One writer at a time: a lease at a ref, held while a result is applied that GitHub would take twice.

The lease is a chain of commits (``CommitChain``). A writer reads the newest one before it reads anything else, and
makes the next one before it writes. Where GitHub refuses that, another writer has come between: what was read is old,
and all is read and decided again. A token that may not write contents gets no lease; markers still keep a repeated run
from writing twice.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from accord.core.errors import AccordError, Refused, Stopped
from accord.core.log import log
from accord.github.models import Forbidden
from accord.github.state import CommitChain, Link, text_of

if TYPE_CHECKING:
    from accord.engine.operations import ApplyOptions
    from accord.github.client import GitHub

HOLD = timedelta(seconds=120)
"""How long a lease counts without a sign of its holder: longer than a first wait for GitHub's secondary rate limit."""

SIGN = timedelta(seconds=30)
"""How old the last sign may be when the holder writes again."""

LONGEST_PAUSE_SECONDS = 16.0
README = (
    "accord maintains this ref. Its newest commit says which run of accord writes to GitHub, or that none does. You "
    "can delete the ref while none does.\n"
)

T = TypeVar("T")


class Overtaken(Exception):
    """Another writer has written since this one read."""


class Lease:
    """The right to write about one thing, such as ``pull-7``."""

    def __init__(self, github: GitHub, key: str, options: ApplyOptions) -> None:
        self._github, self._key, self._ref = github, key, f"refs/accord/locks/{key}"
        self._clock, self._is_needed = options.clock, not options.is_dry_run
        self._chain = CommitChain(github, self._ref, README)
        self._last: Link | None = None
        self._sign: datetime | None = None  # the last one of this holder
        self._is_possible = True

    def wait(self) -> None:
        """Wait until no one holds it. Two requests; one where no one ever held it."""
        pause = 1.0
        while self._is_needed and self._find_holder():
            self._github.pause(pause, f"another run of accord, which is writing ({self._key})")
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def keep(self) -> None:
        """Hold it from the first write on. Raises Overtaken before that, and Stopped after it, if another has it."""
        while self._is_possible and not (self._sign and self._clock.now() - self._sign < SIGN):
            now = self._clock.now()
            if self._append("writing", this_process()):
                self._sign = now
            elif self._is_possible and self._sign:
                self._sign = None
                message = (
                    f"Another run of accord has taken over ({self._key}), as this one gave no sign for two minutes."
                )
                raise Stopped(message, hint="Run the same command again.")
            elif self._is_possible:
                raise Overtaken

    def __enter__(self) -> None:
        """Begin without it."""

    def __exit__(self, *_: object) -> None:
        """Let others write. An error of GitHub changes nothing about the outcome of what was written."""
        if self._sign:
            self._sign = None
            try:
                self._append("free", "")
            except AccordError as error:
                log("lease", "%s: %s", self._key, error.message)

    def _find_holder(self) -> bool:
        """Read the newest version; return whether it has a holder that counts."""
        try:
            sha = self._github.ref(self._ref)
            commit = self._github.commit_object(sha) if sha else None
        except Forbidden as refused:
            return self._give_up(refused)
        self._last = Link(commit.sha, commit.tree) if commit else None
        return commit is not None and is_held(text_of(commit), commit.at, self._github.server_time())

    def _give_up(self, refused: Refused) -> bool:
        """Go on without a lease."""
        log("lease", "%s: %s", self._key, refused.message)
        self._is_possible = False
        return False

    def _append(self, state: str, holder: str) -> bool:
        """Make the next version; return whether it is this one. Where GitHub allows none, the lease is impossible."""
        try:
            made = self._chain.append(self._last, f"{self._key}: {state}", holder)
        except Refused as refused:
            return self._give_up(refused)
        if made is None:
            self._is_possible = self._github.ref(self._ref) != (self._last and self._last.sha)
            return False
        self._last = made
        return True


def write_alone(work: Callable[[], T]) -> T:
    """Call ``work`` again as long as another writer comes between what it reads and what it writes."""
    while True:
        try:
            return work()
        except Overtaken:
            log("lease", "another writer was faster: reading again")


def is_held(holder: str, at: datetime | None, now: datetime) -> bool:
    """Return whether a holder gave a sign lately. One of this machine must still run."""
    return bool(holder) and at is not None and abs(now - at) < HOLD and not _has_ended(holder)


def _machine() -> str:
    """Name this machine, and the container in which its numbers of processes count, without telling which it is."""
    try:
        boot, container = Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")
    except OSError:
        boot = container = ""
    return hashlib.sha256("\n".join((platform.node(), boot, container)).encode()).hexdigest()[:20]


def this_process() -> str:
    """Name this process among those of all machines."""
    return f"{os.getpid()} {_machine()}"


def _has_ended(holder: str) -> bool:
    """Return whether a process of this machine has ended."""
    number, _, machine = holder.partition(" ")
    if machine != _machine() or not number.isascii() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
        state = Path("/proc", number, "stat").read_text().rpartition(") ")[2][:1]
        return state == "Z"  # ended, but its parent has not waited for it
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
