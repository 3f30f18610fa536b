"""A kind of document: what a room offers to ``accord check`` and ``accord schema``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import with_lines
from accord.kernel.shapes import read_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from accord.kernel.findings import Finding

Model = TypeVar("Model", bound="BaseModel")


class Located(Protocol):
    """A document that was read, from JSON or YAML: its value, and the line of each JSON pointer."""

    @property
    def value(self) -> Any:
        """What the document says."""
        ...

    @property
    def lines(self) -> Mapping[str, int]:
        """Where it says so, counted from 1."""
        ...


@dataclass(frozen=True)
class Kind(Generic[Model]):
    """One kind: its name, its model, its rules, and by what a document of the kind is recognised.

    ``marks`` are keys with their values, ``has`` are keys with any value.
    """

    name: str
    model: type[Model]
    rules: Callable[[Model], list[Finding]]
    marks: Mapping[str, Any]
    has: tuple[str, ...] = ()

    def matches(self, value: Mapping[str, Any]) -> bool:
        """Tell whether a document says that it is of this kind."""
        return all(key in value for key in self.has) and all(value.get(key) == mark for key, mark in self.marks.items())

    def check(self, document: Located) -> list[Finding]:
        """Check shape, then rules; every finding with its line."""
        try:
            findings = self.rules(read_shape(self.model, document.value))
        except BrokenContract as broken:
            findings = list(broken.findings)
        return with_lines(findings, document.lines) if findings else []
