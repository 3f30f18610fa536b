"""The one file that holds a local GitHub, safe for several serving processes at once.

Every exchange is one short transaction; a writer takes the lock at its beginning (``BEGIN IMMEDIATE``), so that two
processes never find out half-way that they cannot both write.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Iterator


FILE_NAME = "sandbox.sqlite3"
FIRST_ID = 3_000_000_000
"""Above 2**31, as GitHub's identifiers are by now, and never mistaken for an issue's number."""

BUSY_SECONDS = 30.0
SCHEMA_VERSION = 4
"""To be raised with every change of a table in ``schema.sql``."""

_ANEW = "Choose another directory, or delete this one to start anew."
TABLES = (
    "dispatches",
    "artifacts",
    "jobs",
    "workflow_runs",
    "resolved_threads",
    "annotations",
    "check_runs",
    "statuses",
    "review_comments",
    "reviews",
    "review_requests",
    "pulls",
    "protections",
    "events",
    "sub_issues",
    "dependencies",
    "comments",
    "assignees",
    "issue_labels",
    "issues",
    "labels",
    "collaborators",
    "repositories",
    "tokens",
    "users",
    "meta",
)

Connection: TypeAlias = sqlite3.Connection
Row: TypeAlias = sqlite3.Row


class Database:
    """One connection to the file, shared by the threads of this process one transaction at a time."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self._lock = threading.RLock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._connection = _connect(self.path)
        except (OSError, sqlite3.Error) as error:
            raise WrongUsage(f"The sandbox in {directory} cannot be opened: {error}.", hint=_ANEW) from error

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a consistent view; whatever another process commits meanwhile is not seen."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give the right to write; all of it is committed at the end, none of it after an exception."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._lock:
            self._connection.execute(begin)
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def next_id(connection: Connection) -> int:
    """Return an identifier that nothing else on this server has, whatever its kind."""
    statement = "UPDATE meta SET value = value + 1 WHERE key = 'last_id' RETURNING value"
    return int(connection.execute(statement).fetchone()[0])


def get_meta(connection: Connection, key: str) -> Any:
    """Return what was kept under ``key``, or None."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def set_meta(connection: Connection, key: str, value: str | float) -> None:
    """Keep ``value`` under ``key``."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def wipe(connection: Connection) -> None:
    """Empty every table and start the identifiers anew."""
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")
    set_meta(connection, "last_id", FIRST_ID)


def _connect(path: Path) -> Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.row_factory = sqlite3.Row
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Connection) -> None:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:  # the switch to WAL does not wait for another process's lock by itself
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, SCHEMA_VERSION):
        raise sqlite3.DatabaseError("it was made by another version of accord")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for statement in _schema():
        connection.execute(statement)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('last_id', ?)", (FIRST_ID,))
    connection.execute("COMMIT")


@cache
def _schema() -> tuple[str, ...]:
    text = (files("accord_sandbox") / "schema.sql").read_text(encoding="utf-8")
    lines = (line.split("--", 1)[0] for line in text.splitlines())
    return tuple(statement for statement in "\n".join(lines).split(";") if statement.strip())


_WORD = re.compile(r"[^\W_]+")


def words(text: str | None) -> str:
    """Return the words of a text as ``' word word '``, so that a phrase is found by a plain substring test.

    HTML comments count like any other text: GitHub indexes the source, not what it shows.
    """
    found = _WORD.findall((text or "").lower())
    return f" {' '.join(found)} " if found else " "
