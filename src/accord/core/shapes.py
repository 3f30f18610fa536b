"""Documents and their models: read one in its format, hold it against its model, and say what does not fit."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer, warning
from accord.core.suggest import correct_spelling, did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


Model = TypeVar("Model", bound="BaseModel")

DocumentFormat = Literal["json", "yaml"]
Steps = tuple[str | int, ...]
"""The way from the top of a document to a place in it."""

_TIMESTAMP = "a timestamp such as 2026-02-18T20:00:00Z"
_WANTED = {
    **dict.fromkeys(("string_type", "invalid_key"), "a string"),
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

_TYPES = {str: "string", list: "array", dict: "object", int: "integer", bool: "boolean", type(None): "null"}
_MOST_OBJECTS = 100

_QUOTED = re.compile(r"'([^']*)'")
_DIGITS = re.compile(r"[0-9]+")
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
        location = detail["loc"]
        end = len(location) - (detail["type"] == "missing")  # no member of a union is missing
        place, union = _place_of(location[:end], model, value)
        places.setdefault((*place, *location[end:]), []).append(detail)
        if union is not None:
            (unions if union == place else fitting).add(union)
    missing = {place for place, each in places.items() if each[0]["type"] == "missing"}
    unknown = [place for place, each in places.items() if each[0]["type"] == "extra_forbidden"]
    hints, filled, beside = dict[Steps, str](), unions & fitting, Counter(place[:-1] for place in unknown)
    for place in unknown:
        hints[place], home = _unknown_key_hint(place, model, value, filled)
        if not home and beside[place[:-1]] == 1 and (home := _place_of_other_word(place, model, value, missing)):
            hints[place] = f"Rename it to `{home[-1]}`, or remove it."
        met = {home, *(way for length in range(len(home)) if (way := home[:length]) in missing)}
        filled |= met
        missing -= met
    kept = (place for place in places if place not in filled)
    return [_finding(places[place], place, model, hints.get(place, "")) for place in kept]


def _unknown_key_hint(place: Steps, model: type[BaseModel], document: Any, filled: set[Steps]) -> tuple[str, Steps]:
    """Return the hint for an unknown key, and the place that it fills, if it is right there.

    The key misspells one that is absent, or belongs in the only object above or below its own that knows its name and
    lacks it; beside them, it would have another meaning. Content is not removed without a look at the known keys.
    """
    above, key, value = place[:-1], str(place[-1]), value_at(document, place)
    known = keys_at(model, above)
    if near := correct_spelling(key, [each for each in known if each not in value_at(document, above)]):
        return f"Did you mean `{near}`?", (*above, near)
    objects = _objects_around(model, tuple(0 if isinstance(step, int) else step for step in above))
    named = ((around, correct_spelling(key, keys)) for around, keys in objects)
    homes = [(*above[: len(around)], *around[len(above) :], name) for around, name in named if name]
    homes = [home for home in homes if home not in filled and value_at(document, home) in (None, "", [])]
    homes = [
        home for home in homes if _TYPES.get(type(value)) in {each.get("type") for each in _shapes_at(model, home)}
    ]
    if len(homes) == 1:
        return f"Move it to `{pointer(*homes[0])}`.", homes[0]
    if not isinstance(value, (str, list, dict)) or not any(value):
        return "Remove it.", ()
    return f"Write its content under a known key ({', '.join(f'`{each}`' for each in known)}), or remove it.", ()


def _place_of_other_word(place: Steps, model: type[BaseModel], document: Any, missing: set[Steps]) -> Steps:
    """Return the only missing place beside an unknown key that may hold its text; empty without one."""
    value, above = value_at(document, place), place[:-1]
    homes = {(*above, key) for key in keys_at(model, above) if isinstance(value, str) and value} & missing
    texts = ((home, shape) for home in homes for shape in _shapes_at(model, home) if shape.get("type") == "string")
    fits = {home for home, shape in texts if value in shape.get("enum", [shape.get("const", value)])}
    return fits.pop() if len(fits) == 1 else ()


@lru_cache(maxsize=64)
def _objects_around(model: type[BaseModel], above: Steps) -> list[tuple[Steps, list[str]]]:
    places = [above]
    for place in places:  # which grows
        below = [(*place, name) for name in keys_at(model, place)]
        places += [each for each in below if keys_at(model, each)][: max(0, _MOST_OBJECTS - len(places))]
    places[:0] = [above[:length] for length in range(len(above))]
    return [(place, keys_at(model, place)) for place in places]


def value_at(value: Any, steps: Iterable[str | int]) -> Any:
    """Return the part of a document at a place; None where it is not there."""
    for step in steps:
        is_there = isinstance(value, list) and isinstance(step, int) and step < len(value)
        is_there = is_there or (isinstance(value, dict) and step in value)
        value = value[step] if is_there else None
    return value


def sole_entry(value: Any) -> Any:
    """Return the entry of a list that has only one, and any other value itself."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _place_of(steps: Steps, model: type[BaseModel], value: Any) -> tuple[Steps, Steps | None]:
    """Return the place of an error without the names of members of unions, and that of the last union."""
    place, union = Steps(), None
    for step in steps:
        is_there = isinstance(value, dict) and step in value
        if not is_there and isinstance(step, str) and step not in keys_at(model, place):
            union = place
            continue
        value = value_at(value, [step])
        place = (*place, step)
    return place, union


def _finding(details: Sequence[ErrorDetails], steps: Steps, model: type[BaseModel], of_unknown: str) -> Finding:
    """Return the finding about a place, with the hint of an unknown key; several errors are those of a union."""
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
        hint = of_unknown
    elif kind == "value_error":
        message, hint = (*context["error"].args, "Write another value.")[:2]
        message = f"{message}; {found}."
    else:
        *front, last = dict.fromkeys(part for detail in details for part in _allowed_values(detail))
        wanted = f"{', '.join(front)} or {last}" if front else last
        is_key = kind == "invalid_key" or details[0]["loc"][-1:] == ("[key]",)
        message = f"{f'The key `{key}`' if is_key else _name_of(steps)} must be {wanted}; {found}."
        hint = "Shorten it." if kind == "string_too_long" else did_you_mean(str(given), _QUOTED.findall(wanted))
        hint = "Put it in quotes." if is_key and wanted == "a string" else hint
    return Finding("schema", message, pointer(*steps), hint=hint or f"Write {wanted}.")


def _allowed_values(detail: ErrorDetails) -> list[str]:
    words = _WANTED.get(detail["type"], detail["msg"].removeprefix("Input should be "))
    words = words.format(**detail.get("ctx", {}))
    return re.split(", | or ", words) if detail["type"] in ("literal_error", "enum") else [words]


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
    return model.model_json_schema(by_alias=True)


def keys_at(model: type[BaseModel], steps: Iterable[str | int]) -> list[str]:
    """Return the keys that the schema of a model knows at a place; several shapes may be allowed there."""
    return [key for shape in _shapes_at(model, steps) for key in shape.get("properties", {})]


def _shapes_at(model: type[BaseModel], steps: Iterable[str | int]) -> list[dict[str, Any]]:
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
    return places


def unread_keys(
    model: BaseModel, place: str = "", order: str = "", known: Collection[str] = (), own: str = ""
) -> Iterator[tuple[str, str, Finding]]:
    """Find unknown keys of an open model that were meant as known ones, each with what it was meant as.

    That is a key of which it is a misspelling. Where the key ``order`` is missing, it is that one for a key with only
    names that differ from those of ``known`` at most in digits, and not only the model's ``own``.
    """
    fields = type(model).model_fields.keys()
    unused = fields - model.model_fields_set
    empty = {name for name in fields if getattr(model, name) in (None, [])}
    forms = {_DIGITS.sub("0", name) for name in known}
    for key, value in (model.model_extra or {}).items():
        meant = correct_spelling(key, unused | empty)
        message, hint = f"Unknown key `{short_name(key)}`.", f"Did you mean `{meant}`?"
        names = _LISTED.findall(str(value)) if order in unused and not meant else []
        if {*names} - {own} and forms.issuperset(_DIGITS.sub("0", name) for name in names):
            message = f"`{short_name(key)}` names {', '.join(map(short_name, names[:3]))}, but is not read."
            hint = f"If it depends on them, name them in `{order}` too; else write `{order}: []`."
            meant = order
        if meant:
            yield key, meant, warning("key-misspelled", message, place + pointer(key), hint=hint)


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


def format_of(path: str) -> DocumentFormat:
    """Return the format of a document by its file name: YAML by its suffix, everything else JSON."""
    return "yaml" if PurePath(path).suffix.lower() in {".yml", ".yaml"} else "json"
