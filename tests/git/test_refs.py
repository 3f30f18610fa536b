"""Refs that a program moved beside its work: named with what they were, also where no commit differs."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support.trees import commit, git, repository

from accord.git.beside import commands_to_undo, guard_refs


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


MOVES = {
    "a branch moved": ["update-ref refs/heads/one HEAD~"],
    "several refs removed": ["update-ref -d refs/heads/two", "tag -d v1", "symbolic-ref -d refs/heads/alias"],
    "a branch of a remote made": ["update-ref refs/remotes/origin/main HEAD"],
    "an alias moved": ["symbolic-ref refs/heads/alias refs/heads/two", "-C ../lane switch -q two"],
    "a detached head moved": ["-C ../other switch -q --detach HEAD~"],
    "a work tree removed": ["worktree remove ../lane"],
    "a work tree without a branch removed": ["worktree remove --force ../other"],
    "all entries of the stash dropped": ["stash clear"],
    "the older entry of the stash dropped": ["stash drop -q stash@{1}"],
    "the stash popped": ["stash pop -q", "reset -q --hard"],
    "an entry stashed": ["mv a b", "stash -q"],
}


@pytest.mark.parametrize("move", MOVES)
def test_the_commands_put_back_whatever_moved(tmp_path: Path, move: str) -> None:
    tree = repository(tmp_path / "tree", {"a": "a\n"})
    (tree / "a").write_text("second\n")
    commit(tree)
    for name in ("one", "two"):
        git(tree, "branch", name)
    git(tree, "tag", "v1")
    git(tree, "symbolic-ref", "refs/heads/alias", "refs/heads/one")
    git(tree, "worktree", "add", "-q", str(tmp_path / "lane"), "one")
    git(tree, "worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    for text in ("older", "newer"):
        (tree / "a").write_text(text)
        git(tree, "stash", "push", "-qm", f"the {text} `$(one)`")

    def state() -> list[str]:
        listed = git(tree, "for-each-ref", "--format=%(refname) %(objectname) %(symref)"), git(tree, "stash", "list")
        return [*listed, git(tree, "worktree", "list")]

    before = state()
    with guard_refs(tree) as changes:
        for words in MOVES[move]:
            git(tree, *words.split())
    assert state() != before
    script = "\n".join(commands_to_undo(changes.moved))
    subprocess.run(["sh", "-ec", script], cwd=tree, check=True, capture_output=True)
    assert state() == before
