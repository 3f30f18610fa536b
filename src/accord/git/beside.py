"""Work that an untrusted program left beside the checked-out tree: branches, stashes, work trees and submodules.

The agent could write to all of it. So names and commits are read, and everything else is done with the objects in a
repository of our own; other work trees count only if they are those of this repository, and are reached without a link.

At a terminal, people may work in the repository while an agent does. There the commit that was checked out is put back,
as the agent's commits become changes of the work tree. Other refs may be those of a person, so they stay, and the
caller learns which ones moved.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path

from accord.core.errors import AccordError
from accord.core.frozen import Frozen
from accord.files.states import holds, restore, state_of
from accord.git.extraction import extract
from accord.git.filters import read_settings
from accord.git.index import files_below, work_trees
from accord.git.patches import changes_between, filtered_findings
from accord.git.paths import some_of
from accord.git.program import UNTRUSTED, Git, GitFailed, own_repository
from accord.git.secrets import has_new_secret

BUNDLE = "beside.bundle"
_KEPT = "refs/accord/beside"
_MOST_PLACES = 20
_MOST_COMMITS = 200
_MOST_BYTES = 50 * 1024 * 1024
_MOST_LOG_BYTES = 4 * 1024 * 1024
_SHORT = 7
_STASH, _STASH_LOG = "refs/stash", "logs/refs/stash"
_HEAD_OF = "HEAD of "
_AWAY, _PUSH = "checkout: moving from ", "update by push"
_MAKING = re.compile(
    r"(?:commit(?: \(\w+\))?|am|cherry-pick|revert|.{1,200} \((?:pick|reword|edit|squash|fixup|continue|merge)\)): "
    r"(?!fast-forward$)|.{1,200}: Merge made by "
)
"""How git logs a commit that it makes: of ``git commit``, ``am``, ``cherry-pick``, ``revert``, a rebase and a merge."""

_LOGGED = re.compile(r"[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t]*\t?(.*)")
_FORMAT = "--format=%(refname) %(objectname) %(symref)"
_TRUSTED = ("refs/remotes/", "refs/heads/main", "refs/heads/master", "refs/replace/")
"""Refs that decide which files count for the next run, also when they are new."""


class Beside(Frozen):
    """The work beside a tree at one time.

    A place is a ref, an entry of the stash, another work tree, or a commit that HEAD was moved away from.
    """

    commits: Mapping[str, str] = field(default_factory=dict)  # by place
    fetched: frozenset[tuple[str, str]] = frozenset()  # branches of remotes with their commits
    pushed: frozenset[tuple[str, str]] = frozenset()  # the same, of all pushes from here
    made: frozenset[str] = frozenset()  # commits that were made here
    edits: Mapping[str, bytes] = field(default_factory=dict)  # of other work trees and submodules
    starts: Mapping[str, str] = field(default_factory=dict)  # commits of the submodules, by path
    state_files: Sequence[str] = ()  # patterns of files that agents make for themselves


class Search(Frozen):
    """The work that is not kept: job secrets, paths that were private before, and the commit on the run's branch."""

    secrets: Sequence[bytes]
    is_private: Callable[[str], bool]
    delivered: str = ""


def look_beside(git: Git, submodules: Mapping[str, str], state_files: Sequence[str]) -> Beside:
    """Find the work beside the work tree of ``git``, whose directory is its top. Raises GitFailed."""
    shared = Path(git.line("rev-parse", "--path-format=absolute", "--git-common-dir"))
    commits = dict(pushed := pushed_commits(git, shared))
    commits |= {f"the stash ({entry[:_SHORT]})": entry for entry, _ in _log_at(shared / _STASH_LOG)}
    switched = pairwise(_log_at(git.path_of("logs/HEAD")))
    left = [older for (_, said), (older, _) in switched if said.startswith(_AWAY)]
    commits |= {f"a detached HEAD ({entry[:_SHORT]})": entry for entry in left}
    fetched = set()
    for line in git("for-each-ref", "--format=%(objectname) %(refname)").decode("utf-8", "replace").split("\n"):
        commit, _, name = line.partition(" ")
        if name.startswith("refs/remotes/"):
            fetched.add((name.removeprefix("refs/remotes/"), commit))
        elif name and name != _STASH:
            commits[name.removeprefix("refs/heads/")] = commit
    edits = dict[str, bytes]()
    for tree in work_trees(git):
        if "HEAD" in tree and Path(place := tree["worktree"]).resolve() != git.directory.resolve():
            commits.setdefault(f"the work tree {some_of([place])}", tree["HEAD"])
            if _is_linked(Path(place), shared):
                edits[place] = _edits(Path(place), "HEAD", state_files)
    for path, start in submodules.items():
        if _is_submodule(git.directory, path, shared):
            edits[path] = _edits(git.directory / path, start or "HEAD", state_files)
    logged = frozenset(pushed), made_commits(shared)
    return Beside(commits, frozenset(fetched), *logged, edits, dict(submodules), state_files)


def pushed_commits(git: Git, shared: Path) -> list[tuple[str, str]]:
    """Return the branches of remotes, such as ``origin/main``, with the commits that were pushed there, oldest first.

    Git logs a push in other words than a fetch (``transport_update_tracking_ref`` in its transport.c).
    """
    names = git.attempt("for-each-ref", "--format=%(refname:lstrip=2)", "refs/remotes").stdout.split()
    logs = ((name, reversed(_log_at(shared / "logs/refs/remotes" / os.fsdecode(name)))) for name in names)
    return [(name.decode("utf-8", "replace"), commit) for name, log in logs for commit, said in log if said == _PUSH]


def made_commits(shared: Path) -> frozenset[str]:
    """Return the commits that the logs of HEAD and of the local branches say were made here, not fetched."""
    branches = (shared / path for path in files_below(shared, "logs/refs/heads"))
    logs = (shared / "logs/HEAD", *shared.glob("worktrees/*/logs/HEAD"), *branches)
    return frozenset(commit for log in logs for commit, said in _log_at(log) if _MAKING.match(said))


def _read_small(path: Path) -> str:
    """Read a regular file, and follow no link; empty for anything else."""
    with suppress(OSError):
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if stat.S_ISREG(os.fstat(opened).st_mode):
                return file.read(_MOST_LOG_BYTES).decode("utf-8", "replace")
    return ""


def _is_linked(place: Path, shared: Path) -> bool:
    """Return whether a folder is a work tree of the repository whose common directory is ``shared``."""
    named = _read_small(place / ".git").strip().removeprefix("gitdir: ")
    folder, is_real = Path(named), not place.is_symlink()
    return is_real and folder.is_absolute() and folder.parent.resolve() == (shared / "worktrees").resolve()


def _is_submodule(top: Path, path: str, shared: Path) -> bool:
    """Return whether a submodule has a repository of its own, and no link leads to it."""
    folder = top / path
    if folder.resolve() != top.resolve() / path:
        return False
    if (folder / ".git" / "HEAD").is_file() and not (folder / ".git").is_symlink():
        return True
    named = _read_small(folder / ".git").strip()
    place = (folder / named.removeprefix("gitdir: ")).resolve()
    return named.startswith("gitdir: ") and place.is_relative_to((shared / "modules").resolve())


def _log_at(path: Path) -> list[tuple[str, str]]:
    """Return the commits of the log of a ref, newest first, each with the words about what moved it there."""
    entries = (_LOGGED.match(line) for line in reversed(_read_small(path).split("\n")))
    return [(entry[1], entry[2]) for entry in entries if entry]


def _edits(folder: Path, base: str, state_files: Sequence[str]) -> bytes:
    """Return the changes of a work tree since a commit as a patch; empty where it cannot be read."""
    with suppress(AccordError, OSError, subprocess.TimeoutExpired):
        own = Git(folder, UNTRUSTED, read_settings(folder).without_filters)
        head = own.line("rev-parse", "HEAD", f"{base}^{{commit}}").split()
        if own("status", "--porcelain", "-z", "--ignore-submodules=all") or len({*head}) > 1:
            return extract(folder, base, state_files=state_files, is_trusted=False).patch
    return b""


def keep_work_beside(git: Git, start: str, before: Beside, folder: Path, search: Search) -> list[str]:
    """Write the new work beside a tree into a folder; return each place, with the command that brings it back.

    Commits count that no earlier place and not HEAD has, and that were not fetched, whatever they start from.
    """
    try:
        return list(_keep(git, start, before, folder, search))
    except (AccordError, OSError, ValueError, subprocess.TimeoutExpired) as problem:
        return [f"Work beside the checked-out tree could not be looked for: {problem}"]


def _keep(git: Git, start: str, before: Beside, folder: Path, search: Search) -> Iterator[str]:
    for old in folder.glob("beside*"):
        with suppress(OSError):
            old.unlink()
    now = look_beside(git, before.starts, before.state_files)
    with own_repository(git) as own:
        remote = before.fetched | before.pushed | (now.fetched - now.pushed)
        known = {start, search.delivered, *before.commits.values(), *(commit for _, commit in remote)} - {""}
        kept, left = dict[str, str](), dict[str, list[str]]()
        for name, commit in _new_places(own, {*known, *filter(None, [git.commit_of("HEAD")])}, now).items():
            if reason := _reason_not_to_keep(own, start, commit, known, [*kept.values()], search):
                left.setdefault(reason, []).append(name)
            else:
                kept[name] = commit
        if kept:
            yield from _keep_commits(own, known, kept, folder)
        for reason, names in left.items():
            yield f"Work on {some_of(names)} is not in the changes, and is not kept: {reason}."
    edited = {place: patch for place, patch in now.edits.items() if patch and patch != before.edits.get(place)}
    for number, (place, patch) in enumerate(edited.items(), 1):
        yield _keep_edits(place, patch, folder / f"beside-{number}.patch", search)


def _new_places(own: Git, known: set[str], now: Beside) -> dict[str, str]:
    """Return the new commits by the best name of their place, without those that are part of another one."""
    names = {commit: name for name, commit in now.commits.items() if commit not in known}
    words = ("rev-list", "--parents", "--ignore-missing", "--stdin")
    listed = own.attempt(*words, data=_range(names, known)) if names else None
    if listed is None or listed.returncode:
        return {}
    commits = [line.split() for line in listed.stdout.decode().splitlines()]
    inner = {parent for _, *parents in commits for parent in parents}
    return {names[commit]: commit for commit, *_ in commits if commit in names and commit not in inner}


def _range(ends: Iterable[str], known: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in [*ends, *(f"^{commit}" for commit in known)]).encode()


def _new_commits(own: Git, ends: Iterable[str], known: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the commits up to these ends that are not known, and the known ones that they start from."""
    lines = own.line("rev-list", "--boundary", "--ignore-missing", "--stdin", data=_range(ends, known)).split()
    return [line for line in lines if line[0] != "-"], [line[1:] for line in lines if line[0] == "-"]


def _keep_commits(own: Git, known: set[str], places: Mapping[str, str], folder: Path) -> Iterator[str]:
    refs = {f"{_KEPT}/{number}": name for number, name in enumerate(places, 1)}
    for ref, name in refs.items():
        own("update-ref", ref, places[name])
    made, (_, bases) = own.directory / BUNDLE, _new_commits(own, places.values(), known)
    own("bundle", "create", "--quiet", str(made), *refs, *(f"^{base}" for base in bases))
    write_new(folder / BUNDLE, made.read_bytes())
    for ref, name in refs.items():
        command, commit = f"git fetch {BUNDLE} {ref}", places[name]
        yield f"Work on {name} is not in the changes. Commit {commit[:_SHORT]} is in {BUNDLE}: `{command}`."


def _reason_not_to_keep(own: Git, start: str, end: str, known: set[str], kept: Sequence[str], search: Search) -> str:
    """Return why the commits of a place must stay where they are; empty if they are kept with those before."""
    all_new, all_bases = _new_commits(own, [*kept, end], known)
    commits, bases = _new_commits(own, [end], known)
    if len(kept) == _MOST_PLACES or len(all_new) * max(len(all_bases), 1) > _MOST_COMMITS:
        return f"there are more than {_MOST_PLACES} places or {_MOST_COMMITS} commits"
    words = ("rev-list", "--objects", "--ignore-missing", "--stdin")
    if int(own.line(*words, "--disk-usage", data=_range([*kept, end], known))) > _MOST_BYTES:
        return "it is too large"
    names = b"\n".join(line.split(b" ")[0] for line in own(*words, data=_range([end], bases)).splitlines())
    contents = own("cat-file", "--batch", data=names + b"\n")
    if has_new_secret(b"", contents, search.secrets):
        return "it holds a secret of the job"
    for commit, base in product(commits, bases or [start]):
        changes = [change for change in changes_between(own, base, commit) if not change.is_removal]
        if any(search.is_private(change.path) for change in changes):
            return "it has files that were private before"
        if any(filtered_findings(own, trusted, changes, changes) for trusted in {base, start}):
            return "it has files with a filter"
    return ""


def _keep_edits(place: str, patch: bytes, path: Path, search: Search) -> str:
    """Keep the edits of another work tree or a submodule; return what to say."""
    said = f"Changes in {some_of([place])} are not in the patch."
    added = b"\n".join(line[1:] for line in patch.split(b"\n") if line.startswith(b"+"))
    is_told = has_new_secret(b"", patch, search.secrets) or has_new_secret(b"", added, search.secrets)
    if is_told or (search.secrets and b"\nGIT binary patch\n" in patch):
        return f"{said} They may hold a secret of the job, so they are not kept."
    try:
        write_new(path, patch)
    except OSError as problem:
        return f"{said} They could not be kept: {problem.strerror}."
    return f"{said} They are in {path.name}: `git -C {shlex.quote(some_of([place]))} apply PATH/{path.name}`."


def write_new(path: Path, content: bytes) -> None:
    """Write a file in the place of whatever is there, and follow no link. Raises OSError."""
    path.unlink(missing_ok=True)
    with open(path, "xb") as file:
        file.write(content)


@dataclass
class RefChanges:
    """Refs that a run changed."""

    undone: list[str] = field(default_factory=list)  # put back to where they were
    moved: dict[str, str] = field(default_factory=dict)  # other refs, with what they were before; a stash, newest first


@contextmanager
def guard_refs(directory: Path) -> Iterator[RefChanges]:
    """Put HEAD and its branch back where they were; fill the yielded value when the block ends. Raises GitFailed."""
    git, changes = Git(directory), RefChanges()
    own = Path(git.line("rev-parse", "--absolute-git-dir"))
    head, branch = state_of(own / "HEAD"), git.attempt("symbolic-ref", "--quiet", "HEAD").stdout.decode().strip()
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
        if not holds(own / "HEAD", head):  # git does not start without it
            if own.is_dir():  # reading the changes refuses a tree without it
                restore(own / "HEAD", head)
            changes.undone.append("HEAD")
        is_moved = git.commit_of("HEAD") != commit
        if is_moved and not git.attempt("update-ref", "--no-deref", branch or "HEAD", commit).returncode:
            changes.undone.append(branch or "HEAD")
        try:
            after = _refs(git, top)
        except GitFailed:  # what cannot be read is not as it was
            after = {}
        gone = {name: old for name, old in before.items() if after.get(name) != old}
        new = {name: "" for name in after if name not in before and name.startswith(_TRUSTED)}
        changes.moved = {name: old for name, old in (gone | new).items() if name != branch}


def _refs(git: Git, here: str) -> Mapping[str, str]:
    """Return every ref with its commit, or with the ref that it stands for, and the heads of the other work trees."""
    lines = (line.split(" ") for line in git.line("for-each-ref", _FORMAT).splitlines())
    refs = {name: symref or commit for name, commit, *rest in lines for symref in [rest[0] if rest else ""]}
    if stashed := _log_at(Path(git.line("rev-parse", "--path-format=absolute", "--git-common-dir")) / _STASH_LOG):
        refs[_STASH] = " ".join(entry for entry, _ in stashed)
    others = [tree for tree in work_trees(git) if tree["worktree"] != here and "HEAD" in tree]
    return refs | {f"{_HEAD_OF}{tree['worktree']}": tree.get("branch", tree["HEAD"]) for tree in others}


def commands_to_undo(moved: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands of a shell that put moved refs back to what they were, and work trees that are gone."""
    for name, old in moved.items():
        is_head, tree = name.startswith(_HEAD_OF), name.removeprefix(_HEAD_OF)
        git = f"git -C {shlex.quote(tree)}" if is_head else "git"
        ref = "HEAD" if is_head else shlex.quote(name)
        if is_head and not os.path.lexists(f"{tree}/.git"):
            branch = old.removeprefix("refs/heads/")
            how = shlex.quote(branch) if branch != old else f"--detach {old}"
            yield f"git worktree add {shlex.quote(tree)} {how}"
        elif name == _STASH:
            yield "git stash clear"
            for entry in reversed(old.split()):
                yield f'git stash store --message "$(git log -1 --format=%s {entry})" {entry}'
        elif old.startswith("refs/"):
            yield f"{git} symbolic-ref {ref} {shlex.quote(old)}"
        else:
            yield f"{git} update-ref --no-deref {ref} {old}" if old else f"{git} update-ref --no-deref -d {ref}"
