"""What checks and statuses together say about a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord_sandbox.database import Connection, Row

_PASSED = ("success", "neutral", "skipped")


def latest_statuses(db: Connection, repository_id: int, sha: str) -> list[Row]:
    """Return the newest status of each context, newest first."""
    return db.execute(
        "SELECT * FROM statuses WHERE id IN (SELECT max(id) FROM statuses WHERE repository_id = ? AND sha = ?"
        " GROUP BY context) ORDER BY id DESC",
        (repository_id, sha),
    ).fetchall()


def latest_runs(db: Connection, repository_id: int, sha: str) -> list[Row]:
    """Return the newest check run of each name and app, newest first."""
    return db.execute(
        "SELECT * FROM check_runs WHERE id IN (SELECT max(id) FROM check_runs WHERE repository_id = ? AND head_sha = ?"
        " GROUP BY name, app_id) ORDER BY id DESC",
        (repository_id, sha),
    ).fetchall()


def outcomes(db: Connection, repository_id: int, sha: str) -> dict[str, str]:
    """Return success, failure or pending for each context or check."""
    found = {}
    for status in latest_statuses(db, repository_id, sha):
        found[status["context"]] = "failure" if status["state"] == "error" else status["state"]
    for run in latest_runs(db, repository_id, sha):
        passed = "success" if run["conclusion"] in _PASSED else "failure"
        found[run["name"]] = passed if run["status"] == "completed" else "pending"
    return found


def combined_outcome(db: Connection, repository_id: int, sha: str) -> str | None:
    """Return the worst of all, None where there is none."""
    states = outcomes(db, repository_id, sha).values()
    return next((state for state in ("failure", "pending", "success") if state in states), None)
