"""The bare git repositories of the local GitHub, handled by real git.

Each repository is a folder ``git/OWNER/NAME.git`` beside the database, created when it is first needed. git runs
without configuration of the user or the machine, and without ``GIT_*`` variables of the caller. Refs and loose objects
are read from their files: a process of git takes 4 ms.

Source: gitrepository-layout(5), git-pack-refs(1), and "Git Objects" of the Pro Git book.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

from accord.core.errors import WrongUsage
from accord.git.program import Git, GitFailed, is_ancestor, make_repository

_SHA = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class GitObject:
    """A commit, tree, blob or tag."""

    sha: str
    kind: str
    content: bytes


def tree_entries(content: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """Yield mode, name and id of each entry of a tree."""
    start = 0
    while start < len(content):
        end = content.index(b"\0", start)
        mode, _, name = content[start:end].partition(b" ")
        yield mode, name, content[end + 1 : end + 21].hex()
        start = end + 21


DEFAULT_BRANCH = "main"
HEADS = "refs/heads/"
WORKFLOWS = ".github/workflows/"
GITHUB_SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n\nsandbox\n-----END PGP SIGNATURE-----"
"""Stands for GitHub's signature; nothing checks it."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git knows it without storing it."""

ZERO = "0" * 40
"""The target of a ref that does not exist."""

_TREE = b"40000"
"""The mode of a folder in a tree."""

_NO_OBJECT = ("missing", "ambiguous")
"""How a line of ``git cat-file --batch`` ends without an object."""

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "receive.hideRefs": "refs/pull",
    "http.receivepack": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
    "diff.renameLimit": "3000",
}


@dataclass(frozen=True)
class Signature:
    """Name and address on a commit, and its time in seconds since the epoch."""

    name: str
    email: str
    seconds: float

    @property
    def line(self) -> str:
        """The signature as a commit has it."""
        return f"{self.name} <{self.email}> {int(self.seconds)} +0000"


class StoredEntry(NamedTuple):
    """An entry of a tree; ``size`` is the bytes of a blob, 0 of anything else."""

    mode: str
    kind: str
    sha: str
    size: int
    path: str


@dataclass(frozen=True)
class BareRepository:
    """One bare repository."""

    path: Path

    @property
    def git(self) -> Git:
        """Git in this repository, with the settings of a server."""
        return Git(self.path, {"GIT_DIR": str(self.path), "LC_ALL": "C.UTF-8"}, _SETTINGS)

    def commit_id(self, name: str) -> str | None:
        """Return the commit of a branch, tag, full ref or (short) sha, tried in GitHub's order, or None."""
        if not name or name.startswith("-") or ".." in name or "@{" in name:
            return None
        refs = (self.refs(f"{start}{name}").get(f"{start}{name}") for start in (HEADS, "refs/tags/"))
        found = (self.objects(f"{target}^{{commit}}")[0] for target in (*refs, name) if target)
        return next((each.sha for each in found if each is not None), None)

    def objects(self, *names: str) -> list[GitObject | None]:
        """Return the objects of names that are not options of git, such as ``SHA:PATH``; None for each missing one."""
        if not names or any(character in name for name in names for character in "\0\n"):
            return [None for _ in names]
        with suppress(LookupError):
            return [self._object_at(name) for name in names]
        output = self.git("cat-file", "--batch", "-z", data="".join(f"{name}\0" for name in names).encode())
        found: list[GitObject | None] = []
        for _ in names:
            head, _, output = output.partition(b"\n")
            words = head.decode(errors="replace").rsplit(" ", 2)
            is_missing = words[-1] in _NO_OBJECT
            found.append(None if is_missing else GitObject(words[0], words[1], output[: int(words[2])]))
            output = output if is_missing else output[int(words[2]) + 1 :]
        return found

    def _object_at(self, name: str) -> GitObject | None:
        """Return the object of ``SHA``, ``SHA^{commit}`` or ``SHA:PATH``, None for a path that is not there.

        Raises LookupError for other names, and where an object has no file of its own.
        """
        start, colon, path = name.partition(":")
        sha, parts = start.removesuffix("^{commit}"), path.split("/") if path else []
        found = self._loose_object(sha)
        if (sha != start and found.kind != "commit") or {"", ".", ".."} & {*parts}:
            raise LookupError(name)
        if colon and found.kind == "commit":
            found = self._loose_object(found.content[5:45].decode())  # its first line is `tree SHA`
        for part in parts:
            names = {name: sha for _, name, sha in tree_entries(found.content)} if found.kind == "tree" else {}
            if part.encode() not in names:
                return None
            found = self._loose_object(names[part.encode()])
        return found

    def _loose_object(self, sha: str) -> GitObject:
        file = self.path / "objects" / sha[:2] / sha[2:]
        if not (_SHA.fullmatch(sha) and file.is_file()):
            raise LookupError(sha)
        head, _, content = zlib.decompress(file.read_bytes()).partition(b"\0")
        return GitObject(sha, head.partition(b" ")[0].decode(), content)

    def branch(self, name: str) -> str | None:
        """Return the commit at the tip of a branch, or None."""
        return self.refs(HEADS + name).get(HEADS + name)

    def refs(self, prefix: str) -> dict[str, str]:
        """Return the refs equal to or below a prefix, with the objects they point to."""
        if not is_valid_ref(f"{prefix.rstrip('/')}/any"):
            return {}
        found = dict[str, str]()
        with suppress(FileNotFoundError):
            lines = (self.path / "packed-refs").read_text(errors="replace").splitlines()
            packed = (line.partition(" ")[::2] for line in lines if line[:1] not in ("#", "^"))
            found = {ref: sha for sha, ref in packed if f"{ref}/".startswith(f"{prefix.rstrip('/')}/")}
        top = self.path / prefix
        files = [top] if top.is_file() else [Path(folder, name) for folder, _, names in os.walk(top) for name in names]
        for file in files:
            with suppress(FileNotFoundError):  # deleted since
                if file.suffix != ".lock" and _SHA.fullmatch(sha := file.read_text().strip()):
                    found[os.fsencode(file.relative_to(self.path)).decode(errors="replace")] = sha
        return dict(sorted(found.items()))

    def added_workflows(self, commit: str) -> list[str]:
        """Return the workflow files that a commit, or an ancestor that is not on any ref yet, changes."""
        since = ("--not", "--all", "--", WORKFLOWS)
        listed = b"" if commit == ZERO else self.git("log", "-m", "-z", "--name-only", "--format=", commit, *since)
        return sorted({name for name in listed.decode(errors="replace").split("\0") if name})

    def set_ref(self, ref: str, new: str, old: str | None = None) -> None:
        """Point a ref to a commit, or with ``ZERO`` delete it; with ``old``, only if it is still there."""
        target = ["-d", ref] if new == ZERO else [ref, new]
        self.git("update-ref", *target, *([] if old is None else [old]))

    def unpack(self, pack: BinaryIO) -> str:
        """Store the objects of a pack, from where its file stands; return why git cannot, empty if all is well."""
        if not pack.read(1):  # such as a push that deletes
            return ""
        pack.seek(-1, os.SEEK_CUR)
        done = self.git.attempt("unpack-objects", "-q", file=pack)
        said = list(filter(None, done.stderr.decode(errors="replace").split("\n")))
        return (said or ["unpack-objects abnormal exit"])[-1] if done.returncode else ""

    def is_complete(self, name: str) -> bool:
        """Tell whether everything is here that an object needs, apart from what refs have."""
        return self.git.attempt("rev-list", "--objects", "--quiet", name, "--not", "--all").returncode == 0

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Tell whether ``newer`` contains ``older``."""
        (found,) = self.objects(newer)
        head = found.content.partition(b"\n\n")[0].split(b"\n") if found else []
        return f"parent {older}".encode() in head or is_ancestor(self.git, older, newer)

    def entries(self, tree: str, *, is_deep: bool = False) -> list[StoredEntry]:
        """Return the entries of a tree and, if it ``is_deep``, of those below. Raises GitFailed."""
        options = ["-r", "-t"] if is_deep else []
        listed = self.git("ls-tree", "-z", "--long", *options, tree).decode(errors="replace")
        found = []
        for head, _, path in (entry.partition("\t") for entry in listed.split("\0") if entry):
            mode, kind, sha, size = head.split()
            found.append(StoredEntry(mode, kind, sha, 0 if size == "-" else int(size), path))
        return found

    def merge_base(self, first: str, second: str) -> str | None:
        """Return the last common commit of two histories, or None."""
        return self.git.attempt("merge-base", first, second).stdout.decode().strip() or None

    def merged_tree(self, base: str, head: str) -> str | None:
        """Return the tree of a merge, None with conflicts. Raises GitFailed."""
        done = self.git.attempt("merge-tree", "--write-tree", "--no-messages", base, head)
        if done.returncode > 1:
            raise GitFailed("merge-tree", done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout.decode().split("\n", 1)[0] if done.returncode == 0 else None

    def commit(
        self,
        tree: str,
        parents: Sequence[str],
        message: str,
        author: Signature,
        committer: Signature,
        *,
        is_signed: bool = False,
    ) -> str:
        """Write a commit, with GitHub's signature if it ``is_signed``, and return its id."""
        people = (f"author {author.line}", f"committer {committer.line}")
        signature = ["gpgsig " + GITHUB_SIGNATURE.replace("\n", "\n ")] if is_signed else []
        head = (f"tree {tree}", *(f"parent {parent}" for parent in parents), *people, *signature)
        return self.write("commit", "\n".join([*head, "", message.removesuffix("\n")]).encode() + b"\n")

    def changed_tree(self, base: str | None, changes: Mapping[str, tuple[str, str] | None]) -> str:
        """Write the tree of ``base`` with changes, each a mode and an object, or None for what is removed."""
        found = self.objects(f"{base}^{{tree}}")[0] if base else None
        entries = {name: (mode, sha) for mode, name, sha in tree_entries(found.content if found else b"")}
        below = dict[str, dict[str, tuple[str, str] | None]]()
        for path, change in changes.items():
            folder, slash, rest = path.partition("/")
            if slash:
                below.setdefault(folder, {})[rest] = change
            elif change:
                entries[path.encode()] = change[0].lstrip("0").encode(), change[1]
            else:
                entries.pop(path.encode(), None)
        for folder, inner in below.items():
            mode, sha = entries.pop(folder.encode(), (b"", ""))
            made = self.changed_tree(sha if mode == _TREE else None, inner)
            if made != EMPTY_TREE:
                entries[folder.encode()] = _TREE, made
            elif mode not in (b"", _TREE):
                entries[folder.encode()] = mode, sha  # a file, of which nothing could be removed
        ordered = sorted(entries.items(), key=lambda entry: entry[0] + b"/" * (entry[1][0] == _TREE))
        return self.write(
            "tree", b"".join(mode + b" " + name + b"\0" + bytes.fromhex(sha) for name, (mode, sha) in ordered)
        )

    def write(self, kind: str, content: bytes) -> str:
        """Store an object that is well formed, and return its id."""
        stored = f"{kind} {len(content)}\0".encode() + content
        sha = hashlib.sha1(stored, usedforsecurity=False).hexdigest()
        file = self.path / "objects" / sha[:2] / sha[2:]
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=file.parent, prefix="tmp_obj_", delete=False) as made:
                made.write(zlib.compress(stored, 1))
            Path(made.name).replace(file)
        return sha


@lru_cache(maxsize=4096)
def count_between(bare: BareRepository, start: str, end: str) -> int:
    """Count the commits that ``end`` has and ``start`` does not."""
    return int(bare.git.line("rev-list", "--count", f"{start}..{end}"))


def signed_text(commit: GitObject) -> str:
    """Return what the signature of a commit signs; empty without one."""
    head, blank, text = commit.content.partition(b"\n\n")
    before, signature, _ = head.partition(b"\ngpgsig ")
    return (before + blank + text).decode(errors="replace") if signature else ""


class GitStorage:
    """All bare repositories of one local GitHub, below ``root``."""

    def __init__(self, root: Path) -> None:
        if shutil.which("git") is None:
            raise WrongUsage("No git found. The sandbox needs it.", hint="Install git 2.38 or newer.")
        self.root = root
        self._lock = threading.Lock()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.chmod(0o700)  # private repositories are in it

    def open(self, full_name: str) -> BareRepository:
        """Return the bare repository of a repository; create an empty one if it does not exist."""
        path = self.root / f"{full_name}.git"
        with self._lock:
            if not (path / "HEAD").exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(prefix=".", dir=self.root) as folder, suppress(OSError):
                    made = Path(folder) / "made"
                    make_repository(made, "sha1")
                    made.rename(path)  # in one step: another process may do the same
        return BareRepository(path)

    def wipe(self) -> None:
        """Delete all repositories."""
        with self._lock:
            for owner in self.root.iterdir():
                if not owner.name.startswith("."):
                    shutil.rmtree(owner)


def is_valid_ref(ref: str) -> bool:
    """Tell whether git accepts a full ref name. Source: git-check-ref-format(1), abridged."""
    parts = ref.split("/")
    bad = any(not part or part.startswith(".") or part.endswith(".lock") for part in parts)
    odd = any(character in " ~^:?*[\\" or ord(character) < 32 or ord(character) == 127 for character in ref)
    return not (bad or odd or ".." in ref or "@{" in ref or ref.endswith(".")) and ref.startswith("refs/")
