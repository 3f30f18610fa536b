"""The changes of a run, case by case: hidden, filtered, staged, unfinished, and beside the tree."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from support.trees import commit, copied, git, repository, write

from accord.core.errors import Refused
from accord.git.beside import Search, keep_work_beside
from accord.git.comparison import WorkTreeChanges, changes_since, own_messages
from accord.git.extraction import extract
from accord.git.index import blobs_of
from accord.git.leaving_out import BY_FILTER, HIDDEN, NOT_FETCHED, ONLY_HERE, STATE, UNREADABLE, UNSEEN
from accord.git.patch_text import header_names
from accord.git.patches import changes_between, filtered_findings
from accord.git.program import UNTRUSTED, Git
from accord.git.snapshots import take_snapshot

needs_lfs = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="no git-lfs: apt install git-lfs")
needs_crypt = pytest.mark.skipif(shutil.which("git-crypt") is None, reason="no git-crypt: apt install git-crypt")


FILES = {"a.txt": "a\n", "src/b.py": "b = 1\n", "c/d.txt": "d\n", ".gitignore": "*.gen\nprivate/\n"}


def cloned(folder: Path) -> None:
    git(folder, "clone", "-q", str(repository(folder / "origin", FILES)), "work")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return copied(tmp_path, cloned) / "work"


def ran(work: Path, agent: Callable[[], object]) -> WorkTreeChanges:
    """Let an agent work, and return what it changed."""
    before = take_snapshot(work)
    assert before
    agent()
    return changes_since(before)


def paths(patch: bytes) -> list[str]:
    """Return the paths of a patch, of a rename both."""
    found = {name for key, pair in header_names(patch) if key == b"diff --git" for name in pair.split(" ")}
    return sorted({name[2:] for name in found})


HIDE = {
    "exclude": "mkdir -p .git/info; echo '*.local' > .git/info/exclude; echo password > mine.local",
    "user": "echo '*.local' > ../all; git config core.excludesFile $PWD/../all; echo password > mine.local",
    "skip-worktree": "echo password > a.txt; git update-index --skip-worktree a.txt",
    "assume-unchanged": "echo password > a.txt; git update-index --assume-unchanged a.txt",
}
"""Ways to hide a file with a secret from git."""

COMMIT = "git add -A; git commit -qm Before"
SPARSE = "git update-index -q --refresh; git sparse-checkout set src; test ! -e c/d.txt"
ADD_SPARSE = "add() { git add --sparse -f $@; git commit -qm new; git sparse-checkout reapply; }; add"
CACHE = "git update-index --add --cacheinfo 100644,$(echo cached | git hash-object -w --stdin)"
AS_MERGED = """
git switch {how} side; echo password > public.txt; git add public.txt; git commit -qm side
git update-ref refs/remotes/origin/side HEAD; git switch -q main; git merge -q --allow-unrelated-histories side
"""


class Case(NamedTuple):
    """The work of an agent in a shell, that of a person before it, the paths in the patch, and those left out."""

    agent: str
    patch: list[str]
    left_out: Mapping[str, str] = MappingProxyType({})
    before: str = ""
    extracted: list[str] | None = None
    remark: str = ""
    has: tuple[str, ...] = ()  # parts of each patch
    lacks: tuple[str, ...] = ("password",)


CASES = {
    **{
        f"a change of a hidden file: {how}": Case(
            f"echo more >> {(name := text.split()[-1])}; echo new > new.txt", ["new.txt"], {name: HIDDEN}, text,
            ["new.txt"], f"{UNSEEN}: {name}.",
        )
        for how, text in HIDE.items()
    },
    "what is staged: a file by force, a removal and a mode": Case(
        "git add -f forced.gen; git rm -q --cached c/d.txt; git update-index --chmod=+x src/b.py",
        ["c/d.txt", "forced.gen", "src/b.py"], {}, "echo 'was there' > forced.gen; git config core.fileMode false",
        ["c/d.txt", "forced.gen", "src/b.py"], "", ("new mode 100755", "deleted file mode", "+was there"),
    ),
    **{
        f"one file in another encoding: {attributes}": Case(
            f"mkdir deep; printf '{data}' > '{name}'; echo new > new.txt", [name, "new.txt"], {},
            f"echo '{attributes}' > .gitattributes; {COMMIT}", [name, "new.txt"], "", ("+new",),
        )
        for attributes, name, data in (
            ("*.php text diff=php", "l.php", "h\\351llo\\n"), ("* text diff", "deep/xy.txt", "\\377\\376\\n"),
        )
    },
    "a file that is not in its encoding": Case(
        "echo no byte order mark > odd.txt; echo new > new.txt", ["new.txt"], {"odd.txt": UNREADABLE},
        f"echo 'odd.txt working-tree-encoding=UTF-16' > .gitattributes; {COMMIT}", ["new.txt"],
        f"{UNREADABLE}: odd.txt.", ("+new",),
    ),
    **{
        f"a line in a work tree with other line ends: {setting}": Case(
            "printf 'b = 1\\r\\nc = 2\\r\\n' > src/b.py", ["src/b.py"], {},
            f"git config core.autocrlf {setting}; rm -r src; git checkout -q src", ["src/b.py"], "", ("+c = 2\n",),
            ("\r", "-b"),
        )
        for setting in ("true", "input")
    },
    "settings that the agent writes into git": Case(
        "git config core.autocrlf true; for key in filter.evil.clean core.fsmonitor diff.evil.textconv diff.external; "
        "do git config $key 'touch ../ran; cat'; done; mkdir -p .git/info; "
        "echo '* filter=evil diff=evil' | tee .git/info/attributes > .gitattributes; printf 'x\\r\\n' > win.txt",
        [".gitattributes", "win.txt"], has=("+x\r\n",),
    ),
    "a file whose rule the agent deletes stays private": Case(
        "true > .gitignore; chmod 600 old.gen; echo new | tee new.gen > private/new",
        [".gitignore", "new.gen", "private/new"], before="mkdir private; echo secret | tee old.gen > private/key",
    ),
    "a merge outside of the sparse cone": Case(
        "git merge -q side", ["c/d.txt"], {},
        f"git switch -qc side; echo new > c/d.txt; {COMMIT}; git switch -q main; {SPARSE}",
    ),
    "a change outside of the sparse cone": Case(
        "mkdir -p c; echo new > c/new.txt; echo b = 2 > src/b.py", ["c/new.txt", "src/b.py"],
        before=SPARSE, extracted=["c/new.txt", "src/b.py"],
    ),
    **{
        f"the index outside of the sparse cone: {agent}": Case(
            f"{agent}; echo b = 2 > src/b.py", sorted([*changed, "src/b.py"]), left or {},
            f"mkdir e; echo e > e/f.txt; {COMMIT}; {SPARSE}; echo password > key.gen", has=tuple(has),
        )
        for agent, changed, left, *has in (
            (f"git sparse-checkout add c; git mv c/d.txt c/e.txt; {COMMIT}", ["c/d.txt", "c/e.txt"], {}, "rename to"),
            ("git sparse-checkout add c; mv c/d.txt c/e.txt", ["c/d.txt", "c/e.txt"], {}, "rename to"),
            ("git rm -q --sparse c/d.txt", ["c/d.txt"], {}, "deleted file mode"),
            ("git rm -q --sparse c/d.txt; git commit -qm gone", ["c/d.txt"], {}, "deleted file mode"),
            ("git mv --sparse c/d.txt c/e.txt; git commit -qm moved", ["c/d.txt", "c/e.txt"], {}, "rename from"),
            ("git sparse-checkout disable; git rm -q c/d.txt", ["c/d.txt"], {}, "deleted file mode"),
            ("git sparse-checkout disable; rm -r c", ["c/d.txt"], {}, "deleted file mode"),
            (f"mkdir c; echo n > c/n; {ADD_SPARSE} c/n", ["c/n"], {}, "+n\n"),
            (f"mkdir c; cp key.gen c/n; echo n > c/m; {ADD_SPARSE} c/n c/m", ["c/m"], {"c/n": HIDDEN}),
            (f"mkdir -p c/.accord; echo n > c/.accord/n; {ADD_SPARSE} c/.accord/n", [], {"c/.accord/n": STATE}),
            (f"{CACHE},c/d.txt; git commit -qm cached", ["c/d.txt"], {}, "+cached", "-d\n"),
            (f"{CACHE},c/new.txt; git commit -qm cached", ["c/new.txt"], {}, "+cached"),
            ("git read-tree HEAD; git rm -q --cached --sparse c/d.txt", ["c/d.txt"], {}, "deleted file mode"),
            ("rm .git/index; git reset -q; git rm -q --sparse c/d.txt", ["c/d.txt"], {}, "deleted file mode"),
            ("git sparse-checkout set c; git sparse-checkout set src; git rm -q --sparse c/d.txt", ["c/d.txt"], {}),
        )
    },
    "a file outside of the sparse cone beside one that a person removed": Case(
        "git rm -q --sparse e/f.txt; git commit -qm gone", ["e/f.txt"], {},
        f"mkdir e; echo e > e/f.txt; {COMMIT}; {SPARSE}; git rm -q --sparse c/d.txt",
    ),
    "a state file that a setting hides and the agent stages": Case(
        "echo log > run.log; git add -f run.log; echo new > new.txt", ["new.txt"], {"run.log": STATE},
        "mkdir -p .git/info; echo '*.log' > .git/info/exclude", ["new.txt"], f"{STATE}: run.log.",
    ),
    "a pipe in the place of a file": Case(
        "rm a.txt; mkfifo a.txt; echo new > new.txt", ["new.txt"], {"a.txt": UNREADABLE}
    ),
    "another work tree below this one": Case(
        "git worktree add -q -b lane lane; echo new > lane/new.txt; echo new > new.txt", ["new.txt"],
        before="echo /lane >> .git/info/exclude", extracted=["new.txt"],
    ),
    "a mode at which git does not look": Case(
        "chmod +x a.txt; echo new > new.txt", ["a.txt", "new.txt"], before="git config core.fileMode false",
        extracted=["new.txt"],
    ),
    "a name in another case on a disk that tells them apart": Case(
        "mv a.txt A.txt; git mv src SRC", ["A.txt", "SRC/b.py", "a.txt", "src/b.py"],
        before="git config core.ignorecase true", extracted=["A.txt", "SRC/b.py", "a.txt", "src/b.py"],
    ),
    "a folder in the place of a file and of a link": Case(
        "rm a.txt link; mkdir a.txt link; echo new > link/new.txt", ["a.txt", "link", "link/new.txt"],
        before=f"ln -s c link; {COMMIT}", extracted=["a.txt", "link", "link/new.txt"],
    ),
    "new state files that the agent committed": Case(
        f"mkdir .accord; echo x | tee .accord/run run.log > new.txt; {COMMIT}", ["new.txt"],
        dict.fromkeys([".accord/run", "run.log"], STATE),
    ),
    "new state files beside those of the commit before": Case(
        "mkdir .accord/runs; touch .accord/new .accord/runs/a; git add .accord; echo x | tee -a .accord/b .accord/old",
        [".accord/old"], dict.fromkeys([".accord/new", ".accord/b", ".accord/runs/a"], STATE),
        f"mkdir .accord; echo old > .accord/old; {COMMIT}", [".accord/old"],
        f"{STATE}: .accord/b, .accord/new, .accord/runs/a.",
    ),
    "a state file that is moved": Case(
        "git mv .accord/old .accord/new; echo new > new.txt", ["new.txt"],
        dict.fromkeys([".accord/old", ".accord/new"], STATE), f"mkdir .accord; echo old > .accord/old; {COMMIT}",
        ["new.txt"], f"{STATE}: .accord/new, .accord/old.",
    ),
    "a link has no filter": Case(
        "ln -s a.txt link.key", ["link.key"], before=f"echo '*.key filter=upper' > .gitattributes; {COMMIT}",
        extracted=["link.key"],
    ),
    **{
        f"an index that says nothing of the agent's work: {how}": Case(
            f"{how}; echo b = 2 > src/b.py", ["src/b.py"], before=f"echo new > new.txt; {COMMIT}"
        )
        for how in ("rm .git/index", "git reset -q HEAD~1", SPARSE)
    },
    "all is added without the user's settings": Case(
        "git -c core.excludesFile=/dev/null add -A; git commit -qm all", [], before=HIDE["user"]
    ),
    "a name that looks like a pattern": Case(
        "echo more > mine.local", [], {"mine.local": HIDDEN}, f"{HIDE['exclude']}; echo x > ':!x'"
    ),
    "a private file that the agent calls merged": Case(
        AS_MERGED.format(how="-q --orphan"), [], {"public.txt": HIDDEN}, "echo password > key.gen"
    ),
    "a private file on a ref of the agent": Case(
        AS_MERGED.format(how="-qc"), [], {"public.txt": HIDDEN}, "echo password > key.gen"
    ),
    "a private file beside a folder of many": Case(
        "mv my.secret public.txt", [], {"public.txt": HIDDEN},
        f"printf '.cache/\\n*.secret\\n' > .gitignore; {COMMIT}; mkdir .cache; "
        "for n in $(seq 1100); do echo $n > .cache/$n; done; echo password > my.secret",
    ),
    "a new file in the place of a moved one": Case(
        "true", [], before="git mv src/b.py src/c.py; echo shim > src/b.py", extracted=["src/b.py", "src/c.py"]
    ),
}  # fmt: skip


def shell(work: Path, text: str) -> None:
    subprocess.run(["sh", "-ec", text], cwd=work, check=True, capture_output=True)


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_in_the_patch_or_left_out_and_named(work: Path, name: str) -> None:
    case = CASES[name]
    shell(work, case.before)
    changes = ran(work, lambda: shell(work, case.agent))
    assert (paths(changes.patch), changes.left_out) == (case.patch, case.left_out)
    patches = [changes.patch.decode()]
    if case.extracted is not None:
        found = extract(work, "HEAD")
        assert (paths(found.patch), found.remarks) == (case.extracted, (case.remark,) if case.remark else ())
        patches.append(found.patch.decode())
    for patch in patches:
        assert all(part in patch for part in case.has)
        assert not any(part in patch for part in case.lacks)
    assert not (work.parent / "ran").exists()


def test_a_removed_file_that_a_partial_clone_never_fetched_is_left_out(work: Path) -> None:
    git(work, "config", "uploadpack.allowFilter", "true")
    git(work.parent, "clone", "-q", "--filter=blob:none", "--sparse", work.as_uri(), "partial")
    partial = work.parent / "partial"
    changes = ran(partial, lambda: shell(partial, "git rm -q --sparse c/d.txt; echo new > new.txt"))
    assert (paths(changes.patch), changes.left_out) == (["new.txt"], {"c/d.txt": NOT_FETCHED})


def test_a_file_that_git_cannot_read_takes_no_other_with_it(work: Path) -> None:
    paths = ["src/b.py", "a.txt"]
    stored = dict(zip(paths, git(work, "hash-object", *paths).split(), strict=True))
    assert blobs_of(Git(work), ["gone", "src/b.py", "src", "gone", "a.txt", "gone"]) == stored


def test_files_that_a_person_had_staged_or_left_undone_are_not_the_agents(work: Path) -> None:
    (work / "src/b.py").write_text("b = 2\n")
    git(work, "add", "src/b.py")
    (work / "note.txt").write_text("mine\n")
    changes = ran(work, lambda: commit(work, "agent adds all"))
    assert (changes.patch, sorted(changes.untouched)) == (b"", ["note.txt", "src/b.py"])


@pytest.mark.parametrize("program", ["gpg.program", "gpg.ssh.program"])
def test_reading_the_messages_of_an_agents_commits_starts_no_program_of_its_settings(work: Path, program: str) -> None:
    start, tree = (git(work, "rev-parse", name) for name in ("HEAD", "HEAD^{tree}"))
    evil = work.parent / "evil"
    evil.write_text(f"#!/bin/sh\ntouch '{work.parent / 'ran'}'\n")
    evil.chmod(0o755)
    for key, value in (
        (program, str(evil)),
        ("log.showSignature", "true"),
        ("gpg.ssh.allowedSignersFile", "/dev/null"),
    ):
        git(work, "config", key, value)
    kind = "SSH" if "ssh" in program else "PGP"
    signature = f"gpgsig -----BEGIN {kind} SIGNATURE-----\n \n x\n -----END {kind} SIGNATURE-----\n"
    who = "A <a@b.c> 1700000000 +0000"
    text = f"tree {tree}\nparent {start}\nauthor {who}\ncommitter {who}\n{signature}\nMine\n"
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"], cwd=work, input=text, capture_output=True, text=True
    )
    git(work, "reset", "-q", "--hard", made.stdout.strip())
    assert own_messages(Git(work, UNTRUSTED), start) == ("Mine",)
    assert not (work.parent / "ran").exists()


def with_lfs(work: Path) -> None:
    git(work, "lfs", "install", "--local", "--skip-repo")
    git(work, "lfs", "track", "*.bin")
    (work / "old.bin").write_bytes(b"\0old\n" * 100)
    commit(work, "an object of LFS")


@needs_lfs
def test_files_of_lfs_stay_pointers_and_a_changed_one_is_named(work: Path) -> None:
    with_lfs(work)

    def agent() -> None:
        (work / "old.bin").write_bytes((work / "old.bin").read_bytes())  # touched
        (work / "a.txt").write_text("more\n")

    assert paths(ran(work, agent).patch) == paths(extract(work, "HEAD").patch) == ["a.txt"]
    changes = ran(work, lambda: [(work / name).write_bytes(b"\0new\n") for name in ("old.bin", "more.bin")])
    assert changes.left_out == {"old.bin": BY_FILTER, "more.bin": BY_FILTER}
    assert paths(changes.patch) == []
    assert extract(work, "HEAD").remarks == (f"{BY_FILTER}: more.bin, old.bin.",)


@needs_lfs
def test_a_pointer_in_a_checkout_without_lfs_is_stored_as_a_pointer(work: Path, tmp_path: Path) -> None:
    with_lfs(work)
    bare = tmp_path / "without"
    git(tmp_path, "-c", "filter.lfs.smudge=", "-c", "filter.lfs.required=false", "clone", "-q", str(work), str(bare))
    pointer = (bare / "old.bin").read_text()
    changes = ran(bare, lambda: (bare / "new.bin").write_text(pointer))
    assert (paths(changes.patch), changes.left_out) == (["new.bin"], {})


@needs_crypt
def test_no_clear_text_of_an_encrypted_file_leaves_the_work_tree(work: Path) -> None:
    subprocess.run(["git-crypt", "init"], cwd=work, check=True, capture_output=True)
    (work / ".gitattributes").write_text("*.key filter=git-crypt diff=git-crypt\n")
    (work / "one.key").write_text("first password\n")
    (work / "two.key").write_text("second password\n")
    commit(work, "encrypted")
    start = git(work, "rev-parse", "HEAD")

    def agent() -> None:
        (work / "one.key").write_text((work / "one.key").read_text())  # touched
        (work / "two.key").write_text("third password\n")
        (work / "new.key").write_text("fourth password\n")
        (work / "a.txt").write_text("more\n")

    changes = ran(work, agent)
    assert (paths(changes.patch), sorted(changes.left_out)) == (["a.txt"], ["new.key", "two.key"])
    assert b"password" not in changes.patch + extract(work, "HEAD").patch
    git(work, "-c", "filter.git-crypt.clean=", "-c", "filter.git-crypt.required=false", "add", "two.key")
    git(work, "commit", "-qm", "clear text")
    assert b"password" not in extract(work, start).patch
    found = filtered_findings(Git(work), start, changes_between(Git(work), start, "HEAD"))
    assert {path: finding.code for path, finding in found.items()} == {"two.key": "filtered-content"}


def conflict(work: Path) -> None:
    git(work, "switch", "-qc", "side")
    (work / "a.txt").write_text("side\n")
    git(work, "commit", "-qam", "side")
    git(work, "switch", "-q", "main")
    (work / "a.txt").write_text("main\n")
    git(work, "commit", "-qam", "main")


def attempt(work: Path, *words: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        git(work, *words)


@pytest.mark.parametrize("command", [["merge", "side"], ["rebase", "side"], ["cherry-pick", "side"]])
def test_a_merge_that_stopped_does_not_count_as_a_result(work: Path, command: list[str]) -> None:
    conflict(work)
    changes = ran(work, lambda: attempt(work, *command))
    assert f"a {command[0]} left conflicts in a.txt" in changes.unfinished
    assert ran(work, lambda: write(work, {"new.txt": "new\n"})).unfinished == changes.unfinished
    (work / "a.txt").write_text("both\n")
    assert ran(work, lambda: git(work, "add", "a.txt")).unfinished == f"a {command[0]} was not continued"
    with pytest.raises(Refused, match="conflict-markers"):
        extract(work, "HEAD")
    assert ran(work, lambda: git(work, "-c", "core.editor=true", command[0], "--continue")).unfinished == ""


def test_markers_that_were_committed_are_found_and_old_ones_and_headings_are_not(work: Path) -> None:
    (work / "c/d.txt").write_text("<<<<<<< one\n1\n=======\n2\n>>>>>>> two\nHeading\n=======\n")
    commit(work, "a page about markers")
    conflict(work)

    def agent() -> None:
        attempt(work, "merge", "side")
        commit(work, "merged badly")
        (work / "c/d.txt").write_text((work / "c/d.txt").read_text() + "Another\n=======\n>>>>>>> quoted\n")

    changes = ran(work, agent)
    assert (changes.marked, changes.unfinished) == (("a.txt",), "")


def beside(work: Path, folder: Path, agent: Callable[[], object], secrets: list[str] | None = None) -> list[str]:
    before = take_snapshot(work)
    assert before
    agent()
    folder.mkdir()
    search = Search([secret.encode() for secret in secrets or []], before.is_private)
    return keep_work_beside(before.agents_git(), before.commit, before.beside, folder, search)


def on_branch(words: str = "-c side-work", text: str = "beside", message: str = "Work") -> str:
    """Return the script that commits on another branch, which git switches to by these words, and comes back."""
    made = f"printf '{text}\\n' > new.txt; git add -A; git commit -qm '{message}'"
    return f"git switch -q {words}; {made}; git switch -q main"


IN_STASH = "echo beside > new.txt; git stash push -qu"
IN_WORK_TREE = "git worktree add -q -b lane lane; cd lane; echo beside > new.txt; git add -A; git commit -qm lane"


@pytest.mark.parametrize("place", ["", "src"])
def test_a_patch_from_a_subfolder_leaves_other_work_trees_out(work: Path, place: str) -> None:
    shell(work, IN_WORK_TREE)
    assert extract(work / place, "main").patch == b""


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        *((on_branch(f"-c side-work {start}"), "side-work") for start in ("", "HEAD~1", "origin/other")),
        (on_branch("--orphan side-work"), "side-work"),
        (on_branch("--detach"), "a detached HEAD"),
        (IN_STASH, "the stash"),
        (IN_WORK_TREE, "lane"),
    ],
)
def test_commits_beside_the_tree_are_kept_and_named_with_the_way_back(
    work: Path, tmp_path: Path, agent: str, name: str
) -> None:
    git(tmp_path / "origin", "switch", "-q", "-c", "other")
    (tmp_path / "origin/other.txt").write_text("other\n")
    commit(tmp_path / "origin", "other")
    git(work, "fetch", "-q")
    (work / "a.txt").write_text("later\n")
    commit(work, "later")
    git(work, "push", "-q", "origin", "main")
    (said,) = beside(work, tmp_path / "run", lambda: shell(work, agent))
    assert name in said
    command = said.split("`")[1].replace("beside.bundle", str(tmp_path / "run/beside.bundle"))
    git(tmp_path / "origin", *command.split()[1:])
    kept = git(tmp_path / "origin", "log", "-p", "-m", "FETCH_HEAD")
    assert "+beside" in kept
    assert git(work, "for-each-ref", "refs/accord") == ""


def test_an_amended_commit_and_old_places_are_not_work_beside_the_tree(work: Path, tmp_path: Path) -> None:
    shell(work, f"{on_branch()}; {IN_STASH}")
    agent = f"echo one > new.txt; {COMMIT}; git commit -q --amend -m better"
    assert beside(work, tmp_path / "run", lambda: shell(work, agent)) == []


def add_submodule(work: Path, tmp_path: Path) -> None:
    git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "origin"), "part")
    commit(work, "a submodule")


def test_edits_in_a_submodule_and_another_work_tree_are_kept_as_patches(work: Path, tmp_path: Path) -> None:
    add_submodule(work, tmp_path)

    def agent() -> None:
        (work / "part/a.txt").write_text("edited\n")
        git(work, "worktree", "add", "-q", "--detach", str(tmp_path / "lane"))
        (tmp_path / "lane/new.txt").write_text("beside\n")

    first, second = sorted(beside(work, tmp_path / "run", agent))
    assert str(tmp_path / "lane") in first
    assert "part" in second
    texts = [(tmp_path / f"run/beside-{number}.patch").read_text() for number in (1, 2)]
    assert any("+edited" in text for text in texts)
    assert any("+beside" in text for text in texts)
    assert paths(ran(work, lambda: None).patch) == []


@pytest.mark.parametrize(
    ("made", "secret"),
    [
        ({}, "beside"),
        ({"text": "a-secret-\\n  of-the-job"}, "a-secret-of-the-job"),
        ({"message": "the password is tr0ub4dor"}, "tr0ub4dor"),
    ],
)
def test_work_beside_the_tree_with_a_secret_is_named_and_not_kept(
    work: Path, tmp_path: Path, made: dict[str, str], secret: str
) -> None:
    (said,) = beside(work, tmp_path / "run", lambda: shell(work, on_branch(**made)), [secret])
    assert "holds a secret of the job" in said
    assert list((tmp_path / "run").iterdir()) == []


def test_merged_commits_are_noted(work: Path) -> None:
    conflict(work)
    side = git(work, "rev-parse", "side")

    def agent() -> None:
        attempt(work, "merge", "side")
        (work / "a.txt").write_text("both\n")
        commit(work, "merged")

    changes = ran(work, agent)
    assert (changes.merged, changes.unfinished, changes.marked) == ((side,), "", ())


OWN = "git fetch -q; echo own > own.txt; git add -A; git commit -qm own; "
MERGES = {
    "merge": f"{OWN} git merge -q origin/main",
    "octopus": f"{OWN} git branch more HEAD~1; git switch -q more; echo more > more.txt; git add -A; "
    "git commit -qm more; git switch -q main; git merge -q more origin/main",
    "the other way round": f"{OWN} git switch -q --detach origin/main; git merge -q main; git switch -q -C main",
    "ahead": "git fetch -q; git merge -q --ff-only origin/main",
}
"""Ways to bring the base ``origin/main`` into the branch."""


@pytest.mark.slow
@pytest.mark.parametrize("how", MERGES)
def test_the_base_is_noted_in_whatever_way_it_was_merged(work: Path, tmp_path: Path, how: str) -> None:
    (tmp_path / "origin/base.txt").write_text("base\n")
    base = commit(tmp_path / "origin", "base")
    assert base in ran(work, lambda: shell(work, MERGES[how])).merged


@pytest.mark.slow
@pytest.mark.parametrize("is_edited", [False, True])
def test_a_merge_takes_filtered_files_of_the_base_as_they_are_stored_there(
    work: Path, tmp_path: Path, is_edited: bool
) -> None:
    """Without them, the pushed merge would undo what the base did to them."""
    origin = tmp_path / "origin"
    write(origin, {".gitattributes": "*.key filter=upper\n", "one.key": "STORED\n"})
    commit(origin, "stored through a filter")
    git(work, "config", "filter.upper.clean", "tr a-z A-Z")
    git(work, "config", "filter.upper.smudge", "tr A-Z a-z")
    git(work, "pull", "-q")
    start = git(work, "rev-parse", "HEAD")
    (origin / "one.key").write_text("STORED AGAIN\n")
    commit(origin, "changed through a filter")

    def agent() -> None:
        shell(work, MERGES["merge"])
        assert (work / "one.key").read_text() == "stored again\n"
        if is_edited:
            (work / "one.key").write_text("edited\n")

    changes = ran(work, agent)
    assert changes.left_out == {"one.key": BY_FILTER}
    made = tmp_path / "made"
    git(tmp_path, "clone", "-q", "--no-checkout", str(work), str(made))
    git(made, "read-tree", start)
    subprocess.run(["git", "apply", "--cached"], cwd=made, check=True, input=changes.patch)
    assert git(made, "cat-file", "blob", ":one.key") == "STORED AGAIN"


def test_an_agents_repository_runs_no_program_and_lends_no_other_repository(work: Path, tmp_path: Path) -> None:
    """A missing object is not fetched, no filter of a submodule runs, and no work tree of elsewhere is read."""
    add_submodule(work, tmp_path)
    program, mark, other = tmp_path / "program", tmp_path / "ran", tmp_path / "other"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    git(tmp_path, "clone", "-q", str(tmp_path / "origin"), str(other))
    (other / "private.txt").write_text("private\n")

    def agent() -> None:
        for tree in (work, work / "part"):
            for key, value in {
                "extensions.partialClone": "evil",
                "remote.evil.promisor": "true",
                "remote.evil.url": f"ext::{program}",
                "protocol.ext.allow": "always",
                "filter.evil.clean": str(program),
                "core.fsmonitor": str(program),
                "core.repositoryFormatVersion": "1",
            }.items():
                git(tree, "config", key, value)
        (work / "part/.gitattributes").write_text("* filter=evil\n")
        (work / "part/a.txt").write_text("edited\n")
        (work / ".git/refs/heads/missing").write_text("1" * 40 + "\n")
        place = work / ".git/worktrees/x"
        place.mkdir(parents=True)
        for name, text in {
            "gitdir": f"{other}/.git\n",
            "HEAD": "ref: refs/heads/main\n",
            "commondir": "../..\n",
        }.items():
            (place / name).write_text(text)
        mark.unlink(missing_ok=True)

    said = beside(work, tmp_path / "run", agent)
    ran(work, lambda: None)
    assert not mark.exists()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").iterdir())
    assert b"private" not in kept
    assert any("part" in text for text in said)


def test_an_empty_filter_and_a_deep_folder_stop_nothing(work: Path) -> None:
    (work / ".gitattributes").write_text("*.txt filter=\n")
    commit(work, "an empty filter")

    def agent() -> None:
        os.chdir(work)
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
        os.chdir(work)
        (work / "a.txt").write_text("more\n")

    here = Path.cwd()
    try:
        assert "a.txt" in paths(ran(work, agent).patch)
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-rf", str(work / "d")], check=True)  # Python's own way is too deep for it


def test_hidden_files_in_a_stash_are_not_kept(work: Path, tmp_path: Path) -> None:
    shell(work, HIDE["exclude"])
    (said,) = beside(work, tmp_path / "run", lambda: git(work, "stash", "push", "-q", "--all"))
    assert "private" in said
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize("command", ["mv src lib", "git mv src lib; git add -A"])
@pytest.mark.parametrize("how", ["exclude", "user", "ignored", "skip-worktree"])
def test_a_private_file_is_not_published_because_its_folder_was_renamed(work: Path, how: str, command: str) -> None:
    hide = HIDE.get(how, f"echo '/src/mine.local' > .gitignore; {COMMIT}; echo password > mine.local")
    shell(work, hide.replace("a.txt", "src/b.py").replace("> mine", "> src/mine"))
    changes = ran(work, lambda: subprocess.run(["sh", "-c", command], cwd=work, check=False, capture_output=True))
    assert b"password" not in changes.patch


@needs_lfs
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_file_of_lfs_that_became_something_else_holds_up_nothing(work: Path, tmp_path: Path, kind: str) -> None:
    with_lfs(work)
    copy = tmp_path / "copy"
    copy.write_bytes((work / "old.bin").read_bytes())

    def agent() -> None:
        (work / "old.bin").unlink()
        os.mkfifo(work / "old.bin") if kind == "pipe" else (work / "old.bin").symlink_to(copy)

    changes = ran(work, agent)
    assert {*changes.left_out, *paths(changes.patch)} == {"old.bin"}


@needs_crypt
def test_moved_files_with_a_filter_stay_where_they_are(work: Path) -> None:
    subprocess.run(["git-crypt", "init"], cwd=work, check=True, capture_output=True)
    write(work, {".gitattributes": "keys/** filter=git-crypt diff=git-crypt\n", "keys/one": "password\n"})
    commit(work, "encrypted")
    changes = ran(work, lambda: (work / "keys").rename(work / "vault"))
    assert (changes.patch, sorted(changes.left_out)) == (b"", ["keys/one", "vault/one"])


@needs_lfs
def test_a_moved_file_of_lfs_keeps_its_pointer(work: Path) -> None:
    with_lfs(work)
    changes = ran(work, lambda: (work / "old.bin").rename(work / "moved.bin"))
    assert (changes.left_out, b"rename to moved.bin" in changes.patch) == ({}, True)


def test_a_submodule_that_was_not_checked_out_can_be_removed_and_moved_on(work: Path, tmp_path: Path) -> None:
    add_submodule(work, tmp_path)
    git(work, "submodule", "--quiet", "deinit", "-f", "part")
    head = git(work, "rev-parse", "HEAD")
    assert b"Subproject" in ran(work, lambda: git(work, "update-index", "--cacheinfo", f"160000,{head},part")).patch
    git(work, "reset", "-q", "--hard")
    assert b"deleted file mode 160000" in ran(work, lambda: git(work, "rm", "-q", "part")).patch


def test_a_repository_in_a_folder_with_an_odd_name_has_a_patch(work: Path) -> None:
    odd = work.rename(work.with_name("odd:name \u00fc"))
    (odd / "a.txt").write_text("more\n")
    git(odd, "add", "a.txt")
    assert paths(extract(odd, "HEAD").patch) == ["a.txt"]


def test_a_branch_whose_name_is_not_utf8_stops_nothing(work: Path, tmp_path: Path) -> None:
    (said,) = beside(work, tmp_path / "run", lambda: shell(work, on_branch(os.fsdecode(b"-c b\xff"))))
    assert said.encode()


@needs_lfs
def test_a_new_file_of_lfs_may_have_any_name(work: Path) -> None:
    with_lfs(work)
    names = ["new file.bin", "new\nline.bin", os.fsdecode(b"l\xe9.bin")]
    for name in names:
        (work / name).write_bytes(b"\0new\n")
    (remark,) = extract(work, "HEAD").remarks
    assert remark.startswith(BY_FILTER)
    assert "new file.bin" in remark
    assert sorted(ran(work, lambda: [(work / name).write_bytes(b"\0newer\n") for name in names]).left_out) == sorted(
        names
    )


def test_a_commit_in_a_submodule_is_kept_beside_and_one_of_its_remote_is_stored(work: Path, tmp_path: Path) -> None:
    add_submodule(work, tmp_path)

    def commits() -> None:
        (work / "part/a.txt").write_text("edited\n")
        commit(work / "part", "in the submodule")
        (work / "new.txt").write_text("new\n")

    before = take_snapshot(work)
    assert before
    (said,) = beside(work, tmp_path / "run", commits)
    assert "Changes in part are not in the patch" in said
    assert "+edited" in (tmp_path / "run/beside-1.patch").read_text()
    changes = changes_since(before)
    assert (paths(changes.patch), changes.left_out) == (["new.txt"], {"part": ONLY_HERE})
    assert extract(work, "HEAD").remarks == (f"{ONLY_HERE}: part.",)
    git(work / "part", "switch", "-q", "--detach", "main~0")
    git(work / "part", "reset", "-q", "--hard", "origin/main")
    (tmp_path / "origin/more.txt").write_text("more\n")
    commit(tmp_path / "origin", "more")

    def updates() -> None:
        git(work / "part", "fetch", "-q")
        git(work / "part", "checkout", "-q", "--detach", "origin/main")

    assert paths(ran(work, updates).patch) == ["part"]


def test_a_link_that_becomes_a_folder_while_its_like_is_made_elsewhere_can_be_applied(
    work: Path, tmp_path: Path
) -> None:
    (work / "link").symlink_to("a.txt")
    start = commit(work, "a link")

    def agent() -> None:
        (work / "link").unlink()
        write(work, {"link/inner": "inner\n"})
        (work / "another").symlink_to("a.txt")

    patch = ran(work, agent).patch
    git(tmp_path, "clone", "-q", str(work), "made")
    assert git(tmp_path / "made", "rev-parse", "HEAD") == start
    subprocess.run(["git", "apply", "--index"], cwd=tmp_path / "made", check=True, input=patch)
    assert (tmp_path / "made/link/inner").read_text() == "inner\n"
    assert (tmp_path / "made/another").is_symlink()


def test_edits_with_a_wrapped_secret_in_a_submodule_are_not_kept(work: Path, tmp_path: Path) -> None:
    add_submodule(work, tmp_path)
    text = "a-secret-\n  of-the-job\n"
    (said,) = beside(work, tmp_path / "run", lambda: (work / "part/a.txt").write_text(text), ["a-secret-of-the-job"])
    assert "They may hold a secret of the job" in said
    assert list((tmp_path / "run").iterdir()) == []


def test_markers_that_only_changed_their_line_ends_are_not_new(work: Path) -> None:
    (work / "page.md").write_bytes(b"<<<<<<< a\r\n1\r\n=======\r\n2\r\n>>>>>>> b\r\n")
    commit(work, "a page about markers")
    (work / "page.md").write_bytes((work / "page.md").read_bytes().replace(b"\r", b""))
    assert extract(work, "HEAD").remarks == ()


@pytest.mark.parametrize("is_new", [False, True])
def test_a_deleted_git_directory_is_called_so(work: Path, is_new: bool) -> None:
    def agent() -> None:
        shutil.rmtree(work / ".git")
        if is_new:
            git(work, "init", "-q", "-b", "main")
            commit(work, "fresh")

    with pytest.raises(Refused, match=r"deleted or replaced `\.git`"):
        ran(work, agent)
