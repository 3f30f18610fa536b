"""The sandbox reads the files of a repository like git, and writes the same objects."""

from pathlib import Path

import pytest

from accord.git.program import GitFailed
from accord_sandbox import git_objects
from accord_sandbox.commits import read_commit, read_commits
from accord_sandbox.git_objects import EMPTY_TREE, ZERO
from accord_sandbox.git_storage import HEADS, BareRepository, GitStorage, Signature

SOMEONE = Signature("Some One", "some@example.org", 1_700_000_000)


MANY = "\n".join(f"{n * n} {chr(33 + n % 90) * (n % 9)} {n:b}" for n in range(999))
"""A text for which zlib writes a long table before it."""


@pytest.fixture
def bare(tmp_path: Path) -> BareRepository:
    """A repository with files, folders, tags, and a branch that left the default branch."""
    bare = GitStorage(tmp_path / "git").open("octo/demo")
    stream = f"""commit refs/heads/main
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
data {len(MANY)}
{MANY}

commit refs/heads/work/x
author Ünï "Q" <> 1700000001 -0730
committer Some One <some@example.org> 1700000002 +0000
data 15

Title

Body


from refs/heads/main
M 120000 inline link
data 5
a.txt

tag v1
from refs/heads/main
tagger Some One <some@example.org> 1700000003 +0000
data 3
One
"""
    bare.run("fast-import", "--quiet", content=stream.encode())
    return bare


def names(bare: BareRepository) -> list[str]:
    main, tag = bare.text("rev-parse", "refs/heads/main"), bare.text("rev-parse", "refs/tags/v1")
    starts = [main, tag, "refs/heads/main", "refs/heads/work/x", "refs/tags/v1", "refs/heads/no", "refs/heads/work"]
    starts += ["1" * 40, EMPTY_TREE, main[:9], "main", "HEAD", "refs/heads/main~1", "refs/heads/" + "n" * 300]
    ends = ["", "^{commit}", "^{tree}", ":", ":a.txt", ":folder", ":folder/more/b.sh", ":folder/", ":a.txt/b", ":no"]
    return [f"{start}{end}" for start in starts for end in ends]


@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [False, True])
def test_every_name_means_the_object_that_git_finds(bare: BareRepository, is_packed: bool) -> None:
    if is_packed:
        bare.run("gc", "--quiet")
        bare.commit(EMPTY_TREE, [bare.text("rev-parse", "refs/heads/main")], "Loose", SOMEONE, SOMEONE)
    for name in names(bare):
        assert bare.objects(name) == bare._objects_of_git([name]), name
    assert bare.objects(*names(bare)) == bare._objects_of_git(names(bare))


@pytest.mark.parametrize("is_packed", [False, True])
def test_refs_are_those_that_git_lists(bare: BareRepository, is_packed: bool) -> None:
    if is_packed:
        bare.run("pack-refs", "--all")
        bare.set_ref("refs/heads/main", str(bare.commit_id("work/x")))
        bare.delete_ref("refs/tags/v1")
    bare.set_ref("refs/pull/1/head", str(bare.commit_id("main")))
    bare.run("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    for prefix in (
        HEADS,
        "refs/heads",
        "refs/heads/work",
        "refs/heads/work/x",
        "refs/heads/wo",
        "refs/tags/",
        "refs/no",
    ):
        listed = bare.text("for-each-ref", "--format=%(refname) %(objectname)", prefix).split()
        assert list(bare.refs(prefix).items()) == list(zip(listed[::2], listed[1::2], strict=True)), prefix


def test_no_name_leaves_the_repository(bare: BareRepository) -> None:
    (bare.path / "refs/heads/dir").mkdir()
    outside = bare.path.parent / "outside"
    outside.write_text("1" * 40)
    for name in ("refs/../../outside", "refs/heads/../../../outside", f"refs/{outside}", "refs/heads/dir/../main"):
        assert bare.refs(name) == {}
        assert bare.commit_id(name) is None
        assert bare.branch(name.removeprefix("refs/")) is None


@pytest.mark.parametrize("content", [b"", b"text\n", bytes(range(256)) * 900])
def test_objects_are_stored_like_git_stores_them(bare: BareRepository, content: bytes) -> None:
    sha = bare.write("blob", content)
    assert sha == bare.write("blob", content) == bare.text("hash-object", "--stdin", content=content)
    assert bare.run("cat-file", "blob", sha) == content
    assert bare.run("fsck", "--strict", "--no-dangling") == b""


COMMITS = {
    "plain": (b"author Some One <some@example.org> 1700000000 +0000", b"Title\n\nBody\n"),
    "no name": (b"author  <some@example.org> 1700000000 +0100", b"Title"),
    "another encoding": (
        b"author J\xf6rg <j@example.org> 1700000000 +0000",
        "Grüße\n".encode("latin-1"),
    ),
    "bytes that are not text": (b"author J\xf6rg <j@example.org> 1700000000 +0000", b"\xff\xfe\n"),
}


@pytest.mark.parametrize("case", COMMITS)
def test_a_commit_has_the_fields_that_git_shows(bare: BareRepository, case: str) -> None:
    author, message = COMMITS[case]
    parent = str(bare.commit_id("main"))
    head = f"tree {EMPTY_TREE}\nparent {parent}\n".encode() + author + author.replace(b"author", b"\ncommitter", 1)
    encoding = b"\nencoding ISO-8859-1" if case == "another encoding" else b""
    sha = bare.write("commit", head + encoding + b"\n\n" + message)
    shown = bare.run("show", "-s", "--format=%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B", sha)
    found = read_commit(bare, sha)
    people = [found.author, found.committer]
    fields = [
        found.tree,
        *found.parents,
        *(part for who in people for part in (who.name, who.email, f"{who.seconds:.0f}")),
    ]
    assert [*fields, found.message] == shown.decode(errors="replace").rstrip("\n").split("\0")


def test_histories_are_in_the_order_of_git(bare: BareRepository) -> None:
    tip = str(bare.commit_id("work/x"))
    assert [commit.message for commit in read_commits(bare, tip)] == ["\nTitle\n\nBody", "Start"]
    bare.run("gc", "--quiet")
    assert [commit.sha for commit in read_commits(bare, tip)] == bare.text("rev-list", tip).split()


def test_a_signature_covers_the_rest_of_the_commit(bare: BareRepository) -> None:
    sha = bare.signed_commit(EMPTY_TREE, [], "Signed\n", SOMEONE, SOMEONE)
    unsigned = bare.commit(EMPTY_TREE, [], "Signed\n", SOMEONE, SOMEONE)
    assert read_commit(bare, sha).signed.encode() == bare.run("cat-file", "commit", unsigned)
    assert read_commit(bare, unsigned).signed == ""


def test_only_git_reads_a_pack(bare: BareRepository) -> None:
    main = str(bare.commit_id("main"))
    bare.run("gc", "--quiet")
    with pytest.raises(git_objects.OnlyGit):
        git_objects.read_object(bare.path, main)


@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [False, True])
def test_histories_and_trees_are_those_of_git(bare: BareRepository, is_packed: bool) -> None:
    main, work = str(bare.commit_id("main")), str(bare.commit_id("work/x"))
    tree = bare.text("rev-parse", f"{work}^{{tree}}")
    merge = bare.commit(tree, [work, main], "Merge", SOMEONE, SOMEONE)
    unrelated = bare.commit(tree, [], "Unrelated", SOMEONE, SOMEONE)
    if is_packed:
        bare.set_ref("refs/heads/merge", merge)
        bare.set_ref("refs/heads/unrelated", unrelated)
        bare.run("gc", "--quiet")
    commits = [main, work, merge, unrelated]
    for older, newer in [(older, newer) for older in commits for newer in commits]:
        code, _, _ = bare.attempt("merge-base", "--is-ancestor", older, newer)
        assert bare.is_ancestor(older, newer) is (code == 0)
        assert bare.count_between(older, newer) == int(bare.text("rev-list", "--count", f"{older}..{newer}"))
    for options in ([], ["-r", "-t"]):
        lines = bare.run("ls-tree", "-z", "--long", *options, tree).decode().split("\0")[:-1]
        found = [
            f"{each.mode} {each.kind} {each.sha} {each.size if each.kind == 'blob' else '-':>7}\t{each.path}"
            for each in bare.entries(tree, is_deep=bool(options))
        ]
        assert found == lines


MOVES: dict[str, tuple[str, str | None, bool]] = {
    "new": ("refs/heads/new", ZERO, True),
    "new, in a new folder": ("refs/heads/new/er", None, True),
    "onwards": ("refs/heads/main", "main", True),
    "whatever was there": ("refs/heads/main", None, True),
    "moved meanwhile": ("refs/heads/main", "work/x", False),
    "there already": ("refs/heads/main", ZERO, False),
    "gone meanwhile": ("refs/heads/new", "main", False),
    "below a branch": ("refs/heads/main/more", ZERO, False),
    "above a branch": ("refs/heads/work", ZERO, False),
}


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("case", MOVES)
def test_a_ref_moves_only_from_its_expected_commit(bare: BareRepository, case: str, is_packed: bool) -> None:
    ref, old, is_moved = MOVES[case]
    if is_packed:
        bare.run("pack-refs", "--all")
    before, new = bare.refs("refs/heads"), str(bare.commit_id("work/x"))
    try:
        bare.set_ref(ref, new, bare.commit_id(old) if old and old != ZERO else old)
    except GitFailed:
        assert not is_moved
    assert bare.refs("refs/heads") == before | ({ref: new} if is_moved else {})
    assert bare.text("rev-parse", "--verify", ref if is_moved else "refs/heads/main")
    assert not list(bare.path.rglob("*.lock"))


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
    env = {"GIT_INDEX_FILE": str(tmp_path / "index"), "GIT_WORK_TREE": str(tmp_path)}
    bare.run("read-tree", "main", env=env)
    lines = [f"{' '.join(change or ('0', ZERO))}\t{path}" for path, change in TREES[case].items()]
    bare.run("update-index", "-z", "--index-info", content="".join(f"{line}\0" for line in lines).encode(), env=env)
    assert bare.changed_tree("refs/heads/main", TREES[case]) == bare.text("write-tree", "--missing-ok", env=env)
    if case != "everything removed":
        return
    assert bare.changed_tree(None, {}) == EMPTY_TREE


PEOPLE = [
    ("Some One", "a@b.c"),
    ("Ünï (bot)", "a+b@c.d"),
    ("x[bot]", "1+x[bot]@y.z"),
    (" <odd>. ", "a@b>"),
    ("a\nb", ""),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "email"), PEOPLE)
def test_a_commit_is_the_one_that_git_writes(bare: BareRepository, name: str, email: str) -> None:
    who, main = Signature(name, email, 1_700_000_000.9), str(bare.commit_id("main"))
    for parents, message in [([], "a"), ([main], "Ä\n\nb\n\n"), ([main, str(bare.commit_id("work/x"))], "")]:
        made = bare.commit(EMPTY_TREE, parents, message, who, SOMEONE)
        dates = {"GIT_AUTHOR_DATE": "@1700000000 +0000", "GIT_COMMITTER_DATE": "@1700000000 +0000"}
        people = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email}
        people |= {"GIT_COMMITTER_NAME": SOMEONE.name, "GIT_COMMITTER_EMAIL": SOMEONE.email}
        options = [word for parent in parents for word in ("-p", parent)]
        command = ("commit-tree", EMPTY_TREE, *options, "-F", "-")
        assert made == bare.text(*command, content=message.encode(), env=dates | people)
