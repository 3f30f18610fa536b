"""What every part of a seed needs: the account behind a login, made when it is not there, and moments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from accord_sandbox.database import next_id
from accord_sandbox.repositories import find_user

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.database import Connection

MAINTAINER = "maintainer"
BOT = "github-actions[bot]"


def account(db: Connection, login: str, now: float, kind: str = "User") -> int:
    """Return the id of an account; a login that ends with [bot] is a bot's."""
    row = find_user(db, login)
    if row is not None:
        return int(row["id"])
    identifier = next_id(db)
    kind = "Bot" if login.endswith("[bot]") else kind
    db.execute("INSERT INTO users VALUES (?, ?, ?, ?)", (identifier, login, kind, now))
    return identifier


def created_seconds(entry: Mapping[str, Any], default: float) -> float:
    """Return when something was made, in seconds since the epoch. Raises ValueError for what is no moment."""
    value = entry.get("created_at")
    if value is None:
        return default
    moment = datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
