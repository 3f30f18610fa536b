"""The facts of a planner result: what the repository has, gathered before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from accord.core.findings import Finding, warning
from accord.github.limits import PAGE_SIZE, SEARCH_LAG_SECONDS
from accord.github.models import NotThere
from accord.results.bodies import split_body
from accord.results.labels import distinct
from accord.results.planner.changes import PlannedItem, is_retired
from accord.results.planner.match import Matches, match_items
from accord.results.planner.record import ItemRecord, record_of
from accord.results.planner.rules import item_number, split_temp_id
from accord.results.status import foreign_marker, require_writable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Identity, Issue
    from accord.results.planner.rules import Plan

MOST_COMPARED = 1000
"""The newest open items of a kind whose titles are compared with those of new items."""


@dataclass(frozen=True)
class PlanFacts:
    """The repository as a plan needs it.

    ``items`` maps tempIDs to the issues of earlier versions of this plan; ``own`` are the numbers of all that its run
    key made, and ``vanished`` the open ones that the plan has no longer. ``existing`` maps the numbers that the result
    refers to, None for a missing issue. ``blockers`` maps numbers of items to what blocks them: numbers with database
    ids, 0 where only the body says so. ``others`` are open items of other plans, read where the plan creates some.
    ``labels`` are the repository's, None where the plan sets none. ``missing_request`` is the number of the request if
    it is an issue that does not exist. ``identified`` are the issues that tempIDs such as ``T001#12`` name, by number.
    """

    identity: Identity
    token: str
    read_at: datetime
    items: Mapping[str, Issue]
    own: frozenset[int]
    vanished: tuple[Issue, ...]
    existing: Mapping[int, Issue | None]
    blockers: Mapping[int, Mapping[int, int]]
    others: tuple[Issue, ...]
    labels: tuple[str, ...] | None
    findings: tuple[Finding, ...]
    missing_request: int = 0
    identified: Mapping[int, Issue | None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Listing:
    """The issues that were listed, by number, newest first; ``is_whole`` if the repository has no others."""

    issues: Mapping[int, Issue]
    is_whole: bool


_NOTHING_LISTED = _Listing({}, is_whole=False)


def gather_facts(github: GitHub, plan: Plan, token: str, clock: Clock, *, requested: int = 0) -> PlanFacts:
    """Read what the plan depends on. Raises Refused where nothing could be written at all."""
    read_at = clock.now()
    identity = github.identity()
    require_writable(github, identity)
    creates = bool(plan.result.create)
    listing, own, findings = _issues_of_run(github, token, identity) if creates else (_NOTHING_LISTED, [], [])
    labels = None
    numbers = (split_temp_id(item.temp_id)[1] for item in plan.result.create)
    identified = {number: _read_issue(github, number, listing.issues) for number in filter(None, numbers)}
    matches = match_items(plan, own, token, identified)
    findings += map(_repeated, matches.repeated)
    items = {name: _with_closer(github, issue, token) for name, issue in matches.items.items()}
    if creates or any(update.labels for update in plan.result.update):
        labels = tuple(label.name for label in github.labels())
    existing = {number: _read_issue(github, number, listing.issues) for number in _referenced_numbers(plan)}
    is_gone = bool(requested) and _read_issue(github, requested, listing.issues) is None
    own_numbers = frozenset(issue.number for issue in own)
    return PlanFacts(
        identity,
        token,
        read_at,
        items,
        own_numbers,
        tuple(issue for issue in matches.vanished if issue.number not in existing),
        existing,
        _blockers(github, plan, matches, token),
        tuple(
            issue
            for issue in _open_items(github, plan, items, listing)
            if issue.number not in own_numbers | identified.keys()
        ),
        labels,
        tuple(findings),
        missing_request=requested if is_gone else 0,
        identified=identified,
    )


def _issues_of_run(github: GitHub, token: str, identity: Identity) -> tuple[_Listing, list[Issue], list[Finding]]:
    """Find what earlier runs created: by search, and by a listing for the minutes that the search index lacks."""
    horizon = github.server_time() - timedelta(seconds=SEARCH_LAG_SECONDS)
    found = github.search(token)
    listed: dict[int, Issue] = {}
    is_whole = True
    for count, issue in enumerate(github.issues(), 1):
        listed[issue.number] = issue
        if count % PAGE_SIZE == 0 and found.is_complete and issue.created_at < horizon:
            is_whole = False
            break
    candidates = {issue.number: issue for issue in found.issues} | listed
    return _Listing(listed, is_whole), *own_issues(candidates.values(), token, identity)


def own_issues(candidates: Iterable[Issue], token: str, identity: Identity) -> tuple[list[Issue], list[Finding]]:
    """Return the issues that this run key created, the oldest first."""
    own: list[Issue] = []
    findings = []
    for issue in sorted(candidates, key=lambda issue: issue.number):
        if issue.is_pull or record_of(issue, token) is None:
            continue
        if identity.counts(issue.author):
            own.append(issue)
        else:
            findings.append(foreign_marker(f"#{issue.number}", issue.author, identity, is_bot=issue.author_is_bot))
    return own, findings


def _repeated(pair: tuple[Issue, Issue]) -> Finding:
    kept, twin = (f"#{issue.number}" for issue in pair)
    return warning(
        "item-repeated", f"{kept} and {twin} are the same item of this run. {kept} counts.", hint="Close the other."
    )


def _with_closer(github: GitHub, issue: Issue, token: str) -> Issue:
    """Read an item again that accord may have closed, because only that tells who closed it."""
    return github.issue(issue.number) or issue if is_retired(issue, token) else issue


def _open_items(github: GitHub, plan: Plan, items: Mapping[str, Issue], listing: _Listing) -> Iterable[Issue]:
    """Return the open issues of the kinds that the plan creates; a repository that was listed whole has no others."""
    kinds = {kind for kind, item in zip(plan.kinds, plan.result.create, strict=True) if item.temp_id not in items}
    if listing.is_whole:
        return [issue for issue in listing.issues.values() if issue.is_open and not issue.is_pull]
    return [
        issue
        for kind in sorted(kinds)
        for issue in islice(github.issues(state="open", label=kind), MOST_COMPARED)
        if not issue.is_pull
    ]


def planned_items(plan: Plan) -> list[PlannedItem]:
    """Return the items to create, each label once."""
    create = plan.result.create
    return [
        PlannedItem(
            item.temp_id,
            item.title,
            item.body,
            distinct(item.labels),
            tuple(create[j].temp_id for j in plan.blockers(i)),
            tuple(plan.existing_blockers(i)),
        )
        for i, item in enumerate(create)
    ]


def _referenced_numbers(plan: Plan) -> list[int]:
    numbers = [number for i in range(len(plan.result.create)) for number in plan.existing_blockers(i)]
    numbers += [number for ref in plan.result.close if (number := item_number(ref))]
    numbers += [number for update in plan.result.update if (number := item_number(update.work_item_id))]
    return list(dict.fromkeys(numbers))


def _read_issue(github: GitHub, number: int, seen: Mapping[int, Issue]) -> Issue | None:
    """Return an open issue from the listing; read a closed one, because only that tells who closed it."""
    issue = seen.get(number)
    return issue if issue and issue.is_open else github.issue(number)


def _blockers(github: GitHub, plan: Plan, matches: Matches, token: str) -> dict[int, dict[int, int]]:
    """Return which dependencies exist. They are read where a planned one may be missing or an old one is to go.

    All planned ones exist if the record has just these and the issue has as many.
    """
    found = {}
    ids = {issue.number: issue.id for issue in matches.items.values()}
    for item in planned_items(plan):
        issue = matches.items.get(item.temp_id)
        if issue is None:
            continue
        record = record_of(issue, token) or ItemRecord("")
        wanted = item.blocker_numbers(matches.items)
        visible = dict.fromkeys(split_body(issue.body).blocked_by, 0)
        edges = visible
        if record.blockers == wanted and (issue.blocker_count or 0) + len(visible) == len(wanted):
            edges = {number: visible.get(number, ids.get(number, 0)) for number in wanted}
        elif not visible.keys() >= wanted or record.blockers - wanted - visible.keys():
            edges = visible | _native_blockers(github, issue)
        found[issue.number] = edges
    return found


def _native_blockers(github: GitHub, issue: Issue) -> dict[int, int]:
    if issue.blocker_count == 0:
        return {}
    try:
        return {blocker.number: blocker.id for blocker in github.blockers(issue.number)}
    except NotThere:
        return {}
