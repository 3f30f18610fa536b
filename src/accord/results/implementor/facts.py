"""The facts of an implementor result: work item, branch, pull requests, comments, and the commit of its patch."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from accord.agents import REGISTRY_PATH
from accord.agents.registry_rules import own_paths_in
from accord.core.clock import parse_timestamp
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.engine.trust import NEEDS_HUMAN, go_ahead_in
from accord.git.branches import DEFAULT_AUTHOR, BranchFacts, Remote, runs_of, scratch_repository
from accord.git.configuration import config_reader, unread_configs, work_branch
from accord.git.conflicts import CONFLICT_TRAILER, conflicting_paths
from accord.git.leaving_out import size_findings
from accord.git.patch_text import marked_files
from accord.git.patches import changes_between, filtered_findings
from accord.git.paths import escaping_links
from accord.git.program import Git, file_at, is_ancestor
from accord.git.replacing import BASE_TRAILER, ITEM_TRAILER, trailer
from accord.git.secrets import secret_findings
from accord.git.steering import PathAudit, audit_changes, audit_paths
from accord.github.client import GitHub
from accord.github.comments import Comment
from accord.github.commits import CommitFacts, read_commit
from accord.github.models import Identity, Issue, Pull
from accord.results.bodies import has_marker
from accord.results.implementor.commit import (
    BranchState,
    CommitChoice,
    MadeCommit,
    choose_commit,
    is_of_run,
    make_commit,
    read_branch,
    runs_before,
)
from accord.results.labels import KEEPALIVE, has_listener
from accord.results.status import find_work_item, labels_removed, require_writable, status_if_clear
from accord.results.texts import TextSanitizer, posted_message
from accord.text.markers import find_markers

if TYPE_CHECKING:
    from accord.results.models import ImplementorResult
    from accord.results.run_options import RevisionOptions


OUTCOME = "outcome"
"""The marker of our comment on a work item."""

_CONVENTIONAL = re.compile(r"\A[a-z]+(?:\([^()]+\))?!?: \S")
_SUBJECT_CHARS = 72


class MergeConflict(Frozen):
    """The branch with which this run's commit conflicts, and the conflicting paths."""

    onto: str
    paths: tuple[str, ...]


class Branch(Frozen):
    """The branch of this run, and what the patch changes on it."""

    git: Git
    remote: Remote
    tip: str  # where the remote branch ends, empty without one
    commit: str  # of this run
    head: str  # where the branch ends with the commit
    is_pushed: bool
    is_empty: bool  # whether the base has all of it
    paths: tuple[str, ...]  # that the whole branch changes
    since: tuple[str, ...]  # this run's commit and later ones
    runs: tuple[str, ...]  # that made the commits of the branch
    findings: tuple[Finding, ...]
    audit: PathAudit
    conflict: MergeConflict | None = None  # the commit is on its own base then
    item_runs: tuple[str, ...] = ()  # that made the commits of the work item's branch
    made: CommitFacts | None = None  # the files of a commit that is not pushed
    is_replacement: bool = False  # whether it takes the place of the commits of earlier results
    marked: tuple[str, ...] = ()  # files in which the patch leaves the markers of a conflict
    has_keepalive: bool = True  # whether a workflow of the base runs the loop
    protected: tuple[str, ...] = ()  # paths of the whole branch that only people change by the registry


class RevisionFacts(Frozen):
    """The work item with its branch, pull requests and comments, as far as a plan needs them.

    A result that conflicts with the work item's branch has a ``branch_name`` of its own; its pull request is for that
    branch if it has an open one.
    """

    identity: Identity
    token: str
    issue: Issue
    title: str
    base: str
    branch_name: str
    pulls: tuple[Pull, ...] = ()
    is_superseded: bool = False  # by later work, or by a move of the item after it
    is_answered: bool = False  # by a person who removed the label that asks for one, after an earlier run set it
    ended: Pull | None = None  # merged or closed, which had this result, or the last where the base has its changes
    default_branch: str = ""
    state: BranchState | None = None
    branch: Branch | None = None
    comments: tuple[Comment, ...] | None = None  # None where no plan writes one

    @property
    def closes_item(self) -> bool:
        """Whether a merge of the pull request ends the work; not a merge into the work item's branch."""
        return self.state is None or self.base == self.state.place.base


def gather_facts(
    github: GitHub,
    result: ImplementorResult,
    token: str,
    sanitizer: TextSanitizer,
    options: RevisionOptions,
    stack: ExitStack,
) -> RevisionFacts:
    """Read what the plan depends on. The repository lives as long as ``stack``. Raises BrokenContract and Refused."""
    identity = github.identity()
    repository = require_writable(github, identity)
    issue = find_work_item(github, options.work_item)
    base = options.base or repository.default_branch
    title, default = sanitizer.title(issue.title), repository.default_branch
    facts = RevisionFacts(identity, token, issue, title, base, work_branch(issue.number), default_branch=default)
    if result.outcome != "completed":
        return facts
    git = stack.enter_context(scratch_repository(options.remote, options.checkout))
    patch = (result.patch or "").encode()
    return replace(facts, state=read_branch(github, git, options.remote, patch, issue.number, identity, token, base))


def with_commit(facts: RevisionFacts, result: ImplementorResult, options: RevisionOptions) -> RevisionFacts:
    """Make the commit of the result in the clone, and describe the branch with it; a superseded result gets none."""
    state = facts.state
    choice = choose_commit(state) if state else None
    if state is None or choice is None:
        return facts
    if choice.kind == "superseded":
        return replace(facts, is_superseded=True, ended=choice.pull)
    patch, message = (result.patch or "").encode(), partial(commit_message, result.summary, facts, options)
    made = make_commit(state.git, choice, patch, message, options.author or DEFAULT_AUTHOR, options.clock.now())
    place, branch = choice.place, _describe(state, choice, made, patch, options)
    ended = [pull for each in (*state.over, place) for pull in each.pulls if pull.state != "open"]
    if branch.is_empty and ended:
        facts = replace(facts, is_superseded=True, ended=max(ended, key=lambda pull: pull.number))
    return replace(facts, branch_name=place.name, base=place.base, pulls=place.pulls, branch=branch)


def with_comments(github: GitHub, facts: RevisionFacts) -> RevisionFacts:
    """Read the comments of the work item where a plan may write one."""
    branch = facts.branch
    if facts.is_superseded or not (branch is None or branch.is_pushed or branch.audit.steering or branch.conflict):
        return facts
    return replace(facts, comments=tuple(github.comments(facts.issue.number)))


def with_later_changes(github: GitHub, facts: RevisionFacts) -> RevisionFacts:
    """Read whether the item moved on, or a label was removed, after an earlier run wrote this result."""
    since = _written_at(facts)
    if since is None:
        return facts
    branch, item = facts.branch, facts.issue
    pull = our_pull(facts, facts.pulls, branch.since)[0] if branch and branch.is_pushed else None
    is_begun = status_if_clear(item) == "in-progress" and (branch is None or branch.is_pushed)
    is_superseded = is_begun and "status:in-progress" in labels_removed(github, item.number, since)
    asked = pull or item
    is_asked = branch is not None and NEEDS_HUMAN not in asked.labels
    events = github.label_events(asked.number) if is_asked else ()
    is_answered = go_ahead_in(events, lambda login: github.is_trusted(login, lambda: facts.identity), since=since)
    return replace(facts, is_superseded=is_superseded, is_answered=is_answered is not None)


def _written_at(facts: RevisionFacts) -> datetime | None:
    """Return when an earlier run wrote this result, or asked a person about it, all but labels; None if none did."""
    branch, comment = facts.branch, our_comment(facts, facts.comments or ())
    if branch and branch.is_pushed and not branch.is_empty:
        is_written = our_pull(facts, facts.pulls, branch.since)[1]
        shown = branch.git.line("show", "-s", "--format=%aI %B", branch.commit) if is_written else ""
        return parse_timestamp(shown.split()[0]) if facts.token in shown else None
    if comment and has_marker(comment.body, OUTCOME, facts.token):
        return comment.updated_at if runs_before(comment.body, OUTCOME) else comment.created_at
    return None


def _describe(
    state: BranchState, choice: CommitChoice, made: MadeCommit | None, patch: bytes, options: RevisionOptions
) -> Branch:
    """Describe the branch with the commit: what it changes, and what must not be pushed."""
    git, found, work = state.git, choice.place.found, state.place
    commit, changes = (made.commit, made.changes) if made else (found.applied, ())
    before = (made.parent if made else "") or found.tip or found.base
    head = commit if changes else before
    after = (made.made if made else "") or head
    is_plain = bool(made and changes and not made.parent)  # a commit that was made now, on top of the branch
    onto = trailer(git, commit, CONFLICT_TRAILER) if commit and not is_plain else ""
    ends = {work.base: work.found.base, work.name: work.found.tip}
    paths = conflicting_paths(git, patch, commit, head, ends.get(onto, ""))
    is_whole = is_plain and not found.tip
    fork = "" if is_whole else git.attempt("merge-base", found.base, head).stdout.decode().strip() or found.base
    changed = changes_between(git, fork, head) if fork else changes  # the pull request shows the whole branch
    own = own_paths_in(file_at(git, found.base, REGISTRY_PATH.as_posix()))
    whole = audit_paths((change.path for change in changed), own[1], agent_files=own[0])
    runs = _runs_on(git, found)
    has_author, is_bot = options.author not in ("", DEFAULT_AUTHOR), not state.identity.is_person
    return Branch(
        git,
        state.remote,
        found.tip,
        commit,
        head,
        is_pushed=not changes,
        is_empty=not changes and (not found.tip or is_ancestor(git, found.tip, found.base)),
        paths=tuple(change.path for change in changed),
        since=tuple(git.line("rev-list", f"{found.applied}^..{found.tip}").split() if found.applied else ()),
        runs=runs,
        findings=(
            *size_findings(git, before, after, changes, options.limits),
            *(escaping_links(git, before, head) if changes else ()),
            *secret_findings(git, changes, options.redact),
            *filtered_findings(git, before, changes, changes).values(),
            *(finding for _, finding in unread_configs(config_reader(git, found.base))),
        ),
        audit=audit_changes(git, before, changes, patch, own=own),
        conflict=MergeConflict(onto, paths) if paths else None,
        item_runs=runs if found is work.found else _runs_on(git, work.found),
        made=read_commit(git, commit, is_bot=is_bot, has_author=has_author) if changes else None,
        is_replacement=bool(made and made.made),
        marked=tuple(marked_files(patch)),
        has_keepalive=has_listener(KEEPALIVE, _workflows_at(git, found.base)),
        protected=(*whole.steering, *whole.protected),
    )


def _workflows_at(git: Git, base: str) -> str:
    """Return the text of a commit's workflows."""
    return git.attempt("grep", "-h", "-I", "-e", "", base, "--", ".github/workflows").stdout.decode("utf-8", "replace")


def _runs_on(git: Git, found: BranchFacts) -> tuple[str, ...]:
    return tuple(runs_of(git, f"{found.base}..{found.tip}")) if found.tip else ()


def commit_message(
    summary: str, facts: RevisionFacts, options: RevisionOptions, conflict: str = "", base: str = ""
) -> str:
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


def our_pull(facts: RevisionFacts, pulls: Sequence[Pull], commits: Collection[str] = ()) -> tuple[Pull | None, bool]:
    """Return the pull request with which this run continues, and whether this run wrote it already.

    An open one comes first. A closed one counts when it was merged, or when it was closed at one of ``commits``, which
    are the run's own and later ones: it must not be opened again.
    """
    written = [pull for pull in pulls if is_of_run(pull, facts.identity, facts.token)]
    still_open = [pull for pull in pulls if pull.state == "open"]
    if still_open:
        return next(((pull, True) for pull in still_open if pull in written), (still_open[0], False))
    return next(((pull, True) for pull in written if pull.is_merged or pull.head_sha in commits), (None, False))


def our_comment(facts: RevisionFacts, comments: Sequence[Comment]) -> Comment | None:
    """Return the one comment in which we report this work item's outcome."""
    number = str(facts.issue.number)
    ours = (comment for comment in comments if facts.identity.counts(comment.author))
    items = ((comment, [fields.get("item") for fields in find_markers(comment.body, OUTCOME)]) for comment in ours)
    return next((comment for comment, named in items if number in named), None)
