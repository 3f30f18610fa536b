"""Texts that loops hand to agents: read whether they are those that a person approved."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from accord.engine.trust import approved_at, check_text
from accord.loops.facts import Gathered, LoopContext
from accord.loops.models import NEEDS_HUMAN
from accord.loops.questions import KEEPALIVE


def read_text(gathered: Gathered) -> Gathered:
    """Read whether the body is the one that was there when a person turned the loop on, or let it go on."""
    context, pull = gathered.context, gathered.pull
    if not gathered.label_events or context.is_trusted(pull.author):
        return gathered  # no one else without write access can change it
    at = approved_at(gathered.label_events, context.is_trusted, added=KEEPALIVE, removed=NEEDS_HUMAN)
    return gathered.with_facts(text_changed=text_change(context, at, [pull.number]))


def text_change(context: LoopContext, as_of: datetime | None, numbers: Iterable[int]) -> str:
    """Return why one of these texts is not the one of that time; empty where all are."""
    found = (check_text(context.github, as_of, lambda: context.identity, number) for number in numbers)
    return next((refusal.message for refusal in found if refusal), "")


def read_criteria(gathered: Gathered) -> Gathered:
    """Read whether the criteria are those of the merge, or of the request, unless a person read them since."""
    context, as_of = gathered.context, gathered.pull.merged_at
    numbers = [item.number for item in gathered.facts.work_items or ()]
    if not context.is_trusted(gathered.pull.author):
        numbers.insert(0, gathered.pull.number)  # its body names the items
    if as_of is None and context.run_id.isdecimal():
        run = context.github.workflow_run(int(context.run_id))
        as_of = run.created_at if run else None
    changed = text_change(context, as_of, numbers)
    if changed and as_of:
        again = approved_at(context.github.label_events(context.number), context.is_trusted, removed=NEEDS_HUMAN)
        changed = text_change(context, max(as_of, again or as_of), numbers)
    return gathered.with_facts(text_changed=changed)
