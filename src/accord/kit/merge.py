"""Three-way merges of one file, by git."""

from __future__ import annotations

import tempfile
from pathlib import Path

from accord.kernel.git import Git


def merged(own: str, base: str, template: str) -> str | None:
    """Carry what changed from ``base`` to ``template`` into ``own``; None where both changed the same lines."""
    texts = {"own": own, "base": base, "template": template}
    if any("\0" in text for text in texts.values()):
        return None
    with tempfile.TemporaryDirectory(prefix="accord-merge-") as folder:
        for name, text in texts.items():
            Path(folder, name).write_bytes(text.encode("utf-8", "surrogateescape"))
        done = Git(Path(folder)).attempt("merge-file", "-p", "--quiet", *texts)
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
