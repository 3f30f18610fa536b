"""Changes between two versions of a called workflow that break its callers.

Source: runner output contract, "Versioning and Evolution".
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, pointer, warning
from accord.workflows.models import LEVELS, Input, Output, Workflow, WorkflowCall, WorkflowSecret
from accord.workflows.requirements import highest_levels, is_granted, levels_of
from accord.workflows.rules import CALL
from accord.workflows.wiring import Wiring

if TYPE_CHECKING:
    _Parts = Mapping[str, Input] | Mapping[str, Output] | Mapping[str, WorkflowSecret]

_DEPRECATED = re.compile(
    r"(?:(?:\A|[.!?(\[;:\u2014-])\s{0,9}|\b(?:is|are|been|now)\s{1,9})[*_`]{0,3}deprecated\b", re.IGNORECASE
)
_LEFT_OUT = {"string": "", "boolean": False, "number": 0}
_MAJOR = "Such a change needs a major version with a migration guide, and callers that move in phases."
_DEPRECATED_MONTHS = 3
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def breaking_findings(old: Workflow, new: Workflow, today: date) -> list[Finding]:
    """Find what breaks callers between two versions. Findings point into the new one.

    A deprecated part may be removed three months after the date in its description.
    """
    found = _breaks(old, new, today)
    return [
        replace(each, message=f"{each.message} {_MAJOR}") if each.code == "breaking-change" else each for each in found
    ]


def _breaks(old: Workflow, new: Workflow, today: date) -> list[Finding]:
    before, after = old.on.workflow_call, new.on.workflow_call
    if before is None:
        return []
    if after is None:
        message = "The trigger `workflow_call` was removed, so every caller fails. Keep it."
        return [Finding("breaking-change", message, "/on", hint="on:\n  workflow_call:")]
    return [
        *_broken_calls("input", before.inputs, after.inputs, today),
        *_broken_calls("output", before.outputs, after.outputs, today),
        *_broken_calls("secret", before.secrets, after.secrets, today),
        *_changed_inputs(before, after),
        *_unwired_outputs(Wiring(old, {}), Wiring(new, {}), before, after),
        *_more_permissions(old, new),
    ]


def _is_deprecated(part: Input | Output | WorkflowSecret) -> bool:
    """Return whether an input, output or secret is marked as deprecated."""
    return bool(getattr(part, "deprecation_message", "")) or _DEPRECATED.search(_text_of(part)) is not None


def _text_of(part: Input | Output | WorkflowSecret) -> str:
    return f"{getattr(part, 'deprecation_message', '')} {part.description}"


def _after_months(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _deprecated_until(part: Input | Output | WorkflowSecret) -> date | None:
    """Return the day from which a deprecated part may be removed; None without the date of its deprecation."""
    found = _DATE.search(_text_of(part))
    with suppress(ValueError):
        return _after_months(date.fromisoformat(found.group()), _DEPRECATED_MONTHS) if found else None
    return None


def _broken_calls(what: str, before: _Parts, after: _Parts, today: date) -> Iterator[Finding]:
    """Find removed and newly required parts. Names are compared like GitHub does, ignoring case."""
    kept = {name.lower() for name in after}
    path = CALL + pointer(f"{what}s")
    for name, part in before.items():
        if name.lower() in kept:
            continue
        until = _deprecated_until(part) if _is_deprecated(part) else date.max
        if until is None or until <= today:
            since = "" if until else " Its description does not say since when; three months without use come first."
            message = f"The deprecated {what} `{name}` was removed, which breaks callers that use it.{since}"
            yield warning("breaking-change", message, path, hint="Name what replaces it in the migration guide.")
            continue
        message = f"The {what} `{name}` was removed, which breaks callers that use it."
        yield Finding("breaking-change", message, path, hint="Keep it.")
        how = "was never deprecated" if until == date.max else f"may not be removed before {until}"
        message = f"The {what} `{name}` {how}. Keep it and mark it as deprecated for at least three months without use."
        hint = f"{name}:\n  description: 'Deprecated since {today}: use … instead. …'"
        yield Finding("deprecation-missing", message, path, hint=hint)
    needed = {name.lower() for name, part in before.items() if getattr(part, "required", False)}
    for name, part in after.items():
        if getattr(part, "required", False) and name.lower() not in needed:
            message = f"The {what} `{name}` is now required, which breaks callers that leave it out. Make it optional."
            yield Finding("breaking-change", message, path + pointer(name), hint="required: false")


def _changed_inputs(before: WorkflowCall, after: WorkflowCall) -> Iterator[Finding]:
    old_inputs = {name.lower(): given for name, given in before.inputs.items()}
    for name, new in after.inputs.items():
        old = old_inputs.get(name.lower())
        if old is None:
            continue
        path = CALL + pointer("inputs", name)
        if old.type != new.type:
            message = f"The type of the input `{name}` changed from {old.type} to {new.type}. Keep the type."
            yield Finding("breaking-change", message, path + "/type", hint=f"type: {old.type}")
        elif not old.required and not new.required and _default(old) != _default(new):
            message = f"The default of `{name}` changed from {_default(old)!r} to {_default(new)!r}."
            yield Finding("breaking-change", message, path + "/default", hint="Keep the default.")


def _unwired_outputs(old: Wiring, new: Wiring, before: WorkflowCall, after: WorkflowCall) -> Iterator[Finding]:
    """Find outputs that came from the run and no longer do."""
    path = CALL + pointer("outputs")
    values = {name.lower(): given.value for name, given in before.outputs.items()}
    for name, given in after.outputs.items():
        value = values.get(name.lower())
        if value is None or old.break_of(value, path):
            continue
        if found := new.break_of(given.value, path + pointer(name, "value")):
            message = f"The output `{name}` no longer comes from the run: {found.reason}."
            yield Finding("breaking-change", message, found.link.path, hint="Keep its source.")


def _default(given: Input) -> Any:
    return _LEFT_OUT.get(given.type or "", "") if given.default is None else given.default


def _more_permissions(old: Workflow, new: Workflow) -> Iterator[Finding]:
    """Find new permissions: GitHub does not start the workflow for callers that do not grant them."""
    had = highest_levels(*(levels for _, levels, _ in _asked_permissions(old)))
    asked = [each for each in _asked_permissions(new) if each[1]]
    asked.sort(key=lambda each: (len(each[1]), LEVELS.get(next(iter(each[1].values())), 0)), reverse=True)
    for what, levels, path in asked:
        if not all(is_granted(had, *each) for each in levels.items()):
            was = "less" if len(levels) > 1 else f"`{had.get(next(iter(levels)), 'none')}`"
            message = f"A job now needs `{what}` (before: {was}), so it does not start for callers that grant less."
            yield Finding("breaking-change", message, path, hint="Do without it, or release a major version.")
            had = highest_levels(had, levels)


def _asked_permissions(workflow: Workflow) -> Iterator[tuple[str, Mapping[str, str], str]]:
    """Yield what jobs ask for, as written, by scope, and its place. Jobs without permissions have those above."""
    every = [(job.permissions, pointer("jobs", name, "permissions")) for name, job in workflow.jobs.items()]
    if any(given is None for given, _ in every):
        every.append((workflow.permissions, pointer("permissions")))
    for given, place in every:
        if isinstance(given, str):
            yield given, levels_of(given), place
        for scope, level in given.items() if isinstance(given, dict) else ():
            yield f"{scope}: {level}", {scope: level}, place + pointer(scope)
