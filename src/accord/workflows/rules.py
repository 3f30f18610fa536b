"""Rules of agent-runner workflows: inputs, outputs, and untrusted text in scripts.

Source: runner output contract, "Required Inputs", "Required Outputs" and "Implementation Checklist".
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from accord.core.findings import Finding, pointer, warning
from accord.core.suggest import did_you_mean
from accord.runner.models import RunOutputs
from accord.workflows.expressions import embedded_expressions, reads
from accord.workflows.models import Input, Workflow, WorkflowCall
from accord.workflows.untrusted import script_findings
from accord.workflows.wiring import Wiring, inputs_of, inputs_of_action

INPUTS: Mapping[str, Input] = {
    "skip": Input(type="boolean", description="Run nothing and succeed.", default=False),
    "prompt_file": Input(type="string", description="Path of the prompt.", required=True),
    "mode": Input(type="string", description="Purpose of the run: keepalive, autofix or verifier."),
    "pr_number": Input(type="string", description="Number of the pull request."),
    "pr_ref": Input(type="string", description="Branch to check out and to push to."),
    "base_ref": Input(type="string", description="Branch to merge the work into."),
    "workflows_ref": Input(type="string", description="Ref to take the runner's scripts from.", default="main"),
    "max_runtime_minutes": Input(type="number", description="Time limit of the agent in minutes.", default=45),
    "environment": Input(
        type="string", description="GitHub environment, such as agent-standard or agent-high-privilege."
    ),
    "sandbox": Input(type="string", description="Sandbox mode of the agent."),
    "safety_strategy": Input(type="string", description="Safety strategy of the agent."),
    "appendix": Input(type="string", description="Text to add after the prompt."),
    "iteration": Input(type="string", description="Number of the loop's iteration."),
}
"""The inputs of every runner, with the contract's default where it names one: else callers may expect nothing."""

OUTPUTS = (
    "final-message", "final-message-summary", "exit-code", "changes-made", "commit-sha", "files-changed",
    "error-summary", "error-category", "error-type", "error-recovery", "llm-analysis-run", "llm-provider", "llm-model",
    "llm-confidence", "llm-completed-tasks", "llm-has-completions",
)  # fmt: skip
"""The outputs that the contract requires. A runner may leave out other fields of ``RunOutputs``."""


CAPABILITY_OUTPUTS = (
    "capability-id", "effect-fingerprint", "evidence-artifact-ref", "supervision-mode", "capability-evidence-status",
)  # fmt: skip
"""Outputs of the contract's version 1.1 that a runner has all or none of: one record about a capability's effect.

The sixth, ``terminal-disposition``, may be there alone. A runner of version 1.0 has neither.
"""

_OF_SKIPPED = {name: value for name, value in RunOutputs().as_outputs().items() if value}

_NAMED_BY_CONTRACT = {*OUTPUTS, *CAPABILITY_OUTPUTS, "terminal-disposition"}
_MAY_BE_EMPTY = {*CAPABILITY_OUTPUTS, "terminal-disposition", "llm-model"}  # of version 1.1; patterns have no model


def described_outputs() -> dict[str, str]:
    """Return the description of every output, the contract's and the extra ones."""
    return {str(field.alias): field.description or "" for field in RunOutputs.model_fields.values()}


CALL = pointer("on", "workflow_call")

_INPUTS = CALL + "/inputs"
_OUTPUTS = CALL + "/outputs"
_SEVERAL = 4
_MOST = (len(INPUTS) + len(OUTPUTS)) // 2 + 1


def is_reusable(triggers: Any) -> bool:
    """Return whether a workflow with this value of ``on`` can be called."""
    return triggers == "workflow_call" or (isinstance(triggers, (dict, list)) and "workflow_call" in triggers)


def runner_findings(workflow: Workflow, called: Mapping[str, Workflow] | None = None) -> list[Finding]:
    """Check a workflow against the runner contract.

    ``called`` maps each value of ``uses`` to the reusable workflow it names; workflows that are missing there are
    not checked.
    """
    in_scripts = [finding for path, finding in script_findings("", {"": workflow}) if not path]
    return [*contract_findings(workflow, called), *in_scripts]


def contract_findings(workflow: Workflow, called: Mapping[str, Workflow] | None = None) -> list[Finding]:
    """Check a workflow against the runner contract, except what its scripts insert."""
    call = workflow.on.workflow_call
    if call is None:
        message = "The workflow cannot be called. Add the trigger `workflow_call`."
        return [Finding("schema", message, "/on", hint="on:\n  workflow_call:")]
    return [
        *_input_findings(call),
        *_output_findings(workflow, call, called or {}),
        *_call_findings(workflow, call, called or {}),
        *_step_findings(workflow),
        *pin_findings(workflow),
    ]


def is_runner(workflow: Workflow) -> bool:
    """Return whether a workflow is meant as an agent runner: callers give it a prompt, or it has names of the contract.

    A workflow whose prompt has a default chooses its own work, as loops do. It is a runner only if it has most of the
    names.
    """
    call = workflow.on.workflow_call
    if call is None:
        return False
    prompt = {name.lower(): given for name, given in call.inputs.items()}.get("prompt_file")
    if prompt and "default" not in prompt.model_fields_set:
        return True
    common = len(INPUTS.keys() & call.inputs.keys()) + len(set(OUTPUTS) & call.outputs.keys())
    return common >= (_MOST if prompt else _SEVERAL)


def _input_findings(call: WorkflowCall) -> Iterator[Finding]:
    for name, wanted in INPUTS.items():
        path = _INPUTS + pointer(name)
        if (given := call.inputs.get(name)) is None:
            hint = f"{name}:\n  description: {_quoted_text(wanted.description)}\n  type: {wanted.type}\n"
            hint += f"  required: {str(wanted.required).lower()}"
            hint += "" if wanted.default is None else f"\n  default: {_yaml_value(wanted.default)}"
            message = f"The input `{name}` of the runner contract is missing. Add it."
            yield Finding("missing-input", message, _INPUTS, hint=hint)
            continue
        if given.type != wanted.type:
            actual = f"has the type {given.type}" if given.type else "has no type"
            message = f"The input `{name}` {actual}. The contract requires {wanted.type}."
            yield Finding("input-type", message, path, hint=f"type: {wanted.type}")
        if given.required != wanted.required:
            must = "must be required" if wanted.required else "must be optional, because callers may leave it out"
            message = f"The input `{name}` {must}."
            yield Finding("input-required", message, path, hint=f"required: {str(wanted.required).lower()}")
        default = False if wanted.type == "boolean" and given.default is None else given.default
        if wanted.default not in (None, default):
            value = _yaml_value(wanted.default)
            message = f"The input `{name}` does not default to `{value}`, as callers of the contract expect."
            yield Finding("input-default", message, path, hint=f"default: {value}")
    for name, given in call.inputs.items():
        if name not in INPUTS and given.required:
            message = (
                f"The required input `{name}` is not in the runner contract, so callers of any runner cannot call this "
                "workflow. Make it optional with a default."
            )
            hint = 'required: false\ndefault: ""'
            yield Finding("agent-input-required", message, _INPUTS + pointer(name), hint=hint)


def _yaml_value(value: str | int) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _quoted_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _output_findings(workflow: Workflow, call: WorkflowCall, called: Mapping[str, Workflow]) -> Iterator[Finding]:
    source = _most_named((output.value for output in call.outputs.values()), [*workflow.jobs], "run")
    texts = described_outputs()
    declared = [name for name in CAPABILITY_OUTPUTS if name in call.outputs]
    for name in (*OUTPUTS, *(CAPABILITY_OUTPUTS if declared else ())):
        if name in call.outputs:
            continue
        hint = f"{name}:\n  description: {_quoted_text(texts[name])}\n  {_from_job(workflow, source, name)}"
        if name in CAPABILITY_OUTPUTS:
            message = f"The output `{name}` is missing, though `{declared[0]}` of the same record is there. Add it."
            yield Finding("outputs-incomplete", message, _OUTPUTS, hint=hint)
        else:
            message = f"The output `{name}` of the runner contract is missing. Add it."
            yield Finding("missing-output", message, _OUTPUTS, hint=hint)
    wiring = Wiring(workflow, called)
    for name, output in call.outputs.items():
        place = _OUTPUTS + pointer(name, "value")
        found = wiring.break_of(output.value, place)
        found = None if found and found.is_empty and name in _MAY_BE_EMPTY else found
        if found is None and name in OUTPUTS:
            found = wiring.crossed_output(name, output.value, place, OUTPUTS)
        if found and (name in _NAMED_BY_CONTRACT or not found.is_constant):
            message = f"The output `{name}` does not come from the run: {found.reason}. Connect it to a step."
            link, value = found.link, _from_job(workflow, source, name)
            hint = found.hint or (_from_step(workflow, link.job, link.name) if link.job else value)
            yield Finding("output-unwired", message, link.path, hint=hint)
    yield from _skip_findings(call, wiring)


def _skip_findings(call: WorkflowCall, wiring: Wiring) -> Iterator[Finding]:
    """Find outputs that only a skipped run sets, and those that it leaves without the contract's value."""
    found = dict[str, str]()
    for name in (name for name in call.outputs if name in _NAMED_BY_CONTRACT):
        output, wanted = call.outputs[name].value, _OF_SKIPPED.get(name)
        value, place = wiring.fixed_value(output, {("inputs", "skip"): False})
        of_skipped, is_off = wiring.fixed_value(output, {("inputs", "skip"): True})
        if value is not ... and place:
            message = f"The output `{name}` is never set: this condition is false unless the caller skips the run."
            found.setdefault(place, message)
        elif wanted and is_off and of_skipped not in (..., wanted, json.loads(wanted)):
            found.setdefault(_OUTPUTS, f"The output `{name}` is not `{wanted}` in a skipped run. Set such values.")
    yield from (Finding("output-unwired", found[place], place, hint=_skip_hint(call)) for place in found)


def _skip_hint(call: WorkflowCall) -> str:
    """Return the condition that obeys ``skip``, with the outputs that it needs, as YAML."""
    lines = ["if: ${{ !inputs.skip }}", "# in on.workflow_call.outputs:"]
    for name in (name for name in call.outputs if name in _OF_SKIPPED):
        read = next(embedded_expressions(str(call.outputs[name].value)), "''")
        lines += [f"{name}:", f"  value: ${{{{ inputs.skip && '{_OF_SKIPPED[name]}' || {read} }}}}"]
    return "\n".join(lines)


def _most_named(values: Iterable[Any], known: Sequence[str], default: str) -> str:
    """Return the job or step of those known that values read most often, else the last one."""
    names = {name.lower(): name for name in known}
    named = [names[ref[1]] for value in values for ref in reads(value) or () if ref[1:] and ref[1] in names]
    return max(named, key=named.count) if named else next(reversed(known), default)


def _from_job(workflow: Workflow, source: str, name: str) -> str:
    """Return the value of an output as YAML, with the lines that its job lacks, where it has steps of its own."""
    job, value = workflow.jobs.get(source), f"value: ${{{{ jobs.{source}.outputs.{name} }}}}"
    return value if job is None or job.uses or name in job.outputs else f"{value}\n{_from_step(workflow, source, name)}"


def _from_step(workflow: Workflow, job_id: str, name: str) -> str:
    """Return the output of a job as YAML, from the step that most of its outputs come from."""
    job = workflow.jobs[job_id]
    step = _most_named(job.outputs.values(), [step.id for step in job.steps if step.id], "STEP")
    return f"# in jobs.{job_id}.outputs:\n{name}: ${{{{ steps.{step}.outputs.{name} }}}}"


_OBEYED = {
    "prompt_file": "env:\n  PROMPT: ${{ inputs.prompt_file }}", "pr_ref": "with:\n  ref: ${{ inputs.pr_ref }}",
    "appendix": "env:\n  APPENDIX: ${{ inputs.appendix }}",
    "max_runtime_minutes": "timeout-minutes: ${{ inputs.max_runtime_minutes }}",
}  # fmt: skip
"""Inputs without which a runner does other work than its caller asks for.

The others name the run, or are the agent's to interpret.
"""

_NEEDED = ("skip", "prompt_file")


def _call_findings(workflow: Workflow, call: WorkflowCall, called: Mapping[str, Workflow]) -> Iterator[Finding]:
    """Find inputs that have no effect, or are not passed on to the runner that a workflow calls."""
    read, reported = inputs_of(workflow), set[str]()
    for job_id, job in workflow.jobs.items():
        target = called.get(job.uses)
        inputs = target.on.workflow_call.inputs if target and target.on.workflow_call else {}
        path = pointer("jobs", job_id, "with")
        for name, given in inputs.items():
            hint = f"with:\n  {name}: ${{{{ inputs.{name} }}}}"
            if name in job.given:
                continue
            if given.required:
                message = f"`{job.uses}` requires the input `{name}`, which is not passed. Pass it on."
                yield Finding("missing-input", message, path, hint=hint)
            elif name in call.inputs and name in INPUTS and not read & {name.lower(), "*"}:
                message = f"The input `{name}` is not passed to `{job.uses}`. Pass it on."
                yield Finding("input-unused", message, path, hint=hint)
            else:
                continue
            reported.add(name)
        yield from _unknown_inputs(job.uses, job.given, inputs, path) if target else ()
    for name, hint in {"skip": _skip_hint(call), **_OBEYED}.items():
        if name not in call.inputs or name in reported or read & {name, "*"}:
            continue
        message = f"The workflow ignores its input `{name}`: no job reads it. Use it"
        if name in _NEEDED:
            yield Finding("input-unused", f"{message}.", _INPUTS + pointer(name), hint=hint)
        elif "ignored" not in call.inputs[name].description.lower():
            yield warning("input-unused", f"{message}, or describe it as ignored.", _INPUTS + pointer(name), hint=hint)


def _step_findings(workflow: Workflow) -> Iterator[Finding]:
    for job_id, job in workflow.jobs.items():
        for step in job.steps:
            if step.action and step.inner and "*" not in (used := inputs_of_action(step)):
                path = pointer("jobs", job_id) + step.place + "/with"
                yield from _unknown_inputs(step.uses, step.given, [*step.action.inputs, *used], path)


def _unknown_inputs(uses: str, given: Iterable[str], known: Collection[str], path: str) -> Iterator[Finding]:
    """Find what is passed to a workflow or an action of the repository that has no such input."""
    for name in given:
        if name.lower() not in map(str.lower, known):
            hint = did_you_mean(name, known) or "Remove it, or declare the input there."
            yield Finding("unknown-input", f"`{uses}` has no input `{name}`.", path + pointer(name), hint=hint)


# Pins

_PINNED = re.compile(
    r"\.|(?:\.\.?|\$)/.*|(?!docker://).*@[0-9a-f]{40}(?:[0-9a-f]{24})?|docker://.*@sha256:[0-9a-f]{64}",
    re.IGNORECASE | re.DOTALL,
)
"""Local code (``$/`` is the workflow's own repository at its own commit), a commit, or an image by its digest."""


def uses_of(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointer and the value of every ``uses``."""
    for job_id, job in workflow.jobs.items():
        if job.uses:
            yield pointer("jobs", job_id, "uses"), job.uses
        for step in job.steps:
            if step.uses:
                yield pointer("jobs", job_id) + step.place + "/uses", step.uses


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
    """Return whether ``uses`` names code that cannot change."""
    return _PINNED.fullmatch(uses) is not None
