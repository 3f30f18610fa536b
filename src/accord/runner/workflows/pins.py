"""Actions and workflows of others, which must be named by what cannot move: a commit, or an image's digest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.kernel.findings import Finding, pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.runner.workflows.files import Workflow

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z", re.IGNORECASE)
_LOCAL = ("./", "../", "$/")
"""``$/`` is the repository of the workflow itself at its own commit (GitHub, 2026-07)."""


def uses_of(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointer and the value of every ``uses``."""
    for job_id, job in workflow.jobs.items():
        if job.uses:
            yield pointer("jobs", job_id, "uses"), job.uses
        for i, step in enumerate(job.steps):
            if step.uses:
                yield pointer("jobs", job_id, "steps", i, "uses"), step.uses


def pin_findings(workflow: Workflow) -> list[Finding]:
    """Find what is used by a name that its owner can move to other code."""
    return [
        Finding(
            "unpinned-action",
            f'"{uses}" is not pinned: its owner, or whoever takes over the account, can change what runs here. '
            f"Name {_wanted(uses)}.",
            path,
            mend=_mend(uses),
        )
        for path, uses in uses_of(workflow)
        if not is_pinned(uses)
    ]


def is_pinned(uses: str) -> bool:
    """Tell whether ``uses`` names code that cannot change: of this repository, of one commit, of one image."""
    if uses.startswith(_LOCAL) or uses == ".":
        return True
    if uses.startswith("docker://"):
        return _DIGEST.search(uses) is not None
    return _COMMIT.fullmatch(uses.rpartition("@")[2]) is not None and "@" in uses


def _wanted(uses: str) -> str:
    return "the digest of the image" if uses.startswith("docker://") else "the commit by its 40 digits"


def _mend(uses: str) -> str:
    if uses.startswith("docker://"):
        return f"uses: {uses.partition('@')[0]}@sha256:<digest>"
    name, _, ref = uses.partition("@")
    return f"uses: {name}@<40 digits of the commit of {ref or 'a release'}> # {ref or 'vX.Y.Z'}"
