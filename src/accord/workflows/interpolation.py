"""Untrusted text in scripts, and actions that are not pinned to a commit.

GitHub inserts the value of ``${{ … }}`` into a script before the shell reads it, so a title of ``$(…)`` runs. Source:
GitHub documentation, "Script injections".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.workflows.expressions import Reference, embedded, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.workflows.models import Job, Step, Workflow

_OWN = frozenset({"runner", "job", "strategy", "vars", "secrets"})
"""Contexts that the runner or the repository's maintainers fill."""

_SAFE_PROPERTIES = (
    "action action_path action_repository action_status actor actor_id api_url event_name event_path graphql_url "
    "job job_workflow_sha path ref_protected ref_type repository repository_id repository_owner "
    "repository_owner_id repositoryurl retention_days run_attempt run_id run_number secret_source server_url sha "
    "token triggering_actor workflow workflow_ref workflow_sha workspace"
)
_OWN_GITHUB = frozenset(_SAFE_PROPERTIES.split())
"""Properties of ``github`` that outsiders cannot shape. They can shape names of branches and parts of an event."""

_NUMBERS = frozenset({"id", "number", "sha"})
_FREE = (("github", "event", "inputs"), ("github", "event", "client_payload"))
_GITHUB_SCRIPT = "actions/github-script"
_SCRIPTS = frozenset({"script", "command", "commands", "cmd", "run"})
"""Inputs of actions that usually are scripts."""

_CHECKED = frozenset({"boolean", "number"})
"""Types of inputs that GitHub checks, so they cannot hold text."""


@dataclass(frozen=True)
class _Script:
    """A script with its pointer and the way to read a variable in it."""

    text: str
    path: str
    read: str
    is_surely_code: bool = True


def interpolation_findings(workflow: Workflow) -> list[Finding]:
    """Find expressions in scripts that insert untrusted text."""
    return [
        finding
        for job_id, job in workflow.jobs.items()
        for i, step in enumerate(job.steps)
        for script in _scripts(step, pointer("jobs", job_id, "steps", i))
        for finding in _findings(script, _Scope(workflow, job, step))
    ]


def _scripts(step: Step, path: str) -> Iterator[_Script]:
    for key, text in (("run", step.run), ("shell", step.shell)):
        if text:
            yield _Script(text, f"{path}/{key}", '"${}"')
    action = step.uses.partition("@")[0].lower()
    for name, value in step.given.items():
        where = path + pointer("with", name)
        if action == _GITHUB_SCRIPT and name == "script":
            yield _Script(str(value), where, "process.env.{}")
        elif action.startswith("docker:") and name in {"args", "entrypoint"}:
            yield _Script(str(value), where, '"${}"')
        elif name.lower() in _SCRIPTS and not action.startswith(("./", "$/")):
            yield _Script(str(value), where, '"${}"', is_surely_code=False)


@dataclass(frozen=True)
class _Scope:
    """The contexts around an expression in a step."""

    workflow: Workflow
    job: Job
    step: Step

    def is_untrusted(self, ref: Reference) -> bool:
        """Return whether people other than the maintainers can choose the value of a reference."""
        match ref:
            case ("inputs", name):
                return not self._is_checked(name)
            case ("env", name):
                return self._is_untrusted_variable(name)
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
        inputs = [item for trigger in triggers if trigger for item in trigger.inputs.items()]
        types = {given.type for key, given in inputs if key.lower() == name}
        return bool(types) and types <= _CHECKED

    def _is_untrusted_variable(self, name: str) -> bool:
        """Return whether a variable may hold untrusted text. Unknown ones come from a step."""
        for env in (self.step.env, self.job.env, self.workflow.env):
            for key, value in env.items() if isinstance(env, dict) else ():
                if key.lower() == name:
                    return any(self.is_untrusted(ref) for found in embedded(str(value)) for ref in _yields(found))
        return True


def _yields(expression: str) -> list[Reference]:
    parsed = parse(expression)
    return sorted(parsed.yields) if parsed else [("an unreadable expression",)]


def _findings(script: _Script, scope: _Scope) -> Iterator[Finding]:
    """Report each untrusted expression of a script once, with the variable to use instead."""
    for expression in dict.fromkeys(embedded(script.text)):
        untrusted = [ref for ref in _yields(expression) if scope.is_untrusted(ref)]
        if not untrusted:
            continue
        variable = _variable(untrusted[0])
        hint = f"env:\n  {variable}: ${{{{ {expression} }}}}\n# and in the script: {script.read.format(variable)}"
        message = f"`{'.'.join(untrusted[0])}` is inserted into the script, so its text can run. Pass it as a variable."
        error = Finding("unsafe-interpolation", message, script.path, hint=hint)
        yield error if script.is_surely_code else warning("unsafe-interpolation", message, script.path, hint=hint)


def _variable(ref: Reference) -> str:
    """Return a variable's name of two words, so that it is never PATH."""
    words = [part for part in ref if part not in {"*", "outputs"}]
    return re.sub(r"\W", "_", "_".join(words[-2:])).upper()


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z", re.IGNORECASE)
_LOCAL = ("./", "../", "$/")
"""``$/`` is the workflow's own repository at its own commit (GitHub, 2026-07)."""


def uses_of(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointer and the value of every ``uses``."""
    for job_id, job in workflow.jobs.items():
        if job.uses:
            yield pointer("jobs", job_id, "uses"), job.uses
        for i, step in enumerate(job.steps):
            if step.uses:
                yield pointer("jobs", job_id, "steps", i, "uses"), step.uses


def pin_findings(workflow: Workflow) -> Iterator[Finding]:
    """Find actions, workflows and images that are not pinned."""
    for path, uses in uses_of(workflow):
        name, _, ref = uses.partition("@")
        what, hint = "the commit by its 40 digits", f"<40 digits of the commit of {ref or 'a release'}>"
        hint = f"uses: {name}@{hint} # {ref or 'vX.Y.Z'}"
        if uses.startswith("docker://"):
            what, hint = "the image by its digest", f"uses: {name}@sha256:<digest>"
        if not is_pinned(uses):
            message = f"`{uses}` is not pinned, so its owner can change what runs here. Pin {what}."
            yield Finding("unpinned-action", message, path, hint=hint)


def is_pinned(uses: str) -> bool:
    """Return whether ``uses`` names code that cannot change: local, at a commit, or an image by digest."""
    if uses.startswith(_LOCAL) or uses == ".":
        return True
    if uses.startswith("docker://"):
        return _DIGEST.search(uses) is not None
    return _COMMIT.fullmatch(uses.rpartition("@")[2]) is not None and "@" in uses
