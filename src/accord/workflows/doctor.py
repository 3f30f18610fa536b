"""Looking a repository's workflows over for what goes wrong where agents work, before it goes wrong.

Every check is a function from the facts to findings, each with the file it is about. Sources: GitHub documentation,
"Secure use reference" and "Reusing workflows"; the agent's job that only reads is a rule of this project.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.workflows.agent_commands import shipped_programs, starts_agent
from accord.workflows.conform import runner_findings
from accord.workflows.expressions import embedded, parse
from accord.workflows.interpolation import interpolation_findings, pin_findings
from accord.workflows.wiring import all_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from accord.workflows.files import Job, Step, Workflow


WORKFLOWS = ".github/workflows"

Found = tuple[str, Finding]
"""A path below the repository's root, and what was found there."""


@dataclass(frozen=True)
class AgentSecrets:
    """The secrets that an agent needs: all of them, or any one."""

    names: Sequence[str]
    needs_all: bool = True


@dataclass(frozen=True)
class RepositoryFacts:
    """What a repository holds: workflows by path, its owner, the agents of its own registry, programs of all."""

    workflows: Mapping[str, Workflow]
    owner: str = ""
    agents: Mapping[str, AgentSecrets] = field(default_factory=dict)
    registry: str = ""
    programs: frozenset[str] = field(default_factory=shipped_programs)


def check_permissions(facts: RepositoryFacts) -> Iterator[Found]:
    """Every job says what its token may do, and nothing is granted to all jobs at once."""
    for path, workflow in facts.workflows.items():
        unsaid = [name for name, job in workflow.jobs.items() if job.permissions is None]
        if workflow.permissions is None and unsaid:
            message = (
                f'The job "{unsaid[0]}" has whatever the repository\'s settings give every token, which may be all. '
                "Grant nothing on top, and to each job what it needs."
            )
            yield path, Finding("permissions-open", message, pointer("jobs", unsaid[0]), hint="permissions: {}")
        elif workflow.permissions:
            message = "Every job of this workflow gets these. Grant nothing on top, and to each job what it needs."
            yield path, warning("permissions-open", message, "/permissions", hint="permissions: {}")
        for name, job in workflow.jobs.items():
            is_agents = any(runs_agent(step, facts.programs) for step in job.steps)  # an error of its own
            if job.permissions == "write-all" and not is_agents:
                message = f'The job "{name}" may write everything. Grant it by name what it needs.'
                hint = "permissions:\n  contents: read"
                yield path, warning("permissions-open", message, pointer("jobs", name, "permissions"), hint=hint)


_AGENT_ACTIONS = re.compile(
    r"openai/codex-action|anthropics/claude-code(?:-base)?-action|google-github-actions/run-gemini-cli"
    r"|(?:\.|\$|[\w.-]+/[\w.-]+)/actions/run-agent",
    re.IGNORECASE,
)
_NOT_OF_THE_REPOSITORY = frozenset({"id-token", "models"})
"""Permissions that write nothing into the repository: a proof of identity, and the use of models."""


def runs_agent(step: Step, programs: frozenset[str]) -> bool:
    """Tell whether a step starts an agent, by the action that it uses or the commands of its script."""
    if step.uses:
        if str(step.given.get("skip")).lower() == "true":
            return False
        return _AGENT_ACTIONS.fullmatch(step.uses.partition("@")[0]) is not None
    return starts_agent(step.run, programs)


def check_agents(facts: RepositoryFacts) -> Iterator[Found]:
    """The job that runs an agent can write nothing: whatever its prompt says, it has nothing to write with."""
    for path, workflow in facts.workflows.items():
        for job_id, job in workflow.jobs.items():
            granted = workflow.permissions if job.permissions is None else job.permissions
            if not any(runs_agent(step, facts.programs) for step in job.steps):
                continue
            writes = ["everything"] if granted == "write-all" else []
            if isinstance(granted, dict):
                writes = [s for s, level in granted.items() if level == "write" and s not in _NOT_OF_THE_REPOSITORY]
            if writes:
                message = (
                    f'The job "{job_id}" runs an agent with a token that may write {", ".join(writes)}: what the '
                    "agent reads can tell it to. Let it leave a patch, and publish that in a second job."
                )
                place = pointer("jobs", job_id, *(() if job.permissions is None else ("permissions",)))
                yield path, Finding("agent-may-write", message, place, hint="permissions:\n  contents: read")


_PRIVILEGED = frozenset({"pull_request_target", "workflow_run", "issue_comment"})
_HEADS = re.compile(
    r"github\.head_ref|github\.event\.(?:pull_request|issue)\..*|github\.event\.workflow_run\.head_.*"
    r"|github\.event\.workflow_run\.pull_requests\..*"
)
_FETCHES_HEAD = re.compile(r"\bgh\s+pr\s+checkout\b|\bpull/\S+/(?:head|merge)\b")


def check_triggers(facts: RepositoryFacts) -> Iterator[Found]:
    """What strangers can start with the repository's own secrets never runs the code that they bring."""
    for path, workflow in facts.workflows.items():
        events = sorted(workflow.on.events & _PRIVILEGED)
        for job_id, job in workflow.jobs.items() if events else ():
            for i, step in enumerate(job.steps):
                if _takes_head(step):
                    message = (
                        f"{events[0]} runs with this repository's token and secrets, and this step brings in the "
                        "code of whoever opened the pull request. Use pull_request, or check out nothing of it."
                    )
                    yield path, Finding("untrusted-checkout", message, pointer("jobs", job_id, "steps", i))


def _takes_head(step: Step) -> bool:
    if step.uses.lower().startswith("actions/checkout@"):
        given = [str(step.given.get(name) or "") for name in ("ref", "repository")]
        parsed = [parse(expression) for text in given for expression in embedded(text)]
        read = {".".join(ref) for expression in parsed if expression for ref in expression.yields}
        return any(map(_HEADS.fullmatch, read)) or any(map(_FETCHES_HEAD.search, given))
    return _FETCHES_HEAD.search(step.run) is not None


def check_secrets(facts: RepositoryFacts) -> Iterator[Found]:
    """Callers pass the secrets that are asked of them, by name, and no organisation gets those of another."""
    for path, workflow in facts.workflows.items():
        for job_id, job in workflow.jobs.items():
            if job.uses:
                yield from ((path, found) for found in _secret_findings(facts, job_id, job))
    named = {ref[1] for ref in _all_reads(facts) if ref[0] == "secrets" and ref[1:]} | _passed(facts)
    for agent, secrets in facts.agents.items():
        missing = [name for name in secrets.names if name.lower() not in named]
        if missing and (secrets.needs_all or len(missing) == len(secrets.names)):
            wanted = (" and " if secrets.needs_all else " or ").join(missing)
            message = (
                f'The agent "{agent}" needs {wanted}, and no workflow hands it on. Pass it to the workflow that runs '
                "the agent, or disable the agent in the registry."
            )
            hint = f"secrets:\n  {missing[0]}: ${{{{ secrets.{missing[0]} }}}}"
            yield facts.registry, warning("secret-unnamed", message, pointer("agents", agent), hint=hint)


def _all_reads(facts: RepositoryFacts) -> Iterator[tuple[str, ...]]:
    for workflow in facts.workflows.values():
        yield from all_reads(workflow.model_dump(by_alias=True))


def _passed(facts: RepositoryFacts) -> set[str]:
    jobs = [job for workflow in facts.workflows.values() for job in workflow.jobs.values()]
    return {name.lower() for job in jobs if isinstance(job.secrets, dict) for name in job.secrets}


def _secret_findings(facts: RepositoryFacts, job_id: str, job: Job) -> Iterator[Finding]:
    place = pointer("jobs", job_id, "secrets")
    owner = job.uses.partition("/")[0]
    is_local = owner in {".", "$"}
    if job.secrets == "inherit":
        if not is_local and owner.lower() != facts.owner.lower():
            message = (
                f"secrets: inherit hands secrets on within one organisation only; {job.uses.partition('@')[0]} "
                f"belongs to {owner}, so it gets none. Pass each by its name."
            )
            hint = "secrets:\n  NAME: ${{ secrets.NAME }}"
            yield (
                Finding("secrets-inherit", message, place, hint=hint)
                if facts.owner
                else warning("secrets-inherit", message, place, hint=hint)
            )
        return
    target = facts.workflows.get(f"{WORKFLOWS}/{job.uses.rpartition('/')[2]}") if is_local else None
    asked = target.on.workflow_call.secrets if target and target.on.workflow_call else {}
    given = {name.lower() for name in job.secrets} if isinstance(job.secrets, dict) else set()
    for name, secret in asked.items():
        if secret.required and name.lower() not in given:
            message = f"{job.uses} requires the secret {name}, which is not passed, so it does not start. Pass it."
            yield Finding("secret-missing", message, place, hint=f"secrets:\n  {name}: ${{{{ secrets.{name} }}}}")


def check_names(facts: RepositoryFacts) -> Iterator[Found]:
    """Workflows have names of their own, because people and ``workflow_run`` find them by these."""
    first: dict[str, str] = {}
    for path, workflow in facts.workflows.items():
        if not workflow.name:
            message = "The workflow has no name, so it is listed by its path. Name it."
            yield path, warning("workflow-unnamed", message, hint="name: What it does")
        elif workflow.name in first:
            message = f'"{workflow.name}" is the name of {first[workflow.name]} too. Give each its own.'
            yield path, warning("workflow-name-repeated", message, "/name")
        first.setdefault(workflow.name, path)
    for path, workflow in facts.workflows.items():
        awaited = (workflow.on.model_extra or {}).get("workflow_run") or {}
        names = awaited.get("workflows") if isinstance(awaited, dict) else None
        for i, name in enumerate([names] if isinstance(names, str) else names or ()):
            if str(name) not in first:
                message = f'No workflow is called "{name}", so this one never starts. Correct the name.'
                yield path, Finding("workflow-unknown", message, pointer("on", "workflow_run", "workflows", i))


def check_pins(facts: RepositoryFacts) -> Iterator[Found]:
    """What others can move is named by what cannot move."""
    return ((path, found) for path, workflow in facts.workflows.items() for found in pin_findings(workflow))


def check_scripts(facts: RepositoryFacts) -> Iterator[Found]:
    """No script holds text that others choose."""
    return ((path, found) for path, workflow in facts.workflows.items() for found in interpolation_findings(workflow))


def check_runners(facts: RepositoryFacts) -> Iterator[Found]:
    """A workflow that takes a prompt file is an agent runner, and keeps the runner contract.

    One that can start another run of itself is a loop, and says what its runs may be given.
    """
    called = {f"{root}/{path}": workflow for path, workflow in facts.workflows.items() for root in (".", "$")}
    for path, workflow in facts.workflows.items():
        call = workflow.on.workflow_call
        if call and "prompt_file" in call.inputs and "dispatch_workflow" not in call.inputs:
            other = {"unpinned-action", "unsafe-interpolation"}  # checks of their own, of every workflow
            yield from ((path, found) for found in runner_findings(workflow, called) if found.code not in other)


CHECKS: Mapping[str, Callable[[RepositoryFacts], Iterator[Found]]] = {
    "permissions": check_permissions,
    "agent jobs": check_agents,
    "triggers": check_triggers,
    "secrets": check_secrets,
    "pins": check_pins,
    "scripts": check_scripts,
    "names": check_names,
    "runners": check_runners,
}
"""The checks of workflows, by the name that people see."""
