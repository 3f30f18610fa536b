"""Work trees of git."""

import subprocess
from pathlib import Path

USER = ("-c", "user.name=Wanda", "-c", "user.email=wanda@example.org")


def git(tree: Path, *arguments: str) -> str:
    """Run git as a person and return what it prints, without whitespace around it."""
    done = subprocess.run(["git", *USER, *arguments], cwd=tree, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def commit(tree: Path, message: str = "Work") -> str:
    """Commit all that is in a tree; return the commit."""
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", message)
    return git(tree, "rev-parse", "HEAD")
