"""The verifier on GitHub: what is judged, and what a verdict leads to: a comment, a follow-up, or a person asked.

All of it is written once, however often the end of a run is repeated: what was posted carries a marker with the run.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

from accord.github.markers import find_markers, write_marker
from accord.github.once import send_once
from accord.github.pulls import closing_references
from accord.loops.comments import text_to_post
from accord.loops.ending import comment_once
from accord.loops.loop import Completed
from accord.loops.models import decided
from accord.loops.outputs import result_of
from accord.loops.verify import Verdict, VerifyFacts, WorkItem, after, criteria_of, follow_up
from accord.text.markdown import cell, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.models import Issue, Pull, PullFile
    from accord.loops.context import Site
    from accord.loops.facts import Gathered
    from accord.loops.loop import EndedRun
    from accord.loops.models import Decision, Ending
    from accord.text.redaction import Redactor


VERDICT = "verdict"
FOLLOW_UP = "follow-up"
SUMMARY_CHARACTERS = 6_000
DIFF_CHARACTERS = 60_000
CLOCKS_DIFFER = timedelta(minutes=10)
"""How far before the end of a run its follow-up is still looked for."""

TABLE_CHARACTERS = 40_000
"""With a summary that may be twice as long as it should, still inside of a comment's 65,536 characters."""

_NOT_KNOWN = WorkItem(number=1, body="## Acceptance Criteria\n\n- not known yet\n")
_KEPT_LABELS = ("task:", "priority:", "complexity:")
_SIGNS = {"yes": "✅", "no": "❌", "unclear": "❔"}


def first_facts(site: Site, pull: Pull) -> VerifyFacts:
    """Say what the pull request alone tells; its work items are taken to have criteria."""
    return VerifyFacts(
        now=site.now(),
        pull=site.pull_facts(pull),
        agents=site.agents,
        token=site.token,
        is_asked=site.is_asked and (not site.commenter or site.obeys(site.commenter)),
        commit=pull.merge_commit or pull.head_sha,
        work_items=(_NOT_KNOWN,),
    )


def with_work_items(known: Gathered) -> Gathered:
    """Read the work items that the pull request closes."""
    return known.knows(work_items=work_items(known.site, known.pull))


def work_items(site: Site, pull: Pull) -> tuple[WorkItem, ...]:
    """Read the work items of a pull request; numbers that are none are left out."""
    issues = [site.github.issue(number) for number in closing_references(pull.body, site.repository)]
    return tuple(_work_item(site, issue) for issue in issues if issue is not None and not issue.is_pull)


def _work_item(site: Site, issue: Issue) -> WorkItem:
    is_follow_up = bool(find_markers(issue.body, FOLLOW_UP)) and site.identity.counts(issue.author)
    return WorkItem(
        number=issue.number,
        title=issue.title,
        body=issue.body,
        is_follow_up=is_follow_up,
        labels=issue.labels,
    )


def with_diff(known: Gathered) -> Gathered:
    """Read what the pull request changes."""
    return known.knows(diff=diff_of(known.site.github.files(known.pull.number)))


def diff_of(files: Sequence[PullFile]) -> str:
    """Write the files of a pull request as one diff, ``DIFF_CHARACTERS`` at most; GitHub shows no text of some."""
    parts: list[str] = []
    size = 0
    for file in files:
        old = file.previous_path or file.path
        head = f"--- {old if file.status != 'added' else '/dev/null'}\n"
        head += f"+++ {file.path if file.status != 'removed' else '/dev/null'}\n"
        part = head + (f"{file.patch}\n" if file.patch is not None else f"({file.status}; its text is not shown)\n")
        parts.append(part)
        size += len(part)
        if size > DIFF_CHARACTERS:
            break
    return "".join(parts)[:DIFF_CHARACTERS]


def given(known: Gathered) -> tuple[str, ...]:
    """Name the commit that is judged, and the criteria as they are now."""
    facts = known.facts
    assert isinstance(facts, VerifyFacts)  # noqa: S101 (the loop's own facts)
    return facts.commit, criteria_identity(facts.work_items)


def criteria_identity(items: Sequence[WorkItem]) -> str:
    """Name the criteria by a digest: a verdict is about those that the run was shown."""
    return hashlib.sha256("\0".join(criteria_of(items)).encode("utf-8", "replace")).hexdigest()[:20]


def completed(told: EndedRun) -> Completed:
    """Decide what the run's verdict leads to. A run that failed has none, and is followed as any failure is."""
    running = told.state.running
    if told.outputs.exit_code != "0" or running is None:
        return Completed()
    verdict = result_of(told.outputs, Verdict)
    if verdict is None:
        return Completed(decision=_MISSING)
    commit, *shown = running.about
    decision = follows(work_items(told.site, told.pull), verdict, "".join(shown))
    return Completed(tasks_done=len(verdict.criteria), decision=decision, verified=commit)


_MISSING = decided("verdict-missing", "The agent gave no verdict of the shape that was asked for. Judge it yourself.")


def follows(items: Sequence[WorkItem], verdict: Verdict, shown: str) -> Decision:
    """Decide what follows a verdict about the criteria of this digest. Pure."""
    if criteria_identity(items) != shown:
        return decided(
            "verdict-inconsistent", "The criteria were changed while they were judged. Ask for a new verdict."
        )
    return after(items, verdict)


def carry_out(told: EndedRun, ending: Ending) -> None:
    """Open the follow-up and tell the verdict, each unless it is there."""
    verdict = result_of(told.outputs, Verdict)
    if verdict is None:
        return
    items = work_items(told.site, told.pull)
    is_left = told.state.told is not None and told.state.told.reason == "verdict-fail"
    made = _follow_up(told, verdict, items[0]) if is_left and items else None
    criteria = criteria_of(items) if [criteria_identity(items)] == list(ending.about[1:]) else []
    text = page(verdict, criteria, ending.about[0], made.number if made else None, told.site.redact)
    comment_once(told.site, text, VERDICT, run=told.site.run_id)


def _follow_up(told: EndedRun, verdict: Verdict, item: WorkItem) -> Issue:
    """Return the follow-up of this run, made if it is not there."""
    site = told.site
    title, body = follow_up(verdict, item, site.number, site.redact)
    fields = {"pull": str(site.number), "run": site.run_id}
    body = f"{body}\n\n{write_marker(FOLLOW_UP, **fields)}"
    since = next((run.ended_at for run in told.state.history if run.run_id == site.run_id), site.now()) - CLOCKS_DIFFER

    def look() -> Issue | None:
        for issue in site.github.issues():
            if issue.created_at < since:
                return None
            if site.identity.counts(issue.author) and fields in find_markers(issue.body, FOLLOW_UP):
                return issue
        return None

    labels = follow_up_labels(item.labels)
    return look() or send_once(lambda: site.github.create_issue(title, body, labels), look, site.clock)


def follow_up_labels(labels: Sequence[str]) -> list[str]:
    """Return the labels of a follow-up: those of what it is left of, at the beginning of its way."""
    kept = [label for label in labels if label.startswith(_KEPT_LABELS)]
    return [*kept, "status:pending"] if any(label.startswith("status:") for label in labels) or kept else kept


def page(verdict: Verdict, criteria: Sequence[str], commit: str, left: int | None, secrets: Redactor) -> str:
    """Write the comment that tells a verdict: what was judged, a row a criterion, and what is left."""
    rows = [
        [
            _SIGNS[judged.met],
            str(judged.number),
            cell(_criterion(criteria, judged.number)),
            cell(secrets(judged.evidence)),
        ]
        for judged in sorted(verdict.criteria, key=lambda judged: judged.number)
    ]
    shown = _fitting(rows)
    parts = [
        f"### Verdict on `{cell(commit[:12])}`: {verdict.verdict}",
        text_to_post(verdict.summary, secrets, SUMMARY_CHARACTERS),
        table(["", "#", "Criterion", "Evidence"], shown) if shown else "",
        f"{len(rows) - len(shown)} more criteria were judged." if len(rows) > len(shown) else "",
        f"What is left is in #{left}." if left is not None else "",
    ]
    return "\n\n".join(filter(None, parts))


def _fitting(rows: Sequence[list[str]]) -> list[list[str]]:
    """Return as many of the first rows as a comment has room for."""
    sizes = accumulate(sum(len(part) + 3 for part in row) for row in rows)
    return [row for row, size in zip(rows, sizes, strict=True) if size <= TABLE_CHARACTERS]


def _criterion(criteria: Sequence[str], number: int) -> str:
    return criteria[number - 1] if number <= len(criteria) else ""
