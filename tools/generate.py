"""Writes every part of the documentation that the code already says: one source for a fact, one command to renew all.

    python -P tools/generate.py            write what is out of date
    python -P tools/generate.py --check    exit 1 and show the difference when something is

A part is a whole file (``docs/cli.md``), or what stands between ``<!-- name -->`` and ``<!-- /name -->`` of a page that
people write. Finding codes are collected from the source, so that none stays without a line in ``tools/findings.yml``.
"""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli.kinds import KINDS
from accord.handoffs.stages import HANDOFF
from accord.loops.reasons import ALL as ALL_LOOPS
from accord.missions.lifecycle import WORK_PACKAGE
from accord.results.models import ImplementorResult, PlannerResult, ReviewerResult
from accord.results.status import WORK_ITEM
from accord.runner.registry_models import Registry
from accord.sessions.machine import TASK

sys.path.insert(0, str(Path(__file__).parent))  # -P leaves it out

from reference.actions import (
    contract_inputs,
    contract_outputs,
    inputs_table,
    outputs_table,
    permissions_table,
    quoted,
    secrets_table,
)
from reference.commands import cli_reference, demo_output, exit_codes
from reference.models import fields_tables, labels_table, protected_paths, runner_outputs_table, schema_file
from reference.rules import (
    causes_table,
    fault_table,
    reasons_table,
    routes_table,
    rules_table,
    runs_table,
    way_of_sessions,
)
from reference.source import findings_page, module_map
from reference.text import COMMAND, Problem, yaml_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pydantic import BaseModel


ROOT = Path(__file__).parents[1]
RESULTS: dict[str, type[BaseModel]] = {
    "docs/implementor-results.md": ImplementorResult,
    "docs/planner-results.md": PlannerResult,
    "docs/reviewer-results.md": ReviewerResult,
}
"""The page of each kind of agent result."""


@dataclass(frozen=True)
class Part:
    """One generated part: a whole file, or a marked place of a page (``mark``)."""

    path: str
    render: Callable[[], str]
    mark: str = ""


def parts(root: Path) -> Iterator[Part]:
    """Name every generated part below ``root``, and what writes it."""
    yield Part("docs/cli.md", cli_reference)
    yield Part("docs/findings.md", lambda: findings_page(root))
    for name in KINDS:
        model = KINDS[name].model
        yield Part(f"schemas/{name}.schema.json", lambda model=model: schema_file(model))  # type: ignore[misc]
        yield Part(f"schemas/{name}.strict.schema.json", lambda model=model: schema_file(model, is_strict=True))  # type: ignore[misc]
    yield Part("README.md", demo_output, "demo")
    yield Part("docs/applying.md", exit_codes, "exit-codes")
    yield Part("docs/agents.md", lambda: fields_tables(Registry), "fields")
    yield Part("docs/architecture.md", lambda: module_map(root), "modules")
    yield Part("docs/errors.md", causes_table, "causes")
    yield Part("docs/errors.md", rules_table, "rules")
    yield Part("docs/errors.md", lambda: runs_table(root), "runs")
    for loop in ALL_LOOPS:
        yield Part("docs/keepalive.md", lambda loop=loop: reasons_table(loop), f"reasons-{loop}")  # type: ignore[misc]
    yield Part("docs/handoffs.md", lambda: f"```mermaid\n{HANDOFF.mermaid()}\n```", "machine")
    yield Part("docs/labels.md", labels_table, "labels")
    for page, result in RESULTS.items():
        yield Part(page, lambda result=result: fields_tables(result), "fields")  # type: ignore[misc]
    yield Part("docs/implementor-results.md", protected_paths, "protected")
    yield Part(
        "docs/implementor-results.md",
        lambda: quoted(root / "templates/consumer-repo/.github/workflows/accord-implement.yml"),
        "workflow",
    )
    yield Part(
        "docs/reviewer-results.md",
        lambda: quoted(root / "templates/consumer-repo/.github/workflows/accord-review.yml"),
        "workflow",
    )
    yield Part("docs/runner-outputs.md", runner_outputs_table, "runner-outputs")
    yield Part("docs/sandbox.md", fault_table, "faults")
    yield Part("docs/sandbox.md", routes_table, "routes")
    yield Part("docs/work-items.md", lambda: f"```mermaid\n{WORK_ITEM.mermaid()}\n```", "machine")
    yield Part("docs/sessions.md", lambda: f"```mermaid\n{TASK.mermaid()}\n```", "machine-task")
    yield Part("docs/sessions.md", way_of_sessions, "machine-session")
    yield Part("docs/missions.md", lambda: f"```mermaid\n{WORK_PACKAGE.mermaid()}\n```", "machine")
    for action in sorted(root.glob("actions/*/action.yml")):
        yield from action_parts(action, f"actions/{action.parent.name}/README.md")
    yield from action_parts(root / "action.yml", "docs/actions.md")
    yield Part("docs/runner-workflows.md", contract_inputs, "contract inputs")
    yield Part("docs/runner-workflows.md", contract_outputs, "contract outputs")
    for workflow in sorted(root.glob(".github/workflows/reusable-*.yml")):
        yield from workflow_parts(workflow)


def action_parts(action: Path, page: str) -> Iterator[Part]:
    """Name the tables of an action's inputs and outputs, as far as it has any."""
    document = yaml_value(action.read_bytes())
    if document.get("inputs"):
        yield Part(page, lambda: inputs_table(document["inputs"]), "inputs")
    if document.get("outputs"):
        yield Part(page, lambda: outputs_table(document["outputs"]), "outputs")


def workflow_parts(workflow: Path) -> Iterator[Part]:
    """Name the tables of a reusable workflow."""
    document = yaml_value(workflow.read_bytes())
    call = document["on"]["workflow_call"]
    is_runner = workflow.stem.endswith("-run")
    page, name = "docs/runner-workflows.md" if is_runner else "docs/workflows.md", workflow.stem
    yield Part(page, lambda: inputs_table(call.get("inputs") or {}), f"{name} inputs")
    yield Part(page, lambda: secrets_table(call.get("secrets") or {}), f"{name} secrets")
    if not is_runner:  # all runners have the outputs of the contract, which are listed once
        yield Part(page, lambda: outputs_table(call.get("outputs") or {}), f"{name} outputs")
    yield Part(page, lambda: permissions_table(document["jobs"]), f"{name} permissions")


def filled(page: str, mark: str, content: str, name: str) -> str:
    """Put generated content into its place of a page."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise Problem(f"{name} needs {start} and {end}, once each, for what is generated there.")
    before, _, rest = page.partition(start)
    return f"{before}{start}\n\n{content}\n\n{end}{rest.partition(end)[2]}"


def expected(root: Path) -> tuple[dict[str, str], list[str]]:
    """Return what every generated file should hold, and the problems that are for people to mend."""
    pages: dict[str, str] = {}
    problems: list[str] = []
    for part in parts(root):
        try:
            if part.mark:
                page = pages.get(part.path) or read(root / part.path)
                pages[part.path] = filled(page, part.mark, part.render(), part.path)
            else:
                pages[part.path] = part.render()
        except Problem as problem:
            problems.append(str(problem))
    return pages, problems


def read(path: Path) -> str:
    """Read a page; Problem when it is not there."""
    if not path.exists():
        raise Problem(f"{path.name} is missing in {path.parent}.")
    return path.read_text(encoding="utf-8")


def stale_schemas(root: Path, pages: Iterable[str]) -> list[str]:
    """Name schemas of kinds that are gone."""
    return sorted({f"schemas/{path.name}" for path in root.glob("schemas/*.json")} - set(pages))


def difference(root: Path, name: str, wanted: str) -> str:
    """Show how a file differs from what it should hold; empty when it does not."""
    path = root / name
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(found.splitlines(), wanted.splitlines(), name, f"{name} (generated)", lineterm="", n=1)
    return "\n".join(lines)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write what is out of date, or with ``--check`` only say so."""
    pages, problems = expected(root)
    stale = stale_schemas(root, pages)
    differences = [text for name, wanted in pages.items() if (text := difference(root, name, wanted))]
    if "--check" in arguments:
        problems += [*differences, *(f"{name} is of no kind that there is." for name in stale)]
        if problems:
            print("\n".join(problems))
            print(f"Generated parts are out of date. Run {COMMAND}.")
        return 1 if problems else 0
    for name, wanted in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != wanted:
            path.write_text(wanted, encoding="utf-8", newline="\n")
            print(f"wrote {name}")
    for name in stale:
        (root / name).unlink()
        print(f"deleted {name}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
