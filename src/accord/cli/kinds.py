"""All kinds of documents, by name: what the rooms offer, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.kernel.documents import shown
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.results.kinds import KINDS as RESULTS
from accord.runner.registry import KINDS as REGISTRIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.kernel.kinds import Kind

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in (*RESULTS, *REGISTRIES)}
YAML_KINDS = frozenset(kind.name for kind in REGISTRIES)
"""Kinds that people write, in YAML whatever the file is called."""


def recognise(value: Mapping[str, Any]) -> Kind[Any]:
    """Tell the kind of a document by what it says of itself. Raises BrokenContract when it says nothing known."""
    for kind in KINDS.values():
        if kind.matches(value):
            return kind
    role = value.get("role")
    known = ", ".join(str(kind.marks["role"]) for kind in RESULTS)
    if role is None:
        message = f'The document has no "role", so its kind is not known. Add it ({known}), or pass --kind.'
    else:
        message = f"The role '{shown(str(role))}' is none that this version knows ({known}). Correct it."
    raise BrokenContract(message, findings=[Finding("schema", message, "/role")])
