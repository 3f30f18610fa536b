"""Paths as they were before an untrusted program ran, each of its own kind, and how they become so again."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class PathState(NamedTuple):
    """A path itself: no link is followed, and what a pipe, a device or a folder contains is not part of it."""

    mode: int = 0  # 0 if nothing is there
    content: bytes = b""  # of a file; of a link, where it leads
    device: int = 0

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)


ABSENT = PathState()


def states_of(paths: Iterable[Path]) -> dict[Path, PathState]:
    """Return the states of paths, and of all that their links lead to. Raises OSError for a file that is unreadable."""
    return {place: state_of(place) for path in paths for place in with_targets(path)}


def state_of(path: Path) -> PathState:
    """Return the state of a path. Raises OSError for a file that cannot be read."""
    if not os.path.lexists(path):
        return ABSENT
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return PathState(status.st_mode, os.fsencode(path.readlink()))
    content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
    return PathState(status.st_mode, content, status.st_rdev)


def with_targets(path: Path) -> Iterator[Path]:
    """Yield a path, and then what each link leads to, up to something that is not a link."""
    seen = list[Path]()
    while path not in seen:
        yield path
        seen.append(path)
        if os.path.islink(path):
            target = path.parent / path.readlink()
            path = Path(os.path.realpath(target.parent), target.name)


def put_back(names: Iterable[tuple[Path, str]], before: Mapping[Path, PathState], changed: list[str]) -> None:
    """Put back the paths that are not as before, and list their names; raise the first error when all were tried."""
    failures = []
    for path, name in names:
        state = before.get(path, ABSENT)
        try:
            if not holds(path, state):
                changed += [name] if name not in changed else []
                restore(path, state)
            if state.is_file and path.lstat().st_mode != state.mode:
                path.chmod(state.mode)
        except OSError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def paths_below(top: Path) -> Iterator[Path]:
    """Yield the files and links below a folder, which becomes readable, or the path itself if it is something else.

    A link to a folder is yielded itself, too.
    """
    if not top.is_dir() or top.is_symlink():
        yield from [top] if os.path.lexists(top) else []
    if not top.is_dir():
        return
    for place, names, files in os.walk(readable(top)):
        folder = Path(place)
        yield from (folder / name for name in files)
        for name in names:
            if (folder / name).is_symlink():
                yield folder / name
            else:
                readable(folder / name)  # os.walk goes into it next


def readable(folder: Path) -> Path:
    """Give the owner of a folder all rights of it, if they are missing; return the folder. Another user's stays."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        with suppress(PermissionError):
            folder.chmod(stat.S_IRWXU)
    return folder


def holds(path: Path, state: PathState) -> bool:
    """Return whether a path is in a state, whatever its rights are. Reads no file of another size."""
    try:
        if not (state.mode and os.path.lexists(path)):
            return not (state.mode or os.path.lexists(path))
        status = path.lstat()
        if stat.S_IFMT(status.st_mode) != stat.S_IFMT(state.mode):
            return False
        if state.is_file:
            return status.st_size == len(state.content) and path.read_bytes() == state.content
        return state_of(path)[1:] == state[1:]
    except OSError:
        return False


def restore(path: Path, state: PathState) -> None:
    """Put a path of this state in the place of whatever is there. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        path.parent.chmod(stat.S_IRWXU)
    if path.is_dir() and not path.is_symlink():
        for _ in paths_below(path):
            pass  # its folders become writable
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if state.is_file:
        path.write_bytes(state.content)
    elif state.is_link:
        path.symlink_to(os.fsdecode(state.content))
    elif stat.S_ISDIR(state.mode):
        path.mkdir()
    elif state.mode:
        os.mknod(path, state.mode, state.device)
