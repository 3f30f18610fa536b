"""Needs of workflows: settings, secrets, variables and labels of the repository, and permissions of their callers.

``accord init`` lists the former as next steps, ``accord doctor`` compares them with the repository on GitHub. GitHub
does not start a workflow if a workflow that it calls, directly or further down, asks for more than the calling job
grants; conditions of jobs do not matter for it. Source: GitHub documentation, "Reusing workflow configurations".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from accord.agents.registry import Agent
from accord.core.findings import Finding, PlacedFinding, first_of, pointer, warning
from accord.core.frozen import Frozen
from accord.core.refusals import ACTIONS_PAGE, CREATE_PULLS, LABELS_PAGE, SECRETS_PAGE, VARIABLES_PAGE, SettingsPage
from accord.workflows.expressions import secrets_in
from accord.workflows.models import LEVELS, MOST_LEVELS, Job, Workflow

if TYPE_CHECKING:
    from accord.workflows.facts import RepositoryFacts

    Permissions = Mapping[str, str]


RequirementKind = Literal["setting", "secret", "variable", "labels"]
ENVIRONMENT = "agents"
"""The environment of the kit's jobs that run agents; its secrets count for these jobs only."""

_REVISION = re.compile(r"[^@]*/reusable-apply-revision\.yml(?:@.*)?")
_REVIEW = re.compile(r"[^@]*/reusable-apply-review\.yml(?:@.*)?")
_APPLY = re.compile(r"(?:\.|\$|[\w.-]+/[\w.-]+)/actions/apply(?:@.*)?")
_OF_ACCORD = re.compile(
    r"(?:[\w.-]+/accord|\.|\$)(?:/\.github/workflows/reusable-[\w.-]+\.yml|/actions/[\w-]+)?(?:@.*)?"
)


class Requirement(Frozen):
    """Something that a repository must have on GitHub."""

    kind: RequirementKind
    names: tuple[str, ...]  # of a setting, of secrets or of variables
    why: str
    page: SettingsPage
    paths: tuple[str, ...] = ()  # workflows that need it
    needs_all: bool = False  # of several secrets; else one is enough
    unless: str = ""  # a secret that makes it unnecessary
    is_required: bool = True  # if not, work goes on with the loss that why describes

    def step(self, repository_url: str = "") -> str:
        """Return the sentence that tells a person what to do, with the address of the page if it is known."""
        place = self.page.at(repository_url)
        named = (" and " if self.needs_all else " or ").join(f"`{name}`" for name in self.names)
        match self.kind:
            case "setting":
                exception = f", or set the secret `{self.unless}`" if self.unless else ""
                return f'Turn on "{self.names[0]}" under {place}{exception}.'
            case "secret":
                return f"Add the secret {named} under {place}, or to the environment `{ENVIRONMENT}`."
            case "variable":
                return (
                    f"If `{self.unless}` is an app's token, set the variable {named} to the app's login under {place}."
                )
            case _:
                return "Run `accord labels sync`."


def required_settings(
    workflows: Mapping[str, Workflow], agents: Mapping[str, Agent], *, approves: bool = False
) -> list[Requirement]:
    """Return what workflows, by path, need on GitHub with these agents, by name; the most important first.

    ``approves``: the configuration has approvals posted as such.
    """
    found: list[Requirement] = []
    calls = opening = _calls(workflows, _opens_pulls)
    why = "Pull requests are opened with the job's own token, which GitHub refuses in a new repository."
    if not opening:
        why = "Reviews are posted with the job's own token, whose approvals are comments until the setting is on."
        calls = _calls(
            workflows, lambda job: _REVIEW.fullmatch(job.uses) and (approves or job.given.get("approvals") == "approve")
        )
    if calls:
        passed = {token_of(job) for jobs in calls.values() for job in jobs}
        unless, paths = passed.pop().upper() if len(passed) == 1 else "", tuple(calls)
        need = Requirement("setting", (CREATE_PULLS,), why, ACTIONS_PAGE, paths, unless=unless)
        found.append(replace(need, is_required=bool(opening)))
    for name, agent in agents.items():
        if paths := _readers(workflows, *agent.required_secrets):
            found.append(secrets_of(name, agent, paths))
    for secret, variable in (("ACCORD_TOKEN", "ACCORD_LOGIN"), ("ACCORD_REVIEW_TOKEN", "ACCORD_REVIEW_LOGIN")):
        if paths := _readers(workflows, secret):
            why, page = "An app cannot ask for its own login, and accord counts only its own texts.", VARIABLES_PAGE
            found.append(Requirement("variable", (variable,), why, page, paths, unless=secret, is_required=False))
    if using := _calls(workflows, lambda job: any(map(_OF_ACCORD.fullmatch, (job.uses, *(s.uses for s in job.steps))))):
        why = "Work items and loops are driven by labels, and GitHub creates missing ones in grey."
        found.append(Requirement("labels", (), why, LABELS_PAGE, tuple(using)))
    return found


def secrets_of(name: str, agent: Agent, paths: tuple[str, ...] = ()) -> Requirement:
    """Return the secrets that an agent needs, with the workflows that read one of them."""
    secrets = tuple(agent.required_secrets)
    needs_all = agent.required_secrets_mode == "all" and len(secrets) > 1
    return Requirement("secret", secrets, f"The agent `{name}` signs in with it.", SECRETS_PAGE, paths, needs_all)


def _readers(workflows: Mapping[str, Workflow], *secrets: str) -> tuple[str, ...]:
    wanted = {secret.lower() for secret in secrets}
    return tuple(path for path, workflow in workflows.items() if wanted & named_secrets(workflow))


def named_secrets(workflow: Workflow) -> set[str]:
    """Return the names of the secrets that a workflow reads, in lower case."""
    return secrets_in(workflow.model_dump(by_alias=True))


def secrets_of_callers(workflow: Workflow) -> set[str]:
    """Return the secrets that jobs pass to called workflows; those of an environment are not among them for GitHub."""
    return secrets_in([job.secrets for job in workflow.jobs.values()])


def _calls(workflows: Mapping[str, Workflow], is_meant: Callable[[Job], object]) -> dict[str, Sequence[Job]]:
    found = {path: [job for job in workflow.jobs.values() if is_meant(job)] for path, workflow in workflows.items()}
    return {path: jobs for path, jobs in found.items() if jobs}


def _opens_pulls(job: Job) -> bool:
    if _REVISION.fullmatch(job.uses):
        return True
    granted = job.permissions if isinstance(job.permissions, dict) else {}
    writes = granted.get("contents") == granted.get("pull-requests") == "write"
    return writes and any(_APPLY.fullmatch(step.uses) for step in job.steps)


def token_of(job: Job) -> str:
    """Return the secret that a job passes as its token instead of its own; empty without one."""
    given: list[object] = [job.secrets.get("token")] if isinstance(job.secrets, dict) else []
    given += [step.given.get("token") for step in job.steps if _APPLY.fullmatch(step.uses)]
    return next((name for each in given for name in sorted(secrets_in(each))), "")


NEEDED_FILE = "needed-permissions.json"
"""The generated file beside this module: permissions that accord's own reusable workflows need, by their file names."""

SCOPES = (
    "actions", "artifact-metadata", "attestations", "checks", "contents", "deployments", "discussions", "id-token",
    "issues", "models", "packages", "pages", "pull-requests", "security-events", "statuses",
)  # fmt: skip
"""The permissions that ``read-all`` and ``write-all`` stand for."""

_DEFAULT = {"contents": "read", "packages": "read"}
"""The permissions of jobs that declare none, in a new repository."""

_CALL_OF_ACCORD = re.compile(r"[\w.-]+/accord/\.github/workflows/(reusable-[\w.-]+\.yml)@.+")


def check_grants(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find jobs that grant less than the workflow that they call needs."""
    for path, workflow in facts.workflows.items():
        unsure = list[Finding]()
        for job_id, job in workflow.jobs.items():
            needed, declared = needed_by_call(job, facts.workflows), workflow.permissions_of(job)
            if declared is None and workflow.events == ("workflow_call",):
                continue  # it gets what its callers grant, and they are checked
            granted = levels_of(_DEFAULT if declared is None else declared)
            missing = {scope: level for scope, level in needed.items() if not is_granted(granted, scope, level)}
            if not missing:
                continue
            lines = ", ".join(f"`{scope}: {level}`" for scope, level in missing.items())
            says = f"`{job.uses.partition('@')[0]}` needs {lines}, which the job `{job_id}` does not grant"
            kept = job.permissions if isinstance(job.permissions, dict) else {}
            wanted = [f"  {scope}: {level}" for scope, level in highest_levels(kept, needed).items()]
            place = pointer("jobs", job_id, *(() if job.permissions is None else ("permissions",)))
            hint = "\n".join(["permissions:", *wanted])
            if declared is None:  # so it gets the repository's default, which no file tells
                says += ". The job declares no permissions, and the default of a new repository is read-only."
                unsure.append(warning("permission-missing", says, place, hint=hint))
            else:
                says += ", so GitHub does not start this workflow."
                yield path, Finding("permission-missing", says, place, hint=hint)
        yield from ((path, finding) for finding in first_of(unsure, "jobs"))


def needed_by_call(job: Job, workflows: Mapping[str, Workflow], seen: frozenset[str] = frozenset()) -> Permissions:
    """Return what the workflow that a job calls needs: one of these, by path, or of accord; empty if unknown."""
    if job.uses.startswith(("./", "$/")):
        return needed_permissions(job.uses[2:], workflows, seen)
    own = _CALL_OF_ACCORD.fullmatch(job.uses)
    return _shipped_permissions().get(own[1], {}) if own else {}


def needed_permissions(path: str, workflows: Mapping[str, Workflow], seen: frozenset[str] = frozenset()) -> Permissions:
    """Return the highest level of each permission that a workflow and its jobs ask for, sorted by name.

    A job without permissions takes what it is given, but what it calls may ask for some. ``seen`` are paths on the way
    to this one, so that a circle of calls ends.
    """
    workflow = workflows.get(path)
    if workflow is None or path in seen or len(seen) == MOST_LEVELS:
        return {}
    asked = [levels_of(workflow.permissions or {})]
    for job in workflow.jobs.values():
        if job.permissions is not None:
            asked.append(levels_of(job.permissions))
        elif workflow.permissions is None:
            asked.append(needed_by_call(job, workflows, seen | {path}))
    return highest_levels(*asked)


@cache
def _shipped_permissions() -> Mapping[str, Permissions]:
    found: Mapping[str, Permissions] = json.loads((Path(__file__).parent / NEEDED_FILE).read_bytes())
    return found


def levels_of(permissions: Permissions | str) -> Permissions:
    """Return permissions by scope, also those of ``read-all`` and ``write-all``."""
    if isinstance(permissions, str):
        return dict.fromkeys(SCOPES, permissions.removesuffix("-all"))
    return permissions


def is_granted(granted: Permissions, scope: str, level: str) -> bool:
    """Return whether permissions include a level of a scope."""
    return LEVELS.get(granted.get(scope, "none"), 0) >= LEVELS.get(level, 0)


def highest_levels(*each: Permissions) -> dict[str, str]:
    """Return the highest level of each scope, sorted by name."""
    found: dict[str, str] = {}
    for permissions in each:
        found |= {scope: level for scope, level in permissions.items() if not is_granted(found, scope, level)}
    return dict(sorted(found.items()))
