"""From an implementor's result and the facts to operations. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, has_errors, warning
from accord.results.bodies import read_body
from accord.results.implementor.revision import (
    OUTCOME,
    REVISION,
    is_comment_of,
    our_comment,
    our_pull,
    outcome_comment,
    pull_body,
    pull_title,
    runs_before,
    runs_told,
)
from accord.results.implementor.scope import audit_scope
from accord.results.operations import MoveWorkItem, Operation, adopted, moving, skipped
from accord.results.status import plan_move

if TYPE_CHECKING:
    from accord.github.comments import Comment
    from accord.github.models import Pull
    from accord.results.implementor.facts import Branch, Request, RevisionFacts
    from accord.results.implementor.scope import ScopeReport
    from accord.results.operations import MoveWorkItem


@dataclass(frozen=True, slots=True)
class PushBranch(Operation):
    """Put a commit on the work item's branch, provided that still ends at ``expected`` (empty: is not there)."""

    op: ClassVar[str] = "push-branch"
    branch: str
    commit: str
    expected: str


@dataclass(frozen=True, slots=True)
class CreateRevision(Operation):
    """Open the pull request."""

    op: ClassVar[str] = "create-revision"
    branch: str
    base: str
    title: str
    body: str
    is_draft: bool


@dataclass(frozen=True, slots=True)
class UpdateRevision(Operation):
    """Bring the open pull request up to date."""

    op: ClassVar[str] = "update-revision"
    pull: Pull
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class LabelRevision(Operation):
    """Ask for a person on the pull request."""

    op: ClassVar[str] = "label-revision"
    label: str


@dataclass(frozen=True, slots=True)
class WriteComment(Operation):
    """Say on the work item why it is not done, in the one comment that is ours."""

    op: ClassVar[str] = "comment-work-item"
    number: int
    comment: Comment | None
    body: str


ImplementOperation = PushBranch | CreateRevision | UpdateRevision | LabelRevision | WriteComment | MoveWorkItem


NEEDS_HUMAN = "needs-human"
TARGETS = {"completed": "review", "blocked": "blocked", "validation-failure": "needs-refinement"}
"""Where an outcome moves the work item (workflow contracts, "ImplementorResult")."""


@dataclass(frozen=True)
class RevisionPlan:
    """What a result comes to, and what a person should know of it; ``pull`` is the pull request that is there."""

    operations: tuple[ImplementOperation, ...] = ()
    findings: tuple[Finding, ...] = ()
    scope: ScopeReport | None = None
    pull: Pull | None = None


def plan_revision(facts: RevisionFacts, request: Request) -> RevisionPlan:
    """Turn the result into operations. Raises BrokenContract for what must not be pushed, and for an illegal move."""
    result, branch = request.result, facts.branch
    if facts.is_superseded:
        return _superseded()
    if branch is None:
        return _not_completed(facts, result.outcome, result.summary)
    if branch.is_empty:
        reason = f"The patch changes nothing on {facts.base}, so the work is not done.\n\n{result.summary}"
        return _not_completed(facts, "validation-failure", reason)
    if has_errors(branch.findings):
        raise BrokenContract("The patch has what must not be pushed.", findings=branch.findings)
    return _completed(facts, branch, request)


def _completed(facts: RevisionFacts, branch: Branch, request: Request) -> RevisionPlan:
    name = request.work.branch
    scope = audit_scope(branch.touched, read_body(facts.issue.body).in_scope, request.work.protected)
    pull, is_written = our_pull(facts.pulls, facts.identity, facts.token, branch.since)
    operations: list[ImplementOperation] = [
        PushBranch(name, adopted(branch.is_pushed), name, branch.commit, branch.tip),
        _revision(facts, branch, request, scope, pull, is_written=is_written),
    ]
    if scope.protected:
        found = skipped(pull is not None and NEEDS_HUMAN in pull.labels)
        operations.append(LabelRevision(NEEDS_HUMAN, found, NEEDS_HUMAN))
    operations += _move(facts, TARGETS["completed"], is_settled=branch.is_pushed and is_written)
    return RevisionPlan(tuple(operations), (*branch.findings, *scope_findings(scope, pull)), scope, pull)


def _revision(
    facts: RevisionFacts, branch: Branch, request: Request, scope: ScopeReport, pull: Pull | None, *, is_written: bool
) -> CreateRevision | UpdateRevision:
    """Plan the one pull request of the work item; what an earlier run wrote stands."""
    name, title = request.work.branch, pull_title(facts.title)
    earlier = [*(runs_told(pull.body, REVISION) if pull else ()), *branch.runs]
    body = pull_body(request.result.summary, request.work.number, scope, facts.token, request.desk, earlier)
    if pull and not is_written:
        return UpdateRevision(name, None, pull, title, body)
    return CreateRevision(name, adopted(is_written), name, facts.base, title, body, is_draft=bool(scope.protected))


def _not_completed(facts: RevisionFacts, outcome: str, summary: str) -> RevisionPlan:
    number = facts.issue.number
    comment = our_comment(facts.comments, facts.identity, number)
    if comment and facts.token in runs_before(comment.body, OUTCOME):
        return _superseded()
    told = runs_told(comment.body, OUTCOME) if comment else []
    is_written = comment is not None and is_comment_of(comment, facts.token)
    body = outcome_comment(outcome, summary, number, facts.token, told)
    write = WriteComment(f"#{number}", skipped(is_written), number, comment, body)
    return RevisionPlan((write, *_move(facts, TARGETS[outcome], is_settled=is_written)))


def _superseded() -> RevisionPlan:
    """Do nothing for a result that is older than what the branch or its pull request has."""
    message = "The work went on after this result (by a later result, or a merge), so it changes nothing any more."
    return RevisionPlan(findings=(warning("revision-superseded", message),))


def _move(facts: RevisionFacts, target: str, *, is_settled: bool) -> list[MoveWorkItem]:
    """Plan the status transition. Where an earlier run did all else, a person may have moved the item on since."""
    try:
        return [moving(plan_move(facts.issue, target))]
    except BrokenContract:
        if is_settled:
            return []
        raise


def scope_findings(scope: ScopeReport, pull: Pull | None) -> list[Finding]:
    """Say what a person should know of the paths; none of it stops the result."""
    found = []
    if scope.outside:
        paths = ", ".join(f"`{path}`" for path in scope.outside[:10]) + (" …" if len(scope.outside) > 10 else "")
        found.append(warning("outside-scope", f"The patch touches paths outside of the scope: {paths}.", "/patch"))
    if scope.protected:
        paths = ", ".join(f"`{path}`" for path in scope.protected[:10])
        message = f"The patch touches protected paths: {paths}. The pull request asks for a person."
        found.append(warning("protected-path", message, "/patch"))
        if pull and pull.state == "open" and not pull.is_draft:
            message = f"#{pull.number} is open for review already, and GitHub lets nobody make it a draft over REST."
            found.append(warning("draft-not-set", message, "/patch"))
    return found
