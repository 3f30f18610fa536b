"""A patch that conflicts with its branch is committed on the commit that it was made on, byte for byte."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.conflicts import KINDS, Prepared, add_files, prepare, write
from support.trees import commit, difference_of, git

from accord.git import patches
from accord.git.branches import DEFAULT_AUTHOR
from accord.git.conflicts import commit_on_own_base, conflict_branch, conflict_notice, conflicting_paths, resolution
from accord.git.patches import PatchConflict, apply_patch, own_base
from accord.git.program import Git

NOW = datetime(2026, 11, 2, tzinfo=UTC)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    add_files(tree)
    return tree


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
    parent, made, changes = commit_on_own_base(repository, agents.patch, ["main"], DEFAULT_AUTHOR, "Work", NOW)
    assert (parent, repository.line("rev-parse", f"{made}^{{tree}}")) == (agents.base, agents.tree)
    assert "k/more.txt" in {change.path for change in changes}
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
    _, made, _ = commit_on_own_base(repository, agents.patch, ["main"], DEFAULT_AUTHOR, "Work", NOW)
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
