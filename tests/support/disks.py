"""Disks on which accidents happen on purpose: the n-th call fails, writes half, or is the last of its process."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any

from accord.kernel.store import Disk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNTED = ("read", "create", "replace", "sync", "append")


class FaultyDisk(Disk):
    """A real disk that asks ``accident`` before each call; ``calls`` names those that were made."""

    def __init__(self, accident: Callable[[FaultyDisk, str], None] = lambda disk, call: None) -> None:
        self.accident = accident
        self.calls: list[str] = []
        self.writes_half = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in COUNTED:
            return found

        @wraps(found)
        def counted(*arguments: Any) -> Any:
            self.calls.append(name)
            self.writes_half = False
            self.accident(self, name)
            return found(*arguments)

        return counted

    def create(self, path: Path, data: bytes) -> None:
        super().create(path, data[: len(data) // 2] if self.writes_half else data)
        if self.writes_half:
            raise OSError(5, "half of it was written")

    def append(self, path: Path, data: bytes) -> None:
        super().append(path, data[: len(data) // 2] if self.writes_half else data)
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


class LastCall(Disk):
    """A real disk on which the process ends, as by SIGKILL: before, in the middle of, or after its n-th call."""

    def __init__(self, nth: int, moment: str) -> None:
        self.left = nth
        self.moment = moment

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in COUNTED:
            return found

        def counted(*arguments: Any) -> Any:
            self.left -= 1
            if self.left or self.moment == "after":
                result = found(*arguments)
            elif self.moment == "within" and name in ("create", "append"):
                path, data = arguments
                result = getattr(Disk, name)(self, path, data[: len(data) // 2])
            if not self.left:
                os._exit(77)
            return result

        return counted
