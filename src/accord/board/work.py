"""The overview of work items and pull requests: one entry each, in the section that says who is next. Pure."""

from __future__ import annotations

from dataclasses import replace

from accord.board.documents import place_item_handoff
from accord.board.models import BoardItem, BoardPull, BoardRepository, Entry, NeedKind, Overview, Placed, overview_from
from accord.core.clock import time_of
from accord.git.branch_names import is_work_branch
from accord.github.checks import CheckState
from accord.github.models import Issue
from accord.loops.checks import check_facts, inconclusive_text
from accord.loops.models import NEEDS_HUMAN, REASONS, LoopState
from accord.loops.questions import KEEPALIVE
from accord.results.labels import Category, ItemKind, in_category, kind_of
from accord.results.status import is_work_item, status_if_clear
from accord.starts.models import ACTIVE, PLAN_LABEL, StatusRow

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
        return "running", _running(facts, entry, last)
    status = status_if_clear(issue)
    if last and last.state == "failed" and status in (None, "pending", "ready", "in-progress"):
        return "needs_you", _failed(entry, last, _comment(facts, "issue", issue.number, "/accord retry"))
    if NEEDS_HUMAN in issue.labels:
        return "needs_you", _needs_human(facts, entry, "issue", issue.number)
    if is_work_item(issue):
        return _place_idle(facts, item, entry, status, pull)
    return ("waiting", replace(entry, why="A plan was asked for.")) if PLAN_LABEL in issue.labels else None


def _place_idle(
    facts: BoardRepository, item: BoardItem, entry: Entry, status: str | None, pull: BoardPull | None
) -> Placed:
    """Place a work item on which nothing runs and nothing failed."""
    issue, address = item.issue, facts.address
    if status is None:
        labels = " and ".join(f"`{label}`" for label in in_category(issue.labels, Category.STATUS)) or "no status label"
        why, command = f"It has {labels}; it needs exactly one.", _one_status(facts, issue)
        return "needs_you", replace(entry, kind="broken", why=why, command=command)
    if pull and status not in ("pending", "ready"):
        return "waiting", replace(entry, why=f"Its status is {status}: see #{pull.pull.number}.")
    if status in ("blocked", "needs-refinement"):
        why = f"Its status is {status}: a person decides."
        command = address.accord("items", "move", issue.number, "--to", "pending")
        return "needs_you", replace(entry, kind="question", why=why, command=command)
    if kind_of(issue.labels) is ItemKind.REFINEMENT:
        close = address.gh_command("issue", "close", issue.number, "--comment", "ANSWER")
        why = "It asks about the specification."
        return "needs_you", replace(entry, kind="question", why=why, since=issue.created_at, command=close)
    if item.open_blockers and status in ("pending", "ready"):
        return "waiting", replace(entry, why=_blockers_text(item))
    if status == "ready":
        command = _comment(facts, "issue", issue.number, "/accord implement")
        return "ready", replace(entry, why="Nothing blocks it.", command=command, start="implement")
    if status == "pending":
        command = address.accord("items", "move", issue.number, "--to", "ready")
        why = "Nothing blocks it; it is not marked as ready yet."
        return "ready", replace(entry, why=why, command=command, start="ready")
    return _place_unclosed(facts, issue.number, entry, status)


def _place_unclosed(facts: BoardRepository, number: int, entry: Entry, status: str) -> Placed:
    """Place an item that no open pull request closes: after its work, a person decides what becomes of it."""
    address, text = facts.address, f"Its status is {status}: no open pull request closes it"
    one = next((each.pull for each in facts.pulls if is_work_branch(each.pull.head_branch, str(number))), None)
    ended = max((each.issue for each in facts.ended if number in each.items), key=lambda e: e.number, default=None)
    if status == "in-progress" and (one or ended is None or ended.merged_at):
        return "waiting", replace(entry, why=f"{text}.")
    command = address.accord("items", "move", number, "--to", "pending")
    if one:
        text += f", as #{one.number} does not have the words `Closes #{number}`"
        command = address.gh_command("pr", "edit", one.number)
    elif ended and ended.merged_at:
        text += f", and the merge of #{ended.number} did not. GitHub closes items at merges into the default branch"
        steps = ("closed",) if status == "approved" else ("approved", "closed")
        command = " && ".join(address.accord("items", "move", number, "--to", step) for step in steps)
    elif ended:
        text += f", and #{ended.number} was closed"
    if status == "approved" and not (one or (ended and ended.merged_at)):
        command = address.gh_command("pr", "reopen", ended.number) if ended else ""
    command = command or address.accord("items", "show", number)
    return "needs_you", replace(entry, kind="question", why=f"{text}.", command=command)


def _place_pull(facts: BoardRepository, pull: BoardPull) -> Placed:
    """Place an open pull request: by what runs there, else by what it needs before it can be merged."""
    one, last = pull.pull, pull.rows[-1] if pull.rows else None
    cost = "; ".join(filter(None, map(_cost, pull.loops)))
    entry = Entry("pull", f"#{one.number}", one.title, "", url=one.url, cost=cost)
    active = next((loop for loop in pull.loops if loop.running), None)
    if active and active.running:
        run = active.running
        url = f"{facts.address.page}/actions/runs/{run.run_id}" if run.run_id.isdecimal() else one.url
        why = f"{active.loop}, run {active.iterations}"
        return "running", replace(entry, kind="loop", why=why, since=run.started_at, url=url, cost=_cost(active))
    if last and last.state in ACTIVE:
        return "running", _running(facts, entry, last)
    if pull.held:
        names = _list([run.name or run.path for run in pull.held])
        why = f"GitHub holds workflow runs until you approve them: {names}."
        command = facts.address.gh_command("run", "rerun", pull.held[-1].id)
        since = min(run.created_at for run in pull.held)
        return "needs_you", replace(entry, kind="approval", why=why, since=since, command=command)
    if NEEDS_HUMAN in one.labels:
        return "needs_you", _asked(facts, pull, entry)
    if last and last.state == "failed":
        return "needs_you", _failed(entry, last, _comment(facts, "pr", one.number, "/accord retry"))
    return _place_unfinished(facts, pull, entry) or _place_open(facts, pull, entry)


def _asked(facts: BoardRepository, pull: BoardPull, entry: Entry) -> Entry:
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
        return replace(asks, kind="protected", why=why, command=address.gh_command("pr", "ready", one.number))
    return asks


def _place_unfinished(facts: BoardRepository, pull: BoardPull, entry: Entry) -> Placed | None:
    """Place a pull request that cannot be reviewed: by its checks, a conflict, requested changes."""
    failing, pending = _checks(pull, "failing"), _checks(pull, "pending")
    if pending:
        return "waiting", replace(entry, why=f"Checks are not finished: {_list(pending)}.")
    unclear = check_facts(pull.checks, pull.pull.head_sha, 0).inconclusive
    if unclear and not failing:
        run = next((check.workflow_run for check in unclear if check.workflow_run), 0)
        words = ("run", "rerun", run) if run else ("pr", "checks", pull.pull.number)
        command = facts.address.gh_command(*words)
        return "needs_you", replace(entry, kind="failure", why=inconclusive_text(unclear), command=command)
    problems: list[tuple[bool, str, NeedKind]] = [
        (bool(failing), f"Checks fail: {_list(failing)}.", "failure"),
        (pull.pull.is_mergeable is False, "It conflicts with its base.", "conflict"),
        (pull.wants_changes, "A review requests changes.", "needs-human"),
    ]
    for is_so, why, kind in problems:
        if is_so and KEEPALIVE in pull.pull.labels:
            return "waiting", replace(entry, why=f"{why} Keepalive works on it.")
        if is_so:
            command = facts.address.gh_command("pr", "edit", pull.pull.number, "--add-label", KEEPALIVE)
            return "needs_you", replace(entry, kind=kind, why=why, command=command)
    return None


def _place_open(facts: BoardRepository, pull: BoardPull, entry: Entry) -> Placed:
    number = pull.pull.number
    if pull.pull.is_draft:
        return "waiting", replace(entry, why="It is a draft.")
    if pull.is_approved and pull.pull.is_mergeable:
        closes = f" Merging it closes {_list([f'#{item}' for item in pull.items])}." if pull.items else ""
        why = f"The review approves it, and its checks pass.{closes}"
        return "needs_you", replace(
            entry, kind="merge", why=why, command=facts.address.gh_command("pr", "merge", number)
        )
    if pull.is_approved:
        return "waiting", replace(entry, why="GitHub has not computed yet whether it can be merged.")
    if KEEPALIVE in pull.pull.labels:
        return "waiting", replace(entry, why="Keepalive works on it.")
    command = _comment(facts, "pr", number, "/accord review")
    return "ready", replace(entry, why="No review approves its head.", command=command, start="review")


def _done_entry(item: BoardItem) -> Entry:
    issue = item.issue
    why = "Closed as not planned." if issue.state_reason == "not_planned" else "Completed."
    costs = "; ".join(row.cost for row in item.rows if row.cost)
    return Entry("item", f"#{issue.number}", issue.title, why, issue.closed_at, issue.url, cost=costs)


def _running(facts: BoardRepository, entry: Entry, row: StatusRow) -> Entry:
    agent = f" by {row.agent}" if row.agent else ""
    why = f"{_NOUNS[row.work]}{agent}" + (f", asked for by {row.by}" if row.by else "")
    place = f"actions/runs/{row.run}" if row.run else f"issues/{entry.id.removeprefix('#')}"
    url = f"{facts.address.page}/{place}"
    return replace(entry, kind="run", why=why, since=time_of(row.since), url=url, cost=row.cost)


def _failed(entry: Entry, row: StatusRow, command: str) -> Entry:
    return replace(entry, kind="failure", why=row.result, since=time_of(row.since), command=command, start="retry")


def _needs_human(facts: BoardRepository, entry: Entry, kind: str, number: int) -> Entry:
    command = facts.address.gh_command(kind, "edit", number, "--remove-label", NEEDS_HUMAN)
    return replace(entry, kind="needs-human", why=f"It carries the label `{NEEDS_HUMAN}`.", command=command)


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
