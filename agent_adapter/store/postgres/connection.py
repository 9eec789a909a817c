"""Connections to one PostgreSQL database, and what must hold of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import conninfo, errors
from pydantic_core import PydanticSerializationError
from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import Insert

from agent_adapter.core.errors import StoreError
from agent_adapter.store.sql.statements import Statements

Connection = psycopg.Connection[Any]

Query = tuple[str, Sequence[Any]]
"""A statement and its values."""

OLDEST = 130_000
"""The oldest server version: 13."""

_DEFAULTS = {
    "application_name": "agent-adapter",
    "connect_timeout": "10",
    # A server that is gone is noticed within a minute, also where nothing is being sent.
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_LOCK_SECONDS = 30
_TOO_LONG = "54"
"""The class of errors about limits of the server: a value that is too long for an index."""


def postgres_statements() -> Statements:
    """Statements in PostgreSQL's dialect, with `$1` for values."""
    return Statements(postgresql.dialect(paramstyle="numeric_dollar"), _insert_if_absent)  # type: ignore[no-untyped-call]  # SQLAlchemy's


def _insert_if_absent(table: Table) -> Insert:
    return postgresql.insert(table).on_conflict_do_nothing(index_elements=list(table.primary_key))


def parameters_of(url: str) -> dict[str, Any]:
    """What libpq reads in the URL, with defaults for what it does not say."""
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        why = " ".join(str(error).split())
        raise StoreError(
            f"{shown(url)} is no URL of a database ({why});"
            " write postgresql://user:password@host:5432/database"
        ) from error
    return {**_DEFAULTS, **given}


def shown(url: str) -> str:
    """The URL without its password."""
    hidden = re.sub(r"(://[^/@:?]*):[^/?]*@", r"\1:***@", url)
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1***", hidden)


def connect(parameters: dict[str, Any]) -> Connection:
    """A connection in autocommit, with prepared statements and answers in binary form."""
    made: Connection = psycopg.connect(
        **parameters, autocommit=True, prepare_threshold=2, cursor_factory=psycopg.RawCursor
    )
    try:
        made.prepared_max = 500
        made.execute("SET client_encoding = 'UTF8'")
    except BaseException:
        made.close()
        raise
    return made


def writing_connection(parameters: dict[str, Any]) -> Connection:
    """A connection whose commits are durable when they return."""
    made = connect(parameters)
    try:
        row = made.execute("SELECT current_setting('synchronous_commit')").fetchone()
        if row is not None and row[0] == "off":
            made.execute("SET synchronous_commit = on")
        made.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
    except BaseException:
        made.close()
        raise
    return made


class PostgresCursor:
    """A cursor of psycopg; claims are stored as numbers, as in every other store."""

    __slots__ = ("_connection", "_cursor")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor(binary=True)

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return self._cursor.rowcount

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Run one statement."""
        self._cursor.execute(sql.encode(), _numbers(parameters))

    def fetch_many(self, asked: Sequence[Query]) -> list[list[Any]]:
        """The rows of each statement, in one round trip."""
        with self._connection.pipeline():
            cursors = [self._sent(query) for query in asked]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

    def commit(self, last: Sequence[Query]) -> str | None:
        """Run the last statements and `COMMIT`, in one round trip; what the server says to that."""
        if not last:
            return self._connection.execute("COMMIT").statusmessage
        with self._connection.pipeline():
            for query in last:
                self._sent(query)
            done = self._connection.execute("COMMIT")
        return done.statusmessage

    def _sent(self, query: Query) -> psycopg.Cursor[Any]:
        sql, values = query
        return self._connection.cursor(binary=True).execute(sql.encode(), _numbers(values))

    def fetchone(self) -> Any:
        """The next row or `None`."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        return self._cursor.fetchall()


def _numbers(values: Sequence[Any]) -> list[Any]:
    return [int(value) if value.__class__ is bool else value for value in values]


def is_later(error: BaseException) -> bool:
    """Whether the server, the network or another transaction is at fault, not the statement."""
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return True  # a server that was the primary
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return not (error.sqlstate or "").startswith(_TOO_LONG)


def is_unstorable(error: BaseException) -> bool:
    """Whether a value is at fault that this database can never store."""
    values = OverflowError | UnicodeEncodeError | PydanticSerializationError
    return isinstance(error, psycopg.Error | values) and not is_later(error)


def mapped(name: str, error: BaseException) -> BaseException:
    """What the caller of an operation on this store gets for an error that it raised."""
    if isinstance(error, errors.InsufficientPrivilege):
        refused = StoreError(
            f"{name}: the role may not do this: {said(error)}; grant it the right,"
            " or use the URL of another role"
        )
        refused.__cause__ = error
        return refused
    if is_unstorable(error):
        unstorable = StoreError(f"{name}: an operation cannot be stored: {said(error)}")
        unstorable.__cause__ = error
        return unstorable
    if isinstance(error, StopIteration):
        # A future refuses it.
        stop = RuntimeError("an operation raised StopIteration")
        stop.__cause__ = error
        return stop
    return error


def said(error: BaseException) -> str:
    """The error's text in one line."""
    return " ".join(str(error).split()) or type(error).__name__
