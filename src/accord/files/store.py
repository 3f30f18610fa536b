"""Files that are whole or not there: written beside, then put in place in one step; and reads that follow no link."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from accord.core.clock import Clock, attempts
from accord.core.documents import MAX_BYTES
from accord.core.errors import BrokenContract, Stopped
from accord.core.findings import Finding
from accord.core.frozen import Frozen

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a write to a full disk."""

PAUSES = (0.1, 0.2, 0.4)
"""Seconds between tries."""

TRIES = len(PAUSES) + 1
_BESIDE_CHARS = 100  # of a file's name, in that of the file beside it
_LOCK_POLL_SECONDS = 0.01
_SILENCE_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0


class Disk:
    """The calls by which files are changed; a test puts accidents in between."""

    def read(self, path: Path) -> bytes:
        """Return a file's bytes."""
        return path.read_bytes()

    def create(self, path: Path, data: bytes) -> None:
        """Write a new file and wait until it is on the disk."""
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def replace(self, source: Path, target: Path) -> None:
        """Put a file in the place of another in one step."""
        source.replace(target)

    def sync(self, folder: Path) -> None:
        """Wait until the names in a folder are on the disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def append(self, path: Path, data: bytes, kept: int) -> None:
        """Add after the first ``kept`` bytes of a file, never through a link, and wait until it is on the disk."""
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            os.ftruncate(handle, kept)
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        finally:
            os.close(handle)


DISK = Disk()


class Storage(Frozen):
    """Where files are kept: the disk, and the clock by which waiting is counted."""

    clock: Clock
    disk: Disk = DISK


class NotWritten(Stopped):
    """A file could not be written and read back, whatever was tried. It is whole, as it was or as it was to be."""


def write_whole(path: Path, text: str | bytes) -> None:
    """Replace a file's content, and keep its permissions, so that a reader or a crash sees the old or the new text."""
    _put(path, text.encode("utf-8") if isinstance(text, str) else text, DISK)


def _put(path: Path, data: bytes, disk: Disk) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside(path)
    try:
        disk.create(beside, data)
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        disk.replace(beside, path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # as the caller knows it
        raise


def write_checked(path: Path, data: bytes, storage: Storage) -> None:
    """Replace a file's content, and read it back; try again a few times. Raises NotWritten."""

    def once() -> str:
        _put(path, data, storage.disk)
        storage.disk.sync(path.parent)
        return "" if storage.disk.read(path) == data else "it reads back differently"

    _persist(path, once, storage)


def _persist(path: Path, once: Callable[[], str], storage: Storage) -> None:
    """Call ``once`` until it returns no problem. Raises NotWritten after the last try."""
    problem = ""
    for _ in attempts(storage.clock, PAUSES):
        try:
            problem = once()
        except OSError as error:
            problem = error.strerror or str(error)
        if not problem:
            return
    raise NotWritten(
        f"{path} could not be written in {TRIES} tries: {problem}.",
        hint="Free the disk or fix its permissions, and run the same command again.",
    )


def file_behind(path: Path) -> Path:
    """Return the file to write for a path: that behind its links.

    Raises BrokenContract ``file-unreadable`` for a link out of the repository, or out of its directory outside of any
    repository, and for a hard link: a write would separate its two names.
    """
    place = Path(os.path.abspath(path))
    root = next((folder for folder in place.parents if (folder / ".git").exists()), place.parent)
    if not is_inside(root, place):
        raise BrokenContract.of(replace(LINK_OUT, message=f"The link {path} leads out of {root}."))
    target = place.resolve()
    if target.is_file() and target.stat().st_nlink > 1:
        message = f"The file {path} has a second name, a hard link, which would keep the old content."
        raise BrokenContract.of(Finding("file-unreadable", message, hint="Replace one with a symbolic link or a copy."))
    return target


def change_file(path: Path, change: Callable[[bytes], bytes], storage: Storage) -> bytes:
    """Read, change and write a file under its folder's lock. Raises Stopped.

    It tries again where another program, which does not take the lock, wrote the file meanwhile. Raises BrokenContract
    for links that ``file_behind`` refuses.
    """
    path = file_behind(path)
    with folder_lock(path.parent, storage, path.name):
        for _ in attempts(storage.clock, PAUSES):
            before = storage.disk.read(path)
            after = change(before)
            if after == before:
                return after
            if storage.disk.read(path) == before:
                write_checked(path, after, storage)
                return after
    raise Stopped(
        f"Another program wrote {path} each time accord was about to write it.",
        hint="Let only one program write it, or run the same command again.",
    )


def append_once(path: Path, line: bytes, storage: Storage) -> None:
    """Add a line of JSON unless it is there, under the caller's lock; a last line cut by a crash goes first."""

    def once() -> str:
        there = storage.disk.read(path) if path.exists() else b""
        *lines, tail = there.split(b"\n")
        if line in lines:
            return ""
        whole = there[: len(there) - len(tail)] if is_cut_off(tail) else there + b"\n"
        wanted = whole if line == tail else whole + line + b"\n"
        kept = min(len(there), len(whole))
        storage.disk.append(path, wanted[kept:], kept)
        return "" if storage.disk.read(path) == wanted else "it reads back differently"

    _persist(path, once, storage)


@contextmanager
def folder_lock(folder: Path, storage: Storage, *names: str) -> Iterator[tuple[int, ...]]:
    """Lock a folder; the lock ends with its holder. Raises Stopped after half a minute. Windows has no such lock.

    Files that killed writers left beside the named ones are removed: their writers must hold the lock.

    Yields the file descriptors of the lock. A program that inherits them holds the lock, too, until it ends.
    """
    if sys.platform == "win32":
        yield ()
        return
    import fcntl
    import logging

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        start = storage.clock.monotonic()
        is_told = False
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            waited = storage.clock.monotonic() - start
            if waited >= _PATIENCE_SECONDS:
                raise Stopped(
                    f"Another process has been writing in {folder} for {_PATIENCE_SECONDS:.0f} seconds.",
                    hint="Wait until it has ended, and run the same command again.",
                )
            if waited >= _SILENCE_SECONDS and not is_told:
                is_told = True
                seconds, why = _PATIENCE_SECONDS - waited, f"another process is writing in {str(folder)!r}"
                logging.getLogger(__name__).warning("waiting, for %.0f seconds at most: %s", seconds, why)
            storage.clock.sleep(_LOCK_POLL_SECONDS)
        _sweep(folder, {name[:_BESIDE_CHARS] for name in names})
        yield (handle,)
    finally:
        os.close(handle)


def _sweep(folder: Path, names: set[str]) -> None:
    for path in folder.iterdir() if names else ():
        match = re.fullmatch(r"\.(.+)\.[0-9a-f]{16}", path.name)
        if match and match.group(1) in names:
            with suppress(OSError):
                path.unlink()


def can_be_written(path: Path) -> bool:
    """Return whether a file could be put in place later; leave nothing behind. A device or a pipe is refused."""
    made: list[Path] = []
    try:
        made = [folder for folder in path.absolute().parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = _beside(path)
        beside.touch(exist_ok=False)
        beside.unlink(missing_ok=True)  # the holder of the folder's lock may have removed it
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return path.parent.is_dir()
    except (OSError, ValueError):  # the latter for what has no name, such as "."
        return False
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:_BESIDE_CHARS]}.{os.urandom(8).hex()}")


def is_cut_off(line: bytes) -> bool:
    """Tell whether a crash cut off a line of JSON: it is blank, or begins an object or a list without its end."""
    text = line.strip(b"\0 \t\r")
    if not text or text[:1] not in (b"{", b"[") or is_of_array(text):
        return not text
    try:
        json.JSONDecoder().raw_decode(text.decode(errors="replace"))  # whatever follows
    except (ValueError, RecursionError):
        return True
    return False


def is_of_array(line: bytes) -> bool:
    """Tell whether a line has whole objects, or none, with commas and brackets of a JSON array around them."""
    text = line.strip(b"[], \t\r\n")
    try:
        return text[:1] in (b"", b"{") and isinstance(json.loads(b"[%b]" % text), list)
    except (ValueError, RecursionError):
        return False


OF_ARRAY = "The line has commas or brackets, as of a JSON array.", "Write one object a line, without any between them."
"""Message and hint about such a line."""

LINK_OUT = Finding(
    "file-unreadable",
    "This link leads out of the repository.",
    hint="Replace it with a file, or remove it.",
)


def read_inside(root: Path, path: str) -> bytes:
    """Read a file of the repository. Raises BrokenContract for a link that leads out of it and for an OSError."""
    file = root / path
    if not is_inside(root, file):
        raise BrokenContract.of(LINK_OUT)
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"Cannot read this file: {error.strerror}."
        hint = "Replace it with a readable file, or remove it."
        raise BrokenContract.of(Finding("file-unreadable", message, hint=hint)) from None


def is_inside(root: Path, path: Path) -> bool:
    """Return whether a path is in the directory after following links, which an untrusted branch may contain."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
    try:
        return path.resolve().is_relative_to(root.resolve())
    except OSError:
        return False
