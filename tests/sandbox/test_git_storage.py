"""The sandbox reads commits like git, and writes the trees that git writes."""

from dataclasses import replace
from pathlib import Path

import pytest

from accord_sandbox.commits import read_commit
from accord_sandbox.git_storage import EMPTY_TREE, ZERO, BareRepository, GitStorage, Signature

SOMEONE = Signature("Some One", "some@example.org", 1_700_000_000)


@pytest.fixture
def bare(tmp_path: Path) -> BareRepository:
    """A repository with files and folders."""
    bare = GitStorage(tmp_path / "git").open("octo/demo")
    stream = b"""commit refs/heads/main
committer Some One <some@example.org> 1700000000 +0000
data 5
Start
M 100644 inline a.txt
data 1
a
M 100755 inline folder/more/b.sh
data 1
b
M 100644 inline folder/many.txt
data 4
many
"""
    bare.git("fast-import", "--quiet", data=stream)
    return bare


def test_no_name_leaves_the_repository(bare: BareRepository) -> None:
    (bare.path / "refs/heads/dir").mkdir()
    outside = bare.path.parent / "outside"
    outside.write_text("1" * 40)
    for name in ("refs/../../outside", "refs/heads/../../../outside", f"refs/{outside}", "refs/heads/dir/../main"):
        assert bare.refs(name) == {}
        assert bare.commit_id(name) is None
        assert bare.branch(name.removeprefix("refs/")) is None


COMMITS = {
    "no name": (b"author  <some@example.org> 1700000000 +0100", b"Title"),
    "bytes that are not text": (b"author J\xf6rg <j@example.org> 1700000000 +0000", b"\xff\xfe\n"),
}


@pytest.mark.parametrize("case", COMMITS)
def test_a_commit_has_the_fields_that_git_shows(bare: BareRepository, case: str) -> None:
    author, message = COMMITS[case]
    parent = str(bare.commit_id("main"))
    head = f"tree {EMPTY_TREE}\nparent {parent}\n".encode() + author + author.replace(b"author", b"\ncommitter", 1)
    sha = bare.write("commit", head + b"\n\n" + message)
    shown = bare.git("show", "-s", "--format=%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B", sha)
    found = read_commit(bare, sha)
    people = [part for who in (found.author, found.committer) for part in (who.name, who.email, f"{who.seconds:.0f}")]
    fields = [found.tree, *found.parents, *people, found.message]
    assert fields == shown.decode(errors="replace").rstrip("\n").split("\0")


def test_a_signature_covers_the_rest_of_the_commit(bare: BareRepository) -> None:
    sha = bare.commit(EMPTY_TREE, [], "Signed\n", SOMEONE, SOMEONE, is_signed=True)
    unsigned = bare.commit(EMPTY_TREE, [], "Signed\n", SOMEONE, SOMEONE)
    assert read_commit(bare, sha).signed.encode() == bare.git("cat-file", "commit", unsigned)
    assert read_commit(bare, unsigned).signed == ""


FILE = ("100644", "78981922613b2afb6025042ff6bd878ac1994e85")  # a
TREES: dict[str, dict[str, tuple[str, str] | None]] = {
    "new files": {"b.txt": FILE, "folder/c.txt": FILE, "other/deep/d.txt": FILE, "é.txt": FILE},
    "a folder between files": {"folder.txt": FILE, "folder-a": FILE, "folder0": FILE},
    "removed": {"a.txt": None, "folder/more/b.sh": None},
    "removed, though it never was": {"no.txt": None, "no/no.txt": None, "a.txt/no": None},
    "everything removed": {"a.txt": None, "folder/more/b.sh": None, "folder/many.txt": None},
    "other modes": {"a.txt": ("100755", FILE[1]), "link": ("120000", FILE[1]), "sub": ("160000", "1" * 40)},
    "a folder for a file": {"a.txt/b": FILE},
    "a file for a folder": {"folder": FILE},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TREES)
def test_a_changed_tree_is_the_one_that_git_writes(bare: BareRepository, tmp_path: Path, case: str) -> None:
    assert bare.write("blob", b"a\n") == FILE[1]
    work = {"GIT_INDEX_FILE": str(tmp_path / "index"), "GIT_WORK_TREE": str(tmp_path)}
    git = replace(bare.git, environment={**bare.git.environment, **work})
    git("read-tree", "main")
    lines = [f"{' '.join(change or ('0', ZERO))}\t{path}" for path, change in TREES[case].items()]
    git("update-index", "-z", "--index-info", data="".join(f"{line}\0" for line in lines).encode())
    assert bare.changed_tree("refs/heads/main", TREES[case]) == git.line("write-tree", "--missing-ok")
