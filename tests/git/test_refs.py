"""A run that is killed leaves HEAD where its agent put it; the next one says so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.trees import commit, git

from accord.git.refs import find_killed_run_ref, guard_refs

KILLED = """
import os, signal, subprocess, sys
from pathlib import Path
from accord.git.refs import guard_refs
with guard_refs(Path.cwd()):
    subprocess.run(sys.argv[1:], check=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
COMMIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "Agent")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.txt").write_text("a\n")
    commit(tmp_path)
    return tmp_path


def kill(tree: Path, *agent: str) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, *agent], cwd=tree, check=False, env={**os.environ})
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_branch_that_the_agent_of_a_killed_run_switched_to_is_named_once(tree: Path) -> None:
    kill(tree, "git", "switch", "-q", "-c", "agents-own")
    start = git(tree, "rev-parse", "HEAD")[:7]
    said = find_killed_run_ref(tree)
    assert f"It was on main at {start}, and is on agents-own at {start} now. To go back, run `git switch main`." in said
    assert find_killed_run_ref(tree) == ""


def test_commits_that_the_agent_of_a_killed_run_left_are_named(tree: Path) -> None:
    start = git(tree, "rev-parse", "HEAD")
    kill(tree, *COMMIT)
    assert f"run `git reset --keep {start}`" in find_killed_run_ref(tree)


@pytest.mark.parametrize("note", ["", "1 refs/heads/$(x) " + "a" * 40, "x", "999999999 main " + "a" * 39])
def test_a_note_that_an_agent_wrote_says_nothing(tree: Path, note: str) -> None:
    (tree / ".git" / "accord-run").write_text(note)
    assert find_killed_run_ref(tree) == ""


def test_a_run_that_ended_or_goes_on_leaves_nothing_to_say(tree: Path) -> None:
    with guard_refs(tree):
        git(tree, "switch", "-q", "-c", "agents-own")
        assert find_killed_run_ref(tree) == "", "it goes on"
    assert find_killed_run_ref(tree) == ""
    assert git(tree, "branch", "--show-current") == "main"
    kill(tree, "true")
    assert find_killed_run_ref(tree) == "", "HEAD is where it was"
    assert find_killed_run_ref(tree.parent) == ""
