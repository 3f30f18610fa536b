"""Report how a plan differs from its earlier version: as findings, and item by item. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, pointer, warning
from accord.github.limits import BODY_CHARS
from accord.results.bodies import longest_length, read_body
from accord.results.planner.changes import difference, reason_to_keep, to_issue_change
from accord.results.planner.checks import rewritable
from accord.results.planner.duplicates import near_duplicates
from accord.results.planner.plan import is_settled
from accord.results.planner.record import record_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.github.models import Issue
    from accord.results.planner.changes import Comparison
    from accord.results.planner.facts import PlanFacts
    from accord.results.planner.rules import Plan

_MOST_NAMED = 20


def change_findings(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], *, closes_vanished: bool
) -> Iterator[Finding]:
    """Warn of changes that are not made, of items that vanished, and of likely duplicates in other plans."""
    names = rewritable(plan)
    for i, item in enumerate(plan.result.create):
        issue, comparison = facts.items.get(item.temp_id), comparisons.get(item.temp_id)
        if issue is None or comparison is None:
            continue
        yield from item_findings(item.temp_id, issue, comparison, pointer("create", i))
        growth = longest_length(item.body, names) - len(item.body)
        body = to_issue_change(comparison, issue, facts.token).body or ""
        if comparison.parts and len(body) + growth > BODY_CHARS and not is_settled(issue, comparison):
            message = (
                f"The body of #{issue.number} would have {len(body) + growth} characters; GitHub allows {BODY_CHARS}."
            )
            yield Finding(
                "body-too-long", message, pointer("create", i, "body"), hint="Move details into files and link them."
            )
    new = [i for i, item in enumerate(plan.result.create) if item.temp_id not in facts.items]
    yield from _vanished(plan, new, facts, closes_vanished=closes_vanished)
    yield from near_duplicates(plan, new, facts.others)


def item_findings(name: str, issue: Issue, comparison: Comparison, path: str = "") -> Iterator[Finding]:
    """Warn of changes of the plan that an issue does not get: it is closed, or a person edited the same part."""
    if comparison.all_parts and is_settled(issue, comparison):
        message = (
            f"#{issue.number} `{name}` is closed and stays as it is; the plan changed {_listed(comparison.all_parts)}."
        )
        yield warning("item-closed", message, path, hint="Reopen it and apply the plan again, or plan another item.")
    elif comparison.kept:
        parts = _listed(comparison.kept)
        message = (
            f"#{issue.number} `{name}` was edited since accord wrote it, so accord does not apply the plan's {parts}."
        )
        yield warning("item-edited", message, path, hint="Edit the issue by hand, or put the change into `update`.")


def _vanished(plan: Plan, new: Sequence[int], facts: PlanFacts, *, closes_vanished: bool) -> Iterator[Finding]:
    """Warn of items that stay open, and name the new item that has the same path in scope: it may be a copy."""
    by_path = {path: plan.result.create[i].temp_id for i in reversed(new) for path in plan.bodies[i].in_scope}
    left = []
    for issue in facts.vanished:
        reason = reason_to_keep(issue, facts.token)
        if reason and closes_vanished:
            message = f"{_named(issue, facts.token)} is no longer in the plan and stays open: {reason}."
            message += _twin_of(issue, by_path, "It")
            yield warning("item-vanished", message, hint="Close it by hand if it is no longer needed.")
        elif not closes_vanished:
            left.append(issue)
    if left:
        names = [_named(issue, facts.token) for issue in left[:_MOST_NAMED]]
        shown = ", ".join(names) + (f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else "")
        verb = (
            "is no longer in the plan and stays open" if len(left) == 1 else "are no longer in the plan and stay open"
        )
        hint = "Pass `--close-vanished` to close such items, unless the plan only adds to an earlier one."
        subjects = names if len(left) > 1 else ["It"]
        copies = "".join(_twin_of(issue, by_path, name) for issue, name in zip(left, subjects, strict=False))
        yield warning("item-vanished", f"{shown} {verb}.{copies}", hint=hint)


def _twin_of(issue: Issue, by_path: Mapping[str, str], name: str) -> str:
    """Return a sentence about the new item that shares a path with this issue; empty without one."""
    shared = next((path for path in read_body(issue.body).in_scope if path in by_path), None)
    return f" {name} may be `{by_path[shared]}` now: both have `{shared}` in scope." if shared else ""


def _named(issue: Issue, token: str) -> str:
    record = record_of(issue, token)
    return f"#{issue.number} `{record.temp_id}`" if record else f"#{issue.number}"


def _listed(parts: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def differences(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], *, closes_vanished: bool, with_texts: bool
) -> list[dict[str, Any]]:
    """Return how each item differs from its issue, in the order of the plan, then what vanished from it.

    ``change`` is create, update, unchanged, edited (only a person's edit differs), closed, close or vanished.
    """
    found: list[dict[str, Any]] = []
    for item in plan.result.create:
        issue, comparison = facts.items.get(item.temp_id), comparisons.get(item.temp_id)
        entry: dict[str, Any] = {"item": item.temp_id, "id": str(issue.number) if issue else None, "title": item.title}
        if issue is None or comparison is None:
            found.append({**entry, "change": "create", "parts": [], "kept": []})
            continue
        entry |= {
            "change": _change_of(issue, comparison),
            "parts": list(comparison.parts),
            "kept": list(comparison.kept),
        }
        if with_texts and entry["change"] == "update":
            entry["diff"] = difference(comparison, issue)
        found.append(entry)
    for issue in facts.vanished:
        record = record_of(issue, facts.token)
        closes = closes_vanished and not reason_to_keep(issue, facts.token)
        entry = {"item": record.temp_id if record else "", "id": str(issue.number), "title": issue.title}
        found.append({**entry, "change": "close" if closes else "vanished", "parts": [], "kept": []})
    return found


def _change_of(issue: Issue, comparison: Comparison) -> str:
    if not comparison.all_parts:
        return "unchanged"
    if is_settled(issue, comparison):
        return "closed"
    return "update" if comparison.parts else "edited"
