"""What becomes of a task by a patch or a move: pure, from the task, what is asked, and the time.

Source: handoff schema, "Validation Strategy". A patch is merged, judged as a whole, and taken whole or not at all. A
move that is refused changes nothing but what the engine keeps: the reasons, and one line of history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.handoffs.models import TASK_ID, Handoff, Metadata, as_patch, has_task_id, normalised
from accord.handoffs.rules import (
    DONE,
    PLAN,
    PLANNED,
    REVIEW,
    TASK_ID_PLACE,
    VERIFICATION,
    Place,
    changes,
    check_limits,
    deep_merged,
    engine_findings,
    is_empty,
    lies_in,
    mutability_findings,
    read_handoff,
    role_findings,
    value_at,
)
from accord.handoffs.runtime import as_reason, moved, redirected_to, refused, runtime_of
from accord.handoffs.stages import AWAITING, HANDOFF, gate_findings

if TYPE_CHECKING:
    from collections.abc import Mapping

ARTIFACTS: tuple[Place, ...] = (
    PLAN,
    PLANNED,
    ("metadata", "testingArtifacts", "implemented"),
    REVIEW,
    VERIFICATION,
    ("metadata", "awaitingHumanArtifact"),
    DONE,
)
_METADATA_KEYS = {field.alias or name for name, field in Metadata.model_fields.items()} - {"schemaVersion"}
_KEPT_BY_ROLES = _METADATA_KEYS - {field.alias or name for name, field in Handoff.model_fields.items()}


@dataclass(frozen=True)
class Author:
    """Who asks, in which role, and when (ISO-8601)."""

    role: str
    at: str
    actor: str = ""


@dataclass(frozen=True)
class Decided:
    """The task as it should be, why not more came of it, and whether what was asked for was done.

    ``is_redirected``: the task went to awaiting_human instead, as the caller wished.
    """

    task: dict[str, Any]
    reasons: tuple[Finding, ...] = ()
    is_redirected: bool = False

    @property
    def is_ok(self) -> bool:
        """Whether what was asked for was done, or was done before."""
        return self.is_redirected or not self.reasons

    @property
    def status(self) -> str:
        """The status of the task."""
        return str(self.task["status"])


def with_task_id(task: Mapping[str, Any], task_id: str) -> dict[str, Any]:
    """Return the task with an id: its own, if that is one."""
    if has_task_id(task):
        return dict(task)
    return {**task, "metadata": {**task["metadata"], "canonicalTaskId": task_id}}


def decide_patch(task: Mapping[str, Any], patch: Mapping[str, Any], author: Author, target: str = "") -> Decided:
    """Merge a patch into a normalised task. Any reason, and the task stays as it was.

    ``target`` is the status that the same command moves to, which the patch may name. Without a move, what the task's
    status rests on must stay.
    """
    wanted = as_patch(_whole(patch))
    reasons = [*_misplaced(wanted), *_status_findings(task, wanted, target), *engine_findings(wanted)]
    if reasons:
        return Decided(dict(task), tuple(reasons))
    wanted.pop("status", None)
    merged = normalised(deep_merged(task, wanted))
    _keep_task_id(task, merged)
    try:
        read_handoff(merged)
        check_limits(merged)
    except BrokenContract as broken:
        return Decided(dict(task), broken.findings)
    found = list(changes(task, merged))
    reasons = [*role_findings(author.role, found), *mutability_findings(task, merged, found)]
    if target in ("", task["status"]):
        reasons += _taken_away(task, merged)
    if reasons:
        return Decided(dict(task), tuple(reasons))
    return Decided(_stamped(merged, wanted, [change.place for change in found], author) if found else dict(task))


def decide_move(
    task: Mapping[str, Any],
    target: str,
    author: Author,
    patch: Mapping[str, Any] | None = None,
    *,
    redirects: bool = False,
) -> Decided:
    """Move a normalised task to a status, after a patch if there is one.

    ``redirects``: where something is missing for the move, ask a person instead, if the status allows that.
    """
    patched = decide_patch(task, patch, author, target) if patch else Decided(dict(task))
    if patched.reasons:
        return Decided(refused(task, target, author.at, patched.reasons), patched.reasons)
    now = patched.task
    if now["status"] == target:
        return patched
    reasons = _move_findings(now, target)
    if not reasons:
        return Decided(moved(now, target, author.at))
    if redirects and redirected_to(now) == target and now["status"] == AWAITING:
        reasons = gate_findings(AWAITING, target, read_handoff(now).metadata) or reasons
    if redirects and _can_redirect(now["status"], target, reasons):
        return Decided(_with_a_person(task, now, target, reasons, author), tuple(reasons), is_redirected=True)
    return Decided(refused(task, target, author.at, reasons), tuple(reasons))


def _move_findings(task: Mapping[str, Any], target: str) -> list[Finding]:
    source = task["status"]
    if target not in HANDOFF.targets(source):
        refusal = HANDOFF.refusal(source, target, Metadata())
        return [Finding("invalid-status-transition", refusal, "/status")]
    return gate_findings(source, target, read_handoff(task).metadata)


def _can_redirect(source: str, target: str, reasons: list[Finding]) -> bool:
    is_missing = any(reason.code.startswith("missing-") for reason in reasons)
    return is_missing and target != AWAITING and (source == AWAITING or AWAITING in HANDOFF.targets(source))


def _with_a_person(
    before: Mapping[str, Any], task: dict[str, Any], target: str, reasons: list[Finding], author: Author
) -> dict[str, Any]:
    """Ask a person in place of the move. A task that waits for one waits on, with the question it had ``before``."""
    if task["status"] != AWAITING:
        return moved(_with_question(task, target, reasons, author), AWAITING, author.at, reasons, wanted=target)
    question = before["metadata"].get("awaitingHumanArtifact")
    waiting = {**task, "metadata": {**task["metadata"], "awaitingHumanArtifact": question}} if question else task
    is_told = runtime_of(task)["blockingReasons"] == [as_reason(reason) for reason in reasons]
    return waiting if is_told else refused(waiting, target, author.at, reasons)


def _with_question(task: Mapping[str, Any], target: str, reasons: list[Finding], author: Author) -> dict[str, Any]:
    """Write the question that a redirect asks, in place of any older one."""
    missing = " ".join(reason.message for reason in reasons)
    source = task["status"]
    back = source if source in HANDOFF.targets(AWAITING) else "implementing"
    on = target if target in HANDOFF.targets(AWAITING) else f"review, and from there to {target}"
    label = f"Go back to {back}"
    question = {
        "question": f"The task cannot go from {source} to {target}. {missing} What shall happen?",
        "options": [
            {"label": label, "description": f"Move the task to {back} and let what is missing be supplied there."},
            {"label": "Supply it by hand", "description": f"A person adds what is missing, then moves on to {on}."},
            {"label": "Cancel the task", "description": "Move the task to cancelled."},
        ],
        "recommendedOption": label,
        "requestedAt": author.at,
        "status": "complete",
        "updatedAt": author.at,
        "updatedBy": "accord",
    }
    return {**task, "metadata": {**task["metadata"], "awaitingHumanArtifact": question}}


def _whole(patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read a patch that holds artifacts and nothing else as one of the metadata, which is all that it can mean."""
    return {"metadata": patch} if patch and _KEPT_BY_ROLES.issuperset(patch) else patch


def _misplaced(patch: Mapping[str, Any]) -> list[Finding]:
    return [
        Finding("misplaced-artifact", f'"{key}" belongs below "metadata". Move it there.', f"/{key}")
        for key in patch
        if key in _KEPT_BY_ROLES
    ]


def _status_findings(task: Mapping[str, Any], patch: Mapping[str, Any], target: str) -> list[Finding]:
    if "status" not in patch or patch["status"] in (task["status"], target):
        return []
    message = "A patch does not change the status of a task. Use `accord handoff move` with --to."
    return [Finding("status-in-patch", message, "/status")]


def _taken_away(task: Mapping[str, Any], merged: Mapping[str, Any]) -> list[Finding]:
    """Name what the task's status rests on that the patch takes away; what was missing before is no fault of it."""
    status = task["status"]
    known, found = (gate_findings("", status, read_handoff(document).metadata) for document in (task, merged))
    rests = f"The task stands in {status}, which rests on it: move it first, or in the same command."
    return [
        replace(reason, message=f"{reason.message} {rests}")
        for reason in found
        if reason.code.startswith("missing-") and reason not in known
    ]


def _keep_task_id(task: Mapping[str, Any], merged: dict[str, Any]) -> None:
    """Keep the id where a patch brings one that is none."""
    old = value_at(task, TASK_ID_PLACE)
    metadata = merged.get("metadata")
    if isinstance(metadata, dict) and isinstance(old, str) and not has_task_id(merged) and TASK_ID.fullmatch(old):
        metadata["canonicalTaskId"] = old


def _stamped(task: dict[str, Any], patch: Mapping[str, Any], changed: list[Place], author: Author) -> dict[str, Any]:
    """Say in each artifact that changed when and by whom, where the patch does not say it itself."""
    for place in ARTIFACTS:
        artifact = value_at(task, place)
        if isinstance(artifact, dict) and any(lies_in(change, place) for change in changed):
            given = value_at(patch, place) or {}
            stamps = {"updatedAt": author.at, "updatedBy": author.actor or author.role}
            artifact.update({key: stamp for key, stamp in stamps.items() if is_empty(given.get(key))})
    return task
