"""Which advisory locks a transaction takes, so that operations on the same things never overlap.

An operation that names the keys of what it reads and changes (its attribute `keys`) holds those,
and shares one lock of the whole store. One that names none holds the lock of the whole store alone:
it is always right, and never beside another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from agent_adapter.store.base import Condition, Operation, Row
from agent_adapter.store.postgres.connection import Query
from agent_adapter.store.sql.transaction import SqlTransaction
from agent_adapter.store.witness import CHANNEL

STORE = "store"
"""The key of the whole store."""

SCHEMA = "schema"
"""The key of whoever brings the database to the newest schema."""

MOST = 256
"""Locks of one transaction; with more keys it takes the whole store, since a server keeps few."""


def lock_id(kind: str, key: str) -> int:
    """The 64-bit number of a lock."""
    name = f"agent_adapter {kind} {key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)


_STORE_ID = lock_id(STORE, "")


_TAKE_KEYS = "SELECT count(pg_advisory_xact_lock(k)) FROM unnest($1::bigint[]) k"

# A lock of two numbers, which no other lock of ours is: a mark, and the microsecond.
_MARK = 0x5AA
_MARKED = f"{_MARK} << 20"
_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
_TAKE_MARK = (
    f"SELECT pg_advisory_xact_lock_shared(({_MARKED}) | (at >> 32)::int,"  # noqa: S608 - no values
    " ((at & 4294967295) - 2147483648)::int)"
    f" FROM (SELECT {_MICROSECONDS.format('clock_timestamp()')} AS at) AS clock"
)
_FIND_MARKS = (
    # The time first: a transaction that is marked later has later positions.
    f"SELECT {_MICROSECONDS.format('statement_timestamp()')},"  # noqa: S608 - no values
    " array(SELECT ((classid::bigint & 1048575) << 32) | (objid::bigint # 2147483648)"
    " FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
    f" AND classid::bigint >> 20 = {_MARK}"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)


class KeyMissing(Exception):
    """An operation changes a chain that it did not name; it runs again with the whole store."""


def keys_of(ops: Iterable[Operation[object]]) -> frozenset[str] | None:
    """What the operations name together; `None` where one of them names nothing."""
    found: set[str] = set()
    for op in ops:
        keys = getattr(op, "keys", None)
        if keys is None:
            return None
        named = keys()
        if named is None:
            return None
        found.update(named)
    return frozenset(found) if len(found) <= MOST else None


def taking(keys: frozenset[str] | None) -> list[Query]:
    """Statements that wait for the locks of the keys, always in the same order."""
    if keys is None:
        return [("SELECT pg_advisory_xact_lock($1)", [_STORE_ID])]
    # The shared lock first, in a statement of its own: whoever waits for a key must not keep one
    # who holds that key from the store.
    found: list[Query] = [("SELECT pg_advisory_xact_lock_shared($1)", [_STORE_ID])]
    if keys:
        found.append((_TAKE_KEYS, [sorted(lock_id("key", key) for key in keys)]))
    if any(key.startswith(CHANNEL) for key in keys):
        # Transactions on channels write events beside each other: readers see by the mark which
        # positions may still come.
        found.append((_TAKE_MARK, []))
    return found


class LockedTransaction(SqlTransaction):
    """A transaction that knows its keys: a change of any other chain is refused.

    Every change of a row that the ledger vouches for moves the head of its chain, so no operation
    can change a chain beside another one, whatever it named.
    """

    __slots__ = ("changed", "held")

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]  # passed on as they come
        self.held: frozenset[str] | None = None
        self.changed: set[str] = set()

    def insert(self, table: str, row: Row) -> bool:
        """Add the row unless its key exists."""
        if table == "chain_heads":
            self._check(row["run_id"])
        self.changed.add(table)
        return super().insert(table, row)

    def update(self, table: str, where: Condition, values: Row) -> int:
        """Set `values` in every matching row."""
        if table == "chain_heads":
            self._check(str(where["run_id"]))  # chains are moved one by one
        self.changed.add(table)
        return super().update(table, where, values)

    def marks(self) -> tuple[int, list[int]]:
        """The time in microseconds, and when transactions that write events began before it."""
        self._cursor.execute(_FIND_MARKS)
        now, found = self._cursor.fetchone()
        return now, found

    def _check(self, chain: str) -> None:
        if self.held is not None and chain not in self.held:
            raise KeyMissing(chain)
