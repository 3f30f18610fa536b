"""A merge of branches in a bare repository: every commit stays, and conflicts name their paths."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.trees import git

from accord.git.conflicts import Merge, merge_into
from accord.git.program import Git, GitFailed

NOW = datetime(2026, 11, 2, tzinfo=UTC)


class Branches:
    """A repository with the branches ours and theirs, and a bare copy."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.bare = folder / "tree", folder / "bare"
        self.tree.mkdir()
        git(self.tree, "init", "-q", "-b", "main")
        self.change("main", {"a": "1\n", "b": "1\n", "dir/c d": "1\n", ".gitattributes": "b merge=union\n"})
        git(self.tree, "branch", "ours")
        git(self.tree, "branch", "theirs")

    def change(self, branch: str, files: dict[str, str | None]) -> None:
        if branch != "main":
            git(self.tree, "checkout", "-q", branch)
        for name, text in files.items():
            path = self.tree / name
            path.parent.mkdir(exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-qm", "Change")

    def merge(self) -> Merge:
        git(self.tree, "clone", "-q", "--bare", ".", str(self.bare))
        self.ours, self.theirs = (git(self.bare, "rev-parse", name) for name in ("ours", "theirs"))
        return merge_into(Git(self.bare), self.ours, self.theirs, "Merge\n", NOW)


@pytest.fixture
def branches(tmp_path: Path) -> Branches:
    return Branches(tmp_path)


@pytest.mark.parametrize(
    ("ours", "theirs", "conflicts"),
    [
        ({"a": "2\n"}, {"dir/c d": "2\n"}, ()),
        ({"a": None, "x": "1\n"}, {"dir/c d": "2\n"}, ()),
        ({"b": "1\n2\n"}, {"b": "1\n3\n"}, ()),
        ({"a": "2\n"}, {"a": "3\n"}, ("a",)),
        ({"a": None}, {"a": "3\n"}, ("a",)),
        ({"dir/c d": "2\n", "a": "2\n"}, {"dir/c d": None, "a": None}, ("a", "dir/c d")),
        ({"new": "1\n"}, {"new": "2\n"}, ("new",)),
    ],
    ids=["both-edit", "removed", "union", "edit-edit", "delete-edit", "edit-delete", "add-add"],
)
def test_a_clean_merge_has_both_parents_and_a_conflict_names_its_paths(
    branches: Branches, ours: dict[str, str | None], theirs: dict[str, str | None], conflicts: tuple[str, ...]
) -> None:
    branches.change("ours", ours)
    branches.change("theirs", theirs)
    merge = branches.merge()
    assert merge.conflicts == conflicts
    if not conflicts:
        assert git(branches.bare, "rev-parse", f"{merge.commit}^@").split() == [branches.ours, branches.theirs]
        assert git(branches.bare, "log", "-1", "--format=%an %s", merge.commit) == "github-actions[bot] Merge"


def test_attributes_of_the_branch_decide_nothing(branches: Branches) -> None:
    branches.change("ours", {"a": "2\n", ".gitattributes": "a merge=union\nb merge=union\n"})
    branches.change("theirs", {"a": "3\n"})
    assert branches.merge().conflicts == ("a",)


def test_a_branch_that_has_all_commits_of_the_base_stays(branches: Branches) -> None:
    branches.change("ours", {"a": "2\n"})
    merge = branches.merge()
    assert merge == Merge(branches.ours)


def test_histories_without_a_common_commit_are_refused(branches: Branches) -> None:
    git(branches.tree, "checkout", "-q", "--orphan", "other")
    git(branches.tree, "commit", "-qm", "Other")
    git(branches.tree, "branch", "-f", "theirs", "other")
    with pytest.raises(GitFailed, match="unrelated histories"):
        branches.merge()
