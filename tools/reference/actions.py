"""Lists of actions and workflows: inputs, outputs, secrets and permissions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord.core.shapes import read_shape
from accord.workflows import rules as contract
from accord.workflows.facts import WORKFLOWS
from accord.workflows.models import Workflow
from accord.workflows.requirements import needed_permissions
from reference.text import default, entry, yaml_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


def contract_inputs() -> str:
    """Name the inputs that every runner takes, by their type."""
    by_type: dict[str, list[str]] = {}
    for name, one in contract.INPUTS.items():
        by_type.setdefault(one.type or "", []).append(f"`{name}`" + " (required)" * one.required)
    return "\n".join(f"- {kind}: {', '.join(names)}" for kind, names in by_type.items())


def shared_list(kind: str, workflows: Mapping[str, Mapping[str, Any]], others: Iterable[Path]) -> str:
    """List the inputs, secrets or outputs of several workflows: those of all, then those of some, by their names.

    Entries that the page of another action or of the runners (``others``) has in the same words are only named.
    """
    told: dict[str, str] = {}
    for path in others:
        page = f"[{path.parent.name}](../actions/{path.parent.name}/README.md)"
        document = yaml_value(path.read_bytes())
        if "jobs" in document:
            page = "[outputs](runner-outputs.md)" if kind == "outputs" else f"[runners](runner-workflows.md#{kind})"
            document = document["on"]["workflow_call"]
        told |= {_bare(line): page for line in entries(document.get(kind) or {})}
    users: dict[str, list[str]] = {}
    for name, call in workflows.items():
        for line in entries(call.get(kind) or {}):
            users.setdefault(line, []).append(name)
    groups: dict[tuple[str, ...], list[str]] = {tuple(workflows): []}
    for line, names in users.items():
        groups.setdefault(tuple(names), []).append(line)
    pieces = []
    named: dict[str, list[str]] = {}
    for group, lines in groups.items():
        title = "" if len(group) == len(workflows) else ", ".join(f"`{name}`" for name in group)
        if own := [line for line in lines if _bare(line) not in told]:
            pieces.append(f"{title or 'All of them'}:\n\n" + "\n".join(own))
        for page in dict.fromkeys(told.values()):
            if rest := ", ".join(f"`{line.split('`')[1]}`" for line in lines if told.get(_bare(line)) == page):
                named.setdefault(page, []).append(rest + (title and f" ({title})"))
    pieces += [f"As in {page}: {'; '.join(names)}." for page, names in named.items()]
    return "\n\n".join(pieces)


def _bare(line: str) -> str:
    """Return an entry as it compares between a workflow and an action."""
    return line.replace(" (true or false)", "").replace("For phase all: ", "").replace("_", "-").lower()


def shared_permissions(workflows: Mapping[str, Mapping[str, Any]]) -> str:
    """List what the jobs of several workflows may do, by their rights; the calling job must grant as much."""
    jobs_of: dict[str, list[str]] = {}
    for name, jobs in workflows.items():
        for job, given in jobs.items():
            rights = given["permissions"]
            levels = ((level, [f"`{key}`" for key in rights if rights[key] == level]) for level in ("read", "write"))
            words = "; ".join(f"{level} {', '.join(keys)}" for level, keys in levels if keys)
            jobs_of.setdefault(words or "none", []).append(f"`{name}` {job}")
    return "\n".join(f"- {', '.join(names)}: {words}" for words, names in jobs_of.items())


def needed_permissions_file(root: Path) -> str:
    """Write what each reusable workflow needs from the job that calls it, for `accord doctor` in other repositories."""
    files = {f"{WORKFLOWS}/{path.name}": path for path in sorted((root / WORKFLOWS).glob("reusable-*.yml"))}
    workflows = {name: read_shape(Workflow, yaml_value(path.read_bytes())) for name, path in files.items()}
    needed = {path.name: needed_permissions(name, workflows) for name, path in files.items()}
    return json.dumps(needed, indent=2) + "\n"


def entries(given: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Describe inputs, secrets or outputs: name, whether it must be given or its default, and description."""
    for name, one in given.items():
        yield entry(name, one["description"], default_of(one))


def entry_list(given: Mapping[str, Mapping[str, Any]]) -> str:
    """List the inputs or outputs of an action."""
    return "\n".join(entries(given))


def default_of(given: Mapping[str, Any]) -> str:
    """Write an input's default, or that it has none because callers must give it."""
    if is_true(given.get("required")):
        return "required"
    shown = default(given.get("default"))
    return shown and f"default {shown}"


def is_true(value: Any) -> bool:
    """Tell whether YAML says true, as a word or as text."""
    return str(value).lower() == "true"
