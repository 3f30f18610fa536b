"""Changes in random repositories: one judge tells which paths differ, a plain clone how they are stored."""

import hashlib
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.rotation import NIGHTLY
from support.trees import git

from accord.git.comparison import changes_since
from accord.git.snapshots import take_snapshot

View = dict[str, tuple[str, bytes]]
"""Files and links by path, each with its kind (``file``, ``program`` or ``link``) and a digest."""


def view(top: Path) -> View:
    """Return all files and links below a folder, but those of git directories."""
    found: View = {}
    for place, folders, files in os.walk(top):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = [name for name in folders if name != ".git" and name not in links]
        for name in [*files, *links]:
            path = Path(place, name)
            if name == ".git":
                continue
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                found[str(path.relative_to(top))] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                kind = "program" if status.st_mode & stat.S_IXUSR else "file"
                found[str(path.relative_to(top))] = (kind, hashlib.sha256(path.read_bytes()).digest())
    return found


def differing(before: View, after: View) -> set[str]:
    """Return the paths whose bytes, mode or kind are not the same."""
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


SEEDS = range(2000) if NIGHTLY else range(0, 2000, 400)
TEXTS = ["one\ntwo\nthree\n", "one\r\ntwo\r\n", "mixed\r\nends\n", "", "no end", "h\xe9llo\n", "\0binary\0", "$Id$\n"]
NAMES = ["a.txt", "b.txt", "src/c.py", "src/deep/d.sh", "docs/é ü.md", "win.bat", 'quo"te.txt', "x y/z.bin", "e.log"]
ATTRIBUTES = [
    "",
    "* text=auto\n",
    "*.txt text eol=crlf\n",
    "*.bat -text\n*.txt text\n",
    "*.py diff=python\n",
    "*.md ident\n",
]
SETTINGS = [{}, {"core.autocrlf": "true"}, {"core.autocrlf": "input"}, {"core.fileMode": "false"}, {"core.eol": "crlf"}]


def content(source: random.Random) -> bytes:
    return (source.choice(TEXTS) + source.choice(["", "more\n", "more\r\n"])).encode("latin-1")


def write(top: Path, name: str, data: bytes) -> None:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    path.write_bytes(data)


def make(source: random.Random, home: Path) -> tuple[Path, dict[str, str]]:
    """Make a repository, and clone it with settings of its own."""
    first, work = home / "first", home / "work"
    first.mkdir()
    git(first, "init", "-q", "-b", "main")
    for name in source.sample(NAMES, source.randint(3, 7)):
        write(first, name, content(source))
    (first / "link").symlink_to("a.txt")
    (first / ".gitignore").write_text("*.tmp\nbuild/\n")
    if attributes := source.choice(ATTRIBUTES):
        (first / ".gitattributes").write_text(attributes)
    (first / "src").mkdir(exist_ok=True)
    (first / "src/run.sh").write_text("true\n")
    (first / "src/run.sh").chmod(0o755)
    git(first, "add", "-A")
    git(first, "commit", "-qm", "first")
    settings = source.choice(SETTINGS)
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    git(home, "clone", "-q", *options, str(first), str(work))
    return work, settings


def prepare(source: random.Random, work: Path) -> set[str]:
    """Do what a person did before the run; return the hidden files."""
    hidden: set[str] = set()
    tracked = git(work, "ls-files", "-z").split("\0")[:-1]
    if source.random() < 0.4:
        (work / ".git/info").mkdir(exist_ok=True)
        with (work / ".git/info/exclude").open("a") as file:
            file.write("*.local\n")
        (work / "mine.local").write_text("password\n")
        hidden.add("mine.local")
    if source.random() < 0.3:
        write(work, "draft.md", content(source))
    flag = source.choice(["--skip-worktree", "--assume-unchanged", ""])
    if flag:
        name = source.choice([name for name in tracked if (work / name).is_file() and not (work / name).is_symlink()])
        git(work, "update-index", flag, "--", name)
        if source.random() < 0.7:
            (work / name).write_bytes((work / name).read_bytes() + b"hidden\n")
            hidden.add(name)
    if source.random() < 0.2:
        (work / "build").mkdir()
        (work / "build/old.o").write_bytes(b"old")
    return hidden


def edit(source: random.Random, work: Path) -> None:
    names = [path for path in view(work) if not path.endswith(".tmp")]
    name = source.choice(names)
    path = work / name
    if path.is_symlink():
        path.unlink()
        path.symlink_to(source.choice(["b.txt", "nowhere"]))
    else:
        path.write_bytes(path.read_bytes() + source.choice([b"x\n", b"x\r\n"]))


def create(source: random.Random, work: Path) -> None:
    name = source.choice(
        ["new.txt", "new/one.py", "new/two.sh", "skip.tmp", "build/new.o", "private.local", "new ü.md"]
    )
    if not (work / name).parent.is_file() and not (work / name).is_dir():
        write(work, name, content(source))


def remove(source: random.Random, work: Path) -> None:
    name = source.choice([path for path in view(work) if not path.startswith(".git")] or ["none"])
    (work / name).unlink(missing_ok=True)


def move(source: random.Random, work: Path) -> None:
    name = source.choice([path for path in view(work) if not path.startswith(".git")] or ["none"])
    target = work / f"moved/{source.randint(0, 9)}-{Path(name).name}"
    if (work / name).exists() and not target.exists():
        target.parent.mkdir(exist_ok=True)
        shutil.move(work / name, target)


def change_mode(source: random.Random, work: Path) -> None:
    names = [path for path in view(work) if not (work / path).is_symlink()]
    path = work / source.choice(names)
    path.chmod(path.stat().st_mode ^ 0o111)


def touch(source: random.Random, work: Path) -> None:
    path = work / source.choice([path for path in view(work) if not (work / path).is_symlink()])
    path.write_bytes(path.read_bytes())


def commit(source: random.Random, work: Path) -> None:
    git(work, "add", "-A")
    git(work, "commit", "-qm", "agent", "--allow-empty")


def switch(source: random.Random, work: Path) -> None:
    git(work, "switch", "-q", "-c", f"side-{source.random()}")


EDITS: list[Callable[[random.Random, Path], None]] = [
    edit, edit, create, create, remove, move, change_mode, touch, commit, switch,
]  # fmt: skip


def is_ignored(path: str) -> bool:
    """Return whether the ``.gitignore`` of these repositories hides a path."""
    return path.endswith(".tmp") or path.startswith("build/")


def plain_tree(work: Path, start: str, changed: set[str], new: set[str], settings: dict[str, str], home: Path) -> str:
    """Return the tree that ``git add`` makes of the changed files in an ordinary clone with the same settings.

    A mode that changed counts even if git does not look; without ``core.fileMode`` a new file has none.
    """
    clone = home / "plain"
    options = [word for key, value in settings.items() if key != "core.fileMode" for word in ("-c", f"{key}={value}")]
    git(home, "clone", "-q", *options, str(home / "first"), str(clone))
    git(clone, "checkout", "-q", start)
    for path in sorted(changed, key=lambda path: os.path.lexists(work / path)):
        source, target = work / path, clone / path
        if not os.path.lexists(source) or not is_real(source.parent, work):
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
        if "core.fileMode" in settings and path in new and not target.is_symlink():
            target.chmod(0o644)
    existing = [path for path in changed if os.path.lexists(clone / path) or git(clone, "ls-files", "--", path)]
    if existing:
        git(clone, "add", "-f", "--", *existing)
    return git(clone, "write-tree").strip()


def is_real(folder: Path, top: Path) -> bool:
    return not any(place.is_symlink() for place in [folder, *folder.parents] if place != top and top in place.parents)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_the_patch_has_what_differs_stored_as_git_stores_it(part: int, tmp_path: Path) -> None:
    for seed in list(SEEDS)[part::5]:
        home = tmp_path / str(seed)
        home.mkdir()
        assert_right(random.Random(f"tree {seed}"), home, seed)
        shutil.rmtree(home)


def assert_right(source: random.Random, home: Path, seed: int) -> None:
    work, settings = make(source, home)
    hidden = prepare(source, work)
    start = git(work, "rev-parse", "HEAD").strip()
    snapshot, before = take_snapshot(work), view(work)
    assert snapshot
    for _ in range(source.randint(0, 6)):
        source.choice(EDITS)(source, work)
    changes, after = changes_since(snapshot), view(work)
    expected = {path for path in differing(before, after) if not is_ignored(path)}
    left_out = {*changes.left_out}
    contents = {before[path][1] for path in before if path in hidden or is_ignored(path)}
    copies = {path for path in expected if path in after and after[path][1] in contents}
    assert left_out <= expected & hidden | copies | {path for path in expected if path.endswith(".log")}, seed
    stored = plain_tree(work, start, expected - left_out, {*after} - {*before}, settings, home)
    check = home / "check"
    git(home, "clone", "-q", "--no-checkout", str(home / "first"), str(check))
    git(check, "read-tree", start)
    subprocess.run(["git", "apply", "--cached", "--allow-empty", "-"], cwd=check, input=changes.patch, check=True)
    tree = git(check, "write-tree").strip()
    assert tree == stored, (seed, changes.patch)
    assert named(check, start, tree) <= expected - left_out, seed


def named(check: Path, start: str, tree: str) -> set[str]:
    return {*git(check, "diff-tree", "-r", "--no-renames", "--name-only", "-z", start, tree).split("\0")[:-1]}
