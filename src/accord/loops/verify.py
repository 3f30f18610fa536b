"""Verifier: after a merge, or when a person requests it, judge the change by the acceptance criteria of its work item.

The agent changes nothing and answers with a verdict. Here is decided what follows: a report, a follow-up work item, or
a question to a person. A follow-up of a follow-up is never created. Everything is posted once: it carries a marker with
the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from accord.core.findings import Finding
from accord.github.models import Pull
from accord.github.pulls import closing_references
from accord.loops.apply import comment_once
from accord.loops.facts import (
    CompletedWork,
    EndedRun,
    Gathered,
    Loop,
    LoopContext,
    read_criteria,
    read_labels,
    read_state,
)
from accord.loops.follow_up import (
    FOLLOW_UP_MARKER,
    Verdict,
    WorkItem,
    create_follow_up,
    follow_up_findings,
    unmet_criteria,
)
from accord.loops.models import LoopDecision, LoopFacts, LoopState, PendingEffects, decision_for
from accord.loops.outputs import result_of
from accord.loops.questions import (
    BEFORE_A_RUN,
    Situation,
    check_agent,
    check_stop_labels,
    check_text,
    first_decision,
    run_decision,
    situation_of,
)
from accord.loops.texts import Poster, diff_of, digest, join_parts
from accord.text.criteria import criteria_sections
from accord.text.markdown import cell, table
from accord.text.markers import find_markers
from accord.text.untrusted import DATA as UNTRUSTED
from accord.text.untrusted import fenced_data

VERDICT_MARKER = "verdict"
SHOWN_DIFF_CHARACTERS = 20_000
SUMMARY_CHARACTERS = 6_000
TABLE_CHARACTERS = 40_000
"""With a summary of twice its length, still within a comment's 65,536 characters."""

_SIGNS = {"yes": "✅", "no": "❌", "unclear": "❔"}


class VerifyFacts(LoopFacts):
    """The facts of the verifier. ``commit`` is the merged one, or the head where a person requested a verdict.

    ``verified`` is a commit that has a verdict already, besides the state's. ``work_items`` are null while they are not
    read. With ``verdict`` the decision is about what follows it.
    """

    kind: Literal["verify-facts"] = "verify-facts"
    is_asked: bool = False
    commit: str
    verified: str = ""
    work_items: tuple[WorkItem, ...] | None = ()
    diff: str = ""
    verdict: Verdict | None = None
    state: LoopState = LoopState(loop="verify")


def criteria_of(items: Sequence[WorkItem]) -> list[str]:
    """Return the acceptance criteria of work items, as their checklists list them, in order."""
    sections = (section for item in items for section in criteria_sections(item.body))
    return [entry.text for section in sections for entry in section.items if entry.text]


def _check_subject(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    if not facts.pull.is_merged and not facts.is_asked:
        return decision_for("not-merged", "The pull request is not merged, and no person requested a verdict.")
    if facts.pull.is_fork and not facts.pull.is_merged:
        message = (
            "The pull request comes from a fork and is not merged: its files decide what runs beside the agent's "
            "secret. Merge it first, or judge it from a branch of this repository."
        )
        return decision_for("fork-unmerged", message)
    if facts.commit and facts.commit in (facts.verified, facts.state.verified) and not facts.is_asked:
        return decision_for("already-verified", f"Commit {facts.commit} already has a verdict.")
    if facts.work_items is None:
        return None
    if not facts.work_items:
        return decision_for("no-work-item", "No work item is linked. Add `Closes #N` to the pull request's body.")
    if not criteria_of(facts.work_items):
        numbers = ", ".join(f"#{item.number}" for item in facts.work_items)
        return decision_for("no-criteria", f"No acceptance criteria are listed in {numbers}.")
    return None


def _check_token(situation: Situation) -> LoopDecision | None:
    """Stop where the verdict could not be posted. A fork's merged change is fine, since nothing is pushed to it."""
    if situation.facts.token.may_write:
        return None
    message = "The token can only read. Grant the job issues: write and pull-requests: write."
    return decision_for("read-only-token", message)


def appendix(facts: VerifyFacts, redact: Callable[[str], str]) -> str:
    """Return what the agent needs to judge: the criteria by number, and the diff."""
    from accord.text.untrusted import visible_text

    criteria = criteria_of(facts.work_items or ())
    listed = "\n".join(f"{number}. {visible_text(text)}" for number, text in enumerate(criteria, start=1))
    diff = redact(facts.diff)
    more = len(diff) - SHOWN_DIFF_CHARACTERS
    cut = f"\n[{more} more characters; read the files]" if more > 0 else ""
    request = (
        "## Verify\n\nJudge whether this change meets each criterion. Change nothing. Answer pass only if every "
        "criterion is met, with evidence (file and line, or a command and its output); unsure where you cannot tell. "
        f"Propose a follow-up only for remaining work.\n\n{UNTRUSTED}"
    )
    parts = [
        request,
        f"### Criteria\n\n{fenced_data(redact(listed)[:8000])}",
        f"### Change {facts.commit}\n\n{fenced_data(diff[:SHOWN_DIFF_CHARACTERS] + cut)}",
    ]
    return join_parts(parts, "The change was left out for its length; read it with git.")


def decide_verdict(items: Sequence[WorkItem], verdict: Verdict) -> LoopDecision:
    """Decide what follows a verdict. Pure."""
    count = len(criteria_of(items))
    numbers = sorted(criterion.number for criterion in verdict.criteria)
    problems = [finding.text for finding in verdict_findings(verdict)]
    if numbers != list(range(1, count + 1)):
        problems.insert(0, f"The verdict must judge the criteria 1 to {count} once each.")
    if problems:
        return decision_for("verdict-inconsistent", f"{problems[0]} Read the verdict and decide.")
    if verdict.verdict == "unsure":
        return decision_for("verdict-unsure", "The verdict is unsure. Read its evidence and decide.")
    if verdict.verdict == "pass":
        return decision_for("verdict-pass", "All criteria are met.")
    unmet, unclear = (sum(criterion.met == met for criterion in verdict.criteria) for met in ("no", "unclear"))
    summary = f"Criteria not met: {unmet} of {count}{f', unclear: {unclear}' if unclear else ''}."
    if any(item.is_follow_up for item in items):
        message = f"{summary} The work item is itself a follow-up, so no other is created."
        return decision_for("follow-up-chain", message)
    if verdict.follow_up is None:
        return decision_for("follow-up-empty", f"{summary} The verdict proposes no work. Decide what to do.")
    if broken := follow_up_findings(
        verdict.follow_up, item_left(items, verdict), unmet_criteria(verdict, criteria_of(items))
    ):
        return decision_for("follow-up-empty", f"{summary} The follow-up breaks a rule: {broken[0].text}")
    return decision_for("verdict-fail", f"{summary} A follow-up work item holds the rest.")


def item_left(items: Sequence[WorkItem], verdict: Verdict) -> WorkItem:
    """Return the work item of the first criterion that the verdict does not call met."""
    unmet = [one.number for one in verdict.criteria if one.met != "yes"]
    by_number = [item for item in items for _ in criteria_of([item])]
    return next((by_number[number - 1] for number in sorted(unmet) if number <= len(by_number)), items[0])


def verdict_findings(verdict: Verdict) -> list[Finding]:
    """Find contradictions within a verdict, without knowing the criteria."""
    met = {criterion.met for criterion in verdict.criteria}
    if verdict.verdict == "pass" and met - {"yes"}:
        message = "The verdict is `pass`, though a criterion is not met."
    elif verdict.verdict == "fail" and "no" not in met:
        message = "The verdict is `fail`, though it marks no criterion as not met."
    else:
        return []
    return [Finding("verdict-inconsistent", message, "/verdict", hint="Correct the verdict or the criterion.")]


def read_work_items(context: LoopContext, pull: Pull) -> tuple[WorkItem, ...]:
    """Read the work items that a pull request closes; numbers of other things are left out."""
    issues = [context.github.issue(number) for number in closing_references(pull)]
    found = []
    for issue in (one for one in issues if one and not one.is_pull):
        is_follow_up = bool(find_markers(issue.body, FOLLOW_UP_MARKER)) and context.identity.counts(issue.author)
        item = WorkItem.model_validate(issue, from_attributes=True)
        found.append(item.model_copy(update={"is_follow_up": is_follow_up}))
    return tuple(found)


def criteria_digest(items: Sequence[WorkItem]) -> str:
    """Return a digest that identifies the criteria: a verdict is about those that the agent saw."""
    return digest("\0".join(criteria_of(items)))


def verdict_comment(verdict: Verdict, criteria: Sequence[str], commit: str, item: int | None, post: Poster) -> str:
    """Return the comment that reports a verdict: its summary, a row for each criterion, and the follow-up ``item``."""
    shown: list[list[str]] = []
    left, texts = TABLE_CHARACTERS, dict(enumerate(criteria, 1))
    for one in sorted(verdict.criteria, key=lambda one: one.number):
        row = [_SIGNS[one.met], str(one.number), post.cell(texts.get(one.number, "")), post.cell(one.evidence)]
        left -= sum(len(part) + 3 for part in row)
        if left < 0:
            break
        shown.append(row)
    parts = [
        f"### Verdict on `{cell(commit[:12])}`: {verdict.verdict}",
        post.text(verdict.summary, SUMMARY_CHARACTERS),
        table(["", "#", "Criterion", "Evidence"], shown) if shown else "",
        f"{more} more criteria were judged." if (more := len(verdict.criteria) - len(shown)) else "",
        f"The remaining work is in #{item}." if item is not None else "",
    ]
    return "\n\n".join(filter(None, parts))


def _remove_statuses(gathered: Gathered) -> Gathered:
    """Remove the status of work items that the merge closed: closed is a status of its own."""
    context = gathered.context
    for item in gathered.facts.work_items or () if gathered.pull.is_merged else ():
        for label in item.labels if not item.is_open else ():
            if label.startswith("status:"):
                remove = partial(context.github.remove_label, item.number, label)
                context.log.write("remove-label", label, remove, number=item.number)
    return gathered


class Verify(Loop):
    """The loop that judges a change."""

    name = "verify"
    model = VerifyFacts
    questions = (
        check_stop_labels,
        _check_subject,
        _check_token,
        check_text,
        check_agent,
        *BEFORE_A_RUN,
    )
    trust = (read_labels, read_criteria)
    stages = (read_state, lambda known: known.with_facts(work_items=read_work_items(known.context, known.pull)))
    details = (lambda known: known.with_facts(diff=diff_of(known.context.github.files(known.pull.number))),)
    settling = (_remove_statuses,)
    unread = ("work_items",)
    schema = "verdict"
    changes_code = False

    def facts_of(self, context: LoopContext, pull: Pull, **more: Any) -> Any:
        """Return what the pull request alone tells: the commit to judge, and whether a person who may requested it."""
        is_asked = context.is_asked and (not context.commenter or context.is_trusted(context.commenter))
        commit = pull.merge_commit or pull.head_sha
        return super().facts_of(context, pull, is_asked=is_asked, commit=commit, **more)

    def decide(self, facts: VerifyFacts, redact: Callable[[str], str] = str) -> LoopDecision:
        """Decide whether to verify, or what follows a verdict. Pure."""
        verdict = facts.verdict
        if verdict is None:
            return super().decide(facts, redact)
        decision = decide_verdict(facts.work_items or (), verdict)
        return first_decision((), situation_of(facts), lambda _: decision)

    def run(self, about: Situation, redact: Callable[[str], str]) -> LoopDecision:
        """Run the agent on the criteria and the diff."""
        code, message = "verify-merged", "The pull request is merged."
        if about.facts.is_asked:
            code, message = "verify-asked", "A person requested a verdict."
        return run_decision(about, code, message, appendix(about.facts, redact))

    def subjects(self, facts: Any) -> tuple[str, ...]:
        """Return the commit, and a digest of its criteria."""
        return facts.commit, criteria_digest(facts.work_items or ())

    def complete(self, run: EndedRun) -> CompletedWork:
        """Decide what the verdict leads to. A failed run has none, and is handled as any failure."""
        running = run.state.running
        if run.outputs.exit_code != "0" or running is None:
            return CompletedWork()
        verdict = result_of(run.outputs, Verdict)
        if verdict is None:
            message = "The agent's answer is not a verdict of the required shape. Judge the change yourself."
            return CompletedWork(decision=decision_for("verdict-missing", message))
        commit, *shown = running.about
        items = read_work_items(run.context, run.pull)
        if [criteria_digest(items)] != shown:
            message = "The criteria changed while they were judged. Request a new verdict."
            decision = decision_for("verdict-inconsistent", message)
        else:
            decision = decide_verdict(items, verdict)
        return CompletedWork(tasks_done=len(verdict.criteria), decision=decision, verified=commit)

    def apply(self, run: EndedRun, effects: PendingEffects) -> None:
        """Create the follow-up and post the verdict, each unless it exists."""
        verdict = result_of(run.outputs, Verdict)
        if verdict is None:
            return
        commit, *shown = effects.about
        items = read_work_items(run.context, run.pull)
        is_left = run.state.notice is not None and run.state.notice.reason == "verdict-fail"
        unmet = unmet_criteria(verdict, criteria_of(items))
        follow_up = verdict.follow_up if is_left and items else None
        issue = create_follow_up(run, follow_up, item_left(items, verdict), unmet) if follow_up else None
        criteria = criteria_of(items) if [criteria_digest(items)] == shown else []
        context, number = run.context, issue.number if issue else None
        text = verdict_comment(verdict, criteria, commit, number, context.post)
        comment_once(context, text, VERDICT_MARKER, run=context.run_id)
