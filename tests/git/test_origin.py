"""The remote of a checkout as an address, and the question whether a repository has a commit."""

import os
from pathlib import Path

import pytest
from support.trees import git

from accord.git.origin import RemoteRepository, has_commit, parse_origin, read_origin


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://github.com/octo/web.git", "https://github.com/octo/web"),
        ("https://github.com/octo/web/", "https://github.com/octo/web"),
        ("https://x:secret@github.com/octo/we.b", "https://github.com/octo/we.b"),
        ("git@github.com:octo/web.git\n", "https://github.com/octo/web"),
        ("ssh://git@ssh.github.com:443/octo/web.git", "https://github.com/octo/web"),
        ("ssh://git@ghe.example.com:2222/octo/web", "https://ghe.example.com/octo/web"),
        ("https://ghe.example.com:8443/octo/web", "https://ghe.example.com:8443/octo/web"),
        ("http://127.0.0.1:8123/octo/web.git", "http://127.0.0.1:8123/octo/web"),
        ("work:octo/web.git", None),
        ("/srv/git.d/octo/web.git", None),
        ("../octo/web", None),
        ("./octo/web", None),
        ("file:///tmp/octo/web", None),
        ("https://github.com/octo/group/web", None),
        ("", None),
    ],
)
def test_a_remote_is_read_as_an_address_without_its_secrets(url: str, origin: str | None) -> None:
    found = parse_origin(url)
    assert (found.url if found else None) == origin


def test_the_origin_of_a_checkout_is_read(tmp_path: Path) -> None:
    assert read_origin(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert read_origin(tmp_path) is None
    git(tmp_path, "remote", "add", "origin", "git@github.com:octo/web.git")
    assert read_origin(tmp_path) == RemoteRepository("https://github.com", "octo/web")


def test_a_repository_is_asked_for_a_commit_that_no_ref_names(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for message in ("First", "Second"):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", message)
    commit = git(tmp_path, "rev-parse", "HEAD~1").strip()
    assert has_commit(f"file://{tmp_path}", commit) is True
    assert has_commit(f"file://{tmp_path}", "b" * 40) is False


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/octo/accord.git", f"file://{os.devnull}/accord"])
def test_a_repository_out_of_reach_leaves_the_question_open(url: str) -> None:
    assert has_commit(url, "b" * 40) is None
