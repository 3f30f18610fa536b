"""Hatchling's hook for this project: the wheel and the source package know the commit that they were built from.

`accord init` pins the actions to it. A build outside a checkout takes it from the source package, and has none without.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMIT = "COMMIT"
"""The file with the commit, in the source package and in the package `accord`."""


class CommitHook(BuildHookInterface[Any]):
    """Adds the file with the commit."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is built, except to an editable install, which has git."""
        commit = commit_of(Path(self.root))
        if version == "editable" or not commit:
            return
        handle, name = tempfile.mkstemp()
        with os.fdopen(handle, "w") as file:
            file.write(f"{commit}\n")
        self._file = Path(name)
        build_data["force_include"][name] = COMMIT if self.target_name == "sdist" else f"accord/{COMMIT}"

    def finalize(self, *_: Any) -> None:
        """Remove the temporary file."""
        if hasattr(self, "_file"):
            self._file.unlink()


def commit_of(root: Path) -> str:
    """Return the commit that is checked out, or else that of the source package; empty without either."""
    if (root / ".git").exists():
        words = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
        return subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    file = root / COMMIT
    return file.read_text(encoding="ascii").strip() if file.is_file() else ""
