"""The structured result of an agent, held against its JSON Schema by ourselves.

The CLIs cannot be relied on for it: codex does not check at all, claude gives up silently, gemini knows no schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.kernel.findings import pointer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jsonschema_rs import Validator

UNFIT = "The answer does not fit its schema: "
"""How each problem begins."""

_MOST_PROBLEMS = 10
_PROBLEM_CHARS = 200


@dataclass(frozen=True)
class StructuredResult:
    """The result as compact JSON, empty when there is none that fits, and then why."""

    text: str
    problems: tuple[str, ...] = ()


def structured_result(schema: Mapping[str, Any], value: Any, message: str) -> StructuredResult:
    """Take the value that the CLI returned, else the one JSON document of its final message, and validate it."""
    if value is None:
        try:
            value = _document(message)
        except BrokenContract as broken:
            return StructuredResult("", (f"{UNFIT}the final message holds none. {broken.message}"[:_PROBLEM_CHARS],))
    errors = []
    for error in validator(schema).iter_errors(value):
        place = pointer(*error.instance_path)
        errors.append(f"{UNFIT}{f'at {place}, ' if place else ''}{error.message}"[:_PROBLEM_CHARS])
        if len(errors) == _MOST_PROBLEMS:
            break
    return StructuredResult("" if errors else json.dumps(value, ensure_ascii=False), tuple(errors))


def validator(schema: Mapping[str, Any]) -> Validator:
    """Make a validator, which loads nothing from anywhere. Raises WrongUsage when this is no JSON Schema."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise WrongUsage(f"The schema is no JSON Schema: {reason}", mend="Correct it, without references.") from None


def _refuse(address: str) -> Any:
    raise ValueError(f"{address} is not loaded")


def _document(message: str) -> Any:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return read_object(message.encode("utf-8", "replace")).value
