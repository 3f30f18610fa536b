"""Every reason that a loop gives, in one table: its action, who gives it, and what it means.

A decision is made by ``decided`` alone, so code and documentation cannot say different things.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from accord.loops.models import Decision, LoopName

if TYPE_CHECKING:
    from accord.loops.models import Action

NEEDS_HUMAN = "needs-human"
ALL: tuple[LoopName, ...] = get_args(LoopName)
PULLS: tuple[LoopName, ...] = ("keepalive", "autofix", "bot-comments")
"""The loops that change a pull request which is still open."""

CHECKS: tuple[LoopName, ...] = ("keepalive", "autofix")


PERSONS_STOP = ("paused", "needs-human", "not-enabled", "disabled")
"""Reasons by which a person stops a loop that could go on: a label put on or taken off, or a word in the settings."""


@dataclass(frozen=True)
class Reason:
    """``asks`` says that the label ``needs-human`` is put on."""

    action: Action
    meaning: str
    loops: tuple[LoopName, ...] = ALL
    asks: bool = False


REASONS: dict[str, Reason] = {
    "merged": Reason("stop", "The pull request is merged.", PULLS),
    "closed": Reason("stop", "The pull request is closed.", PULLS),
    "paused": Reason("stop", "It carries `agents:paused`."),
    "needs-human": Reason("stop", "It carries `needs-human`."),
    "not-enabled": Reason("stop", "No label asks for it.", PULLS),
    "disabled": Reason("stop", "The pull request's settings turn it off.", PULLS),
    "fork": Reason("stop", "The branch is in a fork, where the token cannot push.", PULLS),
    "read-only-token": Reason("stop", "The token may not write."),
    "agent-ambiguous": Reason("stop", "Labels ask for several agents of the registry.", asks=True),
    "agent-missing": Reason("stop", "The registry has no enabled agent that may do this.", asks=True),
    "keepalive-in-charge": Reason("stop", "Keepalive works on this pull request and mends its checks.", ("autofix",)),
    "no-tasks": Reason("stop", "The body has no checklist.", ("keepalive",)),
    "tasks-complete": Reason("stop", "Every task is ticked.", ("keepalive",)),
    "running": Reason("wait", "A run is under way."),
    "failure-budget": Reason("stop", "So many runs in a row failed as the budget allows.", asks=True),
    "transient-budget": Reason("stop", "More passing failures in a row than the budget allows.", asks=True),
    "iteration-budget": Reason("stop", "All runs that the budget allows have begun.", asks=True),
    "same-error": Reason("stop", "Two failures came from the same error, without progress between them.", asks=True),
    "no-progress": Reason("stop", "Two runs left files that were seen before, and no task was completed.", asks=True),
    "rate-limit": Reason("defer", "The token has too few requests left."),
    "back-off": Reason("wait", "The last run ended by a failure that should pass; the pause is not over."),
    "stale-checks": Reason("wait", "The checks are those of another commit than the head.", CHECKS),
    "checks-pending": Reason("wait", "Checks of the head are not done.", CHECKS),
    "checks-missing": Reason("wait", "No check has begun for this head yet.", CHECKS),
    "checks-red": Reason("wait", "Checks fail, and the settings turn mending off.", ("keepalive",)),
    "checks-failing": Reason("fix", "Checks of the head fail.", CHECKS),
    "checks-green": Reason("stop", "No check of the head fails.", ("autofix",)),
    "tasks-open": Reason("run", "Tasks are open and no check of the head fails.", ("keepalive",)),
    "retry": Reason("run", "The same, after a failure that should have passed.", ("keepalive",)),
    "threads-open": Reason("run", "Bots wait for answers in review threads.", ("bot-comments",)),
    "no-threads": Reason("stop", "No bot waits for an answer.", ("bot-comments",)),
    "not-merged": Reason("stop", "The pull request is not merged, and nobody asked.", ("verify",)),
    "fork-unmerged": Reason(
        "stop", "It comes from a fork and is not merged, so its code is a stranger's.", ("verify",)
    ),
    "already-verified": Reason("stop", "This very commit has a verdict.", ("verify",)),
    "no-work-item": Reason("stop", "No work item is linked.", ("verify",)),
    "no-criteria": Reason("stop", "No linked work item has acceptance criteria.", ("verify",)),
    "verify-merged": Reason("run", "The pull request is merged.", ("verify",)),
    "verify-asked": Reason("run", "A person asked for it.", ("verify",)),
    "verdict-pass": Reason("report", "Every criterion is met.", ("verify",)),
    "verdict-fail": Reason("follow-up", "Criteria are not met, and the verdict says what is left.", ("verify",)),
    "verdict-unsure": Reason("ask", "The verdict leaves open whether the criteria are met.", ("verify",), asks=True),
    "verdict-missing": Reason("ask", "The run ended without a verdict.", ("verify",), asks=True),
    "verdict-inconsistent": Reason("ask", "The verdict contradicts itself or misses criteria.", ("verify",), asks=True),
    "follow-up-empty": Reason("ask", "Criteria are not met, and the verdict proposes nothing.", ("verify",), asks=True),
    "follow-up-chain": Reason("ask", "The work item is a follow-up itself.", ("verify",), asks=True),
}


def decided(code: str, message: str, **more: Any) -> Decision:
    """Make the decision of a reason; ``more`` are its other fields."""
    reason = REASONS[code]
    if reason.asks:
        more["add_labels"] = (*more.get("add_labels", ()), NEEDS_HUMAN)
    return Decision(action=reason.action, reason=code, message=message, **more)
