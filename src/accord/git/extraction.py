"""The patch of a work tree since its base, for ``accord patch``: taken from an index that vanishes."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from accord.core.errors import Refused, WrongUsage
from accord.core.frozen import Frozen
from accord.git.filters import LFS, Settings, is_pointer_file, read_settings, stays_as_stored
from accord.git.index import (
    IndexEntry,
    add_files,
    blobs_of,
    entries_of,
    is_only_here,
    linked_work_trees,
    submodules,
    unfinished_merge,
    untracked_files,
)
from accord.git.leaving_out import (
    BY_FILTER,
    ELSEWHERE,
    STATE,
    UNREADABLE,
    UNSEEN,
    ChangedPath,
    own_state,
    reasons_to_leave_out,
    remarks_on,
)
from accord.git.patch_text import marker_findings
from accord.git.patches import changes_between, difference, filtered_findings, filters_at, paths_with_new_markers
from accord.git.paths import escaping_links, is_folder
from accord.git.program import SUBMODULE, UNTRUSTED, Git, join_nul, split_nul


class Extracted(Frozen):
    """A patch, and what to say about it."""

    patch: bytes
    remarks: tuple[str, ...] = ()


def extract(
    work_tree: Path,
    base: str,
    *,
    without: Path | None = None,
    state_files: Sequence[str] = (),
    is_trusted: bool = True,
) -> Extracted:
    """Return the difference between the merge base with ``base`` and the work tree, as git's binary-safe patch.

    The index counts as it is. Left out and named are changes that its flags hide, new state files of agents
    (``state_files`` are their patterns), changed files with a filter, and files that git cannot store; ignored files
    and the file ``without`` are not named. Raises WrongUsage for an unknown base, and Refused for a merge that has not
    come to its end. From a repository that is not trusted, git fetches nothing.
    """
    with _stage_changes(work_tree, base, without, state_files, is_trusted=is_trusted) as (scratch, start, remarks):
        tree = scratch.line("write-tree")
        changes = changes_between(scratch, f"{start}^{{tree}}", tree)
        findings = [
            *marker_findings(paths_with_new_markers(scratch, changes)),
            *escaping_links(scratch, start, tree),
        ]
        said = (f"{finding.code}: {finding.message}" for finding in findings)
        return Extracted(difference(scratch, start, tree, changes), (*remarks, *said))


def changed_paths(work_tree: Path, base: str, state_files: Sequence[str]) -> list[tuple[str, str, str]]:
    """List changes of the work tree since the merge base with ``base``: git's letter (A, M, D, R, T), path, old one."""
    with _stage_changes(work_tree, base, None, state_files) as (scratch, start, _):
        fields = iter(split_nul(scratch("diff-index", "--cached", "--name-status", "-z", "-M", start)))
        found = []
        for letter in fields:
            old = next(fields) if letter[0] in "RC" else ""
            found.append((letter[0], next(fields), old))
        return found


@contextmanager
def _stage_changes(
    work_tree: Path, base: str, without: Path | None, state_files: Sequence[str], *, is_trusted: bool = True
) -> Iterator[tuple[Git, str, list[str]]]:
    """Put all that the work tree has since its merge base into a copy of its index; yield git, base and remarks."""
    git = Git(work_tree, {} if is_trusted else UNTRUSTED)
    start, settings = merge_base(git, base), read_settings(work_tree)
    git = replace(git, directory=Path(git.line("rev-parse", "--show-toplevel")))
    if what := unfinished_merge(git):
        hint = "Resolve the conflicts and commit, or abort it, then take the patch again."
        raise Refused(f"conflict-markers: {what}.", hint=hint)
    with _scratch_index(git, settings) as scratch:
        own = git.path_of("index")
        if own.is_file():
            shutil.copy2(own, dict(scratch.environment)["GIT_INDEX_FILE"])  # its time tells git what may have changed
        else:
            scratch("read-tree", "HEAD")
        staged = changes_between(scratch, start, scratch.line("write-tree"))
        added = {each.path for each in staged if each.mode == SUBMODULE and not each.was.strip("0")}
        if left := added and added - submodules(scratch):  # repositories of which the agent added the id alone
            scratch("update-index", "--force-remove", "-z", "--stdin", data=join_nul(left))
        excluded = {*_take_out(scratch)}
        if without:
            excluded.add(os.path.relpath(without.resolve(), scratch.directory.resolve()))
        entries = entries_of(scratch)
        _clear_flags(scratch, entries)
        untracked, nested = untracked_files(scratch, git, "--exclude-standard")
        clones = tuple(f"{folder}/" for folder, is_cloned in nested.items() if is_cloned)
        cloned = {path: ELSEWHERE for path in untracked if path.startswith(clones)}
        listed = dict.fromkeys([*untracked, *split_nul(scratch("ls-files", "--modified", "-z"))])
        changed = [path for path in listed if path not in excluded and path not in cloned]
        kept_back = cloned | _stage_files(scratch, start, entries, changed, state_files)
        kept_back |= _put_back_commits(scratch, start, state_files)
        if settings.has_patterns:
            hidden = {path: UNSEEN for path in _hidden_by_settings(scratch, git) if path not in excluded}
            kept_back = hidden | kept_back
        yield scratch, start, remarks_on(kept_back)


def _clear_flags(scratch: Git, entries: Mapping[str, IndexEntry]) -> None:
    """Let git see changes behind the flags of its index, except that a sparse checkout lacks a file."""
    hidden = {path: entry for path, entry in entries.items() if entry.is_hidden}
    shown = [path for path, entry in hidden.items() if not entry.is_sparse or os.path.lexists(scratch.directory / path)]
    if shown:
        for option in ("--no-assume-unchanged", "--no-skip-worktree"):
            scratch("update-index", option, "-z", "--stdin", data=join_nul(shown))


def _hidden_by_settings(scratch: Git, real: Git) -> list[str]:
    """Return the ignored paths that no ``.gitignore`` of the tree hides, without other work trees of ``real``."""
    ignored = split_nul(scratch("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"))
    asked = join_nul(f"./{path}" for path in ignored)
    words = ("check-ignore", "--no-index", "--verbose", "-z", "--stdin")
    fields = os.fsdecode(scratch.attempt(*words, data=asked).stdout if asked else b"").split("\0")
    rules = zip(fields[::4], fields[3::4], strict=False)  # the file of each rule, and the path
    hidden = [path.removeprefix("./") for file, path in rules if Path(file).name != ".gitignore"]
    trees = linked_work_trees(real) if hidden else ()
    return [path for path in hidden if not any(f"{tree}/".startswith(path) for tree in trees)]


def _stage_files(
    scratch: Git, start: str, entries: Mapping[str, IndexEntry], changed: Sequence[str], state_files: Sequence[str]
) -> dict[str, str]:
    """Bring changed paths of the work tree into the index; return those that are left out, with the reason."""
    files = [path for path in changed if path in entries and entries[path].mode != SUBMODULE]
    if replaced := {path for path in files if is_folder(os.fspath(scratch.directory / path))}:
        scratch("update-index", "--force-remove", "-z", "--stdin", data=join_nul(replaced))
        changed = [path for path in changed if path not in replaced]
    as_stored, kept_back = _find_not_added(scratch, start, entries, changed, state_files)
    changed = [path for path in changed if path not in as_stored]
    kept_back |= {path: UNSEEN for path in changed if path in entries and entries[path].is_hidden}
    failed = add_files(scratch, [path for path in changed if path not in kept_back])
    return kept_back | dict.fromkeys(failed, UNREADABLE)


def _take_out(scratch: Git) -> list[str]:
    """Return the paths that were taken out of the index and are as HEAD has them: a new file there is another one."""
    fields = split_nul(scratch("diff-index", "--cached", "--diff-filter=D", "--no-renames", "-z", "HEAD"))
    gone = {path: meta.split()[2] for meta, path in zip(fields[::2], fields[1::2], strict=True)}
    made = blobs_of(scratch, [path for path in gone if (scratch.directory / path).is_file()])
    return [path for path, blob in made.items() if blob == gone[path]]


def _find_not_added(
    scratch: Git, start: str, entries: Mapping[str, IndexEntry], changed: Sequence[str], state_files: Sequence[str]
) -> tuple[set[str], dict[str, str]]:
    """Return the changed paths that are as the index has them already, and those that are left out, with the reason."""
    filtered = filters_at(scratch, start, changed)
    files = [path for path, name in filtered.items() if name == LFS and path in entries]
    stored = zip(files, scratch.contents([entries[path].blob for path in files]), strict=True)
    as_stored = {path for path, content in stored if stays_as_stored(scratch.directory / path, content)}
    facts = []
    for path in (path for path in changed if path not in as_stored):
        with suppress(OSError):  # of a path that is gone
            status = (scratch.directory / path).lstat()
            is_filtered = path in filtered and not is_pointer_file(scratch.directory / path)
            only_here = stat.S_ISDIR(status.st_mode) and is_only_here(scratch.directory / path)
            mode, size, is_new = status.st_mode, status.st_size, path not in entries
            facts.append(ChangedPath(path, mode, size, is_new, is_filtered=is_filtered, is_only_here=only_here))
    return as_stored, reasons_to_leave_out(facts, state_files)


def _put_back_commits(scratch: Git, start: str, state_files: Sequence[str]) -> dict[str, str]:
    """Put files back that must not have been committed or staged; return them with the reason.

    These are new state files of agents, and contents that are not what their filter stores.
    """
    changes = changes_between(scratch, start, scratch.line("write-tree"))
    left = dict.fromkeys(filtered_findings(scratch, start, changes), BY_FILTER)
    left |= dict.fromkeys(sorted(own_state((each.path for each in changes if each.is_new), state_files)), STATE)
    made = {each.blob for each in changes if each.path in left}
    moved = [each.path for each in changes if each.is_removal and each.was in made]
    left |= dict.fromkeys(sorted(own_state(moved, state_files)), STATE)
    if entries := join_nul(f"{each.was_mode} {each.was}\t{each.path}" for each in changes if each.path in left):
        scratch("update-index", "-z", "--index-info", data=entries)
    return left


def merge_base(git: Git, base: str) -> str:
    """Name the commit at which this checkout left ``base``. Raises WrongUsage where no such commit is known."""
    if git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}").returncode:
        if git.attempt("rev-parse", "--git-dir").returncode:
            raise WrongUsage(f"`{git.directory}` is not a git repository.", hint="Run this in the agent's work tree.")
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
    objects = git.path_of("objects")
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
        yield replace(git, environment=environment, config=config)
