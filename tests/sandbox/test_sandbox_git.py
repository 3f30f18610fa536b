"""Real git against the sandbox: clones, pushes and GitHub's refusals of pushes."""

import gzip
import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest
import requests
from support.code_repository import ADMIN, CODE, INSTALLATION, STRANGER, Git
from support.stage import seed_file
from support.trees import git as run_git

from accord.core.errors import WrongUsage
from accord_sandbox.faults import Exchange
from accord_sandbox.server import Fault, RunningSandbox, serving

FLOW = ".github/workflows/ci é.yml"
SEED = CODE


CHANGE = "files: {a.txt: One}, branches: {next: {a.txt: Two}}"
THREAD = "{path: a.txt, line: 9, comments: [{body: x}]}"


def branches(git: Git) -> list[str]:
    refs = git.sandbox.application.storage.open("octo/code").refs("refs/heads/")
    return [ref.removeprefix("refs/heads/") for ref in refs]


@pytest.mark.slow
def test_a_clone_has_the_seed_and_a_second_clone_has_the_push(git: Git, tmp_path: Path) -> None:
    git.clone("feature")
    assert (git.folder / "new name.txt").read_text() == "Same\ncontent\nas before\n"
    sha = git.commit({"ü/dir name/x.txt": "1\n"})
    git("push", "-q", "origin", "HEAD:topic/one", "HEAD:topic/two")
    git("push", "-q", "origin", "--delete", "topic/two")
    assert branches(git) == ["feature", "main", "other", "rival", "topic/one"]
    again = Git(git.sandbox, tmp_path / "again")
    again.folder.mkdir()
    again("clone", "-q", "--depth=1", "-b", "topic/one", git.url(token=None).removesuffix(".git"), ".")
    assert again("rev-parse", "HEAD").strip() == sha


@pytest.mark.slow
def test_a_large_push_goes_through_in_chunks(git: Git) -> None:
    git.clone("other")
    git("config", "core.compression", "0")
    (git.folder / "big.bin").write_bytes(os.urandom(4_000_000))  # over http.postBuffer: chunked, without a length
    git("add", "big.bin")
    git("commit", "-q", "-m", "Big")
    tracemalloc.start()
    git("push", "-q", "origin", "other")
    assert tracemalloc.get_traced_memory()[1] < 3_000_000, "the pack goes through a file"
    tracemalloc.stop()
    git("clone", "-q", "--bare", "--depth=1", "-b", "other", git.url(), "again.git")
    assert git("--git-dir=again.git", "cat-file", "-s", "other:big.bin").strip() == "4000000"


@pytest.mark.slow
def test_a_zipped_request_is_understood(sandbox: RunningSandbox) -> None:
    url = f"{sandbox.url}/octo/code.git/git-upload-pack"
    kind = "application/x-git-upload-pack-request"
    headers = {"content-type": kind, "content-encoding": "gzip", "git-protocol": "version=2"}
    body = gzip.compress(b"0014command=ls-refs\n00010009peel\n0000")
    assert b"refs/heads/feature" in requests.post(url, data=body, headers=headers, timeout=600).content


def send_pack(git: Git, ref: str, commit: str, pack: bytes, token: str = ADMIN) -> bytes:
    line = f"{'0' * 40} {commit} {ref}\0 report-status side-band-64k".encode()
    body, url = b"%04x%s0000" % (len(line) + 4, line), f"{git.url(token)}/git-receive-pack"
    return requests.post(url, data=body + pack, timeout=600).content


def test_a_push_with_a_broken_pack_moves_no_ref(git: Git) -> None:
    report = send_pack(git, "refs/heads/new", "1" * 40, b"PACK")
    assert b"unpack fatal: early EOF" in report
    assert b"ng refs/heads/new unpacker error" in report
    assert "new" not in branches(git)


@pytest.mark.slow
@pytest.mark.parametrize("lacks", ["HEAD", "HEAD^", "HEAD^{tree}", "HEAD:a.txt", ""])
def test_a_push_that_lacks_an_object_moves_no_ref(git: Git, lacks: str) -> None:
    git.clone("other")
    git.commit({"a.txt": "Parent\n"})
    commit = git.commit({"a.txt": "Child\n"})
    names = [f"{start}{end}" for start in ("HEAD", "HEAD^") for end in ("", "^{tree}", ":a.txt")]
    ids = git("rev-parse", *(name for name in names if name != lacks)).encode()
    pack = subprocess.run(
        ["git", "pack-objects", "-q", "--stdout"], cwd=git.folder, input=ids, capture_output=True
    ).stdout
    report = send_pack(git, "refs/heads/new", commit, pack, "fine")
    assert (b"ng refs/heads/new missing necessary objects" in report) == bool(lacks), report
    assert ("new" in branches(git)) != bool(lacks)


@pytest.mark.parametrize("ref", ["HEAD", "config", "refs/stash", "refs/heads/a..b"])
def test_a_push_moves_no_ref_of_another_kind(git: Git, ref: str) -> None:
    before = git.sandbox.application.storage.open("octo/code").refs("refs/")
    tip = before["refs/heads/other"]
    assert f"ng {ref} funny refname".encode() in send_pack(git, ref, tip, b"", "writer")
    assert git.sandbox.application.storage.open("octo/code").refs("refs/") == before


@pytest.mark.slow
def test_a_branch_may_have_a_space_that_is_not_ascii(git: Git) -> None:
    git.clone("other")
    git("push", "-q", "origin", "HEAD:refs/heads/a\u00a0b")
    assert "a\u00a0b" in branches(git)


REFUSED = [
    (None, "octo/code", "push", "could not read Username"),
    (None, "octo/secret", "fetch", "could not read Username"),
    (None, "octo/none", "fetch", "could not read Username"),
    ("wrong", "octo/secret", "fetch", "remote: Invalid username or token."),
    (STRANGER, "octo/secret", "fetch", "remote: Repository not found."),
    (ADMIN, "octo/none", "fetch", "remote: Repository not found."),
    (STRANGER, "octo/code", "push", "remote: Permission to octo/code.git denied to stranger."),
    ("reader", "octo/code", "push", "remote: Permission to octo/code.git denied to rita."),
    (INSTALLATION, "octo/empty", "push", "remote: Permission to octo/empty.git denied to github-actions[bot]."),
    (ADMIN, "octo/old", "push", "remote: This repository was archived so it is read-only."),
]


@pytest.mark.slow
def test_refused_pushes_and_fetches_have_github_s_words(git: Git) -> None:
    git("init", "-q", "-b", "main")
    git.commit({"a": "a"})
    for token, repository, verb, said in REFUSED:
        last = ["HEAD:refs/heads/new"] if verb == "push" else []
        written = git(verb, git.url(token, repository), *last, ok=False)
        assert said in written, (token, repository, verb, written)


def test_a_token_is_taken_in_any_header(sandbox: RunningSandbox) -> None:
    url = f"{sandbox.url}/octo/secret.git/info/refs?service=git-upload-pack"
    refused = requests.get(url, timeout=600)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Basic realm="GitHub"')
    for kind in ("Bearer", "token"):
        assert requests.get(url, headers={"authorization": f"{kind} {ADMIN}"}, timeout=600).ok
    assert requests.get(url, auth=(ADMIN, ""), timeout=600).ok
    assert requests.get(f"{sandbox.url}/octo/code.git/info/refs", timeout=600).status_code == 403


PROTECTED = [
    ("writer", "main", "HEAD:main", "Changes must be made through a pull request."),
    ("writer", "strict", ":strict", "Cannot delete a protected branch"),
    (ADMIN, "strict", "other:strict", "Changes must be made through a pull request."),
    (ADMIN, "strict", "+HEAD:strict", "Cannot force-push to this branch"),
    (INSTALLATION, "main", "HEAD:main", "Changes must be made through a pull request."),
    (ADMIN, "main", "HEAD:main", None),
]


@pytest.mark.slow
def test_protected_branches_are_protected(git: Git) -> None:
    git.clone("other")
    git("push", "-q", git.url(), "HEAD:refs/heads/strict")  # a protected branch may be made
    git.commit({"y.txt": "y\n"})
    git("switch", "-q", "main")
    git.commit({"x.txt": "x\n"})
    for number, (token, branch, refspec, reason) in enumerate(PROTECTED):
        beside = f"HEAD:refs/heads/beside-{number}"
        written = git("push", git.url(token), refspec, beside, ok=reason is None)
        assert f"beside-{number}" in branches(git), (token, refspec)
        if reason is not None:
            assert f"remote: error: GH006: Protected branch update failed for refs/heads/{branch}." in written, written
            assert f"remote: error: {reason}" in written, written
            assert f"{branch} (protected branch hook declined)" in written, written
    git("push", "--atomic", git.url("writer"), "other:refs/heads/apart", ":strict", ok=False)
    assert "apart" not in branches(git), "an atomic push moves all refs or none"


FLOWS = [
    (INSTALLATION, f"refusing to allow a GitHub App to create or update workflow `{FLOW}` without `workflows`"),
    ("fine", f"refusing to allow a Personal Access Token to create or update workflow `{FLOW}` without `workflow`"),
    ("flows", None),
    (ADMIN, None),
]


@pytest.mark.slow
def test_workflows_need_their_own_permission(git: Git) -> None:
    git.clone()
    git.commit({FLOW: "on: push\n"})
    git.commit({FLOW: None})
    for token, reason in FLOWS:
        written = git("push", git.url(token), "HEAD:refs/heads/flow", ok=reason is None)
        assert reason is None or f"[remote rejected] HEAD -> flow ({reason}" in written, (token, written)
        assert ("flow" in branches(git)) == (reason is None), token
        if reason is None:
            git("push", git.url(), ":refs/heads/flow")


@pytest.mark.slow
def test_hidden_refs_stay_github_s(git: Git) -> None:
    git.clone()
    written = git("push", "origin", "HEAD:refs/pull/2/head", ok=False)
    assert "(deny updating a hidden ref)" in written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "applied", "said"),
    [
        ("lost-before", False, "unexpected disconnect|RPC failed|Empty reply"),
        ("lost-after", True, "unexpected disconnect|RPC failed|Empty reply"),
        ("truncated", True, "unexpected disconnect|RPC failed|transfer closed"),
        ("error-500-after", True, "500"),
        pytest.param("error-503", False, "503", marks=pytest.mark.matrix),
        pytest.param("secondary-403", False, "403", marks=pytest.mark.matrix),
        pytest.param("slow", True, None, marks=pytest.mark.matrix),
    ],
)
def test_faults_apply_to_pushes(git: Git, kind: str, applied: bool, said: str | None) -> None:
    git.clone()
    times = 2 if kind.startswith("lost") else 1  # curl by itself asks again when a connection it kept is dropped
    git.sandbox.faults.add(Fault(kind, times=times, method="POST", path="/git-receive-pack$", seconds=0.2))
    git.commit({"x.txt": "x\n"})
    written = git("push", "origin", "HEAD:refs/heads/new", ok=said is None)
    assert said is None or any(words in written for words in said.split("|")), written
    assert ("new" in branches(git)) == applied
    statuses = [status for method, path, status in git.sandbox.requests if path.endswith("/git-receive-pack")]
    assert statuses == ([0, 0] if times == 2 else [int(said) if said and said.isdigit() else 200])


@pytest.mark.parametrize("kind", ["lost-after", "truncated"])
def test_a_fault_after_a_request_of_git_keeps_no_refusal_back(git: Git, kind: str) -> None:
    git.sandbox.faults.add(Fault(kind))
    url = f"{git.sandbox.url}/octo/code.git/info/refs?service=git-upload-pack"
    assert requests.get(url, auth=("x", "wrong"), timeout=600).status_code == 401


@pytest.mark.slow
def test_observers_see_a_push_before_the_client_knows_that_it_was_taken(git: Git) -> None:
    git.clone()
    git.commit({"x.txt": "x\n"})
    seen: list[tuple[str, str, int | None, bool, bool]] = []

    def watch(exchange: Exchange) -> None:
        is_there = "refs/heads/new" in git.sandbox.application.storage.open("octo/code").refs("refs/heads/")
        service = exchange.path.rpartition("/")[2]
        seen.append((exchange.phase, service, exchange.status, exchange.applied, is_there))

    git.sandbox.observers.append(watch)
    try:
        git("push", "origin", "HEAD:refs/heads/new")
    finally:
        git.sandbox.observers.remove(watch)
    assert seen[-4:] == [
        ("received", "refs", None, False, False),
        ("applied", "refs", 200, True, False),
        ("received", "git-receive-pack", None, False, False),
        ("applied", "git-receive-pack", 200, True, True),
    ]


def test_a_fetch_that_is_lost_changes_nothing(git: Git) -> None:
    git.sandbox.faults.add(Fault("lost-after", path="info/refs"))
    git("ls-remote", git.url(), ok=False)
    assert len(branches(git)) == 4


@pytest.mark.slow
def test_a_repository_is_imported(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for command in ("init -q -b trunk", "commit -q --allow-empty -m Old", "tag v1"):
        run_git(source, *command.split())
    issues = [{"title": "Next", "head": "next", "base": "trunk"}]
    repository = {"name": "o/r", "git": str(source), "branches": {"next": {"a.txt": "A"}}, "issues": issues}
    seed = seed_file(tmp_path, {"repositories": [repository]})
    with serving(tmp_path / "home", seed=seed) as sandbox:
        api = f"{sandbox.url}/repos/o/r"
        assert requests.get(api, timeout=600).json()["default_branch"] == "trunk"
        assert requests.get(f"{api}/pulls/1", timeout=600).json()["commits"] == 1
        assert requests.get(f"{api}/git/ref/tags/v1", timeout=600).ok
        sandbox.reset()
        assert requests.get(f"{api}/contents/a.txt", timeout=600).status_code == 404


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("git: /nowhere/at/all", "git cannot read `/nowhere/at/all`"),
        ('branches: {"a..b": {x: y}}', "`a..b` is not a valid branch name"),
        ("issues: [{title: x, head: gone}]", "has no branch `gone`"),
        (f"{CHANGE}, issues: [{{title: x, head: next, threads: [{THREAD}]}}]", "must be part of the diff"),
    ],
)
def test_a_seed_that_git_refuses_is_an_error(tmp_path: Path, parts: str, said: str) -> None:
    seed = seed_file(tmp_path, f"repositories: [{{name: o/r, {parts}}}]")
    with pytest.raises(WrongUsage) as caught, serving(tmp_path / "home", seed=seed):
        pass
    assert said in str(caught.value)
