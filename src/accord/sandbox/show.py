"""What a local GitHub holds, as one document, read straight from its file without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.kernel.errors import WrongUsage
from accord.sandbox.database import FILE_NAME, Connection, Database, get_meta
from accord.sandbox.payloads import moment
from accord.sandbox.repositories import find_repository

if TYPE_CHECKING:
    from pathlib import Path

    from accord.sandbox.database import Row

_LABELS = "SELECT name FROM issue_labels JOIN labels ON labels.id = label_id WHERE issue_id = ? ORDER BY name"
_BLOCKED_BY = "SELECT number FROM dependencies JOIN issues ON issues.id = blocker_id WHERE blocked_id = ? ORDER BY 1"
_COMMENTS = (
    "SELECT login AS author, body, comments.created_at FROM comments JOIN users ON users.id = author_id"
    " WHERE issue_id = ? ORDER BY comments.created_at, comments.id"
)


def document(directory: Path, repository: str | None = None) -> dict[str, Any]:
    """Return repository, issues, labels, pulls and reviews of the sandbox in ``directory``.

    ``repository`` is the home repository unless given. Pull requests are under ``pulls`` and not under ``issues``.
    """
    if not (directory / FILE_NAME).exists():
        raise WrongUsage(f"There is no sandbox in {directory}.", mend="Start one with: accord sandbox serve --dir DIR")
    database = Database(directory)
    try:
        with database.reading() as connection:
            return _document(connection, repository or str(get_meta(connection, "home")))
    finally:
        database.close()


def _document(db: Connection, name: str) -> dict[str, Any]:
    repository = find_repository(db, name)
    if repository is None:
        raise WrongUsage(f"The sandbox has no repository {name}.", mend="Name one that it has with --repo.")
    key = (repository["id"],)
    items = db.execute(
        "SELECT issues.*, login FROM issues JOIN users ON users.id = author_id WHERE repository_id = ? ORDER BY number",
        key,
    ).fetchall()
    labels = db.execute(
        "SELECT name, description, color FROM labels WHERE repository_id = ? ORDER BY folded", key
    ).fetchall()
    return {
        "repository": repository["full_name"],
        "issues": [_item(db, row) for row in items if not row["is_pull"]],
        "labels": [dict(row) for row in labels],
        "pulls": [_item(db, row) for row in items if row["is_pull"]],
        "reviews": [],
    }


def _item(db: Connection, row: Row) -> dict[str, Any]:
    key = (row["id"],)
    return {
        "number": row["number"],
        "id": row["id"],
        "title": row["title"],
        "body": row["body"],
        "state": row["state"],
        "state_reason": row["state_reason"],
        "labels": [found["name"] for found in db.execute(_LABELS, key)],
        "author": row["login"],
        "created_at": moment(row["created_at"]),
        "locked": bool(row["locked"]),
        "blocked_by": [found["number"] for found in db.execute(_BLOCKED_BY, key)],
        "comments": [
            {**dict(found), "created_at": moment(found["created_at"])} for found in db.execute(_COMMENTS, key)
        ],
    }
