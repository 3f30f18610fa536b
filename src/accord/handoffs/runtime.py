"""What the engine keeps of a task in ``metadata.workflowRuntime``: what comes next, why not, and all that was done.

Source: handoff schema, "Auditability". History only grows. A key names the same deed on the same artifacts, so that one
who carries actions out can tell whether this one was done, and a failure that is repeated is written down once.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.core.findings import Finding

ACTIONS = {
    "planning": "dispatch_planner",
    "implementing": "dispatch_developer",
    "review": "dispatch_reviewer",
    "verification": "dispatch_tester",
    "awaiting_human": "ask_human",
    "done": "dispatch_retrospective",
}
"""What each status asks somebody to do; backlog and cancelled ask for nothing."""

_DIGEST_CHARS = 16


def runtime_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of what the engine keeps, with its parts in place."""
    kept = task["metadata"].get("workflowRuntime") or {}
    empty: dict[str, Any] = {"schemaVersion": "1.0", "lastTransition": None, "nextActions": []}
    found = {**empty, "blockingReasons": [], "actionHistory": [], **kept}
    return {**found, "actionHistory": list(found["actionHistory"])}


def with_runtime(task: Mapping[str, Any], runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task with this runtime."""
    return {**task, "metadata": {**task["metadata"], "workflowRuntime": dict(runtime)}}


def idempotency_key(task: Mapping[str, Any], status: str, action: str) -> str:
    """Name a deed: task, status, action and a digest of all artifacts."""
    metadata = {key: value for key, value in task["metadata"].items() if key != "workflowRuntime"}
    text = json.dumps(metadata, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{metadata.get('canonicalTaskId') or 'task'}/{status}/{action}/{digest}"


def as_reason(finding: Finding) -> dict[str, str]:
    """Write a finding as a blocking reason: its code in the contract's style, INVALID_STATUS_TRANSITION."""
    return {"code": reason_code(finding), "message": finding.message, "path": finding.path}


def reason_code(finding: Finding) -> str:
    """Return the code of a finding as reasons spell it."""
    return finding.code.upper().replace("-", "_")


def moved(
    task: Mapping[str, Any], target: str, at: str, reasons: Sequence[Finding] = (), wanted: str = ""
) -> dict[str, Any]:
    """Make a legal move, and write it down; ``reasons`` say why it is a redirect, in place of a move to ``wanted``.

    Entering done sets the task's ``completedAt``, leaving it clears it.
    """
    source, action = task["status"], f"redirect:{wanted}" if wanted else f"move:{target}"
    runtime = runtime_of(task)
    leaving = _entry(task, at, "onExit", source, action, reasons)
    result = {**task, "status": target}
    if target == "done":
        result["completedAt"] = at
    elif source == "done":
        result["completedAt"] = None
    actions = _next_actions(result, runtime["actionHistory"])
    entering = _entry(result, at, "onEnter", target, action, (), len(actions))
    return with_runtime(
        result,
        {
            **runtime,
            "lastTransition": {"from": source, "to": target, "at": at},
            "nextActions": actions,
            "blockingReasons": [as_reason(reason) for reason in reasons],
            "actionHistory": [*runtime["actionHistory"], leaving, entering],
        },
    )


def redirected_to(task: Mapping[str, Any]) -> str:
    """Return where the task was to go when its last move was a redirect; empty when that was none."""
    entries = [entry for entry in runtime_of(task)["actionHistory"] if _is_entering(entry)]
    _, is_redirect, wanted = str(entries[-1].get("actionType")).partition("redirect:") if entries else ("", "", "")
    return wanted if is_redirect else ""


def refused(task: Mapping[str, Any], target: str, at: str, reasons: Sequence[Finding]) -> dict[str, Any]:
    """Write down that a move was refused; once, however often the same is tried in a row."""
    runtime = runtime_of(task)
    entry = _entry(task, at, "onExit", task["status"], f"move:{target}", reasons)
    history = runtime["actionHistory"]
    written = [as_reason(reason) for reason in reasons]
    is_known = bool(history) and all(history[-1].get(key) == entry[key] for key in entry if key != "at")
    if is_known and runtime["blockingReasons"] == written:
        return dict(task)
    return with_runtime(task, {**runtime, "blockingReasons": written, "actionHistory": [*history, entry]})


def _next_actions(task: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """List what the status asks for. Each time it is entered is work of its own, also where no artifact changed."""
    kind = ACTIONS.get(task["status"])
    times = 1 + sum(_is_entering(entry) and entry["status"] == task["status"] for entry in history)
    return [{"id": idempotency_key(task, task["status"], f"{kind}:{times}"), "type": kind}] if kind else []


def _is_entering(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry of the history is a move; one with an ``actionId`` is a call of who comes next."""
    return entry["phase"] == "onEnter" and not entry.get("actionId")


def _entry(
    task: Mapping[str, Any],
    at: str,
    phase: str,
    status: str,
    action: str,
    reasons: Sequence[Finding],
    next_actions: int = 0,
) -> dict[str, Any]:
    entry = {
        "at": at,
        "phase": phase,
        "status": status,
        "result": "error" if reasons else "ok",
        "nextActionCount": next_actions,
        "blockingReasonCount": len(reasons),
        "actionType": action,
        "idempotencyKey": idempotency_key(task, status, action),
    }
    if reasons:
        entry["error"] = ", ".join(dict.fromkeys(map(reason_code, reasons)))
    return entry
