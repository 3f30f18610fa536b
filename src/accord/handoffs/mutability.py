"""What of a handoff never changes, what only grows, and what changes only with a reason.

Source: handoff schema, "Mutability Rules"; the tables are these rules. They bind every role, people too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.handoffs.changes import is_empty, lies_in, value_at
from accord.handoffs.normal import TASK_ID
from accord.handoffs.roles import PLAN, PLAN_CORE, PLANNED, REVIEW_REFERENCES
from accord.kernel.findings import Finding, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from accord.handoffs.changes import Change, Place

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
