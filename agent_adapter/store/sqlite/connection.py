"""Connections to one SQLite file, and what must hold of them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from pathlib import Path

from pydantic_core import PydanticSerializationError
from sqlalchemy import Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import Insert

from agent_adapter.core.errors import StoreError
from agent_adapter.store.conditions import has_text
from agent_adapter.store.sql.statements import Statements
from agent_adapter.store.sql.text_search import HAS_TEXT

_CACHED_STATEMENTS = 512
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_TROUBLE = _BUSY | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PERM,
}


def sqlite_statements() -> Statements:
    """Statements in SQLite's dialect, with `?` for values."""
    return Statements(sqlite.dialect(paramstyle="qmark"), _insert_if_absent)


def _insert_if_absent(table: Table) -> Insert:
    return sqlite.insert(table).on_conflict_do_nothing(index_elements=list(table.primary_key))


def writing_connection(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """A connection in WAL mode whose commits are on the disk when they return."""
    if create:
        create_private(path)
    connection = _connect(path, "rwc" if create else "rw")
    try:
        _set(connection, path, "synchronous", "FULL", 2)
        if sys.platform == "darwin":
            # fsync there leaves data in the drive's cache.
            _set(connection, path, "fullfsync", "1", 1)
            _set(connection, path, "checkpoint_fullfsync", "1", 1)
        connection.execute("PRAGMA journal_size_limit = 67108864")
    except BaseException:
        connection.close()
        raise
    return connection


def create_private(path: Path) -> None:
    """Make an empty file that its owner alone may read; one that exists stays as it is.

    SQLite gives its files beside it the same permissions.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def read_only_connection(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = _connect(path, "ro")
    connection.execute("PRAGMA query_only = 1")
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_CACHED_STATEMENTS,
    )
    connection.create_function(HAS_TEXT, 2, has_text, deterministic=True)
    # Before journal_mode, which takes a lock. Transactions have a retry of their own: SQLite's
    # waits longer and longer, and starves some of many writers.
    connection.execute("PRAGMA busy_timeout = 5000")
    if mode == "rwc":
        # Before journal_mode, which begins the file: it can give pages back one by one.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    if mode != "ro":
        _set(connection, path, "journal_mode", "WAL", "wal")
        connection.execute("PRAGMA busy_timeout = 0")
    return connection


def _set(
    connection: sqlite3.Connection, path: Path, name: str, value: str, answer: str | int
) -> None:
    connection.execute(f"PRAGMA {name} = {value}")
    got = connection.execute(f"PRAGMA {name}").fetchone()[0]
    if got != answer:
        connection.close()
        raise StoreError(
            f"{path}: SQLite answers {got!r} to {name} = {value}, so commits would not be safe"
            " there; choose a path on a local disk"
        )


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds the file."""
    return isinstance(error, sqlite3.Error) and error_code(error) in _BUSY


def is_storage_trouble(error: BaseException) -> bool:
    """Whether the disk or the file is at fault, not the statement."""
    return isinstance(error, sqlite3.Error) and error_code(error) in _TROUBLE


def is_unstorable(error: BaseException) -> bool:
    """Whether a value is at fault that this database can never store."""
    values = OverflowError | UnicodeEncodeError | PydanticSerializationError
    return isinstance(error, sqlite3.Error | values) and not is_storage_trouble(error)


def error_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where the error is the driver's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def mapped(name: str, error: BaseException) -> BaseException:
    """What the caller of an operation on this store gets for an error that it raised."""
    if is_unstorable(error):
        unstorable = StoreError(f"{name}: an operation cannot be stored: {error}")
        unstorable.__cause__ = error
        return unstorable
    if isinstance(error, StopIteration):
        # A future refuses it.
        stop = RuntimeError("an operation raised StopIteration")
        stop.__cause__ = error
        return stop
    return error
