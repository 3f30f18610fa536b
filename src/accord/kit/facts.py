"""The facts of a sync: a consumer's repository, and what an earlier run proposed to it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract, Refused
from accord.kit.manifest import PLACE, check_version, manifest_text, read_manifest
from accord.kit.pins import with_pin
from accord.kit.plan import for_repository
from accord.kit.templates import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accord.github.client import GitHub
    from accord.github.git_data import Tree, TreeEntry
    from accord.github.models import Pull
    from accord.kit.manifest import Manifest
    from accord.kit.pins import Pin
    from accord.kit.plan import KitPlan
    from accord.kit.templates import Kit

BRANCH = "accord/sync"
REF = f"refs/heads/{BRANCH}"
SUBJECT = "Update the accord kit"


@dataclass(frozen=True)
class Consumer:
    """The newest commit of the default branch: its tree, the manifest, and the kit's files with git's modes."""

    branch: str
    commit: str
    tree: str
    manifest: Manifest
    files: Mapping[str, str]
    modes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Proposal:
    """An existing proposal: the branch (``tip`` is empty without one) and its pull requests, newest first.

    ``is_ours``: the branch has one commit of ours on top. ``is_wanted``: its files are those of the plan.
    """

    tip: str = ""
    is_ours: bool = True
    is_wanted: bool = False
    pulls: tuple[Pull, ...] = ()

    @property
    def open_pull(self) -> Pull | None:
        """The open pull request."""
        return next((pull for pull in self.pulls if pull.state == "open"), None)


def read_consumer(github: GitHub, kit: Kit, pin: Pin) -> Consumer:
    """Read a repository in five requests, two more if it has skills, and one more for each edited file.

    A file whose blob is that of a template is not fetched. Raises Refused for an archived repository, an empty one,
    and one without the kit.
    """
    repository = github.repository()
    if repository.is_archived:
        raise Refused("The repository is archived.", hint="Unarchive it, or remove it from the list.")
    commit = github.ref(f"refs/heads/{repository.default_branch}")
    if commit is None:
        raise Refused("The repository is empty.", hint="Run `accord init` in a checkout of it, and commit the files.")
    root = github.tree(commit)
    entries = _entries(github, root, [PLACE])
    if PLACE not in entries:
        message = f"The repository has no {PLACE}, so it does not have the kit."
        raise Refused(message, hint="Run `accord init` in a checkout of it, and commit the files.")
    manifest = read_manifest(_text(github, PLACE, commit))
    check_version(manifest, kit.version)
    kit, pin = for_repository(kit, pin, manifest)
    texts = [with_pin(text, manifest.pin) for text in manifest.files.values()]
    known = {blob_of(text): text for text in [*texts, *(with_pin(text, pin) for text in kit.files.values())]}
    files = {}
    paths = sorted(kit.files.keys() | manifest.files.keys() | manifest.pending.keys())
    entries |= _entries(github, root, [path for path in paths if not path.startswith(f"{FOLDER}/")])
    for path in paths:
        _check_folders(path, entries)
        if entry := entries.get(path):
            if entry.kind != "blob" or entry.mode == "120000":
                message = f"{path} is not a plain file in this repository."
                raise Refused(message, hint="Replace the link or folder by a file.")
            files[path] = known.get(entry.sha) or _text(github, path, commit)
    modes = {path: entries[path].mode for path in files}
    return Consumer(repository.default_branch, commit, root.sha, manifest, files, modes)


def _entries(github: GitHub, root: Tree, paths: Iterable[str]) -> dict[str, TreeEntry]:
    """Return the entries of a commit's tree by path: those at the top, and all in the folders of these paths."""
    folders = {path.partition("/")[0] for path in paths if "/" in path}
    found = {}
    for entry in root.entries:
        found[entry.path] = entry
        if entry.path in folders and entry.kind == "tree":
            found |= {f"{entry.path}/{each.path}": each for each in github.tree(entry.sha, recursive=True).entries}
    return found


def _check_folders(path: str, entries: Mapping[str, TreeEntry]) -> None:
    """Raise Refused if a link or a file is in the place of a folder of this path."""
    for folder in (path[: found.start()] for found in re.finditer("/", path)):
        if folder in entries and entries[folder].kind != "tree":
            raise Refused(f"{folder} is not a folder in this repository.", hint="Replace it by a folder.")


def blob_of(text: str) -> str:
    """Return the id that git gives a file with this text."""
    data = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


def _text(github: GitHub, path: str, commit: str) -> str:
    return github.file(path, commit).decode("utf-8", "surrogateescape")


def read_proposal(github: GitHub, repository: str, plan: KitPlan) -> Proposal:
    """Read the branch and the pull requests of earlier runs, in five requests at most."""
    found = github.pulls_from(BRANCH)
    pulls = tuple(pull for pull in found if pull.head_repository.lower() == repository.lower())
    tip = github.ref(REF)
    if tip is None:
        return Proposal(pulls=pulls)
    commit = github.commit_object(tip)
    is_ours = bool(commit and len(commit.parents) == 1 and commit.message.startswith(SUBJECT))
    entries = _entries(github, github.tree(tip), [PLACE, *(file.path for file in plan.files)])
    is_wanted = all(
        file.path not in entries
        if file.after is None
        else file.path in entries and entries[file.path].sha == blob_of(file.after)
        for file in plan.files
    ) and _is_manifest(github, entries.get(PLACE), tip, plan.manifest)
    return Proposal(tip, is_ours, is_wanted, pulls)


def _is_manifest(github: GitHub, entry: TreeEntry | None, commit: str, manifest: Manifest) -> bool:
    """Return whether a commit has this manifest, which another version of zlib may have packed."""
    if entry is None or entry.sha == blob_of(manifest_text(manifest)):
        return entry is not None
    try:
        return read_manifest(_text(github, PLACE, commit)) == manifest
    except BrokenContract:
        return False
