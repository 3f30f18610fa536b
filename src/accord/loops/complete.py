"""Actions of keepalive without an agent: merge the base, and once all is ticked, start a review or call a person.

A merge of the base is a commit on top of the branch, so no commit is lost. A conflict asks a person, once for the two
commits. A review is started, and a person called, once for each head.
"""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import chain
from typing import Literal

from accord.core.errors import Refused
from accord.core.findings import names_of
from accord.engine.trust import NEEDS_HUMAN
from accord.git.branches import branch_clone, tip_of
from accord.git.conflicts import Merge, merge_into
from accord.git.program import Git
from accord.github.commits import deliver_commit, plan_upload, read_commit
from accord.github.pulls import closing_references
from accord.loops.apply import WorkflowStart, comment_once, dispatch, runs_of
from accord.loops.bot_comments import Thread
from accord.loops.checks import CheckLog, check_settled
from accord.loops.facts import Gathered, LoopContext
from accord.loops.models import CheckFacts, LoopDecision, LoopFacts, decision_for
from accord.loops.questions import KEEPALIVE, Situation
from accord.loops.reviews import Opinion, is_approved

ANNOUNCED = "announced"
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?(?:_[A-Za-z0-9]{1,10})?")


class KeepaliveFacts(LoopFacts):
    """The facts of keepalive. ``logs`` are those of failing checks of ``checks.head_sha``.

    ``reviews`` are read once every task is ticked, ``threads`` where a review requests changes. ``is_announced``: a
    person was notified that this head can be merged. ``review_workflow`` is the workflow that can be started to review.
    """

    kind: Literal["keepalive-facts"] = "keepalive-facts"
    checks: CheckFacts | None
    logs: tuple[CheckLog, ...] = ()
    reviews: tuple[Opinion, ...] | None = ()
    threads: tuple[Thread, ...] = ()
    is_announced: bool = False
    review_workflow: str = ""


def decide_complete(facts: KeepaliveFacts, situation: Situation) -> LoopDecision:
    """Decide about a pull request whose tasks are all ticked, and on which no review requests more. Pure."""
    head, done = facts.pull.head_sha, "All tasks are done"
    due = decision_for("complete", f"{done}, the checks are green, and a review approves {head[:12]}.")
    if facts.reviews is None:
        return due
    has_approval = is_approved(facts.reviews, head)
    if has_approval and facts.is_announced:
        return decision_for("announced", f"{done}, and a person was notified that {head[:12]} can be merged.")
    if not has_approval and (not facts.review_workflow or situation.state.review_of == head):
        return decision_for("tasks-complete", f"{done}. No review approves {head[:12]} yet.")
    if not has_approval:
        message = f"{done} and the checks are green. {facts.review_workflow} was started to review {head[:12]}."
        due = decision_for("review-due", message)
    return _check_head(facts, situation, done) or due


def _check_head(facts: KeepaliveFacts, situation: Situation, done: str) -> LoopDecision | None:
    if facts.checks is None:
        return None
    unsettled = check_settled(situation, facts.checks)
    if unsettled is not None:
        return unsettled
    if facts.checks.failing:
        return decision_for("tasks-complete", f"{done}. Failing: {names_of(facts.checks.failing)}.")
    if facts.pull.is_draft:
        return decision_for("tasks-complete", f"{done}. The pull request is a draft.")
    if facts.pull.is_mergeable is None:
        message = f"{done}. GitHub has not computed yet whether it can be merged."
        return decision_for("merge-unknown", message, wait_seconds=60)
    if not facts.pull.is_mergeable:
        return decision_for("tasks-complete", f"{done}. It conflicts with its base.")
    return None


def start_review(gathered: Gathered, decision: LoopDecision) -> LoopDecision:
    """Start the review's workflow, which takes the number as ``pull``, unless a review of this head is in progress."""
    context, checks = gathered.context, gathered.facts.checks
    pushed_at = gathered.facts.now - timedelta(seconds=checks.seconds_since_push if checks else 0)
    start = WorkflowStart(context.review_workflow, "pull", context.number, pushed_at, "--review-workflow")
    under_way = (run.id for run in runs_of(context, start) if not run.has_ended)
    return decision.model_copy(update={"started_run": next(under_way, 0) or dispatch(context, start)})


def announce(gathered: Gathered, decision: LoopDecision) -> None:
    """Tell the person who can merge in a comment, since GitHub does not notify anyone of an edit.

    accord itself mentions the person here: the name comes from GitHub, not from an agent.
    """
    context, head = gathered.context, gathered.pull.head_sha
    items = closing_references(gathered.pull)
    login = person_to_tell(context, items)
    closes = f" Merging it closes {', '.join(f'#{number}' for number in items)}."
    closes = closes if items and gathered.facts.pull.is_main else ""
    text = f"{f'@{login} ' if login else ''}**This pull request can be merged.** {decision.message}{closes}"
    comment_once(context, text, ANNOUNCED, loop=gathered.loop.name, pull=str(context.number), head=head)


def person_to_tell(context: LoopContext, items: tuple[int, ...]) -> str:
    """Return the first person with write access: who is assigned the work item, turned keepalive on, or set a label."""
    github = context.github
    assigned = (login for issue in filter(None, map(github.issue, items)) for login in issue.assignees)
    events = [event for number in (context.number, *items) for event in reversed(github.label_events(number))]
    events.sort(key=lambda event: event.label.casefold() != KEEPALIVE or event.change != "added")
    logins = dict.fromkeys(chain(assigned, (event.login for event in events if not event.is_bot)))
    return next((login for login in logins if _LOGIN.fullmatch(login) and context.is_trusted(login)), "")


def update_branch(gathered: Gathered) -> LoopDecision:
    """Merge the base into the branch, unless the branch moved; return the outcome. Raises Unreachable."""
    context, pull = gathered.context, gathered.pull
    if context.remote is None:
        raise ValueError("an update of a branch needs a remote")
    with branch_clone(context.remote, pull.base_branch, pull.head_branch, None) as git:
        tip, base = tip_of(git, "work"), tip_of(git, "base")
        message = f"Merge {pull.base_branch} into {pull.head_branch}\n"
        try:
            merge = merge_into(git, tip, base, message, context.clock.now())
            if not merge.conflicts:
                return _push(gathered, git, merge, tip)
        except Refused as refused:
            reason = refused.message
        else:
            paths = names_of([path[:60] for path in merge.conflicts], 8)
            reason = f"{pull.base_branch} conflicts with {pull.head_branch} in {paths}."
    what = f"Merge {pull.base_branch} into it by hand, push, and remove the label {NEEDS_HUMAN}."
    return decision_for("conflict", f"{reason[:400]} {what}", about=f"{tip[:20]}.{base[:20]}")


def _push(gathered: Gathered, git: Git, merge: Merge, tip: str) -> LoopDecision:
    context, pull = gathered.context, gathered.pull
    if context.remote is None or merge.commit == tip:
        message = f"{pull.head_branch} contains {pull.base_branch} already. GitHub has yet to notice."
        return decision_for("merge-unknown", message, wait_seconds=60)
    upload = plan_upload(read_commit(git, merge.commit, is_bot=not context.identity.is_person))
    delivery = deliver_commit(context.github, git, context.remote, upload, pull.head_branch, tip)
    if delivery is None:
        return decision_for("merge-unknown", f"{pull.head_branch} moved while it was updated.", wait_seconds=60)
    message = f"{pull.base_branch} was merged into {pull.head_branch}: {delivery.commit[:12]}."
    return decision_for("unmergeable", message)
