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
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.workflows.models import LEVELS, Input, Output, Workflow, WorkflowSecret
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
    before, after = old.on.workflow_call, new.on.workflow_call
    if before is None:
        return []
    if after is None:
        message = "The trigger `workflow_call` was removed, so every caller fails. Keep it."
        return [Finding("breaking-change", f"{message} {_MAJOR}", "/on", hint="on:\n  workflow_call:")]
    found = [
        *_broken_calls("input", before.inputs, after.inputs, today),
        *_broken_calls("output", before.outputs, after.outputs, today),
        *_broken_calls("secret", before.secrets, after.secrets, today),
        *_changed_inputs(before.inputs, after.inputs),
        *_unwired_outputs(Wiring(old, {}), Wiring(new, {}), before.outputs, after.outputs),
        *_more_permissions(old, new),
    ]
    return [
        replace(each, message=f"{each.message} {_MAJOR}") if each.code == "breaking-change" else each for each in found
    ]


def _removable_from(part: Input | Output | WorkflowSecret) -> date | None:
    """Return the day from which a part may be removed that is deprecated; None if no text of it has a date."""
    found = _DATE.search(f"{getattr(part, 'deprecation_message', '')} {part.description}")
    with suppress(ValueError):
        since = date.fromisoformat(found.group() if found else "")
        year, month = divmod(since.year * 12 + since.month - 1 + _DEPRECATED_MONTHS, 12)
        return date(year, month + 1, min(since.day, monthrange(year, month + 1)[1]))
    return None


def _broken_calls(what: str, before: _Parts, after: _Parts, today: date) -> Iterator[Finding]:
    """Find removed and newly required parts. Names are compared like GitHub does, ignoring case."""
    kept, path = {name.lower() for name in after}, CALL + pointer(f"{what}s")
    for name, part in before.items():
        if name.lower() in kept:
            continue
        is_deprecated = getattr(part, "deprecation_message", "") or _DEPRECATED.search(part.description)
        until = _removable_from(part)
        removed = f"{what} `{name}` was removed, which breaks callers that use it."
        if is_deprecated and (until is None or until <= today):
            since = "" if until else " Its description does not say since when; three months without use come first."
            hint = "Name what replaces it in the migration guide."
            yield warning("breaking-change", f"The deprecated {removed}{since}", path, hint=hint)
            continue
        yield Finding("breaking-change", f"The {removed}", path, hint="Keep it.")
        how = f"may not be removed before {until}" if is_deprecated else "was never deprecated"
        message = f"The {what} `{name}` {how}. Keep it and mark it as deprecated for at least three months without use."
        hint = f"{name}:\n  description: 'Deprecated since {today}: use … instead. …'"
        yield Finding("deprecation-missing", message, path, hint=hint)
    needed = {name.lower() for name, part in before.items() if getattr(part, "required", False)}
    for name, part in after.items():
        if getattr(part, "required", False) and name.lower() not in needed:
            message = f"The {what} `{name}` is now required, which breaks callers that leave it out. Make it optional."
            yield Finding("breaking-change", message, path + pointer(name), hint="required: false")


def _changed_inputs(before: Mapping[str, Input], after: Mapping[str, Input]) -> Iterator[Finding]:
    old_inputs = {name.lower(): given for name, given in before.items()}
    for name, new in after.items():
        if (old := old_inputs.get(name.lower())) is None:
            continue
        path = CALL + pointer("inputs", name)
        defaults = [_LEFT_OUT.get(each.type or "", "") if each.default is None else each.default for each in (old, new)]
        if old.type != new.type:
            message = f"The type of the input `{name}` changed from {old.type} to {new.type}. Keep the type."
            yield Finding("breaking-change", message, path + "/type", hint=f"type: {old.type}")
        elif not old.required and not new.required and defaults[0] != defaults[1]:
            message = f"The default of `{name}` changed from {defaults[0]!r} to {defaults[1]!r}."
            yield Finding("breaking-change", message, path + "/default", hint="Keep the default.")


def _unwired_outputs(
    old: Wiring, new: Wiring, before: Mapping[str, Output], after: Mapping[str, Output]
) -> Iterator[Finding]:
    """Find outputs that came from the run and no longer do."""
    values = {name.lower(): given.value for name, given in before.items()}
    for name, given in after.items():
        value, path = values.get(name.lower()), CALL + pointer("outputs", name, "value")
        if value is None or old.break_of(value, path):
            continue
        if found := new.break_of(given.value, path):
            message = f"The output `{name}` no longer comes from the run: {found.reason}."
            yield Finding("breaking-change", message, found.link.path, hint="Keep its source.")


def _more_permissions(old: Workflow, new: Workflow) -> Iterator[Finding]:
    """Find new permissions: GitHub does not start the workflow for callers that do not grant them."""
    had = highest_levels(*(levels for _, levels, _ in _asked_permissions(old)))
    asked = [*_asked_permissions(new)]
    asked.sort(key=lambda each: (len(each[1]), LEVELS[next(iter(each[1].values()))]), reverse=True)
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
