"""A kind of document: what a room offers to ``accord check`` and ``accord schema``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from accord.core.documents import read_object, shown
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer, with_lines
from accord.files.yaml import read_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails


_OBJECTS = ("model_type", "dict_type")
"""Errors whose own words name the classes of this program."""

_SHOWN_CHARS = 60
"""A longer value is not shown in part: the part might be that of a secret, which no longer looks like one."""

Model = TypeVar("Model", bound="BaseModel")


def read_shape(model: type[Model], value: Any) -> Model:
    """Validate a value. Raises BrokenContract with one ``schema`` finding for each place that does not fit."""
    from pydantic import ValidationError

    try:
        return model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        findings = [_finding(detail) for detail in error.errors(include_url=False, include_context=True)]
        raise BrokenContract("The document does not have the shape of its kind.", findings=findings) from None


def _finding(detail: ErrorDetails) -> Finding:
    path = pointer(*detail["loc"])
    key = str(detail["loc"][-1]) if detail["loc"] else "document"
    if detail["type"] == "missing":
        message = f'The required key "{key}" is missing. Add it.'
    elif detail["type"] == "extra_forbidden":
        message = f'The key "{shown(key)}" is not part of the contract. Remove it.'
    else:
        said = detail["msg"].removeprefix("Value error, ")
        wanted = "Input should be an object" if detail["type"] in _OBJECTS else said
        message = f"{wanted}; found {_shown(detail['input'])}. Correct it."
    return Finding("schema", message, path)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = "null" if value is None else repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{type(value).__name__} of {len(text)} characters"


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

    @property
    def is_alone(self) -> bool:
        """Whether nothing but the document was read."""
        ...


Reader = Callable[[bytes], Located]


def reader_of(path: str) -> Reader:
    """Tell by its name how a document is read: YAML by its suffix, all else as JSON that an agent wrote."""
    return read_mapping if PurePath(path).suffix.lower() in {".yml", ".yaml"} else read_object


@dataclass(frozen=True)
class Kind(Generic[Model]):
    """One kind: its name, its model, its rules, how it is recognised, and how its documents are read.

    ``marks`` are keys of the document with the value that each has, or a function that tells whether a value fits.
    ``is_alone`` asks for JSON only: an object inside prose or a code fence is found, and refused. ``rules_for`` stands
    in for ``rules`` where it matters which agent wrote the document, or is meant by it.
    """

    name: str
    model: type[Model]
    rules: Callable[[Model], list[Finding]]
    marks: Mapping[str, Any]
    read: Reader = read_object
    is_alone: bool = False
    rules_for: Callable[[Model, str], list[Finding]] | None = None

    def matches(self, value: Mapping[str, Any]) -> bool:
        """Tell whether a document says that it is of this kind."""
        return all(
            mark(value.get(key)) if callable(mark) else value.get(key) == mark for key, mark in self.marks.items()
        )

    def check(self, document: Located, role: str = "") -> list[Finding]:
        """Check shape, then rules; every finding with its line."""
        return self.read_model(document, role)[1]

    def read_model(self, document: Located, role: str = "") -> tuple[Model | None, list[Finding]]:
        """Return the model, None where the shape is wrong, and what was found, every finding with its line."""
        model = None
        around = [] if document.is_alone or not self.is_alone else [_TEXT_AROUND]
        try:
            model = read_shape(self.model, document.value)
            findings = around + (self.rules_for(model, role) if self.rules_for else self.rules(model))
        except BrokenContract as broken:
            findings = around + list(broken.findings)
        return model, with_lines(findings, document.lines) if findings else []


_TEXT_AROUND = Finding(
    "text-around", "Text or a code fence stands around the JSON object. Write the object and nothing else."
)


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder whose documents belong together; ``check`` yields path, kind and findings of each of them."""

    name: str
    is_one: Callable[[Path], bool]
    check: Callable[[Path], list[tuple[Path, str, list[Finding]]]]
