"""Changes of an agent are found whatever it did to the repository, and nothing in its .git takes effect."""

import re
import resource
import subprocess
from pathlib import Path

import pytest
from support import trees
from support.trees import commit, copied, git, write

from accord.core.errors import Refused
from accord.git import leaving_out
from accord.git.comparison import changes_since
from accord.git.extraction import extract
from accord.git.leaving_out import ELSEWHERE, STATE, TOO_LARGE
from accord.git.program import Git
from accord.git.snapshots import Snapshot, take_snapshot

SECRET = "correct-horse-battery"


def with_two_commits(work: Path) -> None:
    trees.repository(work, {"kept.txt": "as it was\n", "src/code.py": "x = 1\n"})
    (work / "kept.txt").write_text("as it is\n")
    git(work, "commit", "-qam", "two")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return copied(tmp_path / "work", with_two_commits)


def snapshot(directory: Path) -> Snapshot:
    found = take_snapshot(directory)
    assert found is not None
    return found


def applied(repository: Path, commit: str, patch: bytes, into: Path) -> dict[str, str]:
    git(repository, "worktree", "add", "-q", "--detach", str(into), commit)
    subprocess.run(["git", "apply", "--index", "--allow-empty", "-"], cwd=into, check=True, input=patch)
    files = git(into, "ls-files", "-z").split("\0")[:-1]
    return {name: (into / name).read_text() for name in files}


def shell(tree: Path, text: str) -> None:
    subprocess.run(["sh", "-ec", text], cwd=tree, check=True, capture_output=True)


def test_commits_changes_and_new_files_are_in_it(repository: Path, tmp_path: Path) -> None:
    before = snapshot(repository / "src")
    shell(repository, "echo by the agent > committed.txt; git add -A; git commit -qm own; echo x = 2 > src/code.py")
    (repository / "new é.txt").touch()
    patch = changes_since(before).patch
    came = applied(repository, before.commit, patch, tmp_path / "there")
    assert (came["committed.txt"], came["src/code.py"]) == ("by the agent\n", "x = 2\n")
    assert b"new file mode 100644" in patch


@pytest.mark.parametrize("move", [["reset", "-q", "--hard", "HEAD~1"], ["checkout", "-q", "--orphan", "other"]])
def test_the_difference_is_from_the_commit_that_was_there_wherever_head_goes(
    repository: Path, tmp_path: Path, move: list[str]
) -> None:
    before = snapshot(repository)
    git(repository, *move)
    kept = (repository / "kept.txt").read_text()
    came = applied(repository, before.commit, changes_since(before).patch, tmp_path / "there")
    assert came["kept.txt"] == kept


def test_agent_artifacts_and_ignored_files_are_left_out(repository: Path) -> None:
    before = take_snapshot(repository, [".mine-*"])
    assert before is not None
    (repository / ".gitignore").write_text("*.tmp\n")
    for name in ("a.tmp", "agent.log", ".mine-state"):
        (repository / name).write_text("x")
    changes = changes_since(before)
    patch = changes.patch
    assert changes.left_out == dict.fromkeys([".mine-state", "agent.log"], STATE)
    assert b".gitignore" in patch
    assert not any(name in patch for name in (b"a.tmp", b"agent.log", b".mine-state"))


def test_a_repository_that_lost_its_git_directory_still_tells_its_changes_or_fails_clearly(repository: Path) -> None:
    before = snapshot(repository)
    (repository / ".git/HEAD").unlink()
    (repository / "kept.txt").write_text("changed\n")
    assert b"+changed" in changes_since(before).patch
    subprocess.run(["rm", "-rf", repository / ".git"], check=True)
    with pytest.raises(Refused):
        changes_since(before)


@pytest.mark.parametrize("is_committed", [True, False])
def test_the_files_of_a_repository_inside_of_it_are_taken_as_files(
    repository: Path, tmp_path: Path, is_committed: bool
) -> None:
    before = snapshot(repository)
    made = "mkdir -p tools/inner/deep; cd tools/inner; echo '*.tmp' > .gitignore; touch c.tmp; ln -s deep deep-link; "
    made += "echo a | tee a.txt > 'deep/b é.txt'; git init -q"
    shell(repository, f"{made}; git add -A; git commit -qm inner" if is_committed else made)
    counted = Git(tmp_path)("apply", "--numstat", "-z", data=changes_since(before).patch)
    paths = {entry.split("\t")[2] for entry in counted.decode().split("\0")[:-1]}
    assert paths == {f"tools/inner/{name}" for name in (".gitignore", "a.txt", "deep/b é.txt", "deep-link")}


CLONED = {"cloned": "true", "added": "git add -A", "edited": "echo edited > vendor/other/kept.txt"}
CLONED["committed"] = "git add -A; git commit -qm clone"


@pytest.mark.parametrize("made", CLONED)
def test_a_clone_of_another_repository_is_left_out_and_named(repository: Path, tmp_path: Path, made: str) -> None:
    other = copied(tmp_path / "other", with_two_commits)
    before = snapshot(repository)
    shell(repository, f"git clone -q {other} vendor/other")
    if made == "edited":
        before = snapshot(repository)
    shell(repository, f"{CLONED[made]}; echo small > small.txt")
    changes, extracted = changes_since(before), extract(repository, before.commit)
    assert {*changes.left_out.values()} == {ELSEWHERE}
    assert all(path.startswith("vendor/other/") for path in changes.left_out)
    assert extracted.remarks[0].startswith(f"{ELSEWHERE}: vendor/other/")
    for patch in (changes.patch, extracted.patch):
        assert re.findall(rb"^diff --git (\S+)", patch, re.MULTILINE) == [b"a/small.txt"]


def test_files_that_were_uncommitted_before_the_run_are_left_out(repository: Path, tmp_path: Path) -> None:
    shell(
        repository,
        "echo 'x = 3' > src/code.py; rm kept.txt; for name in 'prompt [1].md' edited.md moved.md ':(top)é'; "
        'do echo made by an earlier step > "$name"; done; git init -q checkout; echo another > checkout/file',
    )
    before = snapshot(repository / "src")
    shell(
        repository,
        "echo edited by the agent >> edited.md; mv moved.md src; echo new > checkout/new; "
        "git add -A ':!checkout'; git commit -qm all",
    )
    changes = changes_since(before)
    assert sorted(changes.untouched) == [":(top)é", "kept.txt", "prompt [1].md", "src/code.py"]
    came = applied(repository, before.commit, changes.patch, tmp_path / "there")
    assert came == {
        "kept.txt": "as it is\n",
        "src/code.py": "x = 1\n",
        "edited.md": "made by an earlier step\nedited by the agent\n",
        "src/moved.md": "made by an earlier step\n",
        "checkout/new": "new\n",
    }


def test_a_submodule_stays_one(repository: Path, tmp_path: Path) -> None:
    before = snapshot(repository)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "vendor/part")
    assert b"new file mode 160000" in changes_since(before).patch


@pytest.mark.parametrize("where", ["text", "binary", "name", "wrapped"])
def test_a_secret_in_a_change_is_refused_by_the_name_of_its_file(repository: Path, where: str) -> None:
    before = snapshot(repository)
    name = f"leak-{SECRET}" if where == "name" else "leak"
    content = {
        "text": f"key = {SECRET}\n".encode(),
        "binary": b"\0\xff" + SECRET.encode(),
        "name": b"",
        "wrapped": f"key = {SECRET[:9]}\n    {SECRET[9:]}\n".encode(),
    }
    (repository / name).write_bytes(content[where])
    with pytest.raises(Refused, match="leak"):
        changes_since(before, secrets=[SECRET])
    (repository / name).unlink()
    (repository / "other").write_text("fine")
    assert b"fine" in changes_since(before, secrets=[SECRET]).patch


def test_a_secret_that_the_repository_had_already_stops_no_other_change(repository: Path) -> None:
    (repository / "old.txt").write_text(SECRET)
    commit(repository, "leaked before")
    before = snapshot(repository)
    (repository / "old.txt").write_text(f"{SECRET}\nmore\n")
    assert b"+more" in changes_since(before, secrets=[SECRET]).patch


def test_a_snapshot_needs_a_repository_with_a_commit(tmp_path: Path) -> None:
    assert take_snapshot(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert take_snapshot(tmp_path) is None


HUGE = 3 * 1024**3


def children_seconds() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


@pytest.mark.parametrize("path", ["new.bin", "kept.txt", "inner/new.bin"], ids=["new", "changed", "repository within"])
def test_a_huge_file_is_left_out_by_its_name_before_git_reads_it(repository: Path, path: str) -> None:
    before = snapshot(repository)
    (repository / path).parent.mkdir(exist_ok=True)
    if path.startswith("inner"):
        git(repository / "inner", "init", "-q")
    with (repository / path).open("r+b" if path == "kept.txt" else "xb") as file:
        file.truncate(HUGE)
    (repository / "small.txt").write_text("small\n")
    began = children_seconds()
    changes, extracted = changes_since(before), extract(repository, "HEAD")
    assert changes.left_out == {path: TOO_LARGE}
    assert extracted.remarks == (f"{TOO_LARGE}: {path}.",)
    assert changes.patch == extracted.patch
    assert b"small.txt" in changes.patch
    assert children_seconds() - began < 3, "git read the huge file"


def test_many_large_files_are_refused_in_total(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(repository)
    monkeypatch.setattr(leaving_out, "MOST_TOTAL_BYTES", 5 * leaving_out.MIB)
    write(repository, {f"{number}.bin": bytes(leaving_out.MIB) for number in range(6)})
    with pytest.raises(Refused, match=r"more than 5 MiB in total, at `5\.bin`"):
        changes_since(before)


@pytest.mark.slow
def test_huge_files_that_did_not_change_stop_nothing(repository: Path) -> None:
    write(repository, {".gitignore": "*.ignored\n", "mine.bin": b"x" * 101 * 1024**2})
    before = snapshot(repository)
    (repository / ".codex").mkdir()
    for name in (".codex/history", "a.ignored"):
        with (repository / name).open("xb") as file:
            file.truncate(HUGE)
    changes = changes_since(before)
    assert (changes.patch, set(changes.left_out)) == (b"", {".codex/history"})
    assert set(changes.untouched) == {".gitignore", "mine.bin"}
