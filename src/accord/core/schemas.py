"""JSON Schemas out of models: one form that says everything, and one that agent CLIs accept for enforced output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ACCEPTED = frozenset(
    {"$defs", "$ref", "additionalProperties", "anyOf", "description", "enum", "items", "properties", "required", "type"}
)
"""Keywords that the structured output of every provider accepts; any other makes one of them refuse."""


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's schema in JSON Schema 2020-12."""
    return {"$schema": DIALECT, **model.model_json_schema(by_alias=True)}


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema with every property required and no unknown keys, in the words that all providers accept."""
    strict: dict[str, Any] = _strict(model.model_json_schema(by_alias=True))
    return strict


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(child) for child in node]
    if not isinstance(node, dict):
        return node
    if "const" in node:
        node = {**node, "enum": [node["const"]]}
    kept = {key: child for key, child in node.items() if key in _ACCEPTED}
    for key in ("properties", "$defs"):
        if key in kept:
            kept[key] = {name: _strict(child) for name, child in kept[key].items()}
    for key in ("anyOf", "items"):
        if key in kept:
            kept[key] = _strict(kept[key])
    if kept.get("type") == "object":
        kept["required"] = list(kept.get("properties", {}))
        kept["additionalProperties"] = False
    return kept
