"""Plan what a patch or a move makes of a task: pure, from the task, the request, and the time.

Source: handoff schema, "Validation Strategy" and "Auditability". A patch is applied whole or not at all. A refused move
changes only ``metadata.workflowRuntime``, the engine's record. Keys of its history identify an action on the same
artifacts, so that an action is done once and a repeated refusal is recorded once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accord.core.clock import exact_time, parse_timestamp
from accord.core.documents import read_object, short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, Severity, finding_of, pointer
from accord.core.frozen import Frozen
from accord.core.shapes import value_at
from accord.core.texts import actor_problem
from accord.handoffs import rules
from accord.handoffs.evidence import future_findings, judged_after, judged_digests, question_digest, verdict_actors
from accord.handoffs.models import (
    Handoff,
    Metadata,
    as_patch,
    has_task_id,
    is_task_store,
    normalise,
    read_handoff,
    written_id,
)
from accord.handoffs.stages import AWAITING, HANDOFF, gate_findings

ACTIONS = {
    "planning": "dispatch_planner",
    "implementing": "dispatch_developer",
    "review": "dispatch_reviewer",
    "verification": "dispatch_tester",
    "awaiting_human": "ask_human",
    "done": "dispatch_retrospective",
}
"""The action that each status requires; backlog and cancelled require none."""

_DIGEST_CHARS = 16
_LEAVE = "Leave it, or run `accord handoff move TASK.json --to STATUS --role ROLE --patch PATCH.json`."


class Author(Frozen):
    """The author of a request: role, time (ISO-8601) and id. Raises BrokenContract for an id that is not a name."""

    role: str
    at: str
    actor: str = ""

    def __post_init__(self) -> None:
        if self.actor and (problem := actor_problem(self.actor)):
            raise BrokenContract.of(finding_of("actor-invalid", problem))

    @property
    def name(self) -> str:
        """The actor's id; the role without one."""
        return self.actor or self.role


class HandoffDecision(Frozen):
    """The task after a request, the reasons against it, and whether it moved to awaiting_human instead.

    ``blames_patch`` tells that the reasons are about the patch; ``warnings`` stop nothing.
    """

    task: dict[str, Any]
    reasons: tuple[Finding, ...] = ()
    is_redirected: bool = False
    blames_patch: bool = False
    warnings: tuple[Finding, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether the request was fulfilled, now or before."""
        return self.is_redirected or not self.reasons

    @property
    def status(self) -> str:
        """The status of the task."""
        return str(self.task["status"])


def with_task_id(task: Mapping[str, Any], task_id: str) -> dict[str, Any]:
    """Return the task with an id: its own if that is valid."""
    return dict(task) if has_task_id(task) else _with_metadata(task, canonicalTaskId=task_id)


def decide_with_id(
    task: dict[str, Any], decide: Callable[[dict[str, Any]], HandoffDecision], new_id: Callable[[], str]
) -> HandoffDecision:
    """Decide about a task, which gets an id with its first change: the one that the change brings, else a new one."""
    decision = decide(task)
    if has_task_id(task) or not decision.is_ok or decision.task == task:
        return decision
    task_id = written_id(with_task_id(decision.task, rules.own_id(task) or new_id()))
    warnings = rules.task_id_findings(written_id(task), f"{task_id} replaces it; correct what refers to the old one.")
    return replace(decide(with_task_id(task, task_id)), warnings=tuple(warnings))


def _with_metadata(task: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {**task, "metadata": {**task["metadata"], **changes}}


def decide_patch(
    task: Mapping[str, Any], patch: Mapping[str, Any], author: Author, target: str = ""
) -> HandoffDecision:
    """Merge a patch into a normalised task. With any reason against it the task stays as it is.

    ``target`` is the status that the same command moves to; the patch may name it. Without a move, the artifacts of the
    task's status must stay.
    """
    if is_task_store(patch) and "metadata" not in patch:
        message, hint = "This is a store of tasks, not a patch of one.", "Copy the parts of the task into a file."
        return _without_patch(task, [Finding("not-a-handoff", message, "/tasks", hint=hint)])
    wanted = as_patch({"metadata": patch} if rules.is_of_metadata(patch, task) else patch)
    if reasons := [*rules.patch_findings(wanted, task, target)]:
        return _without_patch(task, reasons)
    wanted.pop("status", None)
    try:
        merged = _with_patch(task, wanted)
    except BrokenContract as broken:
        return _without_patch(task, broken.findings)
    counted, merged = _without_withdrawn(task, merged, wanted)
    merged, reasons = _with_new_question(task, merged, wanted, author)
    before, after, now = read_handoff(task), read_handoff(merged), parse_timestamp(author.at)
    digests, actors = judged_digests(before.metadata), verdict_actors(before.metadata)
    changes = list(rules.field_changes(counted, merged))
    given = rules.given_verdicts(wanted, author.role, author.name)
    record = _verdict_record(before.metadata, after.metadata, [one[-1] for one in given], author.name)
    own = [location for location in changes if location not in rules.REVIEW_REFERENCES]
    own += [one for one in given if (digests.get(one[-1]), actors[one[-1]]) != (record["judged"][one[-1]], author.name)]
    touched = [one for one in rules.ARTIFACTS if any(rules.is_within(location, one) for location in own)]
    reasons += [*rules.role_findings(author.role, changes), *rules.mutability_findings(task, merged, changes)]
    reasons += _author_findings(wanted, touched, author)
    known = future_findings(before.metadata, now)
    reasons += [found for found in future_findings(after.metadata, now) if found not in known]
    stays = target in ("", task["status"])
    if stays:
        reasons += [*_removal_findings(before, merged, after), *rules.done_findings(task, merged)]
    runtime = runtime_of(merged)
    runtime_changes: dict[str, Any] = {key: value for key, value in record.items() if value != (runtime.get(key) or {})}
    if reasons or not (changes or (given and runtime_changes)):
        return _without_patch(task, reasons)
    runtime_changes |= ({"blockingReasons": []} if stays else {}) | rules.work_record(runtime, changes, author.name)
    if runtime | runtime_changes != runtime:
        merged = with_runtime(merged, runtime | runtime_changes)
    return HandoffDecision(_with_stamps(merged, wanted, touched, author))


def _with_patch(task: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task with the patch; it keeps its id. Raises BrokenContract where that is not a handoff."""
    merged = normalise(rules.merge_patch(task, patch))
    if has_task_id(task) and isinstance(merged["metadata"], dict):  # null in a patch removes none
        merged = with_task_id(merged, task["metadata"]["canonicalTaskId"])
    read_handoff(merged)
    read_object(json.dumps(merged).encode())  # the limits of documents
    return merged


def _without_withdrawn(
    task: Mapping[str, Any], merged: dict[str, Any], patch: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both tasks without a verdict whose superseded artifact comes back: only who may gives it again."""
    counted = dict(task)
    for verdict in rules.VERDICTS:
        is_withdrawn, stays = (value_at(one, (*verdict[:-1], "status")) == "superseded" for one in (task, merged))
        if is_withdrawn and not stays:
            counted = _with_value(counted, verdict, None)
            is_gone = value_at(merged, verdict) and not value_at(patch, verdict)
            merged = _with_value(merged, verdict, None) if is_gone else merged
    return counted, merged


def _verdict_record(before: Metadata, after: Metadata, given: Sequence[str], name: str) -> dict[str, dict[str, str]]:
    """Return which work each verdict judges, and who gave it last, after a change that gives some of them."""
    judged, actors = judged_after(before, after, given), verdict_actors(before) | dict.fromkeys(given, name)
    return {"judged": judged, "judgedBy": {verdict: name for verdict, name in actors.items() if verdict in judged}}


def _without_patch(task: Mapping[str, Any], reasons: Sequence[Finding]) -> HandoffDecision:
    return HandoffDecision(dict(task), tuple(reasons), blames_patch=bool(reasons))


def decide_move(
    task: Mapping[str, Any],
    target: str,
    author: Author,
    patch: Mapping[str, Any] | None = None,
    *,
    redirects: bool = False,
) -> HandoffDecision:
    """Move a task, after an optional patch. ``redirects`` asks a person where an artifact is missing."""
    patched = decide_patch(task, patch, author, target) if patch else HandoffDecision(dict(task))
    if patched.reasons:
        return replace(patched, task=with_refusal(task, target, author.at, patched.reasons))
    now = patched.task
    if now["status"] == target:
        return patched
    at = parse_timestamp(author.at)
    if target in HANDOFF.targets(now["status"]):
        reasons = gate_findings(now["status"], target, read_handoff(now).metadata, at)
    else:
        refusal = HANDOFF.refusal(now["status"], target, None)
        reasons = [finding_of("invalid-status-transition", refusal, "/status")]
    if not reasons:
        return HandoffDecision(with_move(now, target, author.at))
    entered = [entry.get("actionType") for entry in runtime_of(now)["actionHistory"] if _is_entering(entry)]
    if redirects and entered[-1:] == [f"redirect:{target}"] and now["status"] == AWAITING:
        reasons = gate_findings(AWAITING, target, read_handoff(now).metadata, at) or reasons
    is_missing = any(reason.code.startswith("missing-") for reason in reasons)
    can_wait = target != AWAITING and AWAITING in (now["status"], *HANDOFF.targets(now["status"]))
    if redirects and is_missing and can_wait:
        return HandoffDecision(_with_a_person(task, now, target, reasons, author), tuple(reasons), is_redirected=True)
    return HandoffDecision(with_refusal(task, target, author.at, reasons), tuple(reasons))


def _with_a_person(
    before: Mapping[str, Any], task: dict[str, Any], target: str, reasons: list[Finding], author: Author
) -> dict[str, Any]:
    if task["status"] != AWAITING:
        return with_move(_with_question(task, target, reasons, author), AWAITING, author.at, reasons, wanted=target)
    question = before["metadata"].get("awaitingHumanArtifact")
    waiting = _with_metadata(task, awaitingHumanArtifact=question) if question else task
    is_recorded = runtime_of(task)["blockingReasons"] == [as_reason(reason) for reason in reasons]
    return waiting if is_recorded else with_refusal(waiting, target, author.at, reasons)


def _with_question(task: Mapping[str, Any], target: str, reasons: list[Finding], author: Author) -> dict[str, Any]:
    missing, source = " ".join(reason.text for reason in reasons), task["status"]
    back = source if source in HANDOFF.targets(AWAITING) else "implementing"
    on = target if target in HANDOFF.targets(AWAITING) else f"review, and from there to {target}"
    label = f"Go back to {back}"
    options = {
        label: f"Move the task to {back} and add the missing parts there.",
        "Add it by hand": f"A person adds the missing parts, then moves the task to {on}.",
        "Cancel the task": "Move the task to cancelled.",
    }
    question = {
        "question": f"The task cannot go from {source} to {target}. {missing} How should it continue?",
        "options": [{"label": label, "description": description} for label, description in options.items()],
        "recommendedOption": label,
        "requestedAt": author.at,
        "status": "complete",
        "updatedAt": author.at,
        "updatedBy": "accord",
    }
    return _with_metadata(task, awaitingHumanArtifact=question)


def _removal_findings(before: Handoff, task: Mapping[str, Any], after: Handoff) -> list[Finding]:
    """Find what the task's status rests on and the patch takes away; what was missing before does not count."""
    judged = judged_after(before.metadata, after.metadata, ())
    known = [*rules.status_findings(before)]
    found = rules.status_findings(read_handoff(with_runtime(task, {**runtime_of(task), "judged": judged})))
    rests = f"The status {before.status} requires it."
    return [
        replace(reason, message=f"{reason.message} {rests}", hint=_LEAVE)
        for reason in found
        if reason.severity is Severity.ERROR and reason not in known
    ]


def _author_findings(patch: Mapping[str, Any], artifacts: list[rules.FieldPath], author: Author) -> Iterator[Finding]:
    for location in artifacts:
        named = value_at(patch, (*location, "updatedBy"))
        if not rules.is_empty(named) and named != author.name:
            place = pointer(*location, "updatedBy")
            message = f"{place} is `{short_name(str(named))}`, but `{short_name(author.name)}` writes this patch."
            yield Finding("author-differs", message, place, hint="Remove it, or pass the same `--actor`.")


def _with_new_question(
    task: Mapping[str, Any], merged: dict[str, Any], patch: Mapping[str, Any], author: Author
) -> tuple[dict[str, Any], list[Finding]]:
    """Drop the keys of a replaced question, such as its answer; if it was answered, its time, too, or find it."""
    before, after = (read_handoff(document).metadata for document in (task, merged))
    old, new = before.awaiting_human_artifact, after.awaiting_human_artifact
    if not (old and new) or question_digest(before) == question_digest(after):
        return merged, []
    extra = (new.model_extra or {}).keys() - (value_at(patch, rules.QUESTION) or {}).keys()
    asked = merged["metadata"]["awaitingHumanArtifact"].items()
    merged = _with_metadata(merged, awaitingHumanArtifact={key: value for key, value in asked if key not in extra})
    is_answered = runtime_of(task).get("answered") == question_digest(before)
    if not is_answered or exact_time(old.requested_at) != exact_time(new.requested_at):
        return merged, []
    place = (*rules.QUESTION, "requestedAt")
    message, hint = "The new question has the time of the answered one.", "Write its own, or leave it out."
    found = [Finding("question-time", message, pointer(*place), hint=hint)] if value_at(patch, place) else []
    return _with_value(merged, place, author.at), found


def _with_stamps(
    task: dict[str, Any], patch: Mapping[str, Any], artifacts: list[rules.FieldPath], author: Author
) -> dict[str, Any]:
    """Return the task with time and author in each changed artifact, where the patch does not have them."""
    for location in (one for one in artifacts if isinstance(value_at(task, one), dict)):
        for key, stamp in {"updatedAt": author.at, "updatedBy": author.name}.items():
            if rules.is_empty(value_at(patch, (*location, key))):
                task = _with_value(task, (*location, key), stamp)
    return task


def _with_value(task: dict[str, Any], location: rules.FieldPath, value: Any) -> dict[str, Any]:
    for key in reversed(location):
        value = {key: value}
    return rules.merge_patch(task, value)


def runtime_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engine's record, with all of its keys."""
    empty: dict[str, Any] = {"schemaVersion": "1.0", "lastTransition": None, "nextActions": []}
    return {**empty, "blockingReasons": [], "actionHistory": [], **(task["metadata"].get("workflowRuntime") or {})}


def with_runtime(task: Mapping[str, Any], runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task with this record."""
    return _with_metadata(task, workflowRuntime=dict(runtime))


def _idempotency_key(task: Mapping[str, Any], action: str) -> str:
    metadata = {key: value for key, value in task["metadata"].items() if key != "workflowRuntime"}
    text = json.dumps(metadata, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{metadata.get('canonicalTaskId') or task.get('id') or 'task'}/{task['status']}/{action}/{digest}"


def as_reason(finding: Finding) -> dict[str, str]:
    """Return a finding as a blocking reason; its code has the contract's style, INVALID_STATUS_TRANSITION."""
    return {"code": finding.code.upper().replace("-", "_"), "message": finding.text, "path": finding.path}


def with_move(
    task: Mapping[str, Any], target: str, at: str, reasons: Sequence[Finding] = (), wanted: str = ""
) -> dict[str, Any]:
    """Return the task after a legal move, or after a redirect from ``wanted`` for these ``reasons``."""
    source, action = task["status"], f"redirect:{wanted}" if wanted else f"move:{target}"
    runtime = runtime_of(task)
    leaving = entry_of(task, at, "onExit", action, reasons)
    result = {**task, "status": target}
    if target == "implementing" and (judged := judged_digests(read_handoff(task).metadata)):
        runtime["judged"] = judged  # what the work so far was found to be does not count for its changes
    if source == AWAITING:
        runtime["answered"] = question_digest(read_handoff(task).metadata)
    if "done" in (source, target):
        result["completedAt"] = at if target == "done" else None
    kind = ACTIONS.get(target)  # each entry into a status counts, even where no artifact changed
    times = 1 + sum(_is_entering(entry) and entry["status"] == target for entry in runtime["actionHistory"])
    actions = [{"id": _idempotency_key(result, f"{kind}:{times}"), "type": kind}] if kind else []
    entering = entry_of(result, at, "onEnter", action, next_actions=len(actions))
    changes = {
        "lastTransition": {"from": source, "to": target, "at": at},
        "nextActions": actions,
        "blockingReasons": [as_reason(reason) for reason in reasons],
        "actionHistory": [*runtime["actionHistory"], leaving, entering],
    }
    return with_runtime(result, runtime | changes)


def with_refusal(task: Mapping[str, Any], target: str, at: str, reasons: Sequence[Finding]) -> dict[str, Any]:
    """Return the task with a refused move recorded; once, however often the same is tried in a row."""
    runtime = runtime_of(task)
    entry = entry_of(task, at, "onExit", f"move:{target}", reasons)
    history = runtime["actionHistory"]
    written = [as_reason(reason) for reason in reasons]
    is_known = bool(history) and all(history[-1].get(key) == entry[key] for key in entry if key != "at")
    if is_known and runtime["blockingReasons"] == written:
        return dict(task)
    return with_runtime(task, {**runtime, "blockingReasons": written, "actionHistory": [*history, entry]})


def _is_entering(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry of the history is a move; one with an ``actionId`` is a sent action."""
    return entry["phase"] == "onEnter" and not entry.get("actionId")


def entry_of(
    task: Mapping[str, Any], at: str, phase: str, action: str, reasons: Sequence[Finding] = (), next_actions: int = 0
) -> dict[str, Any]:
    """Return the entry of the history about an action; ``reasons`` are why it was refused."""
    codes = dict.fromkeys(as_reason(reason)["code"] for reason in reasons)
    return {
        "at": at,
        "phase": phase,
        "status": task["status"],
        "result": "error" if reasons else "ok",
        "nextActionCount": next_actions,
        "blockingReasonCount": len(reasons),
        "actionType": action,
        "idempotencyKey": _idempotency_key(task, action),
        **({"error": ", ".join(codes)} if codes else {}),
    }
