"""A handoff in a JSON file: read, decided about, and replaced as a whole, by one writer at a time."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from accord.handoffs.normal import has_task_id, next_task_id, normalised
from accord.handoffs.plan import with_task_id
from accord.handoffs.rules import read_handoff
from accord.kernel.documents import MAX_BYTES, read_object
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.kernel.store import can_be_written, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from accord.handoffs.plan import Decided

_LARGEST_NEIGHBOUR = 1_048_576


def change_file(path: Path, decide: Callable[[dict[str, Any]], Decided], *, writes: bool) -> Decided:
    """Decide about the task in a file, and write what was decided if ``writes``; nothing where nothing changes.

    Raises BrokenContract when the file is no handoff, WrongUsage when it cannot be read or written.
    """
    if writes and not can_be_written(path):
        raise WrongUsage(f"{path} cannot be written.", mend="Name a file in a folder that may be written.")
    with _alone(path):
        found = _read(path)
        task = normalised(found)
        read_handoff(task)
        if not has_task_id(task):
            task = with_task_id(task, next_task_id(_ids_beside(path)))
        decided = decide(task)
        if writes and decided.task not in (task, found):
            write_whole(path, json.dumps(decided.task, indent=2, ensure_ascii=False) + "\n")
    return decided


def _read(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    try:
        with path.open("rb") as file:
            return read_object(file.read(MAX_BYTES + 1)).value
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {error.strerror}.", mend="Name a file that exists.") from None


def _ids_beside(path: Path) -> Iterator[object]:
    """Yield the ids of the tasks in the same folder; what is no task there is passed over."""
    for other in sorted(path.parent.glob("*.json")):
        with suppress(OSError, BrokenContract):
            if other.stat().st_size <= _LARGEST_NEIGHBOUR:
                metadata = read_object(other.read_bytes()).value.get("metadata")
                yield metadata.get("canonicalTaskId") if isinstance(metadata, dict) else None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one writer at a time work in a folder. The system frees the lock when a process ends, however it ends."""
    if sys.platform == "win32" or not path.parent.is_dir():
        yield  # Windows has no such lock: two writers of one file are left to take turns by themselves
        return
    import fcntl

    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
