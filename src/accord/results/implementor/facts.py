"""The facts of an implementor result: work item, branch, pull requests, comments, and the commit of its patch."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.agents.registry import REGISTRY_PATH, registry_from, shipped_registry
from accord.core.errors import BrokenContract, Refused
from accord.git.branches import (
    DEFAULT_AUTHOR,
    BranchFacts,
    branch_clone,
    branch_facts,
    commit_of_run,
    commit_patch,
    commit_tree,
    fetch_branch,
    runs_of,
)
from accord.git.conflicts import (
    CONFLICT_TRAILER,
    commit_on_own_base,
    conflict_branch,
    conflict_named_by,
    conflicting_paths,
)
from accord.git.patches import (
    Change,
    PatchConflict,
    apply_patch,
    changes_between,
    filtered_findings,
)
from accord.git.paths import escaping_links, links_of
from accord.git.program import is_ancestor
from accord.git.replacing import BASE_TRAILER, ITEM_TRAILER, replacement, with_tree
from accord.git.secrets import secret_findings
from accord.git.sizes import size_findings
from accord.git.steering import audit_changes, unknown_dot_files
from accord.git.unfinished import marked_files
from accord.github.commits import read_commit
from accord.github.markers import REVISION, find_markers
from accord.results.bodies import has_marker
from accord.results.status import find_work_item, require_writable
from accord.results.texts import posted_message

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import ExitStack

    from accord.core.findings import Finding
    from accord.git.branches import Remote
    from accord.git.program import Git
    from accord.git.steering import PathAudit
    from accord.github.client import GitHub
    from accord.github.comments import Comment
    from accord.github.commits import CommitFacts
    from accord.github.models import Identity, Issue, Pull
    from accord.results.models import ImplementorResult
    from accord.results.run_options import RunOptions
    from accord.results.texts import TextSanitizer


OUTCOME = "outcome"
"""The marker of our comment on a work item."""

_CONVENTIONAL = re.compile(r"\A[a-z]+(?:\([^()]+\))?!?: \S")
_SUBJECT_CHARS = 72


@dataclass(frozen=True)
class Conflict:
    """The branch with which this run's commit conflicts, and the conflicting paths."""

    onto: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Branch:
    """The branch of this run, and what the patch changes on it.

    ``commit`` is the one of this run, made now (``made`` has its files) or before (``is_pushed``); ``tip`` is where the
    remote branch ends, empty without one; ``head`` is where it ends with the commit. ``paths`` are changed by the whole
    branch; ``since`` lists this run's commit and later ones; ``runs`` made the commits of the branch. ``findings`` are
    about the commit, ``audit`` the steering and protected files that it changes. With a ``conflict``, the commit is on
    its own base; ``item_runs`` made the commits of the work item's branch. ``is_replacement``: the commit takes the
    place of those of earlier results. ``marked`` are the files in which the patch leaves the markers of a conflict.
    """

    git: Git
    remote: Remote
    tip: str
    commit: str
    head: str
    is_pushed: bool
    is_empty: bool
    paths: tuple[str, ...]
    since: tuple[str, ...]
    runs: tuple[str, ...]
    findings: tuple[Finding, ...]
    audit: PathAudit
    conflict: Conflict | None = None
    item_runs: tuple[str, ...] = ()
    made: CommitFacts | None = None
    is_replacement: bool = False
    marked: tuple[str, ...] = ()


@dataclass(frozen=True)
class RevisionFacts:
    """The work item with its branch, pull requests and comments, as far as a plan needs them.

    A result that conflicts with the work item's branch has a ``branch_name`` of its own; its pull request is for that
    branch if it has an open one. ``is_superseded``: later work replaced this result. ``comments`` is None where no plan
    writes one.
    """

    identity: Identity
    token: str
    issue: Issue
    title: str
    base: str
    branch_name: str
    pulls: tuple[Pull, ...] = ()
    is_superseded: bool = False
    branch: Branch | None = None
    comments: tuple[Comment, ...] | None = None

    @property
    def closes_item(self) -> bool:
        """Whether a merge of the pull request ends the work; not a merge into the work item's branch."""
        return self.base != _work_branch(self.issue)


def gather_facts(
    github: GitHub,
    result: ImplementorResult,
    token: str,
    sanitizer: TextSanitizer,
    options: RunOptions,
    stack: ExitStack,
) -> RevisionFacts:
    """Read what the plan depends on. The repository lives as long as ``stack``. Raises BrokenContract and Refused."""
    identity = github.identity()
    repository = require_writable(github, identity)
    issue = find_work_item(github, options.work_item or 0)
    base = options.base or repository.default_branch
    facts = RevisionFacts(identity, token, issue, sanitizer.title(issue.title), base, _work_branch(issue))
    if result.outcome == "completed":
        facts = _with_branch(github, result, facts, options, stack)
    branch = facts.branch
    if facts.is_superseded or not (branch is None or branch.is_pushed or branch.audit.steering or branch.conflict):
        return facts
    return replace(facts, comments=tuple(github.comments(issue.number)))


def _with_branch(
    github: GitHub, result: ImplementorResult, facts: RevisionFacts, options: RunOptions, stack: ExitStack
) -> RevisionFacts:
    if options.remote is None:
        raise ValueError("a completed result needs a remote")
    git = stack.enter_context(branch_clone(options.remote, facts.base, facts.branch_name, options.checkout))
    patch = (result.patch or "").encode()
    found = branch_facts(git, facts.token, patch)
    facts = replace(facts, pulls=tuple(github.pulls_from(facts.branch_name)))
    ends = {facts.base: found.base, facts.branch_name: found.tip}
    item_runs = tuple(runs_of(git, f"{found.base}..{found.tip}")) if found.tip else ()
    has_later_commit = bool(found.applied and runs_of(git, f"{found.applied}..{found.tip}"))
    if has_later_commit or _is_superseded(facts, has_branch=bool(found.tip)) or _is_merged_from_beside(git, found):
        return replace(facts, is_superseded=True)
    work = _Work(facts, found, found.applied)
    if not found.applied:
        beside = _beside(github, git, work, patch, options.remote) if found.tip else None
        if beside and _is_delivered(beside):
            return replace(facts, is_superseded=True)
        committed = beside if beside and beside.commit else _commit(git, result, work, beside, options)
        if committed is None:
            return replace(facts, is_superseded=True)
        work = committed
    facts, found, changes = work.facts, work.found, work.changes
    before = work.parent or found.tip or found.base
    head = work.commit if changes else before
    after = work.made or head
    is_plain = bool(changes and not work.parent)  # a commit that was made now, on top of the branch
    onto = conflict_named_by(git, work.commit) if work.commit and not is_plain else ""
    paths = conflicting_paths(git, patch, work.commit, head, ends.get(onto, ""))
    is_whole = is_plain and not found.tip
    changed = [change.path for change in changes] if is_whole else _changed_paths(git, found, head)
    links, links_after = ({}, {}) if not changes else (links_of(git, before), links_of(git, head))
    branch = Branch(
        git,
        options.remote,
        found.tip,
        work.commit,
        head,
        is_pushed=not changes,
        is_empty=not changes and not found.tip,
        paths=tuple(changed),
        since=tuple(git.line("rev-list", f"{found.applied}^..{found.tip}").split() if found.applied else ()),
        runs=tuple(runs_of(git, f"{found.base}..{found.tip}")) if found.tip else (),
        findings=(
            *size_findings(git, before, after, changes, options.limits),
            *escaping_links(links, links_after),
            *secret_findings(git, changes, options.redact),
            *filtered_findings(git, before, changes),
        ),
        audit=audit_changes(
            changes,
            links,
            patch,
            agent_files=_agent_files(git, found.base),
            unknown=unknown_dot_files(git, before, changes),
        ),
        conflict=Conflict(onto, paths) if paths else None,
        item_runs=item_runs,
        made=_made(git, work, facts, options),
        is_replacement=bool(work.made),
        marked=tuple(marked_files(patch)),
    )
    return replace(facts, branch=branch)


@dataclass(frozen=True)
class _Work:
    """The branch of this run, its commit if there is one, and the changes of a commit that is not pushed yet.

    ``parent`` is set for a commit whose patch was made elsewhere than on the branch: there. ``made`` is what the patch
    makes of that, set for a commit that replaces those of earlier results.
    """

    facts: RevisionFacts
    found: BranchFacts
    commit: str
    changes: Sequence[Change] = ()
    parent: str = ""
    made: str = ""


def _made(git: Git, work: _Work, facts: RevisionFacts, options: RunOptions) -> CommitFacts | None:
    """Read the commit that was made now."""
    if not work.changes:
        return None
    has_author = options.author not in ("", DEFAULT_AUTHOR)
    return read_commit(git, work.commit, is_bot=not facts.identity.is_person, has_author=has_author)


def _commit(
    git: Git, result: ImplementorResult, work: _Work, beside: _Work | None, options: RunOptions
) -> _Work | None:
    """Commit the patch in the place of earlier results, or on top of the branch; if it conflicts, on its own base.

    Returns None if this run delivered its work before. Raises PatchConflict or BrokenContract for a patch that applies
    nowhere, and Refused if the branch for it has other commits.
    """
    facts, found, patch = work.facts, work.found, (result.patch or "").encode()
    author, now = options.author or DEFAULT_AUTHOR, options.clock.now()
    if replacing := _replacing(git, result, work, options):
        return replacing
    try:
        message = commit_message(result.summary, facts, options)
        return _Work(facts, found, *commit_patch(git, found, patch, author, message, now))
    except (PatchConflict, BrokenContract):
        if found.tip and any(_is_of_run(pull, facts) for pull in facts.pulls):
            return None
        onto = facts.branch_name if found.tip else facts.base
        message = commit_message(result.summary, facts, options, onto)
        tips = [found.base, *filter(None, [found.tip])]
        parent, commit, changes = commit_on_own_base(git, patch, tips, author, message, now)
        if not parent:
            raise
    place = beside or work
    if place.found.tip:
        other = f"The patch conflicts with `{onto}`, and `{place.facts.branch_name}` has other commits."
        raise Refused(other, hint="Delete or rename that branch, and apply the result again.")
    return replace(place, commit=commit, changes=changes, parent=parent)


def _replacing(git: Git, result: ImplementorResult, work: _Work, options: RunOptions) -> _Work | None:
    """Commit the patch in the place of earlier results; None where it does not replace them, or changes nothing."""
    facts, found, patch = work.facts, work.found, (result.patch or "").encode()
    start, tree = replacement(git, patch, found.base, found.tip, f"#{facts.issue.number}") if found.tip else ("", "")
    if not start or tree == git.line("rev-parse", f"{found.tip}^{{tree}}"):
        return None
    is_behind = not is_ancestor(git, start, found.tip)
    parents = [found.tip, start] if is_behind else [found.tip]
    message = with_tree(commit_message(result.summary, facts, options, base=start), tree)
    commit = commit_tree(git, tree, parents, options.author or DEFAULT_AUTHOR, message, options.clock.now())
    made = apply_patch(git, patch, start)
    return _Work(facts, found, commit, changes_between(git, start, made), start, made)


def _beside(github: GitHub, git: Git, work: _Work, patch: bytes, remote: Remote) -> _Work:
    """Return the branch that gets the commit of this run if it conflicts with the work item's branch."""
    facts, found = work.facts, work.found
    name = conflict_branch(f"{facts.branch_name}-conflict", facts.token)
    has_pull = any(pull.state == "open" for pull in facts.pulls)
    target, start = (facts.branch_name, found.tip) if has_pull else (facts.base, found.base)
    tip = fetch_branch(git, remote, name, "beside")
    applied = commit_of_run(git, facts.token, f"{start}..{tip}", patch) if tip else ""
    facts = replace(facts, branch_name=name, base=target, pulls=tuple(github.pulls_from(name)))
    return _Work(facts, BranchFacts(start, tip, applied), applied)


def _is_delivered(beside: _Work) -> bool:
    """Return whether a person merged this run's conflicting commit, or replaced or deleted it."""
    ours = (pull for pull in beside.facts.pulls if _is_of_run(pull, beside.facts))
    return any(pull.is_merged or not beside.commit for pull in ours)


def _is_merged_from_beside(git: Git, found: BranchFacts) -> bool:
    """Return whether the run's commit came into the branch by a merge, so a person resolved its conflict."""
    own_line = ("rev-list", "--first-parent", f"{found.base}..{found.tip}")
    return bool(found.applied) and found.applied not in git.line(*own_line).split()


def _work_branch(issue: Issue) -> str:
    return f"accord/{issue.number}"


def commit_message(summary: str, facts: RevisionFacts, options: RunOptions, conflict: str = "", base: str = "") -> str:
    """Return a message with a conventional subject and trailers, which come last so that no text can pass for one."""
    subject = " ".join(facts.title.split())
    if not _CONVENTIONAL.match(subject):
        subject = f"{options.commit_prefix}: {subject[:1].lower()}{subject[1:]}"
    if len(subject) > _SUBJECT_CHARS:
        subject = subject[: _SUBJECT_CHARS - 1].rstrip() + "…"
    text = posted_message(summary, options.redact, options.policy).replace("\r\n", "\n")
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text).strip()
    co_authors = [f"Co-authored-by: {name}" for name in options.co_authors]
    made_on = [f"{name}: {at}" for name, at in ((CONFLICT_TRAILER, conflict), (BASE_TRAILER, base)) if at]
    trailers = [f"{ITEM_TRAILER}: #{facts.issue.number}", *made_on, f"Accord-Run: {facts.token}", *co_authors]
    return "\n\n".join([subject, text, "\n".join(trailers)]) + "\n"


def _agent_files(git: Git, base: str) -> Sequence[str]:
    """Return the patterns of files that agents obey, by the base's registry; by the shipped one if that is invalid."""
    found = git.attempt("cat-file", "blob", f"{base}:{REGISTRY_PATH.as_posix()}")
    with suppress(BrokenContract):
        return registry_from(None if found.returncode else found.stdout).steering_patterns
    return shipped_registry().steering_patterns


def _changed_paths(git: Git, found: BranchFacts, head: str) -> list[str]:
    """Return the paths that the whole branch changes, because the pull request shows all of it."""
    start = git.attempt("merge-base", found.base, head).stdout.decode().strip() or found.base
    return [change.path for change in changes_between(git, start, head)]


def our_pull(facts: RevisionFacts, pulls: Sequence[Pull], commits: Collection[str] = ()) -> tuple[Pull | None, bool]:
    """Return the pull request with which this run continues, and whether this run wrote it already.

    An open one comes first. A closed one counts when it was merged, or when it was closed at one of ``commits``, which
    are the run's own and later ones: it must not be opened again.
    """
    written = [pull for pull in pulls if _is_of_run(pull, facts)]
    still_open = [pull for pull in pulls if pull.state == "open"]
    if still_open:
        return next(((pull, True) for pull in still_open if pull in written), (still_open[0], False))
    return next(((pull, True) for pull in written if pull.is_merged or pull.head_sha in commits), (None, False))


def _is_superseded(facts: RevisionFacts, *, has_branch: bool) -> bool:
    """Return whether a later run wrote the open pull request, or this run's was merged and is gone or replaced."""
    still_open = [pull for pull in facts.pulls if pull.state == "open"]
    is_merged = any(pull.is_merged and _is_of_run(pull, facts) for pull in facts.pulls)
    ours = (pull for pull in still_open if facts.identity.counts(pull.author))
    is_rewritten = any(facts.token in runs_before(pull.body, REVISION) for pull in ours)
    return is_rewritten or (is_merged and (not has_branch or bool(still_open)))


def _is_of_run(pull: Pull, facts: RevisionFacts) -> bool:
    return facts.identity.counts(pull.author) and has_marker(pull.body, REVISION, facts.token)


def our_comment(facts: RevisionFacts, comments: Sequence[Comment]) -> Comment | None:
    """Return the one comment in which we report this work item's outcome."""
    number = str(facts.issue.number)
    ours = (comment for comment in comments if facts.identity.counts(comment.author))
    items = ((comment, [fields.get("item") for fields in find_markers(comment.body, OUTCOME)]) for comment in ours)
    return next((comment for comment, named in items if number in named), None)


def runs_before(body: str, name: str) -> list[str]:
    """Return the runs after which a text of ours was written, by its marker."""
    return [run for fields in find_markers(body, name) for run in fields.get("after", "").split(".") if run]
