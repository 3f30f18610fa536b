"""The files that the tools know: the result, the snapshot of work items, the work tree, and a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from accord.core.documents import MAX_BYTES
from accord.core.errors import WrongUsage
from accord.core.frozen import Frozen

ResultRole = Literal["planner", "implementor", "reviewer"]

SNAPSHOT = "work-items.json"
CHANGES = "change-lines.json"
RESULT = "result.json"


class Workspace(Frozen):
    """Files that a job gave its agent. No tool reaches another file, except through git's diff of ``root``."""

    run_dir: Path  # holds the result, the snapshot, and the lines of the reviewed change
    root: Path
    role: ResultRole
    base: str = ""  # the commit that the agent started from, or that the reviewed branch is compared with; else empty
    session: Path | None = None  # its folder

    @property
    def kind(self) -> str:
        """The kind of the result."""
        return f"{self.role}-result"

    @property
    def result(self) -> Path:
        """The file that the result is written to."""
        return self.run_dir / RESULT

    def items(self) -> dict[str, dict[str, Any]]:
        """Return the work items of the snapshot by number. Raises WrongUsage if the job took none."""
        hint = f"The job takes one with `accord items list --format json > {SNAPSHOT}` in the run folder."
        raw = self._read(SNAPSHOT)
        if raw is None:
            raise WrongUsage("The job took no snapshot of work items.", hint=hint)
        try:
            items = json.loads(raw)["items"]
            return {str(item["id"]): item for item in items}
        except (ValueError, KeyError, TypeError) as error:
            raise WrongUsage("The snapshot of work items cannot be read.", hint=hint) from error

    def changes(self) -> dict[str, list[int]] | None:
        """Return the lines that the diff of the reviewed change shows of each file; None if the job gave no diff."""
        raw = self._read(CHANGES)
        files: dict[str, list[int]] | None = None if raw is None else json.loads(raw)
        return files

    def _read(self, name: str) -> bytes | None:
        """Read a file that the job left in the run folder; None without one."""
        path = self.run_dir / name
        is_plain = path.is_file() and not path.is_symlink()
        return path.read_bytes() if is_plain and path.stat().st_size <= MAX_BYTES else None

    def item(self, number: str | int) -> dict[str, Any]:
        """Return a work item of the snapshot. Raises WrongUsage if it has no such item."""
        items, wanted = self.items(), str(number).strip().removeprefix("#")
        if wanted not in items:
            known = ", ".join(f"#{each}" for each in list(items)[:20]) or "none"
            raise WrongUsage(f"The snapshot has no work item `{number}`.", hint=f"It has: {known}.")
        return items[wanted]
