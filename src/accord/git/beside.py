"""Work that an untrusted program left beside the checked-out tree: branches, stashes, work trees and submodules."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import AccordError
from accord.git.patches import changes_between, contents_of, extract
from accord.git.program import Git, GitFailed, split_nul
from accord.git.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BUNDLE = "beside.bundle"
_KEPT = "refs/accord/beside"
_MOST_PLACES = 20
_SHORT = 7
_AWAY = "checkout: moving from "
_LOGGED = re.compile(r"[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t]*\t?(.*)")


@dataclass(frozen=True)
class Beside:
    """The work beside a tree at one time: commits by place, and the edits of other work trees and submodules.

    A place is a ref, an entry of the stash, another work tree, or a commit that HEAD was moved away from.
    """

    commits: Mapping[str, str]
    edits: Mapping[str, bytes]


def look_beside(git: Git, submodules: Sequence[str]) -> Beside:
    """Find the work beside the work tree of ``git``, whose directory is its top. Raises GitFailed."""
    commits = {f"the stash ({entry[:_SHORT]})": entry for entry, _ in _logged(git, "refs/stash")}
    commits |= {f"a detached HEAD ({entry[:_SHORT]})": entry for entry in _left(git)}
    listed = git("for-each-ref", "--format=%(objectname) %(refname)").decode("utf-8", "surrogateescape")
    for line in listed.splitlines():
        commit, _, name = line.partition(" ")
        if not name.startswith(("refs/remotes/", "refs/stash")):
            commits[name.removeprefix("refs/heads/")] = commit
    edits, place = dict[str, bytes](), ""
    for entry in split_nul(git("worktree", "list", "--porcelain", "-z").replace(b"\0\0", b"\0")):
        kind, _, value = entry.partition(" ")
        place = value if kind == "worktree" else place
        if kind == "HEAD" and Path(place).resolve() != git.directory.resolve():
            commits.setdefault(f"the work tree {place}", value)
            edits[place] = _edits(Path(place))
    return Beside(commits, edits | {path: _edits(git.directory / path) for path in submodules})


def _logged(git: Git, ref: str) -> list[tuple[str, str]]:
    """Return the commits of a log, newest first, each with the words about what moved the ref there.

    The file is read as it is: git would look for the commits, and may fetch what is missing.
    """
    file = Path(git.line("rev-parse", "--path-format=absolute", "--git-path", f"logs/{ref}"))
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    entries = (_LOGGED.match(line) for line in reversed(lines))
    return [(entry[1], entry[2]) for entry in entries if entry]


def _left(git: Git) -> list[str]:
    """Return the commits from which HEAD was switched away."""
    log = _logged(git, "HEAD")
    return [older for (_, said), (older, _) in pairwise(log) if said.startswith(_AWAY)]


def _edits(folder: Path) -> bytes:
    """Return the changes of a work tree without a commit, as a patch; empty where it cannot be read."""
    with suppress(AccordError, OSError):
        if (folder / ".git").exists():
            own = Git(folder, config=read_settings(folder).inert)
            return extract(folder, "HEAD").patch if own("status", "--porcelain", "-z") else b""
    return b""


def keep_beside(git: Git, start: str, before: Beside, folder: Path, secrets: Sequence[bytes]) -> Iterator[str]:
    """Write the new work beside a tree into a folder; yield each place, with the command that brings it back.

    Commits count that descend from the start and are in none of its places, nor in HEAD. Raises GitFailed.
    """
    now = look_beside(git, [path for path in before.edits if not path.startswith("/")])
    places = _new_places(git, start, before, now)
    if places and not _holds(git, start, places, secrets):
        (folder / BUNDLE).unlink(missing_ok=True)
        _bundle(git, start, list(places.values()), folder / BUNDLE)
        for number, (name, commit) in enumerate(places.items(), 1):
            command = f"git fetch {BUNDLE} {_KEPT}/{number}"
            yield f"Work on {name} is not in the changes. Commit {commit[:_SHORT]} is in {BUNDLE}: `{command}`."
    elif places:
        yield f"Work on {', '.join(places)} is not in the changes. It holds a secret of the job, so it is not kept."
    new = {place: patch for place, patch in now.edits.items() if patch and patch != before.edits.get(place)}
    for number, (place, patch) in enumerate(new.items(), 1):
        name = f"beside-{number}.patch"
        if any(secret in patch for secret in secrets):
            yield f"Changes in {place} are not in the patch. They hold a secret of the job, so they are not kept."
            continue
        write_new(folder / name, patch)
        yield f"Changes in {place} are not in the patch. They are in {name}: `git -C {place} apply PATH/{name}`."


def write_new(path: Path, content: bytes) -> None:
    """Write a file in the place of whatever is there, and follow no link. Raises OSError."""
    path.unlink(missing_ok=True)
    with open(path, "xb") as file:
        file.write(content)


def _new_places(git: Git, start: str, before: Beside, now: Beside) -> dict[str, str]:
    known = set(before.commits.values())
    head = git.attempt("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode().strip()
    covered, places = [head] if head else [], dict[str, str]()
    for name, commit in reversed(list(now.commits.items())):
        is_new = commit not in known and _is_in(git, start, commit)
        if is_new and not any(_is_in(git, commit, other) for other in covered):
            covered.append(commit)
            places[name] = commit
    return dict(list(places.items())[:_MOST_PLACES])


def _is_in(git: Git, older: str, newer: str) -> bool:
    return git.attempt("merge-base", "--is-ancestor", older, newer).returncode == 0


def _holds(git: Git, start: str, places: Mapping[str, str], secrets: Sequence[bytes]) -> bool:
    """Return whether a content that these commits have, and the start has not, holds one of the secrets."""
    for commit in git.line("rev-list", *places.values(), f"^{start}").split() if secrets else ():
        for _, new, old in contents_of(git, changes_between(git, start, commit)):
            if any(secret in (new or b"") and secret not in (old or b"") for secret in secrets):
                return True
    return False


def _bundle(git: Git, start: str, commits: Sequence[str], path: Path) -> None:
    """Write commits since the start into a bundle, each under a name of its own."""
    refs = [f"{_KEPT}/{number}" for number, _ in enumerate(commits, 1)]
    try:
        for ref, commit in zip(refs, commits, strict=True):
            git("update-ref", ref, commit)
        git("bundle", "create", "--quiet", str(path), *refs, f"^{start}")
    finally:
        for ref in refs:
            with suppress(GitFailed):
                git("update-ref", "-d", ref)
