"""A repository as it was before an untrusted program worked in it, and its changes since.

Afterwards nothing in ``.git`` is believed but the objects: a git directory of our own is laid over the work tree.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.git.patches import AGENT_STATE_FILES, changes_between, contents_of, difference, unstage_state_files
from accord.git.program import Git, split_nul, stage_all
from accord.git.sizes import check_sizes, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_BREAK = re.compile(rb"(?<![ \t])[ \t]*[\r\n]\s*")
"""Where a line is wrapped, as ``accord.text.redaction`` sees it."""


@dataclass(frozen=True)
class Snapshot:
    """The top of the work tree, its commit, where its objects are, and the paths that are not checked out (sparse).

    ``uncommitted`` are the files that differed from the commit already, such as what an earlier step made: mode and
    blob by path, mode ``000000`` for one that was gone; ``sizes`` are theirs.
    """

    top: Path
    commit: str
    objects: Path
    absent: tuple[str, ...] = ()
    object_format: str = "sha1"
    uncommitted: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkTreeChanges:
    """The changes as git's binary-safe patch. Not in it are the new paths that count as leftovers, and files that
    were uncommitted before and are as they were; of these, ``untouched`` has those outside of repositories within.
    """

    patch: bytes
    left_out: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()


def take_snapshot(directory: Path) -> Snapshot | None:
    """Record the state of the repository around a directory; None without a repository or a commit."""
    git = Git(directory)
    facts = git.attempt(
        "rev-parse", "--is-inside-work-tree", "--show-object-format", "HEAD^{commit}", "--show-toplevel"
    )
    if facts.returncode:
        return None
    _, object_format, commit, top = facts.stdout.decode("utf-8", "surrogateescape").strip().split("\n", 3)
    listed = split_nul(git("ls-files", "-t", "-z", "--full-name", ":/"))
    clean = Snapshot(
        top=Path(top),
        commit=commit,
        objects=Path(git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")),
        absent=tuple(entry[2:] for entry in listed if entry.startswith("S ")),
        object_format=object_format,
    )
    if not git("status", "--porcelain", "-z"):
        return clean
    with _laid_over(clean) as ours:
        stage_all(ours)
        found = changes_between(ours, clean.commit, ours.line("write-tree"))
        uncommitted = {change.path: (change.mode, change.blob) for change in found}
        return replace(clean, uncommitted=uncommitted, sizes=sizes_of(clean.top, list(uncommitted)))


@contextmanager
def restorable(snapshot: Snapshot) -> Iterator[Callable[[], None]]:
    """Keep the files of the work tree; yield a function that puts them back and removes new ones, ignored ones too.

    Ignored files that were there stay as they are. The index of the repository comes back, too. Raises GitFailed.
    """
    index = Path(Git(snapshot.top).line("rev-parse", "--path-format=absolute", "--git-path", "index"))
    staged = index.read_bytes() if index.is_file() else b""
    with _laid_over(snapshot) as ours:
        nested = set(stage_all(ours))
        tree, ignored = ours.line("write-tree"), set(_ignored(ours))

        def restore() -> None:
            for folder in set(stage_all(ours)) - nested:
                shutil.rmtree(snapshot.top / folder, ignore_errors=True)
            stage_all(ours)
            ours("read-tree", "--reset", "-u", tree)
            for path in set(_ignored(ours)) - ignored:
                _remove(snapshot.top, snapshot.top / path)
            if staged:
                index.write_bytes(staged)

        yield restore


def _ignored(git: Git) -> list[str]:
    return split_nul(git("ls-files", "--others", "--ignored", "--exclude-standard", "-z"))


def _remove(top: Path, path: Path) -> None:
    """Remove a file, and the folders that are empty then."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in path.parents:
            if folder == top:
                return
            folder.rmdir()


def changes_since(
    snapshot: Snapshot, *, state_files: Sequence[str] = (), secrets: Sequence[str] = ()
) -> WorkTreeChanges:
    """Return what differs from the snapshot. Raises GitFailed; Refused for ``secrets`` in a change and large files."""
    states = [*AGENT_STATE_FILES, *state_files]
    with _laid_over(snapshot) as ours:
        large = check_sizes(ours, snapshot.top, known=snapshot.sizes, state_files=states)
        nested = stage_all(ours, without=large)
        untouched = _leave_untouched(ours, snapshot)
        left_out = [*large, *unstage_state_files(ours, snapshot.commit, states)]
        _refuse_secrets(ours, snapshot.commit, secrets)
        inside = tuple(f"{folder}/" for folder in nested)
        told = tuple(path for path in untouched if not path.startswith(inside))
        return WorkTreeChanges(difference(ours, snapshot.commit), tuple(left_out), told)


@contextmanager
def _laid_over(snapshot: Snapshot) -> Iterator[Git]:
    """Lay an index of our own, which has the commit, over the work tree; yield git with it."""
    with tempfile.TemporaryDirectory(prefix="accord-changes-") as scratch:
        git = Git(snapshot.top)
        git("init", "--quiet", "--bare", f"--object-format={snapshot.object_format}", "--template=", scratch)
        Path(scratch, "objects/info").mkdir(exist_ok=True)
        Path(scratch, "objects/info/alternates").write_text(f"{snapshot.objects}\n")
        environment = {"GIT_DIR": scratch, "GIT_WORK_TREE": str(snapshot.top), "GIT_INDEX_FILE": f"{scratch}/index"}
        ours = Git(snapshot.top, environment, {"core.bare": "false"})
        ours("read-tree", snapshot.commit)
        if snapshot.absent:
            paths = "\0".join(snapshot.absent).encode("utf-8", "surrogateescape")
            ours("update-index", "-z", "--skip-worktree", "--stdin", data=paths)
        yield ours


def _leave_untouched(ours: Git, snapshot: Snapshot) -> list[str]:
    """Put the files that are as they were before back to what the commit has of them; return them."""
    if not snapshot.uncommitted:
        return []
    now = changes_between(ours, snapshot.commit, ours.line("write-tree"))
    untouched = [c.path for c in now if snapshot.uncommitted.get(c.path) == (c.mode, c.blob)]
    if untouched:
        literal = replace(ours, environment={**ours.environment, "GIT_LITERAL_PATHSPECS": "1"})
        names = ("--pathspec-from-file=-", "--pathspec-file-nul")
        literal("reset", "--quiet", snapshot.commit, *names, data=b"\0".join(map(os.fsencode, untouched)))
    return untouched


def _refuse_secrets(git: Git, start: str, secrets: Sequence[str]) -> None:
    """Refuse a change with a secret in it: redacted it would be damaged, and as it is it would be published."""
    if not secrets:
        return
    searched = [secret.encode("utf-8", "surrogateescape") for secret in secrets]
    after = git.line("write-tree")
    for path, old, new in _contents(git, f"{start}^{{tree}}", after):
        if any(secret in new and secret not in old for secret in searched) or _has_wrapped(old, new, searched):
            raise Refused(
                f"`{path}` contains a secret of the job.",
                hint="None of the changes were published. Revoke the secret and find out why the agent wrote it.",
            )


def _has_wrapped(old: bytes, new: bytes, secrets: Sequence[bytes]) -> bool:
    """Return whether a new secret shows once the lines are joined, such as one that is wrapped."""
    joined, joined_before = _BREAK.sub(b"", new), _BREAK.sub(b"", old)
    return any(secret in joined and secret not in joined_before for secret in secrets)


def _contents(git: Git, before: str, after: str) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield path, old and new content of everything that a change leaves there; the path counts as content."""
    for change, new, old in contents_of(git, changes_between(git, before, after)):
        named = change.path.encode("utf-8", "surrogateescape") + b"\n"
        yield change.path, b"" if old is None else named + old, named + (new or b"")
