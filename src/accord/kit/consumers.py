"""A consumer's repository on GitHub as the kit sees it: its files below one folder, read with few requests."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from accord.github.port import GitHub
from accord.github.pull_port import PullPort
from accord.github.refs import RefPort
from accord.github.trees import TreePort
from accord.kernel.errors import Refused
from accord.kit.manifest import PLACE, Manifest, read_manifest, require_known
from accord.kit.pins import Pin, repinned
from accord.kit.templates import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accord.github.trees import TreeEntry
    from accord.kit.templates import Kit


class ConsumerPort(GitHub, RefPort, TreePort, PullPort, Protocol):
    """What of GitHub the kit needs: contents and pull requests, and workflows to write."""


@dataclass(frozen=True)
class Consumer:
    """The default branch: its newest commit, that commit's tree, the manifest, and the kit's files as they are.

    ``modes`` has git's mode of each file, so that a change keeps it.
    """

    branch: str
    commit: str
    tree: str
    manifest: Manifest
    files: Mapping[str, str]
    modes: Mapping[str, str] = field(default_factory=dict)


def blob_of(text: str) -> str:
    """Return the name that git gives a file with this text."""
    data = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


def read_consumer(github: ConsumerPort, kit: Kit, pin: Pin) -> Consumer:
    """Read a repository: five requests, and one more for each edited file.

    A file whose blob is that of a template is not fetched. Raises Refused for an archived, an empty or a kitless one.
    """
    repository = github.repository()
    if repository.is_archived:
        raise Refused("The repository is archived.", mend="Unarchive it, or leave it out of the list.")
    commit = github.ref(f"refs/heads/{repository.default_branch}")
    if commit is None:
        raise Refused("The repository is empty.", mend="Commit something first, such as what accord init writes.")
    tree, entries = kit_entries(github, commit)
    if PLACE not in entries:
        raise Refused(
            f"There is no {PLACE}, so this repository does not have the kit.",
            mend="Run accord init in a checkout of it, and commit what it writes.",
        )
    manifest = read_manifest(_text(github, PLACE, commit))
    require_known(manifest, kit.version)
    known = _known_texts(kit, pin, manifest)
    files = {}
    for path in sorted(kit.files.keys() | manifest.files.keys() | manifest.pending.keys()):
        if path in entries:
            files[path] = known.get(_blob(entries, path)) or _text(github, path, commit)
    modes = {path: entries[path].mode for path in files}
    return Consumer(repository.default_branch, commit, tree, manifest, files, modes)


def kit_entries(github: ConsumerPort, commit: str) -> tuple[str, dict[str, TreeEntry]]:
    """List what a commit has in the kit's folder, by path, and the name of the commit's whole tree."""
    root = github.tree(commit)
    folder = next((entry for entry in root.entries if entry.path == FOLDER), None)
    if folder is None:
        return root.sha, {}
    if folder.kind != "tree":
        raise Refused(f"{FOLDER} is no folder in this repository.", mend="Make it one.")
    below = github.tree(folder.sha, recursive=True).entries
    return root.sha, {f"{FOLDER}/{entry.path}": entry for entry in below}


def _blob(entries: Mapping[str, TreeEntry], path: str) -> str:
    entry = entries[path]
    if entry.kind != "blob" or entry.mode == "120000":
        raise Refused(f"{path} is no plain file in this repository.", mend="Replace the link or folder by a file.")
    return entry.sha


def _known_texts(kit: Kit, pin: Pin, manifest: Manifest) -> dict[str, str]:
    """Return the texts that need not be fetched, by the names of their blobs."""
    texts = [repinned(entry.text, f"{manifest.commit} # v{manifest.version}") for entry in manifest.files.values()]
    return {blob_of(text): text for text in [*texts, *_pinned(kit.files.values(), pin)]}


def _pinned(texts: Iterable[str], pin: Pin) -> list[str]:
    return [repinned(text, pin) for text in texts]


def _text(github: ConsumerPort, path: str, commit: str) -> str:
    return github.file(path, commit).decode("utf-8", "surrogateescape")
