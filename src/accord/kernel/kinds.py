"""A kind of document: what a room offers to ``accord check`` and ``accord schema``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import with_lines
from accord.kernel.shapes import read_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from accord.kernel.documents import Document
    from accord.kernel.findings import Finding

Model = TypeVar("Model", bound="BaseModel")


@dataclass(frozen=True)
class Kind(Generic[Model]):
    """One kind: its name, its model, its rules, and the words by which a document of the kind is recognised."""

    name: str
    model: type[Model]
    rules: Callable[[Model], list[Finding]]
    marks: Mapping[str, Any]

    def matches(self, value: Mapping[str, Any]) -> bool:
        """Tell whether a document says that it is of this kind."""
        return all(value.get(key) == mark for key, mark in self.marks.items())

    def check(self, document: Document) -> list[Finding]:
        """Check shape, then rules; every finding with its line."""
        try:
            findings = self.rules(read_shape(self.model, document.value))
        except BrokenContract as broken:
            findings = list(broken.findings)
        return with_lines(findings, document.lines) if findings else []
