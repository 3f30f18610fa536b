"""Calling who comes next: each open action of a task becomes an event that starts a workflow.

An action has an id that is the same for the same work. What was sent is written into the history and not sent again; a
run that dies between the two sends it once more under the same id, by which the workflow that is started can tell.
An error that should pass is waited for, three times; one that will not pass is written down and never tried again by
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.handoffs.plan import Decided
from accord.handoffs.runtime import runtime_of, with_runtime
from accord.kernel.errors import AccordError, Refused, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from accord.kernel.clock import Clock

EVENT = "accord-handoff"
WAITS_SECONDS = (5.0, 15.0, 30.0)


@dataclass(frozen=True)
class Sent:
    """What became of one action. ``error`` is None where it was sent."""

    id: str
    type: str
    error: AccordError | None = None


def open_actions(task: Mapping[str, Any], *, again: bool = False) -> list[dict[str, Any]]:
    """List the actions that were not sent. ``again``: those too that were refused for good."""
    runtime = runtime_of(task)
    ended = {
        entry.get("actionId")
        for entry in runtime["actionHistory"]
        if entry.get("result") == "ok" or (entry.get("isTransient") is False and not again)
    }
    return [action for action in runtime["nextActions"] if action["id"] not in ended]


def payload_of(task: Mapping[str, Any], action: Mapping[str, Any], number: int | None) -> dict[str, Any]:
    """Write what the workflow is told. Texts of the handoff are not in it: the workflow reads these where they are."""
    return {
        "id": action["id"],
        "type": action["type"],
        "task": task["metadata"].get("canonicalTaskId", ""),
        "status": task["status"],
        "issue": number,
    }


def deliver(action: Mapping[str, Any], send: Callable[[], None], clock: Clock) -> Sent:
    """Send, and wait for an error that should pass: 5, 15 and 30 seconds. Never raises what GitHub answers."""
    for wait in (*WAITS_SECONDS, None):
        try:
            send()
        except Stopped as stopped:
            if wait is None:
                return Sent(action["id"], action["type"], stopped)
            clock.sleep(wait)
        except Refused as refused:
            return Sent(action["id"], action["type"], refused)
        else:
            break
    return Sent(action["id"], action["type"])


def recorded(task: dict[str, Any], sent: Sent, at: str) -> Decided:
    """Write down what became of an action; once, if it was sent."""
    runtime = runtime_of(task)
    history = runtime["actionHistory"]
    if any(entry.get("actionId") == sent.id and entry.get("result") == "ok" for entry in history):
        return Decided(task)
    entry: dict[str, Any] = {
        "at": at,
        "phase": "onEnter",
        "status": task["status"],
        "result": "error" if sent.error else "ok",
        "nextActionCount": len(runtime["nextActions"]),
        "blockingReasonCount": 0,
        "actionId": sent.id,
        "actionType": sent.type,
        "idempotencyKey": sent.id,
    }
    if sent.error:
        entry |= {"error": sent.error.message, "isTransient": isinstance(sent.error, Stopped)}
    return Decided(with_runtime(task, {**runtime, "actionHistory": [*history, entry]}))
