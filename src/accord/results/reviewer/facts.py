"""The facts of a reviewer result: its pull request, reviews, comments, diff and work item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, warning
from accord.core.frozen import Frozen
from accord.engine.owner import is_over, pull_state
from accord.git.configuration import approvals_in, find_config
from accord.github.comments import Comment
from accord.github.limits import COMPARED_FILES, PULL_FILES
from accord.github.models import Forbidden, Identity, Issue, NotThere, Pull, PullFile, Review
from accord.github.pulls import closing_references
from accord.results.bodies import has_marker
from accord.results.reviewer.placement import (
    IN_THREADS,
    MOST_PLACED,
    PART,
    Anchors,
    DraftReview,
    Placement,
    ReviewMarks,
    anchors_of,
    is_in_body,
    lay_out,
    marks_of,
    needs_diff,
    with_files,
)
from accord.results.reviewer.threads import (
    COMMENT,
    OwnThread,
    finding_text,
    gone_threads,
    match_threads,
    read_threads,
    threads_of_ours,
    unlocated_commits,
)
from accord.results.run_options import MOST_COMMENTS, ReviewOptions
from accord.results.status import StatusFacts, find_work_item, foreign_marker, labels_removed, require_unarchived
from accord.results.status import gather_facts as gather_status_facts
from accord.text.markers import REVIEW, find_markers

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.github.graphql import ReviewThread

TARGETS = {"approve": "approved", "needs-changes": "needs-refinement"}
"""The status that each verdict asks for (workflow contracts, "ReviewerResult")."""

READ_HEAD = "Let the reviewer read the new head."
MOVE_ITEM = "Move it by hand: `accord items move {} --to STATUS`."
PENDING = "PENDING"

MOST_COMPARED = 5
"""Commits whose changes are read to find threads again that GitHub lost; older threads match by path and text."""


class ReviewFacts(Frozen):
    """The pull request as a review needs it; None and empty sets for what was not read or does not exist."""

    identity: Identity
    pull: Pull
    draft: DraftReview
    may_dismiss: bool = True
    may_label: bool = True
    anchors: Anchors | None = None  # read while comments are still to be placed
    mine: Review | None = None  # posted by an earlier run of this result
    marks: ReviewMarks | None = None  # of that
    pending: Review | None = None
    standing: tuple[Review, ...] = ()  # ours of other results, oldest first
    matches: Mapping[int, OwnThread] = field(default_factory=dict)  # of comments that a thread holds, by position
    gone: tuple[OwnThread, ...] = ()  # threads whose finding is gone
    repeated: Review | None = None  # an earlier review of this commit that says the same
    approvals: str | None = None  # how the repository wants an approval: comment or approve; read for one
    no_approval: str = ""  # why this pull request gets none
    most: int = MOST_COMMENTS  # of new comments, so many are placed
    on_files: frozenset[int] = frozenset()  # the comments of this run that exist, by position
    parts: frozenset[int] = frozenset()  # the follow-ups of this run that exist
    item: Issue | None = None  # whose status the verdict decides
    item_facts: StatusFacts | None = None
    findings: tuple[Finding, ...] = ()

    def with_finding(self, finding: Finding, **changes: Any) -> ReviewFacts:
        """Return the facts with a finding, and what it tells."""
        return replace(self, findings=(*self.findings, finding), **changes)

    @property
    def is_superseded(self) -> bool:
        """Whether a later review of ours replaced this one, which then changes nothing more."""
        return self.mine is not None and any(review.id > self.mine.id for review in self.standing)


def gather_facts(github: GitHub, draft: DraftReview, options: ReviewOptions) -> ReviewFacts:
    """Read what the plan depends on. Raises BrokenContract for what does not exist, Refused where we may not write."""
    identity = github.identity()
    repository = github.repository()
    pull = github.pull(options.pull)
    if pull is None:
        message = f"The repository has no pull request #{options.pull}."
        hint = "Use the number of an existing pull request."
        raise BrokenContract.of(Finding("unknown-reference", message, hint=hint))
    require_unarchived(repository)
    if pull.is_locked and not (identity.is_person and repository.may_push is not False):
        why = (
            f"{identity.login} has no write access"
            if identity.is_person
            else "tokens of jobs and apps may not write there"
        )
        message = f"The conversation of #{pull.number} is locked, and {why}."
        hint = "Unlock the conversation, or use a token of a person with the role Write or higher."
        raise Refused(message, hint=hint)
    pending, reviews, findings = own_reviews(github.reviews(pull.number), draft.token, identity)
    mine, token = _posted_before(reviews, draft, options.commit)
    commit = (mine.commit if mine else "") or options.commit or pull.head_sha
    if mine is None and commit != pull.head_sha and not _is_of_pull(github, pull, commit):
        message = f"{commit[:12]} is not a commit of #{pull.number}, so GitHub takes no review of it."
        hint = f"If the reviewer read its head, pass `--commit {pull.head_sha}`. Otherwise, review it again."
        raise BrokenContract.of(Finding("unknown-reference", message, hint=hint))
    draft = replace(draft, token=token, pull_url=pull.url, commit=commit)
    facts = ReviewFacts(
        identity,
        pull,
        draft,
        may_dismiss=repository.may_push is not False or not identity.is_person,
        may_label=repository.may_triage is not False or not identity.is_person,
        mine=mine,
        marks=marks_of(mine.body, token, len(draft.notes)) if mine else None,
        pending=pending,
        standing=tuple(review for review in reviews if not has_marker(review.body, REVIEW, token)),
        most=options.max_comments,
        findings=(*findings, *_pull_findings(pull, commit, mine, options)),
    )
    facts = _with_anchors(github, facts) if needs_diff(draft) else facts
    facts = replace(facts, draft=with_files(draft, facts.anchors))
    if draft.verdict == "approve" and mine is None:
        facts = _with_approvals(github, facts, options, repository.default_branch)
    return _with_work_item(github, _with_comments(github, _with_threads(github, facts)), options)


def _with_approvals(github: GitHub, facts: ReviewFacts, options: ReviewOptions, branch: str) -> ReviewFacts:
    """Read whether the repository wants approvals, and if so, whether this pull request may get one."""
    approvals = options.approvals or approvals_in(find_config(lambda path: github.find_file(path, branch)))
    facts = replace(facts, approvals=approvals)
    if approvals != "approve":
        return facts
    pull, author = facts.pull, facts.pull.author
    is_fork = pull.head_repository.lower() != options.repository.lower()
    may_write = is_fork or github.is_trusted(author, lambda: facts.identity)
    return replace(facts, no_approval=approval_refusal(pull, is_fork=is_fork, may_write=may_write))


def approval_refusal(pull: Pull, *, is_fork: bool, may_write: bool) -> str:
    """Return why accord does not approve a pull request whatever the reviewer says; empty if it may. Pure."""
    if is_fork:
        return f"#{pull.number} comes from a fork, and accord approves no pull request from a fork."
    return (
        "" if may_write else f"The author of #{pull.number}, {pull.author or 'a deleted account'}, has no write access."
    )


def _posted_before(reviews: Iterable[Review], draft: DraftReview, commit: str) -> tuple[Review | None, str]:
    """Return the newest of our reviews with this result, and the token of the run that posted it."""
    found, token = None, draft.token
    for review in reviews:
        for fields in find_markers(review.body, REVIEW):
            is_same = fields.get("result") == draft.same and commit in ("", review.commit)
            if is_same or fields.get("run") == draft.token:
                found, token = review, fields.get("run", "")
    return found, token


def own_reviews(
    reviews: Iterable[Review], token: str, identity: Identity
) -> tuple[Review | None, list[Review], list[Finding]]:
    """Return our pending review, the reviews that accord posted as us, and warnings about copied markers."""
    pending = None
    own: list[Review] = []
    findings = []
    for review in reviews:
        is_own = identity.counts(review.author)
        if is_own and review.state == PENDING:
            pending = review
        elif is_own and find_markers(review.body, REVIEW):
            own.append(review)
        elif not is_own and has_marker(review.body, REVIEW, token):
            findings.append(foreign_marker("A review", review.author, identity, is_bot=review.author_is_bot))
    return pending, sorted(own, key=lambda review: review.id), findings


def _pull_findings(pull: Pull, commit: str, mine: Review | None, options: ReviewOptions) -> Iterator[Finding]:
    if is_over(pull_state(pull)) and mine is None:
        message = f"#{pull.number} is {pull_state(pull).state}, so a person decides what becomes of the review."
        hint = "Its findings are in the result: open issues for those that still matter."
        if not pull.is_merged:
            hint = f"Reopen it: `gh pr reopen {pull.url}`. Then apply the review again."
        yield warning("pull-closed", message, hint=hint)
    moved = f"the head of #{pull.number} is {pull.head_sha[:12]} now"
    if commit != pull.head_sha and mine and not options.commit:
        hint = f"If the reviewer read the new head, pass `--commit {pull.head_sha}`."
        message = f"This review was posted at {commit[:12]} already, but {moved}."
        yield warning("already-reviewed", message, hint=hint)
    elif commit != pull.head_sha:
        yield warning("head-moved", f"The review is posted at {commit[:12]}, but {moved}.", hint=READ_HEAD)


def _with_comments(github: GitHub, facts: ReviewFacts) -> ReviewFacts:
    """Read the diff for a new review; for a posted one, read which of its comments exist."""
    if facts.mine is None:
        is_all_matched = len(facts.matches) == len(facts.draft.own_notes)
        return facts if is_all_matched else _with_anchors(github, facts)
    marks = facts.marks
    if marks is None or facts.is_superseded:
        return facts
    number = facts.pull.number
    wanted = {note.at for note in facts.draft.notes if marks.places[note.at] is Placement.FILE}
    if wanted:
        facts = replace(facts, on_files=posted_numbers(github.review_comments(number), COMMENT, facts))
    if len(lay_out(facts.draft, marks)) > 1:
        facts = replace(facts, parts=posted_numbers(github.comments(number), PART, facts))
    return _with_anchors(github, facts) if wanted - facts.on_files else facts


def posted_numbers(comments: Iterable[Comment], marker: str, facts: ReviewFacts) -> frozenset[int]:
    """Return the numbers in this run's markers, from comments of ours."""
    name = "at" if marker == COMMENT else "part"
    ours = (comment for comment in comments if facts.identity.counts(comment.author))
    found = (fields for comment in ours for fields in find_markers(comment.body, marker))
    numbers = (fields.get(name, "") for fields in found if fields.get("run") == facts.draft.token)
    return frozenset(int(number) for number in numbers if number.isdecimal())


def _with_threads(github: GitHub, facts: ReviewFacts) -> ReviewFacts:
    """Read the threads of earlier reviews; for a posted review, those that it found again, or gone."""
    marks = facts.marks
    if not facts.standing or facts.is_superseded or (facts.mine and not (marks and (marks.gone or marks.has_earlier))):
        return facts
    number, commit, head = facts.pull.number, facts.draft.commit, facts.pull.head_sha
    try:
        every: Sequence[ReviewThread] = github.review_threads(number)
    except Refused as refused:
        every = github.threads_without_state(number)
        facts = facts.with_finding(_without_state(number, refused))
    ours = threads_of_ours(every, facts.standing, facts.identity)
    notes = facts.draft.own_notes[:MOST_PLACED]
    if marks:
        notes = tuple(note for note in notes if marks.places[note.at] in IN_THREADS)
    texts, paths = {finding_text(note.text) for note in notes}, {note.path for note in notes}
    commits = unlocated_commits(ours, texts, paths, commit, head)
    changes = {old: _files_since(github, old, commit) for old in commits[:MOST_COMPARED]}
    threads = read_threads(ours, facts.standing, facts.identity, commit, head, changes)
    matches = match_threads(notes, threads)
    if marks:
        gone = (thread for thread in threads if thread.comment_id in marks.gone)
        return replace(facts, matches=matches, gone=tuple(gone))
    facts = replace(facts, matches=matches, gone=tuple(gone_threads(threads, matches.values())))
    newest = facts.standing[-1]
    return replace(facts, repeated=newest) if _is_repeated(facts, newest) else facts


def _without_state(number: int, refused: Refused) -> Finding:
    is_forbidden = isinstance(refused, Forbidden)
    who = "The token may not read" if is_forbidden else "This server does not tell"
    message = f"{who} which threads of #{number} are resolved, so none is resolved."
    reason, hint = (f" {refused.message}", refused.hint) if is_forbidden else ("", "")
    return warning("threads-not-resolved", message + reason, hint=hint)


def _is_of_pull(github: GitHub, pull: Pull, commit: str) -> bool:
    """Return whether the head has a commit that the base has not."""
    return _files_since(github, commit, pull.head_sha) is not None and github.is_beyond(pull.base_sha, commit)


def _files_since(github: GitHub, old: str, commit: str) -> Sequence[PullFile] | None:
    """Read the files that changed since a commit; None where GitHub does not tell, as after a forced push."""
    try:
        return github.files_since(old, commit)
    except Refused:
        return None


def _is_repeated(facts: ReviewFacts, newest: Review) -> bool:
    """Return whether the newest review has this verdict for this commit, and all these comments; else the summary."""
    draft, notes = facts.draft, facts.draft.own_notes
    is_same = newest.commit == draft.commit and newest.state != "DISMISSED"
    asks = any(fields.get("asks") == draft.verdict for fields in find_markers(newest.body, REVIEW))
    threads = facts.matches
    is_said = all(
        threads[note.at].has_text(note.text) if note.at in threads else is_in_body(draft, note, newest.body)
        for note in notes
    )
    return is_same and asks and is_said and not facts.gone and (bool(notes) or f"{draft.summary}\n" in newest.body)


def _with_anchors(github: GitHub, facts: ReviewFacts) -> ReviewFacts:
    """Read the diff at the reviewed commit; the files of the pull request are those of its head."""
    if facts.anchors:
        return facts
    pull, commit = facts.pull, facts.draft.commit
    try:
        is_head = commit == pull.head_sha
        files = github.files(pull.number) if is_head else github.files_between(pull.base_sha, commit)
        limit = PULL_FILES if is_head else COMPARED_FILES
    except NotThere:
        files, limit = github.files(pull.number), PULL_FILES
    anchors = anchors_of(files, is_whole=len(files) < limit)
    facts = replace(facts, anchors=anchors)
    if anchors.is_whole or all(anchors.find(note.path, None) for note in facts.draft.notes):
        return facts
    message = f"GitHub lists only {limit} files of this diff."
    hint = "Comments on other files are posted in the body."
    return facts.with_finding(warning("files-unknown", message, hint=hint))


def _with_work_item(github: GitHub, facts: ReviewFacts, options: ReviewOptions) -> ReviewFacts:
    """Read the work item and the facts of its move. Raises BrokenContract when the user named one that is missing."""
    numbers = closing_references(facts.pull)
    number = options.work_item or (numbers[0] if len(numbers) == 1 else None)
    if number is None:
        names = ", ".join(f"#{number}" for number in numbers[:5])
        problem = f"closes several work items ({names})" if numbers else "closes no work item"
        message = f"#{facts.pull.number} {problem}, so no status changes."
        hint = "Pass `--work-item N`, or write `Closes #N` into it."
        return facts.with_finding(warning("work-item-unknown", message, hint=hint))
    if facts.is_superseded:
        return facts
    try:
        item = find_work_item(github, number)
        at = facts.mine.submitted_at if facts.mine and "status:review" in item.labels else None
        if at and "status:review" in labels_removed(github, number, at, or_added=True):
            message = f"#{number} was moved after this review. Its status label stays unchanged."
            return facts.with_finding(warning("status-not-review", message, hint=MOVE_ITEM.format(number)))
        return replace(facts, item=item, item_facts=gather_status_facts(github, item, TARGETS[facts.draft.verdict]))
    except BrokenContract as broken:
        if number == options.work_item:
            raise
        message = f"{broken.message} Its status label stays unchanged."
        return facts.with_finding(warning("status-not-review", message, hint=broken.hint or MOVE_ITEM.format(number)))
