"""Lists of the contracts: the fields of results and outputs, protected paths and labels."""

from __future__ import annotations

from functools import cache
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any

from accord.agents.registry import shipped_registry
from accord.core.schemas import ADDRESS, json_schema, strict_schema
from accord.git.steering import DEPENDENCIES, HARMLESS, PROTECTED, RECORDS, STEERING
from accord.results.label_sync import shipped_labels
from accord.runner.models import RunOutputs
from accord.workflows.rules import OUTPUTS
from reference.text import as_json, default, entry, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel


@cache
def schema_file(name: str, model: type[BaseModel], *, is_strict: bool = False) -> str:
    """Write the JSON Schema of a kind of document as a file."""
    return as_json(strict_schema(model) if is_strict else json_schema(model, name))


FILES = {
    "agent-registry": (".github/agents/registry.yml", "agents that accord runs"),
    "accord-config": (".github/accord/config.yml", "settings of accord's workflows"),
    "planner-result": ("planner-result.json", "plan of a coding agent"),
    "implementor-result": ("implementor-result.json", "change of a coding agent"),
    "reviewer-result": ("reviewer-result.json", "review of a coding agent"),
}
"""Files with a name of their own, for editors, by kind."""


def catalog() -> str:
    """Write the list of schemas in the form of the JSON Schema Store."""
    entries = [
        {"name": f"accord {kind}", "description": f"accord: {what}", "fileMatch": [path]}
        | {"url": f"{ADDRESS}{kind}.schema.json"}
        for kind, (path, what) in FILES.items()
    ]
    return as_json({"$schema": "https://json.schemastore.org/schema-catalog.json", "version": 1, "schemas": entries})


@cache
def fields_lists(model: type[BaseModel]) -> str:
    """Describe the fields of a result, and of the objects in it, from the model's schema."""
    schema = json_schema(model)
    objects = {model.__name__: schema, **schema.get("$defs", {})}
    pieces = []
    for name, found in objects.items():
        by_meaning: dict[str, list[str]] = {}
        for key, field in found["properties"].items():
            by_meaning.setdefault(plain(field.get("description", "")), []).append(f"`{key}` ({type_of(field)})")
        lines = (f"- {', '.join(names)}{meaning and f': {meaning}'}" for meaning, names in by_meaning.items())
        pieces += [f"**{name}**", "\n".join(lines)]
    return "\n\n".join(pieces)


def runner_outputs_list() -> str:
    """List the outputs of a runner, with their value when nothing is known: the contract's, then those accord adds."""
    contract: list[str] = []
    own: list[str] = []
    for field in RunOutputs.model_fields.values():
        name, unknown = field.alias or "", default(field.default)
        line = entry(name, field.description or "", unknown and f"else {unknown}")
        (contract if name in OUTPUTS else own).append(line)
    return "\n".join(contract) + "\n\naccord adds:\n\n" + "\n".join(own)


def type_of(field: Mapping[str, Any]) -> str:
    """Name the type of a field in words, without the null of a field that may be left out."""
    if "anyOf" in field:
        choices = [choice for choice in field["anyOf"] if "default" not in field or choice != {"type": "null"}]
        return " or ".join(type_of(choice) for choice in choices)
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "enum" in field:
        return " or ".join(f'`"{choice}"`' for choice in field["enum"])
    if "const" in field:
        return f'`"{field["const"]}"`'
    if "type" not in field:
        return "anything"
    if isinstance(field.get("additionalProperties"), dict):
        return f"mapping to {type_of(field['additionalProperties']).replace('strings', 'lists of strings')}"
    if field["type"] != "array":
        return str(field["type"])
    kind = type_of(field["items"])
    return f"{kind}s" if kind == "string" else f"list of {kind}"


def protected_paths() -> str:
    """List the paths that only people change, by what happens to a change."""
    wrapper = TextWrapper(120, break_long_words=False, break_on_hyphens=False)
    steering = " ".join([*shipped_registry().steering_patterns, *STEERING.split()])
    kinds = {"Steering files": steering, "Other protected files": PROTECTED, "Dependency files": DEPENDENCIES}
    kinds |= {"Sessions and missions": RECORDS, "New dot files that do not count": HARMLESS}
    parts = (f"**{name}**\n\n```text\n{wrapper.fill(found.strip())}\n```" for name, found in kinds.items())
    return "\n\n".join(parts)


def labels_list() -> str:
    """List the labels that accord ships."""
    return "\n".join(entry(label.name, label.description) for label in shipped_labels())
