"""The documented rules of strict structured output, as a check of a schema.

Source: OpenAI, "Structured model outputs", section "Supported schemas". Where its editions differ, the tighter limit
counts. Its API also refuses a reference with other keys beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WORDS = {"$defs", "$ref", "additionalProperties", "anyOf", "description", "enum", "items"} | {
    "properties",
    "required",
    "type",
}
TYPES = {"string", "number", "boolean", "integer", "object", "array", "null"}
MOST_LEVELS, MOST_PROPERTIES, MOST_VALUES, MOST_CHARS = 5, 5_000, 1_000, 120_000


def broken_rules(schema: dict[str, Any]) -> list[str]:
    """Return each place at which a schema breaks a rule, with the rule; empty for a schema that is accepted."""
    found = [f"{place}: {rule}" for place, node in nodes(schema, "#") for rule in _rules_of(node)]
    if schema.get("type") != "object" or "anyOf" in schema:
        found.append("#: the root is not an object")
    definitions = {f"#/$defs/{name}" for name in schema.get("$defs", {})}
    references = {node["$ref"] for _, node in nodes(schema, "#") if "$ref" in node}
    found += [f"{name}: no such definition" for name in references - definitions - {"#"}]
    if not found:
        found += _limits(schema)
    return found


def nodes(node: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return each schema in a schema, with its place."""
    yield place, node
    for word in ("properties", "$defs"):
        for name, child in node.get(word, {}).items():
            yield from nodes(child, f"{place}/{word}/{name}")
    if isinstance(node.get("items"), dict):
        yield from nodes(node["items"], f"{place}/items")
    for i, child in enumerate(node.get("anyOf", ())):
        yield from nodes(child, f"{place}/anyOf/{i}")


def _rules_of(node: dict[str, Any]) -> Iterator[str]:
    if unknown := set(node) - WORDS:
        yield f"keywords that are not supported: {sorted(unknown)}"
    if "$ref" in node and len(node) > 1:
        yield "a reference with neighbours"
    if not {"$ref", "anyOf"}.isdisjoint(node):
        return
    if node.get("type") not in TYPES:
        yield f"no type, or another one: {node.get('type')}"
    if node.get("type") == "object":
        yield from _rules_of_objects(node)
    if node.get("type") == "array" and not isinstance(node.get("items"), dict):
        yield "items of any type"


def _rules_of_objects(node: dict[str, Any]) -> Iterator[str]:
    if not node.get("properties"):
        yield "an object that can only be empty"
    if set(node.get("required", ())) != set(node.get("properties", ())):
        yield "properties that are not required"
    if node.get("additionalProperties") is not False:
        yield "any other keys"


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    every = [node for _, node in nodes(schema, "#")]
    properties = [name for node in every for name in node.get("properties", ())]
    values = [value for node in every for value in node.get("enum", ())]
    if (levels := _levels(schema, schema, ())) > MOST_LEVELS:
        yield f"#: {levels} levels of objects"
    if len(properties) > MOST_PROPERTIES:
        yield f"#: {len(properties)} properties"
    if len(values) > MOST_VALUES:
        yield f"#: {len(values)} values of enums"
    if sum(len(str(name)) for name in [*properties, *values, *schema.get("$defs", ())]) > MOST_CHARS:
        yield f"#: more than {MOST_CHARS} characters in names and values"


def _levels(node: dict[str, Any], root: dict[str, Any], above: tuple[str, ...]) -> int:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return 0 if name in above else _levels(root["$defs"][name], root, (*above, name))
    below = [
        *node.get("properties", {}).values(),
        *node.get("anyOf", ()),
        *([node["items"]] if "items" in node else []),
    ]
    return (node.get("type") == "object") + max((_levels(child, root, above) for child in below), default=0)
