"""Every kind of conflict: what an agent did, what a person committed meanwhile, and the paths that conflict."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from support.trees import commit, difference_of, git

LONG = "".join(f"line {number}\n" for number in range(30))


class Kind(NamedTuple):
    mine: Callable[[Path], object]
    theirs: Callable[[Path], object]
    paths: set[str]


class Prepared(NamedTuple):
    """The commit that the agent saw, its patch, and the tree that it left; the checkout has the person's commit."""

    base: str
    patch: bytes
    tree: str


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def move(tree: Path, old: str, new: str, text: str | None = None) -> None:
    (tree / old).rename(tree / new)
    if text is not None:
        write(tree / new, text)


def relink(tree: Path, path: str, target: str) -> None:
    (tree / path).unlink()
    (tree / path).symlink_to(target)


def edit(tree: Path, word: str, path: str = "k/long.txt") -> None:
    write(tree / path, LONG.replace("line 5\n", f"{word}\n"))


def replace_folder(tree: Path) -> None:
    (tree / "k" / "sub" / "in.txt").unlink()
    (tree / "k" / "sub").rmdir()
    write(tree / "k" / "sub", "a file now\n")


KINDS = {
    "edit-edit": Kind(lambda t: edit(t, "mine"), lambda t: edit(t, "theirs"), {"k/long.txt"}),
    "delete-edit": Kind(lambda t: (t / "k/long.txt").unlink(), lambda t: edit(t, "theirs"), {"k/long.txt"}),
    "edit-delete": Kind(lambda t: edit(t, "mine"), lambda t: (t / "k/long.txt").unlink(), {"k/long.txt"}),
    "rename-edit": Kind(
        lambda t: move(t, "k/long.txt", "k/new.txt", LONG.replace("line 5\n", "mine\n")),
        lambda t: edit(t, "theirs"),
        {"k/new.txt"},
    ),
    "edit-rename": Kind(lambda t: edit(t, "mine"), lambda t: move(t, "k/long.txt", "k/new.txt"), {"k/new.txt"}),
    "rename-rename": Kind(
        lambda t: move(t, "k/long.txt", "k/new.txt"),
        lambda t: move(t, "k/long.txt", "k/other.txt"),
        {"k/long.txt", "k/new.txt", "k/other.txt"},
    ),
    "rename-delete": Kind(
        lambda t: move(t, "k/long.txt", "k/new.txt"), lambda t: (t / "k/long.txt").unlink(), {"k/new.txt"}
    ),
    "add-add": Kind(lambda t: write(t / "k/add", "mine\n"), lambda t: write(t / "k/add", "theirs\n"), {"k/add"}),
    "binary": Kind(
        lambda t: write(t / "k/data.bin", b"\0mine" * 99),
        lambda t: write(t / "k/data.bin", b"\0no" * 99),
        {"k/data.bin"},
    ),
    "binary-add": Kind(
        lambda t: write(t / "k/add", b"\0mine" * 99), lambda t: write(t / "k/add", b"\0no" * 99), {"k/add"}
    ),
    "mode-delete": Kind(lambda t: (t / "k/run.sh").chmod(0o755), lambda t: (t / "k/run.sh").unlink(), {"k/run.sh"}),
    "link-link": Kind(lambda t: relink(t, "k/link", "run.sh"), lambda t: relink(t, "k/link", "data.bin"), {"k/link"}),
    "link-edit": Kind(lambda t: relink(t, "k/long.txt", "run.sh"), lambda t: edit(t, "theirs"), {"k/long.txt"}),
    "folder-file": Kind(lambda t: write(t / "k/add/in", "x\n"), lambda t: write(t / "k/add", "x\n"), {"k/add"}),
    "file-folder": Kind(lambda t: write(t / "k/add", "x\n"), lambda t: write(t / "k/add/in", "x\n"), {"k/add"}),
    "edit-in-file": Kind(lambda t: edit(t, "mine", "k/sub/in.txt"), replace_folder, {"k/sub", "k/sub/in.txt"}),
}
"""By what the agent did, then what the person did to the same path."""


def add_files(tree: Path) -> str:
    """Commit the files that the kinds of conflicts change."""
    edit(tree, "line 5")
    edit(tree, "line 5", "k/sub/in.txt")
    write(tree / "k/data.bin", bytes(range(256)) * 4)
    write(tree / "k/run.sh", "#!/bin/sh\n")
    (tree / "k/link").symlink_to("long.txt")
    return commit(tree, "Files")


def prepare(tree: Path, kind: Kind, later: int = 0) -> Prepared:
    """Do what the agent did and take its patch, then commit what the person did, and ``later`` other changes."""
    base = git(tree, "rev-parse", "HEAD")
    kind.mine(tree)
    write(tree / "k/more.txt", "of the agent\n")
    patch = difference_of(tree, base)
    git(tree, "add", "-A")
    made = git(tree, "write-tree")
    git(tree, "reset", "-q", "--hard")
    git(tree, "clean", "-fdq")
    kind.theirs(tree)
    commit(tree, "Theirs")
    for number in range(later):
        write(tree / "later.txt", f"{number}\n")
        commit(tree, f"Later {number}")
    return Prepared(base, patch, made)
