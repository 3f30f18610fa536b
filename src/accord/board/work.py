"""The overview of work items and pull requests: one entry each, in the section that says who is next. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Literal

from accord.board.charts import dollars_text
from accord.board.documents import place_item_handoff
from accord.board.models import BoardItem, BoardPull, BoardRepository, Entry, NeedKind, Overview, Placed, overview_from
from accord.core.clock import time_of
from accord.core.findings import count_of, names_of
from accord.core.frozen import Frozen
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
from accord.engine.trust import NEEDS_HUMAN
from accord.git.configuration import item_of_branch
from accord.github.models import Issue
from accord.loops.checks import check_facts, held_runs, inconclusive_text
from accord.loops.models import REASONS, CheckFacts
from accord.loops.questions import KEEPALIVE
from accord.results.labels import Category, ItemKind, in_category
from accord.results.status import is_work_item, item_state, status_if_clear, type_findings
from accord.starts.models import ACTIVE, NOUNS, PLAN_LABEL, StatusRow
from accord.starts.status import BoxWord

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


class _Subject(Frozen):
    """An item or a pull request, as the GitHub CLI calls it, with what of its entry is the same in every section."""

    facts: BoardRepository
    noun: Literal["issue", "pr"]
    number: int
    entry: Entry

    def gh(self, verb: str, *words: str) -> str:
        return self.facts.address.gh_command(self.noun, verb, self.number, *words)

    def waits(self, why: str) -> Placed:
        return "waiting", replace(self.entry, why=why)

    def offers_start(self, why: str, command: str, start: BoxWord) -> Placed:
        return "ready", replace(self.entry, why=why, command=command, start=start)

    def needs(self, kind: NeedKind, why: str, command: str, since: datetime | None = None) -> Placed:
        return "needs_you", replace(self.entry, kind=kind, why=why, since=since, command=command)

    def needs_removal(self, kind: NeedKind, why: str, label: str) -> Placed:
        return self.needs(kind, why, self.gh("edit", "--remove-label", label))

    def needs_human(self) -> Placed:
        return self.needs_removal("needs-human", f"It carries the label `{NEEDS_HUMAN}`.", NEEDS_HUMAN)

    def runs(self, row: StatusRow) -> Placed:
        agent = f" by {row.agent}" if row.agent else ""
        why = f"{NOUNS[row.work]}{agent}" + (f", asked for by {row.by}" if row.by else "")
        url = self.facts.address.run_page(row.run) or f"{self.facts.address.page}/issues/{self.number}"
        return "running", replace(self.entry, kind="run", why=why, since=time_of(row.since), url=url, cost=row.cost)

    def offers_retry(self, row: StatusRow) -> Placed:
        command = self.gh("comment", "--body", "/accord retry")
        section, entry = self.needs("failure", row.result, command, time_of(row.since))
        return section, replace(entry, start="retry")


def _place_item(facts: BoardRepository, item: BoardItem, pull: BoardPull | None) -> Placed | None:
    """Return the entry of an open issue; None for a request of which nothing runs, failed or is asked for."""
    issue, last = item.issue, item.rows[-1] if item.rows else None
    entry = Entry("item", f"#{issue.number}", issue.title, "", url=issue.url)
    subject, status = _Subject(facts, "issue", issue.number, entry), status_if_clear(issue)
    if last and last.state in ACTIVE:
        return subject.runs(last)
    if last and last.state == "failed" and status in (None, "pending", "ready", "in-progress"):
        return subject.offers_retry(last)
    if NEEDS_HUMAN in issue.labels:
        return subject.needs_human()
    if item.refused and (status in ("pending", "ready") or not is_work_item(issue)):
        return subject.needs_removal("label", item.refused[0].text, item.refused[0].label)
    if is_work_item(issue):
        return _place_idle(subject, item, status, pull)
    return subject.waits("A plan was asked for.") if PLAN_LABEL in issue.labels else None


def _place_idle(subject: _Subject, item: BoardItem, status: str | None, pull: BoardPull | None) -> Placed:
    """Place a work item on which nothing runs and nothing failed."""
    issue, address = item.issue, subject.facts.address
    linked = pull_state(pull.pull) if pull else _pull_without_item(subject.facts, issue.number)
    owner = owner_of(replace(item_state(issue, item.open_blockers), is_running=False), linked)
    match owner.reason:
        case "status-unclear":
            return _place_unclear(subject, issue)
        case "decision":
            return subject.needs("question", f"Its status is {status}: a person decides.", _back(subject, issue))
        case "question":
            close = subject.gh("close", "--comment", "ANSWER")
            return subject.needs("question", "It asks about the specification.", close, issue.created_at)
        case "blocked":
            known = _list([f"#{number}" for number in item.blockers])
            is_known = len(item.blockers) == item.open_blockers
            return subject.waits(f"Blocked by {known if is_known else count_of(item.open_blockers, 'open issue')}.")
        case "ready":
            return subject.offers_start(
                "Nothing blocks it.", subject.gh("comment", "--body", "/accord implement"), "implement"
            )
        case "not-ready":
            command = address.accord("items", "move", issue.number, "--to", "ready")
            return subject.offers_start("Nothing blocks it; it is not marked as ready yet.", command, "ready")
        case "no-pull" | "not-closing" | "reopened" | "merged-elsewhere" | "pull-closed":
            return _place_unclosed(subject, issue, owner)
    return subject.waits(f"Its status is {status}: see #{owner.pull}.")


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


def _place_unclosed(subject: _Subject, issue: Issue, owner: Owner) -> Placed:
    """Place an item that no open pull request closes: a person decides what becomes of it."""
    address, status = subject.facts.address, status_if_clear(issue)
    idle = "nothing runs on it, and " if status == "in-progress" else ""
    text = f"Its status is {status}: {idle}{unclosed_text(owner, issue.number)}"
    moves = [address.accord("items", "move", issue.number, "--to", step) for step in next_statuses(owner, status)]
    command = " && ".join(moves) or _back(subject, issue)
    if owner.reason == "not-closing":
        words = f'.body + "\\n\\nCloses #{issue.number}"'
        read = address.gh_command("pr", "view", owner.pull, "--json", "body", "--jq", words)
        command = " | ".join(filter(None, (read, address.gh_command("pr", "edit", owner.pull, "--body-file", "-"))))
    elif owner.reason == "pull-closed":
        if not all(each.has_branch for each in subject.facts.ended if each.number == owner.pull):
            text += ", whose branch is deleted"
        elif status == "approved":
            command = address.gh_command("pr", "reopen", owner.pull)
    return subject.needs("question", f"{text}.", command)


def _back(subject: _Subject, issue: Issue) -> str:
    """Return the command by which a person begins an item again; no move leads back from approved."""
    if status_if_clear(issue) != "approved":
        return subject.facts.address.accord("items", "move", issue.number, "--to", "pending")
    return subject.gh("edit", "--remove-label", "status:approved", "--add-label", "status:pending")


def _place_unclear(subject: _Subject, issue: Issue) -> Placed:
    """Place an item whose labels do not give one type and one status, with the command that does."""
    found, labels = next(type_findings(issue), None), in_category(issue.labels, Category.STATUS)
    has = " and ".join(f"`{label}`" for label in labels)
    why = found.text if found else f"It has {has or 'no status label'}; it needs exactly one."
    spare = [ItemKind.REFINEMENT.value] if found else labels[1:]
    words = [word for label in spare for word in ("--remove-label", label)] or ["--add-label", "status:pending"]
    return subject.needs("broken", why, subject.gh("edit", *words))


def _place_pull(facts: BoardRepository, pull: BoardPull) -> Placed:
    """Place an open pull request: by what runs there, else by what it needs before it can be merged."""
    one, last = pull.pull, pull.rows[-1] if pull.rows else None
    cost = "; ".join(dollars_text(loop.cost_usd) for loop in pull.loops if loop.cost_usd)
    entry = Entry("pull", f"#{one.number}", one.title, "", url=one.url, cost=cost)
    subject = _Subject(facts, "pr", one.number, entry)
    active = next((loop for loop in pull.loops if loop.running), None)
    if active and active.running:
        run, cost = active.running, dollars_text(active.cost_usd or None)
        why, url = f"{active.loop}, run {active.iterations}", facts.address.run_page(run.run_id) or one.url
        return "running", replace(entry, kind="loop", why=why, since=run.started_at, url=url, cost=cost)
    if last and last.state in ACTIVE:
        return subject.runs(last)
    checks = check_facts(pull.checks, one.head_sha, 0).model_copy(update={"held": held_runs(pull.held)})
    reason = reason_of_checks(checks.held or (), checks.pending, checks.failing, checks.inconclusive)
    owner = owner_of(ItemState(is_open=False) if pull.is_item_closed else None, _pull_state(pull), reason)
    if owner.reason == "held":
        why = f"GitHub holds workflow runs until you approve them: {_list([run.name for run in checks.held or ()])}."
        command = facts.address.gh_command("run", "rerun", pull.held[-1].id)
        return subject.needs("approval", why, command, min(run.created_at for run in pull.held))
    if NEEDS_HUMAN in one.labels:
        return _place_request(subject, pull)
    if pull.refused:
        return subject.needs_removal("label", pull.refused[0].text, pull.refused[0].label)
    if last and last.state == "failed":
        return subject.offers_retry(last)
    return _place_open(subject, pull, owner, checks)


def _place_request(subject: _Subject, pull: BoardPull) -> Placed:
    """Place a pull request by what a loop or the label ``needs-human`` asks for."""
    one, (_, asks) = pull.pull, subject.needs_human()
    for loop in reversed(pull.loops):
        reason = REASONS.get(loop.notice.reason) if loop.notice else None
        if loop.notice and reason and reason.asks:
            kind = _KINDS.get(loop.notice.reason) or ("question" if reason.action == "ask" else "failure")
            return subject.needs(kind, loop.notice.message, asks.command, loop.last.ended_at if loop.last else None)
    if one.is_draft and one.is_mergeable is False:
        return subject.needs("conflict", "It conflicts with its base.", subject.gh("checkout"))
    if one.is_draft:
        why = "It is a draft: a person reads what it changes before it is reviewed."
        return subject.needs("protected", why, " && ".join(filter(None, (subject.gh("ready"), asks.command))))
    return "needs_you", asks


def _pull_state(pull: BoardPull) -> PullState:
    """Return what decides of an open pull request; keepalive does not go on where it said that it stops."""
    stops = any(loop.loop == "keepalive" and loop.notice and loop.notice.action == "stop" for loop in pull.loops)
    review: Literal["", "approved", "changes-requested"] = "changes-requested" if pull.wants_changes else ""
    has_agent = KEEPALIVE in pull.pull.labels and not stops
    return replace(pull_state(pull.pull), has_agent=has_agent, review="approved" if pull.is_approved else review)


def _place_open(subject: _Subject, pull: BoardPull, owner: Owner, checks: CheckFacts) -> Placed:
    """Place an open pull request by who acts next on it."""
    text, kind, command = _NEXT[owner.reason]
    items, words = _list([f"#{item}" for item in pull.items]), (*command, pull.number)
    run = next((check.workflow_run for check in checks.inconclusive), 0)
    if owner.reason == "inconclusive" and run:
        words = ("run", "rerun", run)
    if owner.reason in _BY_HAND and not subject.facts.has_keepalive:
        words = (*_BY_HAND[owner.reason], pull.number)
    base, closing = pull.pull.base_branch, f" Merging it closes {items}."
    if not pull_state(pull.pull).is_main:
        closing = f" Merging it into `{base}` does not close {items}: `{base}` is not the default branch."
    why = text.format(
        items=items or "its work item",
        closing=closing if items else "",
        pending=_list([*checks.pending]),
        failing=_list([*checks.failing]),
        inconclusive=inconclusive_text(checks.inconclusive, pull.pull.url),
    )
    if owner.who == "github" or owner.reason == "agent-works":
        return subject.waits(why)
    if owner.reason == "review-due":
        return subject.offers_start(why, subject.gh("comment", "--body", "/accord review"), "review")
    if owner.who == "agent":
        return subject.waits(f"{why} Keepalive works on it.")
    since = pull.judged_at if owner.reason in ("changes-requested", "merge") else None
    return subject.needs(kind, why, subject.facts.address.gh_command(*words), since)
