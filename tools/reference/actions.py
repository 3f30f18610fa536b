"""Tables of actions and workflows: inputs, outputs, secrets and permissions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord.core.shapes import read_shape
from accord.text.markdown import table
from accord.workflows import rules as contract
from accord.workflows.facts import WORKFLOWS
from accord.workflows.models import Workflow
from accord.workflows.permissions import needed_permissions
from reference.text import default, plain, yaml_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def contract_inputs() -> str:
    """List the inputs that every runner takes."""
    rows = [[f"`{i.name}`", i.type, "yes" if i.is_required else "no", plain(i.description)] for i in contract.INPUTS]
    return table(["Input", "Type", "Required", "Meaning"], rows)


def shared_table(kind: str, workflows: Mapping[str, Mapping[str, Any]]) -> str:
    """List the inputs, secrets or outputs of several workflows in one table; ``Only`` names those that differ."""
    users: dict[tuple[str, ...], list[str]] = {}
    for name, call in workflows.items():
        for key, given in (call.get(kind) or {}).items():
            cells = [f"`{key}`", plain(given["description"])]
            if kind != "outputs":
                cells.insert(1, "yes" if is_true(given.get("required")) else "no")
            if kind == "inputs":
                cells.insert(2, default(given.get("default")))
            users.setdefault(tuple(cells), []).append(name)
    order = list(dict.fromkeys(cells[0] for cells in users))
    rows = [
        [*cells, "" if len(names) == len(workflows) else ", ".join(names)]
        for cells, names in sorted(users.items(), key=lambda row: order.index(row[0][0]))
    ]
    heads = {"inputs": ["Input", "Required", "Default"], "secrets": ["Secret", "Required"], "outputs": ["Output"]}[kind]
    table_heads = [*heads, "Meaning", "Only"]
    if not any(row[-1] for row in rows):
        return table(table_heads[:-1], [row[:-1] for row in rows])
    return table(table_heads, rows)


def shared_permissions(workflows: Mapping[str, Mapping[str, Any]]) -> str:
    """List what each job of several workflows may do; the calling job must grant as much."""
    rows = [
        [f"`{name}`", f"`{job}`", ", ".join(f"`{a}: {level}`" for a, level in given["permissions"].items()) or "none"]
        for name, jobs in workflows.items()
        for job, given in jobs.items()
    ]
    return table(["Workflow", "Job", "Permissions"], rows)


def needed_permissions_file(root: Path) -> str:
    """Write what each reusable workflow needs from the job that calls it, for `accord doctor` in other repositories."""
    files = {f"{WORKFLOWS}/{path.name}": path for path in sorted((root / WORKFLOWS).glob("reusable-*.yml"))}
    workflows = {name: read_shape(Workflow, yaml_value(path.read_bytes())) for name, path in files.items()}
    needed = {path.name: needed_permissions(name, workflows) for name, path in files.items()}
    return json.dumps(needed, indent=2) + "\n"


def inputs_table(inputs: Mapping[str, Mapping[str, Any]]) -> str:
    """List inputs: name, whether it must be given, default, description."""
    rows = [
        [
            f"`{name}`",
            "yes" if is_true(given.get("required")) else "no",
            default(given.get("default")),
            plain(given["description"]),
        ]
        for name, given in inputs.items()
    ]
    return table(["Input", "Required", "Default", "Meaning"], rows)


def outputs_table(outputs: Mapping[str, Mapping[str, Any]]) -> str:
    """List outputs: name, description."""
    return table(["Output", "Meaning"], [[f"`{name}`", plain(given["description"])] for name, given in outputs.items()])


def is_true(value: Any) -> bool:
    """Tell whether YAML says true, as a word or as text."""
    return str(value).lower() == "true"
