"""Refs of a repository at a terminal, where people may work in it while an agent does.

The commit that was checked out is put back, as the agent's commits become changes of the work tree. Other refs may be
those of a person, so they stay, and the caller learns which ones moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from accord.git.index import work_trees
from accord.git.program import Git, GitFailed

_FORMAT = "--format=%(refname) %(objectname) %(symref)"
_TRUSTED = ("refs/remotes/", "refs/heads/main", "refs/heads/master", "refs/replace/")
"""Refs that decide which files count for the next run, also when they are new."""


@dataclass
class RefChanges:
    """The refs that were ``undone``, and the other ones that ``moved``, with what they were before."""

    undone: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)


@contextmanager
def guard_refs(directory: Path) -> Iterator[RefChanges]:
    """Put HEAD and its branch back where they were; fill the yielded value when the block ends. Raises GitFailed."""
    git, changes = Git(directory), RefChanges()
    own = Path(git.line("rev-parse", "--absolute-git-dir"))
    head, branch = (own / "HEAD").read_bytes(), git.attempt("symbolic-ref", "--quiet", "HEAD").stdout.decode().strip()
    shared = Path(git.line("rev-parse", "--path-format=absolute", "--git-common-dir"))
    locks = [lock for lock in (own / "index.lock", own / "HEAD.lock", shared / f"{branch}.lock") if not lock.exists()]
    commit, top = git.line("rev-parse", "HEAD", "--show-toplevel").split("\n", 1)
    before = _refs(git, top)
    try:
        yield changes
    finally:
        for lock in locks:
            with suppress(OSError):
                lock.unlink()
        _put_back(git, own, head, branch, commit, changes)
        try:
            after = _refs(git, top)
        except GitFailed:  # what cannot be read is not as it was
            after = {}
        gone = {name: old for name, old in before.items() if after.get(name) != old}
        new = {name: "" for name in after if name not in before and name.startswith(_TRUSTED)}
        changes.moved = {name: old for name, old in (gone | new).items() if name != branch}


def _put_back(git: Git, own: Path, head: bytes, branch: str, commit: str, changes: RefChanges) -> None:
    """Restore HEAD as a file, since git does not start without it, and then its branch."""
    file = own / "HEAD"
    if file.is_symlink() or not file.is_file() or file.read_bytes() != head:
        file.unlink(missing_ok=True)
        with suppress(OSError):  # without `.git`; reading the changes refuses that
            file.write_bytes(head)
        changes.undone.append("HEAD")
    is_moved = git.commit_of("HEAD") != commit
    if is_moved and not git.attempt("update-ref", "--no-deref", branch or "HEAD", commit).returncode:
        changes.undone.append(branch or "HEAD")


def _refs(git: Git, here: str) -> Mapping[str, str]:
    """Return every ref with its commit, or with the ref that it stands for, and the heads of the other work trees."""
    lines = (line.split(" ") for line in git.line("for-each-ref", _FORMAT).splitlines())
    refs = {name: symref or commit for name, commit, *rest in lines for symref in [rest[0] if rest else ""]}
    others = [tree for tree in work_trees(git) if tree["worktree"] != here and "HEAD" in tree]
    return refs | {f"HEAD of {tree['worktree']}": tree.get("branch", tree["HEAD"]) for tree in others}
