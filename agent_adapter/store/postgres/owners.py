"""Which processes run: each holds a lock in a session of its own, and renews a row.

A process lives while its session holds its lock, however long it stands still; the server gives the
lock back when the process dies or its connection ends. A connection that was lost while its process
runs is made again, so a process counts as dead only some seconds after its last renewal.
"""

from __future__ import annotations

import os
import secrets
import socket

from agent_adapter.store.base import Transaction
from agent_adapter.store.postgres.connection import Connection, PostgresCursor
from agent_adapter.store.postgres.locks import lock_id

BEAT_SECONDS = 2.0
"""How often the row is renewed."""

GRACE_SECONDS = 10.0
"""A process that holds no lock is dead when its last renewal is this old."""

_FORGET_AFTER_SECONDS = 86_400.0
_IS_RECENT = (
    # A restarted server forgets all locks: the processes have time to come back.
    "SELECT greatest(heartbeat_at, extract(epoch FROM pg_postmaster_start_time())::float8)"
    " > extract(epoch FROM clock_timestamp())::float8 - $1::float8"
    " FROM owners WHERE id = $2 AND heartbeat_at > 0"
)
_FORGET = (
    "DELETE FROM owners"
    " WHERE heartbeat_at < extract(epoch FROM clock_timestamp())::float8 - $1::float8"
)
_BEAT = (
    "INSERT INTO owners (id, host, pid, started_at, heartbeat_at) SELECT $1, $2, $3, now, now"
    " FROM (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS clock"
    " ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at"
)


class PostgresOwner:
    """One opened store in one process."""

    def __init__(self) -> None:
        self.id = f"epo_{secrets.token_hex(8)}"
        self._lock = lock_id("owner", self.id)
        self._host = socket.gethostname()

    def is_live(self, cursor: PostgresCursor, tx: Transaction, other: str) -> bool:
        """Whether the process with the owner id `other` still runs."""
        cursor.execute(_IS_RECENT, [GRACE_SECONDS, other])
        row = cursor.fetchone()
        if row is None:
            return False
        if row[0]:
            return True
        # Nobody has it: taken for this transaction, and by whoever else asks.
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared($1)", [lock_id("owner", other)])
        return not cursor.fetchone()[0]

    def announce(self, connection: Connection) -> None:
        """Take the lock in this session, and make the row; delete those of the long dead."""
        connection.execute("SELECT pg_advisory_lock($1)", [self._lock])
        connection.execute(_FORGET, [_FORGET_AFTER_SECONDS])
        self.beat(connection)

    def beat(self, connection: Connection) -> None:
        """Renew the row."""
        connection.execute(_BEAT, [self.id, self._host, os.getpid()])

    def leave(self, connection: Connection) -> None:
        """From now on other processes see this owner as dead."""
        connection.execute("UPDATE owners SET heartbeat_at = 0 WHERE id = $1", [self.id])
        connection.execute("SELECT pg_advisory_unlock($1)", [self._lock])
