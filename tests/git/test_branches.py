"""Commits on a shared branch: their author, and why a push failed."""

import pytest

from accord.core.errors import WrongUsage
from accord.git.branches import DEFAULT_AUTHOR, check_author, push_refusal, push_trouble

ADDRESSES = [
    "https://github.example/octo/{}.git/",
    "http://127.0.0.1:8080/octo/{}",
    "ssh://git@github.example/octo/{}.git",
    "git@github.example:octo/{}.git",
]
NAMES = ["plain", "access-denied", "exceeds", "refusing", "pre-receive", "GH013", "connection", "workflow-permission"]
SAID = {
    "fatal: unable to access '{}': Could not resolve host: github.example": "unreachable",
    "fatal: unable to access '{}': The requested URL returned error: 503": "unreachable",
    "fatal: unable to access '{}': The requested URL returned error: 403": "refused",
    "fatal: repository '{}' not found": "refused",
    "fatal: Authentication failed for '{}'": "refused",
    "To {}\n ! [rejected] work -> work (fetch first)\nerror: failed to push some refs to '{}'": "conflict",
    "To {}\n ! [remote rejected] work -> work (hook declined)\nerror: failed to push some refs to '{}'": "refused",
    "fatal: something new about '{}'": "unknown",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(("said", "trouble"), SAID.items())
def test_the_name_of_a_repository_never_tells_why_a_push_failed(
    said: str, trouble: str, address: str, name: str
) -> None:
    assert push_trouble(said.replace("{}", address.format(name))) == trouble


def test_the_hint_of_a_refusal_does_not_follow_from_the_name_either() -> None:
    refusal = push_refusal("fatal: Authentication failed for 'https://github.example/octo/workflow-permission.git/'")
    assert "contents: write" in refusal.hint
    assert "workflow-permission" in refusal.message


def test_the_hint_for_a_large_file_asks_for_no_permission() -> None:
    for said in ("remote: error: GH001: Large files detected.", "remote: File a.bin exceeds GitHub's file size limit"):
        assert "Git LFS" in push_refusal(f"{said}\n ! [remote rejected] x -> x (pre-receive hook declined)").hint


@pytest.mark.parametrize(
    "author", ["", "Ada", "<ada@example.org>", "Ada <ada@example.org> x", "Ada\nB <a@b>", "A <a b>"]
)
def test_an_author_that_git_cannot_write_is_refused(author: str) -> None:
    check_author(DEFAULT_AUTHOR)
    with pytest.raises(WrongUsage, match="is not an author"):
        check_author(author)
