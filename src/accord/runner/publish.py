"""Publishing what an agent changed: one commit on its branch, pushed exactly once, never by force.

Source: runner output contract, "Changes Made Logic". Nothing counts as published before the remote has it: a push
whose answer is lost is looked up, and a run that was published before is found again by a trailer of its commit.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract, Refused, WrongUsage
from accord.git.branches import (
    DEFAULT_AUTHOR,
    RUN_TRAILER,
    BranchFacts,
    CommitText,
    Remote,
    Unreachable,
    commit_of_run,
    commit_patch,
    fetch_branch,
    fetch_ref,
    in_short,
    push,
    push_refusal,
    push_trouble,
    refs_of,
    scratch_repository,
)
from accord.git.links import escaping_links
from accord.git.patches import PatchConflict, changes_between, paths_with_tokens
from accord.git.program import Git
from accord.runner.classify import internal_error
from accord.runner.record import InternalError, patch_stats, range_stats
from accord.text.words import without_skips

if TYPE_CHECKING:
    from accord.git.patches import Change

TRIES = 6
"""How often the branch may move under a run before it gives up."""

_PAUSE_SECONDS = 1.0
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PULL_REF = re.compile(r"(?:refs/)?pull/\d+/.+|\d+/merge")
_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)


@dataclass(frozen=True)
class Publication:
    """What is to be published. ``token`` is one word that names the run; ``base_sha`` what the patch was made against.

    ``subject`` and ``body`` of the commit are safe texts; ``lender`` a trusted checkout whose objects need no fetching.
    """

    patch: bytes
    pr_ref: str
    base_sha: str
    token: str
    subject: str
    body: str = ""
    base_ref: str = ""
    author: str = DEFAULT_AUTHOR
    lender: Path | None = None


@dataclass(frozen=True)
class Published:
    """What came of it. Without commit and failure the branch had all of the changes already.

    ``files_changed`` counts the paths of the pushed commit, a renamed file as one; ``with_tokens`` are those of them
    that got a text which looks like a token.
    """

    commit_sha: str = ""
    files_changed: int = 0
    failure: InternalError | None = None
    with_tokens: tuple[str, ...] = ()


def is_where_others_see_it(published: Published | None, *, has_changes: bool) -> bool:
    """Tell whether the tasks of a run may count as completed: nothing of its work waits to be pushed.

    ``published`` is None where nothing was pushed, and nobody tried.
    """
    return published.failure is None if published else not has_changes


def publish_patch(remote: Remote, work: Publication) -> Published:
    """Put a run's patch on its branch as one commit, on top of whatever came in between.

    Raises nothing but what stops the process; a failure is returned, as what accord knows of it.
    """
    try:
        branch = branch_of(work.pr_ref)
        patch_stats(work.patch)
        with scratch_repository(remote, work.lender) as git:
            return _published(git, remote, branch, work)
    except Unreachable as error:
        return Published(failure=internal_error("push-unreachable", error))
    except subprocess.TimeoutExpired as error:
        return Published(failure=InternalError(kind="push-unreachable", detail=str(error)))
    except PatchConflict as error:
        return Published(failure=internal_error("push-conflict", error))
    except BrokenContract as error:
        return Published(failure=internal_error("changes-unreadable", error))
    except Refused as error:
        return Published(
            failure=internal_error("disk-full" if _DISK_FULL.search(str(error)) else "push-refused", error)
        )


def _published(git: Git, remote: Remote, branch: str, work: Publication) -> Published:
    """Commit and push; when the branch has moved by then, again on its new tip."""
    for tries in range(TRIES):
        if tries:
            remote.clock.sleep(_PAUSE_SECONDS * tries)
        facts = _facts(git, remote, branch, work)
        if facts.applied:
            return _pushed(git, f"{facts.applied}^", facts.applied)
        commit, changes = _committed(git, remote, facts, work)
        if not changes:
            return Published()
        if links := escaping_links(git, facts.tip or facts.base, commit):
            raise Refused(links[0].message, hint="A person must look at what the agent did.")
        if push(git, remote, commit, branch, facts.tip):
            return _pushed(git, facts.tip or facts.base, commit)
    raise PatchConflict(
        f"The branch {branch} moved {TRIES} times while the changes were being pushed.",
        hint="Run it again when the branch is quiet.",
    )


def _pushed(git: Git, before: str, commit: str) -> Published:
    """Tell of a commit that the remote has, the same whether it was pushed now or by an earlier try."""
    tokens = paths_with_tokens(git, changes_between(git, before, commit))
    return Published(commit, len(range_stats(git, before, commit)), with_tokens=tuple(tokens))


def _facts(git: Git, remote: Remote, branch: str, work: Publication) -> BranchFacts:
    """Look at the branch as it is now, or at where it is to begin.

    A new branch begins at the commit that the agent saw, unless that is on no branch (the merge commit that Actions
    makes for a pull request): then at the tip of its base.
    """
    tip = fetch_branch(git, remote, branch, "work")
    known = _known(git, remote, work.base_sha)
    if tip:
        commits = f"{known}..{tip}" if known else tip
        return BranchFacts(known or tip, tip, commit_of_run(git, work.token, commits, work.patch))
    base = _base(git, remote, work.base_ref)
    is_seen = known and git.attempt("merge-base", "--is-ancestor", known, base).returncode == 0
    return BranchFacts(known if is_seen else base, "", "")


def _base(git: Git, remote: Remote, base_ref: str) -> str:
    """Fetch the base branch; the default branch where none is named, or where the name is none of the remote's."""
    name = base_ref.strip().removeprefix("refs/heads/").removeprefix("origin/")
    tip = fetch_branch(git, remote, name, "base") if name and not name.startswith("refs/") else ""
    return tip or fetch_ref(git, remote, "HEAD", "base")


def _known(git: Git, remote: Remote, sha: str) -> str:
    """Return the commit if it can be had: a 3-way merge needs what the patch was made against."""
    if not _SHA.fullmatch(sha):
        return ""
    if git.attempt("cat-file", "-e", f"{sha}^{{commit}}").returncode == 0:
        return sha
    fetched = git.attempt("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote.url, sha)
    return sha if fetched.returncode == 0 else ""


def _committed(git: Git, remote: Remote, facts: BranchFacts, work: Publication) -> tuple[str, list[Change]]:
    """Make the commit. What git cannot apply to a branch that has moved on is a conflict, not a broken patch."""
    text = CommitText(work.author, _message(work))
    try:
        return commit_patch(git, facts, work.patch, text, remote.clock.now())
    except BrokenContract as broken:
        if work.base_sha in (facts.tip, facts.base if not facts.tip else ""):
            raise
        raise PatchConflict(broken.message, hint="Let the agent work on top of the branch as it is now.") from None


def _message(work: Publication) -> str:
    """Write the commit message: nothing of an agent in the last paragraph, where trailers are, or that skips CI."""
    subject, body = (without_skips(text) for text in (work.subject, work.body))
    paragraphs = [" ".join(subject.split()), body.strip(), f"{RUN_TRAILER}: {work.token}"]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def branch_of(ref: str) -> str:
    """Return the branch that a ref names: ``refs/heads/x`` or ``x``. Raises Refused for what nobody can push to."""
    name = ref.strip().removeprefix("refs/heads/")
    if _PULL_REF.fullmatch(name):
        raise Refused(
            f'"{ref}" is a ref that GitHub keeps for a pull request; nobody can push to it.',
            hint="Pass the branch of the pull request as pr_ref: github.head_ref.",
        )
    if name.startswith("refs/") or _SHA.fullmatch(name):
        raise Refused(f'"{ref}" is no branch, so nothing can be pushed to it.', hint="Pass a branch as pr_ref.")
    if not _is_legal(name):
        raise Refused(f'"{ref}" cannot be the name of a branch.', hint="Pass a branch as pr_ref.")
    return name


def check_ref(ref: str, *, is_pushed: bool) -> None:
    """Raise WrongUsage for what no ref can be called and, where it ``is_pushed`` to, for what nobody can push to."""
    if is_pushed:
        try:
            branch_of(ref)
        except Refused as refused:
            raise WrongUsage(refused.message, hint=refused.hint) from None
    elif ref.strip() and not _is_legal(ref.strip()):
        raise WrongUsage(f'"{ref}" cannot be the name of a branch or of another ref.', hint="Pass a branch as pr_ref.")


def absence(remote: Remote, ref: str) -> str:
    """Say that a remote has nothing of this name to check out, and what fixes it; empty when it has, or for a commit.

    Raises Refused or Unreachable when the remote cannot be asked.
    """
    name = ref.strip()
    if not name or _SHA.fullmatch(name):
        return ""
    if not _is_legal(name):
        return f'"{name}" cannot be the name of a branch. Pass a branch as pr_ref.'
    names = (name,) if name.startswith("refs/") else (f"refs/heads/{name}", f"refs/tags/{name}")
    with scratch_repository(remote, None) as git:
        if refs_of(git, remote, *names):
            return ""
    return f'The repository has no branch "{name}", and a job that checks it out ends there. Push it first.'


def _is_legal(name: str) -> bool:
    """Tell whether git takes a name: of a branch, or of any ref when it begins with ``refs/``."""
    ref = name if name.startswith("refs/") else f"refs/heads/{name}"
    return not name.startswith("-") and Git(Path()).attempt("check-ref-format", ref).returncode == 0


def failure_of(said: str) -> InternalError:
    """Tell from git's own words how a push failed that somebody else made; without evidence it may be tried again."""
    trouble = push_trouble(said)
    if trouble == "refused":
        return internal_error("push-refused", push_refusal(said))
    detail = f"The push failed: {in_short(said)}" if said.strip() else "The push failed, and nobody said why."
    return InternalError(kind="push-conflict" if trouble == "conflict" else "push-unreachable", detail=detail)
