"""JSON Schemas out of models: one form that says everything, and one that agent CLIs accept for enforced output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from accord.core.frozen import Frozen
from accord.core.kinds import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_KEPT = frozenset({"additionalProperties", "description", "enum", "items", "properties", "required", "type"})
"""Keywords that every provider accepts in structured output, besides `$defs`, `$ref` and `anyOf`."""


ADDRESS = "https://raw.githubusercontent.com/accord-ci/accord/v0/schemas/"
"""Folder of the published schemas: the branch of the major version, which keeps accepting what it accepted."""


def json_schema(model: type[BaseModel], name: str = "") -> dict[str, Any]:
    """Return the schema in JSON Schema 2020-12; with a ``name``, it has its published address and its contract."""
    address = {"$id": f"{ADDRESS}{name}.schema.json"} if name else {}
    contract = KINDS[name].contract if name in KINDS else None
    if contract:
        address["$comment"] = " ".join(filter(None, ("Contract:", *contract)))
    return {"$schema": DIALECT, **address, **model.model_json_schema(by_alias=True)}


class StrictForm(Frozen):
    """A schema for enforced output, which has no values of any type and no objects with free keys."""

    schema: dict[str, Any]
    left_out: tuple[str, ...]  # what the schema leaves out for this reason
    missing: tuple[str, ...]  # properties among it that the model requires: no document has them


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema with every property required and no unknown keys, in the words that all providers accept."""
    return strict_form(model).schema


def strict_form(model: type[BaseModel]) -> StrictForm:
    """Return the strict schema and what it leaves out. A reference has no key beside it: a provider refuses those."""
    full = model.model_json_schema(by_alias=True)
    conversion = _Conversion(full.get("$defs", {}))
    schema = conversion.convert(full, "") or {}
    used = {name: conversion.converted[name] for name in conversion.definitions if conversion.converted.get(name)}
    schema = {"$defs": used, **schema} if used else schema
    return StrictForm(schema, tuple(conversion.left_out), tuple(conversion.missing))


@dataclass
class _Conversion:
    """One conversion. A node becomes None where it has no strict form; a place is named by definition and key."""

    definitions: Mapping[str, Any]
    converted: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def convert(self, node: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        if "$ref" in node:
            return self._reference(node["$ref"])
        if "anyOf" in node:
            return self._union(node, place)
        if "const" in node:
            node = {**node, "enum": [node["const"]]}
        kept = {key: child for key, child in node.items() if key in _KEPT}
        if node.get("type") == "object":
            return self._object(kept, place)
        if node.get("type") == "array":
            items = self.convert(node.get("items", {}), place)
            return {**kept, "items": items} if items else None
        return kept if "type" in kept else None

    def _reference(self, reference: str) -> dict[str, Any] | None:
        name = reference.rpartition("/")[2]
        if name not in self.converted:
            self.converted[name] = {}  # a definition that refers to itself
            self.converted[name] = self.convert(self.definitions[name], name)
        return None if self.converted[name] is None else {"$ref": reference}

    def _union(self, node: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        branches = [self.convert(branch, place) for branch in node["anyOf"]]
        found = [branch for branch in branches if branch]
        if all(branch.get("type") == "null" for branch in found):
            return None
        if len(found) < len(branches):
            types = dict.fromkeys(str(branch.get("type", "object")) for branch in found)
            self.left_out.append(f"`{place}` other than {' or '.join(types)}")
        described = {"description": node["description"]} if "description" in node else {}
        if len(found) > 1:
            return {"anyOf": found, **described}
        return found[0] if "$ref" in found[0] else {**found[0], **described}

    def _object(self, kept: dict[str, Any], place: str) -> dict[str, Any] | None:
        properties = {}
        for key, child in kept.get("properties", {}).items():
            inner = f"{place}.{key}" if place else key
            if found := self.convert(child, inner):
                properties[key] = found
                continue
            self.left_out.append(f"`{inner}`")
            if key in kept.get("required", ()):
                self.missing.append(inner)
        if not properties:
            return None
        return {**kept, "properties": properties, "required": list(properties), "additionalProperties": False}
