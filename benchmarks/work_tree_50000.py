"""CPU time of a run in a work tree of 50,000 files, of which the agent changes one.

    python benchmarks/work_tree_50000.py [FILES] [RUNS] [--against CHECKOUT]

accord looks at the files before and after; the peer is git, which adds all of them to a new index. The agent is `true`
with one changed file, so accord's start is part of its time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import options, process_seconds, report

FOLDERS = 500


def git(tree: Path, *words: str) -> None:
    """Run git."""
    subprocess.run(["git", *words], cwd=tree, check=True, capture_output=True)


def make(tree: Path, files: int) -> None:
    """Make a committed repository of many small files."""
    git(tree, "init", "-q")
    for number in range(files):
        folder = tree / f"f{number % FOLDERS}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").write_text(f"{number}\n" * 20)
    (tree / "prompt.md").write_text("Change a file.\n")
    git(tree, "add", "-A")
    git(tree, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "all")


def run(checkout: Path, tree: Path, folder: Path) -> float:
    """Run an agent that changes one file; return the CPU seconds."""
    words = [sys.executable, "-P", "-m", "accord", "run", "--agent", "command", "--command", "sh agent.sh"]
    words += ["--prompt-file", "prompt.md", "--no-publish", "--safety-strategy", "unsafe", "--run-dir", str(folder)]
    return process_seconds(words, {**os.environ, "PYTHONPATH": str(checkout / "src")}, folder=tree)


def main() -> None:
    """Print the least of several runs."""
    files, runs, checkouts = options(50_000, 3)
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place, "tree")
        tree.mkdir()
        make(tree, files)
        (tree / ".git/info").mkdir(exist_ok=True)
        (tree / ".git/info/exclude").write_text("agent.sh\n")
        (tree / "agent.sh").write_text("cat > /dev/null; echo changed > f0/0.txt\n")
        found: dict[str, float] = {}
        for number in range(runs):
            new = {**os.environ, "GIT_INDEX_FILE": f"{place}/index-{number}"}
            seconds = {"git add": process_seconds(["git", "add", "--all"], new, folder=tree)}
            for checkout in checkouts:
                git(tree, "checkout", "-q", ".")
                seconds[f"accord run ({checkout})"] = run(checkout, tree, Path(place, f"run-{number}-{checkout.name}"))
            found |= {name: min(value, found.get(name, value)) for name, value in seconds.items()}
        report(found)


if __name__ == "__main__":
    main()
