"""A patch carries a work tree byte for byte: what git would have committed is what the branch gets."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.trees import commit, copied, git, repository, write

from accord.agents.registry import shipped_registry
from accord.core.errors import BrokenContract, Refused, WrongUsage
from accord.git.extraction import extract
from accord.git.patches import apply_patch
from accord.git.paths import escaping_links, names_on_way
from accord.git.program import Git

NEW_FILE = "diff --git a/PATH b/PATH\nnew file mode 100644\n--- /dev/null\n+++ b/PATH\n@@ -0,0 +1 @@\n+x\n"


FILES: dict[str, str | bytes] = {
    "keep.txt": "keep\n",
    "windows.txt": "a\r\nb\r\n",
    "unended.txt": "no end",
    "script.sh": "#!/bin/sh\n",
    "binary.bin": bytes(range(256)) * 40,
    "latin.txt": b"caf\xe9\n",
    "folder/inner.txt": "inner\n" * 20,
    "long.txt": "".join(f"line {i}\n" for i in range(10_000)),
    ".gitignore": "ignored/\n",
}


def based(tree: Path) -> None:
    git(repository(tree, FILES), "branch", "base")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copied(tmp_path / "tree", based)


def rename(tree: Path) -> None:
    (tree / "folder" / "inner.txt").rename(tree / "moved.txt")


def submodule(tree: Path) -> None:
    other = repository(tree.parent / "other", {"x": "x"})
    git(tree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")


CHANGES: dict[str, Callable[[Path], object]] = {
    "rename": rename,
    "rename and edit": lambda t: (rename(t), (t / "moved.txt").write_text("inner\n" * 19 + "outer\n")),
    "mode": lambda t: (t / "script.sh").chmod(0o755),
    "binary": lambda t: (t / "binary.bin").write_bytes(os.urandom(5000)),
    "new binary": lambda t: (t / "new.bin").write_bytes(os.urandom(5000)),
    "empty file": lambda t: (t / "empty").write_bytes(b""),
    "deletion": lambda t: (t / "keep.txt").unlink(),
    "windows line ends": lambda t: (t / "windows.txt").write_bytes(b"a\r\nB\r\nc\n"),
    "no final newline": lambda t: (t / "unended.txt").write_bytes(b"still none"),
    "final newline added": lambda t: (t / "unended.txt").write_bytes(b"no end\n"),
    "spaces": lambda t: (t / "with space.txt").write_text("x\n"),
    "quotes and backslash": lambda t: (t / 'we"ird\\name.txt').write_text("x\n"),
    "tab and newline": lambda t: (t / "tab\there\nthere.txt").write_text("x\n"),
    "letters of the world": lambda t: (t / "été-日本.txt").write_text("é\n"),
    "path that is not UTF-8": lambda t: Path(os.fsdecode(os.fsencode(t) + b"/\xff.txt")).write_text("x\n"),
    "text that is not UTF-8": lambda t: (t / "latin.txt").write_bytes("th\xe9\n".encode("latin-1")),
    "one line of ten thousand": lambda t: (t / "long.txt").write_text(
        (t / "long.txt").read_text().replace("line 5000\n", "LINE 5000\n")
    ),
    "link inside": lambda t: (t / "folder" / "link").symlink_to("../keep.txt"),
    "file becomes link": lambda t: ((t / "keep.txt").unlink(), (t / "keep.txt").symlink_to("long.txt")),
    "file becomes folder": lambda t: (
        (t / "keep.txt").unlink(),
        (t / "keep.txt").mkdir(),
        (t / "keep.txt" / "a").write_text("a"),
    ),
    "submodule": submodule,
    "lines that look like a patch": lambda t: (t / "x.txt").write_text("diff --git a/x b/x\n--- a/x\n+++ b/x\n-- \n"),
    "the agent's own commit": lambda t: (
        (t / "keep.txt").write_text("committed\n"),
        git(t, "commit", "-qam", "mine"),
        (t / "more.txt").write_text("and more\n"),
    ),
    "twenty megabytes": lambda t: (t / "large.bin").write_bytes(os.urandom(20 * 1024 * 1024)),
}


LARGE = pytest.param("twenty megabytes", marks=pytest.mark.matrix)


@pytest.mark.parametrize("name", [LARGE if name in LARGE.values else name for name in CHANGES])
def test_a_change_survives_byte_for_byte(tree: Path, name: str) -> None:
    CHANGES[name](tree)
    before = git(tree, "status", "--porcelain=v2", "--branch")
    patch = extract(tree, "base").patch
    assert git(tree, "status", "--porcelain=v2", "--branch") == before, "the caller's tree is left as it was"
    patch.decode()
    made = apply_patch(Git(tree), patch, "base")
    git(tree, "add", "-A")
    assert made == git(tree, "write-tree")


@pytest.mark.parametrize("commands", [[], ["add -A"], ["add -A", "commit -qm all"]])
def test_ignored_files_and_agent_artifacts_are_left_out(tree: Path, commands: list[str]) -> None:
    write(tree, {"ignored/x": "x", ".codex/config.toml": "ours"})
    commit(tree, "ours")
    git(tree, "branch", "-f", "base")
    for path in (".codex/auth.json", ".codex/history", ".claude/state.json", ".gemini/tmp", "agent.log", ".accord/run"):
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text("x")
    (tree / "real.txt").write_text("x")
    for command in commands:
        git(tree, *command.split())
    patch = extract(tree, "base", state_files=shipped_registry().state_patterns).patch.decode()
    assert patch.count("diff --git") == 1
    assert "real.txt" in patch


INSIDE = "git add -A; git commit -qm scaffold"


@pytest.mark.parametrize(
    "made", ["true", INSIDE, f"{INSIDE}; cd ..; git add -A", f"{INSIDE}; cd ..; git add -A; git commit -qm mine"]
)
def test_work_in_a_repository_of_the_agents_own_becomes_files(tree: Path, made: str) -> None:
    subprocess.run(
        ["sh", "-ec", f"git init -q app; cd app; echo 'export {{}}' > page.ts; {made}"], cwd=tree, check=True
    )
    result = apply_patch(Git(tree), extract(tree, "base").patch, "base")
    assert git(tree, "show", f"{result}:app/page.ts") == "export {}"


@pytest.mark.parametrize("place", ["result.json", "folder/é [1].json"])
def test_the_result_that_gets_the_patch_is_not_part_of_it(tree: Path, place: str) -> None:
    (tree / place).write_text("{}")
    (tree / "real.txt").write_text("x\n")
    assert git(tree, "status", "--porcelain")
    patch = extract(tree, "base", without=tree / "folder" / ".." / place).patch.decode()
    assert "real.txt" in patch
    assert ".json" not in patch


def test_a_tracked_file_of_an_agents_folder_is_taken_when_it_changes(tree: Path) -> None:
    write(tree, {".claude/commands.md": "x\n"})
    git(tree, "add", "-fA")
    git(tree, "commit", "-qm", "ours")
    git(tree, "branch", "-f", "base")
    (tree / ".claude" / "commands.md").write_text("y\n")
    assert ".claude/commands.md" in extract(tree, "base").patch.decode()


def test_the_patch_is_against_the_merge_base(tree: Path) -> None:
    (tree / "mine.txt").write_text("mine\n")
    git(tree, "checkout", "-q", "base")
    (tree / "theirs.txt").write_text("theirs\n")
    git(tree, "add", "theirs.txt")
    git(tree, "commit", "-qm", "theirs")
    git(tree, "checkout", "-q", "main")
    patch = extract(tree, "base").patch.decode()
    assert "mine.txt" in patch
    assert "theirs.txt" not in patch


@pytest.mark.slow
def test_a_patch_applies_where_the_base_has_moved_on(tree: Path) -> None:
    (tree / "long.txt").write_text((tree / "long.txt").read_text().replace("line 9000\n", "mine\n"))
    patch = extract(tree, "base").patch
    git(tree, "stash", "-q")
    (tree / "long.txt").write_text("new first\n" + (tree / "long.txt").read_text())
    git(tree, "commit", "-qam", "theirs")
    made = apply_patch(Git(tree), patch, "main")
    text = git(tree, "show", f"{made}:long.txt")
    assert text.startswith("new first\n")
    assert "\nmine\n" in text


def test_a_conflict_is_refused_with_its_paths(tree: Path) -> None:
    (tree / "keep.txt").write_text("mine\n")
    patch = extract(tree, "base").patch
    (tree / "keep.txt").write_text("theirs\n")
    git(tree, "commit", "-qam", "theirs")
    with pytest.raises(Refused, match=r"keep\.txt"):
        apply_patch(Git(tree), patch, "main")


def inner(tree: Path, text: str, name: str = "folder/inner.txt") -> None:
    (tree / name).write_text(text)


def gone(tree: Path) -> None:
    (tree / "folder" / "inner.txt").unlink()


EDITED = "inner\n" * 19 + "outer\n"


def rebased(tree: Path, mine: Callable[[Path], object], theirs: Callable[[Path], object]) -> str:
    """Apply my patch of the base to a branch on which they committed; return the tree."""
    mine(tree)
    patch = extract(tree, "base").patch
    git(tree, "stash", "-qu")
    theirs(tree)
    commit(tree, "theirs")
    return apply_patch(Git(tree), patch, "main", "main")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theirs", "mine", "left"),
    [
        (gone, gone, None),
        (rename, rename, "inner\n" * 20),
        (rename, lambda t: (rename(t), inner(t, EDITED, "moved.txt")), EDITED),
    ],
)
def test_a_path_that_the_branch_deleted_or_renamed_already_is_not_a_conflict(
    tree: Path, theirs: Callable[[Path], object], mine: Callable[[Path], object], left: str | None
) -> None:
    made = rebased(tree, lambda t: (mine(t), (t / "more.txt").write_text("more\n")), theirs)
    assert git(tree, "show", f"{made}:more.txt") == "more"
    assert "folder/inner.txt" not in git(tree, "ls-tree", "-r", "--name-only", made)
    assert left is None or git(tree, "show", f"{made}:moved.txt") == left.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theirs", "mine"),
    [(gone, lambda t: inner(t, EDITED)), (lambda t: inner(t, EDITED), gone), (rename, lambda t: inner(t, EDITED))],
)
def test_a_file_that_one_side_changes_and_the_other_takes_away_is_refused_with_its_path(
    tree: Path, theirs: Callable[[Path], object], mine: Callable[[Path], object]
) -> None:
    with pytest.raises(Refused, match=r"inner\.txt|moved\.txt"):
        rebased(tree, mine, theirs)


@pytest.mark.parametrize(
    "patch",
    [
        "this is not a patch",
        NEW_FILE.replace("PATH", "../x"),
        NEW_FILE.replace("PATH", ".git/config"),
        NEW_FILE.replace("PATH", "/etc/x"),
        "diff --git a/keep.txt b/keep.txt\n--- a/keep.txt\n+++ b/keep.txt\n@@ -1 +1 @@\n-other\n+x\n",
    ],
)
def test_a_patch_that_cannot_be_one_is_sent_back(tree: Path, patch: str) -> None:
    with pytest.raises(BrokenContract) as caught:
        apply_patch(Git(tree), patch.encode(), "base")
    assert caught.value.findings[0].code == "patch-invalid"


@pytest.mark.parametrize(
    ("target", "is_outside"),
    [("../keep.txt", False), ("inner.txt", False), ("../../x", True), ("/etc/passwd", True), ("../.git/config", True)],
)
def test_a_link_out_of_the_tree_is_found(tree: Path, target: str, is_outside: bool) -> None:
    (tree / "folder" / "link").symlink_to(target)
    found = extract(tree, "base")
    made = apply_patch(Git(tree), found.patch, "base")
    assert bool(escaping_links(Git(tree), "base", made)) == is_outside
    said = f"link-outside: `folder/link` is a link to `{target}`, which points outside the repository or to itself."
    assert found.remarks == ((said,) if is_outside else ())


@pytest.mark.parametrize(
    ("links", "is_inside"),
    [
        ({"d1/d2/up": "../.."}, True),
        ({"d1/d2/up": "../..", "x": "d1/d2/up/../outside"}, False),
        ({"d1/d2/up": "../..", "x": "d1/d2/up/inside"}, True),
        ({"d": "e", "e": "f", "x": "d/../y"}, True),
        ({"x": "y", "y": "x"}, False),
        ({"d/up": "..", "x": "d/up/.git/config"}, False),
        ({"x": "folder/.GIT"}, False),
    ],
)
def test_a_link_is_followed_through_the_other_links_of_its_tree(links: dict[str, str], is_inside: bool) -> None:
    assert all(names_on_way(path, links) for path in links) == is_inside


def test_an_old_link_that_a_new_one_leads_outside_is_found_and_one_that_was_outside_is_not(tree: Path) -> None:
    (tree / "old").symlink_to("folder/up/../outside")
    (tree / "stale").symlink_to("/etc/hosts")
    before = commit(tree, "links")
    (tree / "folder" / "up").symlink_to("..")
    commit(tree, "up")
    found = escaping_links(Git(tree), before, "HEAD")
    assert [finding.message.split("`")[1] for finding in found] == ["old"]


def test_an_unknown_base_is_reported(tree: Path, tmp_path: Path) -> None:
    for base in ("origin/nowhere", "--output=x"):
        with pytest.raises(WrongUsage, match="is not a commit in this repository"):
            extract(tree, base)
    with pytest.raises(WrongUsage, match="is not a git repository"):
        extract(tmp_path, "base")
