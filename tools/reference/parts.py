"""The generated parts of the documentation, and the function that writes each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from accord.agents.registry import Registry
from accord.core.kinds import KINDS
from accord.handoffs.stages import HANDOFF
from accord.missions.lifecycle import WORK_PACKAGE
from accord.results.models import ImplementorResult, PlannerResult, ReviewerResult
from accord.results.status import WORK_ITEM
from accord.sessions.reviews import TASK
from accord.workflows.requirements import NEEDED_FILE
from accord_sandbox.seed import Seed
from reference.actions import (
    contract_inputs,
    entry_list,
    needed_permissions_file,
    shared_list,
    shared_permissions,
)
from reference.commands import cli_reference, demo_output, exit_codes
from reference.install import gh_extension, install_in_readme, install_to_start, install_with_tools
from reference.models import catalog, fields_lists, labels_list, protected_paths, runner_outputs_list, schema_file
from reference.rules import (
    attacks_table,
    causes_list,
    diagram,
    fault_table,
    reasons_list,
    routes_table,
    rules_list,
    runs_table,
    session_diagram,
)
from reference.source import findings_page
from reference.text import yaml_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pydantic import BaseModel


RESULTS: dict[str, type[BaseModel]] = {
    "docs/implementor-results.md": ImplementorResult,
    "docs/planner-results.md": PlannerResult,
    "docs/reviewer-results.md": ReviewerResult,
}
"""The page of each kind of agent result."""

GROUPS: dict[str, tuple[str, ...]] = {
    "docs/workflows.md apply": ("apply-result", "apply-revision", "apply-review"),
    "docs/workflows.md sync": ("label-sync", "repositories"),
    "docs/workflows.md loops": ("keepalive", "autofix", "verifier", "bot-comments"),
    "docs/runner-workflows.md runners": ("codex-run", "claude-run", "gemini-run", "agent-run"),
}
"""Reusable workflows that share their lists: page and mark, then the names without ``reusable-``."""

ACTIONS = {"apply": "apply", "sync": "labels", "loops": "keepalive", "runners": "run-agent"}
"""The action whose page has most of the inputs of such a group, by the mark."""


@dataclass(frozen=True)
class Part:
    """One generated part: a whole file, or a marked place of a page (``mark``)."""

    path: str
    render: Callable[[], str]
    mark: str = ""


def parts(root: Path) -> Iterator[Part]:
    """List every generated part below ``root``."""
    yield Part("docs/examples.md", demo_output, "demo")
    yield from whole_files(root)
    yield from parts_of_pages(root)
    for action in sorted(root.glob("actions/*/action.yml")):
        yield from action_parts(action, f"actions/{action.parent.name}/README.md")
    yield from workflow_parts(root)


def whole_files(root: Path) -> Iterator[Part]:
    """List the files that are generated completely."""
    yield Part("docs/cli.md", cli_reference)
    yield Part("docs/findings.md", lambda: findings_page(root))
    for name, kind in KINDS.items():
        yield from schema_parts(name, kind.model)
    yield Part("schemas/sandbox-seed.schema.json", lambda: schema_file("sandbox-seed", Seed))
    yield Part("schemas/catalog.json", catalog)
    yield Part(f"src/accord/workflows/{NEEDED_FILE}", lambda: needed_permissions_file(root))


def schema_parts(name: str, model: type[BaseModel]) -> Iterator[Part]:
    """Name the two schemas of a kind of document."""
    yield Part(f"schemas/{name}.schema.json", lambda: schema_file(name, model))
    yield Part(f"schemas/{name}.strict.schema.json", lambda: schema_file(name, model, is_strict=True))


def parts_of_pages(root: Path) -> Iterator[Part]:
    """List the generated parts of pages that people write."""
    yield Part("README.md", partial(install_in_readme, root), "install")
    yield Part("docs/getting-started.md", partial(install_to_start, root), "install")
    yield Part("docs/mcp.md", partial(install_with_tools, root), "install")
    yield Part("gh-accord/gh-accord", partial(gh_extension, root))
    yield Part("schemas/agent-registry.md", partial(fields_lists, Registry), "fields")
    yield Part("docs/applying.md", exit_codes, "exit-codes")
    yield Part("tests/reference/attacks.md", attacks_table, "attacks")
    yield Part("docs/errors.md", causes_list, "causes")
    yield Part("tests/reference/errors.md", rules_list, "rules")
    yield Part("tests/data/README.md", lambda: runs_table(root), "runs")
    yield Part("docs/handoffs.md", partial(diagram, HANDOFF, hidden={"cancelled"}), "machine")
    yield Part("tests/reference/protected-paths.md", protected_paths, "protected")
    yield Part("docs/loops.md", reasons_list, "reasons")
    yield Part("docs/labels.md", labels_list, "labels")
    yield Part("docs/missions.md", partial(diagram, WORK_PACKAGE, hidden={"blocked", "canceled"}), "machine")
    yield Part("docs/runner-outputs.md", runner_outputs_list, "runner-outputs")
    yield Part("docs/runner-workflows.md", contract_inputs, "contract inputs")
    yield Part("docs/sandbox.md", fault_table, "faults")
    yield Part("tests/reference/routes.md", routes_table, "routes")
    yield Part("docs/sessions.md", partial(diagram, TASK), "machine-task")
    yield Part("docs/sessions.md", session_diagram, "machine-session")
    yield Part("docs/work-items.md", partial(diagram, WORK_ITEM), "machine")
    for page, result in RESULTS.items():
        yield Part(page, partial(fields_lists, result), "fields")


def action_parts(action: Path, page: str) -> Iterator[Part]:
    """Name the lists of an action's inputs and outputs, as far as it has any."""
    document = yaml_value(action.read_bytes())
    if document.get("inputs"):
        yield Part(page, lambda: entry_list(document["inputs"]), "inputs")
    if document.get("outputs"):
        yield Part(page, lambda: entry_list(document["outputs"]), "outputs")


def workflow_parts(root: Path) -> Iterator[Part]:
    """Name the lists of the reusable workflows, one set for each group of them."""
    for place, names in GROUPS.items():
        page, mark = place.split(" ")
        files = {name: yaml_value((root / f".github/workflows/reusable-{name}.yml").read_bytes()) for name in names}
        told = [root / f"actions/{ACTIONS[mark]}/action.yml"]
        if mark == "loops":
            told.append(root / ".github/workflows/reusable-agent-run.yml")
        calls = {name: document["on"]["workflow_call"] for name, document in files.items()}
        yield Part(page, partial(shared_list, "inputs", calls, told), f"{mark} inputs")
        yield Part(page, partial(shared_list, "secrets", calls, told), f"{mark} secrets")
        if mark in {"apply", "loops"}:  # runners have the outputs of docs/runner-outputs.md, and syncs have none
            yield Part(page, partial(shared_list, "outputs", calls, told), f"{mark} outputs")
        jobs = {name: document["jobs"] for name, document in files.items()}
        yield Part(page, partial(shared_permissions, jobs), f"{mark} permissions")
