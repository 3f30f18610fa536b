"""What a reviewer result must know of its pull request, gathered before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, warning
from accord.github.limits import COMPARED_FILES, PULL_FILES
from accord.github.markers import find_markers
from accord.github.models import NotThere
from accord.github.pulls import closing_references
from accord.results.reviewer.placement import (
    COMMENT,
    PART,
    REVIEW,
    Anchors,
    DraftReview,
    Placement,
    ReviewMarks,
    anchors_of,
    draft_of,
    lay_out,
    marks_of,
)
from accord.results.status import StatusFacts, find_work_item, move_facts
from accord.results.texts import require_unarchived

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.github.client import GitHub
    from accord.github.comments import Comment
    from accord.github.models import Identity, Issue, Pull, PullFile, Repository, Review
    from accord.results.models import ReviewerResult

TARGETS = {"approve": "approved", "needs-changes": "needs-refinement"}
"""Where a verdict moves the work item (workflow contracts, "ReviewerResult")."""

PENDING = "PENDING"


@dataclass(frozen=True)
class Reviewed:
    """What was reviewed: the pull request, and where it is said, its work item and the commit (empty: the head)."""

    pull: int
    work_item: int | None = None
    commit: str = ""


@dataclass(frozen=True)
class Request:
    """What is asked for: this result, about this pull request.

    The texts of the result are as they are posted; ``names`` are the paths of its comments as they may be shown.
    ``token`` names the run, ``same`` all runs of this result whatever their commit.
    """

    result: ReviewerResult
    reviewed: Reviewed
    token: str
    same: str
    repository: str
    names: Sequence[str]


@dataclass(frozen=True)
class ReviewFacts:
    """The pull request as a review needs it.

    ``mine`` is the review that an earlier run of this result posted, with its ``marks``; ``standing`` are our reviews
    of other results, oldest first. ``on_files`` and ``parts`` are the comments of this run that are there already.
    ``item`` is the work item whose status the verdict decides, None where there is none to touch, and ``known`` what
    its move is judged by.
    """

    identity: Identity
    pull: Pull
    draft: DraftReview
    may_dismiss: bool = True
    may_label: bool = True
    anchors: Anchors = field(default_factory=Anchors)
    mine: Review | None = None
    marks: ReviewMarks | None = None
    pending: Review | None = None
    standing: tuple[Review, ...] = ()
    on_files: frozenset[int] = frozenset()
    parts: frozenset[int] = frozenset()
    item: Issue | None = None
    known: StatusFacts = field(default_factory=StatusFacts)
    findings: tuple[Finding, ...] = ()

    @property
    def is_superseded(self) -> bool:
        """Whether a later review of ours took the place of this one; then it changes nothing any more."""
        return self.mine is not None and any(review.id > self.mine.id for review in self.standing)


def gather_facts(github: GitHub, request: Request) -> ReviewFacts:
    """Read what the plan depends on. Raises BrokenContract for what is not there, Refused where nothing may be said.

    Costs: one request each for who we are, what the repository is, the pull request, each hundred of its reviews, each
    hundred of its files, and the work item; when the review is there already, for each hundred comments instead.
    """
    identity = github.identity()
    repository = github.repository()
    pull = github.pull(request.reviewed.pull)
    if pull is None:
        message = f"There is no pull request #{request.reviewed.pull} in this repository. Name one."
        raise BrokenContract.of(Finding("unknown-reference", message))
    _require_voice(repository, identity, pull)
    pending, reviews, findings = own_reviews(github.reviews(pull.number), request.token, identity)
    mine, token = _posted_before(reviews, request)
    commit = (mine.commit if mine else "") or request.reviewed.commit or pull.head_sha
    draft = replace(draft_of(request.result, request.names, token, pull.url, commit), same=request.same)
    facts = ReviewFacts(
        identity,
        pull,
        draft,
        may_dismiss=repository.may_push is not False or not identity.is_person,
        may_label=repository.may_triage is not False or not identity.is_person,
        mine=mine,
        marks=marks_of(mine.body, token, len(draft.notes)) if mine else None,
        pending=pending,
        standing=tuple(review for review in reviews if not is_of_run(review, token)),
        findings=(*findings, *_pull_findings(pull, commit, mine, request)),
    )
    return _with_work_item(github, _with_places(github, facts), request)


def _posted_before(reviews: Iterable[Review], request: Request) -> tuple[Review | None, str]:
    """Find the newest of our reviews that is this very one, and the token of the run that posted it."""
    found, token = None, request.token
    for review in reviews:
        for fields in find_markers(review.body, REVIEW):
            is_same = fields.get("result") == request.same and request.reviewed.commit in ("", review.commit)
            if is_same or fields.get("run") == request.token:
                found, token = review, fields.get("run", "")
    return found, token


def is_of_run(review: Review, token: str) -> bool:
    """Tell whether a review carries the marker of this run. Ask it only of our own."""
    return any(fields.get("run") == token for fields in find_markers(review.body, REVIEW))


def own_reviews(
    reviews: Iterable[Review], token: str, identity: Identity
) -> tuple[Review | None, list[Review], list[Finding]]:
    """Pick our own reviews that accord posted, and one of ours that is pending. Of what is not ours, warn.

    Raises Refused when a bot that may be us wrote this very review under another name: better than posting it twice.
    """
    pending = None
    own: list[Review] = []
    findings = []
    for review in reviews:
        is_own = identity.counts(review.author)
        if is_own and review.state == PENDING:
            pending = review
        elif is_own and find_markers(review.body, REVIEW):
            own.append(review)
        elif not is_own and is_of_run(review, token):
            message = f"A review carries the marker of this run, but {review.author} wrote it, not {identity.login}."
            if review.author_is_bot and not identity.is_person:
                raise Refused(message, hint=f"If this token belongs to that app, pass --identity '{review.author}'.")
            findings.append(warning("foreign-marker", f"{message} It does not count."))
    return pending, sorted(own, key=lambda review: review.id), findings


def _require_voice(repository: Repository, identity: Identity, pull: Pull) -> None:
    """Refuse now what GitHub would refuse later."""
    require_unarchived(repository)
    if pull.is_locked and identity.is_person and repository.may_push is False:
        raise Refused(
            f"The conversation of #{pull.number} is locked, and {identity.login} has no write access.",
            hint="Unlock the conversation, or use a token of somebody with the role Write or more.",
        )


def _pull_findings(pull: Pull, commit: str, mine: Review | None, request: Request) -> list[Finding]:
    found = []
    if pull.state != "open" and mine is None:
        message = f"#{pull.number} is {'merged' if pull.is_merged else 'closed'} already; the review is still posted."
        found.append(warning("pull-closed", message))
    if commit != pull.head_sha:
        moved = f"the head of #{pull.number} is {pull.head_sha[:12]} by now"
        if mine and not request.reviewed.commit:
            message = (
                f"This very review stands at {commit[:12]}, and {moved}. It is not posted again; if the new head was "
                "reviewed with the same result, pass its --commit or another --run-key."
            )
            found.append(warning("already-reviewed", message))
        else:
            found.append(warning("head-moved", f"The review is pinned to {commit[:12]}, but {moved}."))
    return found


def _with_places(github: GitHub, facts: ReviewFacts) -> ReviewFacts:
    """Learn where comments can go, or for a review that is there, which of its comments are."""
    if facts.mine is None:
        return _with_anchors(github, facts) if facts.draft.notes else facts
    marks = facts.marks
    if marks is None or facts.is_superseded:
        return facts
    token, number = facts.draft.token, facts.pull.number
    on_files = {note.at for note in facts.draft.notes if marks.places[note.at] is Placement.FILE}
    if on_files:
        there = found_numbers(github.review_comments(number), COMMENT, "at", token, facts.identity)
        facts = replace(facts, on_files=there)
    if len(lay_out(facts.draft, marks)) > 1:
        facts = replace(facts, parts=found_numbers(github.comments(number), PART, "part", token, facts.identity))
    return _with_anchors(github, facts) if on_files - facts.on_files else facts


def found_numbers(
    comments: Iterable[Comment], marker: str, name: str, token: str, identity: Identity
) -> frozenset[int]:
    """Number what is there of this run, by markers in comments of our own."""
    found = set()
    for comment in comments:
        if identity.counts(comment.author):
            for fields in find_markers(comment.body, marker):
                if fields.get("run") == token and fields.get(name, "").isdecimal():
                    found.add(int(fields[name]))
    return frozenset(found)


def _with_anchors(github: GitHub, facts: ReviewFacts) -> ReviewFacts:
    """Read the diff of the commit that was reviewed: the files of the pull request only tell about its head."""
    pull, commit = facts.pull, facts.draft.commit
    files: Sequence[PullFile] | None = None
    limit = PULL_FILES
    if commit != pull.head_sha:
        try:
            files, limit = github.files_between(pull.base_sha, commit), COMPARED_FILES
        except NotThere:
            files = None
    if files is None:
        files = github.files(pull.number)
    facts = replace(facts, anchors=anchors_of(files))
    if len(files) < limit or all(facts.anchors.find(note.path, None) for note in facts.draft.notes):
        return facts
    message = f"GitHub tells of {limit} files of this diff and no more. Comments on others are posted in the body."
    return replace(facts, findings=(*facts.findings, warning("files-unknown", message)))


def _with_work_item(github: GitHub, facts: ReviewFacts, request: Request) -> ReviewFacts:
    """Read the work item, and what its move is judged by. One that the user named must be there."""
    number, finding = _work_item(facts.pull, request)
    item, known = None, StatusFacts()
    if number and not facts.is_superseded:
        try:
            item = find_work_item(github, number)
            known = move_facts(github, item, TARGETS[facts.draft.verdict])
        except BrokenContract as broken:
            if number == request.reviewed.work_item:
                raise
            finding = warning("status-not-review", f"{broken.message} Its status label is left as it is.")
    return replace(facts, item=item, known=known, findings=(*facts.findings, *([finding] if finding else [])))


def _work_item(pull: Pull, request: Request) -> tuple[int | None, Finding | None]:
    if request.reviewed.work_item is not None:
        return request.reviewed.work_item, None
    numbers = closing_references(pull.body, request.repository)
    if len(numbers) == 1:
        return numbers[0], None
    names = ", ".join(f"#{number}" for number in numbers[:5])
    says = f"names several work items ({names})" if numbers else "names no work item"
    message = f'#{pull.number} {says}, so no status label is written. Pass --work-item, or write "Closes #n" in it.'
    return None, warning("work-item-unknown", message)
