"""All kinds of documents, by name: what the rooms offer, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.handoffs.kinds import KINDS as HANDOFFS
from accord.kernel.documents import read_object, shown
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.kernel.findings import Finding, pointer
from accord.loops.kinds import KINDS as LOOPS
from accord.missions.kinds import KINDS as MISSIONS
from accord.results.kinds import KINDS as RESULTS
from accord.runner.kinds import KINDS as RUNNERS
from accord.runner.registry import KINDS as REGISTRIES
from accord.sessions.kinds import FOLDERS as SESSION_FOLDERS
from accord.sessions.kinds import KINDS as SESSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accord.kernel.kinds import FolderKind, Kind, Reader

_OFFERED: tuple[Kind[Any], ...] = (*RESULTS, *RUNNERS, *REGISTRIES, *LOOPS, *SESSIONS, *MISSIONS, *HANDOFFS)

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in _OFFERED}

FOLDERS: dict[str, FolderKind] = {kind.name: kind for kind in SESSION_FOLDERS}


def folder_kind(folder: Path) -> FolderKind:
    """Tell the kind of a folder. Raises WrongUsage when it is none that is known."""
    for kind in FOLDERS.values():
        if kind.is_one(folder):
            return kind
    raise WrongUsage(f"{folder} is a folder of no known kind.", mend=f"Pass --kind, one of {', '.join(FOLDERS)}.")


def kind_for(name: str | None, value: Mapping[str, Any], read: Reader = read_object) -> Kind[Any]:
    """Return the kind of this name; without one, the kind that a document says it is of.

    Raises BrokenContract when it says nothing known of itself, or that it is of another kind than the one asked for:
    held against that, everything in it would be wrong.
    """
    if name is None:
        return recognise(value, read)
    kind = KINDS[name]
    others = [] if kind.matches(value) else [other for other in KINDS.values() if other.matches(value)]
    for other in others:
        for key, mark in kind.marks.items():
            if not callable(mark) and other.marks.get(key, mark) != mark:
                message = f"This is of the kind {other.name}, not {name}. Pass --kind {other.name}, or leave it out."
                raise BrokenContract.of(Finding("schema", message, pointer(key)))
    return kind


def recognise(value: Mapping[str, Any], read: Reader = read_object) -> Kind[Any]:
    """Tell the kind of a document that was read so. Raises BrokenContract when it says nothing known of itself."""
    candidates = [kind for kind in KINDS.values() if kind.read is read]
    for kind in candidates:
        if kind.matches(value):
            return kind
    if read is not read_object:
        names = ", ".join(kind.name for kind in candidates)
        message = f"The kind of the document cannot be told. Pass --kind, one of {names}."
        raise BrokenContract.of(Finding("schema", message))
    role = value.get("role")
    known = ", ".join(str(kind.marks["role"]) for kind in candidates if "role" in kind.marks)
    if role is None:
        message = f'The document has no "role", so its kind is not known. Add it ({known}), or pass --kind.'
    else:
        message = f"The role '{shown(str(role))}' is none that this version knows ({known}). Correct it."
    raise BrokenContract.of(Finding("schema", message, "/role"))
