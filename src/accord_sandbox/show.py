"""The content of a local GitHub as one document, read from its file without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from accord.core.errors import WrongUsage
from accord.core.suggest import did_you_mean
from accord_sandbox.database import FILE_NAME, Row, SqlConnection, find_repository, get_meta, open_snapshot
from accord_sandbox.git_storage import WORKFLOWS
from accord_sandbox.payloads import timestamp_of

_ITEMS = "SELECT * FROM items WHERE repository_id = ? ORDER BY number"
_LABELS = "SELECT name, description, color FROM labels WHERE repository_id = ? ORDER BY folded"
_LABELS_OF_ITEM = "SELECT name FROM issue_labels JOIN labels ON labels.id = label_id WHERE issue_id = ? ORDER BY name"
_BLOCKED_BY = "SELECT number FROM dependencies JOIN issues ON issues.id = blocker_id WHERE blocked_id = ? ORDER BY 1"
_COMMENTS = "SELECT login AS author, body, created_at FROM item_comments WHERE issue_id = ? ORDER BY created_at, id"
_REVIEWS = (
    "SELECT reviews.id, number AS pull, login AS author, reviews.state, reviews.body, commit_id, submitted_at"
    " FROM reviews JOIN issues ON issues.id = issue_id JOIN users ON users.id = reviews.author_id"
    " WHERE repository_id = ? ORDER BY reviews.id"
)
_REVIEW_COMMENTS = (
    "SELECT review_comments.id, login AS author, path, subject_type, side, line, original_line,"
    " in_reply_to_id, body, review_comments.created_at FROM review_comments JOIN users ON users.id = author_id"
    " WHERE review_id = ? ORDER BY review_comments.id"
)

_CHECKS = (
    "SELECT check_runs.id, login AS app, head_sha, name, status, conclusion, run_id FROM check_runs"
    " JOIN users ON users.id = app_id WHERE repository_id = ? ORDER BY check_runs.id"
)
_STATUSES = (
    "SELECT login AS author, sha, context, state, description FROM statuses JOIN users ON users.id = creator_id"
    " WHERE repository_id = ? ORDER BY statuses.id"
)
_RUNS = (
    "SELECT workflow_runs.id, name, path, event, status, conclusion, head_sha, head_branch, login AS actor, attempt"
    " FROM workflow_runs LEFT JOIN users ON users.id = actor_id WHERE repository_id = ? ORDER BY workflow_runs.id"
)
_DISPATCHES = (
    f"SELECT substr(path, {len(WORKFLOWS) + 1}) AS workflow, head_branch AS ref, inputs, login AS author,"
    " workflow_runs.created_at FROM workflow_runs JOIN users ON users.id = actor_id"
    " WHERE repository_id = ? AND inputs IS NOT NULL ORDER BY workflow_runs.id"
)


def document(directory: Path, repository: str | None = None) -> dict[str, Any]:
    """Return the content of a repository in the sandbox in ``directory``, with the workflows started by hand.

    ``repository`` defaults to the home repository. Pull requests are under ``pulls`` and not under ``issues``.
    """
    if not (directory / FILE_NAME).exists():
        raise WrongUsage(f"No sandbox found in `{directory}`.", hint="Start one with `accord sandbox serve --dir DIR`.")
    with open_snapshot(directory) as connection:
        return _document(connection, repository or str(get_meta(connection, "home")))


def _document(db: SqlConnection, name: str) -> dict[str, Any]:
    repository = find_repository(db, name)
    if repository is None:
        names = [row["full_name"] for row in db.execute("SELECT full_name FROM repositories")]
        raise WrongUsage(
            f"The sandbox has no repository `{name}`. {did_you_mean(name, names)}".rstrip(),
            hint=f"Pass one of these as `--repo`: {', '.join(names)}.",
        )
    key = repository["id"]
    items = db.execute(_ITEMS, (key,)).fetchall()
    reviews = _rows(db, _REVIEWS, key)
    dispatches = _rows(db, _DISPATCHES, key)
    return {
        "repository": repository["full_name"],
        "issues": [_item(db, row) for row in items if not row["is_pull"]],
        "labels": _rows(db, _LABELS, key),
        "pulls": [{**_item(db, row), **_pull(db, row)} for row in items if row["is_pull"]],
        "reviews": [{**review, "comments": _rows(db, _REVIEW_COMMENTS, review["id"])} for review in reviews],
        "checks": _rows(db, _CHECKS, key),
        "statuses": _rows(db, _STATUSES, key),
        "workflow_runs": _rows(db, _RUNS, key),
        "dispatches": [{**dispatch, "inputs": json.loads(dispatch["inputs"])} for dispatch in dispatches],
    }


def _rows(db: SqlConnection, statement: str, key: int) -> list[dict[str, Any]]:
    """Return rows as objects, their times as timestamps."""
    return [
        {name: timestamp_of(value) if name.endswith("_at") else value for name, value in dict(row).items()}
        for row in db.execute(statement, (key,))
    ]


def _item(db: SqlConnection, row: Row) -> dict[str, Any]:
    return {
        **{name: row[name] for name in ("number", "id", "title", "body", "state", "state_reason")},
        "labels": [found["name"] for found in db.execute(_LABELS_OF_ITEM, (row["id"],))],
        "author": row["login"],
        "created_at": timestamp_of(row["created_at"]),
        "locked": bool(row["locked"]),
        "blocked_by": [found["number"] for found in db.execute(_BLOCKED_BY, (row["id"],))],
        "comments": _rows(db, _COMMENTS, row["id"]),
    }


def _pull(db: SqlConnection, row: Row) -> dict[str, Any]:
    """Return what a pull request has besides its issue; nothing for one of the seed without branches."""
    found = db.execute("SELECT * FROM pulls WHERE issue_id = ?", (row["id"],)).fetchone()
    if found is None:
        return {}
    return {
        "draft": bool(found["draft"]),
        "merged": found["merged_at"] is not None,
        "merge_commit": found["merge_sha"],
        **{end: {"ref": found[f"{end}_ref"], "sha": found[f"{end}_sha"]} for end in ("head", "base")},
    }
