"""The overview of work items and pull requests: one entry each, in the section that says who is next. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from accord.board.handoffs import place_item_handoff
from accord.board.models import Entry, overview_from
from accord.core.clock import time_of
from accord.loops.models import NEEDS_HUMAN, REASONS
from accord.loops.questions import KEEPALIVE
from accord.results.labels import Category, ItemKind, in_category, kind_of
from accord.results.status import is_work_item, status_if_clear
from accord.starts.models import ACTIVE, PLAN_LABEL

if TYPE_CHECKING:
    from datetime import datetime

    from accord.board.models import BoardItem, BoardPull, BoardRepository, EntryKind, NeedKind, Overview, Placed
    from accord.github.checks import CheckState
    from accord.github.models import Issue
    from accord.loops.models import LoopState
    from accord.starts.dashboard import BoxWord
    from accord.starts.models import StatusRow

_NOUNS = {"plan": "plan", "implement": "implementation", "review": "review"}
_PRIORITIES = ("priority:high", "priority:medium", "priority:low")
_KINDS: dict[str, NeedKind] = {
    "checks-not-approved": "approval",
    "conflict": "conflict",
    "failure-budget": "budget",
    "transient-budget": "budget",
    "iteration-budget": "budget",
    "cost-budget": "budget",
}
"""Kinds of need by the reason of a loop that asks a person; a verdict that asks is a question, the rest failures."""

_NAMED = 5


def overview_of_work(facts: BoardRepository) -> Overview:
    """Return the overview of all items and pull requests."""
    by_item = {number: pull for pull in facts.pulls for number in pull.items}
    items = sorted(facts.items, key=_rank)
    placed = [found for item in items if (found := _place_item(facts, item, by_item.get(item.issue.number)))]
    placed += [_place_pull(facts, pull) for pull in facts.pulls]
    placed += [found for handoff in facts.handoffs for found in place_item_handoff(handoff, facts.address)]
    placed += [("done", _done_entry(item)) for item in facts.closed]
    repository = facts.address.repository
    overview = overview_from(
        ((section, replace(entry, repository=repository)) for section, entry in placed), facts.notes
    )
    return replace(overview, repositories=(repository,))


def _rank(item: BoardItem) -> tuple[int, int]:
    priority = next((i for i, label in enumerate(_PRIORITIES) if label in item.issue.labels), len(_PRIORITIES))
    return priority, item.issue.number


def _place_item(facts: BoardRepository, item: BoardItem, pull: BoardPull | None) -> Placed | None:
    """Return the entry of an open issue; None for a request of which nothing runs, failed or is asked for."""
    issue, last = item.issue, item.rows[-1] if item.rows else None
    retry = _comment(facts, "issue", issue.number, "/accord retry")
    if last and last.state in ACTIVE:
        return "running", _running(facts, f"#{issue.number}", issue.title, last)
    status = status_if_clear(issue)
    if last and last.state == "failed" and status in (None, "pending", "ready", "in-progress"):
        return "needs_you", _entry(
            item, "failure", last.result, since=time_of(last.since), command=retry, start="retry"
        )
    if NEEDS_HUMAN in issue.labels:
        why, command = f"It carries the label `{NEEDS_HUMAN}`.", _unlabel(facts, "issue", issue.number)
        return "needs_you", _entry(item, "needs-human", why, command=command)
    if is_work_item(issue):
        return _place_idle(facts, item, status, pull)
    return ("waiting", _entry(item, "item", "A plan was asked for.")) if PLAN_LABEL in issue.labels else None


def _place_idle(facts: BoardRepository, item: BoardItem, status: str | None, pull: BoardPull | None) -> Placed:
    """Return the entry of a work item on which nothing runs and nothing failed."""
    issue = item.issue
    if status is None:
        labels = " and ".join(f"`{label}`" for label in in_category(issue.labels, Category.STATUS)) or "no status label"
        command = _one_status(facts, issue)
        return "needs_you", _entry(item, "broken", f"It has {labels}; it needs exactly one.", command=command)
    if pull and status not in ("pending", "ready"):
        return "waiting", _entry(item, "item", f"Its status is {status}: see #{pull.pull.number}.")
    if status in ("blocked", "needs-refinement"):
        command = facts.address.accord("items", "move", issue.number, "--to", "pending")
        return "needs_you", _entry(item, "question", f"Its status is {status}: a person decides.", command=command)
    if kind_of(issue.labels) is ItemKind.REFINEMENT:
        command = facts.address.gh_command("issue", "close", issue.number, "--comment", "ANSWER")
        return "needs_you", _entry(
            item, "question", "It asks about the specification.", since=issue.created_at, command=command
        )
    if item.open_blockers and status in ("pending", "ready"):
        return "waiting", _entry(item, "item", _blockers_text(item))
    if status == "ready":
        command = _comment(facts, "issue", issue.number, "/accord implement")
        return "ready", _entry(item, "item", "Nothing blocks it.", command=command, start="implement")
    if status == "pending":
        command = facts.address.accord("items", "move", issue.number, "--to", "ready")
        why = "Nothing blocks it; it is not marked as ready yet."
        return "ready", _entry(item, "item", why, command=command, start="ready")
    return "waiting", _entry(item, "item", f"Its status is {status}: no open pull request closes it.")


def _place_pull(facts: BoardRepository, pull: BoardPull) -> Placed:
    """Return the entry of an open pull request: what runs there, else what it needs before it can be merged."""
    number, last = pull.pull.number, pull.rows[-1] if pull.rows else None
    active = next((loop for loop in pull.loops if loop.running), None)
    if active and active.running:
        run = active.running
        url = f"{facts.address.page}/actions/runs/{run.run_id}" if run.run_id.isdecimal() else pull.pull.url
        why = f"{active.loop}, run {active.iterations}"
        return "running", Entry("loop", f"#{number}", pull.pull.title, why, run.started_at, url, cost=_cost(active))
    if last and last.state in ACTIVE:
        return "running", _running(facts, f"#{number}", pull.pull.title, last)
    return _place_held(facts, pull) or _asks(facts, pull) or _place_unfinished(facts, pull, last) or _open(facts, pull)


def _place_held(facts: BoardRepository, pull: BoardPull) -> Placed | None:
    if not pull.held:
        return None
    names = _list([run.name or run.path for run in pull.held])
    command = facts.address.gh_command("run", "rerun", pull.held[-1].id)
    since = min(run.created_at for run in pull.held)
    why = f"GitHub holds workflow runs until you approve them: {names}."
    return "needs_you", _pull_entry(pull, "approval", why, since=since, command=command)


def _asks(facts: BoardRepository, pull: BoardPull) -> Placed | None:
    """Return what a loop or the label ``needs-human`` asks for."""
    number = pull.pull.number
    if NEEDS_HUMAN not in pull.pull.labels:
        return None
    unlabel = _unlabel(facts, "pr", number)
    for loop in reversed(pull.loops):
        reason = REASONS.get(loop.notice.reason) if loop.notice else None
        if loop.notice and reason and reason.asks:
            kind = _KINDS.get(loop.notice.reason) or ("question" if reason.action == "ask" else "failure")
            ended = loop.last.ended_at if loop.last else None
            return "needs_you", _pull_entry(pull, kind, loop.notice.message, since=ended, command=unlabel)
    if pull.pull.is_draft and pull.pull.is_mergeable is False:
        command = facts.address.gh_command("pr", "checkout", number)
        return "needs_you", _pull_entry(pull, "conflict", "It conflicts with its base.", command=command)
    if pull.pull.is_draft:
        why = "It is a draft: a person reads what it changes before it is reviewed."
        return "needs_you", _pull_entry(pull, "protected", why, command=facts.address.gh_command("pr", "ready", number))
    return "needs_you", _pull_entry(pull, "needs-human", f"It carries the label `{NEEDS_HUMAN}`.", command=unlabel)


def _place_unfinished(facts: BoardRepository, pull: BoardPull, last: StatusRow | None) -> Placed | None:
    """Return what keeps a pull request from being reviewed: a failed run, its checks, a conflict, requested changes."""
    number, has_loop = pull.pull.number, KEEPALIVE in pull.pull.labels
    if last and last.state == "failed":
        command = _comment(facts, "pr", number, "/accord retry")
        return "needs_you", _pull_entry(
            pull, "failure", last.result, since=time_of(last.since), command=command, start="retry"
        )
    problems: list[tuple[str, NeedKind] | None] = [
        (f"Checks fail: {_list(_checks(pull, 'failing'))}.", "failure") if _checks(pull, "failing") else None,
        ("It conflicts with its base.", "conflict") if pull.pull.is_mergeable is False else None,
        ("A review requests changes.", "needs-human") if pull.wants_changes else None,
    ]
    if pending := _checks(pull, "pending"):
        return "waiting", _pull_entry(pull, "pull", f"Checks are not finished: {_list(pending)}.")
    for why, kind in filter(None, problems):
        if has_loop:
            return "waiting", _pull_entry(pull, "pull", f"{why} Keepalive works on it.")
        command = facts.address.gh_command("pr", "edit", number, "--add-label", KEEPALIVE)
        return "needs_you", _pull_entry(pull, kind, why, command=command)
    return None


def _open(facts: BoardRepository, pull: BoardPull) -> Placed:
    number = pull.pull.number
    if pull.pull.is_draft:
        return "waiting", _pull_entry(pull, "pull", "It is a draft.")
    if pull.is_approved and pull.pull.is_mergeable:
        closes = f" Merging it closes {_list([f'#{item}' for item in pull.items])}." if pull.items else ""
        why = f"The review approves it, and its checks pass.{closes}"
        return "needs_you", _pull_entry(pull, "merge", why, command=facts.address.gh_command("pr", "merge", number))
    if pull.is_approved:
        return "waiting", _pull_entry(pull, "pull", "GitHub has not computed yet whether it can be merged.")
    if KEEPALIVE in pull.pull.labels:
        return "waiting", _pull_entry(pull, "pull", "Keepalive works on it.")
    command = _comment(facts, "pr", number, "/accord review")
    return "ready", _pull_entry(pull, "pull", "No review approves its head.", command=command, start="review")


def _done_entry(item: BoardItem) -> Entry:
    issue = item.issue
    why = "Closed as not planned." if issue.state_reason == "not_planned" else "Completed."
    costs = "; ".join(row.cost for row in item.rows if row.cost)
    return Entry("item", f"#{issue.number}", issue.title, why, issue.closed_at, issue.url, cost=costs)


def _running(facts: BoardRepository, name: str, title: str, row: StatusRow) -> Entry:
    agent = f" by {row.agent}" if row.agent else ""
    why = f"{_NOUNS[row.work]}{agent}" + (f", asked for by {row.by}" if row.by else "")
    url = (
        f"{facts.address.page}/actions/runs/{row.run}" if row.run else f"{facts.address.page}/issues/{name.lstrip('#')}"
    )
    return Entry("run", name, title, why, time_of(row.since), url, cost=row.cost)


def _entry(
    item: BoardItem,
    kind: EntryKind,
    why: str,
    *,
    since: datetime | None = None,
    command: str = "",
    start: BoxWord | Literal[""] = "",
) -> Entry:
    issue = item.issue
    return Entry(kind, f"#{issue.number}", issue.title, why, since, issue.url, command, start=start)


def _pull_entry(
    pull: BoardPull,
    kind: EntryKind,
    why: str,
    *,
    since: datetime | None = None,
    command: str = "",
    start: BoxWord | Literal[""] = "",
) -> Entry:
    one = pull.pull
    cost = "; ".join(filter(None, map(_cost, pull.loops)))
    return Entry(kind, f"#{one.number}", one.title, why, since, one.url, command, cost, start)


def _cost(loop: LoopState) -> str:
    return f"{loop.cost_usd:.2f} US dollars" if loop.cost_usd else ""


def _blockers_text(item: BoardItem) -> str:
    if len(item.blockers) != item.open_blockers:
        return f"Blocked by {item.open_blockers} open {'issue' if item.open_blockers == 1 else 'issues'}."
    return f"Blocked by {_list([f'#{number}' for number in item.blockers])}."


def _checks(pull: BoardPull, state: CheckState) -> list[str]:
    return [check.name for check in pull.checks if check.state == state]


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _one_status(facts: BoardRepository, issue: Issue) -> str:
    """Return the command that leaves an item exactly one status label."""
    _, *spare = in_category(issue.labels, Category.STATUS) or ["", ""]
    words = [word for label in spare if label for word in ("--remove-label", label)]
    return facts.address.gh_command("issue", "edit", issue.number, *(words or ("--add-label", "status:pending")))


def _comment(facts: BoardRepository, kind: str, number: int, text: str) -> str:
    return facts.address.gh_command(kind, "comment", number, "--body", text)


def _unlabel(facts: BoardRepository, kind: str, number: int) -> str:
    return facts.address.gh_command(kind, "edit", number, "--remove-label", NEEDS_HUMAN)
