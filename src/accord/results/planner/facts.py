"""What a planner result must know of the repository, gathered before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.core.findings import Finding, warning
from accord.github.limits import SEARCH_LAG_SECONDS
from accord.github.models import NotThere
from accord.results.bodies import item_id, split_body
from accord.results.planner.rules import item_number
from accord.results.texts import require_writable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Identity, Issue
    from accord.results.planner.rules import Plan


@dataclass(frozen=True)
class PlanFacts:
    """The repository as a plan needs it.

    ``items`` maps tempIDs to issues of an earlier run of this result; ``existing`` maps the numbers that the result
    refers to; ``blockers`` maps numbers of items to the numbers they wait for; ``labels`` is in lower case.
    """

    identity: Identity
    token: str
    read_at: datetime
    items: Mapping[str, Issue] = field(default_factory=dict)
    existing: Mapping[int, Issue | None] = field(default_factory=dict)
    blockers: Mapping[int, frozenset[int]] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()


def gather_facts(github: GitHub, plan: Plan, token: str, clock: Clock) -> PlanFacts:
    """Read what the plan depends on. Raises Refused where nothing could be written at all.

    Costs: one request each for who we are and what the repository is, one for each hundred items found by search,
    one for each hundred issues of the last minutes, one for each hundred labels, one for each existing issue named.
    """
    read_at = clock.now()
    identity = github.identity()
    require_writable(github, identity)
    seen: dict[int, Issue] = {}
    items: dict[str, Issue] = {}
    findings: list[Finding] = []
    labels: frozenset[str] = frozenset()
    if plan.result.create:
        items, findings = _items_of_run(github, token, identity, seen)
    if plan.result.create or any(update.labels for update in plan.result.update):
        labels = frozenset(label.name.lower() for label in github.labels())
    existing = {number: _fresh(github, number, seen) for number in _numbers_named(plan)}
    return PlanFacts(identity, token, read_at, items, existing, _blockers(github, plan, items), labels, tuple(findings))


def _items_of_run(
    github: GitHub, token: str, identity: Identity, seen: dict[int, Issue]
) -> tuple[dict[str, Issue], list[Finding]]:
    """Find what an earlier run of the same result created.

    The search index knows all but the last minutes, a listing newest-first knows those; neither is enough alone.
    """
    horizon = github.server_time() - timedelta(seconds=SEARCH_LAG_SECONDS)
    found = github.search(token)
    listed = []
    for issue in github.issues():
        if found.is_complete and issue.created_at < horizon:
            break
        seen[issue.number] = issue
        listed.append(issue)
    candidates = {issue.number: issue for issue in [*found.issues, *listed]}
    return own_items(candidates.values(), token, identity)


def own_items(candidates: Iterable[Issue], token: str, identity: Identity) -> tuple[dict[str, Issue], list[Finding]]:
    """Pick the issues whose marker counts: of this run, read back from the body, written by ourselves.

    Of several with one tempID the oldest counts. Raises Refused when a bot that may be us wrote one under another
    name, because creating everything again would be worse.
    """
    items: dict[str, Issue] = {}
    findings = []
    for issue in sorted(candidates, key=lambda issue: issue.number):
        key = item_id(issue.body, token)
        if key is None or issue.is_pull:
            continue
        if identity.counts(issue.author):
            if key in items:
                kept = items[key].number
                message = f'#{kept} and #{issue.number} both are "{key}" of this run. #{kept} counts; close the other.'
                findings.append(warning("item-repeated", message))
            items.setdefault(key, issue)
        elif issue.author_is_bot and not identity.is_person:
            raise Refused(
                f"#{issue.number} carries the marker of this run, but {issue.author} wrote it, not {identity.login}.",
                hint=f"If this token belongs to that app, pass --identity '{issue.author}'.",
            )
        else:
            message = (
                f"#{issue.number} carries the marker of this run, but {issue.author} wrote it, not {identity.login}; "
                f"it is not adopted. If it is yours, pass --identity '{issue.author}'."
            )
            findings.append(warning("foreign-marker", message))
    return items, findings


def _numbers_named(plan: Plan) -> list[int]:
    named = [number for i in range(len(plan.result.create)) for number in plan.existing_blockers(i)]
    named += [number for ref in plan.result.close if (number := item_number(ref))]
    named += [number for update in plan.result.update if (number := item_number(update.work_item_id))]
    return list(dict.fromkeys(named))


def _fresh(github: GitHub, number: int, seen: Mapping[int, Issue]) -> Issue | None:
    """Take an issue from the listing; a closed one is read alone, because only that tells who closed it."""
    issue = seen.get(number)
    return issue if issue and issue.is_open else github.issue(number)


def _blockers(github: GitHub, plan: Plan, items: Mapping[str, Issue]) -> dict[int, frozenset[int]]:
    """Learn which dependencies are there already, asking only where the counts leave a doubt.

    When every item exists and each counts as many blockers as planned, the earlier run came to its end, and the
    planned ones are taken to be there. Anything else means it stopped part-way, and each item is asked.
    """
    create = plan.result.create
    made = {i: items[item.temp_id] for i, item in enumerate(create) if item.temp_id in items}
    visible = {i: frozenset(split_body(issue.body).blocked_by) for i, issue in made.items()}
    wanted = {i: len(plan.blockers(i)) + len(plan.existing_blockers(i)) for i in range(len(create))}
    if all(i in made and _counts(made[i], visible[i]) == count for i, count in wanted.items()):
        return _as_planned(plan, items)
    return {
        issue.number: visible[i] if wanted[i] <= len(visible[i]) else visible[i] | _native_blockers(github, issue)
        for i, issue in made.items()
    }


def _counts(issue: Issue, visible: frozenset[int]) -> int:
    return (issue.blocker_count or 0) + len(visible)


def _as_planned(plan: Plan, items: Mapping[str, Issue]) -> dict[int, frozenset[int]]:
    create = plan.result.create
    return {
        items[create[i].temp_id].number: frozenset(
            [*(items[create[j].temp_id].number for j in plan.blockers(i)), *plan.existing_blockers(i)]
        )
        for i in range(len(create))
    }


def _native_blockers(github: GitHub, issue: Issue) -> frozenset[int]:
    if issue.blocker_count == 0:
        return frozenset()
    try:
        return frozenset(blocker.number for blocker in github.blockers(issue.number))
    except NotThere:
        return frozenset()
