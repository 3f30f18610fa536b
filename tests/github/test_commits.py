"""A commit reaches its branch with exactly the files of the local one: signed where GitHub signs, else pushed."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.implementations import clone, remote_of
from support.rotation import NIGHTLY, rotate
from support.stage import Stage, staged
from support.trees import commit, git, write

from accord.core.errors import Refused
from accord.git.branches import fetch_branch, scratch_repository
from accord.git.patches import Change
from accord.git.program import Git
from accord.github.commits import CommitFacts, DeliveredCommit, deliver_commit, plan_upload, read_commit
from accord.github.git_data import StoredObject
from accord.github.limits import BLOB_BYTES, COMMIT_REQUESTS, TREE_TEXT_BYTES
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.responses import Refusal

SEED = """
repositories:
- name: accord/sandbox
  files: {README.md: "hello\\n", src/a.py: "a = 1\\n", src/b.py: "b = 1\\n", docs/x/only.md: "x\\n", latin.txt: "é\\n"}
"""
ELSEWHERE = "1234567890123456789012345678901234567890"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("commits"), seed=SEED, rate_limits=None) as stage:
        tree = clone(stage, tmp_path_factory.mktemp("prepared") / "tree")
        (tree / "bin.dat").write_bytes(bytes(range(256)))
        (tree / "run.sh").write_text("#!/bin/sh\n")
        (tree / "run.sh").chmod(0o755)
        (tree / "link").symlink_to("README.md")
        git(tree, "add", ".")
        git(tree, "update-index", "--add", "--cacheinfo", f"160000,{ELSEWHERE},module")
        git(tree, "commit", "-qm", "Prepare")
        git(tree, "push", "-q", "origin", "main")
        stage.begin_at_present()
        yield stage


@pytest.fixture(scope="module")
def cloned(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone(stage, tmp_path_factory.mktemp("cloned") / "tree")


@pytest.fixture
def tree(stage: Stage, cloned: Path, tmp_path: Path) -> Path:
    stage.reset()
    return shutil.copytree(cloned, tmp_path / "tree", symlinks=True)


OTHER = ELSEWHERE[::-1]
TO_OTHER = f"git update-index --add --cacheinfo 160000,{OTHER}"
KINDS = {
    "a new text": ("echo new > new.txt", 0),
    "a changed text": ("echo a = 2 > src/a.py", 0),
    "a removed file": ("rm src/a.py", 0),
    "a removed folder": ("rm -r docs", 0),
    "a renamed file": ("mv src/a.py src/c.py", 0),
    "a renamed binary file": ("mv bin.dat src", 0),
    "a copied file": ("cp bin.dat copy.dat", 0),
    "a moved folder": ("mv src lib", 0),
    "a file made executable": ("chmod 755 src/a.py", 0),
    "an executable made plain": ("chmod 644 run.sh", 0),
    "a changed executable": ("echo true >> run.sh", 0),
    "a new link": ("ln -s ../README.md src/link", 0),
    "a link to another target": ("ln -sf src/a.py link", 0),
    "a link that becomes a file": ("rm link; echo a file now > link", 0),
    "a file that becomes a link": ("ln -sf b.py src/a.py", 0),
    "a file that becomes a folder": ("rm README.md; mkdir README.md; echo below > README.md/a.md", 0),
    "a folder that becomes a file": ("rm -r docs/x; echo a file now > docs/x", 0),
    "a new binary file": (r"printf '\0\1\2\377' > b.dat", 1),
    "a changed binary file": (r"printf '\0\1\2' > bin.dat", 1),
    "a text that is not UTF-8": (r"printf 'caf\351\n' > latin.txt", 1),
    "an empty file": ("touch empty", 0),
    "line ends of Windows": (r"printf 'a\r\nb\r\n' > crlf.txt", 0),
    "no line end, and a byte order mark": (r"printf '\357\273\277no end' > bom.txt", 0),
    "unusual names": ("echo ü > 'a \"b\" c\t日本.txt'", 0),
    "a large text": (f"yes line | head -c {TREE_TEXT_BYTES * 5 // 4} > large.txt", 1),
    "a new submodule": (f"{TO_OTHER},other", 0),
    "a submodule at another commit": (f"{TO_OTHER},module", 0),
    "a removed submodule": ("git update-index --force-remove module", 0),
    "no change": ("true", -1),
}
"""Changes, and how many requests beside tree, commit and ref they need: one for each content that is not short text."""

REMOVED = ("a removed file", "a removed submodule", "a folder that becomes a file", "a link that becomes a file")
LATER = (
    (*REMOVED, "a changed binary file", "an executable made plain"),
    ("a renamed file", "a copied file"),
    *((name,) for name in ("a moved folder", "a file made executable", "a file that becomes a link", "no change")),
)
TOGETHER = (tuple(name for name in KINDS if not any(name in names for names in LATER)), *LATER)
"""All changes, in groups that one commit can have: so they are met by day, at night also alone."""


def committed(tree: Path) -> str:
    """Commit all that was changed; the folders of submodules are empty in a clone."""
    git(tree, "add", "-A", "--", ".", ":(exclude)module", ":(exclude)other")
    git(tree, "commit", "-q", "--allow-empty", "-m", "Change it\n\nWhy: ü 日本\n\nAccord-Run: one")
    return git(tree, "rev-parse", "HEAD")


def deliver(
    stage: Stage, tree: Path, commit: str, branch: str, *, token: str = INSTALLATION_TOKEN, **known: object
) -> DeliveredCommit | None:
    """Bring a commit of a clone to a branch as its next one; ``expected`` is where the branch should end."""
    github, remote = stage.adapter(token=token), remote_of(stage, token)
    expected = str(known.get("expected", github.ref(f"refs/heads/{branch}") or ""))
    facts = read_commit(Git(tree), commit, is_bot=not github.identity().is_person)
    with scratch_repository(remote, tree) as scratch:
        return deliver_commit(github, scratch, remote, plan_upload(facts), branch, expected)


def written(stage: Stage) -> list[tuple[str, str]]:
    """The requests that wrote something since the last call, without git's."""
    found = [(each[0], each[1]) for each in stage.server.requests if each[0] != "GET" and "/git/" in each[1]]
    stage.server.requests.clear()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [*TOGETHER, *(pytest.param((name,), marks=pytest.mark.matrix) for name in KINDS)],
    ids=lambda names: names[0],
)
def test_every_kind_of_change_arrives_byte_for_byte_signed_and_pushed(
    stage: Stage, tree: Path, names: tuple[str, ...]
) -> None:
    for name in names:
        subprocess.run(["sh", "-ec", KINDS[name][0]], cwd=tree, check=True)
    more = sum(KINDS[name][1] for name in names)
    local = committed(tree)
    written(stage)
    signed = deliver(stage, tree, local, "signed")
    pushed = deliver(stage, tree, local, "pushed", token=stage.server.token)
    assert signed
    assert pushed
    assert (signed.way, signed.is_verified, signed.reason) == ("api", True, "")
    assert (pushed.way, pushed.is_verified, pushed.commit) == ("push", False, local)
    assert "a person's" in pushed.reason
    assert signed.requests == 3 + more == len(written(stage))
    git(tree, "fetch", "-q")
    trees = {git(tree, "rev-parse", f"origin/{name}^{{tree}}") for name in ("signed", "pushed")}
    assert trees == {git(tree, "rev-parse", "HEAD^{tree}")}
    for form in ("%B", "%P"):
        assert git(tree, "show", "-s", f"--format={form}", "origin/signed") == git(
            tree, "show", "-s", f"--format={form}"
        )
    assert git(tree, "show", "-s", "--format=%an, %cn <%ce>", "origin/signed") == (
        "github-actions[bot], GitHub <noreply@github.com>"
    )
    found = stage.get(f"/repos/{stage.repository}/git/commits/{signed.commit}")["verification"]
    assert (found["verified"], found["reason"]) == (True, "valid")


@pytest.mark.slow
def test_a_merge_keeps_its_parents_and_sends_only_what_no_parent_has(stage: Stage, tree: Path) -> None:
    git(tree, "checkout", "-qb", "work")
    (tree / "src/a.py").write_text("a = 2\n")
    commit(tree)
    git(tree, "push", "-q", "origin", "work")
    git(tree, "checkout", "-q", "main")
    (tree / "bin.dat").write_bytes(b"\0other")
    commit(tree)
    git(tree, "push", "-q", "origin", "main")
    git(tree, "checkout", "-q", "work")
    git(tree, "merge", "-q", "--no-ff", "-m", "Merge main", "main")
    made = deliver(stage, tree, git(tree, "rev-parse", "HEAD"), "work")
    assert made
    assert (made.way, made.requests, made.is_verified) == ("api", 3, True)
    git(tree, "fetch", "-q")
    assert git(tree, "rev-parse", "origin/work^1", "origin/work^2") == git(tree, "rev-parse", "HEAD^1", "HEAD^2")
    assert git(tree, "rev-parse", "origin/work^{tree}") == git(tree, "rev-parse", "HEAD^{tree}")


@pytest.mark.slow
def test_a_branch_that_moved_stays_as_it_is(stage: Stage, tree: Path) -> None:
    (tree / "src/a.py").write_text("a = 2\n")
    local = committed(tree)
    git(tree, "checkout", "-q", "-B", "other", "origin/main")
    (tree / "README.md").write_text("by hand\n")
    theirs = commit(tree, "By hand")
    git(tree, "push", "-q", "origin", "other")
    for token in (INSTALLATION_TOKEN, stage.server.token):
        for expected in (git(tree, "rev-parse", "origin/main"), ""):
            assert deliver(stage, tree, local, "other", token=token, expected=expected) is None
    assert stage.get(f"/repos/{stage.repository}/git/ref/heads/other")["object"]["sha"] == theirs


@pytest.mark.slow
@pytest.mark.parametrize("branch", ["main", "new"])
def test_a_branch_that_github_does_not_move_is_named_with_githubs_own_reason(
    stage: Stage, tree: Path, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    (tree / "src/a.py").write_text("a = 2\n")
    local = committed(tree)

    def refuse(*_: object) -> None:
        raise Refusal(422, "Frozen until the release")

    with monkeypatch.context() as patched:
        patched.setattr("accord_sandbox.git_data.check_change", refuse)
        with pytest.raises(Refused, match=f"refused to point refs/heads/{branch} .*Frozen until the release"):
            deliver(stage, tree, local, branch)


WRITES = ("blobs", "trees", "commits", "refs")
FAULTS = ("lost-before", "truncated", "error-502", "error-500-after")


@pytest.mark.slow
@pytest.mark.parametrize("expected", ["new", "existing"])
def test_a_lost_answer_at_any_request_makes_one_commit(stage: Stage, tree: Path, expected: str) -> None:
    """An answer is lost at each request, and the other faults take turns; by day each meets one kind of branch."""
    (tree / "b.dat").write_bytes(b"\0binary")
    local = committed(tree)
    faults = ["lost-after", *FAULTS] if NIGHTLY else ["lost-after"] if expected == "new" else FAULTS
    for nth, fault in rotate(WRITES, faults, lambda *_: True):
        branch = f"{fault}-{nth}"
        if expected == "existing":
            git(tree, "push", "-q", "origin", f"origin/main:refs/heads/{branch}")
        stage.server.faults.add(Fault(fault, nth=nth, path=rf"^/repos/.*/git/({'|'.join(WRITES)})"))
        made = deliver(stage, tree, local, branch)
        stage.server.faults.clear()
        assert made, (nth, fault)
        assert stage.get(f"/repos/{stage.repository}/git/ref/heads/{branch}")["object"]["sha"] == made.commit
        assert made.is_verified


@pytest.mark.slow
def test_a_commit_that_the_api_does_not_make_is_pushed_and_the_reason_is_kept(
    stage: Stage, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "src/a.py").write_text("a = 2\n")
    local = committed(tree)
    facts = replace(read_commit(Git(tree), local, is_bot=True), tree=ELSEWHERE)
    github, remote = stage.adapter(token=INSTALLATION_TOKEN), remote_of(stage, INSTALLATION_TOKEN)
    with scratch_repository(remote, tree) as scratch:
        made = deliver_commit(github, scratch, remote, plan_upload(facts), "other-tree", "")
        monkeypatch.setattr("accord_sandbox.git_data.MOST_TREE_ENTRIES", 0)
        facts = read_commit(Git(tree), local, is_bot=True)
        refused = deliver_commit(github, scratch, remote, plan_upload(facts), "refused", "")
    assert made == DeliveredCommit(local, "push", reason="GitHub made other files of the changes.")
    assert refused
    assert (refused.commit, refused.way) == (local, "push")
    assert "too large to process" in refused.reason


@pytest.mark.slow
def test_a_workflow_file_is_refused_with_the_permission_that_is_missing(stage: Stage, tree: Path) -> None:
    write(tree, {".github/workflows/ci.yml": "on: push\n"})
    local = committed(tree)
    with pytest.raises(Refused, match=r"ci\.yml.*Over the API: .*not accessible by integration") as refused:
        deliver(stage, tree, local, "work")
    assert "workflows: write" in refused.value.hint
    assert stage.adapter().ref("refs/heads/work") is None


def test_a_scratch_clone_has_what_a_commit_needs(stage: Stage) -> None:
    remote = remote_of(stage)
    with scratch_repository(remote, None) as scratch:
        tip = fetch_branch(scratch, remote, "main", "base")
        facts = read_commit(scratch, tip, is_bot=True)
        assert facts.parents
        assert facts.changes


BLOB, TEXT = "b" * 40, "t" * 40


def facts_of(*changes: Change, is_bot: bool = True, has_author: bool = False, **sizes: int) -> CommitFacts:
    texts = {TEXT: "text"} if any(change.blob == TEXT for change in changes) else {}
    known = {TEXT: 4} if texts else {}
    return CommitFacts("c", "t", ("p",), "m\n", is_bot, has_author, "b", changes, {**known, **sizes}, texts)


def change(path: str, blob: str = TEXT, mode: str = "100644") -> Change:
    return Change(path, mode, blob, "0" * 40)


MANY = {f"{number:040x}": 9 for number in range(COMMIT_REQUESTS)}


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (facts_of(change("a")), ""),
        (facts_of(change("a"), is_bot=False), "a person's"),
        (facts_of(change("a"), has_author=True), "an author of its own"),
        (facts_of(change("a\udce9")), "not UTF-8"),
        (facts_of(change("a", BLOB), **{BLOB: BLOB_BYTES}), ""),
        (facts_of(change("a", BLOB), **{BLOB: BLOB_BYTES + 1}), f"A file has {BLOB_BYTES + 1} bytes"),
        (facts_of(*(change(blob, blob) for blob in MANY), **MANY), f"needs {COMMIT_REQUESTS + 3} requests"),
    ],
)
def test_the_way_follows_from_the_facts(facts: CommitFacts, reason: str) -> None:
    upload = plan_upload(facts)
    assert (upload.way == "push") == bool(reason)
    assert reason in upload.reason


def test_removals_come_first_and_contents_that_github_has_are_named() -> None:
    changes = (change("a/b"), change("a", "0" * 40, "000000"), change("known", BLOB), change("sub", BLOB, "160000"))
    upload = plan_upload(facts_of(*changes))
    (entries,) = upload.trees
    assert list(entries.items()) == [
        ("a", None),
        ("a/b", ("100644", "text")),
        ("known", StoredObject("100644", BLOB)),
        ("sub", StoredObject("160000", BLOB)),
    ]
    assert (upload.blobs, upload.requests) == ((), 3)


def test_many_and_long_texts_are_divided_among_requests() -> None:
    blobs = {f"{number:040x}": TREE_TEXT_BYTES // 2 for number in range(5)}
    changes = tuple(change(blob, blob) for blob in blobs)
    facts = replace(facts_of(*changes, **blobs), texts=dict.fromkeys(blobs, "text"))
    assert [len(part) for part in plan_upload(facts).trees] == [2, 2, 1]
    assert [len(part) for part in plan_upload(facts_of(*(change(f"{n}") for n in range(1001)))).trees] == [500, 500, 1]
