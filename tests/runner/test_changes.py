"""Changes are counted like git and GitHub do, and summarized in a few lines."""

from pathlib import Path

import pytest
from support.trees import commit, git

from accord.core.errors import BrokenContract
from accord.git.extraction import extract
from accord.git.program import Git
from accord.runner.stats import FileStat, count_files, diff_stat, patch_stats, range_stats


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "kept.txt").write_text("kept\n" * 20)
    (tmp_path / "gone.txt").write_text("gone\n")
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    (tmp_path / "kept.txt").rename(tmp_path / "moved\tto é.txt")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "new.py").write_text("a\nb\n")
    return tmp_path


EXPECTED = {
    FileStat("moved\tto é.txt", 0, 0), FileStat("gone.txt", 0, 1), FileStat("binary", None, None),
    FileStat("new.py", 2, 0),
}  # fmt: skip


def test_a_patch_and_the_commits_it_came_from_count_the_same(tree: Path) -> None:
    patch = extract(tree, "main").patch
    assert set(patch_stats(patch)) == EXPECTED
    commit(tree)
    assert set(range_stats(Git(tree), "HEAD^", "HEAD")) == EXPECTED


def test_a_patch_counts_the_same_wherever_it_is_counted(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = extract(tree, "main").patch
    (tree / "sub").mkdir()
    monkeypatch.chdir(tree / "sub")
    monkeypatch.setattr("tempfile.tempdir", str(tree / "sub"))
    assert set(patch_stats(patch)) == EXPECTED


def test_a_file_that_becomes_a_link_counts_once(tree: Path) -> None:
    (tree / "gone.txt").symlink_to("binary")
    assert count_files(patch_stats(extract(tree, "main").patch)) == len(EXPECTED)


def test_an_empty_patch_has_no_files_and_a_broken_one_is_refused() -> None:
    assert patch_stats(b"") == patch_stats(b"\n") == []
    with pytest.raises(BrokenContract, match="cannot read"):
        patch_stats(b"diff --git a/x b/x\n@@ nonsense\n")


def test_a_stat_names_files_on_one_line_each_and_counts_the_rest() -> None:
    stats = [FileStat("a.py", 3, 1), FileStat("b\n::set-output::\u202ex", None, None)]
    assert diff_stat(stats) == "a.py +3 -1\nb ::set-output::x binary"
    many = [FileStat(f"file{i}.py", 1, 0) for i in range(1000)]
    told = diff_stat(many, limit=200)
    assert len(told) < 230
    assert told.endswith(f"and {1000 - told.count('+1')} more files")
    assert len(diff_stat([FileStat("x" * 10_000, 1, 0)])) < 300
