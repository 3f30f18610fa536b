"""Patches: taken from an agent's work tree, looked at before they are trusted, and put on a branch by git itself.

Source: workflow contracts, "ImplementorResult". The caller's index, work tree and HEAD are never touched.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, BrokenContract, Refused, WrongUsage, sentence
from accord.core.findings import Finding, warning
from accord.git.patch_text import REBUILD_HINT, absolute_names, header_names
from accord.git.paths import path_patterns
from accord.git.program import Git, split_nul, stage_all, submodules
from accord.git.sizes import check_sizes
from accord.text.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from accord.git.program import Git


AGENT_STATE_FILES = (".accord/", ".aider*", ".claude/", ".codex/", ".gemini/", ".opencode/", "*.log")
"""State files of agents and of accord; they count only when the repository tracks them already."""
SUBMODULE = "160000"
"""The mode of an entry that is a commit of another repository."""

_GONE = "000000"
_BASES_TRIED = 100
"""How far back the commit is searched that a patch was made on, when the branch has lost files of it."""

_INDEX = re.compile(rb"^index [0-9a-f]{7,64}\.\.(?!0+\b)([0-9a-f]{7,64})\b", re.MULTILINE)
"""The id of a content that a patch makes. No line of a file begins like this in a patch."""

_MOVED = (b"rename from", b"copy from")
_MISSED = re.compile(r"error: patch failed: (.+):(\d+)$")
_NOT_FIT = re.compile(r"error: (.+): (does not exist in index|already exists in index|does not match index)$")
_CORRUPT = re.compile(r"error: (?:corrupt (?:binary )?patch|patch fragment without header) at line (\d+)")
_WORDS = {
    "does not exist in index": "does not exist",
    "already exists in index": "exists already",
    "does not match index": "is another version",
}
_SIDE = re.compile(r"~[0-9a-f]{40,64}\Z")
"""The end that git adds to the name of a file where the other side has a folder."""


class PatchConflict(Refused):
    """The patch does not fit what the branch has by now; the message names ``paths``, as far as they are known."""

    def __init__(self, message: str, *, hint: str = "", paths: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.paths = tuple(paths)


@dataclass(frozen=True)
class Change:
    """A path that a commit changes: its new mode, ``000000`` without a file, and the blob before, zeros without one."""

    path: str
    mode: str
    blob: str
    was: str

    @property
    def is_removal(self) -> bool:
        """Whether nothing is there afterwards."""
        return self.mode == _GONE

    @property
    def leaves_content(self) -> bool:
        """Whether something is there afterwards that has a content: no submodule, which is a commit of elsewhere."""
        return self.mode not in (_GONE, SUBMODULE)


def extract_patch(work_tree: Path, base: str, *, without: Path | None = None) -> bytes:
    """Return the difference between the merge base with ``base`` and the work tree, as git's binary-safe patch.

    Ignored files, agent artifacts and the file ``without`` are left out. Raises WrongUsage for an unknown base.
    """
    with _staged(work_tree, base, without) as (scratch, start):
        return difference(scratch, start)


def changed_paths(work_tree: Path, base: str) -> list[tuple[str, str, str]]:
    """List changes of the work tree since the merge base with ``base``: git's letter (A, M, D, R, T), path, old one."""
    with _staged(work_tree, base) as (scratch, start):
        fields = iter(split_nul(scratch("diff-index", "--cached", "--name-status", "-z", "-M", start)))
        found = []
        for letter in fields:
            old = next(fields) if letter[0] in "RC" else ""
            found.append((letter[0], next(fields), old))
        return found


@contextmanager
def _staged(work_tree: Path, base: str, without: Path | None = None) -> Iterator[tuple[Git, str]]:
    """Put all that the work tree has since its merge base into an index; yield git with that index, and the base."""
    git = Git(work_tree)
    start = merge_base(git, base)
    with _scratch_index(git) as scratch:
        scratch("read-tree", "HEAD")
        _forget_new_repositories(scratch, start)
        place = without.resolve() if without else None
        top = scratch.directory.resolve()
        excluded = [str(place.relative_to(top))] if place and place.is_relative_to(top) else []
        stage_all(scratch, without=[*excluded, *check_sizes(scratch, top, known={}, state_files=AGENT_STATE_FILES)])
        unstage_state_files(scratch, start, AGENT_STATE_FILES)
        yield scratch, start


def _forget_new_repositories(scratch: Git, start: str) -> None:
    """Take the repositories that the agent committed by their id alone out of the index, except submodules."""
    known = submodules(scratch)
    made = [c.path for c in changes_between(scratch, start, "HEAD") if c.mode == SUBMODULE and not c.was.strip("0")]
    left = "\0".join(path for path in made if path not in known).encode("utf-8", "surrogateescape")
    if left:
        scratch("update-index", "--force-remove", "-z", "--stdin", data=left)


def difference(scratch: Git, start: str) -> bytes:
    """Write the index against a commit, in UTF-8: where a text is not, every file is written as a binary one."""
    arguments = ("diff-index", "--cached", "-p", "--binary", "--full-index", "-M", start)
    steady = {**dict(scratch.config), "core.quotePath": "true"}
    for extra in ({}, {"core.attributesFile": f"{dict(scratch.environment)['GIT_INDEX_FILE']}.attributes"}):
        for path in extra.values():
            Path(path).write_text("* -diff\n")
        patch = replace(scratch, config={**steady, **extra})(*arguments)
        if _is_utf8(patch):
            return patch
    raise WrongUsage(
        "A changed text is not UTF-8, and .gitattributes forbids to treat it as binary.",
        hint="Take the diff attribute off that file, or save it as UTF-8.",
    )


def _is_utf8(patch: bytes) -> bool:
    try:
        patch.decode()
    except UnicodeDecodeError:
        return False
    return True


def merge_base(git: Git, base: str) -> str:
    """Name the commit at which this checkout left ``base``. Raises WrongUsage where no such commit is known."""
    if git.attempt("rev-parse", "--git-dir").returncode:
        raise WrongUsage(f"`{git.directory}` is not a git repository.", hint="Run this in the agent's work tree.")
    if git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}").returncode:
        raise WrongUsage(
            f"`{base}` is not a commit in this repository.",
            hint="Pass a local name of the base, such as `--base origin/main`.",
        )
    found = git.attempt("merge-base", "--end-of-options", base, "HEAD")
    if found.returncode:
        raise WrongUsage(
            f'"{base}" and HEAD have no common commit here.',
            hint="Fetch more history (fetch-depth: 0) and run it again.",
        )
    return found.stdout.decode().strip()


@contextmanager
def _scratch_index(git: Git) -> Iterator[Git]:
    """Give git an index and an object store that vanish, on top of the repository's own objects."""
    top = Path(git.line("rev-parse", "--show-toplevel"))
    objects = git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
    with tempfile.TemporaryDirectory(prefix="accord-patch-") as scratch:
        environment = {
            "GIT_INDEX_FILE": f"{scratch}/index",
            "GIT_OBJECT_DIRECTORY": f"{scratch}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
        }
        Path(scratch, "objects").mkdir()
        yield replace(git, directory=top, environment=environment)


def unstage_state_files(scratch: Git, start: str, patterns: Iterable[str]) -> list[str]:
    """Take state files of agents out of an index, unless ``start`` has them already; return the paths."""
    new = split_nul(scratch("diff-index", "--cached", "--name-only", "--diff-filter=A", "--no-renames", "-z", start))
    spec = path_patterns(patterns)
    left = [path for path in new if spec.match_file(path)]
    if left:
        paths = "\0".join(left).encode("utf-8", "surrogateescape")
        scratch("update-index", "--force-remove", "-z", "--stdin", data=paths)
    return left


def apply_patch(git: Git, patch: bytes, onto: str, base: str = "") -> str:
    """Apply a patch to a commit in a bare repository; return the new tree's id.

    Falls back to a 3-way merge where the context has moved on, file by file; where files are gone, of whole trees, from
    the commit of ``base``'s history that the patch was made on. Raises PatchConflict with the paths, and BrokenContract
    with what git finds wrong with a patch that cannot be read, and for absolute names, which git makes relative.
    """
    if names := absolute_names(patch):
        message = f"The patch names `{names[0][:200]}`, an absolute path."
        hint = "Name files from the top of the repository."
        raise BrokenContract.of(Finding("patch-invalid", message, "/patch", hint=hint))
    with _own_index(git) as inside:
        inside("read-tree", onto)
        applied = inside.attempt("apply", "--cached", "--3way", "--whitespace=nowarn", "-", data=patch)
        if applied.returncode:
            conflicts = [entry.partition("\t")[2] for entry in split_nul(inside("ls-files", "--unmerged", "-z"))]
            merged = "" if conflicts or not base else _merged(inside, patch, onto, base)
            if merged:
                return merged
            raise _unfit(conflicts, applied.stderr.decode("utf-8", "replace"))
        return inside.line("write-tree")


@contextmanager
def _own_index(git: Git) -> Iterator[Git]:
    """Give git an index of its own for this block."""
    with tempfile.TemporaryDirectory(prefix="accord-index-") as scratch:
        yield replace(git, environment={**dict(git.environment), "GIT_INDEX_FILE": f"{scratch}/index"})


def _merged(inside: Git, patch: bytes, onto: str, base: str) -> str:
    """Merge what the patch makes of its own base, in its paths alone, into a commit; empty for an unknown base."""
    start, theirs = own_base(inside, patch, base)
    if not start:
        return ""
    tree, conflicts = merge_trees(inside, start, onto, theirs)
    if tree:
        named = {change.path for change in changes_between(inside, start, theirs)}
        conflicts = [change.path for change in changes_between(inside, onto, tree) if change.path not in named]
    if conflicts:
        raise _unfit(conflicts, "")
    return tree


def merge_trees(git: Git, base: str, ours: str, theirs: str) -> tuple[str, list[str]]:
    """Merge two trees or commits by the changes since a third one; return the new tree, or else the conflicting paths.

    Both are empty where git cannot merge them.
    """
    root = _nameless(git, f"{base}^{{tree}}")
    sides = [_nameless(git, f"{side}^{{tree}}", "-p", root) for side in (ours, theirs)]
    merge = git.attempt("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", *sides)
    if merge.returncode not in (0, 1):
        return "", []
    tree, *conflicts = [field for field in split_nul(merge.stdout) if field]
    return ("", [_SIDE.sub("", path) for path in conflicts]) if merge.returncode else (tree, [])


def own_base(git: Git, patch: bytes, *tips: str, is_exact: bool = False) -> tuple[str, str]:
    """Find the commit that a patch was made on, in the histories of ``tips``; return it and the tree with the patch.

    The first of the tips, or else the newest commit, counts of which the patch makes the very contents that it names,
    else, unless it must be ``is_exact``, the newest to which it applies as it is. Both values are empty without one.
    """
    if git.attempt("apply", "--numstat", "-", data=patch).returncode:
        return "", ""
    found = "", ""
    named = {line[1].decode() for line in _INDEX.finditer(patch)}
    with _own_index(git) as inside:
        for commit in _possible_bases(inside, patch, tips):
            inside("read-tree", commit)
            if inside.attempt("apply", "--cached", "--whitespace=nowarn", "-", data=patch).returncode:
                continue
            tree = inside.line("write-tree")
            made = {change.blob for change in changes_between(inside, commit, tree)}
            if all(name in made or any(blob.startswith(name) for blob in made) for name in named):
                return commit, tree
            found = found if found[0] or is_exact else (commit, tree)
    return found


def _possible_bases(git: Git, patch: bytes, tips: Sequence[str]) -> list[str]:
    """List the tips, the newest commits, and the states before older ones that change a path of the patch."""
    limits = ("--first-parent", f"--max-count={_BASES_TRIED}")
    recent = git.line("rev-list", *limits, *tips, "--").split()
    stats = split_nul(git("apply", "--numstat", "-z", "-", data=patch))
    paths = [stat.split("\t")[2] for stat in stats] + [name for key, name in header_names(patch) if key in _MOVED]
    listed = "\n".join([*tips, "--", *(path for path in paths if "\n" not in path)]).encode("utf-8", "surrogateescape")
    literal = replace(git, environment={**dict(git.environment), "GIT_LITERAL_PATHSPECS": "1"})
    parents = literal("log", *limits, "--format=%P", "--stdin", data=listed + b"\n").decode().splitlines()
    return list(dict.fromkeys([*tips, *recent, *(line.split()[0] for line in parents if line)]))


def _nameless(git: Git, tree: str, *parents: str) -> str:
    """Make a commit that exists for a merge only, of which nothing but the trees counts."""
    who = {f"GIT_{role}_{part}": "accord" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    named = replace(git, environment={**dict(git.environment), **who})
    return named.line("commit-tree", tree, *parents, "-m", "x")


def _unfit(conflicts: Sequence[str], said: str) -> AccordError:
    if conflicts:
        return PatchConflict(
            f"The patch conflicts with what the branch has in: {', '.join(dict.fromkeys(conflicts))}.",
            hint="The branch is as it was. Let the agent work on top of it.",
            paths=tuple(dict.fromkeys(conflicts)),
        )
    message = sentence(f"The patch cannot be applied: {', '.join(_reasons(said)) or 'git cannot read it'}")
    return BrokenContract.of(Finding("patch-invalid", message, "/patch", hint=REBUILD_HINT))


def _reasons(said: str) -> list[str]:
    """Return the reasons in git's messages in words of the patch, each once and at most five."""
    found = []
    for line in said.splitlines():
        if missed := _MISSED.match(line):
            found.append(f"`{missed[1]}` has other text at line {missed[2]}")
        elif known := _NOT_FIT.match(line):
            found.append(f"`{known[1]}` {_WORDS[known[2]]}")
        elif corrupt := _CORRUPT.match(line):
            found.append(f"its line {corrupt[1]} is not part of a patch")
    return list(dict.fromkeys(found))[:5]


def changes_between(git: Git, before: str, after: str) -> list[Change]:
    """List what differs between two trees or commits, renames as a removal and an addition."""
    fields = split_nul(git("diff-tree", "-r", "-z", "--no-renames", before, after))
    entries = zip(fields[::2], fields[1::2], strict=True)
    return [Change(path, meta.split()[1], meta.split()[3], meta.split()[2]) for meta, path in entries]


def secret_findings(git: Git, changes: Iterable[Change], redactor: Redactor) -> Iterator[Finding]:
    """Find new secrets of this process in changes (errors), and texts that look like tokens (warnings).

    The findings name the file, never the secret.
    """
    for change, new, old in contents_of(git, changes):
        shown = redactor(change.path)
        named = change.path if not old else ""
        if _values(redactor, new) - _values(redactor, old) or any(value in named for value in redactor.values):
            message = f"`{shown}` holds a secret of this job, so nothing is pushed."
            yield Finding("secret-in-patch", message, "/patch", hint="Revoke the secret, because an agent saw it.")
        elif _tokens(redactor, new) - _tokens(redactor, old):
            message = f"`{shown}` gets a text that looks like a token."
            hint = "Revoke it, if it is a real one."
            yield warning("token-in-patch", message, "/patch", hint=hint)


def paths_with_tokens(git: Git, changes: Iterable[Change]) -> Iterator[str]:
    """Yield the changed files that get a text which looks like a token of a known issuer; such a name is redacted."""
    by_shape = Redactor()
    for change, new, old in contents_of(git, changes):
        if _tokens(by_shape, new) - _tokens(by_shape, old):
            yield by_shape(change.path)


def contents_of(git: Git, changes: Iterable[Change]) -> Iterator[tuple[Change, bytes | None, bytes | None]]:
    """Yield the changes that leave a content, each with its new and old one; None for a file that is not there."""
    left = [change for change in changes if change.leaves_content]
    contents = git.contents([blob for change in left for blob in (change.blob, change.was)])
    yield from zip(left, contents, contents, strict=True)


def _values(redactor: Redactor, content: bytes | None) -> set[str]:
    content = content or b""
    return {value for value in redactor.values if value.encode("utf-8", "surrogateescape") in content}


def _tokens(redactor: Redactor, content: bytes | None) -> set[str]:
    text = (content or b"").decode("utf-8", "replace")
    return {text[secret.start : secret.end] for secret in redactor.find(text)}
