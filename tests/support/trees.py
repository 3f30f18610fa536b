"""Work trees of git."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
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
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    write(folder, files)
    if files:
        commit(folder)
    return folder


def difference_of(tree: Path, base: str) -> bytes:
    """Return what a tree has since it left a commit, as a patch; the index stays."""
    with tempfile.TemporaryDirectory() as folder:
        index = shutil.copy2(tree / ".git" / "index", folder)
        run = partial(subprocess.run, cwd=tree, env={**own_settings(), "GIT_INDEX_FILE": index}, check=True)
        run(["git", "add", "-A"])
        command = ["git", "diff", "--cached", "--merge-base", "--binary", "--full-index", base]
        return run(command, capture_output=True).stdout


def restore_files(kept: Path, folder: Path) -> None:
    """Make a folder of repositories what its copy is; files that did not change stay.

    Empty folders of git objects stay too: on some disks a folder takes 3 ms to delete.
    """
    wanted, now = _files(kept), _files(folder)
    for path in now.keys() - wanted.keys():
        (folder / path).unlink()
    for path, stamp in wanted.items():
        if now.get(path) != stamp:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).unlink(missing_ok=True)  # objects of git are read-only
            shutil.copy2(kept / path, folder / path)
    for place, _, _ in os.walk(kept):
        (folder / Path(place).relative_to(kept)).mkdir(parents=True, exist_ok=True)
    for place, _, _ in os.walk(folder, topdown=False):
        counterpart = kept / Path(place).relative_to(folder)
        is_of_objects = counterpart.parent.name == "objects" and counterpart.parent.exists()
        if not counterpart.exists() and not is_of_objects:
            Path(place).rmdir()


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return size and time of all files below a folder."""
    paths = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return {path.relative_to(folder): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}
