"""Plan the operations of an implementor result, and write its texts: pull request, scope report, comment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, has_errors, warning
from accord.core.frozen import Frozen
from accord.engine.operations import Operation, adopted_if, skipped_if
from accord.engine.trust import NEEDS_HUMAN
from accord.git.conflicts import conflict_notice, resolution
from accord.github.comments import Comment
from accord.github.commits import Upload, plan_upload
from accord.github.limits import BODY_CHARS, TITLE_CHARS
from accord.github.models import Pull
from accord.results.bodies import has_marker, read_body
from accord.results.implementor.commit import runs_before, runs_in
from accord.results.implementor.facts import OUTCOME, Branch, MergeConflict, RevisionFacts, our_comment, our_pull
from accord.results.implementor.rules import ScopeReport, audit_scope
from accord.results.labels import KEEPALIVE
from accord.results.status import MoveWorkItem, plan_move
from accord.results.texts import TextSanitizer
from accord.text.criteria import checklist, criteria_in
from accord.text.markdown import as_code
from accord.text.markers import REVISION, write_marker
from accord.text.sanitise import cut

if TYPE_CHECKING:
    from accord.results.models import ImplementorResult
    from accord.results.run_options import RevisionOptions


class PushBranch(Operation, op="push-branch"):
    """Bring a commit to the branch of this key."""

    commit: str
    expected: str  # where the branch must still end; empty: it must not exist
    upload: Upload | None  # None for a commit that is there


class CreateRevision(Operation, op="create-revision"):
    """Open the pull request of the branch of this key."""

    base: str
    title: str
    body: str
    is_draft: bool


class UpdateRevision(Operation, op="update-revision"):
    """Update title and body of the open pull request."""

    pull: Pull
    title: str
    body: str


class LabelRevision(Operation, op="label-revision"):
    """Add a label, the key, to the pull request."""


class LabelWorkItem(Operation, op="label-work-item"):
    """Add a label, the key, to the work item."""


class WriteComment(Operation, op="comment-work-item"):
    """Write our one comment on the work item, which reports why it is not done."""

    comment: Comment | None
    body: str


ImplementOperation = (
    PushBranch | CreateRevision | UpdateRevision | LabelRevision | LabelWorkItem | WriteComment | MoveWorkItem
)

_UNHEARD = (
    warning(
        "label-unheard",
        f"No workflow of the base runs keepalive, so the label `{KEEPALIVE}` starts nothing.",
        hint="Install it with `accord init --only keepalive`, or leave out `--keepalive`.",
    ),
)
_HEADS = {
    "blocked": "The agent is blocked.",
    "validation-failure": "The agent's validation failed.",
    "refused": "The agent's patch needs a person.",
    "conflict": "The agent's patch conflicts and needs a person.",
}
TARGETS = {"completed": "review", "blocked": "blocked", "validation-failure": "needs-refinement"}
"""The status that each outcome asks for (workflow contracts, "ImplementorResult")."""

_PATHS_SHOWN = 100
_SHORTEST_SUMMARY = 1_000
_RUNS_KEPT = 50
_ALLOW = "Review the patch. To push it, apply the result again with `--allow-steering-files`."
_PERSON = f"a person (`{NEEDS_HUMAN}`)."
_CUT = "\n\n*The summary is cut here, because it is longer than GitHub allows.*"


class RevisionPlan(Frozen):
    """The operations of a result, and findings for a person."""

    operations: tuple[ImplementOperation, ...] = ()
    findings: tuple[Finding, ...] = ()
    scope: ScopeReport | None = None
    pull: Pull | None = None  # that exists already
    refusal: Refused | None = None  # why the result is refused after these operations
    is_draft: bool = False  # how a new pull request is opened


def plan_revision(
    facts: RevisionFacts, result: ImplementorResult, sanitizer: TextSanitizer, options: RevisionOptions
) -> RevisionPlan:
    """Plan a result. Raises BrokenContract for content that must not be pushed, and for an illegal move."""
    branch = facts.branch
    if facts.is_superseded:
        return _ended_plan(facts.ended, facts.base if branch else "") if facts.ended else _superseded_plan()
    if branch is None:
        return _plan_comment(facts, result.outcome, result.summary)
    if branch.is_empty:
        reason = f"The patch changes nothing on {facts.base}, so the work is not done.\n\n{result.summary}"
        return _plan_comment(facts, "validation-failure", reason)
    if has_errors(branch.findings):
        raise BrokenContract("The patch contains what must not be pushed.", findings=branch.findings)
    if branch.is_pushed and _is_older_than_comment(facts):
        return _superseded_plan()
    if branch.audit.steering and not options.allows_steering:
        return _plan_refusal(facts, branch.audit.steering, sanitizer, options)
    return _plan_pull(facts, branch, result.summary, sanitizer, options)


def _plan_pull(
    facts: RevisionFacts, branch: Branch, summary: str, sanitizer: TextSanitizer, options: RevisionOptions
) -> RevisionPlan:
    name = facts.branch_name
    scope = audit_scope(branch.paths, read_body(facts.issue.body).scope, options.protected)
    audit = branch.audit  # submodules and targets of links have any name
    unnamed = (*audit.steering, *audit.protected, *branch.protected)
    scope = replace(scope, protected=tuple(dict.fromkeys((*scope.protected, *unnamed))))
    pull, is_written = our_pull(facts, facts.pulls, branch.since)
    if pull and pull.state != "open":
        return _ended_plan(pull, "")
    title = " ".join(facts.title.split())[:TITLE_CHARS]
    earlier = [*(runs_in(pull.body, REVISION) if pull else ()), *branch.runs]
    notice = _notice_of(branch, sanitizer)
    body = pull_body(summary, scope, facts, sanitizer, earlier, before=pull.body if pull else "", notice=notice)
    is_draft = bool(scope.protected or branch.conflict or branch.marked)
    revision: CreateRevision | UpdateRevision = (
        UpdateRevision(name, None, pull, title, body)
        if pull and not is_written
        else CreateRevision(name, adopted_if(is_written), facts.base, title, body, is_draft)
    )
    upload = plan_upload(branch.made) if branch.made else None
    push = PushBranch(name, adopted_if(branch.is_pushed), branch.commit, branch.tip, upload)
    operations: list[ImplementOperation] = [push, revision]
    if is_draft:
        is_answered = is_written and facts.is_answered
        found = skipped_if(is_answered or (pull is not None and NEEDS_HUMAN in pull.labels))
        operations.append(LabelRevision(NEEDS_HUMAN, found))
    if branch.conflict:
        report = conflict_report(branch.conflict, facts, sanitizer)
        operations += _plan_comment(facts, "conflict", report, branch.item_runs).operations
    moves = _plan_move(facts, TARGETS["completed"], is_settled=branch.is_pushed and is_written)
    if options.keepalive and isinstance(revision, CreateRevision):
        is_over = not any(move.is_change for move in moves)  # a person may have removed the label since
        found = skipped_if(is_over or (pull is not None and KEEPALIVE in pull.labels))
        operations.append(LabelRevision(KEEPALIVE, found))
    findings = (
        *branch.findings,
        *(_UNHEARD if options.keepalive and not branch.has_keepalive else ()),
        *_base_findings(facts, pull),
        *_branch_findings(branch, name),
        *scope_findings(scope, pull),
    )
    return RevisionPlan((*operations, *moves), findings, scope, pull, is_draft=is_draft)


def _plan_refusal(
    facts: RevisionFacts, paths: Sequence[str], sanitizer: TextSanitizer, options: RevisionOptions
) -> RevisionPlan:
    """Plan to ask a person on the work item. Its status stays, so that the result can be applied once allowed."""
    _plan_move(facts, TARGETS["completed"], is_settled=False)  # rejects an illegal move
    reason = "The patch changes files that steer agents or tools, so it was not pushed:"
    reason = sanitizer.message(f"{reason}\n\n{_path_list(paths, sanitizer)}")
    message = f"The patch changes steering files: {_first_paths(paths)}. Nothing was pushed."
    asks = "would ask" if options.is_dry_run else "asks"
    refusal = Refused(f"{message} The work item {asks} for {_PERSON}", hint=_ALLOW)
    plan = _plan_request(facts, f"{reason}\n\n{_ALLOW}", refusal)
    return replace(plan, findings=(warning("steering-file", message, "/patch", hint=_ALLOW),)) if plan.refusal else plan


def plan_refused_push(plan: RevisionPlan, facts: RevisionFacts, problem: Refused, safe: TextSanitizer) -> RevisionPlan:
    """Plan to ask a person on the work item after GitHub or git refused the push, the first operation of a plan."""
    hint = f"{problem.hint} Then apply the result again.".strip()
    text = f"The push to `{facts.branch_name}` was refused:\n\n{problem.message}\n\n{hint}"
    refusal = Refused(f"{problem.message} The work item asks for {_PERSON}", hint=hint)
    asked = _plan_request(facts, safe.message(safe.body(text)), refusal)
    return replace(plan, operations=(plan.operations[0], *asked.operations), refusal=refusal)


def _plan_request(facts: RevisionFacts, text: str, refusal: Refused) -> RevisionPlan:
    """Plan the comment and the label by which a work item asks for a person; nothing for an older result."""
    asked = _plan_comment(facts, "refused", text)
    if not asked.operations:
        return asked
    is_labelled = skipped_if(facts.is_answered or NEEDS_HUMAN in facts.issue.labels)
    return replace(asked, operations=(*asked.operations, LabelWorkItem(NEEDS_HUMAN, is_labelled)), refusal=refusal)


def _plan_comment(facts: RevisionFacts, outcome: str, summary: str, runs: Sequence[str] = ()) -> RevisionPlan:
    """Plan the comment; it comes after ``runs``, too."""
    if _is_older_than_comment(facts):
        return _superseded_plan()
    comment, number = our_comment(facts, facts.comments or ()), facts.issue.number
    earlier = [*(runs_in(comment.body, OUTCOME) if comment else ()), *runs]
    is_written = comment is not None and has_marker(comment.body, OUTCOME, facts.token)
    body = outcome_comment(outcome, summary, facts, earlier)
    write = WriteComment(f"#{number}", skipped_if(is_written), comment, body, number=number)
    moves = _plan_move(facts, TARGETS[outcome], is_settled=is_written) if outcome in TARGETS else ()
    return RevisionPlan((write, *moves))


def _is_older_than_comment(facts: RevisionFacts) -> bool:
    """Return whether our comment on the work item is about a later result."""
    comment = our_comment(facts, facts.comments or ())
    return comment is not None and facts.token in runs_before(comment.body, OUTCOME)


def _superseded_plan() -> RevisionPlan:
    """Plan nothing for a result that is older than the branch, its pull request, or a move of the work item."""
    text = "A later result, a merge, a push or a move of the work item superseded this result, so it changes nothing."
    return RevisionPlan(findings=(warning("revision-superseded", text, hint="To apply it, use another `--run-key`."),))


def _ended_plan(pull: Pull, base: str) -> RevisionPlan:
    """Plan nothing for a result whose pull request people ended, or that the base has: they decide on the item."""
    has = f"`{base}` has these changes, and #{pull.number}" if base else f"#{pull.number} has this result and"
    message = f"{has} was {'merged' if pull.is_merged else 'closed'}, so nothing is changed."
    closed = f"Reopen it: `gh pr reopen {pull.url}`. If its branch was deleted, apply it with another `--run-key`."
    hint = "Its changes are merged: further work needs a new result." if base or pull.is_merged else closed
    return RevisionPlan(findings=(warning("revision-ended", message, hint=hint),), pull=pull)


def _plan_move(facts: RevisionFacts, target: str, *, is_settled: bool) -> list[MoveWorkItem]:
    """Plan the status. When an earlier run did all else, a person may have moved the item since; then it stays."""
    try:
        return [plan_move(facts.issue, target)]
    except BrokenContract:
        if is_settled:
            return []
        raise


def scope_findings(scope: ScopeReport, pull: Pull | None) -> list[Finding]:
    """Return the warnings about paths; none of them stops the result."""
    found = []
    if scope.outside:
        message = f"The patch changes paths outside the scope: {_first_paths(scope.outside)}."
        found.append(warning("outside-scope", message, "/patch", hint="Review these paths."))
    if scope.protected:
        message = f"The patch changes protected paths: {_first_paths(scope.protected)}. A person must approve them."
        found.append(warning("protected-path", message, "/patch", hint="Let a person review it."))
        if pull and pull.state == "open" and not pull.is_draft:
            message = f"#{pull.number} is open for review already, and GitHub's REST API cannot make it a draft."
            found.append(warning("draft-not-set", message, "/patch", hint=f"Run `gh pr ready {pull.number} --undo`."))
    if scope.dependencies:
        message = f"The patch changes dependency files: {_first_paths(scope.dependencies)}."
        found.append(warning("dependency-file", message, "/patch", hint="Check what they install."))
    if scope.records:
        message = f"The patch changes sessions or missions, which later agents read: {_first_paths(scope.records)}."
        found.append(warning("record-file", message, "/patch", hint="Check who wrote what."))
    return found


def _first_paths(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths[:10]) + (" …" if len(paths) > 10 else "")


def _path_list(paths: Sequence[str], sanitizer: TextSanitizer) -> str:
    """Return a list of paths in Markdown."""
    lines = [f"- {_path_as_code(path, sanitizer)}" for path in paths[:_PATHS_SHOWN]]
    more = len(paths) - _PATHS_SHOWN
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])


def pull_body(
    summary: str,
    scope: ScopeReport,
    facts: RevisionFacts,
    sanitizer: TextSanitizer,
    earlier: Iterable[str] = (),
    before: str = "",
    notice: str = "",
) -> str:
    """Return summary, checklist, scope report and closing reference; a squash merge makes a commit message of them.

    ``before`` is the body of the pull request, whose ticks stay; ``notice`` is what people read first.
    """
    number = facts.issue.number
    criteria = criteria_in(facts.issue.body)
    tasks = checklist(criteria, before, lambda text: sanitizer.message(sanitizer.body(text)), number)
    report = sanitizer.message(scope_report(scope, sanitizer))
    reference = f"{'Closes' if facts.closes_item else 'Refs'} #{number}"
    rest = "\n\n".join(filter(None, [tasks, report, reference, _marker(REVISION, facts, earlier)]))
    shown = _shortened_text(sanitizer.message(summary), BODY_CHARS - len(rest) - len(notice) - 4)
    return "\n\n".join(filter(None, [notice, shown, rest]))


def outcome_comment(outcome: str, summary: str, facts: RevisionFacts, earlier: Iterable[str] = ()) -> str:
    """Return the one comment that reports why a work item is not done."""
    head = _HEADS[outcome]
    marker = _marker(OUTCOME, facts, earlier)
    return f"**{head}**\n\n{_shortened_text(summary, BODY_CHARS - len(head) - len(marker) - 8)}\n\n{marker}"


def _notice_of(branch: Branch, sanitizer: TextSanitizer) -> str:
    """Return what people read first in the pull request, empty without a conflict."""
    paths = branch.conflict.paths if branch.conflict else branch.marked
    onto = as_code(branch.conflict.onto) if branch.conflict else "another change, whose markers are still there"
    shown = [_path_as_code(path, sanitizer) for path in paths]
    return sanitizer.message(conflict_notice(onto, shown)) if shown else ""


def conflict_report(conflict: MergeConflict, facts: RevisionFacts, sanitizer: TextSanitizer) -> str:
    """Return what a person reads on the work item: the conflicting paths, and how to resolve the conflict."""
    shown = _path_list(conflict.paths, sanitizer)
    head = sanitizer.message(f"The patch conflicts with {as_code(conflict.onto)}:\n\n{shown}")
    kept = f"Nothing is lost: the branch `{facts.branch_name}` and a draft pull request have the agent's work."
    commands = f"```bash\n{resolution(facts.branch_name, conflict.onto)}\n```"
    end = f"Then mark the pull request as ready for review, and remove its label `{NEEDS_HUMAN}`."
    return f"{head}\n\n{kept} To resolve the conflict:\n\n{commands}\n\n{end}"


def _base_findings(facts: RevisionFacts, pull: Pull | None) -> Iterator[Finding]:
    """Yield a warning where the merge will not close the item, and one where the item's branch is over."""
    base = pull.base_branch if pull else facts.base
    if facts.closes_item and base != facts.default_branch:
        message = f"`{base}` is not the default branch, so GitHub does not close #{facts.issue.number} at the merge."
        hint = f"After the merge and the review: `accord items move {facts.issue.number} --to closed`."
        yield warning("base-not-default", message, hint=hint)
    over = facts.state.over if facts.state else ()
    if over and facts.closes_item and pull is None:
        pull = over[-1].pulls[0]
        message = f"`{over[-1].name}` is over: #{pull.number} was {'merged' if pull.is_merged else 'closed'}."
        hint = f"The result starts from `{facts.base}` on `{facts.branch_name}`; the old branch may stay or go."
        yield warning("branch-over", message, hint=hint)


def _branch_findings(branch: Branch, name: str) -> list[Finding]:
    """Return the warnings about a conflict, and about earlier results that are replaced."""
    if branch.is_replacement:
        message = f"The patch was not made on `{name}`, so its files replace those of earlier results there."
        return [warning("result-replaced", message, "/patch", hint="Take lost parts from the branch's history.")]
    if branch.conflict is None:
        return []
    paths = _first_paths(branch.conflict.paths)
    message = f"The patch conflicts with `{branch.conflict.onto}`: {paths}. The pull request is a draft."
    return [warning("conflict", message, "/patch", hint="Resolve the conflict as the work item's comment shows.")]


def _marker(name: str, facts: RevisionFacts, earlier: Iterable[str]) -> str:
    """Return a marker with the run that wrote a text, and the runs before it, which must not write it again."""
    runs = [run for run in dict.fromkeys(earlier) if run and run != facts.token][:_RUNS_KEPT]
    after = {"after": ".".join(runs)} if runs else {}
    return write_marker(name, run=facts.token, item=str(facts.issue.number), **after)


def scope_report(scope: ScopeReport, sanitizer: TextSanitizer) -> str:
    """Return Markdown that lists every changed path by group."""
    groups = (
        ("In scope", scope.in_scope),
        ("Tests beside files in scope", scope.tests),
        ("Outside the scope", scope.outside),
        ("Protected: needs review by a person", scope.protected),
        ("Dependencies: check what they install", scope.dependencies),
        ("Sessions and missions: later agents read them", scope.records),
    )
    return "\n\n".join(
        ["### Scope", *(f"**{head}**\n\n{_path_list(paths, sanitizer)}" for head, paths in groups if paths)]
    )


def _path_as_code(path: str, sanitizer: TextSanitizer) -> str:
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\n", "\\n").replace("\r", "\\r")
    return as_code(sanitizer.path(shown))


def _shortened_text(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return cut(text, max(limit, _SHORTEST_SUMMARY) - len(_CUT))[0].rstrip() + _CUT
