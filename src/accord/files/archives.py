"""Untrusted archives: checked before anything is written, then unpacked whole or not at all."""

from __future__ import annotations

import re
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from accord.core.errors import BrokenContract, WrongUsage
from accord.core.frozen import Frozen

MOST_FILES = 10_000
MOST_DIRECTORY_BYTES = MOST_FILES * 512
"""The size of the packed list of files: enough for as many paths of ordinary length."""

MOST_UNPACKED_BYTES = 1 << 30
MOST_NAME_BYTES = 255
"""The longest part of a path that file systems accept."""

MOST_PATH_BYTES = 1024

_CHUNK_BYTES = 1 << 16
_DAMAGED = (zipfile.BadZipFile, NotImplementedError, EOFError, OverflowError, ValueError, struct.error, zlib.error)
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_NO_NAME = re.compile(r"[\x00-\x1f\x7f\\]|^[A-Za-z]:")
"""Control characters, and what is a separator or a drive elsewhere."""


class Member(Frozen):
    """A file of an archive: its path below the folder, with slashes, and its size unpacked, in bytes."""

    path: str
    size: int


def read_members(archive: IO[bytes]) -> list[Member]:
    """List the files of a zip archive in its order. Raises BrokenContract for one that must not be unpacked."""
    with _open_zip(archive) as opened:
        infos = opened.infolist()
    if len(infos) > MOST_FILES:
        raise _unfit(f"it holds {len(infos)} files, and {MOST_FILES} are the most")
    members = [Member(info.orig_filename, info.file_size) for info in infos if _is_file(info)]
    _check_paths(member.path for member in members)
    unpacked = sum(member.size for member in members)
    if unpacked > MOST_UNPACKED_BYTES:
        raise _unfit(f"unpacked it has {unpacked} bytes, and {MOST_UNPACKED_BYTES} are the most")
    return members


def unpack(archive: IO[bytes], members: Iterable[Member], into: Path) -> None:
    """Unpack members into a folder that appears with all of them or not. Raises BrokenContract for damage, OSError."""
    into = into.absolute()
    beside = into.with_name(f".{into.name[:100]}.{secrets.token_hex(8)}")
    try:
        beside.mkdir(parents=True)
        with _open_zip(archive) as opened:
            for member in members:
                path = beside / member.path
                path.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(member.path) as source, path.open("xb") as target:
                    shutil.copyfileobj(source, target, _CHUNK_BYTES)
        beside.replace(into)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError):
            error.filename = str(into)
        raise


def check_absent(folder: Path) -> None:
    """Raise WrongUsage where ``unpack`` could not put a folder, because something is there."""
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if folder.is_symlink() or not is_free:
        raise WrongUsage(f"`{folder}` already exists.", hint="Name a new or an empty folder.")


class _ReadInBits:
    """An archive that refuses to read more at once than the longest list of files, which ``zipfile`` reads whole."""

    def __init__(self, archive: IO[bytes]) -> None:
        self.seek, self.tell, self.seekable, self._read = archive.seek, archive.tell, archive.seekable, archive.read

    def read(self, size: int = -1, /) -> bytes:
        if size > MOST_DIRECTORY_BYTES:
            raise _unfit(f"its list of files has {size} bytes, and {MOST_DIRECTORY_BYTES} are the most")
        return self._read(size)


@contextmanager
def _open_zip(archive: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    archive.seek(0)
    try:
        with zipfile.ZipFile(_ReadInBits(archive)) as opened:
            yield opened
    except _DAMAGED as error:
        raise _unfit(f"it is damaged ({error})") from None


def _is_file(info: zipfile.ZipInfo) -> bool:
    """Return whether an entry is a file, not a folder. Raises BrokenContract for any other, or an unreadable one."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _unfit(f"{info.filename[:200]!r} is a link or a device")
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
        raise _unfit(f"{info.filename[:200]!r} is encrypted, or packed in a way that nothing else can unpack")
    return not info.is_dir()


def _check_paths(paths: Iterable[str]) -> None:
    """Raise BrokenContract for a path that leads out of the folder, and for two that cannot both be there."""
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        parts = path.split("/")
        if _NO_NAME.search(path) or any(part in ("", ".", "..") for part in parts):
            raise _unfit(f"{path[:200]!r} is not a path inside it")
        encoded = [len(part.encode("utf-8", "surrogatepass")) for part in parts]
        if max(encoded) > MOST_NAME_BYTES or sum(encoded) + len(encoded) > MOST_PATH_BYTES:
            raise _unfit(f"{path[:80]!r}… is a name too long for a file")
        above = {"/".join(parts[:n]) for n in range(1, len(parts))}
        if path in files or path in folders or above & files:
            raise _unfit(f"{path[:200]!r} is in it twice")
        files.add(path)
        folders |= above


def _unfit(why: str) -> BrokenContract:
    return BrokenContract(
        f"The archive cannot be unpacked: {why}.", hint="Nothing was written. Pack plain files, and only those needed."
    )
