"""Refs and loose objects of a bare repository, from their files: a process of git takes 4 ms.

Source: gitrepository-layout(5), git-pack-refs(1), and "Git Objects" of the Pro Git book.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SHA = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class GitObject:
    """A commit, tree, blob or tag."""

    sha: str
    kind: str
    content: bytes


def read_refs(repository: Path, prefix: str) -> dict[str, str]:
    """Return the refs equal to or below a valid prefix, with the objects they point to."""
    found = dict[str, str]()
    with suppress(FileNotFoundError):
        lines = (repository / "packed-refs").read_text(errors="replace").splitlines()
        packed = (line.partition(" ")[::2] for line in lines if line[:1] not in ("#", "^"))
        found = {ref: sha for sha, ref in packed if f"{ref}/".startswith(f"{prefix.rstrip('/')}/")}
    top = repository / prefix
    files = [top] if top.is_file() else [Path(folder, name) for folder, _, names in os.walk(top) for name in names]
    for file in files:
        with suppress(FileNotFoundError):  # deleted since
            if file.suffix != ".lock" and _SHA.fullmatch(sha := file.read_text().strip()):
                found[os.fsencode(file.relative_to(repository)).decode(errors="replace")] = sha
    return dict(sorted(found.items()))


def read_object(repository: Path, name: str) -> GitObject | None:
    """Return the object of ``SHA``, ``SHA^{commit}`` or ``SHA:PATH``, None for a path that is not there.

    Raises LookupError for other names, and where an object has no file of its own.
    """
    start, colon, path = name.partition(":")
    sha, parts = start.removesuffix("^{commit}"), path.split("/") if path else []
    found = _loose_object(repository, sha)
    if (sha != start and found.kind != "commit") or {"", ".", ".."} & {*parts}:
        raise LookupError(name)
    if colon and found.kind == "commit":
        found = _loose_object(repository, found.content[5:45].decode())  # its first line is `tree SHA`
    for part in parts:
        names = {name: sha for _, name, sha in tree_entries(found.content)} if found.kind == "tree" else {}
        if part.encode() not in names:
            return None
        found = _loose_object(repository, names[part.encode()])
    return found


def _loose_object(repository: Path, sha: str) -> GitObject:
    file = repository / "objects" / sha[:2] / sha[2:]
    if not (_SHA.fullmatch(sha) and file.is_file()):
        raise LookupError(sha)
    head, _, content = zlib.decompress(file.read_bytes()).partition(b"\0")
    return GitObject(sha, head.partition(b" ")[0].decode(), content)


def write_object(repository: Path, kind: str, content: bytes) -> str:
    """Store an object that is well formed, and return its id."""
    stored = f"{kind} {len(content)}\0".encode() + content
    sha = hashlib.sha1(stored, usedforsecurity=False).hexdigest()
    file = repository / "objects" / sha[:2] / sha[2:]
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix="tmp_obj_", delete=False) as made:
            made.write(zlib.compress(stored, 1))
        Path(made.name).replace(file)
    return sha


def tree_entries(content: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """Yield mode, name and id of each entry of a tree."""
    start = 0
    while start < len(content):
        end = content.index(b"\0", start)
        mode, _, name = content[start:end].partition(b" ")
        yield mode, name, content[end + 1 : end + 21].hex()
        start = end + 21
