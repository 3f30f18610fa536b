"""Documents and their models: read one in its format, hold it against its model, and say what does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer
from accord.core.suggest import did_you_mean, intended

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


Model = TypeVar("Model", bound="BaseModel")

Format = Literal["json", "yaml"]

_OBJECTS = ("model_type", "dict_type")
"""Errors in which pydantic names classes of this program."""

_WANTED = {
    "string_type": "a string",
    "list_type": "an array",
    "int_type": "an integer",
    "bool_type": "true or false",
    **dict.fromkeys(_OBJECTS, "an object"),
    "string_too_long": "at most {max_length} characters long",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "string_pattern_mismatch": "text that matches `{pattern}`",
}
"""The wanted type in words, by pydantic's name of the error."""

_QUOTED = re.compile(r"'([^']*)'")

_SHOWN_CHARS = 60
"""Longer values are not quoted: a part of a secret is not recognised as one and would not be redacted."""


def read_shape(model: type[Model], value: Any) -> Model:
    """Validate a value. Raises BrokenContract with one ``schema`` finding for each place that does not fit."""
    from pydantic import ValidationError

    try:
        return model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        findings = shape_findings(error, model)
        raise BrokenContract("The document does not have the shape of its kind.", findings=findings) from None


def shape_findings(error: ValidationError, model: type[BaseModel]) -> list[Finding]:
    """Return one ``schema`` finding for each place that does not fit the model."""
    return [_finding(detail, model) for detail in error.errors(include_url=False, include_context=True)]


def _finding(detail: ErrorDetails, model: type[BaseModel]) -> Finding:
    steps, given, kind = detail["loc"], detail["input"], detail["type"]
    key = str(steps[-1]) if steps else "document"
    found = f"found {_description_of(given)}"
    if kind == "missing":
        names = {name for name in given if isinstance(name, str)} if isinstance(given, dict) else set()
        near = intended(key, names.difference(keys_at(model, steps[:-1])))
        message = f"The required key `{key}` is missing."
        hint = f"Rename `{near}` to `{key}`." if near else "Add it."
    elif kind == "extra_forbidden":
        message = f"The key `{short_name(key)}` is not part of the contract."
        hint = did_you_mean(key, keys_at(model, steps[:-1])) or "Remove it."
    elif kind in ("literal_error", "enum"):
        expected = detail["ctx"]["expected"]
        message = f"{_name_of(steps)} must be {expected}; {found}."
        hint = did_you_mean(str(given), _QUOTED.findall(expected)) or f"Write {expected}."
    else:
        context = detail.get("ctx", {})
        wanted = _WANTED.get(kind, "").format(**context)
        reason = detail["msg"].removeprefix("Value error, ")
        message = f"{_name_of(steps)} must be {wanted}; {found}." if wanted else f"{reason}; {found}."
        hint = "Shorten it." if kind == "string_too_long" else f"Write {wanted}." if wanted else "Correct it."
        hint = context.get("hint", hint)
    return Finding("schema", message, pointer(*steps), hint=hint)


def _name_of(steps: Sequence[str | int]) -> str:
    """Name a place for people: its key, or its number in the nearest key above."""
    if not steps:
        return "The value"
    *above, last = steps
    return f"`{short_name(last)}`" if isinstance(last, str) else f"Entry {last + 1} of {_name_of(above)}"


def _description_of(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{type(value).__name__} of {len(text)} characters"


def keys_at(model: type[BaseModel], steps: Iterable[str | int]) -> list[str]:
    """Return the keys that the schema of a model knows at a place; several shapes may be allowed there."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})

    def shapes(node: Any) -> list[dict[str, Any]]:
        if not isinstance(node, dict):
            return []
        if "$ref" in node:
            return shapes(definitions[node["$ref"].rpartition("/")[2]])
        return [node, *(shape for key in ("anyOf", "oneOf") for child in node.get(key, ()) for shape in shapes(child))]

    places = shapes(schema)
    for step in steps:
        below = "items" if isinstance(step, int) else "additionalProperties"
        children = [place.get("properties", {}).get(step) or place.get(below) for place in places]
        places = [shape for child in children for shape in shapes(child)] or places  # a union's own step has no schema
    return [key for place in places for key in place.get("properties", {})]


class Located(Protocol):
    """A document that was read from JSON or YAML: its value, and the line (from 1) of each of its JSON pointers."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The document."""

    @property
    def lines(self) -> Mapping[str, int]:
        """The line of each part."""

    @property
    def is_alone(self) -> bool:
        """Whether the file holds nothing but the document."""


def format_of(path: str) -> Format:
    """Return the format of a document by its file name: YAML by its suffix, everything else JSON."""
    return "yaml" if PurePath(path).suffix.lower() in {".yml", ".yaml"} else "json"
