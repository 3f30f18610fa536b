"""Bringing a commit to a branch: over the Git data API, where GitHub signs it, or by a push. Never by force.

GitHub signs the commits that a bot's token creates over the API without an author of its own, and shows them as
verified (GitHub documentation, "About commit signature verification", section on bots). A commit is made locally first.
GitHub makes it again from the same files, and its tree must be the local one. Nothing is visible before the branch
moves, which is the last request. All doors to a branch go through ``plan_upload`` and ``deliver_commit``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from accord.core.clock import attempts
from accord.core.documents import is_utf8
from accord.core.errors import Refused
from accord.core.frozen import Frozen
from accord.git.branches import Remote, push
from accord.git.patches import Change, changes_between
from accord.git.program import Git
from accord.github.client import GitHub
from accord.github.git_data import Commit, StoredObject, TreeChange
from accord.github.limits import BLOB_BYTES, COMMIT_REQUESTS, TREE_ENTRIES, TREE_TEXT_BYTES
from accord.github.models import Conflict

PERSON = "GitHub signs only the commits of bots, and the token is a person's."
AUTHOR = "GitHub does not sign a commit with an author of its own."
"""The reasons for a push that the caller chose."""

_REF_PAUSES_SECONDS = (2.0, 10.0)
"""Waits before a branch is moved again that GitHub did not move, although it is where it was: objects may lag."""


CommitWay = Literal["api", "push"]
"""How a commit gets to GitHub."""


class CommitFacts(Frozen):
    """A local commit: its trees, message and changes, and of the new blobs the sizes and the short texts."""

    commit: str
    tree: str
    parents: tuple[str, ...]
    message: str
    is_bot: bool  # the token is one whose commits GitHub signs
    has_author: bool = False  # the caller chose an author
    base_tree: str = ""
    changes: tuple[Change, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


class Upload(Frozen):
    """How a local commit gets to GitHub."""

    facts: CommitFacts
    way: CommitWay = "push"
    blobs: tuple[str, ...] = ()  # to send first, over the API
    trees: tuple[Mapping[str, TreeChange], ...] = ()  # a request for each, on top of the one before
    reason: str = ""  # for a push, empty for the API

    @property
    def requests(self) -> int:
        """The requests that it takes over the API: the last two make the commit and move the branch."""
        return len(self.blobs) + len(self.trees) + 2 if self.way == "api" else 0

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of a plan that was not carried out."""
        return {"way": self.way, "verified": None, "requests": self.requests, "reason": self.reason}


class DeliveredCommit(Frozen):
    """A commit on its branch: its id there, the way it took, and why it was pushed."""

    commit: str
    way: CommitWay
    is_verified: bool = False
    requests: int = 0
    reason: str = ""

    @property
    def problem(self) -> str:
        """Why a commit was pushed that GitHub could have signed; empty otherwise."""
        return "" if self.reason in (PERSON, AUTHOR) else self.reason

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of a receipt."""
        return {"way": self.way, "verified": self.is_verified, "requests": self.requests, "reason": self.reason}


def read_commit(git: Git, commit: str, *, is_bot: bool, has_author: bool = False) -> CommitFacts:
    """Read a local commit whose parents GitHub has, without its changes where GitHub would not sign it anyway."""
    shown = git("show", "--no-patch", "--format=%T %P%n%B", commit).decode("utf-8", "replace")
    ids, _, words = shown.partition("\n")
    tree, *parents = ids.split()
    facts = CommitFacts(commit, tree, tuple(parents), words.rstrip("\n") + "\n", is_bot, has_author)
    if not is_bot or has_author:  # it is pushed as it is
        return facts
    base_tree = git.line("rev-parse", f"{parents[0]}^{{tree}}")
    changes = tuple(changes_between(git, base_tree, tree))
    blobs = {change.blob for change in changes if change.leaves_content}
    trees = [git("ls-tree", "-r", "--format=%(objectname)", parent) for parent in parents] if blobs else []
    new = blobs.difference(*(tree.decode().split() for tree in trees))
    asked = "\n".join(sorted(new)).encode()
    answers = git("cat-file", "--batch-check=%(objectname) %(objectsize)", data=asked).decode() if new else ""
    sizes = {blob: int(size) for blob, size in (line.split() for line in answers.splitlines())}
    short = [blob for blob, size in sizes.items() if size <= TREE_TEXT_BYTES]
    contents = zip(short, git.contents(short), strict=True)
    decoded = ((blob, content.decode("utf-8", "surrogateescape")) for blob, content in contents if content is not None)
    texts = {blob: text for blob, text in decoded if is_utf8(text) and "\0" not in text}  # as JSON has them
    return replace(facts, base_tree=base_tree, changes=changes, sizes=sizes, texts=texts)


def plan_upload(facts: CommitFacts) -> Upload:
    """Choose the way of a commit. Pure."""
    largest = max(facts.sizes.values(), default=0)
    reasons = {
        PERSON: not facts.is_bot,
        AUTHOR: facts.has_author,
        "The API cannot carry a path that is not UTF-8.": not all(is_utf8(change.path) for change in facts.changes),
        f"A file has {largest} bytes; the API takes {BLOB_BYTES}.": largest > BLOB_BYTES,
    }
    if reason := next((reason for reason, applies in reasons.items() if applies), ""):
        return Upload(facts, reason=reason)
    blobs = tuple(sorted(facts.sizes.keys() - facts.texts.keys()))
    upload = Upload(facts, "api", blobs, tuple(_trees(facts)))
    if upload.requests > COMMIT_REQUESTS:
        reason = f"The commit needs {upload.requests} requests over the API; at most {COMMIT_REQUESTS} are sent."
        return Upload(facts, reason=reason)
    return upload


def _trees(facts: CommitFacts) -> Iterator[dict[str, TreeChange]]:
    """Divide the changes among requests. Removals come first, so that a file can replace a folder."""
    part, size = dict[str, "TreeChange"](), 0
    for change in sorted(facts.changes, key=lambda change: change.is_removal, reverse=True):
        text = facts.texts.get(change.blob) if change.leaves_content else None
        length = facts.sizes[change.blob] if text is not None else 0
        if part and (len(part) >= TREE_ENTRIES or size + length > TREE_TEXT_BYTES):
            yield part
            part, size = {}, 0
        size += length
        if change.is_removal:
            part[change.path] = None
        else:
            part[change.path] = StoredObject(change.mode, change.blob) if text is None else (change.mode, text)
    if part:
        yield part


def deliver_commit(
    github: GitHub | None, git: Git, remote: Remote, upload: Upload, branch: str, expected: str
) -> DeliveredCommit | None:
    """Bring a commit to a branch that must still end at ``expected`` (empty: must not exist); None if it moved.

    A commit that the API cannot make is pushed. A lost answer is looked up. Raises Refused, Unreachable and Stopped.
    """
    if upload.way == "push" or github is None:
        return _push(git, remote, upload, branch, expected)
    commit, reason = None, "GitHub made other files of the changes."
    try:
        commit = _create_commit(github, git, upload)
    except Refused as refused:
        reason = refused.message[:300]
    if commit is None:
        try:
            return _push(git, remote, replace(upload, reason=reason), branch, expected)
        except Refused as refused:
            raise Refused(f"{refused.message} Over the API: {reason}", hint=refused.hint) from refused
    if not _move_branch(github, f"refs/heads/{branch}", expected, commit.sha):
        return None
    return DeliveredCommit(commit.sha, "api", commit.is_verified, upload.requests)


def _push(git: Git, remote: Remote, upload: Upload, branch: str, expected: str) -> DeliveredCommit | None:
    is_pushed = push(git, remote, upload.facts.commit, branch, expected)
    return DeliveredCommit(upload.facts.commit, "push", reason=upload.reason) if is_pushed else None


def _create_commit(github: GitHub, git: Git, upload: Upload) -> Commit | None:
    for blob in upload.blobs:
        (content,) = git.contents([blob])
        github.create_blob(content or b"")
    facts, tree = upload.facts, upload.facts.base_tree
    for changes in upload.trees:
        tree = github.create_tree(changes, tree)
    if tree != facts.tree:
        return None
    return github.create_commit(facts.message, tree, facts.parents)


def _move_branch(github: GitHub, ref: str, expected: str, commit: str) -> bool:
    """Point a branch to the commit; False if the branch is elsewhere by now. Raises Refused."""
    reason = ""
    for _ in attempts(github.clock, _REF_PAUSES_SECONDS):
        try:
            if expected:
                github.forward_ref(ref, commit)
            else:
                github.create_ref_once(ref, commit)
        except Conflict as conflict:
            reason = conflict.message
        else:
            return True
        tip = github.ref(ref) or ""
        if tip != expected:
            return tip == commit
    message = f"GitHub refused to point {ref} to the commit {commit}. {reason}"
    raise Refused(message, hint="Check the rules of the branch.")
