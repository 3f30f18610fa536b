"""Checks of workflows that run agents: permissions, secrets, names and the runner contract.

General checks of workflow security, such as permissions, pins and scripts, are zizmor's. Source of the rule that an
agent's job only reads: docs/threat-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from accord.core.findings import DoctorCheck, Finding, PlacedFinding, Severity, first_of, pointer, warning
from accord.workflows.agents import agent_steps
from accord.workflows.facts import REGISTRY, WORKFLOWS, RepositoryFacts, RepositoryFiles
from accord.workflows.models import Job
from accord.workflows.requirements import check_grants, named_secrets
from accord.workflows.rules import contract_findings, is_runner
from accord.workflows.tokens import check_agents, check_outsiders, check_unknown_actions
from accord.workflows.untrusted import check_checkouts, script_findings
from accord.workflows.zizmor import INJECTION, MISSING, AuditReport, audit_files, audit_findings, find_zizmor

ZIZMOR = "zizmor"
"""The check that shows zizmor's findings; skipped where zizmor is missing or fails."""


def examine_workflows(
    root: Path, facts: RepositoryFacts, read: RepositoryFiles, is_private: bool | None = None
) -> list[DoctorCheck]:
    """Run every check on the workflows and the registry of a repository."""
    program = find_zizmor()
    paths = facts.workflows.keys() | facts.actions
    report = audit_files(program, root, paths) if program else AuditReport(failure=MISSING)
    flagged = {
        path: {each.finding.path for each in report.audits if (each.name, each.path) == (INJECTION, path)}
        for path in report.read
    }
    facts = replace(facts, is_private=is_private, flagged=flagged)
    checks = [
        DoctorCheck("registry", read.registry_note, read.registry_findings),
        DoctorCheck("workflows", f"{len(facts.workflows)} files", read.unreadable),
    ]
    counts = _checked_counts(facts)
    for name, check in CHECKS.items():
        count, what = counts.get(name, (len(facts.workflows), "workflows"))
        note = f"{count} {what}" if count else f"no {what}"
        checks.append(DoctorCheck(name, note, read.with_lines(check(facts)), is_skipped=not count))
    if report.failure or not facts.workflows:
        return [*checks, DoctorCheck(ZIZMOR, report.failure if facts.workflows else "no workflows", is_skipped=True)]
    known = {(path, finding.path, finding.code) for check in checks for path, finding in check.findings}
    audits = [each for each in report.audits if (each.path, each.finding.path, each.finding.code) not in known]
    found = read.with_lines(audit_findings(replace(report, audits=audits), facts.workflows, facts.actions))
    return [*checks, DoctorCheck(ZIZMOR, f"{len(report.read)} workflows and actions", found)]


def _checked_counts(facts: RepositoryFacts) -> Mapping[str, tuple[int, str]]:
    """Return how many things a check looks at, and their name, for those that do not look at all workflows."""
    jobs = [(workflow, job) for workflow in facts.workflows.values() for job in workflow.jobs.values()]
    calls = sum(bool(job.uses) for _, job in jobs)
    with_agents = sum(any(agent_steps(workflow, job, facts.known)) for workflow, job in jobs), "jobs with agents"
    scripts = {path for _, job in jobs for step in job.nested_steps() for path in step.scripts}
    return {
        "agent jobs": with_agents,
        "caches": with_agents,
        "call permissions": (calls, "calls of workflows"),
        "secrets": (calls + len(facts.agents), "calls of workflows and agents of the registry"),
        "called files": (len(facts.actions) + len(scripts), "actions and scripts"),
        "runners": (sum(map(is_runner, facts.workflows.values())), "runner workflows"),
    }


_BLOCKED_EVENT = "pull_request_target"


def check_secrets(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find required secrets that callers do not pass, and secrets of agents that no workflow names."""
    for path, workflow in facts.workflows.items():
        for job_id, job in workflow.jobs.items():
            if job.uses:
                yield from ((path, finding) for finding in _call_findings(facts, job_id, job))
    named = set[str]().union(*map(named_secrets, facts.workflows.values()))
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
            yield REGISTRY, warning("secret-unnamed", message, pointer("agents", name), hint=hint)


def _call_findings(facts: RepositoryFacts, job_id: str, job: Job) -> Iterator[Finding]:
    place = pointer("jobs", job_id, "secrets")
    owner = job.uses.partition("/")[0]
    is_local = owner in {".", "$"}
    if job.secrets == "inherit":
        if facts.owner and not is_local and owner.lower() != facts.owner.lower():
            message = (
                "`secrets: inherit` passes secrets within one organisation or enterprise only. "
                f"`{job.uses.partition('@')[0]}` belongs to {owner}. Pass each secret by name."
            )
            yield Finding("secrets-inherit", message, place, hint="secrets:\n  NAME: ${{ secrets.NAME }}")
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
        listed = workflow.filter_values("workflow_run", "workflows")
        known = {*first, *(other for other, each in facts.workflows.items() if not each.name)}
        unknown = [name for name in listed if name not in known]
        never = workflow.events == ("workflow_run",) and unknown == listed
        for name in unknown:
            effect = "this workflow never starts" if never else "its runs do not start this one"
            message = f"No workflow has the name `{name}`, so {effect}."
            is_list = isinstance(workflow.filters("workflow_run")["workflows"], list)
            place = pointer("on", "workflow_run", "workflows", *([listed.index(name)] if is_list else []))
            severity = Severity.ERROR if never else Severity.WARNING
            yield path, Finding("workflow-unknown", message, place, severity, hint="Correct the name.")


def check_runners(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Check agent runners against the runner contract."""
    called = {f"{root}/{path}": workflow for path, workflow in facts.workflows.items() for root in (".", "$")}
    for path, workflow in facts.workflows.items():
        if is_runner(workflow):
            yield from ((path, finding) for finding in contract_findings(workflow, called))


def check_scripts(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find text of outsiders in scripts, and, with one warning for each file, text of writers."""
    worst: dict[tuple[str, str, str], Finding] = {}
    for path in facts.workflows:
        for file, finding in script_findings(path, facts.workflows, facts.flagged):
            key = (file, finding.path, finding.hint)
            worst[key] = min(worst.get(key, finding), finding, key=lambda each: each.severity)
    for file in dict.fromkeys(file for file, _, _ in worst):
        found = [finding for (where, _, _), finding in worst.items() if where == file]
        yield from ((file, finding) for finding in found if finding.severity is Severity.ERROR)
        mild = [finding for finding in found if finding.severity is Severity.WARNING]
        yield from ((file, finding) for finding in first_of(mild))


def check_events(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find triggers that GitHub blocks by default. Source: GitHub changelog, "Workflow execution protections"."""
    for path, workflow in facts.workflows.items():
        if _BLOCKED_EVENT in workflow.events and facts.is_private is not True:
            message = (
                f"GitHub blocks `{_BLOCKED_EVENT}` in public repositories since 2026-11-02. This workflow fails "
                "unless the Actions policies of the repository allow the event."
            )
            hint = "Trigger it with `pull_request`, or allow the event in the Actions policies."
            yield path, warning("trigger-blocked-by-default", message, pointer("on", _BLOCKED_EVENT), hint=hint)


def check_caches(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find workflows with agents that may write caches, from which other jobs run code."""
    for path, workflow in facts.workflows.items():
        jobs = [
            job_id
            for job_id, job in workflow.jobs.items()
            if str(workflow.cache_mode if job.cache_mode is None else job.cache_mode) not in {"none", "read"}
            and any(agent_steps(workflow, job, facts.known))
        ]
        if jobs:
            named = ", ".join(f"`{job_id}`" for job_id in jobs)
            message = (
                f"An agent may write caches that other jobs use, in the {'job' if len(jobs) == 1 else 'jobs'} {named}. "
                "Turn them off there."
            )
            yield path, warning("cache-mode-missing", message, pointer("jobs", jobs[0]), hint="cache-mode: none")


CHECKS: Mapping[str, Callable[[RepositoryFacts], Iterable[PlacedFinding]]] = {
    "agent jobs": check_agents, "agent actions": check_unknown_actions, "outsiders": check_outsiders,
    "call permissions": check_grants, "secrets": check_secrets, "events": check_events,
    "checkouts": check_checkouts, "scripts": check_scripts, "called files": lambda facts: facts.missing,
    "caches": check_caches, "names": check_names, "runners": check_runners,
}  # fmt: skip
"""The checks of workflows by the name in the report."""
