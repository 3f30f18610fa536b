"""A work tree comes back as it was, whatever a program did in it, so that another one can begin there."""

import os
import subprocess
from pathlib import Path

import pytest
from support.trees import commit, git, repository, write

from accord.git.comparison import changes_since
from accord.git.snapshots import restorable, take_snapshot


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with committed, uncommitted, staged and ignored files."""
    tree = repository(tmp_path / "tree", {})
    write(tree, {".gitignore": "out/\n*.log\n", "src/a.py": "a = 1\n", "run.sh": "true\n"})
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("src/a.py")
    (tree / "data.bin").write_bytes(bytes(range(256)))
    commit(tree)
    write(tree, {"mine é.txt": "not committed", "staged.txt": "staged"})
    git(tree, "add", "staged.txt")
    write(tree, {"out/cache": "cache"})
    return tree


def content(tree: Path) -> dict[str, tuple[bytes, bool]]:
    found = {}
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree)
        if ".git" not in name.parts and (path.is_symlink() or path.is_file()):
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(name)] = (data, not path.is_symlink() and os.access(path, os.X_OK))
    return found


WORK = """
echo a = 2 > src/a.py; chmod 644 run.sh; rm link data.bin 'mine é.txt'; echo a file now > link
printf changed > staged.txt
mkdir -p 'mine é.txt' new out/more/deep nested; echo x > 'mine é.txt/deep'; echo b = 1 > new/b.py; git add new/b.py
echo ignored | tee new/c.log > out/more/deep/artifact; cd nested; git init -q; echo d = 1 > d.py; git add -A
git commit -qm nested
"""
"""Changes, removals, replacements and additions of files of every kind."""


def work(tree: Path) -> None:
    subprocess.run(["sh", "-ec", WORK], cwd=tree, check=True)


@pytest.mark.slow
def test_everything_is_put_back_as_often_as_needed(tree: Path) -> None:
    before, status = content(tree), git(tree, "status", "--porcelain")
    snapshot = take_snapshot(tree)
    assert snapshot is not None
    with restorable(snapshot) as restore:
        for _ in range(2):
            work(tree)
            assert content(tree) != before
            restore()
            assert content(tree) == before
            assert git(tree, "status", "--porcelain") == status
            assert changes_since(snapshot).patch == b""
    assert not (tree / "out" / "more").exists()
    assert not (tree / "nested").exists()


def test_an_ignored_file_that_was_there_stays_as_the_program_left_it(tree: Path) -> None:
    snapshot = take_snapshot(tree)
    assert snapshot is not None
    with restorable(snapshot) as restore:
        (tree / "out" / "cache").write_text("warm")
        restore()
    assert (tree / "out" / "cache").read_text() == "warm"


def test_one_file_that_git_cannot_store_keeps_no_other_from_being_restored(tree: Path) -> None:
    write(tree, {".gitattributes": "odd.txt working-tree-encoding=UTF-16\n", "odd.txt": "no byte order mark"})
    git(tree, "add", ".gitattributes")
    git(tree, "commit", "-qm", "attributes")
    snapshot = take_snapshot(tree)
    assert snapshot
    before = content(tree)
    with restorable(snapshot) as restore:
        work(tree)
        restore()
    assert content(tree) == before
