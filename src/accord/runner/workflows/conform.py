"""Whether a workflow is an agent runner as the contract wants it: what it takes, what it gives, how it treats text.

Source: runner output contract, "Required Inputs", "Required Outputs" and "Implementation Checklist".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from accord.kernel.findings import Finding, pointer
from accord.runner.workflows.contract import INPUTS, OUTPUTS, RunnerInput, described_outputs
from accord.runner.workflows.interpolation import interpolation_findings
from accord.runner.workflows.pins import pin_findings
from accord.runner.workflows.wiring import Wiring, all_reads, reads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.runner.workflows.files import Workflow, WorkflowCall

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
        return [Finding("schema", message, "/on", mend="on:\n  workflow_call:")]
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
            yield Finding("missing-input", message, _INPUTS, mend=_input_yaml(wanted))
            continue
        given = call.inputs[wanted.name]
        if given.type != wanted.type:
            said = f"is a {given.type}" if given.type else "has no type"
            message = f'The input "{wanted.name}" {said}; the contract makes it a {wanted.type}. Change its type.'
            yield Finding("input-type", message, path, mend=f"type: {wanted.type}")
        if given.required != wanted.is_required:
            must = "must be required" if wanted.is_required else "must not be required: callers may leave it out"
            message = f'The input "{wanted.name}" {must}. Change that.'
            yield Finding("input-required", message, path, mend=f"required: {str(wanted.is_required).lower()}")
    for name, given in call.inputs.items():
        if name not in _CONTRACT and given.required:
            message = (
                f'The input "{name}" is of this agent alone, and required: who calls any runner cannot call this one. '
                "Make it optional, with a default."
            )
            mend = 'required: false\ndefault: ""'
            yield Finding("agent-input-required", message, _INPUTS + pointer(name), mend=mend)


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
            mend = f"{name}:\n  description: {_quoted(texts[name])}\n  value: ${{{{ jobs.{source}.outputs.{name} }}}}"
            yield Finding("missing-output", message, _OUTPUTS, mend=mend + _job_output(workflow, source, name))
    wiring = Wiring(workflow, called)
    for name, output in call.outputs.items():
        place = _OUTPUTS + pointer(name, "value")
        found = wiring.break_of(output.value, place)
        if found is None and name in OUTPUTS:
            found = wiring.crossed(name, output.value, place, OUTPUTS)
        if found and (name in OUTPUTS or not _is_constant(output.value)):
            message = f'The output "{name}" tells nothing of the run: {found.reason}. Mend the way to its step.'
            mend = f"value: ${{{{ jobs.{source}.outputs.{name} }}}}" + _job_output(workflow, source, name)
            if found.job:
                mend = _from_step(workflow, found.job, found.name)
            yield Finding("output-unwired", message, found.path, mend=mend)


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
            mend = f"with:\n  {name}: ${{{{ inputs.{name} }}}}"
            if name in job.given:
                continue
            if given.required:
                message = f'{job.uses} requires the input "{name}", which is not given. Hand it on.'
                yield Finding("missing-input", message, path, mend=mend)
            elif name in call.inputs and name in _CONTRACT and not read & {(name.lower(),), ()}:
                message = f'The input "{name}" is taken, and {job.uses} never gets it. Hand it on.'
                yield Finding("input-unused", message, path, mend=mend)
