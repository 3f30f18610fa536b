"""Check a planner result against the facts: that what it names exists, is open, and fits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.core.suggest import did_you_mean
from accord.github.limits import BODY_CHARS
from accord.github.models import Issue
from accord.results.bodies import (
    CLOSED,
    UPDATED,
    has_marker,
    likely_kind,
    longest_length,
    marked_body,
    read_body,
    update_limit,
)
from accord.results.body_rules import body_findings
from accord.results.labels import (
    CHANGEABLE,
    CREATION_RULES,
    SET_ONCE,
    Category,
    ItemKind,
    category_of,
    check_allowed,
    in_category,
    kind_of,
    labels_after_update,
)
from accord.results.planner.match import same_title
from accord.results.planner.record import (
    VANISHED,
    content_limit,
    label_digests,
    latest_record,
    update_digest,
    written_digests,
)
from accord.results.planner.rules import Plan, check_length, identity_hint, item_number, numbered_owners, split_temp_id
from accord.results.status import StatusFacts, legal_moves, type_findings
from accord.text.markdown import as_code

if TYPE_CHECKING:
    from accord.results.models import PlannedWorkItem, PlannedWorkItemUpdate
    from accord.results.planner.facts import PlanFacts


def check_facts(plan: Plan, facts: PlanFacts, *, reaches_any: bool = False) -> list[Finding]:
    """Check what only GitHub knows: that issues of the result exist, are open, fit, and keep their kind.

    Only work items are closed and updated, unless the plan ``reaches_any`` issue.
    """
    found = [*facts.findings]
    if facts.missing_request:
        message = f"The request is issue #{facts.missing_request}, which the repository does not have."
        hint = "Pass `--request` with the number of an existing issue, or the path of the specification."
        found.append(Finding("unknown-reference", message, hint=hint))
    for i, item in enumerate(plan.result.create):
        found += _check_identified(item, plan.kinds[i], facts, pointer("create", i, "tempID"))
        for j, reference in enumerate(item.blocked_by):
            if reference not in plan.positions:
                found += _missing_issue(reference, facts, pointer("create", i, "blockedBy", j))
    for owner, path in numbered_owners(plan):
        found += _missing_issue(owner, facts, path)
    for i, reference in enumerate(plan.result.close):
        found += _check_target(reference, facts, pointer("close", i), reaches_any=reaches_any)
        found += _check_close(reference, facts, pointer("close", i))
    for i, update in enumerate(plan.result.update):
        found += _check_target(update.work_item_id, facts, pointer("update", i, "workItemID"), reaches_any=reaches_any)
        found += _check_update(update, facts, pointer("update", i))
    return [*found, *_check_lengths(plan, facts), *_check_labels_exist(plan, facts)]


def _check_identified(item: PlannedWorkItem, kind: ItemKind, facts: PlanFacts, path: str) -> Iterator[Finding]:
    """Check that an item whose tempID names an issue is that issue: an item of a plan, or one with the same title."""
    name, number = split_temp_id(item.temp_id)
    if not number:
        return
    issue = facts.identified.get(number)
    hint = identity_hint(number)
    if issue is None or issue.is_pull:
        yield Finding("unknown-reference", f"`{name}` says it is #{number}, which is not an issue.", path, hint=hint)
    elif not latest_record(issue, facts.token, facts.identity) and same_title(issue.title) != same_title(item.title):
        message = f"`{name}` says it is #{number}, but no plan made that issue, and its title is another."
        yield Finding("item-identity", message, path, hint=hint)
    elif (kind_of(issue.labels) or kind) is not kind:
        message = f"`{name}` says it is #{number}, which is a {kind_of(issue.labels)} item."
        yield Finding("item-identity", message, path, hint=hint)


def check_names(plan: Plan, redact: Callable[[str], str]) -> Iterator[Finding]:
    """Refuse names that contain a secret: redacting it would change the name."""
    names = [(item.temp_id, pointer("create", i, "tempID")) for i, item in enumerate(plan.result.create)]
    for name, path in [*names, *_labels(plan)]:
        if redact(name) != name:
            message = "This name contains a secret, or a value that is secret in this process."
            yield Finding("secret-in-name", message, path, hint="Use another name.")


def _check_target(reference: str, facts: PlanFacts, path: str, *, reaches_any: bool) -> Iterator[Finding]:
    yield from _missing_issue(reference, facts, path)
    issue = None if reaches_any else existing_issue(reference, facts)
    for found in type_findings(issue, lambda: facts.identity, facts.token) if issue else ():
        yield replace(found, path=path, hint="Leave it out, or pass `--any-issue` to `accord apply`.")


def _check_close(reference: str, facts: PlanFacts, path: str) -> Iterator[Finding]:
    issue = existing_issue(reference, facts)
    if issue and is_reopened(issue, facts):
        message = f"#{issue.number} was closed and reopened since, so accord does not close it again."
        yield warning("item-reopened", message, path, hint="Close it by hand if it is no longer needed.")
    elif issue and not _closed_by_us(issue, facts):
        yield from _check_open(issue, path, facts)


def _check_update(update: PlannedWorkItemUpdate, facts: PlanFacts, path: str) -> Iterator[Finding]:
    """Check that an update reaches an open item, and fits its kind."""
    issue = existing_issue(update.work_item_id, facts)
    if issue is None:
        return
    if not has_update(issue, facts.token, update):
        yield from _check_open(issue, path + "/workItemID", facts)
    kind, labels = kind_of(issue.labels), update.labels
    if kind and update.body is not None and likely_kind(body := read_body(update.body)) is not kind:
        yield from body_findings(body, kind, path + "/body")
    if labels is not None:
        yield from _check_kept(issue, labels, path + "/labels")
    if labels is not None and kind:
        yield from check_allowed(labels, kind, path + "/labels", CHANGEABLE)


def _check_kept(issue: Issue, labels: Sequence[str], path: str) -> Iterator[Finding]:
    """Warn of labels that an update keeps: type and status, and the last one of each category."""
    kind = kind_of(issue.labels) or ItemKind.TASK
    has = {label.casefold() for label in issue.labels}
    for i, label in enumerate(labels):
        if category_of(label) in SET_ONCE and label.casefold() not in has:
            message = f"An update keeps type and status, so `{label}` is left out."
            status = label.partition(":")[2].lower() if category_of(label) is Category.STATUS else ""
            move = f", or run `accord items move {issue.number} --to {status}`"
            hint = f"Remove it{move if status in legal_moves(issue, StatusFacts()) else ''}."
            yield warning("label-ignored", message, path + pointer(i), hint=hint)
    for category in CHANGEABLE:
        if not CREATION_RULES[kind][category] or in_category(labels, category):
            continue
        if kept := in_category(issue.labels, category):
            message = f"The list has no {category.word}, so #{issue.number} keeps `{kept[0]}`."
            yield warning("label-kept", message, path, hint="Add the label that the item is to have.")
        else:
            message = f"#{issue.number} has no {category.word} label, and the list adds none."
            yield warning("label-missing", message, path, hint=f"Add a {category.word} label.")


def existing_issue(reference: str, facts: PlanFacts) -> Issue | None:
    """Return the issue that a result refers to; None without one, and for a pull request."""
    issue = facts.existing.get(item_number(reference) or 0)
    return None if issue is None or issue.is_pull else issue


def has_update(issue: Issue, token: str, update: PlannedWorkItemUpdate) -> bool:
    """Return whether an update was applied before; any person may have opened the issue.

    Its marker has a digest of the update, so a forged one gains nothing: at worst its own issue misses this update.
    """
    return has_marker(issue.body, UPDATED, token, sum=update_digest(update))


def is_reopened(issue: Issue, facts: PlanFacts) -> bool:
    """Return whether this run key closed an item of ours that is open: a person reopened it."""
    is_ours = facts.identity.counts(issue.author)  # the author of another could have copied the marker
    return issue.is_open and is_ours and any(has_marker(issue.body, name, facts.token) for name in (CLOSED, VANISHED))


def _closed_by_us(issue: Issue, facts: PlanFacts) -> bool:
    return (
        facts.identity.counts(issue.closed_by)
        and issue.state_reason == "not_planned"
        and (has_marker(issue.body, CLOSED, facts.token) or not marked_body(issue, CLOSED, run=facts.token))
    )


def _check_lengths(plan: Plan, facts: PlanFacts) -> Iterator[Finding]:
    """Find bodies that do not fit once owners have numbers, or beside the parts that an item keeps."""
    for i, item in enumerate(plan.result.create):
        if 2 * len(item.body) > BODY_CHARS:
            limit = content_limit(item.temp_id, len(item.blocked_by), len(item.labels))
            yield from check_length(longest_length(item.body, plan.names), limit, pointer("create", i, "body"))
    for i, update in enumerate(plan.result.update):
        issue = existing_issue(update.work_item_id, facts)
        if issue and update.body and 2 * len(update.body) > BODY_CHARS:
            labels = label_digests(labels_after_update(issue, update.labels or ()))
            wrote = ".".join(written_digests("", labels))
            limit = update_limit(issue, facts.token, update_digest(update), wrote)
            yield from check_length(longest_length(update.body, plan.names), limit, pointer("update", i, "body"))


def _missing_issue(reference: str, facts: PlanFacts, path: str) -> Iterator[Finding]:
    number = item_number(reference)
    if number and existing_issue(reference, facts) is None:
        is_pull = facts.existing.get(number) is not None
        message = f"#{number} is a pull request." if is_pull else f"The repository has no issue #{number}."
        yield Finding("unknown-reference", message, path, hint="Use the number of an existing issue.")


def _check_open(issue: Issue, path: str, facts: PlanFacts) -> Iterator[Finding]:
    """Report an item that was closed by others: an error at first, a warning when a run continues."""
    if issue.is_open:
        return
    if facts.items:
        message = f"#{issue.number} was closed after this run began, and stays unchanged."
        yield warning("already-closed", message, path, hint="Reopen it if it is still needed.")
    else:
        message = f"#{issue.number} is closed already."
        yield Finding("already-closed", message, path, hint="Leave it out of the result, or reopen it first.")


def _check_labels_exist(plan: Plan, facts: PlanFacts) -> Iterator[Finding]:
    """Warn once about each label that GitHub would create by itself."""
    known = facts.labels or ()
    seen = {label.casefold() for label in known}
    for label, path in _labels(plan):
        is_ignored = path.startswith("/update/") and category_of(label) in SET_ONCE
        if not is_ignored and label.casefold() not in seen:
            seen.add(label.casefold())
            hint = did_you_mean(label, known) or _CREATE_LABEL
            yield warning("label-not-there", f"{_LACKS} {as_code(label)}{_GREY}", path, hint=hint)


_LACKS, _GREY = "The repository has no label", ", so GitHub will create a grey one."
_CREATE_LABEL = "Create it, or run `accord labels sync`."


def with_grouped_labels(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings for people: labels that a repository lacks in one, except those that look misspelt."""
    lacking = [each for each in findings if each.code == "label-not-there" and each.hint == _CREATE_LABEL]
    if len(lacking) < 2:
        return list(findings)
    names = ", ".join(each.message.removeprefix(f"{_LACKS} ").removesuffix(_GREY) for each in lacking)
    message = f"The repository has none of {len(lacking)} labels, so GitHub will create grey ones: {names}."
    grouped = warning("label-not-there", message, hint="Create accord's labels first: run `accord labels sync`.")
    return [grouped, *(each for each in findings if each not in lacking)]


def _labels(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield every label of a plan with its pointer."""
    lists = [(item.labels, pointer("create", i, "labels")) for i, item in enumerate(plan.result.create)]
    lists += [(update.labels or [], pointer("update", i, "labels")) for i, update in enumerate(plan.result.update)]
    return ((label, path + pointer(j)) for labels, path in lists for j, label in enumerate(labels))
