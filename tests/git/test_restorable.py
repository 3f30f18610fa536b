"""A work tree comes back as it was, whatever a program did in it, so that another one can begin there."""

import os
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


def work(tree: Path) -> None:
    """Change, remove, replace and add files of every kind."""
    (tree / "src" / "a.py").write_text("a = 2\n")
    (tree / "run.sh").chmod(0o644)
    (tree / "link").unlink()
    (tree / "link").write_text("a file now")
    (tree / "data.bin").unlink()
    (tree / "mine é.txt").unlink()
    (tree / "mine é.txt").mkdir()
    (tree / "mine é.txt" / "deep").write_text("x")
    (tree / "staged.txt").write_text("changed")
    (tree / "new").mkdir()
    (tree / "new" / "b.py").write_text("b = 1\n")
    (tree / "new" / "c.log").write_text("ignored")
    (tree / "out" / "more" / "deep").mkdir(parents=True)
    (tree / "out" / "more" / "deep" / "artifact").write_text("ignored")
    git(tree, "add", "new/b.py")
    nested = tree / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "d.py").write_text("d = 1\n")
    commit(nested)


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
