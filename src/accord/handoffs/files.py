"""A handoff in a JSON file: read, decided about, and replaced as a whole, by one writer at a time."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from accord.core.documents import MAX_BYTES, read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import with_lines
from accord.files.store import Storage, can_be_written, locked, write_whole
from accord.handoffs.models import has_task_id, next_task_id, normalised
from accord.handoffs.plan import with_task_id
from accord.handoffs.rules import read_handoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.core.documents import Document
    from accord.handoffs.plan import Decided

_LARGEST_NEIGHBOUR = 1_048_576


def change_file(path: Path, decide: Callable[[dict[str, Any]], Decided], clock: Clock, *, writes: bool) -> Decided:
    """Decide about the task in a file, and write what was decided if ``writes``; nothing where nothing changes.

    Raises BrokenContract when the file is no handoff, WrongUsage when it cannot be read or written, Stopped when
    somebody else keeps writing in its folder.
    """
    if writes and not can_be_written(path):
        raise WrongUsage(f"{path} cannot be written.", hint="Name a file in a folder that may be written.")
    with locked(path.parent, Storage(clock)) if writes and path.parent.is_dir() else nullcontext():
        document = _read(path)
        found, task = document.value, normalised(document.value)
        try:
            read_handoff(task)
        except BrokenContract as broken:
            raise BrokenContract(broken.message, findings=with_lines(broken.findings, document.lines)) from None
        if not has_task_id(task):
            task = with_task_id(task, next_task_id(_ids_beside(path)))
        decided = decide(task)
        if writes and decided.task not in (task, found):
            write_whole(path, json.dumps(decided.task, indent=2, ensure_ascii=False) + "\n")
    return decided


def _read(path: Path) -> Document:
    """Read a file that holds one JSON object."""
    try:
        with path.open("rb") as file:
            return read_object(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {error.strerror}.", hint="Name a file that exists.") from None


def _ids_beside(path: Path) -> Iterator[object]:
    """Yield the ids of the tasks in the same folder; what is no task there is passed over."""
    for other in sorted(path.parent.glob("*.json")):
        with suppress(OSError, BrokenContract):
            if other.stat().st_size <= _LARGEST_NEIGHBOUR:
                metadata = read_object(other.read_bytes()).value.get("metadata")
                yield metadata.get("canonicalTaskId") if isinstance(metadata, dict) else None
