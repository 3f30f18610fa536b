"""What an implementor's result must know of its work item, gathered before anything is planned.

What a patch comes to only git can tell, so its commit is made here, in a repository that is thrown away afterwards;
nobody else sees it before it is pushed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.git.branches import (
    DEFAULT_AUTHOR,
    BranchFacts,
    CommitText,
    Remote,
    branch_facts,
    commit_patch,
    fetched,
    runs_of,
)
from accord.git.links import escaping_links
from accord.git.patches import Change, changes_between, secret_findings
from accord.results.implementor.revision import commit_message, is_over, was_followed
from accord.results.status import find_work_item
from accord.results.texts import posted_message, require_writable

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from accord.core.findings import Finding
    from accord.git.program import Git
    from accord.github.client import GitHub
    from accord.github.comments import Comment
    from accord.github.models import Identity, Issue, Pull
    from accord.results.models import ImplementorResult
    from accord.results.operations import RunOptions
    from accord.results.texts import TextSanitizer


@dataclass(frozen=True)
class Implementation:
    """What applying needs besides the result: the work item, the remote, and how to commit."""

    number: int
    remote: Remote
    base: str = ""
    checkout: Path | None = None
    author: str = DEFAULT_AUTHOR
    co_authors: tuple[str, ...] = ()
    commit_prefix: str = "feat"
    protected: tuple[str, ...] = ()

    @property
    def branch(self) -> str:
        """The branch that holds the work of this item."""
        return f"accord/{self.number}"


@dataclass(frozen=True)
class Branch:
    """The work item's branch, and what the patch makes of it.

    ``commit`` is the one that this run made, now or before (``is_pushed``); ``tip`` where the branch was found, empty
    when there is none; ``head`` where it ends with the commit. ``touched`` are the paths that the whole branch changes,
    ``since`` this run's commit and those after it, ``runs`` the runs that made its commits. ``findings`` are about what
    the commit brings in.
    """

    git: Git
    tip: str
    commit: str
    head: str
    is_pushed: bool
    is_empty: bool
    touched: tuple[str, ...]
    since: tuple[str, ...]
    runs: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class RevisionFacts:
    """The work item with its branch, its pull requests and its comments, as far as a plan needs them.

    ``title`` is the work item's, fit to be posted. ``is_superseded`` tells that the work went on after this result;
    then there is no ``branch``. ``comments`` are read only where the work is not done.
    """

    identity: Identity
    token: str
    issue: Issue
    title: str
    base: str
    pulls: tuple[Pull, ...] = ()
    is_superseded: bool = False
    branch: Branch | None = None
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True)
class Request:
    """What is asked for: this result, whose texts are as they are posted, for this work item, in the run ``token``.

    ``desk`` makes fit to be posted what is written beside them: titles and paths.
    """

    result: ImplementorResult
    work: Implementation
    token: str
    setting: RunOptions
    desk: TextSanitizer

    @property
    def patch(self) -> bytes:
        """The patch as git takes it."""
        return (self.result.patch or "").encode()


def gather_facts(github: GitHub, request: Request, stack: ExitStack) -> RevisionFacts:
    """Read what the plan depends on. Git's repository lives as long as ``stack``.

    Raises BrokenContract where there is no such work item and for a patch that is none, Refused where nothing may be
    written or the patch does not fit.
    """
    identity = github.identity()
    repository = require_writable(github, identity)
    issue = find_work_item(github, request.work.number)
    title, base = request.desk.title(issue.title), request.work.base or repository.default_branch
    facts = RevisionFacts(identity, request.token, issue, title, base)
    if request.result.outcome == "completed":
        facts = _with_branch(github, request, facts, stack)
    is_done = facts.is_superseded or (facts.branch is not None and not facts.branch.is_empty)
    return facts if is_done else replace(facts, comments=tuple(github.comments(issue.number)))


def _with_branch(github: GitHub, request: Request, facts: RevisionFacts, stack: ExitStack) -> RevisionFacts:
    work = request.work
    git = stack.enter_context(fetched(work.remote, facts.base, work.branch, work.checkout))
    found = branch_facts(git, facts.token, request.patch)
    pulls = tuple(github.pulls_from(work.branch))
    is_superseded = (
        bool(found.applied and runs_of(git, f"{found.applied}..{found.tip}"))
        or was_followed(pulls, facts.identity, facts.token)
        or is_over(pulls, facts.identity, facts.token, has_branch=bool(found.tip))
    )
    facts = replace(facts, pulls=pulls, is_superseded=is_superseded)
    return facts if is_superseded else replace(facts, branch=_branch(git, found, request, facts.title))


def _branch(git: Git, found: BranchFacts, request: Request, title: str) -> Branch:
    """Look at the branch, and make the commit that it lacks."""
    commit, changes = found.applied, list[Change]()
    if not found.applied:
        text = CommitText(request.work.author, _message(request, title))
        commit, changes = commit_patch(git, found, request.patch, text, request.setting.clock.now())
    before = found.tip or found.base
    head = commit if changes else before
    return Branch(
        git,
        found.tip,
        commit,
        head,
        is_pushed=not changes,
        is_empty=not changes and not found.tip,
        touched=tuple(_touched(git, found, head)),
        since=tuple(_since(git, found)),
        runs=tuple(runs_of(git, f"{found.base}..{found.tip}")) if found.tip else (),
        findings=(*escaping_links(git, before, head), *secret_findings(git, changes, request.setting.redact)),
    )


def _message(request: Request, title: str) -> str:
    work = request.work
    summary = posted_message(request.result.summary, request.setting.redact)
    return commit_message(title, summary, work.number, request.token, work.co_authors, prefix=work.commit_prefix)


def _since(git: Git, found: BranchFacts) -> list[str]:
    """List this run's commit and those that came on the branch after it."""
    return git.line("rev-list", f"{found.applied}^..{found.tip}").split() if found.applied else []


def _touched(git: Git, found: BranchFacts, head: str) -> list[str]:
    """List the paths that the whole branch changes: the pull request has all of it, whichever run it came from."""
    start = git.attempt("merge-base", found.base, head).stdout.decode().strip() or found.base
    return [change.path for change in changes_between(git, start, head)]
