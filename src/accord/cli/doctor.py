"""``accord doctor``: is this repository fit for agents, and what fixes it where it is not."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import format_option, repository_options, root_option
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.sources import github_for, read_bytes
from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.core.findings import Finding, Severity, has_errors, warning, with_lines
from accord.core.kinds import KINDS, read_shape
from accord.files.yaml import read_mapping
from accord.runner.registry import REGISTRY_PATH, load_registry
from accord.workflows.agent_commands import agent_programs, shipped_programs
from accord.workflows.doctor import CHECKS, WORKFLOWS, AgentSecrets, RepositoryFacts
from accord.workflows.files import Workflow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.results.label_sync import LabelEntry
    from accord.runner.registry import Registry
    from accord.workflows.doctor import Found


_COLORS = {"ok": "green", "warning": "yellow", "error": "red", "skipped": "bright_black"}


@click.command()
@root_option
@repository_options
@format_option
@click.pass_context
def doctor(ctx: click.Context, /, root: Path, output_format: str, **access: Any) -> None:
    """Look a repository over: labels, agents, permissions, secrets, triggers, pins, scripts, names.

    Reads files, and writes nothing anywhere. GitHub is asked for the labels when there is a token and a repository.
    Exits 1 when there is an error.
    """
    from accord.cli.step import report_doctor

    check_ups = examine(root, access)
    documents = _by_file(check_ups)
    is_ok = all(check_up.status != "error" for check_up in check_ups)
    if output_format == "json":
        checks = [{"name": c.name, "status": c.status, "note": c.note} for c in check_ups]
        listed = [{"path": path, "findings": [f.as_json() for f in findings]} for path, findings in documents.items()]
        print_json({"ok": is_ok, "checks": checks, "documents": listed})
    else:
        _print(check_ups, documents)
    report_doctor(is_ok, [(c.name, c.status, c.note) for c in check_ups], documents)
    ctx.exit(0 if is_ok else 1)


def _by_file(check_ups: Sequence[CheckUp]) -> dict[str, list[Finding]]:
    documents: dict[str, list[Finding]] = {}
    for check_up in check_ups:
        for path, finding in check_up.found:
            documents.setdefault(path, []).append(finding)
    return {path: with_lines(findings, {}) for path, findings in sorted(documents.items())}


def _print(check_ups: Sequence[CheckUp], documents: Mapping[str, Sequence[Finding]]) -> None:

    width = max(len(check_up.name) for check_up in check_ups)
    for check_up in check_ups:
        status = click.style(f"{check_up.status:<8}", fg=_COLORS[check_up.status])
        count = f"{len(check_up.found)} found" if check_up.found else ""
        note = ", ".join(filter(None, [count, check_up.note]))
        click.echo(f"{check_up.name:<{width}}  {status} {one_line(note)}".rstrip())
    for path, findings in documents.items():
        click.echo()
        print_findings(findings, path)
    all_found = [finding.severity for findings in documents.values() for finding in findings]
    errors = all_found.count(Severity.ERROR)
    click.echo(f"\n{counted(errors, 'error')}, {counted(len(all_found) - errors, 'warning')}")


LABEL_FILES = (".github/labels.yml", ".github/labels.yaml", ".github/labels.json")
_ORIGIN = re.compile(r"[:/](?P<owner>[\w.-]+)/[\w.-]+?(?:\.git)?/?\Z")


@dataclass(frozen=True)
class CheckUp:
    """One check: what it looked at or why it was skipped, and what it found."""

    name: str
    note: str = ""
    found: Sequence[Found] = ()
    is_skipped: bool = False

    @property
    def status(self) -> str:
        """One of ok, warning, error and skipped."""
        if self.found:
            return "error" if has_errors(finding for _, finding in self.found) else "warning"
        return "skipped" if self.is_skipped else "ok"


@dataclass
class _Read:
    """What lies in the repository's folder."""

    workflows: dict[str, Workflow] = field(default_factory=dict)
    lines: dict[str, Mapping[str, int]] = field(default_factory=dict)
    unreadable: list[Found] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)


def examine(directory: Path, access: Mapping[str, Any]) -> list[CheckUp]:
    """Gather the facts of a repository, and run every check on them."""
    read = _read_workflows(directory)
    registry, own = _registry_check(directory, read)
    agents = {} if own is None else _secrets_of(own, read.agents)
    programs = shipped_programs() if own is None else agent_programs(own)
    owner, path = _owner(directory, access), REGISTRY_PATH.as_posix()
    facts = RepositoryFacts(read.workflows, owner, agents, path, programs)
    note = counted(len(read.workflows), "workflow")
    check_ups = [*_label_checks(directory, access), registry, CheckUp("workflows", note, read.unreadable)]
    for name, check in CHECKS.items():
        found = [(path, _placed(finding, read.lines.get(path, {}))) for path, finding in check(facts)]
        check_ups.append(CheckUp(name, found=found))
    return [*check_ups, _kit_check(directory)]


def counted(number: int, word: str) -> str:
    """Say how many there are of something."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def _kit_check(directory: Path) -> CheckUp:
    """Compare the kit in the folder with that of this version, pinned as it is: what was edited is only counted."""
    from accord.kit.install import plan_folder, read_installed
    from accord.kit.manifest import PLACE, Pin, shipped_kit
    from accord.kit.plan import Action

    try:
        manifest = read_installed(directory)
        if manifest is None:
            return CheckUp("kit", "none; accord init installs it")
        kit = shipped_kit()
        plan = plan_folder(directory, kit, Pin(manifest.commit, kit.version))
    except AccordError as problem:
        return CheckUp("kit", PLACE, [(PLACE, Finding("kit-unreadable", str(problem)))])
    behind = [file for file in plan.files if file.is_change or file.action is Action.CONFLICT]
    found = [(file.path, warning("kit-drift", _drift(file.action))) for file in behind]
    return CheckUp(
        "kit", f"version {manifest.version}, {len(plan.of(Action.KEEP))} files edited or left out", found=found
    )


def _drift(action: str) -> str:
    what = "cannot take over all of the template's changes" if action == "conflict" else f'is behind: "{action}"'
    return f"This file of the kit {what}. Run accord init to see the difference."


def _placed(finding: Finding, lines: Mapping[str, int]) -> Finding:
    return with_lines([finding], lines)[0]


def _read_workflows(directory: Path) -> _Read:
    read = _Read()
    folder = directory / WORKFLOWS
    if not _is_inside(directory, folder):
        read.unreadable.append((WORKFLOWS, Finding("file-unreadable", _LEADS_OUT)))
        return read
    for file in sorted(folder.glob("*.y*ml")):
        path = file.relative_to(directory).as_posix()
        try:
            document = read_mapping(_bytes_of(directory, path))
            read.lines[path] = document.lines
            read.workflows[path] = read_shape(Workflow, document.value)
        except BrokenContract as broken:
            read.unreadable += [(path, _placed(finding, read.lines.get(path, {}))) for finding in broken.findings]
    return read


def _registry_check(directory: Path, read: _Read) -> tuple[CheckUp, Registry | None]:
    """Check the repository's own registry, and return it laid over the shipped one."""
    file, path = directory / REGISTRY_PATH, REGISTRY_PATH.as_posix()
    if not file.exists():
        return CheckUp("registry", "none, so the agents that accord ships count"), None
    try:
        document = read_mapping(_bytes_of(directory, path))
        read.lines[path] = document.lines
        found = KINDS["agent-registry"].check(document)
        if has_errors(found):
            return CheckUp("registry", path, [(path, finding) for finding in found]), None
        registry = load_registry(file)
    except BrokenContract as broken:
        return CheckUp("registry", path, [(path, finding) for finding in broken.findings]), None
    read.agents = [name for name in document.value["agents"] if registry.agents[name].enabled]
    told = f"{path} names {len(read.agents)} of the agents, accord those that it ships"
    return CheckUp("registry", told, [(path, finding) for finding in found]), registry


def _secrets_of(registry: Registry, names: Sequence[str]) -> dict[str, AgentSecrets]:
    """Tell which secrets these agents need."""
    agents = {name: registry.agents[name] for name in names}
    return {
        name: AgentSecrets(agent.required_secrets, agent.required_secrets_mode == "all")
        for name, agent in agents.items()
    }


_LEADS_OUT = "This link leads out of the repository, and is not followed. Put a file there, or remove it."


def _is_inside(directory: Path, place: Path) -> bool:
    """Tell whether a place is in the folder when links are followed: whoever wrote a branch may have made them."""
    try:
        return place.resolve().is_relative_to(directory.resolve())
    except (OSError, RuntimeError):  # links in a circle
        return False


def _bytes_of(directory: Path, path: str) -> bytes:
    """Read a file of the repository. Raises BrokenContract when it is no file of it, or cannot be read."""
    file = directory / path
    if not _is_inside(directory, file):
        raise BrokenContract(f"{file} is a link.", findings=[Finding("file-unreadable", _LEADS_OUT)])
    try:
        return read_bytes(str(file))
    except WrongUsage as error:
        said = error.message.removeprefix(f"{file} ").removesuffix(".")
        message = f"This file {said}. Put one there that can be read, or remove it."
        raise BrokenContract(error.message, findings=[Finding("file-unreadable", message)]) from None


def _owner(directory: Path, access: Mapping[str, Any]) -> str:
    """Tell who owns the repository: as it is said, else by git's remote called origin."""
    from accord.git.program import Git

    said = access["repo"] or os.environ.get("GITHUB_REPOSITORY", "")
    if said:
        return str(said).partition("/")[0]
    asked = Git(directory).attempt("remote", "get-url", "origin")
    origin = _ORIGIN.search(asked.stdout.decode("utf-8", "replace").strip())
    return origin["owner"] if origin else ""


def _label_checks(directory: Path, access: Mapping[str, Any]) -> Iterator[CheckUp]:
    from accord.results.label_sync import parse_labels, shipped_labels

    path = next((name for name in LABEL_FILES if (directory / name).exists()), None)
    entries: Sequence[LabelEntry] = shipped_labels()
    if path is None:
        yield CheckUp("label file", "none, so the labels that accord ships count")
    else:
        try:
            entries = parse_labels(_bytes_of(directory, path))
            yield CheckUp("label file", f"{len(entries)} labels in {path}")
        except BrokenContract as broken:
            yield CheckUp("label file", path, [(path, finding) for finding in broken.findings])
            yield CheckUp("labels on GitHub", "the label file must be fixed first", is_skipped=True)
            return
    yield _labels_on_github(entries, path or LABEL_FILES[0], access)


def _labels_on_github(entries: Sequence[LabelEntry], path: str, access: Mapping[str, Any]) -> CheckUp:
    """Compare with GitHub, where there is a token; a server that does not answer is a warning, no failure."""
    from accord.results.label_sync import plan_labels

    name = "labels on GitHub"
    if access["sandbox"] is None and not os.environ.get("GITHUB_TOKEN", "").strip():
        return CheckUp(name, "there is no GITHUB_TOKEN", is_skipped=True)
    try:
        with github_for(**access) as (github, repository, *_):
            actions, _ = plan_labels(entries, github.labels(), ())
    except WrongUsage as unsaid:
        return CheckUp(name, unsaid.message, is_skipped=True)
    except AccordError as problem:
        return CheckUp(name, "GitHub did not tell", [(path, warning("labels-unknown", str(problem)))])
    found = [
        (path, warning("label-drift", f'The label "{action.name}" would be {action.action}. Run accord labels sync.'))
        for action in actions
        if action.is_change
    ]
    return CheckUp(name, repository, found)
