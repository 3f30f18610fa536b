"""What changes between two versions of a reusable workflow would break those who call it.

Source: runner output contract, "Versioning and Evolution": nothing is removed that was not deprecated before, and what
breaks callers needs a new major version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, pointer, warning
from accord.workflows.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.workflows.files import Input, Output, Secret, Workflow, WorkflowCall


_CALL = pointer("on", "workflow_call")
_DEPRECATED = re.compile(r"\bdeprecated\b", re.IGNORECASE)
_LEFT_OUT = {"string": "", "boolean": False, "number": 0}
"""What GitHub takes for an input without a default that a caller leaves out."""

_LEVELS = {"none": 0, "read": 1, "write": 2}


def breaking_findings(old: Workflow, new: Workflow) -> list[Finding]:
    """Compare two versions; findings point into the new one. New optional inputs and new outputs are no finding."""
    before, after = old.on.workflow_call, new.on.workflow_call
    if before is None:
        return []
    if after is None:
        message = "The trigger workflow_call is gone, so every caller fails. Keep it."
        return [Finding("breaking-change", message, "/on", hint="on:\n  workflow_call:")]
    return [
        *_removed("input", before.inputs, after.inputs),
        *_removed("output", before.outputs, after.outputs),
        *_removed("secret", before.secrets, after.secrets),
        *_newly_required("input", before.inputs, after.inputs),
        *_newly_required("secret", before.secrets, after.secrets),
        *_changed_inputs(before, after),
        *_unwired_outputs(old, new),
        *_more_permissions(old, new),
    ]


def is_deprecated(part: Input | Output | Secret) -> bool:
    """Tell whether an input, output or secret says that it will go."""
    return bool(getattr(part, "deprecation_message", "")) or _DEPRECATED.search(part.description) is not None


def _removed(
    what: str,
    before: Mapping[str, Input] | Mapping[str, Output] | Mapping[str, Secret],
    after: Mapping[str, Input] | Mapping[str, Output] | Mapping[str, Secret],
) -> Iterator[Finding]:
    """Find what is gone; names count as GitHub compares them, without case."""
    kept = {name.lower() for name in after}
    known = {name.lower() for name in before}
    path = _CALL + pointer(f"{what}s")
    for name, part in before.items():
        if name.lower() in kept:
            continue
        heirs = [other for other, given in after.items() if other.lower() not in known and _is_same(part, given)]
        gone = f'renamed to "{heirs[0]}"' if len(heirs) == 1 else "removed"
        if is_deprecated(part):
            message = (
                f'The {what} "{name}" is {gone}. It was deprecated; callers that still use it break: major version.'
            )
            yield warning("breaking-change", message, path)
            continue
        message = f'The {what} "{name}" is {gone}, so callers that use it break. Keep it, beside what is new.'
        yield Finding("breaking-change", message, path)
        message = f'The {what} "{name}" was never marked as deprecated. Keep it and mark it, for three months at least.'
        hint = f"{name}:\n  description: 'Deprecated: use … instead. …'"
        yield Finding("deprecation-missing", message, path, hint=hint)


def _is_same(old: Any, new: Any) -> bool:
    """Tell whether a part under another name is the old one: an output of the same value, or the same words."""
    if getattr(old, "value", None) is not None:
        return bool(old.value == new.value)
    return bool(old.description) and old.description == new.description


def _newly_required(
    what: str, before: Mapping[str, Input] | Mapping[str, Secret], after: Mapping[str, Input] | Mapping[str, Secret]
) -> Iterator[Finding]:
    needed = {name.lower() for name, part in before.items() if part.required}
    for name, part in after.items():
        if part.required and name.lower() not in needed:
            message = f'The {what} "{name}" is required now, so callers that leave it out fail. Make it optional.'
            yield Finding("breaking-change", message, _CALL + pointer(f"{what}s", name), hint="required: false")


def _changed_inputs(before: WorkflowCall, after: WorkflowCall) -> Iterator[Finding]:
    old_inputs = {name.lower(): given for name, given in before.inputs.items()}
    for name, new in after.inputs.items():
        old = old_inputs.get(name.lower())
        if old is None:
            continue
        path = _CALL + pointer("inputs", name)
        if old.type != new.type:
            message = (
                f'The input "{name}" was a {old.type} and is a {new.type} now, so what callers give no longer fits.'
            )
            yield Finding("breaking-change", f"{message} Keep the type.", path + "/type", hint=f"type: {old.type}")
        elif not old.required and not new.required and _default(old) != _default(new):
            message = (
                f'The default of "{name}" changes from {_default(old)!r} to {_default(new)!r}, so callers that leave it'
            )
            yield Finding("breaking-change", f"{message} out get something else. Keep it.", path + "/default")


def _unwired_outputs(old: Workflow, new: Workflow) -> Iterator[Finding]:
    """Find outputs that told something of the run, and tell nothing now: a constant, or a way that leads nowhere."""
    before = old.on.workflow_call.outputs if old.on.workflow_call else {}
    after = new.on.workflow_call.outputs if new.on.workflow_call else {}
    path = _CALL + pointer("outputs")
    values = {name.lower(): given.value for name, given in before.items()}
    for name, given in after.items():
        value = values.get(name.lower())
        if value is None or Wiring(old, {}).break_of(value, path):
            continue
        if found := Wiring(new, {}).break_of(given.value, path + pointer(name, "value")):
            message = (
                f'The output "{name}" tells nothing of the run any more: {found.reason}. Callers that decide by it '
                "break. Keep where it came from."
            )
            yield Finding("breaking-change", message, found.path)


def _default(given: Input) -> Any:
    return _LEFT_OUT.get(given.type or "", "") if given.default is None else given.default


def _more_permissions(old: Workflow, new: Workflow) -> Iterator[Finding]:
    """Find permissions that callers do not grant yet: GitHub refuses to start the workflow then."""
    before, after = _asked(old), _asked(new)
    for scope, (level, path) in after.items():
        had = before.get(scope, ("none", ""))[0]
        if _LEVELS.get(level, 0) > _LEVELS.get(had, 0):
            message = (
                f'A job asks for "{scope}: {level}" now (it was "{had}"), so it does not start for callers that '
                "grant less. Do without it, or make it a major version."
            )
            yield Finding("breaking-change", message, path)


def _asked(workflow: Workflow) -> dict[str, tuple[str, str]]:
    """Return the highest level that any job asks for, by scope, with its pointer."""
    asked: dict[str, tuple[str, str]] = {}
    for job_id, job in workflow.jobs.items():
        if isinstance(job.permissions, dict):
            for scope, level in job.permissions.items():
                if _LEVELS.get(level, 0) > _LEVELS.get(asked.get(scope, ("none", ""))[0], 0):
                    asked[scope] = (level, pointer("jobs", job_id, "permissions", scope))
    return asked
