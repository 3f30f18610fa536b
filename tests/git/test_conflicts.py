"""Merges keep every commit, and a patch that conflicts is committed where it was made, byte for byte."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.conflicts import KINDS, Prepared, add_files, prepare, write
from support.trees import commit, copied, difference_of, git, repository

from accord.git import patches
from accord.git.branches import DEFAULT_AUTHOR
from accord.git.conflicts import (
    Merge,
    commit_on_own_base,
    conflict_branch,
    conflict_notice,
    conflicting_paths,
    merge_into,
    resolution,
)
from accord.git.patches import PatchConflict, apply_patch, own_base
from accord.git.program import Git, GitFailed

NOW = datetime(2026, 11, 2, tzinfo=UTC)


def made(folder: Path) -> None:
    add_files(repository(folder, {}))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copied(tmp_path / "tree", made)


def bare(tree: Path) -> Git:
    folder = tree.parent / "bare"
    git(tree, "clone", "-q", "--bare", ".", str(folder))
    return Git(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_the_commit_of_a_conflicting_patch_has_the_agents_tree_and_names_the_paths(tree: Path, name: str) -> None:
    agents = prepare(tree, KINDS[name])
    repository = bare(tree)
    with pytest.raises(PatchConflict) as caught:
        apply_patch(repository, agents.patch, "main", "main")
    made = commit_on_own_base(repository, agents.patch, ["main"], DEFAULT_AUTHOR, "Work", NOW)
    assert repository.line("rev-parse", f"{made}^", f"{made}^{{tree}}").split() == [agents.base, agents.tree]
    assert (
        {*caught.value.paths} == {*conflicting_paths(repository, agents.patch, made, made, "main")} == KINDS[name].paths
    )


def with_later_work(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    monkeypatch.setattr(patches, "_BASES_TRIED", 3)
    return prepare(tree, KINDS["edit-edit"], later=9)


@pytest.mark.slow
def test_a_base_is_found_below_more_commits_than_are_tried(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = with_later_work(tree, monkeypatch)
    assert own_base(bare(tree), agents.patch, "main") == (agents.base, agents.tree)


def test_a_newer_commit_that_only_looks_alike_is_not_the_base(tree: Path) -> None:
    """The lines around the change are the same there, the rest of the file is not."""
    agents = prepare(tree, KINDS["edit-edit"])
    write(tree / "k/long.txt", "".join(f"line {number}\n" for number in range(3, 30)))
    commit(tree, "Shorter")
    assert own_base(bare(tree), agents.patch, "main") == (agents.base, agents.tree)


def test_a_patch_without_ids_is_placed_by_its_lines(tree: Path) -> None:
    agents = prepare(tree, KINDS["edit-edit"])
    patch = b"".join(line for line in agents.patch.splitlines(keepends=True) if not line.startswith(b"index "))
    assert own_base(bare(tree), patch, "main") == (agents.base, agents.tree)


def test_a_patch_of_files_that_never_were_has_no_base(tree: Path) -> None:
    write(tree / "k/long.txt", "unpublished\n")
    base = commit(tree, "Unpublished")
    write(tree / "k/long.txt", "changed\n")
    patch = difference_of(tree, base)
    git(tree, "reset", "-q", "--hard", f"{base}^")
    assert own_base(bare(tree), patch, "main") == ("", "")
    assert own_base(Git(tree), b"no patch", "main") == ("", "")


@pytest.mark.slow
def test_a_conflict_ends_when_the_other_branch_is_merged(tree: Path) -> None:
    agents = prepare(tree, KINDS["edit-edit"])
    repository = bare(tree)
    made = commit_on_own_base(repository, agents.patch, ["main"], DEFAULT_AUTHOR, "Work", NOW)
    assert conflicting_paths(repository, agents.patch, made, made, "main") == ("k/long.txt",)
    assert conflicting_paths(repository, agents.patch, made, "main", "main") == ()
    assert conflicting_paths(repository, agents.patch, made, made, agents.base) == ()


def test_the_branch_of_a_conflict_is_the_same_for_each_try_of_a_run() -> None:
    assert conflict_branch("accord/12-conflict", "accord0123456789abcdef") == "accord/12-conflict-89abcdef"


def test_the_commands_that_resolve_a_conflict_work_for_any_branch_name() -> None:
    commands = resolution("accord/1", "it's $HOME")
    assert "git switch accord/1\n" in commands
    assert "git merge 'origin/it'\"'\"'s $HOME'\n" in commands


def test_the_notice_of_a_draft_counts_the_paths_that_it_does_not_name() -> None:
    assert conflict_notice("`main`", ["`a b`", "`c`"]) == "> [!WARNING]\n> Conflicts with `main`: `a b`, `c`."
    assert conflict_notice("`main`", [f"`f{number}`" for number in range(12)]).endswith("`f9` and 2 more.")


class Branches:
    """A repository with the branches ours and theirs, and a bare copy."""

    def __init__(self, folder: Path) -> None:
        files = {"a": "1\n", "b": "1\n", "dir/c d": "1\n", ".gitattributes": "b merge=union\n"}
        self.tree, self.bare = repository(folder / "tree", files), folder / "bare"
        git(self.tree, "branch", "ours")
        git(self.tree, "branch", "theirs")

    def change(self, branch: str, files: dict[str, str | None]) -> None:
        git(self.tree, "checkout", "-q", branch)
        for name, text in files.items():
            path = self.tree / name
            path.parent.mkdir(exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        commit(self.tree, "Change")

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
