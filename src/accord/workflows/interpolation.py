"""Text that becomes code: expressions inside a script, whose values others may choose.

GitHub puts the value of ``${{ … }}`` into a script before the shell reads it, so a title of ``$(…)`` runs. Values reach
a script safely as variables only. Source: GitHub documentation, "Script injections".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, pointer, warning
from accord.workflows.expressions import Reference, embedded, parse
from accord.workflows.wiring import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.workflows.files import Job, Step, Workflow


_OWN = frozenset({"runner", "job", "strategy", "vars", "secrets"})
"""Contexts that the runner or the repository's maintainers fill."""

# fmt: off
_OWN_GITHUB = frozenset(
    {
        "action", "action_path", "action_repository", "action_status", "actor", "actor_id", "api_url",
        "event_name", "event_path", "graphql_url", "job", "job_workflow_sha", "path", "ref_protected",
        "ref_type", "repository", "repository_id", "repository_owner", "repository_owner_id", "repositoryurl",
        "retention_days", "run_attempt", "run_id", "run_number", "secret_source", "server_url", "sha", "token",
        "triggering_actor", "workflow", "workflow_ref", "workflow_sha", "workspace",
    }
)
# fmt: on
"""Properties of ``github`` that nobody outside can shape; names of branches, and whatever an event tells, are not."""

_NUMBERS = frozenset({"id", "number", "sha"})
_FREE = (("github", "event", "inputs"), ("github", "event", "client_payload"))
_GITHUB_SCRIPT = "actions/github-script"
_SCRIPTS = frozenset({"script", "command", "commands", "cmd", "run"})
"""Inputs of actions that mostly are scripts."""

_CHECKED = frozenset({"boolean", "number"})
"""Types of inputs that GitHub checks: no text gets through."""


@dataclass(frozen=True)
class _Place:
    """A script: its text, its pointer, and how a variable is read there."""

    text: str
    path: str
    read: str
    is_surely_code: bool = True


def interpolation_findings(workflow: Workflow) -> list[Finding]:
    """Find expressions in scripts through which somebody else's text could become code."""
    return [
        finding
        for job_id, job in workflow.jobs.items()
        for i, step in enumerate(job.steps)
        for place in _scripts(step, pointer("jobs", job_id, "steps", i))
        for finding in _findings(place, _Scope(workflow, job, step))
    ]


def _scripts(step: Step, path: str) -> Iterator[_Place]:
    if step.run:
        yield _Place(step.run, path + "/run", '"${}"')
    if step.shell:
        yield _Place(step.shell, path + "/shell", '"${}"')
    action = step.uses.partition("@")[0].lower()
    for name, value in step.given.items():
        where = path + pointer("with", name)
        if action == _GITHUB_SCRIPT and name == "script":
            yield _Place(str(value), where, "process.env.{}")
        elif action.startswith("docker:") and name in {"args", "entrypoint"}:
            yield _Place(str(value), where, '"${}"')
        elif name.lower() in _SCRIPTS and not action.startswith(("./", "$/")):
            yield _Place(str(value), where, '"${}"', is_surely_code=False)


@dataclass(frozen=True)
class _Scope:
    """What an expression in a step can see of its workflow."""

    workflow: Workflow
    job: Job
    step: Step

    def is_chosen_by_others(self, ref: Reference) -> bool:
        """Tell whether somebody other than the workflow's maintainers can choose what a reference stands for."""
        match ref:
            case ("inputs", name):
                return not self._is_checked(name)
            case ("env", name):
                return self._is_foreign_variable(name)
            case ("matrix", *_):
                return "${{" in str(self.job.strategy)
            case ("github", name):
                return name not in _OWN_GITHUB
            case ("github", "event", *_, last):
                return last not in _NUMBERS or ref[:3] in _FREE
            case ("steps", _, "outcome" | "conclusion") | ("needs", _, "result"):
                return False
        return ref[0] not in _OWN

    def _is_checked(self, name: str) -> bool:
        triggers = (self.workflow.on.workflow_call, self.workflow.on.workflow_dispatch)
        named = [
            given.type
            for trigger in triggers
            if trigger
            for key, given in trigger.inputs.items()
            if key.lower() == name
        ]
        return bool(named) and all(kind in _CHECKED for kind in named)

    def _is_foreign_variable(self, name: str) -> bool:
        """Tell whether a variable holds others' text; one that the file does not set comes from an earlier step."""
        for env in (self.step.env, self.job.env, self.workflow.env):
            value = _named(env, name)
            if value is not None:
                return any(self.is_chosen_by_others(ref) for found in embedded(value) for ref in _yields(found))
        return True


def _named(env: Mapping[str, Any] | str, name: str) -> str | None:
    if isinstance(env, str):
        return None
    return next((str(value) for key, value in env.items() if key.lower() == name), None)


def _yields(expression: str) -> list[Reference]:
    parsed = parse(expression)
    return sorted(parsed.yields) if parsed else [("an expression that cannot be read",)]


def _findings(place: _Place, scope: _Scope) -> Iterator[Finding]:
    """Report each expression of a script once, with the variable to use in its stead."""
    for expression in dict.fromkeys(embedded(place.text)):
        foreign = [ref for ref in _yields(expression) if scope.is_chosen_by_others(ref)]
        if not foreign:
            continue
        variable = _variable(foreign[0])
        hint = f"env:\n  {variable}: ${{{{ {expression} }}}}\n# and in the script: {place.read.format(variable)}"
        message = (
            f"{written(foreign[0])} is put into the script as it is, so whoever chooses its text chooses what runs. "
            "Hand it over as a variable."
        )
        if place.is_surely_code:
            yield Finding("unsafe-interpolation", message, place.path, hint=hint)
        else:
            yield warning("unsafe-interpolation", message, place.path, hint=hint)


def _variable(ref: Reference) -> str:
    """Name a variable after a reference, in two words, so that none is called PATH."""
    words = [part for part in ref if part not in {"*", "outputs"}]
    return re.sub(r"\W", "_", "_".join(words[-2:])).upper()


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z", re.IGNORECASE)
_LOCAL = ("./", "../", "$/")
"""``$/`` is the repository of the workflow itself at its own commit (GitHub, 2026-07)."""


def uses_of(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointer and the value of every ``uses``."""
    for job_id, job in workflow.jobs.items():
        if job.uses:
            yield pointer("jobs", job_id, "uses"), job.uses
        for i, step in enumerate(job.steps):
            if step.uses:
                yield pointer("jobs", job_id, "steps", i, "uses"), step.uses


def pin_findings(workflow: Workflow) -> list[Finding]:
    """Find what is used by a name that its owner can move to other code."""
    return [
        Finding(
            "unpinned-action",
            f'"{uses}" is not pinned: its owner, or whoever takes over the account, can change what runs here. '
            f"Name {_wanted(uses)}.",
            path,
            hint=_hint(uses),
        )
        for path, uses in uses_of(workflow)
        if not is_pinned(uses)
    ]


def is_pinned(uses: str) -> bool:
    """Tell whether ``uses`` names code that cannot change: of this repository, of one commit, of one image."""
    if uses.startswith(_LOCAL) or uses == ".":
        return True
    if uses.startswith("docker://"):
        return _DIGEST.search(uses) is not None
    return _COMMIT.fullmatch(uses.rpartition("@")[2]) is not None and "@" in uses


def _wanted(uses: str) -> str:
    return "the digest of the image" if uses.startswith("docker://") else "the commit by its 40 digits"


def _hint(uses: str) -> str:
    if uses.startswith("docker://"):
        return f"uses: {uses.partition('@')[0]}@sha256:<digest>"
    name, _, ref = uses.partition("@")
    return f"uses: {name}@<40 digits of the commit of {ref or 'a release'}> # {ref or 'vX.Y.Z'}"
