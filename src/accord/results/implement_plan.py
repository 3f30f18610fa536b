"""From an implementor's result and the facts to operations. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.github.markers import find_markers
from accord.kernel.findings import Finding, warning
from accord.results.operations import MoveWorkItem
from accord.results.revision_texts import OUTCOME, REVISION, runs_before

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from accord.github.comments import Comment
    from accord.github.port import Identity
    from accord.github.pull_port import Pull
    from accord.results.operations import Status
    from accord.results.scope import ScopeReport

NEEDS_HUMAN = "needs-human"


@dataclass(frozen=True, slots=True)
class PushBranch:
    """Put a commit on the work item's branch."""

    op: ClassVar[str] = "push-branch"
    branch: str
    commit: str
    expected: str
    found: Status | None

    @property
    def key(self) -> str:
        """The branch."""
        return self.branch


@dataclass(frozen=True, slots=True)
class WriteRevision:
    """Open the pull request, or bring the open one up to date."""

    pull: Pull | None
    branch: str
    base: str
    title: str
    body: str
    is_draft: bool
    found: Status | None

    @property
    def op(self) -> str:
        """What it comes to."""
        return "update-revision" if self.pull and not self.found else "create-revision"

    @property
    def key(self) -> str:
        """The branch."""
        return self.branch


@dataclass(frozen=True, slots=True)
class LabelRevision:
    """Ask for a person on the pull request."""

    op: ClassVar[str] = "label-revision"
    branch: str
    label: str
    found: Status | None

    @property
    def key(self) -> str:
        """The label."""
        return self.label


@dataclass(frozen=True, slots=True)
class WriteComment:
    """Say on the work item why it is not done, in the one comment that is ours."""

    op: ClassVar[str] = "comment-work-item"
    number: int
    comment: Comment | None
    body: str
    found: Status | None

    @property
    def key(self) -> str:
        """The work item."""
        return f"#{self.number}"


ImplementOperation = PushBranch | WriteRevision | LabelRevision | WriteComment | MoveWorkItem


def our_pull(
    pulls: Sequence[Pull], identity: Identity, token: str, commits: Collection[str] = ()
) -> tuple[Pull | None, bool]:
    """Choose the pull request of the branch that this run goes on with; tell whether this run wrote it already.

    An open one comes first. One that this run wrote counts when it was merged, and when a person closed it while it
    had the run's commit (``commits`` are that one and those after it): there is nothing to open again then.
    """
    written = [pull for pull in pulls if _is_of_run(pull, identity, token)]
    still = [pull for pull in pulls if pull.state == "open"]
    if still:
        return next(((pull, True) for pull in still if pull in written), (still[0], False))
    return next(((pull, True) for pull in written if pull.is_merged or pull.head_sha in commits), (None, False))


def is_over(pulls: Sequence[Pull], identity: Identity, token: str, *, has_branch: bool) -> bool:
    """Tell whether this run's pull request was merged, and the branch is gone or another one is open for it."""
    is_merged = any(pull.is_merged and _is_of_run(pull, identity, token) for pull in pulls)
    return is_merged and (not has_branch or any(pull.state == "open" for pull in pulls))


def was_followed(pulls: Sequence[Pull], identity: Identity, token: str) -> bool:
    """Tell whether a later run wrote what the open pull request says, also when it had nothing to commit."""
    ours = (pull for pull in pulls if pull.state == "open" and identity.counts(pull.author))
    return any(token in runs_before(pull.body, REVISION) for pull in ours)


def _is_of_run(pull: Pull, identity: Identity, token: str) -> bool:
    marks = find_markers(pull.body, REVISION) if identity.counts(pull.author) else []
    return any(fields.get("run") == token for fields in marks)


def superseded() -> Finding:
    """Say that a result is older than what the branch or its pull request has."""
    message = "The work went on after this result (by a later result, or a merge), so it changes nothing any more."
    return warning("revision-superseded", message)


def our_comment(comments: Sequence[Comment], identity: Identity, number: int) -> Comment | None:
    """Find the one comment in which we tell of this work item's outcome."""
    for comment in comments:
        if identity.counts(comment.author) and any(
            fields.get("item") == str(number) for fields in find_markers(comment.body, OUTCOME)
        ):
            return comment
    return None


def is_comment_of(comment: Comment, token: str) -> bool:
    """Tell whether this run wrote the comment's present text."""
    return any(fields.get("run") == token for fields in find_markers(comment.body, OUTCOME))


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
