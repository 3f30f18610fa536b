"""Publishing a run's changes: one commit on its branch, pushed exactly once, never by force.

Source: runner output contract, "Changes Made Logic". Changes count as published only when the remote has them: a push
with a lost answer is looked up, and a run that was published before is recognized by a trailer of its commit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count, takewhile

from accord.agents import REGISTRY_PATH
from accord.agents.registry import shipped_registry
from accord.agents.registry_rules import own_paths_in
from accord.core.clock import attempts
from accord.core.errors import AccordError, BrokenContract, Refused, Stopped
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.engine.operations import failed_unless
from accord.git.branches import (
    DEFAULT_AUTHOR,
    MERGED_TRAILER,
    RUN_TRAILER,
    BranchFacts,
    Remote,
    commit_of_run,
    commit_patch,
    fetch_branch,
    fetch_refs,
    find_tip,
    own_changes,
    remote_heads,
    runs_of,
    scratch_repository,
    tip_of,
)
from accord.git.configuration import prefix_at
from accord.git.conflicts import commit_on_own_base, conflict_branch, newest_of, own_paths, patch_since
from accord.git.leaving_out import size_findings
from accord.git.patch_text import header_names, marker_findings
from accord.git.patches import Change, PatchConflict, changes_between, filtered_findings, paths_with_new_markers
from accord.git.paths import escaping_links, some_of
from accord.git.program import Git, file_at, is_ancestor
from accord.git.secrets import paths_with_tokens, refuse_secrets
from accord.git.steering import PathAudit, audit_changes, audit_paths
from accord.github.client import GitHub
from accord.github.commits import DeliveredCommit, deliver_commit, plan_upload, read_commit
from accord.github.pulls import are_over, heads_on
from accord.runner.causes import InternalErrorKind
from accord.runner.models import InternalError
from accord.runner.outputs import ConflictBranch, FinishOptions, Published
from accord.runner.refs import SHA, branch_of
from accord.runner.stats import FileStat, patch_stats, range_stats
from accord.text.redaction import Redactor
from accord.text.words import without_skips

_DEFAULT = "default"  # the name of the fetched default branch, whose registry counts

_PAUSES_SECONDS = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Waits before the push is tried again on a branch that has moved."""

_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)


class Publication(Frozen):
    """Changes to publish; the patch was made against ``base_sha``."""

    patch: bytes
    pr_ref: str
    base_sha: str
    token: str  # one word that names the run
    subject: str  # a safe text, and so is the body
    options: FinishOptions
    body: str = ""
    base_ref: str = ""
    merged: tuple[str, ...] = ()  # commits of elsewhere that the agent's work has, newest first, as it says
    pushed: str = ""  # the agent's own commit that it pushed to the branch, as it says


class NotPublished(Refused):
    """Changes that must not be pushed as they are; ``kind`` says why."""

    def __init__(self, kind: InternalErrorKind, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


def publish_patch(remote: Remote, work: Publication, github: GitHub | None = None) -> Published:
    """Bring a run's patch to its branch as one commit on top of the branch as it is now. Failures are returned.

    Without a ``github`` the commit is pushed, and so not signed.
    """
    try:
        branch = branch_of(work.pr_ref)
        patch_stats(work.patch)
        with scratch_repository(remote, work.options.lender) as git:
            return _Publisher(git, remote, branch, work, github).publish()
    except subprocess.TimeoutExpired as error:
        return Published(failure=InternalError(kind="push-unreachable", detail=str(error)))
    except (Stopped, BrokenContract, Refused) as error:
        return Published(failure=push_error(error))


def push_error(error: AccordError) -> InternalError:
    """Return the error of a run whose changes could not be pushed for this reason."""
    kind: InternalErrorKind = "disk-full" if _DISK_FULL.search(str(error)) else "push-refused"
    if isinstance(error, NotPublished):
        kind = error.kind
    elif isinstance(error, PatchConflict):
        kind = "push-conflict"
    elif isinstance(error, Stopped):
        kind = "push-unreachable"
    elif isinstance(error, BrokenContract):
        kind = "changes-unreadable"
    return InternalError.of(kind, error)


class _Publisher(Frozen):
    """Publishes one run's changes, in a scratch repository."""

    git: Git
    remote: Remote
    branch: str
    work: Publication
    github: GitHub | None
    first: str = ""  # the branch that was asked for, if its pull requests are over
    number: int = 1
    patch: bytes = b""  # without what the branch has already of the agent's work

    def publish(self) -> Published:
        """Commit and push; if the branch has moved in the meantime, try again on its new tip."""
        git, work = self.git, self.work
        for _ in attempts(self.remote.clock, _PAUSES_SECONDS):
            facts = self._branch_facts()
            is_later = work.patch.strip() and facts.base in {*work.merged, work.pushed}
            patch = patch_since(git, work.patch, work.base_sha, facts.base) if is_later else work.patch
            if published := replace(self, patch=patch)._publish_on(facts):
                return published
        message = f"The branch `{self.branch}` moved {len(_PAUSES_SECONDS) + 1} times during the push."
        raise PatchConflict(message, hint="Run it again when no one else pushes to the branch.")

    def _publish_on(self, facts: BranchFacts) -> Published | None:
        """Commit the patch to the branch, and push it; None if the branch moved in the meantime."""
        git, work, tip = self.git, self.work, facts.tip or facts.base
        if published := self._commit_on(facts.tip):
            return published
        if not self.patch.strip():
            return self._pushed_before(facts)
        if self._is_over(facts.tip):
            first, number = self.first or self.branch, self.number + 1
            beside = replace(self, branch=f"{first}-{number}", first=first, number=number)
            published = beside.publish()
            return replace(published, moved_to=published.moved_to or beside.branch)
        is_made_on_tip = facts.tip in ("", facts.base) and is_ancestor(git, work.base_sha, facts.base)
        merged = ""  # the newest commit of the base that the agent's work has
        if work.merged and is_made_on_tip:
            merged = newest_of(git, work.merged, f"{facts.base}..{self._fetched_base()}")
        message, now = _message(work, merged), self.remote.clock.now()
        try:
            commit, changes = commit_patch(git, facts, self.patch, work.options.author, message, now, merged)
        except PatchConflict as conflict:
            return self._publish_beside(facts, conflict)
        except BrokenContract as broken:
            if is_made_on_tip:
                raise
            unfit = PatchConflict(broken.message, hint="Run the agent again on the current branch.")
            return self._publish_beside(facts, unfit)
        if not (changes if facts.tip else own_changes(git, tip, commit)):
            return self._pushed_before(facts)
        flattened = tuple(each for each in work.merged[:1] if not (merged or is_ancestor(git, each, tip)))
        published = replace(self._checked_result(tip, commit), flattened=flattened)
        delivery = self._push(commit, self.branch, facts.tip)
        if work.options.log.is_dry_run:
            return replace(published, commit_sha="")
        return replace(published, commit_sha=delivery.commit, delivery=delivery) if delivery else None

    def _is_over(self, tip: str) -> bool:
        """Return whether the pull requests of the branch have ended, so that a push would reach no reader."""
        try:
            pulls = self.github.pulls_from(self.branch) if self.github else []
        except Refused:  # a token that may not read them
            return False
        return are_over(pulls, heads_on(self.git, tip, pulls))

    def _branch_facts(self) -> BranchFacts:
        """Fetch the branch, or find where a new one begins.

        A new branch begins at the commit that the agent saw, unless that is on no branch (the merge commit that Actions
        makes for a pull request, or a commit of a fork): then at the tip of its base.
        """
        heads = remote_heads(self.git, self.remote)
        has_tip = bool(find_tip(heads, self.branch))
        names = (f"{self.first or self.branch}-{number}" for number in count(self.number + 1))
        numbered = {name: f"later/{name}" for name in takewhile(heads.__contains__, names)}
        fetch_refs(self.git, self.remote, {"HEAD": _DEFAULT, **numbered, **({self.branch: "work"} if has_tip else {})})
        tip = tip_of(self.git, "work") if has_tip else ""
        known = self._known_base()
        if tip:
            upstream = {*self.work.merged, self.work.pushed}
            later = known and newest_of(self.git, upstream, "--ancestry-path", f"{known}..{tip}")
            return BranchFacts(later or known or tip, tip, "")
        base = self._fetched_base()
        is_there = bool(known) and is_ancestor(self.git, known, base)
        if known and not is_there and not self.first:  # a branch in place of one that is over follows the base
            fetch_refs(self.git, self.remote, {"*": "heads/*"})
            is_there = bool(self.git.line("for-each-ref", "--count=1", "--contains", known, "refs/heads/heads"))
        return BranchFacts(known if is_there else base, "", "")

    def _commit_on(self, tip: str) -> Published | None:
        """Return this run's commit on the branch, or on one that was made in its place, even if it is in use again."""
        format_, base = "--format=%(refname:lstrip=3) %(objectname)", self._known_base()
        later = (line.split(" ") for line in self.git.line("for-each-ref", format_, "refs/heads/later").splitlines())
        for name, end in (("", tip), *later):
            commits = f"{base}..{end}" if base else end
            if applied := end and commit_of_run(self.git, self.work.token, commits, self.patch):
                return replace(self._result_of(f"{applied}^", applied), moved_to=name)
        return None

    def _fetched_base(self) -> str:
        """Fetch the branch that the work is for, by default the remote's own; return its commit."""
        name = self.work.base_ref.strip().removeprefix("refs/heads/").removeprefix("origin/")
        base = fetch_branch(self.git, self.remote, name, "base") if name and not name.startswith("refs/") else ""
        return base or tip_of(self.git, _DEFAULT)

    def _known_base(self) -> str:
        """Return the commit that the patch was made against, which a 3-way merge needs; empty if git cannot get it."""
        sha = self.work.base_sha
        look = ("cat-file", "-e", f"{sha}^{{commit}}")
        fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self.remote.url, sha)
        is_there = SHA.fullmatch(sha) and any(self.git.attempt(*words).returncode == 0 for words in (look, fetch))
        return sha if is_there else ""

    def _pushed_before(self, facts: BranchFacts) -> Published:
        """Return the commit after which the branch had all of the run's changes; nothing was new without one."""
        git, base = self.git, facts.base
        if pushed := self._pushed_by_agent(facts.tip):
            return self._result_of(self.work.base_sha, pushed)
        paths = {change.path for change in patch_stats(self.patch)}
        if not (paths and is_ancestor(git, base, facts.tip)):
            return Published()
        for commit in git.line("rev-list", "--reverse", "--first-parent", f"{base}..{facts.tip}").split():
            if not paths & {change.path for change in changes_between(git, commit, facts.tip)}:
                found = replace(self._result_of(base, commit), was_there=True)
                return Published() if runs_of(git, f"{commit}^!") else found
        return Published()

    def _pushed_by_agent(self, tip: str) -> str:
        return newest_of(self.git, {self.work.pushed}, f"{self.work.base_sha}..{tip}")

    def _push(self, commit: str, branch: str, expected: str) -> DeliveredCommit | None:
        """Bring a commit to a branch that must still end at ``expected``; None if it moved, or in a dry run."""
        github, has_author = self.github, self.work.options.author != DEFAULT_AUTHOR
        is_bot = github is not None and not github.identity().is_person
        upload = plan_upload(read_commit(self.git, commit, is_bot=is_bot, has_author=has_author))
        return self.work.options.log.write(
            "push-branch",
            branch,
            lambda: deliver_commit(github, self.git, self.remote, upload, branch, expected),
            status_of=lambda made: failed_unless(made is not None),
        )

    def _publish_beside(self, facts: BranchFacts, conflict: PatchConflict) -> Published:
        """Bring a conflicting patch to a branch of its own, on the commit that it was made on; return the failure too.

        Raises the conflict if git finds no such commit, or the branch has other commits or is not there.
        """
        git, work = self.git, self.work
        if not facts.tip:  # the agent's commit may be that of a fork
            restore = f"No branch `{self.branch}` exists. If it was deleted, restore it and publish the run again."
            raise PatchConflict(conflict.message, hint=conflict.hint if self.first else restore)
        name = conflict_branch(f"{prefix_at(git, f'refs/heads/{_DEFAULT}')}/conflict", work.token)
        try:
            tip = fetch_branch(git, self.remote, name, "beside")
        except Refused as refused:
            raise PatchConflict(conflict.message, hint=f"{conflict.hint} {refused.message}") from refused
        if tip:
            commit = commit_of_run(git, work.token, f"{facts.tip}..{tip}", self.patch)
        else:
            tips, now = [facts.base, facts.tip], self.remote.clock.now()
            commit = commit_on_own_base(git, self.patch, tips, work.options.author, _message(work), now)
        if not commit:
            raise conflict
        published = self._checked_result(f"{commit}^", commit)
        try:
            is_there = bool(tip) or bool(self._push(commit, name, "")) or work.options.log.is_dry_run
        except Refused as refused:
            hint = f"{conflict.hint} Git refused the branch `{name}` for it, too: {refused.message}"
            raise PatchConflict(conflict.message, hint=hint) from refused
        if not is_there:
            raise conflict
        paths = conflict.paths or tuple(change.path for change in changes_between(git, f"{commit}^", commit))
        hint = f"The changes are on the branch {name}. Merge {self.branch} into it."
        failure = InternalError.of("push-conflict", PatchConflict(conflict.message, hint=hint))
        beside = ConflictBranch(name, self.branch, paths)
        return replace(published, commit_sha="", files_changed=0, failure=failure, conflict=beside)

    def _checked_result(self, before: str, commit: str) -> Published:
        """Return the result of a push before it is done. Raises NotPublished for what must not be pushed."""
        git = self.git
        changes = own_changes(git, before, commit)
        links = escaping_links(git, before, commit)
        checks: tuple[tuple[InternalErrorKind, Iterable[Finding]], ...] = (
            ("push-refused", (replace(link, hint="Review the agent's changes.") for link in links)),
            ("changes-too-large", size_findings(git, before, commit, changes, self.work.options.limits)),
            ("push-refused", filtered_findings(git, before, changes, changes).values()),
            ("merge-unfinished", marker_findings(paths_with_new_markers(git, changes))),
        )
        for kind, findings in checks:
            for finding in findings:
                raise NotPublished(kind, finding.message, hint=finding.hint)
        refuse_secrets(git, changes, self.work.options.redact.values)
        published = self._result_of(before, commit, changes)
        if published.steering and not self.work.options.allows_steering:
            hint = "Review changes.patch of the run. To push it, publish the run with `--allow-steering-files`."
            paths = some_of(published.steering)
            message = f"{paths}. Nothing was pushed, because the run changed files that steer agents or CI."
            raise NotPublished("steering-files", message, hint=hint)
        return published

    def _result_of(self, before: str, commit: str, known: list[Change] | None = None) -> Published:
        git, work = self.git, self.work
        changes = own_changes(git, before, commit) if known is None else known
        own = own_paths_in(file_at(git, f"refs/heads/{_DEFAULT}", REGISTRY_PATH.as_posix()))
        count = len(range_stats(git, before, commit))
        if pushed := self._pushed_by_agent(commit):
            new = {change.path for change in changes if commit != pushed}
            paths = new | own_paths(git, f"{work.base_sha}..{pushed}", work.merged)
            changes = [change for change in changes if change.path in paths]
            count = sum(each.path in paths for each in range_stats(git, work.base_sha, commit))
        audit = audit_changes(git, before, changes, self.patch, own=own)
        return _published_of(audit, paths_with_tokens(git, changes), commit, count)


def _published_of(audit: PathAudit, with_tokens: Iterable[str], commit: str = "", count: int = 0) -> Published:
    return Published(
        commit,
        count,
        with_tokens=tuple(with_tokens),
        steering=(*audit.steering, *audit.protected),
        dependencies=audit.dependencies,
        records=audit.records,
    )


def _message(work: Publication, merged: str = "") -> str:
    """Return the message of the commit. Its trailers are accord's alone, and no text in it skips checks."""
    subject, body = (without_skips(text) for text in (work.subject, work.body))
    trailers = [f"{RUN_TRAILER}: {work.token}", *([f"{MERGED_TRAILER}: {merged}"] if merged else [])]
    paragraphs = [" ".join(subject.split()), body.strip(), "\n".join(trailers)]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def audit_patch(patch: bytes, stats: Sequence[FileStat], steering: Sequence[str]) -> Published:
    """Sort the paths of a patch that is not pushed yet: ``steering`` is known, the others as far as the patch tells."""
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
    known = _published_of(audit, with_tokens)
    return replace(known, steering=tuple(dict.fromkeys([*known.steering, *steering])))
