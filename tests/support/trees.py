"""Work trees of git."""

import os
import subprocess
from pathlib import Path

USER = ("-c", "user.name=Wanda", "-c", "user.email=wanda@example.org")


def own_settings() -> dict[str, str]:
    """Return the variables of this process for a git without the settings of the user and the machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}


def git(tree: Path, *arguments: str) -> str:
    """Run git as a person and return what it prints, without whitespace around it."""
    done = subprocess.run(["git", *USER, *arguments], cwd=tree, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def commit(tree: Path, message: str = "Work") -> str:
    """Commit all that is in a tree; return the commit."""
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", message)
    return git(tree, "rev-parse", "HEAD")
