"""A kind of document: what a room offers to ``accord check`` and ``accord schema``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import with_lines
from accord.kernel.shapes import read_shape
from accord.kernel.yaml_files import read_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from accord.kernel.findings import Finding

Model = TypeVar("Model", bound="BaseModel")


class Located(Protocol):
    """What was read, of whichever format: a value, and the line (from 1) of each of its JSON pointers."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The document."""
        ...

    @property
    def lines(self) -> Mapping[str, int]:
        """Where each part of it stands."""
        ...


Reader = Callable[[bytes], Located]


def reader_of(path: str) -> Reader:
    """Tell by its name how a document is read: YAML by its suffix, all else as JSON that an agent wrote."""
    return read_mapping if PurePath(path).suffix.lower() in {".yml", ".yaml"} else read_object


@dataclass(frozen=True)
class Kind(Generic[Model]):
    """One kind: its name, its model, its rules, how it is recognised, and how its documents are read.

    ``marks`` are keys of the document with the value that each has, or a function that tells whether a value fits.
    """

    name: str
    model: type[Model]
    rules: Callable[[Model], list[Finding]]
    marks: Mapping[str, Any]
    read: Reader = read_object

    def matches(self, value: Mapping[str, Any]) -> bool:
        """Tell whether a document says that it is of this kind."""
        return all(
            mark(value.get(key)) if callable(mark) else value.get(key) == mark for key, mark in self.marks.items()
        )

    def check(self, document: Located) -> list[Finding]:
        """Check shape, then rules; every finding with its line."""
        try:
            findings = self.rules(read_shape(self.model, document.value))
        except BrokenContract as broken:
            findings = list(broken.findings)
        return with_lines(findings, document.lines) if findings else []
