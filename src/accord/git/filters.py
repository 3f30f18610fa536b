"""How git stores files: settings, read before an untrusted program changes them, and filters, such as Git LFS."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.git.patch_text import files_of
from accord.git.program import Git, ask_as_caller, join_nul, split_nul

LFS = "lfs"
_POINTER = re.compile(rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\n(?:[a-z0-9.-]+ .*\n)*")
"""The text of a pointer (Git LFS Specification, "The Pointer")."""

MOST_POINTER_BYTES = 1024
_ENCRYPTED = b"\0GITCRYPT\0"
_CHUNK = 1 << 20
_BYTES_OF_LFS = "`{}` is stored by Git LFS, and the change has its bytes, not a pointer."
HINT_LFS = "Add such files yourself, with git-lfs."
HINT_OTHER = "Change such files yourself, where their filter is set up."


def is_pointer(content: bytes) -> bool:
    """Return whether a content is a pointer of Git LFS."""
    return len(content) <= MOST_POINTER_BYTES and _POINTER.fullmatch(content) is not None


def is_encrypted(content: bytes) -> bool:
    """Return whether a content begins as git-crypt stores it."""
    return content.startswith(_ENCRYPTED)


def pointer_to(path: Path) -> bytes:
    """Return the pointer that Git LFS stores for a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest.hexdigest()}\nsize {size}\n".encode()


def blob_id(content: bytes, object_format: str) -> str:
    """Return the id that git gives a content."""
    return hashlib.new(object_format, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def filters_of(git: Git, paths: Iterable[str]) -> dict[str, str]:
    """Return the paths for which the attributes in git's index name a filter, with its name."""
    asked = join_nul(paths)
    if not asked:
        return {}
    fields = os.fsdecode(git("check-attr", "--cached", "-z", "--stdin", "filter", data=asked)).split("\0")[:-1]
    named = zip(fields[::3], fields[2::3], strict=True)
    return {path: value for path, value in named if value not in ("unspecified", "unset", "set", "")}


def filtered_content(path: str, new: bytes, old: bytes | None, driver: str) -> Finding | None:
    """Find bytes where the repository stores a pointer, an encrypted blob, or what a filter makes of a file."""
    was_pointer, was_encrypted = old is not None and is_pointer(old), old is not None and is_encrypted(old)
    if is_pointer(new) or is_encrypted(new):
        return None
    if was_pointer or driver == LFS:
        return _finding(_BYTES_OF_LFS.format(path), HINT_LFS)
    if was_encrypted or driver == "git-crypt":
        return _finding(f"`{path}` is stored encrypted, and the change has clear text.", HINT_OTHER)
    if driver and (old is None or old != new):
        return _finding(f"`{path}` is stored through the filter `{driver}`, which accord does not run.", HINT_OTHER)
    return None


def pointers_replaced(patch: bytes) -> Iterator[Finding]:
    """Find files that a patch turns from a pointer into bytes, as far as the patch alone tells."""
    for file in files_of(patch) if b"\n-version https://git-lfs" in patch else ():
        first = next((text for sign, text, _ in file.lines if sign == b"-"), b"")
        left = [text for sign, text, _ in file.lines if sign in b" +" and text.startswith(b"version https://git-lfs")]
        if first.startswith(b"version https://git-lfs") and not left and any(sign == b"+" for sign, *_ in file.lines):
            yield _finding(_BYTES_OF_LFS.format(file.path), HINT_LFS)


def _finding(message: str, hint: str) -> Finding:
    return Finding("filtered-content", message, "/patch", hint=hint)


def is_pointer_file(path: Path) -> bool:
    """Return whether a file is a pointer of Git LFS."""
    with suppress(OSError):
        status = path.lstat()
        is_short = stat.S_ISREG(status.st_mode) and status.st_size <= MOST_POINTER_BYTES
        return is_short and is_pointer(path.read_bytes())
    return False


def stays_as_stored(path: Path, stored: bytes | None) -> bool:
    """Return whether a file of Git LFS is what the repository has: the pointer itself, or the bytes that it names."""
    if stored is None or not is_pointer(stored):
        return False
    size = re.search(rb"^size (\d+)$", stored, re.MULTILINE)
    with suppress(OSError):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return False
        if status.st_size <= MOST_POINTER_BYTES and path.read_bytes() == stored:
            return True
        return bool(size and int(size[1]) == status.st_size and _oid(pointer_to(path)) == _oid(stored))
    return False


def _oid(pointer: bytes) -> Sequence[bytes]:
    return re.findall(rb"^oid (\S+)$", pointer, re.MULTILINE)


_STORING = ("core.autocrlf", "core.eol", "core.precomposeunicode", "core.checkroundtripencoding")
_FALSE = ("false", "no", "off", "0")


class Settings(Frozen):
    """How a repository stores files."""

    storing: Mapping[str, str]  # values of git's configuration
    filters: tuple[str, ...] = ()  # names of the drivers
    has_modes: bool = True  # the executable bit of files counts (core.fileMode)
    attributes: tuple[bytes, bytes] = (b"", b"")  # of the files besides those of the tree, the user's first
    ignores: tuple[bytes, bytes] = (b"", b"")  # likewise

    @property
    def has_patterns(self) -> bool:
        """Whether anything outside of the tree makes git ignore files."""
        return any(line.strip() and not line.startswith(b"#") for text in self.ignores for line in text.split(b"\n"))

    @property
    def without_filters(self) -> dict[str, str]:
        """The configuration of a git that stores files in the same way, but runs no program for it."""
        parts = ("clean", "smudge", "process")
        off = {f"filter.{name}.{part}": "" for name in self.filters for part in parts}
        off |= {f"filter.{name}.required": "false" for name in self.filters}
        return {**self.storing, **off}


def read_settings(directory: Path) -> Settings:
    """Read the settings that git has in a repository, those of the user and the system included."""
    values: dict[str, str] = {}
    for entry in split_nul(ask_as_caller(directory, "config", "--null", "--list")):
        name, separator, value = entry.partition("\n")
        values[name] = value if separator else "true"
    places = ask_as_caller(directory, "rev-parse", "--path-format=absolute", "--git-path", "info", "--show-toplevel")
    info, top = (Path(os.fsdecode(line)) for line in [*places.split(b"\n"), b".", b"."][:2])
    home = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")) / "git"

    def texts(name: str, key: str, default: str) -> tuple[bytes, bytes]:
        named = values.get(key, "")
        own = os.path.expanduser(named) if named else home / default
        return _read(top / own), _read(info / name)

    drivers = {name[len("filter.") : name.rindex(".")] for name in values if name.startswith("filter.")}
    return Settings(
        {name: values[name] for name in _STORING if name in values} | {"core.ignorecase": _ignores_case(top / ".git")},
        tuple(sorted(drivers)),
        values.get("core.filemode", "true").lower() not in _FALSE,
        texts("attributes", "core.attributesfile", "attributes"),
        texts("exclude", "core.excludesfile", "ignore"),
    )


def _ignores_case(path: Path) -> str:
    """Return whether the disk of a file that exists ignores the case of names, whatever git's settings say of it."""
    with suppress(OSError):
        other = path.with_name(path.name.swapcase())
        return "true" if os.path.samestat(path.lstat(), other.lstat()) else "false"
    return "false"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
