"""Objects and refs of a bare repository, read and written as files: a process of git costs 4 ms, a file 0.05 ms.

``OnlyGit`` is raised for objects in packs, and for names that only git can read.

Docs: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects, https://git-scm.com/docs/gitrepository-layout
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git knows it without storing it."""

ZERO = "0" * 40
"""The target of a ref that does not exist."""

_SHA = re.compile(r"[0-9a-f]{40}")
_PARENT = re.compile(r"^parent ([0-9a-f]{40})$", re.MULTILINE)
TREE = b"40000"
"""The mode of a folder in a tree."""

_KINDS = {TREE: "tree", b"160000": "commit"}
_PART_BYTES = 4096
"""Enough of a stored object to read how it begins; the code tables of zlib take some hundred bytes."""

_HEAD_BYTES = 64
_PEELED = re.compile(r"(?P<start>[^:^]+)(?:\^\{(?P<kind>commit|tree)\}|:(?P<path>.*))?", re.DOTALL)
_TARGET = {"tag": b"object ", "commit": b"tree "}
"""How the first line of an object begins that points to another one."""


class OnlyGit(Exception):
    """Only git can tell."""


@dataclass(frozen=True)
class GitObject:
    """A commit, tree, blob or tag."""

    sha: str
    kind: str
    content: bytes


class SizedTreeEntry(NamedTuple):
    """An entry of a tree; ``size`` is the bytes of a blob, 0 of anything else."""

    mode: str
    kind: str
    sha: str
    size: int
    path: str


def find_object(repository: Path, name: str) -> GitObject | None:
    """Return the object of a full sha or ref, of ``NAME^{commit}``, ``NAME^{tree}`` or ``NAME:PATH``, or None.

    Raises OnlyGit.
    """
    found = _PEELED.fullmatch(name)
    if found is None:
        raise OnlyGit
    start, kind, path = found["start"], found["kind"], found["path"]
    sha = start if _SHA.fullmatch(start) else find_ref(repository, start)
    known = None if sha is None else read_object(repository, sha)
    if path is not None:
        return _at_path(repository, _peeled(repository, known, "tree"), path)
    return _peeled(repository, known, kind) if kind else known


def read_object(repository: Path, sha: str) -> GitObject | None:
    """Return an object that is not in a pack, None for none. Raises OnlyGit when it may be in one."""
    try:
        stored = _object_path(repository, sha).read_bytes()
    except FileNotFoundError:
        if sha == EMPTY_TREE:
            return GitObject(sha, "tree", b"")
        if any(name.endswith(".idx") for name in _listed(repository / "objects" / "pack")):
            raise OnlyGit from None
        return None
    head, _, content = zlib.decompress(stored).partition(b"\0")
    return GitObject(sha, head.split()[0].decode(), content)


def write_object(repository: Path, kind: str, content: bytes) -> str:
    """Store an object, and return its id."""
    whole = b"%s %d\0" % (kind.encode(), len(content)) + content
    sha = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = _object_path(repository, sha)
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix="tmp_obj_", dir=path.parent, delete=False) as file:
            file.write(zlib.compress(whole, 1))
            os.fchmod(file.fileno(), 0o444)
        Path(file.name).rename(path)
    return sha


def find_ref(repository: Path, ref: str) -> str | None:
    """Return what a full ref points to, or None. Raises OnlyGit for other names."""
    if not is_valid_ref(ref):
        raise OnlyGit
    return _ref_file(repository, ref) or _packed_refs(repository).get(ref)


def find_refs(repository: Path, prefix: str) -> dict[str, str]:
    """Return the refs equal to or below a prefix, with the objects they point to."""
    name = prefix.rstrip("/")
    if not is_valid_ref(f"{name}/any"):
        return {}
    packed = {ref: sha for ref, sha in _packed_refs(repository).items() if f"{ref}/".startswith(f"{name}/")}
    own = _ref_file(repository, name) if name == prefix else None
    loose = {name: own} if own else dict(_refs_below(repository, name))
    return dict(sorted((packed | loose).items()))


def is_valid_ref(ref: str) -> bool:
    """Tell whether git accepts a full ref name. Source: git-check-ref-format(1), abridged."""
    parts = ref.split("/")
    bad = any(not part or part.startswith(".") or part.endswith(".lock") for part in parts)
    odd = any(character in " ~^:?*[\\" or ord(character) < 32 or ord(character) == 127 for character in ref)
    return not (bad or odd or ".." in ref or "@{" in ref or ref.endswith(".")) and ref.startswith("refs/")


def move_ref(repository: Path, ref: str, new: str, old: str | None) -> bool:
    """Point a ref to an object if it still points to ``old`` (zeros: to nothing); return whether it was done.

    Whatever is not an ordinary file is left to git.
    """
    path = repository / ref
    if not is_valid_ref(ref) or path.is_dir() or not _object_path(repository, new).exists():
        return False
    if not path.exists() and ((repository / "packed-refs").exists() or not path.parent.is_dir()):
        return False
    try:
        with open(f"{path}.lock", "x", encoding="ascii") as lock:
            lock.write(f"{new}\n")
    except OSError:
        return False
    current = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ZERO
    if (old and current != old) or not _SHA.fullmatch(current):
        Path(lock.name).unlink()
        return False
    Path(lock.name).rename(path)
    return True


def ancestors(repository: Path, commit: str) -> set[str]:
    """Return a commit with all that it goes back to. Raises OnlyGit."""
    found, waiting = set[str](), [commit]
    while waiting:
        if (sha := waiting.pop()) not in found:
            found.add(sha)
            known = read_object(repository, sha) if _SHA.fullmatch(sha) else None
            if known is None or known.kind != "commit":
                raise OnlyGit
            waiting += _PARENT.findall(known.content.partition(b"\n\n")[0].decode(errors="replace"))
    return found


def entries_of(repository: Path, tree: str, *, is_deep: bool, below: str = "") -> Iterator[SizedTreeEntry]:
    """Yield the entries of a tree and, if it ``is_deep``, of those below, in git's order. Raises OnlyGit."""
    found = read_object(repository, tree)
    if found is None or found.kind != "tree":
        raise OnlyGit
    for mode, name, sha in tree_entries(found.content):
        path = f"{below}{name.decode(errors='replace')}"
        kind = _KINDS.get(mode, "blob")
        size = _size(repository, sha) if kind == "blob" else 0
        yield SizedTreeEntry(mode.decode().zfill(6), kind, sha, size, path)
        if kind == "tree" and is_deep:
            yield from entries_of(repository, sha, is_deep=True, below=f"{path}/")


def _size(repository: Path, blob: str) -> int:
    """Return the bytes of a blob, of which only the beginning is read. Raises OnlyGit."""
    try:
        with _object_path(repository, blob).open("rb") as file:
            head = zlib.decompressobj().decompress(file.read(_PART_BYTES), _HEAD_BYTES)
    except FileNotFoundError:
        raise OnlyGit from None
    return int(head.partition(b"\0")[0].split()[1])


def _object_path(repository: Path, sha: str) -> Path:
    return repository / "objects" / sha[:2] / sha[2:]


def _peeled(repository: Path, found: GitObject | None, kind: str) -> GitObject | None:
    """Follow tags and commits to an object of this kind."""
    while found is not None and found.kind != kind:
        prefix = _TARGET.get(found.kind)
        if prefix is None or (found.kind == "commit" and kind != "tree"):
            return None
        sha = found.content.partition(b"\n")[0].removeprefix(prefix).decode()
        found = read_object(repository, sha)
    return found


def _at_path(repository: Path, tree: GitObject | None, path: str) -> GitObject | None:
    parts = path.split("/") if path else []
    if {"", ".", ".."} & {*parts}:
        raise OnlyGit
    found = tree
    for part in parts:
        entries = tree_entries(found.content) if found is not None and found.kind == "tree" else iter(())
        sha = next((sha for _, name, sha in entries if name == part.encode()), None)
        found = None if sha is None else read_object(repository, sha)
    return found


def tree_entries(content: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """Yield mode, name and id of each entry of a tree."""
    start = 0
    while start < len(content):
        end = content.index(b"\0", start)
        mode, _, name = content[start:end].partition(b" ")
        yield mode, name, content[end + 1 : end + 21].hex()
        start = end + 21


def _ref_file(repository: Path, ref: str) -> str | None:
    try:
        text = (repository / ref).read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise
    if text.startswith("ref: refs/"):
        return find_ref(repository, text.removeprefix("ref: "))
    return text if _SHA.fullmatch(text) else None


def _refs_below(repository: Path, folder: str) -> Iterator[tuple[str, str]]:
    for name in _listed(repository / folder):
        ref = f"{folder}/{name}"
        if (repository / ref).is_dir():
            yield from _refs_below(repository, ref)
        elif not name.endswith(".lock"):
            sha = _ref_file(repository, ref)
            if sha is not None:  # deleted meanwhile
                yield ref, sha


def _packed_refs(repository: Path) -> dict[str, str]:
    try:
        text = (repository / "packed-refs").read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return {}
    pairs = (line.split(" ", 1) for line in text.splitlines() if line and line[0] not in "#^")
    return {ref: sha for sha, ref in pairs}


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
