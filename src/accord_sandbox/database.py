"""The SQLite file that holds a local GitHub, safe for several serving processes at once.

Every exchange is one short transaction. A writer takes the lock when it begins (``BEGIN IMMEDIATE``), so two processes
cannot both start a transaction that only one of them can commit.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from accord.core.clock import SystemClock, attempts
from accord.core.errors import WrongUsage

FILE_NAME = "sandbox.sqlite3"
FIRST_ID = 3_000_000_000
"""Above 2**31, as GitHub's identifiers are by now, so no identifier looks like an issue's number."""

BUSY_SECONDS = 30.0
SCHEMA_VERSION = 16
"""Raise it with every change of a table in ``schema.sql``."""

_HINT = "Choose another directory, or delete this one to start again."
_WORD = re.compile(r"[^\W_]+")

SqlConnection: TypeAlias = sqlite3.Connection
Row: TypeAlias = sqlite3.Row


class Database:
    """One connection to the file, shared by the threads of this process one transaction at a time."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self._lock = threading.RLock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)  # it holds tokens; SQLite gives its other files the same mode
            self.path.chmod(0o600)
            self._connection = _connect(self.path)
        except (FileExistsError, NotADirectoryError):
            raise WrongUsage(f"`{_file_in(directory)}` is a file.", hint="Pass a directory.") from None
        except OSError as error:
            message = f"The sandbox in {directory} cannot be opened: {error.strerror}."
            raise WrongUsage(message, hint="Choose a directory that you may write to.") from error
        except sqlite3.Error as error:
            hint = "Free space on the disk." if "full" in str(error) else _HINT
            raise WrongUsage(f"The sandbox in {directory} cannot be opened: {error}.", hint=hint) from error

    @contextmanager
    def reading(self) -> Iterator[SqlConnection]:
        """Give a consistent view: later commits of other processes are invisible in it."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[SqlConnection]:
        """Give the right to write; commit at the end, roll back after an exception."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SqlConnection]:
        with self._lock:
            self._connection.execute(begin)
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


@contextmanager
def open_snapshot(directory: Path) -> Iterator[SqlConnection]:
    """Give a consistent view of the sandbox in a directory."""
    with closing(Database(directory)) as database, database.reading() as connection:
        yield connection


def _file_in(directory: Path) -> Path:
    """Return the file that stands where a directory should be: the path itself or one of its parents."""
    return next((path for path in (directory, *directory.parents) if path.is_file()), directory)


def fetch(connection: SqlConnection, statement: str, *values: Any) -> Row | None:
    """Return the first row of a query, or None."""
    row: Row | None = connection.execute(statement, values).fetchone()
    return row


def find_repository(connection: SqlConnection, full_name: str) -> Row | None:
    """Return the repository of that name, in any case, or None."""
    return fetch(connection, "SELECT * FROM repositories WHERE full_name = ?", full_name)


def find_user(connection: SqlConnection, login: str) -> Row | None:
    """Return the account of that login, in any case, or None."""
    return fetch(connection, "SELECT * FROM users WHERE login = ?", login)


def insert(connection: SqlConnection, table: str, values: Mapping[str, Any]) -> int:
    """Insert a row under a new identifier, unless ``values`` has an ``id``, and return the identifier."""
    identifier = values.get("id")
    if not identifier:  # nothing else on this server has it, whatever its kind
        statement = "UPDATE meta SET value = value + 1 WHERE key = 'last_id' RETURNING value"
        identifier = connection.execute(statement).fetchone()[0]
    row = {"id": identifier, **values}
    columns, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))
    return int(row["id"])


def get_meta(connection: SqlConnection, key: str) -> Any:
    """Return the value stored under ``key``, or None."""
    row = fetch(connection, "SELECT value FROM meta WHERE key = ?", key)
    return None if row is None else row[0]


def set_meta(connection: SqlConnection, key: str, value: str | float) -> None:
    """Store ``value`` under ``key``."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def wipe(connection: SqlConnection) -> None:
    """Empty every table and restart the identifiers."""
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        connection.execute(f"DELETE FROM {table}")
    set_meta(connection, "last_id", FIRST_ID)


def words(text: str | None) -> str:
    """Return the words of a text as ``' word word '``, lower case, so a substring test finds a phrase.

    HTML comments count like any other text: GitHub indexes the source.
    """
    found = _WORD.findall((text or "").lower())
    return f" {' '.join(found)} " if found else " "


def _connect(path: Path) -> SqlConnection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.row_factory = sqlite3.Row
    try:
        _switch_to_wal(connection)
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: SqlConnection) -> None:
    """Set the journal mode; unlike a statement, the switch does not wait for another process's lock."""
    pauses = [0.01] * int(BUSY_SECONDS / 0.01)
    for attempt in attempts(SystemClock(), pauses):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == len(pauses):
                raise
        else:
            return


def _prepare(connection: SqlConnection) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, SCHEMA_VERSION):
        raise sqlite3.DatabaseError("another version of accord made it")
    if version == 0:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        for statement in _schema():
            connection.execute(statement)
        set_meta(connection, "last_id", FIRST_ID)
    connection.execute("COMMIT")


@cache
def _schema() -> tuple[str, ...]:
    text = (files("accord_sandbox") / "schema.sql").read_text(encoding="utf-8")
    lines = (line.split("--", 1)[0] for line in text.splitlines())
    return tuple(statement for statement in "\n".join(lines).split(";") if statement.strip())
