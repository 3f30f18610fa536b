"""The verdict on a merged change, and the follow-up for unmet criteria: a full task, made once for a pull request."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Literal

from pydantic import Field

from accord.core.findings import Finding, Severity
from accord.core.kinds import check_document
from accord.github.limits import TITLE_CHARS
from accord.github.models import Issue
from accord.loops.facts import EndedRun
from accord.loops.models import Closed
from accord.loops.texts import Poster
from accord.text.markdown import as_quote, bare_title, with_closed_fence
from accord.text.markers import find_markers, take_markers, write_marker
from accord.text.outline import sections

FOLLOW_UP_MARKER = "follow-up"
BODY_CHARACTERS = 30_000
_CUT = "\n> The rest of the proposal is left out."

_SKEW = timedelta(minutes=10)
"""How much the clocks of this machine and of GitHub may differ."""

_UNDERLINE = re.compile(r" {0,3}(?:-+|=+)\s*")
_KNOWN = re.compile(r"task:implement|priority:(?:high|medium|low)|complexity:(?:trivial|low|medium|high)")
_DEFAULTS = {"task": "implement", "priority": "medium", "complexity": "low"}


class WorkItem(Closed):
    """A linked work item. ``is_follow_up`` counts only where a marker of our own login says so."""

    number: int
    title: str = ""
    body: str = ""
    is_follow_up: bool = False
    is_open: bool = True
    labels: tuple[str, ...] = ()


class Criterion(Closed):
    """A criterion by its number in the prompt, whether it is met, and the evidence."""

    number: int = Field(ge=1)
    met: Literal["yes", "no", "unclear"]
    evidence: str = Field(min_length=1)


class FollowUpIssue(Closed):
    """A work item for the remaining work."""

    title: str = Field(min_length=1)
    body: str = Field(min_length=1)


class Verdict(Closed):
    """The agent's answer: every criterion once, and a follow-up or null."""

    role: Literal["verifier"]
    verdict: Literal["pass", "fail", "unsure"]
    summary: str = Field(min_length=1)
    criteria: tuple[Criterion, ...]
    follow_up: FollowUpIssue | None


def unmet_criteria(verdict: Verdict, criteria: Sequence[str]) -> list[str]:
    """Return the criteria that a verdict does not call met, by their numbers from 1."""
    unmet = {one.number for one in verdict.criteria if one.met != "yes"}
    return [text for number, text in enumerate(criteria, 1) if number in unmet]


def follow_up_findings(follow_up: FollowUpIssue, item: WorkItem, unmet: Sequence[str]) -> list[Finding]:
    """Hold a follow-up against the rules of plans, and return the errors."""
    body, labels = follow_up_body(follow_up, item, unmet), follow_up_labels(item.labels)
    created = {"tempID": "rest", "title": follow_up.title, "body": body, "labels": labels, "blockedBy": []}
    plan = {"role": "planner", "create": [created], "close": [], "update": []}
    _, found = check_document(json.dumps(plan).encode(), "planner-result")
    if len(body) > BODY_CHARACTERS:
        message, hint = f"Its body has more than {BODY_CHARACTERS:,} characters.", "Shorten the work item's scope."
        found.append(Finding("body-too-long", message, "/create/0/body", hint=hint))
    return [finding for finding in found if finding.severity is Severity.ERROR]


def follow_up_body(follow_up: FollowUpIssue, item: WorkItem, unmet: Sequence[str]) -> str:
    """Return the body by the template of a task: reference, scope and limits of the item, and its unmet criteria.

    The agent's proposal is quoted as context, because it has no say in the scope; as much of it as fits.
    """
    proposal = as_quote(follow_up.body)
    parts = [
        ("## Objective", f"Finish #{item.number}: {' '.join(follow_up.title.split())}"),
        ("## Spec Reference", _part(item.body, "Spec Reference") or f"- Spec: #{item.number}\n- Section(s): all"),
        ("## Scope", ""),
        ("### In Scope", _part(item.body, "In Scope", "- `**`")),
        ("### Out of Scope", _part(item.body, "Out of Scope") or "None"),
        ("## Acceptance Criteria", "\n".join(f"- [ ] {text}" for text in unmet)),
        ("## Context", ""),
        ("## Constraints", _part(item.body, "Constraints") or "None"),
    ]
    free = BODY_CHARACTERS - sum(len(heading) + len(text) + 4 for heading, text in parts)
    if len(proposal) > free:
        proposal = f"{proposal[: max(0, free - len(_CUT))].rpartition(chr(10))[0]}{_CUT}".lstrip()
    parts[-2] = ("## Context", proposal)
    return "\n\n".join(f"{heading}\n\n{text}".rstrip() for heading, text in parts)


def _part(body: str, title: str, otherwise: str = "") -> str:
    """Return the section of this title and those below it as they are, without accord's markers."""
    content, _ = take_markers(body)
    found = sections(content)
    for i, section in enumerate(found):
        if bare_title(section.title) == bare_title(title):
            ends = (other.line - 1 for other in found[i + 1 :] if other.level <= section.level)
            lines = content.splitlines()[section.line : next(ends, None)]
            return with_closed_fence("\n".join(lines[bool(lines and _UNDERLINE.fullmatch(lines[0])) :]).strip())
    return otherwise


def follow_up_text(
    follow_up: FollowUpIssue, item: WorkItem, unmet: Sequence[str], pull: int, post: Poster
) -> tuple[str, str]:
    """Return title and body of the follow-up, safe to post."""
    follow_up = follow_up.model_copy(update={"body": post.secrets(follow_up.body)})  # lines with secrets are not cut
    title = post.line(follow_up.title, TITLE_CHARS - 50) or f"Remaining work of #{item.number}"
    body = post.text(follow_up_body(follow_up, item, unmet), BODY_CHARACTERS)
    return title, f"{body}\n\nRemaining work of #{item.number} after #{pull}."


def follow_up_labels(labels: Sequence[str]) -> list[str]:
    """Return the labels of a follow-up: one of each category, as its work item has them, with the first status."""
    given = {label.partition(":")[0]: label for label in labels if _KNOWN.fullmatch(label)}
    return [*(given.get(name, f"{name}:{value}") for name, value in _DEFAULTS.items()), "status:pending"]


def create_follow_up(run: EndedRun, follow_up: FollowUpIssue, item: WorkItem, unmet: Sequence[str]) -> Issue | None:
    """Return the follow-up of this pull request, created if no run did; None in a dry run."""
    context, github = run.context, run.context.github
    fields = {"pull": str(context.number)}
    title, body = follow_up_text(follow_up, item, unmet, context.number, context.post)
    body = f"{body}\n\n{write_marker(FOLLOW_UP_MARKER, **fields)}"
    since = (run.pull.merged_at or run.pull.created_at or github.server_time()) - _SKEW

    def find() -> Issue | None:
        for issue in github.issues():
            if issue.created_at < since:
                return None
            marks = find_markers(issue.body, FOLLOW_UP_MARKER) if context.identity.counts(issue.author) else []
            if any(fields.items() <= mark.items() for mark in marks):
                return issue
        return None

    send = partial(github.create_issue, title, body, follow_up_labels(item.labels))
    return context.log.write_once("create-follow-up", f"rest of #{item.number}", send, find, github)
