"""Checks of workflows that run agents: permissions, secrets, names and the runner contract.

General checks of workflow security, such as permissions, triggers and pins, are zizmor's. Source of the rule that an
agent's job only reads: docs/threat-model.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.core.findings import DoctorCheck, Finding, pointer, warning, with_lines
from accord.workflows.agent_commands import starts_agent
from accord.workflows.expressions import all_reads
from accord.workflows.facts import WORKFLOWS, read_repository
from accord.workflows.permissions import check_grants
from accord.workflows.rules import runner_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from accord.core.findings import PlacedFinding
    from accord.workflows.facts import RepositoryFacts
    from accord.workflows.models import Job, Step


def examine_workflows(root: Path, owner: str = "") -> list[DoctorCheck]:
    """Read the workflows and the registry of a repository, and run every check on them."""
    facts, read = read_repository(root, owner)
    checks = [
        DoctorCheck("registry", read.registry_note, read.registry_findings),
        DoctorCheck("workflows", f"{len(facts.workflows)} files", read.unreadable),
    ]
    for name, check in CHECKS.items():
        placed = [(path, with_lines([finding], read.lines.get(path, {}))[0]) for path, finding in check(facts)]
        checks.append(DoctorCheck(name, findings=placed))
    return checks


_AGENT_ACTIONS = re.compile(
    r"\A(?:openai/codex-action|anthropics/claude-code(?:-base)?-action|google-github-actions/run-gemini-cli"
    r"|(?:\.|\$|[\w.-]+/[\w.-]+)/actions/run-agent)",
    re.IGNORECASE,
)
_HARMLESS_SCOPES = frozenset({"id-token", "models"})
"""Permissions that write nothing into the repository: a proof of identity, and the use of models."""

_BLOCKED_EVENT = "pull_request_target"


def runs_agent(step: Step, programs: frozenset[str]) -> bool:
    """Return whether a step starts an agent, by its action or by the commands of its script."""
    if step.uses:
        if str(step.given.get("skip")).lower() == "true":
            return False
        return _AGENT_ACTIONS.fullmatch(step.uses.partition("@")[0]) is not None
    return starts_agent(step.run, programs)


def check_agents(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find jobs that run an agent with a token that may write."""
    for path, workflow in facts.workflows.items():
        for job_id, job in workflow.jobs.items():
            granted = workflow.permissions if job.permissions is None else job.permissions
            if not any(runs_agent(step, facts.programs) for step in job.steps):
                continue
            scopes = ["everything"] if granted == "write-all" else []
            if isinstance(granted, dict):
                scopes = [s for s, level in granted.items() if level == "write" and s not in _HARMLESS_SCOPES]
            if scopes:
                message = (
                    f"The job `{job_id}` runs an agent with a token that may write {', '.join(scopes)}. Let the agent "
                    "leave a patch and publish it in a second job."
                )
                place = pointer("jobs", job_id, *(() if job.permissions is None else ("permissions",)))
                yield path, Finding("agent-may-write", message, place, hint="permissions:\n  contents: read")


def check_secrets(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find required secrets that callers do not pass, and secrets of agents that no workflow names."""
    for path, workflow in facts.workflows.items():
        for job_id, job in workflow.jobs.items():
            if job.uses:
                yield from ((path, finding) for finding in _call_findings(facts, job_id, job))
    references = (ref for workflow in facts.workflows.values() for ref in all_reads(workflow.model_dump(by_alias=True)))
    named = {ref[1] for ref in references if ref[0] == "secrets" and ref[1:]}
    jobs = [job for workflow in facts.workflows.values() for job in workflow.jobs.values()]
    named |= {name.lower() for job in jobs if isinstance(job.secrets, dict) for name in job.secrets}
    for name, agent in facts.agents.items():
        missing = [secret for secret in agent.required_secrets if secret.lower() not in named]
        needs_all = agent.required_secrets_mode == "all"
        if missing and (needs_all or len(missing) == len(agent.required_secrets)):
            wanted = (" and " if needs_all else " or ").join(missing)
            message = (
                f"The agent `{name}` needs {wanted}, but no workflow passes it. Pass it to the workflow that runs the "
                "agent, or disable the agent in the registry."
            )
            hint = f"secrets:\n  {missing[0]}: ${{{{ secrets.{missing[0]} }}}}"
            yield facts.registry, warning("secret-unnamed", message, pointer("agents", name), hint=hint)


def _call_findings(facts: RepositoryFacts, job_id: str, job: Job) -> Iterator[Finding]:
    place = pointer("jobs", job_id, "secrets")
    owner = job.uses.partition("/")[0]
    is_local = owner in {".", "$"}
    if job.secrets == "inherit":
        if not is_local and owner.lower() != facts.owner.lower():
            message = (
                "`secrets: inherit` passes secrets within one organisation only. "
                f"`{job.uses.partition('@')[0]}` belongs to {owner}. Pass each secret by name."
            )
            hint = "secrets:\n  NAME: ${{ secrets.NAME }}"
            error = Finding("secrets-inherit", message, place, hint=hint)
            yield error if facts.owner else warning("secrets-inherit", message, place, hint=hint)
        return
    target = facts.workflows.get(f"{WORKFLOWS}/{job.uses.rpartition('/')[2]}") if is_local else None
    wanted = target.on.workflow_call.secrets if target and target.on.workflow_call else {}
    given = {name.lower() for name in job.secrets} if isinstance(job.secrets, dict) else set()
    for name, secret in wanted.items():
        if secret.required and name.lower() not in given:
            message = f"`{job.uses}` requires the secret {name}, which is not passed. Pass it."
            yield Finding("secret-missing", message, place, hint=f"secrets:\n  {name}: ${{{{ secrets.{name} }}}}")


def check_names(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find workflows whose names do not identify them: people and ``workflow_run`` refer to workflows by name."""
    first: dict[str, str] = {}
    for path, workflow in facts.workflows.items():
        if not workflow.name:
            message = "The workflow has no name, so GitHub lists it by its path. Name it."
            yield path, warning("workflow-unnamed", message, hint="name: Plan work items")
        elif workflow.name in first:
            message = f"The name `{workflow.name}` is also used by {first[workflow.name]}."
            hint = "Give each workflow its own."
            yield path, warning("workflow-name-repeated", message, "/name", hint=hint)
        first.setdefault(workflow.name, path)
    for path, workflow in facts.workflows.items():
        trigger = (workflow.on.model_extra or {}).get("workflow_run") or {}
        names = trigger.get("workflows") if isinstance(trigger, dict) else None
        for i, name in enumerate([names] if isinstance(names, str) else names or ()):
            if str(name) not in first:
                message = f"No workflow has the name `{name}`, so this workflow never starts."
                hint = "Correct the name."
                yield (
                    path,
                    Finding("workflow-unknown", message, pointer("on", "workflow_run", "workflows", i), hint=hint),
                )


def check_runners(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Check workflows that take a prompt file against the runner contract, except loops, which start themselves."""
    called = {f"{root}/{path}": workflow for path, workflow in facts.workflows.items() for root in (".", "$")}
    for path, workflow in facts.workflows.items():
        call = workflow.on.workflow_call
        if call and "prompt_file" in call.inputs and "dispatch_workflow" not in call.inputs:
            yield from ((path, finding) for finding in runner_findings(workflow, called))


def check_events(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find triggers that GitHub blocks by default. Source: GitHub changelog, "Workflow execution protections"."""
    for path, workflow in facts.workflows.items():
        if _BLOCKED_EVENT in (workflow.on.model_extra or {}):
            message = (
                f"GitHub blocks `{_BLOCKED_EVENT}` in public repositories by default since 2026-11-02. This workflow "
                f"fails with `Event '{_BLOCKED_EVENT}' is not allowed to trigger Actions workflows`."
            )
            hint = "Trigger it with `pull_request`, or allow the event in the Actions policies of the repository."
            yield path, warning("event-blocked", message, pointer("on", _BLOCKED_EVENT), hint=hint)


CHECKS: Mapping[str, Callable[[RepositoryFacts], Iterator[PlacedFinding]]] = {
    "agent jobs": check_agents, "call permissions": check_grants, "secrets": check_secrets, "events": check_events,
    "names": check_names, "runners": check_runners,
}  # fmt: skip
"""The checks of workflows by the name in the report."""
