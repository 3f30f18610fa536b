"""Refs that are not branches are refused with a hint, and a failed push is classified by git's words."""

import pytest

from accord.core.errors import Refused
from accord.runner.classify import classify
from accord.runner.external import push_failure
from accord.runner.refs import branch_of
from accord.runner.transcripts.account import Account
from accord.runner.transcripts.read import RunEvidence


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        *((ref, "head_ref") for ref in ("refs/pull/2/merge", "refs/pull/2/head", "2/merge")),
        *((ref, "refs/heads/my-branch") for ref in ("HEAD", "refs/heads/HEAD", "@", "FETCH_HEAD")),
        *((ref, "branch") for ref in ("refs/tags/v1", "a" * 40, "two..dots", "-x\nrefs/heads/main", "")),
    ],
)
def test_a_ref_that_is_not_a_branch_is_refused_with_the_hint(ref: str, hint: str) -> None:
    with pytest.raises(Refused) as refused:
        branch_of(ref)
    assert hint in str(refused.value)


def test_names_that_look_like_other_refs_are_branches() -> None:
    for name in ("2/merges", "pull/x", "feature/2/merge", "abc", "heads/x", "日本"):
        assert branch_of(f"refs/heads/{name}") == branch_of(name) == name


PUSH_ERRORS = {
    "push-conflict": [
        "! [rejected] main -> main (fetch first)",
        "! [rejected] main -> main (non-fast-forward)",
        "! [remote rejected] x -> x (cannot lock ref 'refs/heads/x': is at a but expected b)",
    ],
    "push-refused": [
        "remote: error: GH006: Protected branch update failed for refs/heads/main.",
        "! [remote rejected] main -> main (protected branch hook declined)",
        "remote: error: GH013: Repository rule violations found",
        "remote: error: GH001: Large files detected.",
        "refusing to allow a GitHub App to update workflow `x` without `workflows` permission",
        "remote: Permission to a/b.git denied.\nfatal: The requested URL returned error: 403",
        "fatal: Authentication failed for 'https://github.com/a/b.git/'",
        "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
        "remote: Repository not found.",
        "git@github.com: Permission denied (publickey).",
        "remote: error: cannot lock ref 'refs/heads/a/1': 'refs/heads/a' exists; cannot create 'refs/heads/a/1'",
        "ERROR: The key you are authenticating with has been marked as read only.\nfatal: Could not read from remote",
        "ERROR: This repository was archived so it is read-only.\nfatal: the remote end hung up unexpectedly",
    ],
    "push-unreachable": [
        "fatal: unable to access 'https://x/': Could not resolve host: github.com",
        "fatal: unable to access 'https://x/': Failed to connect to github.com port 443",
        "fatal: unable to access 'https://x/': The requested URL returned error: 429",
        "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502",
        "! [remote rejected] x -> x (Internal Server Error)",
        "ssh: connect to host github.com port 22: Connection refused",
        "fatal: the remote end hung up unexpectedly",
        "ERROR: Internal Server Error\nfatal: the remote end hung up unexpectedly",
        "error: failed to push some refs to 'https://x/'\nfatal: early EOF",
        "an unknown error",
        "",
    ],
}


@pytest.mark.parametrize("expected", PUSH_ERRORS)
def test_a_push_error_is_classified_by_its_words(expected: str) -> None:
    for message in PUSH_ERRORS[expected]:
        assert push_failure(message).kind == expected, message


@pytest.mark.parametrize(
    ("said", "hint", "meaning"),
    [
        ("remote: Permission denied.", "contents: write", "The push of the changes was refused"),
        ("error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413", "large files", "too large"),
        ("remote: error: GH001: Large files detected. It exceeds GitHub's file size limit", "Git LFS", "too large"),
        ("! [remote rejected] a -> a (directory file conflict)", "another name", "refused"),
        ("error: cannot lock ref 'a/1': 'a' exists; cannot create 'a/1'", "another name", "refused"),
        ("remote: error: GH003: Sorry, force-pushing to main is not allowed.", "without `--force`", "refused"),
        ("remote: No.\n ! [remote rejected] a -> a (pre-receive hook declined)", "what the server says", "refused"),
    ],
)
def test_a_refused_push_gets_the_hint_that_fixes_it(said: str, hint: str, meaning: str) -> None:
    failure = push_failure(said)
    assert (failure.kind, hint in failure.detail) == ("push-refused", True)
    assert ("contents: write" in failure.detail) == (hint == "contents: write")
    found = classify(RunEvidence(0, Account("codex", "success"), error=failure))
    assert found
    assert (found.category, found.recovery) == ("infrastructure", "manual")
    assert meaning in found.summary.partition(": ")[0]


@pytest.mark.parametrize("rejection", PUSH_ERRORS["push-conflict"])
def test_an_agent_whose_own_push_met_a_moved_branch_is_run_again(rejection: str) -> None:
    said = f"To https://x/\n {rejection}\nerror: failed to push some refs to 'https://x/'\nhint: Updates were rejected"
    found = classify(RunEvidence(1, Account("codex", "unknown"), stderr=said))
    assert found
    assert (found.category, found.recovery) == ("infrastructure", "retry")
