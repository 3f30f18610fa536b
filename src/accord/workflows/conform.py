"""Whether a workflow is an agent runner as the contract wants it: what it takes, what it gives, how it treats text.

Source: runner output contract, "Required Inputs", "Required Outputs" and "Implementation Checklist".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from accord.core.findings import Finding, pointer
from accord.runner.models import RunOutputs
from accord.workflows.interpolation import interpolation_findings, pin_findings
from accord.workflows.wiring import Wiring, all_reads, reads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.workflows.files import Workflow, WorkflowCall


InputType = Literal["string", "boolean", "number"]


@dataclass(frozen=True)
class RunnerInput:
    """An input that a runner must take; ``default`` is the contract's own, where it names one."""

    name: str
    type: InputType
    description: str
    is_required: bool = False
    default: str | int | None = None


INPUTS = (
    RunnerInput("skip", "boolean", "Run nothing, and succeed at once."),
    RunnerInput("prompt_file", "string", "Path of the prompt that the agent reads.", is_required=True),
    RunnerInput("mode", "string", "What the run is for: keepalive, autofix or verifier."),
    RunnerInput("pr_number", "string", "Number of the pull request that the run is for."),
    RunnerInput("pr_ref", "string", "The branch to check out, and to push to."),
    RunnerInput("base_ref", "string", "The branch that the work is to be merged into."),
    RunnerInput(
        "workflows_ref", "string", "Ref of the repository that the runner's scripts are taken from.", default="main"
    ),
    RunnerInput("max_runtime_minutes", "number", "How many minutes the agent may run.", default=45),
    RunnerInput("environment", "string", "The GitHub environment of the agent's job."),
    RunnerInput("sandbox", "string", "How the agent is confined; each agent has its own words."),
    RunnerInput("safety_strategy", "string", "How careful the agent is; each agent has its own words."),
    RunnerInput("appendix", "string", "More context, put after the prompt."),
    RunnerInput("iteration", "string", "Which round of a loop this is."),
)

OUTPUTS = (
    "final-message",
    "final-message-summary",
    "exit-code",
    "changes-made",
    "commit-sha",
    "files-changed",
    "error-summary",
    "error-category",
    "error-type",
    "error-recovery",
    "llm-analysis-run",
    "llm-provider",
    "llm-model",
    "llm-confidence",
    "llm-completed-tasks",
    "llm-has-completions",
)
"""The outputs that the contract requires; any other of ``RunOutputs`` is an extra that a runner may leave out."""


def described_outputs() -> dict[str, str]:
    """Return every output of ours, the contract's and the extras, with what it means."""
    return {str(field.alias): field.description or "" for field in RunOutputs.model_fields.values()}


_INPUTS = pointer("on", "workflow_call", "inputs")
_OUTPUTS = pointer("on", "workflow_call", "outputs")
_CONTRACT = {wanted.name: wanted for wanted in INPUTS}


def is_reusable(triggers: Any) -> bool:
    """Tell by the value of ``on`` whether a workflow can be called."""
    return triggers == "workflow_call" or (isinstance(triggers, (dict, list)) and "workflow_call" in triggers)


def runner_findings(workflow: Workflow, called: Mapping[str, Workflow] | None = None) -> list[Finding]:
    """Find what keeps a workflow from being a runner.

    ``called`` are the reusable workflows that it calls, by how ``uses`` names them; of those that are not at hand,
    what is asked of them is taken on trust.
    """
    call = workflow.on.workflow_call
    if call is None:
        message = "No workflow can call this one, and a runner is called. Add the trigger workflow_call."
        return [Finding("schema", message, "/on", hint="on:\n  workflow_call:")]
    return [
        *_input_findings(call),
        *_output_findings(workflow, call, called or {}),
        *_call_findings(workflow, call, called or {}),
        *interpolation_findings(workflow),
        *pin_findings(workflow),
    ]


def _input_findings(call: WorkflowCall) -> Iterator[Finding]:
    for wanted in INPUTS:
        path = _INPUTS + pointer(wanted.name)
        if wanted.name not in call.inputs:
            message = f'The input "{wanted.name}" is missing, which callers of any runner may give. Add it.'
            yield Finding("missing-input", message, _INPUTS, hint=_input_yaml(wanted))
            continue
        given = call.inputs[wanted.name]
        if given.type != wanted.type:
            said = f"is a {given.type}" if given.type else "has no type"
            message = f'The input "{wanted.name}" {said}; the contract makes it a {wanted.type}. Change its type.'
            yield Finding("input-type", message, path, hint=f"type: {wanted.type}")
        if given.required != wanted.is_required:
            must = "must be required" if wanted.is_required else "must not be required: callers may leave it out"
            message = f'The input "{wanted.name}" {must}. Change that.'
            yield Finding("input-required", message, path, hint=f"required: {str(wanted.is_required).lower()}")
    for name, given in call.inputs.items():
        if name not in _CONTRACT and given.required:
            message = (
                f'The input "{name}" is of this agent alone, and required: who calls any runner cannot call this one. '
                "Make it optional, with a default."
            )
            hint = 'required: false\ndefault: ""'
            yield Finding("agent-input-required", message, _INPUTS + pointer(name), hint=hint)


def _input_yaml(wanted: RunnerInput) -> str:
    lines = [f"{wanted.name}:", f"  description: {_quoted(wanted.description)}", f"  type: {wanted.type}"]
    lines += [f"  required: {str(wanted.is_required).lower()}"]
    return "\n".join(lines if wanted.default is None else [*lines, f"  default: {wanted.default}"])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _output_findings(workflow: Workflow, call: WorkflowCall, called: Mapping[str, Workflow]) -> Iterator[Finding]:
    source = _source(workflow, call)
    texts = described_outputs()
    for name in OUTPUTS:
        if name not in call.outputs:
            message = f'The output "{name}" is missing, which callers of any runner may read. Add it.'
            hint = f"{name}:\n  description: {_quoted(texts[name])}\n  value: ${{{{ jobs.{source}.outputs.{name} }}}}"
            yield Finding("missing-output", message, _OUTPUTS, hint=hint + _job_output(workflow, source, name))
    wiring = Wiring(workflow, called)
    for name, output in call.outputs.items():
        place = _OUTPUTS + pointer(name, "value")
        found = wiring.break_of(output.value, place)
        if found is None and name in OUTPUTS:
            found = wiring.crossed(name, output.value, place, OUTPUTS)
        if found and (name in OUTPUTS or not _is_constant(output.value)):
            message = f'The output "{name}" tells nothing of the run: {found.reason}. Fix the way to its step.'
            hint = f"value: ${{{{ jobs.{source}.outputs.{name} }}}}" + _job_output(workflow, source, name)
            if found.job:
                hint = _from_step(workflow, found.job, found.name)
            yield Finding("output-unwired", message, found.path, hint=hint)


def _is_constant(value: Any) -> bool:
    return value is not None and reads(value) == []


def _source(workflow: Workflow, call: WorkflowCall) -> str:
    """Guess which job the outputs come from: the one that most come from, else the last."""
    named = Counter(
        ref[1] for output in call.outputs.values() for ref in reads(output.value) or () if ref[0] == "jobs" and ref[1:]
    )
    most = named.most_common(1)
    found = workflow.job(most[0][0]) if most else None
    return found[0] if found else next(reversed(workflow.jobs), "run")


def _job_output(workflow: Workflow, source: str, name: str) -> str:
    """Return what else the job must say, when it has steps of its own and does not say it."""
    job = workflow.jobs.get(source)
    return "" if job is None or job.uses or name in job.outputs else "\n" + _from_step(workflow, source, name)


def _from_step(workflow: Workflow, job_id: str, name: str) -> str:
    """Write the output of a job, from the step that most of its outputs come from."""
    job = workflow.jobs[job_id]
    steps = [step.id for step in job.steps if step.id]
    known = {step.lower() for step in steps}
    named = Counter(
        ref[1] for value in job.outputs.values() for ref in reads(value) or () if ref[1:2] and ref[1] in known
    )
    step = next((step for step, _ in named.most_common(1)), next(reversed(steps), "STEP"))
    return f"# in jobs.{job_id}.outputs:\n{name}: ${{{{ steps.{step}.outputs.{name} }}}}"


def _call_findings(workflow: Workflow, call: WorkflowCall, called: Mapping[str, Workflow]) -> Iterator[Finding]:
    """Find what a thin runner takes and does not hand on to the workflow that it calls."""
    jobs = [job.model_dump(by_alias=True) for job in workflow.jobs.values()]
    read = {ref[1:2] for ref in all_reads(jobs) if ref[0] == "inputs"}
    for job_id, job in workflow.jobs.items():
        target = called.get(job.uses)
        taken = target.on.workflow_call.inputs if target and target.on.workflow_call else {}
        path = pointer("jobs", job_id, "with")
        for name, given in taken.items():
            hint = f"with:\n  {name}: ${{{{ inputs.{name} }}}}"
            if name in job.given:
                continue
            if given.required:
                message = f'{job.uses} requires the input "{name}", which is not given. Hand it on.'
                yield Finding("missing-input", message, path, hint=hint)
            elif name in call.inputs and name in _CONTRACT and not read & {(name.lower(),), ()}:
                message = f'The input "{name}" is taken, and {job.uses} never gets it. Hand it on.'
                yield Finding("input-unused", message, path, hint=hint)
