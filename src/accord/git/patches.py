"""Patches: taken from an agent's work tree, looked at before they are trusted, and put on a branch by git itself.

Source: workflow contracts, "ImplementorResult". The caller's index, work tree and HEAD are never touched.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, BrokenContract, Refused, WrongUsage, sentence
from accord.core.findings import Finding, warning
from accord.git.filters import (
    LFS,
    filtered_content,
    filters_of,
    is_pointer_file,
    stays_as_stored,
)
from accord.git.patch_text import REBUILD_HINT, absolute_names, header_names
from accord.git.paths import path_patterns, some_of
from accord.git.program import UNTRUSTED, Git, add_files, own_repository, split_nul, submodules, untracked_files
from accord.git.settings import read_settings
from accord.git.sizes import MIB, MOST_FILE_BYTES, MOST_TOTAL_BYTES, too_much
from accord.git.unfinished import marked_files, marker_findings, stopped_merge, unmerged_paths
from accord.text.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from accord.git.program import Git
    from accord.git.settings import Settings


AGENT_STATE_FILES = (".accord/", ".aider*", ".claude/", ".codex/", ".gemini/", ".opencode/", "/*.log")
"""Where agents and accord keep their state. A new file there counts only if it was committed or staged."""
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


@dataclass(frozen=True)
class Extracted:
    """A patch, and what to say about it."""

    patch: bytes
    remarks: tuple[str, ...] = ()


def extract_patch(work_tree: Path, base: str, *, without: Path | None = None) -> bytes:
    """Return the patch of a work tree, without what there is to say about it (see ``extract``)."""
    return extract(work_tree, base, without=without).patch


def extract(work_tree: Path, base: str, *, without: Path | None = None, is_trusted: bool = True) -> Extracted:
    """Return the difference between the merge base with ``base`` and the work tree, as git's binary-safe patch.

    The index counts as it is, and files that its flags hide stay hidden. Left out are ignored files, new
    state files of agents, changed files with a filter, files that git cannot store, and the file ``without``. Raises
    WrongUsage for an unknown base, and Refused for a merge that has not come to its end. From a repository that is not
    trusted, git fetches nothing.
    """
    with _staged(work_tree, base, without, is_trusted=is_trusted) as (scratch, start, remarks):
        patch = difference(scratch, start, scratch.line("write-tree"))
        marked = [f"conflict-markers: {finding.message}" for finding in marker_findings(marked_files(patch))]
        return Extracted(patch, (*remarks, *marked))


def changed_paths(work_tree: Path, base: str) -> list[tuple[str, str, str]]:
    """List changes of the work tree since the merge base with ``base``: git's letter (A, M, D, R, T), path, old one."""
    with _staged(work_tree, base) as (scratch, start, _):
        fields = iter(split_nul(scratch("diff-index", "--cached", "--name-status", "-z", "-M", start)))
        found = []
        for letter in fields:
            old = next(fields) if letter[0] in "RC" else ""
            found.append((letter[0], next(fields), old))
        return found


@contextmanager
def _staged(
    work_tree: Path, base: str, without: Path | None = None, *, is_trusted: bool = True
) -> Iterator[tuple[Git, str, list[str]]]:
    """Put all that the work tree has since its merge base into an index; yield git with that index, base and remarks.

    The index begins as a copy of the caller's, so that what was staged or hidden there counts.
    """
    git = Git(work_tree, {} if is_trusted else UNTRUSTED)
    start, settings = merge_base(git, base), read_settings(work_tree)
    _refuse_unfinished(replace(git, directory=Path(git.line("rev-parse", "--show-toplevel"))))
    with _scratch_index(git, settings) as scratch:
        own = Path(git.line("rev-parse", "--path-format=absolute", "--git-path", "index"))
        if own.is_file():
            shutil.copy2(own, dict(scratch.environment)["GIT_INDEX_FILE"])  # its time tells git what may have changed
        else:
            scratch("read-tree", "HEAD")
        _forget_new_repositories(scratch, start)
        place = without.resolve() if without else None
        top = scratch.directory.resolve()
        excluded = [str(place.relative_to(top))] if place and place.is_relative_to(top) else []
        excluded += _taken_out(scratch)
        untracked, _ = untracked_files(scratch, git, "--exclude-standard")
        changed = [*untracked, *split_nul(scratch("ls-files", "--modified", "-z"))]
        skipped = {*excluded}
        changed = [path for path in dict.fromkeys(changed) if path not in skipped]
        kept_back = _not_stored(scratch, start, changed, untracked)
        failed = add_files(scratch, [path for path in changed if path not in kept_back])
        left_out = dict[str, list[str]]()
        for path, reason in [*kept_back.items(), *((path, UNREADABLE) for path in failed)]:
            if reason:
                left_out.setdefault(reason, []).append(path)
        for path in _filtered_commits(scratch, start):
            left_out.setdefault(BY_FILTER, []).append(path)
        yield scratch, start, [f"{reason}: {some_of(paths)}." for reason, paths in left_out.items()]


STATE = "New state files of agents were left out"
BY_FILTER = "Changed files with a filter, such as Git LFS, were left out"
TOO_LARGE = f"Files of more than {MOST_FILE_BYTES // MIB} MiB, which GitHub refuses, were left out"
UNREADABLE = "Files that git cannot store were left out"


def _taken_out(scratch: Git) -> list[str]:
    """Return the paths that were taken out of the index and are as HEAD has them: a new file there is another one."""
    fields = split_nul(scratch("diff-index", "--cached", "--diff-filter=D", "--no-renames", "-z", "HEAD"))
    gone = {path: meta.split()[2] for meta, path in zip(fields[::2], fields[1::2], strict=True)}
    files = [path for path in gone if (scratch.directory / path).is_file() and "\n" not in path]
    made = [scratch.attempt("hash-object", "--", path).stdout.decode().strip() for path in files]
    return [path for path, blob in zip(files, made, strict=True) if blob == gone[path]]


def _refuse_unfinished(git: Git) -> None:
    """Refuse a work tree in which a merge waits to be brought to its end. Raises Refused."""
    paths, what = unmerged_paths(git), stopped_merge(git)
    if paths or what:
        message = f"conflict-markers: {what or 'a merge'} has not come to its end"
        raise Refused(
            f"{message}, with conflicts in {some_of(paths)}." if paths else f"{message}.",
            hint="Resolve the conflicts and commit, or abort it, then take the patch again.",
        )


def _not_stored(scratch: Git, start: str, changed: Sequence[str], untracked: Sequence[str]) -> dict[str, str]:
    """Return the changed paths that must not be added, with the reason; it is empty for what is as it is stored."""
    is_state = path_patterns(AGENT_STATE_FILES).match_file
    found = dict.fromkeys(filter(is_state, untracked), STATE)
    filtered = filters_at(scratch, start, [path for path in changed if path not in found])
    stored = dict(zip(filtered, scratch.contents([f":{path}" for path in filtered]), strict=True))
    for path in filtered:
        file = scratch.directory / path
        if not is_pointer_file(file) and file.is_file() and not file.is_symlink():
            is_same = filtered[path] == LFS and stays_as_stored(file, stored[path])
            found[path] = "" if is_same else BY_FILTER
    sizes = {path: _size_of(scratch.directory / path) for path in changed if path not in found}
    found |= {path: TOO_LARGE for path, size in sizes.items() if size > MOST_FILE_BYTES}
    if sum(sizes.get(path, 0) for path in untracked if path not in found) > MOST_TOTAL_BYTES:
        raise too_much(max(untracked, key=lambda path: sizes.get(path, 0)))
    return found


def _size_of(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def filters_at(scratch: Git, start: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the filters that the attributes of a commit name for these paths."""
    if not paths:
        return {}
    with _own_index(scratch) as inside:
        inside("read-tree", start)
        return filters_of(inside, paths)


def filtered_findings(git: Git, before: str, changes: Sequence[Change]) -> Iterator[Finding]:
    """Find changes with bytes where the commit before stores a pointer, an encrypted blob, or a filter's output."""
    left = [change for change in changes if change.leaves_content]
    filtered = filters_at(git, before, [change.path for change in left])
    for change, new, old in contents_of(git, left):
        finding = filtered_content(change.path, new or b"", old, filtered.get(change.path, ""))
        if finding:
            yield finding


def _filtered_commits(scratch: Git, start: str) -> list[str]:
    """Put files back whose committed content is not what their filter stores; return them."""
    changes = changes_between(scratch, start, scratch.line("write-tree"))
    filtered = filters_at(scratch, start, [change.path for change in changes if change.leaves_content])
    found = []
    for change, new, old in contents_of(scratch, [each for each in changes if each.path in filtered]):
        if filtered_content(change.path, new or b"", old, filtered[change.path]):
            found.append(change.path)
            kept = scratch("ls-tree", "-z", start, "--", change.path).split(b"\t")[0].split()
            entry = b" ".join(kept[::2]) or b"0 " + change.was.encode()
            scratch("update-index", "-z", "--index-info", data=entry + b"\t" + os.fsencode(change.path))
    return found


def _forget_new_repositories(scratch: Git, start: str) -> None:
    """Take the repositories that the agent committed by their id alone out of the index, except submodules."""
    known = submodules(scratch)
    made = [c.path for c in changes_between(scratch, start, "HEAD") if c.mode == SUBMODULE and not c.was.strip("0")]
    left = "\0".join(path for path in made if path not in known).encode("utf-8", "surrogateescape")
    if left:
        scratch("update-index", "--force-remove", "-z", "--stdin", data=left)


def difference(git: Git, start: str, tree: str) -> bytes:
    """Write a tree against a commit, in UTF-8: files whose text is not are written as binary ones.

    Attributes of a git directory of our own win over those of the tree, which may call binary files texts.
    """
    arguments = ("diff-tree", "-r", "-p", "--binary", "--full-index", "-M", f"{start}^{{tree}}", tree)
    objects = git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
    with own_repository([objects], git.line("rev-parse", "--show-object-format")) as own:
        inside = replace(own, config={"core.quotePath": "true"})
        patch = inside(*arguments)
        for lines in (_binary_attributes(inside, patch, start, tree), "* -diff\n"):
            if _is_utf8(patch):
                return patch
            (own.directory / "info/attributes").write_bytes(os.fsencode(lines))
            patch = inside(*arguments)
        return patch


def _binary_attributes(git: Git, patch: bytes, start: str, tree: str) -> str:
    """Return attributes that make the files binary whose contents are not UTF-8."""
    if _is_utf8(patch):
        return ""
    lines = []
    for change, new, old in contents_of(git, changes_between(git, f"{start}^{{tree}}", tree)):
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
def _scratch_index(git: Git, settings: Settings) -> Iterator[Git]:
    """Give git an index and an object store that vanish, on top of the repository's own objects."""
    top = Path(git.line("rev-parse", "--show-toplevel"))
    objects = git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
    with tempfile.TemporaryDirectory(prefix="accord-patch-") as scratch:
        environment = {
            **dict(git.environment),
            "GIT_INDEX_FILE": f"{scratch}/index",
            "GIT_OBJECT_DIRECTORY": f"{scratch}/objects",
        }
        Path(scratch, "objects/info").mkdir(parents=True)
        Path(scratch, "objects/info/alternates").write_bytes(os.fsencode(f"{objects}\n"))
        files = {"core.attributesFile": settings.attributes[0], "core.excludesFile": settings.ignores[0]}
        for name, text in files.items():
            Path(scratch, name).write_bytes(text)
        config = {**settings.without_filters, **{name: f"{scratch}/{name}" for name in files}}
        yield replace(git, directory=top, environment=environment, config=config)


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
