"""The rules of a handoff at rest: what its status rests on is there, and its id can be told from others.

Source: handoff schema, "Validation Strategy".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.core.documents import read_object, shown
from accord.core.findings import Finding, pointer, warning
from accord.core.kinds import read_shape
from accord.handoffs.models import TASK_ID, Handoff
from accord.handoffs.stages import gate_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from accord.core.findings import Finding


def read_handoff(task: Mapping[str, Any]) -> Handoff:
    """Read a task. Raises BrokenContract with every place that has not the right form."""
    return read_shape(Handoff, task)


def check_limits(task: Mapping[str, Any]) -> None:
    """Hold a task against the limits of documents, so that what is written can be read again. Raises BrokenContract."""
    read_object(json.dumps(task).encode())


def handoff_findings(handoff: Handoff) -> list[Finding]:
    """Judge a handoff that has the right form.

    Of its status's gate, what is missing is an error: somebody took it away, or wrote the status by hand. A verdict
    that turned since is none: it says where the task goes next.
    """
    findings = gate_findings("", handoff.status, handoff.metadata)
    missing = [finding for finding in findings if finding.code.startswith("missing-")]
    task_id = handoff.metadata.canonical_task_id
    if task_id is not None and not TASK_ID.fullmatch(task_id):
        message = (
            f'"{shown(task_id)}" is no task id. Write T- and five digits or more; else the next write gives a new one.'
        )
        missing.append(warning("task-id-invalid", message, "/metadata/canonicalTaskId"))
    return missing


Place = tuple[str, ...]


class Change(NamedTuple):
    """One place, and the values before and after; None where there is nothing."""

    place: Place
    before: Any
    after: Any


def deep_merged(task: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a patch over a document: objects are merged, key by key; any other value takes the place of the old one."""
    result = dict(task)
    for key, value in patch.items():
        old = result.get(key)
        result[key] = deep_merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def changes(before: Any, after: Any, place: Place = ()) -> Iterator[Change]:
    """Yield every place at which the documents differ, as deep as both are objects or one of them is nothing."""
    if before == after or (is_empty(before) and is_empty(after)):
        return
    if (isinstance(before, dict) or is_empty(before)) and (isinstance(after, dict) or is_empty(after)):
        old, new = before or {}, after or {}
        if isinstance(old, dict) and isinstance(new, dict):
            for key in dict.fromkeys([*old, *new]):
                yield from changes(old.get(key), new.get(key), (*place, key))
            return
    yield Change(place, before, after)


def is_empty(value: Any) -> bool:
    """Tell whether a value says nothing. False and 0 say something."""
    return value is None or value in ({}, [], "")


def value_at(document: Any, place: Place) -> Any:
    """Return what stands at a place; None where nothing does."""
    for key in place:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def lies_in(place: Place, other: Place) -> bool:
    """Tell whether one place is the other or a part of it."""
    return place[: len(other)] == other


def touch(place: Place, other: Place) -> bool:
    """Tell whether one of the places is a part of the other."""
    return lies_in(place, other) or lies_in(other, place)


PLAN: Place = ("metadata", "planningArtifact")
PLANNED: Place = ("metadata", "testingArtifacts", "planned")
REVIEW: Place = ("metadata", "reviewArtifact")
VERIFICATION: Place = ("metadata", "verificationArtifact")
DONE: Place = ("metadata", "doneArtifact")
PLANNER_OUTPUTS = (PLAN, PLANNED)
PLAN_CORE = tuple((*PLAN, key) for key in ("goals", "steps", "risks"))
REVIEW_REFERENCES = tuple((*output, "reviewReferences") for output in PLANNER_OUTPUTS)
"""Where the architect refers to a review in the planner's outputs; lists that only grow."""

ENGINE: tuple[Place, ...] = (("metadata", "workflowRuntime"), ("completedAt",))


@dataclass(frozen=True)
class Role:
    """``closed`` are places that the role must not change, ``open_within`` exceptions inside of these."""

    name: str
    closed: tuple[Place, ...] = ()
    open_within: tuple[Place, ...] = ()

    def may_change(self, place: Place) -> bool:
        """Tell whether the role may change what stands there."""
        if any(lies_in(place, exception) for exception in self.open_within):
            return True
        return not any(touch(place, closed) for closed in self.closed)


ROLES = {
    role.name: role
    for role in (
        Role("planner", (REVIEW, VERIFICATION, DONE)),
        Role("architect", PLANNER_OUTPUTS, REVIEW_REFERENCES),
        Role("tester", PLAN_CORE),
        Role("developer", PLANNER_OUTPUTS),
        Role("reviewer", PLANNER_OUTPUTS),
        Role("retrospective", PLANNER_OUTPUTS),
        Role("human"),
    )
}
"""``human`` is a person who answers or fixes; agents are never given that role."""


def role_findings(role: str, changed: Iterable[Change]) -> Iterator[Finding]:
    """Name each change that the role must not make."""
    for place, _, _ in changed:
        if not ROLES[role].may_change(place):
            yield Finding(
                "role-must-not-write",
                f"The role {role} must not change {pointer(*place)}. Leave it out, or hand it to a role that may.",
                pointer(*place),
            )


def engine_findings(patch: Mapping[str, Any]) -> Iterator[Finding]:
    """Name each of the engine's places that a patch speaks of, even where it would change nothing."""
    for place in ENGINE:
        holder = value_at(patch, place[:-1])
        if isinstance(holder, dict) and place[-1] in holder:
            yield Finding(
                "engine-field",
                f"{pointer(*place)} is kept by the engine and written by no role. Leave it out of the patch.",
                pointer(*place),
            )


TASK_ID_PLACE: Place = ("metadata", "canonicalTaskId")
NOTE: Place = ("metadata", "transitionNote")
IMMUTABLE: tuple[Place, ...] = (
    (*PLAN, "createdAt"),
    ("metadata", "workflow", "branchName"),
    ("metadata", "workflow", "baseBranch"),
)
APPEND_ONLY: tuple[Place, ...] = (
    ("metadata", "reviewArtifact", "changeSummary"),
    ("metadata", "verificationArtifact", "notes"),
    ("metadata", "testingArtifacts", "implemented", "commandsRun"),
    *REVIEW_REFERENCES,
)
WITH_REASON: tuple[Place, ...] = (*PLAN_CORE, PLANNED)
PROGRESS = frozenset({"status", "updatedAt", "updatedBy", "reviewReferences"})
"""Keys of an artifact that say how far it is, and references to it: to change them is not to change the plan."""


def mutability_findings(
    before: Mapping[str, Any], after: Mapping[str, Any], changed: Iterable[Change]
) -> Iterator[Finding]:
    """Name each change that the rules forbid."""
    yield from _immutable(before, after)
    yield from _append_only(before, after)
    needing = [change.place for change in changed if _needs_reason(change)]
    note, old_note = value_at(after, NOTE), value_at(before, NOTE)
    has_reason = isinstance(note, str) and note.strip() not in ("", str(old_note or "").strip())
    for place in () if has_reason else needing:
        yield Finding(
            "transition-note-missing",
            f"{pointer(*place)} is changed without a reason. Say in the same patch, in metadata.transitionNote, why; "
            "the note must differ from the one before.",
            pointer(*place),
        )


def _immutable(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    places = [*IMMUTABLE]
    if TASK_ID.fullmatch(str(value_at(before, TASK_ID_PLACE))):
        places.append(TASK_ID_PLACE)
    for place in places:
        old = value_at(before, place)
        if not is_empty(old) and value_at(after, place) != old:
            yield Finding(
                "immutable-field",
                f"{pointer(*place)} never changes once it is set. Leave it out of the patch.",
                pointer(*place),
            )


def _append_only(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    for place in APPEND_ONLY:
        old, new = value_at(before, place) or [], value_at(after, place) or []
        if new[: len(old)] != old:
            yield Finding(
                "append-only",
                f"{pointer(*place)} only grows: write the {len(old)} entries that are there first, then the new ones.",
                pointer(*place),
            )


def _needs_reason(change: Change) -> bool:
    """Tell whether a change edits what was planned; what was empty is not edited but written for the first time."""
    return (
        not is_empty(change.before)
        and change.place[-1] not in PROGRESS
        and any(lies_in(change.place, place) or lies_in(place, change.place) for place in WITH_REASON)
    )
