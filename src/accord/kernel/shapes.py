"""Shape before rules: a document against its model, every violation a finding with its pointer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from accord.kernel.documents import shown
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding, pointer

if TYPE_CHECKING:
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
