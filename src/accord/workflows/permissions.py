"""Permissions that called workflows need, and whether the jobs that call them grant these.

Source: GitHub documentation, "Reusing workflow configurations". GitHub does not start a workflow if a workflow that it
calls, directly or further down, asks for more than the calling job grants. Conditions of jobs do not matter for it.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.findings import Finding, Severity, pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.core.findings import PlacedFinding
    from accord.workflows.facts import RepositoryFacts
    from accord.workflows.models import Job, Workflow

    Permissions = Mapping[str, str]

LEVELS = {"none": 0, "read": 1, "write": 2}
NEEDED_FILE = "needed-permissions.json"
"""The generated file beside this module: permissions that accord's own reusable workflows need, by their file names."""

_ALL = (
    "actions", "artifact-metadata", "attestations", "checks", "contents", "deployments", "discussions", "issues",
    "models", "packages", "pages", "pull-requests", "security-events", "statuses",
)  # fmt: skip
"""The permissions that ``read-all`` and ``write-all`` stand for."""

_DEFAULT = {"contents": "read", "packages": "read"}
"""The permissions of jobs that declare none, in a new repository."""

_OF_ACCORD = re.compile(r"[\w.-]+/accord/\.github/workflows/(reusable-[\w.-]+\.yml)@.+")


def check_grants(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find jobs that grant less than the workflow that they call needs."""
    for path, workflow in facts.workflows.items():
        unsure = []
        for job_id, job in workflow.jobs.items():
            needed = needed_by_call(job, facts.workflows)
            declared = workflow.permissions if job.permissions is None else job.permissions
            if declared is None and _is_only_called(workflow):
                continue  # it gets what its callers grant, and they are checked
            granted = _by_scope(_DEFAULT if declared is None else declared)
            missing = {scope: level for scope, level in needed.items() if not _is_granted(granted, scope, level)}
            if missing and declared is None:
                unsure.append(_grant_finding(job_id, job, needed, missing, is_sure=False))
            elif missing:
                yield path, _grant_finding(job_id, job, needed, missing, is_sure=True)
        if unsure:
            more = f" The same is true of {len(unsure) - 1} more of its jobs." if unsure[1:] else ""
            yield path, replace(unsure[0], message=unsure[0].message + more)


def needed_by_call(job: Job, workflows: Mapping[str, Workflow], seen: frozenset[str] = frozenset()) -> Permissions:
    """Return what the workflow that a job calls needs: one of these, by path, or of accord; empty if unknown."""
    if job.uses.startswith(("./", "$/")):
        return needed_permissions(job.uses[2:], workflows, seen)
    own = _OF_ACCORD.fullmatch(job.uses)
    return _shipped().get(own[1], {}) if own else {}


def needed_permissions(path: str, workflows: Mapping[str, Workflow], seen: frozenset[str] = frozenset()) -> Permissions:
    """Return the highest level of each permission that a workflow and its jobs ask for, sorted by name.

    A job without permissions takes what it is given, but what it calls may ask for some. ``seen`` are paths on the way
    to this one, so that a circle of calls ends.
    """
    workflow = workflows.get(path)
    if workflow is None or path in seen:
        return {}
    asked = [_by_scope(workflow.permissions or {})]
    for job in workflow.jobs.values():
        if job.permissions is not None:
            asked.append(_by_scope(job.permissions))
        elif workflow.permissions is None:
            asked.append(needed_by_call(job, workflows, seen | {path}))
    return _highest(*asked)


@cache
def _shipped() -> Mapping[str, Permissions]:
    found: Mapping[str, Permissions] = json.loads((Path(__file__).parent / NEEDED_FILE).read_bytes())
    return found


def _is_only_called(workflow: Workflow) -> bool:
    other = workflow.on.workflow_dispatch is not None or workflow.on.model_extra
    return workflow.on.workflow_call is not None and not other


def _by_scope(permissions: Permissions | str) -> Permissions:
    if isinstance(permissions, str):
        return dict.fromkeys(_ALL, permissions.removesuffix("-all"))
    return permissions


def _is_granted(granted: Permissions, scope: str, level: str) -> bool:
    return LEVELS.get(granted.get(scope, "none"), 0) >= LEVELS.get(level, 0)


def _highest(*each: Permissions) -> dict[str, str]:
    found: dict[str, str] = {}
    for permissions in each:
        found |= {scope: level for scope, level in permissions.items() if not _is_granted(found, scope, level)}
    return dict(sorted(found.items()))


def _grant_finding(job_id: str, job: Job, needed: Permissions, missing: Permissions, *, is_sure: bool) -> Finding:
    """Make the finding; a warning if the job gets the repository's default permissions, which no file tells."""
    lines = ", ".join(f"`{scope}: {level}`" for scope, level in missing.items())
    message = f"`{job.uses.partition('@')[0]}` needs {lines}, which the job `{job_id}` does not grant"
    if is_sure:
        message += ", so GitHub does not start this workflow."
    else:
        message += ". The job declares no permissions, and the default of a new repository is read-only."
    place = pointer("jobs", job_id, *(() if job.permissions is None else ("permissions",)))
    kept = job.permissions if isinstance(job.permissions, dict) else {}
    wanted = [f"  {scope}: {level}" for scope, level in _highest(kept, needed).items()]
    severity = Severity.ERROR if is_sure else Severity.WARNING
    return Finding("permission-missing", message, place, severity, hint="\n".join(["permissions:", *wanted]))
