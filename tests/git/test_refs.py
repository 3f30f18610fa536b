"""Refs that a program moved beside its work: named with what they were, also where no commit differs."""

import shutil
from pathlib import Path

from support.trees import git, repository

from accord.git.beside import guard_refs


def test_a_symbolic_ref_and_another_work_tree_that_moved_are_named_with_what_they_were(tmp_path: Path) -> None:
    tree, lane = repository(tmp_path / "tree", {"a": "a\n"}), tmp_path / "lane"
    for branch in ("one", "two"):
        git(tree, "branch", branch)
    git(tree, "symbolic-ref", "refs/heads/alias", "refs/heads/one")
    git(tree, "worktree", "add", "-q", str(lane), "one")
    with guard_refs(tree) as changes:
        git(tree, "symbolic-ref", "refs/heads/alias", "refs/heads/two")
        git(lane, "switch", "-q", "two")
    assert changes.moved == {"refs/heads/alias": "refs/heads/one", f"HEAD of {lane}": "refs/heads/one"}
    assert changes.undone == []


def test_where_no_ref_can_be_read_afterwards_all_but_those_of_the_work_tree_itself_have_moved(tmp_path: Path) -> None:
    tree = repository(tmp_path, {"a": "a\n"})
    git(tree, "branch", "other")
    with guard_refs(tree) as changes:
        shutil.rmtree(tree / ".git")
    assert [*changes.moved] == ["refs/heads/other"]
