"""The next actor on a work item and its pull request. Status, results, starts and loops judge by it. Pure.

A fact that is None was not read, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from accord.core.frozen import Frozen
from accord.github.models import Pull
from accord.text.markers import REVISION, find_markers

Who = Literal["person", "agent", "github", "blockers", "no one"]

OwnerReason = Literal[
    "done", "status-unclear", "decision", "question", "blocked", "not-ready", "ready", "in-progress", "no-pull",
    "not-closing", "reopened", "merged-elsewhere", "pull-closed",  # of an item
    "merged", "item-closed", "held", "checks-pending", "inconclusive", "failing", "conflict", "changes-requested",
    "draft", "merge", "merge-unknown", "locked", "agent-works", "review-due",  # of a pull request
]  # fmt: skip

_OTHERS: dict[OwnerReason, Who] = {
    **dict.fromkeys(("done", "merged"), "no one"),
    **dict.fromkeys(("checks-pending", "merge-unknown"), "github"),
    **dict.fromkeys(("ready", "in-progress", "agent-works", "review-due"), "agent"),
    "blocked": "blockers",
}
"""The reasons for which it is not a person."""

_AGENTS: tuple[OwnerReason, ...] = ("failing", "conflict", "changes-requested", "draft")
"""Reasons that are an agent's where a label says that it goes on with the pull request."""


class Owner(Frozen):
    """The next actor and the reason; ``pull`` is the pull request that it is about, 0 without one."""

    who: Who
    reason: OwnerReason
    pull: int = 0


class ItemState(Frozen):
    """A work item as far as it decides."""

    is_open: bool
    status: str | None = None  # None where its labels do not give exactly one
    is_refinement: bool = False
    open_blockers: int = 0
    is_running: bool | None = None  # an agent's run on it goes on


class PullState(Frozen):
    """A pull request as far as it decides."""

    number: int
    state: Literal["open", "merged", "closed"] = "open"
    closes: bool = True  # its body closes the item
    is_main: bool | None = True  # its base is the default branch, where GitHub closes items at the merge
    is_draft: bool = False
    is_locked: bool = False
    is_mergeable: bool | None = None
    has_agent: bool = False  # a label says that an agent goes on with it
    review: Literal["", "approved", "changes-requested"] = ""  # the verdict on its head


def items_of_result(body: str) -> list[int]:
    """Return the item for which a result opened a pull request, by the marker in its body."""
    found = (fields.get("item", "") for fields in find_markers(body, REVISION))
    return [int(item) for item in found if item.isdecimal()]


def clear_status(labels: Iterable[str]) -> str | None:
    """Return the status that labels name; None unless exactly one does."""
    parts = (label.lower().partition(":") for label in labels)
    named = [value for prefix, _, value in parts if prefix.strip() == "status"]
    return named[0] if len(named) == 1 else None


def pull_state(pull: Pull, *, closes: bool = True) -> PullState:
    """Return what decides of a pull request, without its labels and reviews."""
    state: Literal["open", "merged", "closed"] = "open" if pull.state == "open" else "closed"
    is_main = pull.base_branch == (pull.default_branch or pull.base_branch)
    return PullState(
        pull.number,
        "merged" if pull.is_merged else state,
        closes,
        is_main,
        pull.is_draft,
        pull.is_locked,
        pull.is_mergeable,
    )


def owner_of(item: ItemState | None, pull: PullState | None, checks: OwnerReason | None = None) -> Owner:
    """Return who acts next, on the pull request alone without an item; ``checks`` is the reason of its checks."""
    reason = _reason_of(item, pull, checks)
    is_agents = pull is not None and pull.has_agent and reason in _AGENTS
    return Owner("agent" if is_agents else _OTHERS.get(reason, "person"), reason, pull.number if pull else 0)


def unclosed_text(owner: Owner, number: int) -> str:
    """Return why no open pull request closes an item after its work, as the end of a sentence."""
    text = "no open pull request closes it"
    texts: dict[OwnerReason, str] = {
        "no-pull": f"{text}, and #{owner.pull} was merged" if owner.pull else text,
        "not-closing": f"{text}, as #{owner.pull} does not have the words `Closes #{number}`",
        "reopened": f"it was opened again after the merge of #{owner.pull}",
        "merged-elsewhere": f"{text}, and the merge of #{owner.pull} did not. GitHub closes "
        "items at merges into the default branch",
        "pull-closed": f"{text}, and #{owner.pull} was closed",
    }
    return texts.get(owner.reason, text)


def next_statuses(owner: Owner, status: str | None) -> tuple[str, ...]:
    """Return the statuses to which a person moves such an item, in order; none leads back from approved."""
    if owner.reason == "merged-elsewhere":
        return ("review", "approved", "closed")[{"in-progress": 0, "approved": 2}.get(status or "", 1) :]
    return () if status == "approved" else ("pending",)


def is_over(pull: PullState) -> bool:
    """Return whether a pull request has ended: nothing is applied to it, and no review approves it."""
    return pull.state != "open"


def _reason_of(item: ItemState | None, pull: PullState | None, checks: OwnerReason | None) -> OwnerReason:
    is_open = pull is not None and pull.state == "open"
    if item is not None and not item.is_open:
        return "item-closed" if is_open else "done"
    has_work = item is None or item.status in ("in-progress", "review", "approved", "needs-refinement")
    if pull is not None and is_open and (item is None or pull.closes) and has_work:
        return checks or _reason_of_open(pull)
    if item is None:
        return "pull-closed" if pull and pull.state == "closed" else "merged"
    if item.status is None:
        return "status-unclear"
    if item.status in ("blocked", "needs-refinement"):
        return "decision"
    if item.is_refinement:
        return "question"
    if item.status in ("pending", "ready"):
        ready: OwnerReason = "ready" if item.status == "ready" else "not-ready"
        return "blocked" if item.open_blockers else ready
    return _reason_after_work(item, pull)


def _reason_after_work(item: ItemState, pull: PullState | None) -> OwnerReason:
    """Return why an item is where it is that no open pull request closes."""
    is_closed = pull is not None and pull.state == "closed"
    if item.status == "in-progress" and item.is_running is not False and not is_closed:
        return "in-progress"
    if pull is None:
        return "no-pull"
    if pull.state == "open":
        return "not-closing"
    if pull.state == "closed":
        return "pull-closed"
    if pull.is_main is False or not pull.closes:
        return "merged-elsewhere"
    return "reopened" if pull.is_main else "no-pull"


def _reason_of_open(pull: PullState) -> OwnerReason:
    if pull.is_mergeable is False:
        return "conflict"
    if pull.review == "changes-requested":
        return "changes-requested"
    if pull.is_draft:
        return "draft"
    if pull.review == "approved":
        return "merge" if pull.is_mergeable else "merge-unknown"
    if pull.is_locked:
        return "locked"
    return "agent-works" if pull.has_agent else "review-due"


def reason_of_checks(
    held: Sequence[object], pending: Sequence[object], failing: Sequence[object], inconclusive: Sequence[object]
) -> OwnerReason | None:
    """Return why checks decide; None where all that ran have passed. An agent only works on failing ones."""
    if held:
        return "held"
    if pending:
        return "checks-pending"
    if failing:
        return "failing"
    return "inconclusive" if inconclusive else None
