"""A consumer's repository on GitHub as the kit sees it: its files below one folder, read with few requests."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, pointer, with_lines
from accord.files.yaml import read_yaml
from accord.kit.manifest import FOLDER, PLACE, Manifest, Pin, check_version, read_manifest, with_pin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accord.github.client import GitHub
    from accord.github.git_data import TreeEntry
    from accord.kit.manifest import Kit


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


def read_consumer(github: GitHub, kit: Kit, pin: Pin) -> Consumer:
    """Read a repository: five requests, and one more for each edited file.

    A file whose blob is that of a template is not fetched. Raises Refused for an archived, an empty or a kitless one.
    """
    repository = github.repository()
    if repository.is_archived:
        raise Refused("The repository is archived.", hint="Unarchive it, or leave it out of the list.")
    commit = github.ref(f"refs/heads/{repository.default_branch}")
    if commit is None:
        raise Refused("The repository is empty.", hint="Commit something first, such as what accord init writes.")
    tree, entries = kit_entries(github, commit)
    if PLACE not in entries:
        raise Refused(
            f"There is no {PLACE}, so this repository does not have the kit.",
            hint="Run accord init in a checkout of it, and commit what it writes.",
        )
    manifest = read_manifest(_text(github, PLACE, commit))
    check_version(manifest, kit.version)
    known = _known_texts(kit, pin, manifest)
    files = {}
    for path in sorted(kit.files.keys() | manifest.files.keys() | manifest.pending.keys()):
        if path in entries:
            files[path] = known.get(_blob(entries, path)) or _text(github, path, commit)
    modes = {path: entries[path].mode for path in files}
    return Consumer(repository.default_branch, commit, tree, manifest, files, modes)


def kit_entries(github: GitHub, commit: str) -> tuple[str, dict[str, TreeEntry]]:
    """List what a commit has in the kit's folder, by path, and the name of the commit's whole tree."""
    root = github.tree(commit)
    folder = next((entry for entry in root.entries if entry.path == FOLDER), None)
    if folder is None:
        return root.sha, {}
    if folder.kind != "tree":
        raise Refused(f"{FOLDER} is no folder in this repository.", hint="Make it one.")
    below = github.tree(folder.sha, recursive=True).entries
    return root.sha, {f"{FOLDER}/{entry.path}": entry for entry in below}


def _blob(entries: Mapping[str, TreeEntry], path: str) -> str:
    entry = entries[path]
    if entry.kind != "blob" or entry.mode == "120000":
        raise Refused(f"{path} is no plain file in this repository.", hint="Replace the link or folder by a file.")
    return entry.sha


def _known_texts(kit: Kit, pin: Pin, manifest: Manifest) -> dict[str, str]:
    """Return the texts that need not be fetched, by the names of their blobs."""
    texts = [with_pin(entry.text, f"{manifest.commit} # v{manifest.version}") for entry in manifest.files.values()]
    return {blob_of(text): text for text in [*texts, *_pinned(kit.files.values(), pin)]}


def _pinned(texts: Iterable[str], pin: Pin) -> list[str]:
    return [with_pin(text, pin) for text in texts]


def _text(github: GitHub, path: str, commit: str) -> str:
    return github.file(path, commit).decode("utf-8", "surrogateescape")


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+")


def read_repositories(raw: bytes) -> list[str]:
    """Read a YAML or JSON list of ``OWNER/NAME``, each once. Raises BrokenContract with every finding on its line."""
    document = read_yaml(raw)
    names = document.value
    if not isinstance(names, list) or not names:
        message = "The file holds no list of repositories. Write one OWNER/NAME an entry."
        raise BrokenContract(message, findings=[Finding("schema", message, line=1)])
    findings = [
        Finding("schema", f"This is no repository: {name!r:.80}. Write it as OWNER/NAME.", pointer(i))
        for i, name in enumerate(names)
        if not isinstance(name, str) or not _NAME.fullmatch(name)
    ]
    if findings:
        findings = with_lines(findings, document.lines)
        told = " ".join(f"Line {finding.line}: {finding.message}" for finding in findings[:5])
        raise BrokenContract(f"The list of repositories does not hold. {told}", findings=findings)
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]
