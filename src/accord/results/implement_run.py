"""Applying an implementor's result: a branch, a pull request, the work item's status. Everything is decided first."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.github.markers import run_token
from accord.kernel.branches import (
    CommitText,
    branch_facts,
    commit_patch,
    fetched,
    runs_of,
)
from accord.kernel.errors import AccordError, BrokenContract
from accord.kernel.findings import Finding, has_errors
from accord.kernel.links import escaping_links
from accord.kernel.patch_secrets import secret_findings
from accord.kernel.patches import changes_between
from accord.results.facts import require_writable
from accord.results.implement_apply import Implementation, State, carry_out, entry_of
from accord.results.implement_plan import (
    NEEDS_HUMAN,
    ImplementOperation,
    LabelRevision,
    PushBranch,
    WriteComment,
    WriteRevision,
    is_comment_of,
    is_over,
    our_comment,
    our_pull,
    scope_findings,
    superseded,
    was_followed,
)
from accord.results.implementor_rules import implementor_findings
from accord.results.operations import MoveWorkItem, Status, adopted, skipped
from accord.results.posted import Desk, posted_message, posted_summary, says_nothing
from accord.results.receipts import Outcome, Receipt, outcome_of
from accord.results.revision_texts import (
    OUTCOME,
    REVISION,
    commit_message,
    outcome_comment,
    pull_body,
    pull_title,
    runs_before,
    runs_told,
)
from accord.results.run import default_run_key
from accord.results.scope import audit_scope
from accord.results.status import plan_move
from accord.results.templates import read_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.adapter import Adapter
    from accord.github.comments import Comment
    from accord.github.pull_port import Pull
    from accord.kernel.branches import BranchFacts
    from accord.kernel.git import Git
    from accord.kernel.patches import Change
    from accord.results.models import ImplementorResult
    from accord.results.run import Setting

KIND = "implementor-result"
TARGETS = {"completed": "review", "blocked": "blocked", "validation-failure": "needs-refinement"}


def apply_implementation(github: Adapter, result: ImplementorResult, work: Implementation, setting: Setting) -> Receipt:
    """Check an implementor's result, and carry it out exactly once. Raises nothing of ours: the receipt tells."""
    run_key = setting.run_key or default_run_key(result, setting.repository, work.number)
    receipt = Receipt(KIND, Outcome.REJECTED, run_key, setting.repository, implementor_findings(result))
    if has_errors(receipt.findings):
        return receipt
    desk = Desk(setting.redact)
    posted = posted_summary(result, desk)
    unfit = says_nothing(implementor_findings(posted)) if desk.sanitised else []
    receipt = replace(receipt, findings=[*receipt.findings, *desk.findings, *unfit], sanitised=desk.sanitised)
    if unfit:
        return receipt
    before = replace(github.requests)
    with ExitStack() as stack:
        receipt = _applied(github, posted, work, setting, desk, receipt, stack)
    now = github.requests
    return replace(receipt, reads=now.read - before.read, writes=now.write - before.write)


def _applied(
    github: Adapter,
    result: ImplementorResult,
    work: Implementation,
    setting: Setting,
    desk: Desk,
    receipt: Receipt,
    stack: ExitStack,
) -> Receipt:
    try:
        state, base = _gather(github, work, run_token(setting.repository, receipt.run_key), desk)
        if result.outcome == "completed":
            operations = _completed(github, result, replace(work, base=base), setting, state, desk, stack)
        else:
            operations = _not_completed(github, result.outcome, result.summary, state)
    except BrokenContract as broken:
        return replace(receipt, findings=[*receipt.findings, *broken.findings])
    except AccordError as error:
        return replace(receipt, outcome=outcome_of((), error), error=error)
    findings = [*receipt.findings, *state.findings]
    receipt = replace(receipt, findings=findings, titles={"": state.title}, sanitised=desk.sanitised)
    if setting.is_dry_run:
        entries = [entry_of(operation, operation.found or Status.PLANNED, state) for operation in operations]
        receipt = replace(receipt, outcome=Outcome.PLANNED, operations=entries)
    else:
        entries, problem = carry_out(github, operations, state, work, setting)
        receipt = replace(receipt, outcome=outcome_of(entries, problem), operations=entries, error=problem)
    return replace(receipt, details=_details(state, operations))


def _gather(github: Adapter, work: Implementation, token: str, desk: Desk) -> tuple[State, str]:
    identity = github.identity()
    repository = require_writable(github, identity)
    issue = github.issue(work.number)
    if issue is None or issue.is_pull:
        message = f"There is no work item #{work.number} in this repository. Name one with --work-item."
        raise BrokenContract(message, findings=[Finding("unknown-reference", message)])
    return State(issue, identity, token, desk.title(issue.title)), work.base or repository.default_branch


def _completed(
    github: Adapter,
    result: ImplementorResult,
    work: Implementation,
    setting: Setting,
    state: State,
    desk: Desk,
    stack: ExitStack,
) -> list[ImplementOperation]:
    branch = f"accord/{work.number}"
    git = stack.enter_context(fetched(work.remote, work.base, branch, work.checkout))
    patch = (result.patch or "").encode()
    facts = branch_facts(git, state.token, patch)
    pulls = github.pulls_from(branch)
    is_older = bool(facts.applied) and bool(runs_of(git, f"{facts.applied}..{facts.tip}"))
    is_older = is_older or was_followed(pulls, state.identity, state.token)
    if is_older or is_over(pulls, state.identity, state.token, has_branch=bool(facts.tip)):
        state.findings.append(superseded())
        return []
    is_pushed = bool(facts.applied)
    commit, since = facts.applied, _since(git, facts)
    if not is_pushed:
        summary = commit_message(
            state.title,
            posted_message(result.summary, setting.redact),
            work.number,
            state.token,
            work.co_authors,
            prefix=work.commit_prefix,
        )
        commit, changes = commit_patch(git, facts, patch, CommitText(work.author, summary), setting.clock.now())
        is_pushed = not changes
        if not changes and not facts.tip:
            reason = f"The patch changes nothing on {work.base}, so the work is not done.\n\n{result.summary}"
            return _not_completed(github, "validation-failure", reason, state)
        state.findings += _examined(git, facts.tip or facts.base, commit, changes, setting)
    state.git, state.head = git, facts.tip if is_pushed else commit
    state.scope = audit_scope(_touched(git, facts, state.head), read_body(state.issue.body).in_scope, work.protected)
    pull, is_written = our_pull(pulls, state.identity, state.token, since)
    state.pull = pull
    state.findings += scope_findings(state.scope, pull)
    revision = WriteRevision(
        pull,
        branch,
        work.base,
        pull_title(state.title),
        pull_body(result.summary, work.number, state.scope, state.token, desk, _earlier(git, facts, pull)),
        bool(state.scope.protected),
        adopted(is_written),
    )
    operations: list[ImplementOperation] = [PushBranch(branch, commit, facts.tip, adopted(is_pushed)), revision]
    if state.scope.protected:
        operations.append(LabelRevision(branch, NEEDS_HUMAN, skipped(bool(pull and NEEDS_HUMAN in pull.labels))))
    return [*operations, *_move(state, "review", is_settled=is_pushed and is_written)]


def _since(git: Git, facts: BranchFacts) -> list[str]:
    """List this run's commit and those that came on the branch after it."""
    return git.line("rev-list", f"{facts.applied}^..{facts.tip}").split() if facts.applied else []


def _earlier(git: Git, facts: BranchFacts, pull: Pull | None) -> list[str]:
    """Name the runs that came before: those that the pull request tells of, and those with a commit on the branch."""
    committed = runs_of(git, f"{facts.base}..{facts.tip}") if facts.tip else []
    return [*(runs_told(pull.body, REVISION) if pull else ()), *committed]


def _touched(git: Git, facts: BranchFacts, head: str) -> list[str]:
    """List the paths that the whole branch changes: the pull request has all of it, whichever run it came from."""
    start = git.attempt("merge-base", facts.base, head).stdout.decode().strip() or facts.base
    return [change.path for change in changes_between(git, start, head)]


def _examined(git: Git, before: str, commit: str, changes: Sequence[Change], setting: Setting) -> list[Finding]:
    """Look for what must not be pushed. Raises BrokenContract with it; returns what a person should know."""
    found = [*escaping_links(git, before, commit), *secret_findings(git, changes, setting.redact)]
    if has_errors(found):
        raise BrokenContract("The patch has what must not be pushed.", findings=found)
    return found


def _not_completed(github: Adapter, outcome: str, summary: str, state: State) -> list[ImplementOperation]:
    comments: list[Comment] = list(github.comments(state.issue.number))
    comment = our_comment(comments, state.identity, state.issue.number)
    told = runs_told(comment.body, OUTCOME) if comment else []
    if comment and state.token in runs_before(comment.body, OUTCOME):
        state.findings.append(superseded())
        return []
    is_written = comment is not None and is_comment_of(comment, state.token)
    body = outcome_comment(outcome, summary, state.issue.number, state.token, told)
    write = WriteComment(state.issue.number, comment, body, skipped(is_written))
    return [write, *_move(state, TARGETS[outcome], is_settled=is_written)]


def _move(state: State, target: str, *, is_settled: bool) -> list[ImplementOperation]:
    """Plan the status transition. Where an earlier run did all else, a person may have moved the item on since."""
    try:
        move = plan_move(state.issue, target)
    except BrokenContract:
        if is_settled:
            return []
        raise
    return [MoveWorkItem(move, skipped(not move.is_change))]


def _details(state: State, operations: Sequence[ImplementOperation]) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if state.scope is not None:
        details["scope"] = state.scope.as_json()
        draft = next((op.is_draft for op in operations if isinstance(op, WriteRevision)), False)
        pull = state.pull
        details["revision"] = {
            "id": str(pull.number) if pull else None,
            "url": pull.url if pull else None,
            "branch": f"accord/{state.issue.number}",
            "head_sha": state.head,
            "draft": pull.is_draft if pull else draft,
        }
    return details
