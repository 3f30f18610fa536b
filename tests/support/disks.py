"""Disks on which accidents happen on purpose: the n-th call fails, writes half, or is the last of its process.

A killed process leaves what its files hold at that point, and nothing else: ``CrashImages`` keeps just that for every
point of one run, so that no process has to end for each. ``LastCall`` ends one; a test holds both against each other.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from accord.files.store import Disk

_MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

Contents = dict[str, bytes]
"""The files of a folder by their names."""

COUNTED = ("read", "create", "replace", "sync", "append")


class WatchedDisk(Disk):
    """A real disk on which ``around`` makes each call."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return partial(self.around, name, found) if name in COUNTED else found

    def around(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        raise NotImplementedError


class FaultyDisk(WatchedDisk):
    """A real disk that asks ``accident`` before each call; ``calls`` names those that were made."""

    def __init__(self, accident: Callable[[Any, str], None] = lambda disk, call: None) -> None:
        self.accident = accident
        self.calls: list[str] = []
        self.writes_half = False

    def around(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.calls.append(name)
        self.writes_half = False
        self.accident(self, name)
        return call(*arguments)

    def create(self, path: Path, data: bytes) -> None:
        super().create(path, data[: len(data) // 2] if self.writes_half else data)
        if self.writes_half:
            raise OSError(5, "half of it was written")

    def append(self, path: Path, data: bytes, kept: int) -> None:
        super().append(path, data[: len(data) // 2] if self.writes_half else data, kept)
        if self.writes_half:
            raise OSError(5, "half of it was written")


def fails(call: str, number: int, *, times: int = 1_000_000) -> Callable[[FaultyDisk, str], None]:
    """Let the first so many calls of this name fail; ``half`` lets writes fail after half of them is done."""
    left = times

    def accident(disk: FaultyDisk, name: str) -> None:
        nonlocal left
        is_half = call == "half" and name in ("create", "append")
        if (name == call or is_half) and left > 0:
            left -= 1
            if not is_half:
                raise OSError(number, os.strerror(number))
            disk.writes_half = True

    return accident


class LastCall(WatchedDisk):
    """A real disk on which the process ends, as by SIGKILL: before, in the middle of, or after its n-th call."""

    def __init__(self, nth: int, moment: str) -> None:
        self.left = nth
        self.moment = moment

    def around(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.left -= 1
        if self.left or self.moment == "after":
            result = call(*arguments)
        elif self.moment == "within" and name in ("create", "append"):
            path, data, *more = arguments
            result = getattr(Disk, name)(self, path, data[: len(data) // 2], *more)
        if not self.left:
            os._exit(77)
        return result


def contents(folder: Path) -> Contents:
    """Read the files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def timeless(folder: Path) -> Contents:
    """Read the files of a folder, with every timestamp in them replaced."""
    return {name: _MOMENT.sub(b"(moment)", raw) for name, raw in contents(folder).items()}


class CrashImages(WatchedDisk):
    """A real disk that keeps what ``folder`` holds before, in the middle of, and after each call.

    ``kept`` has an image for each call, counted from 1, and point in it; only writes have a middle.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nth = 0
        self.kept: dict[tuple[int, str], Contents] = {}

    def around(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.nth += 1
        self.keep("before")
        if name in ("create", "append"):
            self.keep_half(name, *arguments)
        result = call(*arguments)
        self.keep("after")
        return result

    def keep(self, moment: str) -> None:
        self.kept[self.nth, moment] = contents(self.folder)

    def keep_half(self, name: str, path: Path, data: bytes, *more: Any) -> None:
        """Write half, keep that, and take it back."""
        there = path.read_bytes() if path.exists() else None
        getattr(Disk, name)(self, path, data[: len(data) // 2], *more)
        self.keep("within")
        if there is None:
            path.unlink()
        else:
            path.write_bytes(there)

    def distinct(self) -> Iterator[tuple[str, Contents]]:
        """Yield each image once, with the first point that leaves it."""
        seen: list[Contents] = []
        for (nth, moment), image in self.kept.items():
            if image not in seen:
                seen.append(image)
                yield f"{moment} call {nth}", image


class Hasty(Disk):
    """A disk without waiting: a property over a thousand writes needs no power cut."""

    def create(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

    def sync(self, folder: Path) -> None:
        pass

    def append(self, path: Path, data: bytes, kept: int) -> None:
        path.write_bytes((path.read_bytes()[:kept] if path.exists() else b"") + data)
