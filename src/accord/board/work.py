"""The overview of work items and pull requests: one entry each, in the section that says who is next. Pure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

from accord.board.charts import dollars_text
from accord.board.documents import place_item_handoff
from accord.board.models import BoardItem, BoardPull, BoardRepository, Entry, NeedKind, Overview, Placed, overview_from
from accord.core.clock import time_of
from accord.core.findings import count_of, names_of
from accord.engine.owner import (
    ItemState,
    Owner,
    OwnerReason,
    PullState,
    next_statuses,
    owner_of,
    pull_state,
    reason_of_checks,
    unclosed_text,
)
from accord.engine.trust import NEEDS_HUMAN, RefusedLabel
from accord.git.configuration import item_of_branch
from accord.github.models import Issue
from accord.loops.checks import check_facts, held_runs, inconclusive_text
from accord.loops.models import REASONS, CheckFacts
from accord.loops.questions import KEEPALIVE
from accord.results.labels import Category, ItemKind, in_category
from accord.results.status import is_work_item, item_state, status_if_clear, type_findings
from accord.starts.models import ACTIVE, NOUNS, PLAN_LABEL, StatusRow

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

_WITH_AGENT = ("pr", "edit", "--add-label", KEEPALIVE)
_BY_HAND: dict[OwnerReason, tuple[str, ...]] = {
    "failing": ("pr", "checks"),
    "conflict": ("pr", "checkout"),
    "changes-requested": ("pr", "checkout"),
}
"""Commands where no workflow listens to the label of keepalive."""

_NEXT: dict[OwnerReason, tuple[str, NeedKind, tuple[str, ...]]] = {
    "item-closed": ("It is open, but {items} is closed.", "question", ("pr", "close")),
    "checks-pending": ("Checks are not finished: {pending}.", "failure", ()),
    "failing": ("Checks fail: {failing}.", "failure", _WITH_AGENT),
    "inconclusive": ("{inconclusive}", "failure", ("pr", "checks")),
    "conflict": ("It conflicts with its base.", "conflict", _WITH_AGENT),
    "changes-requested": ("A review requests changes.", "needs-human", _WITH_AGENT),
    "draft": ("It is a draft.", "protected", ("pr", "ready")),
    "merge": ("The review approves it, and its checks pass.{closing}", "merge", ("pr", "merge")),
    "merge-unknown": ("GitHub has not computed yet whether it can be merged.", "merge", ()),
    "locked": ("Its conversation is locked, so no job may review it.", "question", ("pr", "unlock")),
    "agent-works": ("Keepalive works on it.", "failure", ()),
    "review-due": ("No review approves its head.", "failure", ()),
}
"""Of an open pull request by the reason: why, the kind of need, and a person's command, which its number follows."""

_list = partial(names_of, most=5)


def overview_of_work(facts: BoardRepository) -> Overview:
    """Return the overview of all items and pull requests."""
    by_item = {number: pull for pull in facts.pulls for number in pull.items}
    items = sorted(facts.items, key=_rank)
    placed = [found for item in items if (found := _place_item(facts, item, by_item.get(item.issue.number)))]
    placed += [_place_pull(facts, pull) for pull in facts.pulls]
    placed += [found for handoff in facts.handoffs for found in place_item_handoff(handoff, facts.address, facts.now)]
    for item in facts.closed:
        issue, costs = item.issue, "; ".join(row.cost for row in item.rows if row.cost)
        why = "Closed as not planned." if issue.state_reason == "not_planned" else "Completed."
        ended = Entry("item", f"#{issue.number}", issue.title, why, issue.closed_at, issue.url, cost=costs)
        placed.append(("done", ended))
    repository = facts.address.repository
    named = ((section, replace(entry, repository=repository)) for section, entry in placed)
    return overview_from(named, facts.notes, (repository,))


def _rank(item: BoardItem) -> tuple[int, int]:
    priority = next((i for i, label in enumerate(_PRIORITIES) if label in item.issue.labels), len(_PRIORITIES))
    return priority, item.issue.number


def _place_item(facts: BoardRepository, item: BoardItem, pull: BoardPull | None) -> Placed | None:
    """Return the entry of an open issue; None for a request of which nothing runs, failed or is asked for."""
    issue, last = item.issue, item.rows[-1] if item.rows else None
    entry = Entry("item", f"#{issue.number}", issue.title, "", url=issue.url)
    if last and last.state in ACTIVE:
        return "running", _running_entry(facts, entry, last)
    status = status_if_clear(issue)
    if last and last.state == "failed" and status in (None, "pending", "ready", "in-progress"):
        return "needs_you", _failed_entry(entry, last, _comment(facts, "issue", issue.number, "/accord retry"))
    if NEEDS_HUMAN in issue.labels:
        return "needs_you", _needs_human(facts, entry, "issue", issue.number)
    if item.refused and (status in ("pending", "ready") or not is_work_item(issue)):
        return "needs_you", _refused_entry(facts, entry, "issue", issue.number, item.refused[0])
    if is_work_item(issue):
        return _place_idle(facts, item, entry, status, pull)
    return ("waiting", replace(entry, why="A plan was asked for.")) if PLAN_LABEL in issue.labels else None


def _place_idle(
    facts: BoardRepository, item: BoardItem, entry: Entry, status: str | None, pull: BoardPull | None
) -> Placed:
    """Place a work item on which nothing runs and nothing failed."""
    issue, address = item.issue, facts.address
    linked = pull_state(pull.pull) if pull else _pull_without_item(facts, issue.number)
    owner = owner_of(replace(item_state(issue, item.open_blockers), is_running=False), linked)
    match owner.reason:
        case "status-unclear":
            return "needs_you", _unclear_entry(facts, issue, entry)
        case "decision":
            why = f"Its status is {status}: a person decides."
            return "needs_you", replace(entry, kind="question", why=why, command=_back(facts, issue))
        case "question":
            close = address.gh_command("issue", "close", issue.number, "--comment", "ANSWER")
            why = "It asks about the specification."
            return "needs_you", replace(entry, kind="question", why=why, since=issue.created_at, command=close)
        case "blocked":
            known = _list([f"#{number}" for number in item.blockers])
            is_known = len(item.blockers) == item.open_blockers
            blockers = known if is_known else count_of(item.open_blockers, "open issue")
            return "waiting", replace(entry, why=f"Blocked by {blockers}.")
        case "ready":
            command = _comment(facts, "issue", issue.number, "/accord implement")
            return "ready", replace(entry, why="Nothing blocks it.", command=command, start="implement")
        case "not-ready":
            command = address.accord("items", "move", issue.number, "--to", "ready")
            why = "Nothing blocks it; it is not marked as ready yet."
            return "ready", replace(entry, why=why, command=command, start="ready")
        case "no-pull" | "not-closing" | "reopened" | "merged-elsewhere" | "pull-closed":
            return "needs_you", _unclosed_entry(facts, issue, entry, owner)
    return "waiting", replace(entry, why=f"Its status is {status}: see #{owner.pull}.")


def _pull_without_item(facts: BoardRepository, number: int) -> PullState | None:
    """Return the newest pull request of an item that no open one closes: an open one lacks the words for it."""
    for each in facts.pulls:
        if item_of_branch(each.pull.head_branch) == number:
            return pull_state(each.pull, closes=False)
    ended = max((each for each in facts.ended if number in each.items), key=lambda e: e.number, default=None)
    if ended is None or ended.pull:
        return pull_state(ended.pull, closes=number in ended.closes) if ended and ended.pull else None
    state: Literal["merged", "closed"] = "merged" if ended.issue.merged_at else "closed"
    return PullState(ended.number, state, number in ended.closes, is_main=None)


def _unclosed_entry(facts: BoardRepository, issue: Issue, entry: Entry, owner: Owner) -> Entry:
    """Return the entry of an item that no open pull request closes: a person decides what becomes of it."""
    address, status = facts.address, status_if_clear(issue)
    has_branch = all(each.has_branch for each in facts.ended if each.number == owner.pull)
    idle = "nothing runs on it, and " if status == "in-progress" else ""
    text = f"Its status is {status}: {idle}{unclosed_text(owner, issue.number)}"
    moves = [address.accord("items", "move", issue.number, "--to", step) for step in next_statuses(owner, status)]
    command = " && ".join(moves) or _back(facts, issue)
    if owner.reason == "not-closing":
        words = f'.body + "\\n\\nCloses #{issue.number}"'
        read = address.gh_command("pr", "view", owner.pull, "--json", "body", "--jq", words)
        command = " | ".join(filter(None, (read, address.gh_command("pr", "edit", owner.pull, "--body-file", "-"))))
    if owner.reason == "pull-closed" and not has_branch:
        text += ", whose branch is deleted"
    elif owner.reason == "pull-closed" and status == "approved":
        command = address.gh_command("pr", "reopen", owner.pull)
    return replace(entry, kind="question", why=f"{text}.", command=command)


def _back(facts: BoardRepository, issue: Issue) -> str:
    """Return the command by which a person begins an item again; no move leads back from approved."""
    if status_if_clear(issue) != "approved":
        return facts.address.accord("items", "move", issue.number, "--to", "pending")
    labels = ("--remove-label", "status:approved", "--add-label", "status:pending")
    return facts.address.gh_command("issue", "edit", issue.number, *labels)


def _place_pull(facts: BoardRepository, pull: BoardPull) -> Placed:
    """Place an open pull request: by what runs there, else by what it needs before it can be merged."""
    one, last = pull.pull, pull.rows[-1] if pull.rows else None
    cost = "; ".join(dollars_text(loop.cost_usd) for loop in pull.loops if loop.cost_usd)
    entry = Entry("pull", f"#{one.number}", one.title, "", url=one.url, cost=cost)
    active = next((loop for loop in pull.loops if loop.running), None)
    if active and active.running:
        run = active.running
        url = facts.address.run_page(run.run_id) or one.url
        why = f"{active.loop}, run {active.iterations}"
        return "running", replace(
            entry, kind="loop", why=why, since=run.started_at, url=url, cost=dollars_text(active.cost_usd or None)
        )
    if last and last.state in ACTIVE:
        return "running", _running_entry(facts, entry, last)
    checks = check_facts(pull.checks, one.head_sha, 0).model_copy(update={"held": held_runs(pull.held)})
    reason = reason_of_checks(checks.held or (), checks.pending, checks.failing, checks.inconclusive)
    owner = owner_of(ItemState(is_open=False) if pull.is_item_closed else None, _pull_state(pull), reason)
    if owner.reason == "held":
        why = f"GitHub holds workflow runs until you approve them: {_list([run.name for run in checks.held or ()])}."
        command = facts.address.gh_command("run", "rerun", pull.held[-1].id)
        since = min(run.created_at for run in pull.held)
        return "needs_you", replace(entry, kind="approval", why=why, since=since, command=command)
    if NEEDS_HUMAN in one.labels:
        return "needs_you", _request_entry(facts, pull, entry)
    if pull.refused:
        return "needs_you", _refused_entry(facts, entry, "pr", one.number, pull.refused[0])
    if last and last.state == "failed":
        return "needs_you", _failed_entry(entry, last, _comment(facts, "pr", one.number, "/accord retry"))
    return _place_open(facts, pull, entry, owner, checks)


def _request_entry(facts: BoardRepository, pull: BoardPull, entry: Entry) -> Entry:
    """Return what a loop or the label ``needs-human`` asks for."""
    one, address = pull.pull, facts.address
    asks = _needs_human(facts, entry, "pr", one.number)
    for loop in reversed(pull.loops):
        reason = REASONS.get(loop.notice.reason) if loop.notice else None
        if loop.notice and reason and reason.asks:
            kind = _KINDS.get(loop.notice.reason) or ("question" if reason.action == "ask" else "failure")
            ended = loop.last.ended_at if loop.last else None
            return replace(asks, kind=kind, why=loop.notice.message, since=ended)
    if one.is_draft and one.is_mergeable is False:
        command = address.gh_command("pr", "checkout", one.number)
        return replace(asks, kind="conflict", why="It conflicts with its base.", command=command)
    if one.is_draft:
        why = "It is a draft: a person reads what it changes before it is reviewed."
        steps = filter(None, (address.gh_command("pr", "ready", one.number), asks.command))
        return replace(asks, kind="protected", why=why, command=" && ".join(steps))
    return asks


def _pull_state(pull: BoardPull) -> PullState:
    """Return what decides of an open pull request; keepalive does not go on where it said that it stops."""
    stops = any(loop.loop == "keepalive" and loop.notice and loop.notice.action == "stop" for loop in pull.loops)
    review: Literal["", "approved", "changes-requested"] = "changes-requested" if pull.wants_changes else ""
    has_agent = KEEPALIVE in pull.pull.labels and not stops
    return replace(pull_state(pull.pull), has_agent=has_agent, review="approved" if pull.is_approved else review)


def _place_open(facts: BoardRepository, pull: BoardPull, entry: Entry, owner: Owner, checks: CheckFacts) -> Placed:
    """Place an open pull request by who acts next on it."""
    why, kind, words = _next_of_pull(pull, owner, checks)
    if owner.reason in _BY_HAND and not facts.has_keepalive:
        words = (*_BY_HAND[owner.reason], pull.number)
    if owner.who == "github" or owner.reason == "agent-works":
        return "waiting", replace(entry, why=why)
    if owner.reason == "review-due":
        command = _comment(facts, "pr", pull.number, "/accord review")
        return "ready", replace(entry, why=why, command=command, start="review")
    if owner.who == "agent":
        return "waiting", replace(entry, why=f"{why} Keepalive works on it.")
    since = pull.judged_at if owner.reason in ("changes-requested", "merge") else None
    return "needs_you", replace(entry, kind=kind, why=why, since=since, command=facts.address.gh_command(*words))


def _next_of_pull(pull: BoardPull, owner: Owner, checks: CheckFacts) -> tuple[str, NeedKind, tuple[object, ...]]:
    """Return why someone acts next, the kind of need, and a person's command of the GitHub CLI."""
    text, kind, command = _NEXT[owner.reason]
    items, words = _list([f"#{item}" for item in pull.items]), (*command, pull.number)
    run = next((check.workflow_run for check in checks.inconclusive), 0)
    if owner.reason == "inconclusive" and run:
        words = ("run", "rerun", run)
    why = text.format(
        items=items or "its work item",
        closing=_closing_sentence(pull, items),
        pending=_list([*checks.pending]),
        failing=_list([*checks.failing]),
        inconclusive=inconclusive_text(checks.inconclusive, pull.pull.url),
    )
    return why, kind, words


def _closing_sentence(pull: BoardPull, items: str) -> str:
    """Return which items the merge of a pull request closes, as a sentence behind another; empty without an item."""
    base, state = pull.pull.base_branch, pull_state(pull.pull)
    if not items or state.is_main:
        return f" Merging it closes {items}." if items else ""
    return f" Merging it into `{base}` does not close {items}: `{base}` is not the default branch."


def _running_entry(facts: BoardRepository, entry: Entry, row: StatusRow) -> Entry:
    agent = f" by {row.agent}" if row.agent else ""
    why = f"{NOUNS[row.work]}{agent}" + (f", asked for by {row.by}" if row.by else "")
    url = facts.address.run_page(row.run) or f"{facts.address.page}/issues/{entry.id.removeprefix('#')}"
    return replace(entry, kind="run", why=why, since=time_of(row.since), url=url, cost=row.cost)


def _failed_entry(entry: Entry, row: StatusRow, command: str) -> Entry:
    return replace(entry, kind="failure", why=row.result, since=time_of(row.since), command=command, start="retry")


def _refused_entry(facts: BoardRepository, entry: Entry, kind: str, number: int, refused: RefusedLabel) -> Entry:
    command = facts.address.gh_command(kind, "edit", number, "--remove-label", refused.label)
    return replace(entry, kind="label", why=refused.text, command=command)


def _needs_human(facts: BoardRepository, entry: Entry, kind: str, number: int) -> Entry:
    command = facts.address.gh_command(kind, "edit", number, "--remove-label", NEEDS_HUMAN)
    return replace(entry, kind="needs-human", why=f"It carries the label `{NEEDS_HUMAN}`.", command=command)


def _unclear_entry(facts: BoardRepository, issue: Issue, entry: Entry) -> Entry:
    """Return the entry of an item whose labels do not give one type and one status, with the command that does."""
    found, labels = next(type_findings(issue), None), in_category(issue.labels, Category.STATUS)
    has = " and ".join(f"`{label}`" for label in labels)
    why = found.text if found else f"It has {has or 'no status label'}; it needs exactly one."
    spare = [ItemKind.REFINEMENT.value] if found else labels[1:]
    words = [word for label in spare for word in ("--remove-label", label)] or ["--add-label", "status:pending"]
    command = facts.address.gh_command("issue", "edit", issue.number, *words)
    return replace(entry, kind="broken", why=why, command=command)


def _comment(facts: BoardRepository, kind: str, number: int, text: str) -> str:
    return facts.address.gh_command(kind, "comment", number, "--body", text)
