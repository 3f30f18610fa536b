"""The facts of a planner result: what the repository has, gathered before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from accord.core.findings import Finding, warning
from accord.github.limits import SEARCH_LAG_SECONDS
from accord.github.models import NotThere
from accord.results.bodies import item_marker, split_body
from accord.results.planner.rules import item_number
from accord.results.status import foreign_marker, require_writable

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
    refers to, None for a missing issue; ``blockers`` maps numbers of items to the numbers that block them;
    ``labels`` are the repository's, None where the plan sets none.
    """

    identity: Identity
    token: str
    read_at: datetime
    items: Mapping[str, Issue]
    existing: Mapping[int, Issue | None]
    blockers: Mapping[int, frozenset[int]]
    labels: tuple[str, ...] | None
    findings: tuple[Finding, ...]


def gather_facts(github: GitHub, plan: Plan, token: str, clock: Clock) -> PlanFacts:
    """Read what the plan depends on. Raises Refused where nothing could be written at all."""
    read_at = clock.now()
    identity = github.identity()
    require_writable(github, identity)
    seen: dict[int, Issue] = {}
    items: dict[str, Issue] = {}
    findings: list[Finding] = []
    labels = None
    if plan.result.create:
        items, findings = _items_of_run(github, token, identity, seen)
    if plan.result.create or any(update.labels for update in plan.result.update):
        labels = tuple(label.name for label in github.labels())
    existing = {number: _read_issue(github, number, seen) for number in _referenced_numbers(plan)}
    return PlanFacts(identity, token, read_at, items, existing, _blockers(github, plan, items), labels, tuple(findings))


def _items_of_run(
    github: GitHub, token: str, identity: Identity, seen: dict[int, Issue]
) -> tuple[dict[str, Issue], list[Finding]]:
    """Find what an earlier run created: by search, and by a listing for the minutes that the search index lacks."""
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
    """Return the issues that this run created, by tempID; the oldest of several with one tempID counts."""
    items: dict[str, Issue] = {}
    findings = []
    for issue in sorted(candidates, key=lambda issue: issue.number):
        key = item_marker(issue.body, token).get("id")
        if key is None or issue.is_pull:
            continue
        if identity.counts(issue.author):
            if key in items:
                kept = items[key].number
                message = f"#{kept} and #{issue.number} are both `{key}` of this run. #{kept} counts."
                hint = "Close the other."
                findings.append(warning("item-repeated", message, hint=hint))
            items.setdefault(key, issue)
        else:
            findings.append(foreign_marker(f"#{issue.number}", issue.author, identity, is_bot=issue.author_is_bot))
    return items, findings


def _referenced_numbers(plan: Plan) -> list[int]:
    numbers = [number for i in range(len(plan.result.create)) for number in plan.existing_blockers(i)]
    numbers += [number for ref in plan.result.close if (number := item_number(ref))]
    numbers += [number for update in plan.result.update if (number := item_number(update.work_item_id))]
    return list(dict.fromkeys(numbers))


def _read_issue(github: GitHub, number: int, seen: Mapping[int, Issue]) -> Issue | None:
    """Return an open issue from the listing; read a closed one, because only that tells who closed it."""
    issue = seen.get(number)
    return issue if issue and issue.is_open else github.issue(number)


def _blockers(github: GitHub, plan: Plan, items: Mapping[str, Issue]) -> dict[int, frozenset[int]]:
    """Return which dependencies exist. All planned ones do when every item exists with as many blockers as planned."""
    create = plan.result.create
    made = {i: items[item.temp_id] for i, item in enumerate(create) if item.temp_id in items}
    visible = {i: frozenset(split_body(issue.body).blocked_by) for i, issue in made.items()}
    wanted = {i: len(plan.blockers(i)) + len(plan.existing_blockers(i)) for i in range(len(create))}
    if all(i in made and (made[i].blocker_count or 0) + len(visible[i]) == n for i, n in wanted.items()):
        return {
            made[i].number: frozenset([*(made[j].number for j in plan.blockers(i)), *plan.existing_blockers(i)])
            for i in wanted
        }
    return {
        issue.number: visible[i] if wanted[i] <= len(visible[i]) else visible[i] | _native_blockers(github, issue)
        for i, issue in made.items()
    }


def _native_blockers(github: GitHub, issue: Issue) -> frozenset[int]:
    if issue.blocker_count == 0:
        return frozenset()
    try:
        return frozenset(blocker.number for blocker in github.blockers(issue.number))
    except NotThere:
        return frozenset()
