"""The facts of a planner result: what the repository has, gathered before anything is planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from accord.core.clock import Clock
from accord.core.findings import Finding, warning
from accord.core.frozen import Frozen
from accord.github.limits import PAGE_SIZE, SEARCH_LAG_SECONDS
from accord.github.models import Identity, Issue, NotThere
from accord.results.bodies import split_body
from accord.results.planner.match import match_items
from accord.results.planner.record import ItemRecord, is_retired, record_of
from accord.results.planner.rules import Plan, item_number, numbered_owners, split_temp_id
from accord.results.status import foreign_marker, require_writable

if TYPE_CHECKING:
    from accord.github.client import GitHub

MOST_COMPARED = 1000
"""The newest open items of a kind whose titles are compared with those of new items."""


class PlanFacts(Frozen):
    """The repository as a plan needs it."""

    identity: Identity
    token: str
    read_at: datetime
    items: Mapping[str, Issue]  # of earlier versions of this plan, by tempID
    own: frozenset[int]  # the numbers of all that this run key made
    vanished: tuple[Issue, ...]  # open ones of those that the plan has no longer
    existing: Mapping[int, Issue | None]  # that the result refers to, None for a missing one
    blockers: Mapping[int, Mapping[int, int]]  # of items, by number: database ids, 0 where only the body says so
    others: tuple[Issue, ...]  # open items of other plans, where the plan creates some
    labels: tuple[str, ...] | None  # of the repository, None where the plan sets none
    findings: tuple[Finding, ...]
    missing_request: int = 0  # the number of the request if it is an issue that does not exist
    identified: Mapping[int, Issue | None] = field(default_factory=dict)  # that tempIDs such as ``T001#12`` name


class _Run(NamedTuple):
    """The issues that were read for a run."""

    own: Sequence[Issue] = ()  # of this run key
    findings: Sequence[Finding] = ()
    listed: Mapping[int, Issue] = MappingProxyType({})  # the newest ones, by number
    is_whole: bool = False  # all issues are listed


def gather_facts(github: GitHub, plan: Plan, token: str, clock: Clock, *, requested: int = 0) -> PlanFacts:
    """Read what the plan depends on. Raises Refused where nothing could be written at all."""
    read_at = clock.now()
    identity = github.identity()
    require_writable(github, identity)
    creates = bool(plan.result.create)
    run = _read_run(github, token, identity) if creates else _Run()
    read = partial(_read_issue, github, run.listed)
    numbers = (split_temp_id(item.temp_id)[1] for item in plan.result.create)
    identified = {number: read(number) for number in numbers if number}
    matches = match_items(plan, run.own, token, identified)
    items = {  # of what accord may have closed, only reading it again tells who closed it
        name: (github.issue(issue.number) or issue) if is_retired(issue, token) else issue
        for name, issue in matches.items.items()
    }
    sets_labels = creates or any(update.labels for update in plan.result.update)
    labels = tuple(label.name for label in github.labels()) if sets_labels else None
    existing = {number: read(number) for number in _referenced_numbers(plan)}
    owners = {number for owner, _ in numbered_owners(plan) if (number := item_number(owner))}
    own = frozenset(issue.number for issue in run.own)
    return PlanFacts(
        identity,
        token,
        read_at,
        items,
        own,
        tuple(issue for issue in matches.vanished if issue.number not in existing),
        existing | {number: read(number) for number in sorted(owners - existing.keys())},
        _blockers(github, plan, matches.items, token),
        tuple(each for each in _open_items(github, plan, items, run) if each.number not in own | identified.keys()),
        labels,
        (*run.findings, *map(_repeated_item, matches.repeated)),
        missing_request=requested if requested and read(requested) is None else 0,
        identified=identified,
    )


def _read_run(github: GitHub, token: str, identity: Identity) -> _Run:
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
    return _Run(*own_issues(candidates.values(), token, identity), listed, is_whole)


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


def _repeated_item(pair: tuple[Issue, Issue]) -> Finding:
    kept, twin = (f"#{issue.number}" for issue in pair)
    message = f"{kept} and {twin} are the same item of this run. {kept} counts."
    return warning("item-repeated", message, hint="Close the other.")


def _open_items(github: GitHub, plan: Plan, items: Mapping[str, Issue], run: _Run) -> Iterable[Issue]:
    """Return the open issues of the kinds that the plan creates; a repository that was listed whole has no others."""
    kinds = {kind for kind, item in zip(plan.kinds, plan.result.create, strict=True) if item.temp_id not in items}
    if run.is_whole:
        return [issue for issue in run.listed.values() if issue.is_open and not issue.is_pull]
    return [
        issue
        for kind in sorted(kinds)
        for issue in islice(github.issues(state="open", label=kind), MOST_COMPARED)
        if not issue.is_pull
    ]


def _referenced_numbers(plan: Plan) -> list[int]:
    numbers = [number for item in plan.items for number in item.numbers]
    numbers += [number for ref in plan.result.close if (number := item_number(ref))]
    numbers += [number for update in plan.result.update if (number := item_number(update.work_item_id))]
    return list(dict.fromkeys(numbers))


def _read_issue(github: GitHub, seen: Mapping[int, Issue], number: int) -> Issue | None:
    """Return an open issue from the listing; read a closed one, because only that tells who closed it."""
    issue = seen.get(number)
    return issue if issue and issue.is_open else github.issue(number)


def _blockers(github: GitHub, plan: Plan, issues: Mapping[str, Issue], token: str) -> dict[int, dict[int, int]]:
    """Return which dependencies exist. They are read where a planned one may be missing or an old one is to go.

    All planned ones exist if the record has just these and the issue has as many.
    """
    found = {}
    ids = {issue.number: issue.id for issue in issues.values()}
    for item in plan.items:
        issue = issues.get(item.temp_id)
        if issue is None:
            continue
        record = record_of(issue, token) or ItemRecord("")
        wanted = item.blocker_numbers(issues)
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
