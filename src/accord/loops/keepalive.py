"""Keepalive and autofix.

Keepalive runs the agent again while tasks are open, the head's checks pass, and no one has stopped it. Autofix lets it
fix the failing checks of the head a few times, then asks a person. Its attempts count for the pull request, not for a
commit: a new head does not restart the budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from accord.core.errors import Stopped
from accord.core.findings import names_of
from accord.engine.operations import failed_unless, skipped_if
from accord.engine.owner import items_of_result
from accord.github.models import Forbidden, IssueChange, Pull
from accord.github.pulls import closing_references
from accord.loops.checks import CheckLog, check_settled, read_checks, read_logs, rerun_lost
from accord.loops.checks import appendix as checks_appendix
from accord.loops.complete import (
    ANNOUNCED,
    KeepaliveFacts,
    announce,
    decide_complete,
    start_review,
    update_branch,
)
from accord.loops.facts import CompletedWork, EndedRun, Gathered, Loop, LoopContext, read_labels, read_state, read_text
from accord.loops.models import (
    Budgets,
    CheckFacts,
    LoopDecision,
    LoopFacts,
    LoopState,
    PendingEffects,
    decision_for,
)
from accord.loops.outputs import number_in, texts_in
from accord.loops.questions import (
    BEFORE_A_RUN,
    KEEPALIVE,
    ON_A_PULL,
    Situation,
    check_agent,
    check_item,
    check_labels,
    check_open,
    check_running,
    check_stop_labels,
    check_switch,
    check_text,
    check_writable,
    has_label,
    has_trusted_label,
    run_decision,
)
from accord.loops.reviews import Opinion, is_complete, read_reviews, read_threads
from accord.loops.reviews import appendix as reviews_appendix
from accord.loops.texts import digest, join_parts
from accord.runner.models import RunOutputs
from accord.text.criteria import criteria_boxes, posted_text, with_item_ticks
from accord.text.markers import find_markers
from accord.text.outline import bot_controls, tasks, with_ticks
from accord.text.untrusted import DATA as UNTRUSTED
from accord.text.untrusted import fenced_data

BODY_CHARACTERS = 20_000
LEAST_CONFIDENCE = 0.5
"""The contract calls confidence below it low ("Confidence scoring")."""

TRIES = 5
_LEFT_OUT = "{n} more parts were left out for their length."


def _check_enabled(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    if not has_label(facts, KEEPALIVE):
        return decision_for("not-enabled", f"Keepalive is off. Add the label `{KEEPALIVE}` to start it.")
    return check_labels(situation, KEEPALIVE) or check_switch(situation)


def _check_tasks(situation: Situation) -> LoopDecision | None:
    body = situation.facts.pull.body
    others = " but boxes of bots, which are not tasks" if bot_controls(body) else ""
    message = f"The pull request's body has no checklist{others}. Add one for the agent to work on."
    return None if tasks(body) else decision_for("no-tasks", message)


def _check_mergeable(situation: Situation) -> LoopDecision | None:
    """Update the branch of an implementor's pull request, though no label turns the loop on."""
    pull = situation.facts.pull
    if not pull.is_ours or pull.is_mergeable is not False or situation.settings.keepalive is False:
        return None
    update = decision_for("unmergeable", "GitHub cannot merge it any more, so its base is merged into it.")
    return check_writable(situation) or check_running(situation) or update


def _check_complete(situation: Situation) -> LoopDecision | None:
    """Decide what follows when every task is ticked, unless a review requests changes that no run worked in."""
    facts = situation.facts
    if not is_complete(facts) or _reviews_to_work_in(facts):
        return None
    return check_running(situation) or decide_complete(facts, situation)


def _reviews_to_work_in(facts: KeepaliveFacts) -> tuple[Opinion, ...]:
    """Return the reviews that request changes which no run has worked in: of this head, or newer than the last run."""
    reviews = facts.reviews or () if is_complete(facts) else ()
    wanting = (one for one in reviews if one.verdict == "needs-changes")
    return tuple(one for one in wanting if one.commit == facts.pull.head_sha or one.id > facts.state.worked_in)


def _check_checks(situation: Situation) -> LoopDecision | None:
    """Wait for the checks; keepalive leaves failing ones to people where the settings say so, autofix needs some."""
    checks = situation.facts.checks
    if checks is None:
        return None
    if unsettled := check_settled(situation, checks):
        return unsettled
    if situation.loop == "autofix":
        return None if checks.failing else decision_for("checks-green", "No check of the head fails.")
    message = f"Failing: {names_of(checks.failing)}. The settings leave fixing them to people."
    is_left = checks.failing and situation.settings.autofix is False
    return decision_for("checks-red", message) if is_left else None


def appendix(body: str, redact: Callable[[str], str]) -> str:
    """Return the open tasks and the description that holds them, as a reader of the page sees it."""
    from accord.text.untrusted import visible_text

    open_tasks = "\n".join(f"- [ ] {visible_text(task.text)}" for task in tasks(body) if not task.is_checked)
    whole = redact(visible_text(body))
    cut = "\n[…]" if len(whole) > BODY_CHARACTERS else ""
    request = (
        "## Open tasks\n\nWork on these tasks of the pull request, as many as you can do well. At the end, list those "
        f"that are done, each as `- [x]` with its exact text.\n\n{fenced_data(redact(open_tasks)[:8000])}"
    )
    description = f"### Description of the pull request\n\n{UNTRUSTED}\n\n{fenced_data(whole[:BODY_CHARACTERS] + cut)}"
    return join_parts([request, description], "The description was left out for its length.")


def tick(body: str, outputs: RunOutputs) -> tuple[str, int]:
    """Tick the tasks that a run completed, and count them; none where it failed or the analysis is not confident."""
    if outputs.exit_code != "0" or not LEAST_CONFIDENCE <= (number_in(outputs.llm_confidence) or 0) <= 1:
        return body, 0
    wanted = Counter(texts_in(outputs.llm_completed_tasks))
    found = []
    for task in tasks(body):
        if not task.is_checked and wanted[task.text] > 0:
            wanted[task.text] -= 1
            found.append(task)
    return with_ticks(body, found), len(found)


def _criteria_done(run: EndedRun) -> set[str]:
    """Return the criteria in the pull request's checklist that the run completed, before and after they are ticked."""
    done = texts_in(run.outputs.llm_completed_tasks)
    return {box.text for box in criteria_boxes(run.pull.body)}.intersection(done)


def _tick_item(run: EndedRun, number: int) -> None:
    """Tick the same criteria in the work item as it is now; a token that may not write it changes only this."""
    context = run.context
    issue = context.github.issue(number)
    if issue is None or issue.is_pull:
        return
    posted = partial(posted_text, secrets=context.redact, policy=context.policy)
    body = with_item_ticks(issue.body, _criteria_done(run), posted)
    if body != issue.body:
        with suppress(Forbidden):
            change = partial(context.github.change_issue, number, IssueChange(body=body))
            context.log.write("tick-tasks", f"#{number}", change, number=number)


def _tick_body(run: EndedRun, effects: PendingEffects) -> None:
    """Tick completed tasks in the body as it is now, unless that is done. Raises Stopped when it keeps changing."""

    def body_for(pull: Pull) -> str | None:
        body, _ = tick(pull.body, run.outputs)
        return None if digest(pull.body) == effects.body or body == pull.body else body

    def write() -> None:
        pull = run.pull
        for _ in range(TRIES):
            body = body_for(pull)
            if body is None or run.context.github.change_body(pull.number, was=pull.body, body=body):
                return
            pull = run.context.pull()
        message = f"The body of #{pull.number} changed {TRIES} times in a row."
        raise Stopped(message, hint="Run the same command again.")

    number = run.pull.number
    found = skipped_if(body_for(run.pull) is None)
    run.context.log.write("tick-tasks", f"#{number}", write, number=number, found=found)


def _read_state(gathered: Gathered) -> Gathered:
    """Read the state, and from the same comments whether this very head was announced."""
    gathered = read_state(gathered)
    comments = gathered.context.store(gathered.loop.name).own_comments
    heads = {fields.get("head") for comment in comments for fields in find_markers(comment.body, ANNOUNCED)}
    return gathered.with_facts(is_announced=gathered.pull.head_sha in heads)


def _read_item(gathered: Gathered) -> Gathered:
    number = next(iter(items_of_result(gathered.pull.body)), 0) if gathered.facts.pull.is_ours else 0
    issue = None
    with suppress(Forbidden):
        issue = gathered.context.github.issue(number) if number else None
    return gathered.with_facts(is_item_open=issue.is_open if issue else None)


class Keepalive(Loop):
    """The loop that goes on until every task is done. ``questions`` are all that stops it or makes it wait."""

    name = "keepalive"
    model = KeepaliveFacts
    questions = (
        check_open,  # merged, closed
        check_stop_labels,  # paused, needs-human
        check_item,  # item-closed
        _check_mergeable,  # fork, read-only-token, running, unmergeable
        _check_enabled,  # not-enabled, disabled
        check_writable,  # fork, read-only-token
        check_text,  # text-changed
        check_agent,  # agent-ambiguous, agent-missing
        _check_tasks,  # no-tasks
        _check_complete,  # running, announced, tasks-complete, stale-checks, …, merge-unknown, review-due, complete
        *BEFORE_A_RUN,  # running, budgets, same-error, no-progress, manual-failure, rate-limit, back-off
        _check_checks,  # stale-checks, checks-pending, checks-held and its like, checks-missing, checks-red
    )
    trust = (read_labels, read_text)
    stages = (_read_item, read_reviews, _read_state, read_checks)
    details = (read_logs, read_threads)
    settling = (rerun_lost,)
    unread = ("checks", "reviews")
    has_upkeep = True

    def facts_of(self, context: LoopContext, pull: Pull, **more: Any) -> Any:
        """Return what the pull request alone tells, and the workflow that reviews."""
        return super().facts_of(context, pull, review_workflow=context.review_workflow, **more)

    def run(self, about: Situation, redact: Callable[[str], str]) -> LoopDecision:
        """Run the agent on failing checks and requested changes, else on open tasks."""
        facts, requested = about.facts, _reviews_to_work_in(about.facts)
        parts = reviews_appendix(requested, facts.threads, redact) if requested else []
        if facts.checks is not None and facts.checks.failing:
            parts = [checks_appendix(facts.checks, facts.logs, redact), *parts]
            message = f"Failing for this head: {names_of(facts.checks.failing)}."
            return run_decision(about, "checks-failing", message, join_parts(parts, _LEFT_OUT))
        if requested:
            names = ", ".join(opinion.author for opinion in requested)
            message = f"Every task is ticked. Changes are requested by {names}."
            return run_decision(about, "changes-requested", message, join_parts(parts, _LEFT_OUT))
        listed = tasks(facts.pull.body)
        left = sum(not task.is_checked for task in listed)
        code = "retry" if about.state.transient_in_a_row else "tasks-open"
        message = f"Open tasks: {left} of {len(listed)}."
        return run_decision(about, code, message, appendix(facts.pull.body, redact))

    def subjects(self, facts: Any) -> tuple[str, ...]:
        """Return the ids of the reviews that the run works in."""
        return tuple(str(opinion.id) for opinion in _reviews_to_work_in(facts))

    def act(self, gathered: Gathered, decision: LoopDecision) -> LoopDecision:
        """Merge the base, start a review, or tell a person that all is done."""
        if decision.action == "review":
            return start_review(gathered, decision)
        if decision.action == "announce":
            announce(gathered, decision)
            return decision
        pull = gathered.pull
        ended = gathered.context.log.write(
            "update-branch",
            pull.head_branch,
            partial(update_branch, gathered),
            number=pull.number,
            status_of=lambda outcome: failed_unless(outcome.reason == "unmergeable"),
        )
        return ended or decision

    def complete(self, run: EndedRun) -> CompletedWork:
        """Tick the completed tasks, and find the work item that gets the same ticks."""
        body, count = tick(run.pull.body, run.outputs)
        items = closing_references(run.pull)
        is_of_item = len(items) == 1 and bool(_criteria_done(run))
        about = run.state.running.about if run.state.running else ()
        worked_in = max((int(number) for number in about if number.isdecimal()), default=0)
        return CompletedWork(
            count, body, items[0] if is_of_item else 0, worked_in if run.outputs.exit_code == "0" else 0
        )

    def apply(self, run: EndedRun, effects: PendingEffects) -> None:
        """Tick completed tasks in the body, and those that are criteria of the work item there, too."""
        if effects.body:
            _tick_body(run, effects)
        if effects.item:
            _tick_item(run, effects.item)


class AutofixFacts(LoopFacts):
    """Facts of autofix. ``logs`` are those of failing checks of ``checks.head_sha``; ``reviews`` as in keepalive."""

    kind: Literal["autofix-facts"] = "autofix-facts"
    checks: CheckFacts | None
    logs: tuple[CheckLog, ...] = ()
    reviews: tuple[Opinion, ...] | None = ()
    state: LoopState = LoopState(loop="autofix")
    budgets: Budgets = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


def _check_keepalive(situation: Situation) -> LoopDecision | None:
    facts = situation.facts
    is_on = has_trusted_label(facts, KEEPALIVE) and situation.settings.keepalive is not False
    is_open = any(not task.is_checked for task in tasks(facts.pull.body))
    reviews = facts.reviews or () if is_complete(facts) else ()
    asks = any(one.verdict == "needs-changes" and one.commit == facts.pull.head_sha for one in reviews)
    if is_on and (is_open or asks):
        return decision_for("keepalive-in-charge", "Keepalive works on this pull request and fixes its checks itself.")
    return None


class Autofix(Loop):
    """The loop that fixes failing checks."""

    name = "autofix"
    model = AutofixFacts
    questions = (*ON_A_PULL, _check_keepalive, _check_checks, *BEFORE_A_RUN)
    stages = (read_checks, read_reviews, read_state)
    details = (read_logs,)
    settling = (rerun_lost,)
    unread = ("checks", "reviews")

    def run(self, about: Situation, redact: Callable[[str], str]) -> LoopDecision:
        """Run the agent on the failing checks."""
        checks = about.facts.checks
        if checks is None:
            return run_decision(about, "checks-failing", "The checks were not read.", "")
        message = f"Failing for this head: {names_of(checks.failing)}."
        return run_decision(about, "checks-failing", message, checks_appendix(checks, about.facts.logs, redact))
