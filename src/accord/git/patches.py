"""Patches: written, looked at before they are trusted, and put on a branch by git itself.

Source: workflow contracts, "ImplementorResult". The caller's index, work tree and HEAD are never touched.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from accord.core.errors import AccordError, BrokenContract, Refused
from accord.core.findings import Finding, names_of, sentence
from accord.core.frozen import Frozen
from accord.git.filters import filtered_content, filters_of, pointers_replaced
from accord.git.patch_text import REBUILD_HINT, absolute_names, has_new_markers, header_names
from accord.git.program import SUBMODULE, Git, join_nul, own_repository, split_nul

_GONE = "000000"
_BASES_TRIED = 100
"""How far back the commit is searched that a patch was made on, when the branch has lost files of it."""

_INDEX = re.compile(rb"^index [0-9a-f]{7,64}\.\.(?!0+\b)([0-9a-f]{7,64})\b", re.MULTILINE)
"""The id of a content that a patch makes. No line of a file begins like this in a patch."""

_FILES, _NEW_FILE = re.compile(rb"^(?=diff --git )", re.MULTILINE), re.compile(rb"^new file mode", re.MULTILINE)
_MOVED = (b"rename from", b"copy from")
_SIDE = re.compile(r"~[0-9a-f]{40,64}\Z")
"""The end that git adds to the name of a file where the other side has a folder."""


class PatchConflict(Refused):
    """The patch does not fit what the branch has by now; the message names ``paths``, as far as they are known."""

    def __init__(self, message: str, *, hint: str = "", paths: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.paths = tuple(paths)


class Change(Frozen):
    """A path that a commit changes: its new mode, ``000000`` without a file, and the blob before, zeros without one."""

    path: str
    mode: str
    blob: str
    was: str
    was_mode: str = _GONE

    @property
    def is_new(self) -> bool:
        """Whether nothing was there before."""
        return self.was_mode == _GONE and not self.is_removal

    @property
    def is_removal(self) -> bool:
        """Whether nothing is there afterwards."""
        return self.mode == _GONE

    @property
    def leaves_file(self) -> bool:
        """Whether a file is there afterwards, no link and no submodule: git filters only files."""
        return self.mode.startswith("100")

    @property
    def leaves_content(self) -> bool:
        """Whether something is there afterwards that has a content: no submodule, which is a commit of elsewhere."""
        return self.mode not in (_GONE, SUBMODULE)


def filters_at(scratch: Git, start: str, paths: Sequence[str], changes: Iterable[Change] = ()) -> dict[str, str]:
    """Return the filters that the attributes of a commit, with or without these changes, name for these paths."""
    if not paths:
        return {}
    with own_index(scratch) as inside:
        inside("read-tree", start)
        found = filters_of(inside, paths)
        own = (each for each in changes if each.path.split("/")[-1] == ".gitattributes")
        if entries := join_nul(f"{each.mode} {each.blob}\t{each.path}" for each in own):
            inside("update-index", "-z", "--index-info", data=entries)
            found = filters_of(inside, paths) | found
        return found


def filtered_findings(git: Git, at: str, changes: Sequence[Change], own: Iterable[Change] = ()) -> dict[str, Finding]:
    """Find changed files that a commit, or the attributes among ``own`` changes, would store in another form."""
    left = [change for change in changes if change.leaves_file]
    named = filters_at(git, at, [change.path for change in left], own)
    return {
        change.path: finding
        for change, new, old in contents_of(git, left)
        if (finding := filtered_content(change.path, new or b"", old, named.get(change.path, "")))
    }


def filtered_in(patch: bytes, directory: Path) -> list[Finding]:
    """Find them in a patch that was made in the checkout of ``directory``; elsewhere, as far as the patch tells."""
    checkout = Git(directory)
    head = checkout.commit_of("HEAD")
    asked = ("grep", "--quiet", "-F", "filter=", head, "--", "*.gitattributes")
    if b"filter=" in patch or (head and checkout.attempt(*asked).returncode == 0):
        with own_repository(checkout if head else None) as own, suppress(AccordError):
            new = b"".join(part for part in _FILES.split(patch) if _NEW_FILE.search(part))
            base = head or _nameless(own, own.line("hash-object", "-t", "tree", "-w", "--stdin", data=b""))
            start, tree = own_base(own, patch if head else new, base)
            changes = changes_between(own, start, tree) if start else []
            if changes and (found := filtered_findings(own, start, changes, changes)):
                return list(found.values())
    return list(pointers_replaced(patch))


def difference(git: Git, start: str, tree: str, changes: Sequence[Change]) -> bytes:
    """Write the changes of a tree from a commit, in UTF-8: files whose text is not are written as binary ones.

    Attributes of a git directory of our own win over those of the tree, which may call binary files texts.
    """
    paths = [change.path for change in changes]
    below = {path[:end] for path in paths for end, character in enumerate(path) if character == "/"}
    renames = "--no-renames" if below & {*paths} else "-M"  # git applies no rename away from what is a folder then
    arguments = ("diff-tree", "-r", "-p", "--binary", "--full-index", renames, f"{start}^{{tree}}", tree)
    with own_repository(git) as own:
        inside = replace(own, config={"core.quotePath": "true"})
        patch = inside(*arguments)
        for lines in (_binary_attributes(inside, patch, changes), "* -diff\n"):
            if _is_utf8(patch):
                return patch
            (own.directory / "info/attributes").write_bytes(os.fsencode(lines))
            patch = inside(*arguments)
        return patch


def _binary_attributes(git: Git, patch: bytes, changes: Iterable[Change]) -> str:
    """Return attributes that make the files binary whose contents are not UTF-8."""
    if _is_utf8(patch):
        return ""
    lines = []
    for change, new, old in contents_of(git, changes):
        if not (_is_utf8(new or b"") and _is_utf8(old or b"")):
            escaped = re.sub(rb"([\\*?\[])", rb"\\\1", os.fsencode(change.path))
            quoted = b"".join(b"\\%03o" % byte if byte in b'"\\' or byte < 33 else bytes([byte]) for byte in escaped)
            lines.append(b'"/' + quoted + b'" -diff\n')
    return b"".join(lines).decode("utf-8", "surrogateescape")


def _is_utf8(patch: bytes) -> bool:
    try:
        patch.decode()
    except UnicodeDecodeError:
        return False
    return True


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
    with own_index(git) as inside:
        inside("read-tree", onto)
        applied = inside.attempt("apply", "--cached", "--3way", "--whitespace=nowarn", "-", data=patch)
        if applied.returncode:
            conflicts = [entry.partition("\t")[2] for entry in split_nul(inside("ls-files", "--unmerged", "-z"))]
            merged = "" if conflicts or not base else _merge_patch(inside, patch, onto, base)
            if merged:
                return merged
            raise _unfit(conflicts, applied.stderr.decode("utf-8", "replace"))
        return inside.line("write-tree")


@contextmanager
def own_index(git: Git) -> Iterator[Git]:
    """Give git an index of its own for this block."""
    with tempfile.TemporaryDirectory(prefix="accord-index-") as scratch:
        yield replace(git, environment={**dict(git.environment), "GIT_INDEX_FILE": f"{scratch}/index"})


def _merge_patch(inside: Git, patch: bytes, onto: str, base: str) -> str:
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
    """Merge two trees or commits by the changes since a third; return the new tree, conflicting paths, or neither."""
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
    with own_index(git) as inside:
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
    reasons = dict.fromkeys(line.removeprefix("error: ") for line in said.splitlines() if line.startswith("error: "))
    message = sentence(f"The patch cannot be applied: {names_of([*reasons], 5) or 'git cannot read it'}")
    return BrokenContract.of(Finding("patch-invalid", message, "/patch", hint=REBUILD_HINT))


def changes_between(git: Git, before: str, after: str) -> list[Change]:
    """List what differs between two trees or commits, renames as a removal and an addition."""
    fields = split_nul(git("diff-tree", "-r", "-z", "--no-renames", before, after))
    entries = zip(fields[::2], fields[1::2], strict=True)
    split = ((path, *meta[1:].split()) for meta, path in entries)
    return [Change(path, mode, new, old, old_mode) for path, old_mode, mode, old, new, _ in split]


def paths_with_new_markers(git: Git, changes: Iterable[Change]) -> Iterator[str]:
    """Yield the changed paths that have more markers of a conflict than before."""
    for change, new, old in contents_of(git, changes):
        if has_new_markers(old or b"", new or b""):
            yield change.path


def contents_of(git: Git, changes: Iterable[Change]) -> Iterator[tuple[Change, bytes | None, bytes | None]]:
    """Yield the changes that leave a content, each with its new and old one; None for a file that is not there."""
    left = [change for change in changes if change.leaves_content]
    contents = git.contents([blob for change in left for blob in (change.blob, change.was)])
    yield from zip(left, contents, contents, strict=True)
