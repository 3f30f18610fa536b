"""A change beyond the limits is found with its numbers, before anything is pushed."""

from pathlib import Path

import pytest
from support.trees import commit, repository

from accord.git import leaving_out
from accord.git.leaving_out import ChangeLimits, size_findings
from accord.git.patches import changes_between
from accord.git.program import Git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return repository(tmp_path, {f"{number}.txt": f"{number}" * 1000 for number in range(4)})


def found(tree: Path, files: int = 3, size: int = 1000) -> list[str]:
    commit(tree)
    repository = Git(tree)
    changes = changes_between(repository, "HEAD^", "HEAD")
    return [
        f"{finding.message} {finding.hint}"
        for finding in size_findings(repository, "HEAD^", "HEAD", changes, ChangeLimits(files, size))
    ]


def test_a_change_at_the_limits_passes_and_one_beyond_them_names_the_numbers(tree: Path) -> None:
    for name in ("a", "b", "c"):
        (tree / name).write_text(name * 333)
    assert found(tree) == []
    for name in ("d", "e", "f", "g"):
        (tree / name).write_text(name * (333 if name != "f" else 500))
    assert found(tree) == [
        "The change has 4 files. At most 3 are allowed. Split the work, or pass `--max-files 4`.",
        (
            "The new contents have 1,499 bytes, `f` the most. At most 1,000 are allowed. Split the work, or pass "
            "`--max-bytes 1499`."
        ),
    ]


def test_moved_files_count_once_and_moved_or_removed_contents_not_at_all(tree: Path) -> None:
    for number in range(3):
        (tree / f"{number}.txt").rename(tree / f"moved-{number}.txt")
    (tree / "copy.txt").write_text("0" * 1000)
    assert found(tree, files=4, size=0) == []
    (tree / "3.txt").unlink()
    assert found(tree, files=1, size=0) == []


def test_a_file_that_github_refuses_is_named_whatever_the_limits_are(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving_out, "MOST_FILE_BYTES", leaving_out.MIB)
    (tree / "b\xff.bin".encode("latin-1").decode("utf-8", "surrogateescape")).write_bytes(bytes(leaving_out.MIB + 1))
    (message,) = found(tree, size=10 * leaving_out.MIB)
    assert message.startswith("`b\ufffd.bin` has 1 MiB. GitHub refuses files of more than 1 MiB.")
