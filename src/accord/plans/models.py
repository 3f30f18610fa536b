"""A source of a plan: its text, and as its reader understood it, tasks with what is stated about them or lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from accord.core.documents import decode_text
from accord.core.errors import WrongUsage
from accord.core.findings import Finding
from accord.core.frozen import Frozen

_MOST_BYTES = 4 * 1024 * 1024
Priority = Literal["", "high", "medium", "low"]
_PRIORITY = re.compile(r"\bP([0-3])\b")
_PRIORITIES: Mapping[str, Priority] = {"0": "high", "1": "high", "2": "medium", "3": "low"}


class SourceTask(Frozen):
    """A task of a source. Empty parts were not stated."""

    id: str  # becomes the tempID
    title: str
    line: int
    file: str
    section: str = ""
    objective: str = ""
    scope: tuple[str, ...] = ()
    out_of_scope: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()  # ids of tasks of the same source, or issues such as #12
    priority: Priority = ""
    is_done: bool = False
    number: int = 0  # the issue that an earlier write-back recorded, 0 without one
    body: str = ""  # a whole body that follows a template, used as it is
    labels: tuple[str, ...] = ()  # in place of the usual ones
    hint: str = ""  # where to add files to the scope


class Source(Frozen):
    """A read source."""

    spec: str  # what all its items name in their Spec Reference; the scope of a run
    tasks: tuple[SourceTask, ...]
    findings: tuple[tuple[str, Finding], ...] = ()
    numbers_into: Mapping[str, Path] = field(default_factory=dict)  # which file records the issue, by task, if any can


def text_of(path: Path) -> str:
    """Read a text. Raises WrongUsage where that is not possible, BrokenContract for another encoding than UTF-8."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"Cannot read `{path}`: {error.strerror}.", hint="Name a file that you may read.") from None
    if len(raw) > _MOST_BYTES:
        raise WrongUsage(f"`{path.name}` is larger than {_MOST_BYTES // 1024 // 1024} MiB.", hint="Split it.")
    return decode_text(raw, name=path.name)


def priority_in(texts: Iterable[str]) -> Priority:
    """Return the priority that the first of some texts states as P0 to P3."""
    found = next((match for text in texts if (match := _PRIORITY.search(text))), None)
    return _PRIORITIES[found[1]] if found else ""
