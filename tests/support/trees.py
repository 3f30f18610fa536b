"""Work trees of git."""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from pathlib import Path

USER = ("-c", "user.name=Wanda", "-c", "user.email=wanda@example.org")


def own_settings() -> dict[str, str]:
    """Return the variables of this process for a git without the settings of the user and the machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}


def git(tree: Path, *arguments: str) -> str:
    """Run git as a person and return what it prints, without whitespace around it."""
    done = subprocess.run(["git", *USER, *arguments], cwd=tree, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def commit(tree: Path, message: str = "Work") -> str:
    """Commit all that is in a tree; return the commit."""
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", message)
    return git(tree, "rev-parse", "HEAD")


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, and the folders that they are in."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))


def repository(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Make a repository with the branch main, and commit files if any are given; return its folder."""
    return copied(folder, _make_repository, *files.items())


def _make_repository(folder: Path, *files: tuple[str, str | bytes]) -> None:
    git(folder, "init", "-q", "-b", "main")
    write(folder, dict(files))
    if files:
        commit(folder)


def copied(folder: Path, make: Callable[..., object], *arguments: Hashable) -> Path:
    """Fill a folder with what a function makes in one, which takes longer than a copy; remotes within stay within."""
    original = _original(make, *arguments)
    shutil.copytree(original, folder, symlinks=True, dirs_exist_ok=True)
    for config in folder.glob("*/.git/config"):
        config.write_text(config.read_text().replace(str(original), str(folder)))
    return folder


@cache
def _original(make: Callable[..., object], *arguments: Hashable) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="accord-original-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make(folder, *arguments)
    return folder


def difference_of(tree: Path, base: str) -> bytes:
    """Return what a tree has since it left a commit, as a patch; the index stays."""
    with tempfile.TemporaryDirectory() as folder:
        index = shutil.copy2(tree / ".git" / "index", folder)
        run = partial(subprocess.run, cwd=tree, env={**own_settings(), "GIT_INDEX_FILE": index}, check=True)
        run(["git", "add", "-A"])
        command = ["git", "diff", "--cached", "--merge-base", "--binary", "--full-index", base]
        return run(command, capture_output=True).stdout


def restore_files(kept: str | Path, folder: str | Path) -> None:
    """Make a folder of repositories what its copy is; files that did not change stay.

    Empty folders of git objects stay too: on some disks a folder takes 3 ms to delete.
    """
    wanted, now = _entries(kept), _entries(folder)
    for key in now.keys() - wanted.keys():
        entry, is_folder = now[key], key[1]
        if not is_folder:
            os.unlink(entry)
        elif os.path.basename(folder) != "objects":
            shutil.rmtree(entry)
        else:
            for file in os.scandir(entry):
                os.unlink(file)
    for (name, is_folder), entry in wanted.items():
        place, found = os.path.join(folder, name), now.get((name, is_folder))
        if is_folder:
            if not found:
                os.mkdir(place)
            restore_files(entry.path, place)
        elif not found or _stamp(found) != _stamp(entry):
            if found:
                os.unlink(place)  # objects of git are read-only
            shutil.copy2(entry, place)


def _entries(folder: str | Path) -> dict[tuple[str, bool], os.DirEntry[str]]:
    """Return the entries of a folder by their names, and whether they are folders."""
    with os.scandir(folder) as found:
        return {(entry.name, entry.is_dir()): entry for entry in found}


def _stamp(entry: os.DirEntry[str]) -> tuple[int, int]:
    stat = entry.stat()
    return stat.st_size, stat.st_mtime_ns
