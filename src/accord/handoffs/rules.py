"""The rules of a handoff: the artifacts of its status exist, roles change only what they may, and history only grows.

Source: handoff schema, "Validation Strategy".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, get_args

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, Severity, pointer, warning
from accord.core.shapes import value_at
from accord.core.suggest import did_you_mean
from accord.core.texts import is_placeholder
from accord.handoffs.evidence import PROGRESS, future_findings, verdict_actors, workers_of
from accord.handoffs.models import (
    TASK_ID,
    Handoff,
    Metadata,
    has_task_id,
    is_task_store,
    next_task_id,
    read_handoff,
    written_id,
)
from accord.handoffs.stages import GATES, is_from_planning, planner_gate
from accord.text.hidden import comparable_name, strip_hidden


def handoff_findings(handoff: Handoff, now: datetime) -> list[Finding]:
    """Check a handoff that has the required shape.

    Missing artifacts of its status are errors: they were removed, or the status was edited.
    """
    missing, metadata = [*status_findings(handoff)], handoff.metadata
    signed = [*verdict_actors(metadata).values(), *workers_of(metadata)]
    who, verifier, *workers = (comparable_name(name or "") for name in signed)
    if who and who == verifier and who in workers:
        what = f"`{short_name(str(signed[0]))}` wrote the work, the review and the verification."
        hint = "Let another actor review or verify it; `accord handoff gate --independent` requires that."
        missing.append(warning("not-independent", what, "/metadata/reviewArtifact/updatedBy", hint=hint))
    if handoff.status == "implementing" and is_from_planning(handoff.status, metadata):
        missing += [replace(found, severity=Severity.WARNING) for found in planner_gate(metadata)]
    missing += input_findings(metadata)
    missing += [found for found in future_findings(metadata, now) if found not in missing]
    hint = "Use T- and five digits or more, or let the next write replace it."
    missing += task_id_findings(metadata.canonical_task_id, hint)
    return [*missing, *unread_keys(handoff.model_dump(by_alias=True, exclude_unset=True))]


def own_id(task: Mapping[str, Any]) -> str:
    """Return the ``id`` of the document itself, if it has the form of a task's id; else an empty text."""
    return found if isinstance(found := task.get("id"), str) and TASK_ID.fullmatch(found) else ""


def task_id_findings(task_id: object, hint: str) -> Iterator[Finding]:
    """Warn of a malformed id of a task."""
    if task_id is not None and not (isinstance(task_id, str) and TASK_ID.fullmatch(task_id)):
        what = f"`{short_name(str(task_id))}` is not a task id."
        yield warning("task-id-invalid", what, "/metadata/canonicalTaskId", hint=hint)


def store_findings(store: Mapping[str, Any], now: datetime) -> list[Finding] | None:
    """Check each task of a store as a handoff of its own; None for one that is not a store."""
    if not is_task_store(store):
        return None
    tasks = store["tasks"]  # an object has their ids as keys
    entries: list[tuple[Any, Any]] = [*(tasks.items() if isinstance(tasks, dict) else enumerate(tasks))]
    ids = {key: name for key, task in entries if isinstance(name := written_id(task), str) and name}
    holders = {name: key for key, name in reversed(ids.items())}
    holders |= {name: key for key, name in ids.items() if key == name}
    found = []
    for key, task in entries:
        try:
            findings = handoff_findings(read_handoff(task), now)
        except BrokenContract as broken:
            findings = list(broken.findings)
        if key in ids and (first := holders[ids[key]]) != key:
            free = next_task_id(holders)
            holders[free] = key
            what = f"{pointer('tasks', first)} has the id `{short_name(ids[key])}`, too."
            hint = f"Give this task another id, such as {free}."
            findings.append(Finding("task-repeated", what, "/metadata/canonicalTaskId", hint=hint))
        found += [replace(each, path=pointer("tasks", key) + each.path) for each in findings]
    return found


def status_findings(handoff: Handoff) -> Iterator[Finding]:
    """Find what the status of a task rests on and is not there: artifacts, and for a done task also their verdicts.

    A changed verdict about any other task is a warning, since it decides the next move.
    """
    gate = GATES.get(handoff.status)
    for found in gate(handoff.metadata) if gate else ():
        is_error = handoff.status == "done" or found.code.startswith("missing-")
        yield found if is_error else replace(found, severity=Severity.WARNING)


def input_findings(metadata: Metadata) -> Iterator[Finding]:
    """Warn of a verdict without an artifact that its role needs as input: a plan and planned tests, or a review."""
    document = {"metadata": metadata.model_dump(by_alias=True, exclude_unset=True)}
    for verdict, inputs in ((DECISION, PLANNER_OUTPUTS), (RESULT, (PLANNED, REVIEW))):
        for location in inputs if value_at(document, verdict) else ():
            if all(map(is_empty, (value_at(document, location) or {}).values())):
                message = f"`{verdict[-1]}` is given, but {pointer(*location)}, which it judges, is missing."
                yield warning("role-input-missing", message, pointer(*verdict), hint="Let its role write it first.")


FieldPath = tuple[str, ...]

METADATA_KEYS = frozenset(field.alias or name for name, field in Metadata.model_fields.items())
_TASK_KEYS = frozenset(field.alias or name for name, field in Handoff.model_fields.items())
ROLE_KEYS = METADATA_KEYS - _TASK_KEYS - {"schemaVersion"}
"""The keys of artifacts, which belong in the metadata."""


def is_of_metadata(patch: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
    """Tell whether a patch has the form of the metadata: keys that only this has, and none of the document."""
    own = _TASK_KEYS | (task.keys() - ROLE_KEYS)
    return own.isdisjoint(patch) and not METADATA_KEYS.isdisjoint(patch)


def unread_keys(part: Any, known: Any = None, model: Any = Handoff, place: str = "") -> Iterator[Finding]:
    """Warn of artifacts beside the metadata, and of unknown keys near a known one, in a task or a patch.

    Unknown keys that the same part of ``known`` has are kept, in lists those of any entry. ``model`` is the type of the
    part.
    """
    if isinstance(part, list):
        old = known if isinstance(known, list) else []
        kept = {key: value for entry in old if isinstance(entry, dict) for key, value in entry.items()}
        for i, entry in enumerate(part):
            yield from unread_keys(entry, kept, model, place + pointer(i))
    if not isinstance(part, dict):
        return
    model = next((one for one in (model, *get_args(model)) if hasattr(one, "model_fields")), None)
    fields = {field.alias: field.annotation for field in model.model_fields.values()} if model else {}
    kept, keys = known if isinstance(known, dict) else {}, fields.keys() if place else fields.keys() | ROLE_KEYS
    for key, value in part.items():
        if key in fields:
            yield from unread_keys(value, kept.get(key), fields[key], place + pointer(key))
        elif key in keys:
            message = f"`{key}` belongs in `metadata`."
            yield warning("misplaced-artifact", message, pointer(key), hint="Move it there.")
        elif value is not None and key not in kept and (hint := did_you_mean(key, keys)):
            yield warning("key-misspelled", f"Unknown key `{short_name(key)}`.", place + pointer(key), hint=hint)


def merge_patch(task: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a patch into a document: objects key by key; any other value replaces the old one."""
    result = dict(task)
    for key, value in patch.items():
        old = result.get(key)
        result[key] = merge_patch(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def field_changes(before: Any, after: Any, location: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield every location at which the documents differ, as deep as both are objects or one is empty."""
    old, new = ({} if is_empty(value) else value for value in (before, after))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from field_changes(old.get(key), new.get(key), (*location, key))
    elif before != after:
        yield location


def is_empty(value: Any) -> bool:
    """Tell whether a value is null or empty; False and 0 are not."""
    return value is None or value in ({}, [], "")


def is_within(location: FieldPath, other: FieldPath) -> bool:
    """Tell whether a location is another one or part of it."""
    return location[: len(other)] == other


def overlaps(location: FieldPath, other: FieldPath) -> bool:
    """Tell whether one of the locations is part of the other."""
    return is_within(location, other) or is_within(other, location)


PLAN: FieldPath = ("metadata", "planningArtifact")
PLANNED: FieldPath = ("metadata", "testingArtifacts", "planned")
IMPLEMENTED: FieldPath = ("metadata", "testingArtifacts", "implemented")
REVIEW: FieldPath = ("metadata", "reviewArtifact")
VERIFICATION: FieldPath = ("metadata", "verificationArtifact")
DONE: FieldPath = ("metadata", "doneArtifact")
QUESTION: FieldPath = ("metadata", "awaitingHumanArtifact")
ARTIFACTS = (PLAN, PLANNED, IMPLEMENTED, REVIEW, VERIFICATION, QUESTION, DONE)
PLANNER_OUTPUTS = (PLAN, PLANNED)
PLAN_CORE = tuple((*PLAN, key) for key in ("goals", "steps", "risks"))
REVIEW_REFERENCES = tuple((*output, "reviewReferences") for output in PLANNER_OUTPUTS)
"""References of the architect to a review, in the planner's outputs; these lists only grow."""

ENGINE: tuple[FieldPath, ...] = (("metadata", "workflowRuntime"), ("completedAt",))
"""The engine's own fields."""

CHANGED: tuple[FieldPath, ...] = ((*REVIEW, "changeSummary"), (*REVIEW, "filesTouched"))
DECISION: FieldPath = (*REVIEW, "decision")
RESULT: FieldPath = (*VERIFICATION, "result")
VERDICTS = (DECISION, RESULT)

ROLES: Mapping[str, tuple[FieldPath, ...]] = {
    "planner": (REVIEW, VERIFICATION, DONE),
    "architect": (*PLANNER_OUTPUTS, RESULT),
    "tester": (*PLAN_CORE, DECISION),
    "developer": (*PLANNER_OUTPUTS, DECISION, RESULT),
    "reviewer": (*PLANNER_OUTPUTS, RESULT),
    "retrospective": (*PLANNER_OUTPUTS, DECISION, RESULT),
    "human": (),
}
"""The locations that each role must not change. ``human`` is a person; agents never get that role.

Only who judges writes a verdict: ``decision`` or ``result``.
"""


def work_record(runtime: Mapping[str, Any], changes: Iterable[FieldPath], name: str) -> dict[str, list[str]]:
    """Return the record of who wrote the changes, after an author changed a part of them; else nothing."""
    is_work = any(overlaps(location, part) for location in changes for part in CHANGED)
    return {"workedBy": [*dict.fromkeys([*runtime.get("workedBy", ()), name])]} if is_work else {}


def may_change(role: str, location: FieldPath) -> bool:
    """Tell whether a role may change a location; the architect also adds references to its review."""
    if role == "architect" and any(is_within(location, references) for references in REVIEW_REFERENCES):
        return True
    return not any(overlaps(location, closed) for closed in ROLES[role])


def given_verdicts(patch: Mapping[str, Any], role: str, name: str) -> list[FieldPath]:
    """Return the verdicts that a patch gives, also again; those in an artifact that another signs come back as such."""
    signers = {
        verdict: value_at(patch, (*verdict[:-1], "updatedBy")) for verdict in VERDICTS if value_at(patch, verdict)
    }
    return [one for one, signer in signers.items() if may_change(role, one) and (is_empty(signer) or signer == name)]


def role_findings(role: str, changed: Iterable[FieldPath]) -> Iterator[Finding]:
    """Find changes that the role must not make."""
    for location in changed:
        if not may_change(role, location):
            what = f"is not writable for the role {role}."
            yield _finding("role-must-not-write", location, what, "Remove it, or pass another `--role`.")


def _finding(code: str, location: FieldPath, what: str, hint: str) -> Finding:
    return Finding(code, f"{pointer(*location)} {what}", pointer(*location), hint=hint)


def patch_findings(patch: Mapping[str, Any], task: Mapping[str, Any], target: str) -> Iterator[Finding]:
    """Find keys of a patch that no role writes: misspelt ones, a malformed id, the status, and those of the engine."""
    hint = "Use T- and five digits or more, or leave it out."
    ids = task_id_findings(written_id(patch), hint) if written_id(patch) != written_id(task) else ()
    for found in (*unread_keys(patch, task), *ids):
        yield replace(found, severity=Severity.ERROR)
    if "status" in patch and patch["status"] not in (task["status"], target):
        message = "A patch cannot change the status of a task."
        yield Finding("status-in-patch", message, "/status", hint="Use `accord handoff move` with `--to STATUS`.")
    for location in ENGINE:
        holder = value_at(patch, location[:-1])
        if isinstance(holder, dict) and holder.get(location[-1], known := value_at(task, location)) != known:
            message, hint = (
                f"{pointer(*location)} belongs to the engine; no role writes it.",
                "Remove it from the patch.",
            )
            yield Finding("engine-field", message, pointer(*location), hint=hint)


TASK_ID_LOCATION: FieldPath = ("metadata", "canonicalTaskId")
NOTE: FieldPath = ("metadata", "transitionNote")
IMMUTABLE: tuple[FieldPath, ...] = (
    (*PLAN, "createdAt"),
    ("metadata", "workflow", "branchName"),
    ("metadata", "workflow", "baseBranch"),
)
APPEND_ONLY: tuple[FieldPath, ...] = (
    (*REVIEW, "changeSummary"),
    (*VERIFICATION, "notes"),
    (*IMPLEMENTED, "commandsRun"),
    *REVIEW_REFERENCES,
)
WITH_REASON: tuple[FieldPath, ...] = (*PLAN_CORE, PLANNED)


def mutability_findings(
    before: Mapping[str, Any], after: Mapping[str, Any], changed: Iterable[FieldPath]
) -> Iterator[Finding]:
    """Find changes of fields that are immutable, only grow, or need a reason."""
    for location in (*IMMUTABLE, *((TASK_ID_LOCATION,) if has_task_id(before) else ())):
        old = value_at(before, location)
        if not is_empty(old) and value_at(after, location) != old:
            yield _finding("immutable-field", location, "is immutable once set.", "Remove it from the patch.")
    for location in APPEND_ONLY:
        old, new = value_at(before, location) or [], value_at(after, location) or []
        if new[: len(old)] != old:
            hint = f"Keep its {len(old)} entries in front, then add the new ones."
            yield _finding("append-only", location, "only grows.", hint)
    note, old_note = value_at(after, NOTE), value_at(before, NOTE)
    has_reason = isinstance(note, str) and note.strip() not in ("", str(old_note or "").strip())
    has_reason = has_reason and not is_placeholder(strip_hidden(str(note)))
    planned = [(*PLANNED, key) for key in value_at(before, PLANNED) or () if key not in PROGRESS]
    for location in changed:
        is_edit = location[-1] not in PROGRESS and any(overlaps(location, part) for part in WITH_REASON)
        parts = PLAN_CORE if overlaps(location, PLAN) else planned  # their first content is not an edit
        if is_edit and not has_reason and not all(is_empty(value_at(before, part)) for part in parts):
            hint = "Add a new reason as metadata.transitionNote to the same patch."
            yield _finding("transition-note-missing", location, "changes without a reason.", hint)


def done_findings(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    """Find values that the status of a done task rests on and a patch replaces, not those that it takes away."""
    old, new = ({} if document["status"] != "done" else value_at(document, DONE) or {} for document in (before, after))
    time, summary = old.get("completedAt"), old.get("summary") or []
    if not is_empty(time) and new.get("completedAt") not in (None, time):
        what = "stays as it is while the task is done."
        yield _finding("immutable-field", (*DONE, "completedAt"), what, "Remove it from the patch.")
    if (new.get("summary") or summary)[: len(summary)] != summary:
        hint = f"Keep its {len(summary)} entries in front, then add the new ones."
        yield _finding("append-only", (*DONE, "summary"), "only grows while the task is done.", hint)
