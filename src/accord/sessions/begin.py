"""Beginning a session: its folder, and the first ``status.json``.

Source: global agent contract, "status.json - minimal schema" (initial creation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.kernel.findings import Finding
from accord.sessions.policy import WORK, refuse
from accord.sessions.store import create_status

if TYPE_CHECKING:
    from pathlib import Path

    from accord.kernel.clock import Clock


def begin(root: Path, slug: str, *, is_lean: bool, clock: Clock) -> Path:
    """Begin a session below ``.agents-work``, named by the day and the slug; return its folder.

    Raises BrokenContract with ``session-exists`` when there is one of that name, ``path-outside`` when it would lie
    elsewhere.
    """
    now = clock.now()
    if (root / WORK).is_symlink():
        message = f"{root / WORK} is a link. Sessions are kept in the repository itself: put a folder there."
        raise refuse("The session cannot be begun.", Finding("path-outside", message))
    folder = root / WORK / f"{now:%Y-%m-%d}_{slug}"
    first: dict[str, Any] = {
        "current_state": "INTAKE_LEAN" if is_lean else "INTAKE",
        "session": folder.name,
        "mode": "lean" if is_lean else "full",
        "assumptions": [],
        "user_decisions": [],
        "retry_counts": {},
        "known_issues": [],
        "last_ci_result": "unknown",
    }
    create_status(folder, first, role="Orchestrator" if is_lean else "SpecAgent", clock=clock)
    return folder
