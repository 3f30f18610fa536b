"""Publishing a run's changes: one commit on its branch, pushed exactly once, never by force.

Source: runner output contract, "Changes Made Logic". Changes count as published only when the remote has them: a push
with a lost answer is looked up, and a run that was published before is recognized by a trailer of its commit.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from accord.agents.registry import REGISTRY_PATH, shipped_registry
from accord.agents.registry_rules import steering_patterns_in
from accord.core.clock import attempts
from accord.core.errors import BrokenContract, Refused, Stopped
from accord.engine.operations import OperationLog, failed_unless
from accord.git.branches import (
    DEFAULT_AUTHOR,
    MERGED_TRAILER,
    RUN_TRAILER,
    BranchFacts,
    Remote,
    commit_of_run,
    commit_patch,
    fetch_branch,
    fetch_ref,
    own_changes,
    runs_of,
    scratch_repository,
)
from accord.git.conflicts import commit_on_own_base, conflict_branch
from accord.git.patch_text import header_names
from accord.git.patches import PatchConflict, changes_between, filtered_findings, paths_with_new_markers
from accord.git.paths import escaping_links, links_of, some_of
from accord.git.program import Git, file_at, is_ancestor
from accord.git.secrets import paths_with_tokens
from accord.git.sizes import DEFAULT_LIMITS, size_findings
from accord.git.steering import audit_changes, audit_paths, unknown_dot_files
from accord.git.unfinished import marker_findings
from accord.github.commits import deliver_commit, plan_upload, read_commit
from accord.runner.models import InternalError
from accord.runner.refs import branch_of
from accord.runner.stats import FileStat, patch_stats, range_stats
from accord.text.redaction import Redactor
from accord.text.words import without_skips

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.git.patches import Change
    from accord.git.sizes import ChangeLimits
    from accord.github.client import GitHub
    from accord.github.commits import DeliveredCommit
    from accord.runner.models import InternalErrorKind

_DEFAULT = "default"
"""The name of the fetched default branch, whose registry counts."""

_PAUSES_SECONDS = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Waits before the push is tried again on a branch that has moved."""

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_MOST_MERGES = 20


@dataclass(frozen=True)
class Publication:
    """Changes to publish. ``token`` is one word that names the run; the patch was made against ``base_sha``.

    ``subject`` and ``body`` of the commit are safe texts; ``lender`` is a trusted checkout with objects to reuse.
    Without ``allows_steering``, changes to steering files and other protected files are not pushed, and changes beyond
    the ``limits`` never. ``merged`` are commits that the agent merged, as it says.
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
    allows_steering: bool = False
    limits: ChangeLimits = DEFAULT_LIMITS
    merged: tuple[str, ...] = ()
    log: OperationLog = field(default_factory=OperationLog)


class MergeUnfinished(Refused):
    """A file of the change has the markers of a conflict."""


class SteeringRefused(Refused):
    """The changes touch steering files, and the caller did not allow that."""


class ChangeTooLarge(Refused):
    """The changes exceed the limits on files and bytes."""


@dataclass(frozen=True)
class ConflictBranch:
    """The branch that has a run's changes, which conflict in ``paths`` with the branch ``onto``."""

    name: str
    onto: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Published:
    """The result of publishing. Without a commit and a failure nothing was pushed (dry run), or nothing was new.

    ``conflict`` is set if the changes conflict with their branch and are on one of their own.

    ``files_changed`` counts the paths of the commit, a renamed file once; ``with_tokens`` are those with a text that
    looks like a token, ``steering`` those that steer agents or CI, ``dependencies`` manifests and lock files,
    ``records`` files of sessions and missions. ``delivery`` is the way of a commit that was brought there now; a commit
    without one ``was_there`` already, pushed by the agent or by others. ``flattened`` are commits that the agent merged
    and the branch does not have.
    """

    commit_sha: str = ""
    files_changed: int = 0
    failure: InternalError | None = None
    conflict: ConflictBranch | None = None
    with_tokens: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    delivery: DeliveredCommit | None = field(default=None, compare=False)
    was_there: bool = False
    flattened: tuple[str, ...] = ()


def is_delivered(published: Published | None, *, has_changes: bool) -> bool:
    """Return whether no change waits to be pushed; ``published`` is None if publishing was not attempted."""
    return published.failure is None if published else not has_changes


def publish_patch(remote: Remote, work: Publication, github: GitHub | None = None) -> Published:
    """Bring a run's patch to its branch as one commit on top of the branch as it is now. Failures are returned.

    Without a ``github`` the commit is pushed, and so not signed.
    """
    kind: InternalErrorKind
    try:
        branch = branch_of(work.pr_ref)
        patch_stats(work.patch)
        with scratch_repository(remote, work.lender) as git:
            fetch_ref(git, remote, "HEAD", _DEFAULT)
            return _commit_and_push(git, remote, branch, work, github)
    except subprocess.TimeoutExpired as error:
        return Published(failure=InternalError(kind="push-unreachable", detail=str(error)))
    except (Stopped, BrokenContract, Refused) as error:
        if isinstance(error, PatchConflict):
            kind = "push-conflict"
        elif isinstance(error, SteeringRefused):
            kind = "steering-files"
        elif isinstance(error, ChangeTooLarge):
            kind = "changes-too-large"
        elif isinstance(error, MergeUnfinished):
            kind = "merge-unfinished"
        elif isinstance(error, Stopped):
            kind = "push-unreachable"
        elif isinstance(error, BrokenContract):
            kind = "changes-unreadable"
        else:
            kind = "disk-full" if _DISK_FULL.search(str(error)) else "push-refused"
        return Published(failure=InternalError.of(kind, error))


def _commit_and_push(git: Git, remote: Remote, branch: str, work: Publication, github: GitHub | None) -> Published:
    """Commit and push; if the branch has moved in the meantime, try again on its new tip."""
    for _ in attempts(remote.clock, _PAUSES_SECONDS):
        facts = _branch_facts(git, remote, branch, work)
        if facts.applied:
            before = f"{facts.applied}^"
            changes = own_changes(git, before, facts.applied)
            return _result_of(git, before, facts.applied, changes, links_of(git, before), work)
        merged = _merged_base(git, remote, facts, work)
        try:
            commit, changes = _commit(git, remote, facts, work, merged)
        except PatchConflict as conflict:
            return _publish_beside(git, remote, branch, facts, work, conflict, github)
        if not changes:
            return _pushed_before(git, facts, work)
        published = _checked_result(git, facts.tip or facts.base, commit, work)
        left = () if merged else work.merged
        flattened = tuple(each for each in left if not is_ancestor(git, each, facts.tip or facts.base))
        published = replace(published, flattened=flattened)
        delivery = _push(git, remote, commit, branch, facts.tip, work, github)
        if work.log.is_dry_run:
            return replace(published, commit_sha="")
        if delivery:
            return replace(published, commit_sha=delivery.commit, delivery=delivery)
    message = f"The branch `{branch}` moved {len(_PAUSES_SECONDS) + 1} times during the push."
    raise PatchConflict(message, hint="Run it again when no one else pushes to the branch.")


def _merged_base(git: Git, remote: Remote, facts: BranchFacts, work: Publication) -> str:
    """Return the commit of the base that the agent merged, if the branch is still where the agent began; else empty."""
    start = facts.tip or facts.base
    if not work.merged or start != work.base_sha:
        return ""
    base = _fetched_base(git, remote, work)
    for commit in reversed(work.merged[-_MOST_MERGES:]):
        is_known = _available_commit(git, remote, commit) and is_ancestor(git, commit, base)
        if is_known and not is_ancestor(git, commit, start):
            return commit
    return ""


def _fetched_base(git: Git, remote: Remote, work: Publication) -> str:
    """Fetch the branch that the work is for, by default the remote's own; return its commit."""
    name = work.base_ref.strip().removeprefix("refs/heads/").removeprefix("origin/")
    base = fetch_branch(git, remote, name, "base") if name and not name.startswith("refs/") else ""
    return base or fetch_ref(git, remote, "HEAD", "base")


def _pushed_before(git: Git, facts: BranchFacts, work: Publication) -> Published:
    """Return the commit after which the branch had all of the run's changes; nothing was new without one."""
    if facts.tip in ("", work.base_sha) or not work.base_sha or not is_ancestor(git, work.base_sha, facts.tip):
        return Published()
    paths = {change.path for change in patch_stats(work.patch)}
    for commit in git.line("rev-list", "--reverse", "--first-parent", f"{work.base_sha}..{facts.tip}").split():
        if not paths & {change.path for change in changes_between(git, commit, facts.tip)}:
            if runs_of(git, f"{commit}^!"):
                return Published()  # another run's commit
            changes = own_changes(git, work.base_sha, commit)
            found = _result_of(git, work.base_sha, commit, changes, links_of(git, work.base_sha), work)
            return replace(found, was_there=True)
    return Published()


def _push(
    git: Git, remote: Remote, commit: str, branch: str, expected: str, work: Publication, github: GitHub | None
) -> DeliveredCommit | None:
    """Bring a commit to a branch that must still end at ``expected``; return None if it moved, or in a dry run."""
    is_bot = github is not None and not github.identity().is_person
    upload = plan_upload(read_commit(git, commit, is_bot=is_bot, has_author=work.author != DEFAULT_AUTHOR))
    return work.log.write(
        "push-branch",
        branch,
        lambda: deliver_commit(github, git, remote, upload, branch, expected),
        status_of=lambda made: failed_unless(made is not None),
    )


def _publish_beside(
    git: Git,
    remote: Remote,
    branch: str,
    facts: BranchFacts,
    work: Publication,
    conflict: PatchConflict,
    github: GitHub | None,
) -> Published:
    """Bring a conflicting patch to a branch of its own, on the commit that it was made on; return the failure with it.

    Raises the conflict if git finds no such commit, or the branch has other commits.
    """
    name = conflict_branch("accord/conflict", work.token)
    tip = fetch_branch(git, remote, name, "beside") if facts.tip else ""
    if tip:
        commit = commit_of_run(git, work.token, f"{facts.tip}..{tip}", work.patch)
    else:
        tips, now = list(filter(None, [facts.base, facts.tip])), remote.clock.now()
        _, commit, _ = commit_on_own_base(git, work.patch, tips, work.author, _message(work), now)
    if not (facts.tip and commit):
        raise conflict
    published = _checked_result(git, f"{commit}^", commit, work)
    try:
        is_there = bool(tip) or bool(_push(git, remote, commit, name, "", work, github)) or work.log.is_dry_run
    except Refused as refused:
        hint = f"{conflict.hint} Git refused the branch `{name}` for it, too: {refused.message}"
        raise PatchConflict(conflict.message, hint=hint) from refused
    if not is_there:
        raise conflict
    paths = conflict.paths or tuple(change.path for change in changes_between(git, f"{commit}^", commit))
    kept = PatchConflict(conflict.message, hint=f"The changes are on the branch {name}. Merge {branch} into it.")
    return replace(
        published,
        commit_sha="",
        files_changed=0,
        failure=InternalError.of("push-conflict", kept),
        conflict=ConflictBranch(name, branch, paths),
    )


def _checked_result(git: Git, before: str, commit: str, work: Publication) -> Published:
    """Return the result of a push before it is done. Raises Refused for what must not be pushed."""
    links, changes = links_of(git, before), own_changes(git, before, commit)
    if found := escaping_links(links, links_of(git, commit)):
        raise Refused(found[0].message, hint="Review the agent's changes.")
    for finding in size_findings(git, before, commit, changes, work.limits):
        raise ChangeTooLarge(finding.message, hint=finding.hint)
    for finding in filtered_findings(git, before, changes):
        raise Refused(finding.message, hint=finding.hint)
    for finding in marker_findings([*paths_with_new_markers(git, changes)]):
        raise MergeUnfinished(finding.message, hint=finding.hint)
    published = _result_of(git, before, commit, changes, links, work)
    if published.steering and not work.allows_steering:
        raise SteeringRefused(
            f"needs-human: {some_of(published.steering)}.",
            hint="Review changes.patch of the run. To push it, publish the run with `--allow-steering-files`.",
        )
    return published


def _result_of(
    git: Git, before: str, commit: str, changes: Sequence[Change], links: Mapping[str, str], work: Publication
) -> Published:
    obeyed = steering_patterns_in(file_at(git, f"refs/heads/{_DEFAULT}", REGISTRY_PATH.as_posix()))
    unknown = unknown_dot_files(git, before, changes)
    audit = audit_changes(changes, links, work.patch, agent_files=obeyed, unknown=unknown)
    return Published(
        commit,
        len(range_stats(git, before, commit)) if not _is_merge(git, commit) else len(changes),
        with_tokens=tuple(paths_with_tokens(git, changes)),
        steering=(*audit.steering, *audit.protected),
        dependencies=audit.dependencies,
        records=audit.records,
    )


def _is_merge(git: Git, commit: str) -> bool:
    return len(git.line("rev-list", "--parents", "--max-count=1", commit).split()) > 2


def _branch_facts(git: Git, remote: Remote, branch: str, work: Publication) -> BranchFacts:
    """Fetch the branch, or find where a new one begins.

    A new branch begins at the commit that the agent saw, unless that is on no branch (the merge commit that Actions
    makes for a pull request): then at the tip of its base.
    """
    tip = fetch_branch(git, remote, branch, "work")
    known = _available_commit(git, remote, work.base_sha)
    if tip:
        commits = f"{known}..{tip}" if known else tip
        return BranchFacts(known or tip, tip, commit_of_run(git, work.token, commits, work.patch))
    base = _fetched_base(git, remote, work)
    is_on_base = known and is_ancestor(git, known, base)
    return BranchFacts(known if is_on_base else base, "", "")


def _available_commit(git: Git, remote: Remote, sha: str) -> str:
    """Return the commit if it can be fetched: a 3-way merge needs the commit that the patch was made against."""
    if not _SHA.fullmatch(sha):
        return ""
    if git.attempt("cat-file", "-e", f"{sha}^{{commit}}").returncode == 0:
        return sha
    fetched = git.attempt("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote.url, sha)
    return sha if fetched.returncode == 0 else ""


def _commit(git: Git, remote: Remote, facts: BranchFacts, work: Publication, merged: str) -> tuple[str, list[Change]]:
    """Commit the patch. A patch that does not apply to a branch that moved is a conflict, not a broken patch."""
    try:
        return commit_patch(git, facts, work.patch, work.author, _message(work, merged), remote.clock.now(), merged)
    except BrokenContract as broken:
        if work.base_sha in (facts.tip, facts.base if not facts.tip else ""):
            raise
        raise PatchConflict(broken.message, hint="Run the agent again on the current branch.") from None


def _message(work: Publication, merged: str = "") -> str:
    """Return the message of the commit. Its trailers are accord's alone, and no text in it skips checks."""
    subject, body = (without_skips(text) for text in (work.subject, work.body))
    trailers = [f"{RUN_TRAILER}: {work.token}", *([f"{MERGED_TRAILER}: {merged}"] if merged else [])]
    paragraphs = [" ".join(subject.split()), body.strip(), "\n".join(trailers)]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def audit_patch(patch: bytes, stats: Sequence[FileStat]) -> Published:
    """Sort the paths of a patch that is not pushed yet, as far as the patch alone tells."""
    moved = [name for key, name in header_names(patch) if key in (b"rename from", b"copy from")]
    audit = audit_paths([*(change.path for change in stats), *moved], agent_files=shipped_registry().steering_patterns)
    parts = [part for part in re.split(rb"^diff --git ", patch, flags=re.MULTILINE) if part.strip()]
    added = (b"\n".join(re.findall(rb"^\+(?!\+\+ )(.*)", part, re.MULTILINE)) for part in parts)
    shapes = Redactor()
    with_tokens = [
        change.path
        for change, text in zip(stats, added, strict=False)
        if len(parts) == len(stats) and shapes.find(text.decode("utf-8", "replace"))
    ]
    return Published(
        with_tokens=tuple(with_tokens),
        steering=(*audit.steering, *audit.protected),
        dependencies=audit.dependencies,
        records=audit.records,
    )
