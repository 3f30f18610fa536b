"""Documents and their models: read one in its format, hold it against its model, and say what does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, names_of, pointer, warning
from accord.core.suggest import correct_spelling, did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


Model = TypeVar("Model", bound="BaseModel")

Format = Literal["json", "yaml"]
Steps = tuple[str | int, ...]
"""The way from the top of a document to a place in it."""

_TIMESTAMP = "a timestamp such as 2026-02-18T20:00:00Z"
_WANTED = {
    "string_type": "a string",
    **dict.fromkeys(("list_type", "tuple_type"), "an array"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "an integer"),
    "int_parsing_size": "a smaller integer",
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("model_type", "dict_type"), "an object"),  # pydantic names classes of this program
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), _TIMESTAMP),
    "timezone_aware": _TIMESTAMP,
    "string_too_short": "a text of {min_length} or more characters",
    "string_too_long": "at most {max_length} characters long",
    "too_short": "an array of {min_length} or more entries",
    "too_long": "an array of at most {max_length} entries",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "string_pattern_mismatch": "text that matches `{pattern}`",
    **dict.fromkeys(("literal_error", "enum"), "{expected}"),
}
"""The wanted value in words, by pydantic's name of the error."""

_QUOTED = re.compile(r"'([^']*)'")
_LISTED = re.compile(r"""[^\s,'"\[\]]+""")

_SHOWN_CHARS = 60
"""Longer values are not quoted: a part of a secret is not recognised as one and would not be redacted."""


def read_shape(model: type[Model], value: Any) -> Model:
    """Validate a value. Raises BrokenContract with one ``schema`` finding for each place that does not fit."""
    from pydantic import ValidationError

    try:
        return model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        findings = shape_findings(error, model, value)
        raise BrokenContract("The document does not have the shape of its kind.", findings=findings) from None


def shape_findings(error: ValidationError, model: type[BaseModel], value: Any) -> list[Finding]:
    """Return one ``schema`` finding for each place of a value that does not fit the model.

    pydantic names each member of a union, and reports the errors of all: the place has no such step, and where a
    member fits in its outer shape, only its errors count.
    """
    places: dict[Steps, list[ErrorDetails]] = {}
    unions, fitting = set[Steps](), set[Steps]()
    for detail in error.errors(include_url=False, include_context=True):
        place, union = _place_of(detail["loc"], model, value)
        places.setdefault(place, []).append(detail)
        if union is not None:
            (unions if union == place else fitting).add(union)
    meant = {
        place: (*place[:-1], near)
        for place, each in places.items()
        if each[0]["type"] == "extra_forbidden" and (near := _meant_key(place, model, value))
    }
    beside = _keys_beside({place: each[0]["type"] for place, each in places.items() if place not in meant}, model)
    moved = {place for above, keys in beside.items() for key in keys for place in (key, above, (*above, key[-1]))}
    return [_misplaced(keys, above) for above, keys in beside.items()] + [
        _finding(each, place, model, str(meant[place][-1]) if place in meant else "")
        for place, each in places.items()
        if place not in moved | (unions & fitting) and not (each[0]["type"] == "missing" and place in meant.values())
    ]


def _keys_beside(faults: Mapping[Steps, str], model: type[BaseModel]) -> dict[Steps, list[Steps]]:
    """Return the places of unknown keys beside the object that they belong in, by the place of that object."""
    found: dict[Steps, list[Steps]] = {}
    missing = [place for place, fault in faults.items() if fault == "missing"]
    for place in (place for place, fault in faults.items() if fault == "extra_forbidden"):
        above = [
            each
            for each in missing
            if each[:-1] == place[:-1] and correct_spelling(str(place[-1]), keys_at(model, each))
        ]
        above += [each[:-1] for each in missing if each[:-2] == place[:-1] and each[-1] == place[-1]]
        if above:
            found.setdefault(above[0], []).append(place)
    return found


def _misplaced(keys: Sequence[Steps], above: Steps) -> Finding:
    names, name = names_of([f"`{short_name(str(key[-1]))}`" for key in keys]), _name_of(above)
    message = f"{names} {'belongs' if len(keys) == 1 else 'belong'} in {name}."
    hint = f"Put {'this key' if len(keys) == 1 else 'these keys'} under {name}."
    return Finding("schema", message, pointer(*above), hint=hint)


def _meant_key(place: Steps, model: type[BaseModel], value: Any) -> str | None:
    """Return the key that an unknown one misspells, where that is not there itself."""
    for step in place[:-1]:
        is_there = isinstance(value, list) or (isinstance(value, dict) and step in value)
        value = value[step] if is_there else {}
    return correct_spelling(str(place[-1]), [key for key in keys_at(model, place[:-1]) if key not in value])


def _place_of(steps: Steps, model: type[BaseModel], value: Any) -> tuple[Steps, Steps | None]:
    """Return the place of an error without the names of members of unions, and that of the last union."""
    place, union = Steps(), None
    for step in steps:
        is_there = isinstance(value, dict) and step in value
        if not is_there and isinstance(step, str) and step not in keys_at(model, place):
            union = place
            continue
        is_there = is_there or (isinstance(value, list) and isinstance(step, int) and step < len(value))
        value = value[step] if is_there else None
        place = (*place, step)
    return place, union


def _finding(details: Sequence[ErrorDetails], steps: Steps, model: type[BaseModel], meant: str) -> Finding:
    """Return the finding about a place, a key that stands for ``meant``; several errors are those of a union."""
    given, kind, context = details[0]["input"], details[0]["type"], details[0].get("ctx", {})
    key = str(steps[-1]) if steps else "document"
    found = f"found {_description_of(given)}"
    if kind == "missing":
        names = {name for name in given if isinstance(name, str)} if isinstance(given, dict) else set()
        near = correct_spelling(key, names.difference(keys_at(model, steps[:-1])))
        message = f"The required key `{key}` is missing."
        hint = f"Rename `{near}` to `{key}`." if near else "Add it."
    elif kind == "extra_forbidden":
        message = f"The key `{short_name(key)}` is not part of the contract."
        hint = f"Did you mean `{meant}`?" if meant else "Remove it."
    elif kind == "value_error":
        message, hint = (*context["error"].args, "Write another value.")[:2]
        message = f"{message}; {found}."
    else:
        wanted = _joined([part for detail in details for part in _wanted(detail)])
        message = f"{_name_of(steps)} must be {wanted}; {found}."
        hint = "Shorten it." if kind == "string_too_long" else did_you_mean(str(given), _QUOTED.findall(wanted))
    return Finding("schema", message, pointer(*steps), hint=hint or f"Write {wanted}.")


def _wanted(detail: ErrorDetails) -> list[str]:
    """Return what a place may hold, in words."""
    words = _WANTED.get(detail["type"], detail["msg"].removeprefix("Input should be "))
    words = words.format(**detail.get("ctx", {}))
    return re.split(", | or ", words) if detail["type"] in ("literal_error", "enum") else [words]


def _joined(parts: Sequence[str]) -> str:
    *front, last = dict.fromkeys(parts)
    return f"{', '.join(front)} or {last}" if front else last


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


@lru_cache(maxsize=8)
def _schema_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the JSON Schema of a model, by the names of its documents."""
    return model.model_json_schema(by_alias=True)


def keys_at(model: type[BaseModel], steps: Iterable[str | int]) -> list[str]:
    """Return the keys that the schema of a model knows at a place; several shapes may be allowed there."""
    schema = _schema_of(model)
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


def unread_keys(model: BaseModel, place: str = "", order: str = "", known: Collection[str] = ()) -> Iterator[Finding]:
    """Find unknown keys of an open model that are known ones misspelt, and so have no effect.

    Where the key ``order`` is missing, that is also a key with nothing but names of ``known``: it may give the order.
    """
    unused = type(model).model_fields.keys() - model.model_fields_set
    for key, value in (model.model_extra or {}).items():
        message, hint = f"Unknown key `{short_name(key)}`.", did_you_mean(key, unused)
        names = _LISTED.findall(str(value)) if order in unused and not hint else []
        if names and all(name in known for name in names):
            message = f"`{short_name(key)}` names {', '.join(map(short_name, names[:3]))}, but is not read."
            hint = f"If it depends on them, name them in `{order}` too."
        if hint:
            yield warning("key-misspelled", message, place + pointer(key), hint=hint)


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
