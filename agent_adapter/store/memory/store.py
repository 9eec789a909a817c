"""The store of a program that keeps nothing: plain dictionaries behind one lock."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store import ledger
from agent_adapter.store.base import Condition, Entry, Operation, Row
from agent_adapter.store.forking import Lock, release_all, take_all, watch_forks
from agent_adapter.store.memory.eviction import IdleRuns, shrink
from agent_adapter.store.memory.table import MemoryTable
from agent_adapter.store.tables import TABLES
from agent_adapter.store.uptime import Uptime
from agent_adapter.store.witness import WITNESSED, Touched

T = TypeVar("T")

_POSTED_LIMIT = 10_000
_SLICE = 4
_RUN_LIMIT = 10_000
_RUN_SECONDS = 3600.0

_log = logging.getLogger("agent_adapter.store")


class _Tables(dict[str, MemoryTable]):
    def __missing__(self, name: str) -> MemoryTable:
        raise StoreError(f"no table {name!r}; there are {', '.join(self)}")


class _MemoryTransaction:
    """The tables inside one operation; what it changed is noted, to be taken back if it raises."""

    __slots__ = (
        "_idle",
        "_most_writes",
        "_run_tables",
        "_tables",
        "_writes",
        "key",
        "memo",
        "memo_lasts",
        "now",
        "owner_id",
        "pending",
        "touched",
        "undo",
        "uptime",
    )

    def __init__(
        self, tables: _Tables, idle: IdleRuns, owner_id: str, key: bytes, most_writes: int
    ) -> None:
        self._writes = 0
        self._most_writes = most_writes
        self._tables = tables
        self._idle = idle
        self._run_tables = frozenset(
            name
            for name, stored in tables.items()
            if any(column.name == "run_id" for column in stored.declared.columns)
        )
        self.undo: list[tuple[MemoryTable, Any, Row | None]] = []
        self.memo: dict[Any, Row] = {}
        self.memo_lasts = True  # no other process shares these rows
        self.touched: Touched = {}
        self.pending: list[Entry] = []
        self.now = 0.0
        self.uptime = Uptime.beside(time.time)
        self.owner_id = owner_id
        self.key = key

    @property
    def wrote(self) -> int:
        return len(self.undo)

    def get(self, table: str, *key: Any) -> Row | None:
        stored = self._tables[table]
        if len(key) != stored.key_width:
            raise StoreError(f"the key of {table!r} is ({', '.join(stored.declared.key)})")
        row = stored.rows.get(key[0] if stored.key_width == 1 else key)
        return None if row is None else row.copy()

    def insert(self, table: str, row: Row) -> bool:
        stored = self._tables[table]
        full = stored.whole(row)
        key = stored.key_of(full)
        if key is None or (stored.key_width > 1 and None in key):
            raise StoreError(f"a row of {table!r} needs all of ({', '.join(stored.declared.key)})")
        if key in stored.rows:
            return False
        if table == "calls" and full["effects"] == "write":
            self._count_write()
        stored.put(key, full)
        self.undo.append((stored, key, None))
        if table in WITNESSED:
            self.touched[table, key] = (full, True)
        if table in self._run_tables and full["run_id"] is not None:
            self._idle.touch(full["run_id"], self.now)
        return True

    def update(self, table: str, where: Condition, values: Row) -> int:
        stored = self._tables[table]
        values = stored.checked(values)
        found = stored.find(where)
        for key, row in found:
            self.undo.append((stored, key, row))
            changed = {**row, **values}
            stored.put(key, changed)
            if table in WITNESSED:
                self.touched[table, key] = (changed, True)
        if found and table in self._run_tables:
            run_id = found[0][1]["run_id"]
            if run_id is not None:
                self._idle.touch(run_id, self.now)
        return len(found)

    def delete(self, table: str, where: Condition) -> int:
        stored = self._tables[table]
        found = stored.find(where)
        for key, row in found:
            self.undo.append((stored, key, row))
            stored.remove(key)
            if table in WITNESSED:
                self.touched[table, key] = (row, False)
            if table == "calls" and row["effects"] == "write":
                self._writes -= 1
        return len(found)

    def select(
        self,
        table: str,
        where: Condition | None = None,
        *,
        order_by: str | Sequence[str] = (),
        descending: bool = False,
        limit: int | None = None,
    ) -> list[Row]:
        stored = self._tables[table]
        if limit is not None and order_by and (isinstance(order_by, str) or len(order_by) == 1):
            by = order_by if isinstance(order_by, str) else order_by[0]
            first = stored.first(where or {}, by, limit, descending=descending)
            if first is not None:
                return [row.copy() for _, row in first]
        found = stored.find(where)
        if order_by:
            found = stored.ordered(found, order_by, descending=descending)
        if limit is not None:
            found = found[:limit]
        return [row.copy() for _, row in found]

    def count(self, table: str, where: Condition | None = None) -> int:
        stored = self._tables[table]
        return len(stored.find(where)) if where else len(stored.rows)

    def is_live(self, owner_id: str) -> bool:
        return owner_id == self.owner_id

    def roll_back(self) -> None:
        for stored, key, old in reversed(self.undo):
            if old is None:
                removed = stored.remove(key)
                if stored.declared.name == "calls" and removed["effects"] == "write":
                    self._writes -= 1
            else:
                if stored.put(key, old) is None and stored.declared.name == "calls":
                    self._writes += old["effects"] == "write"
        self.undo.clear()

    def _count_write(self) -> None:
        """Every write is remembered until the process ends: at the bound there is no other."""
        if self._writes >= self._most_writes:
            raise StoreError(
                f"memory://: {self._writes:,} writes are remembered, and no more fit; a store that"
                " forgot one could let it happen again: give the executor store=open_store()"
            )
        self._writes += 1


class MemoryStore:
    """A store that ends with its process; operations run at once, on the caller's thread.

    Runs of reads that are idle are forgotten: beyond 10,000, or after an hour. A run with an open
    call, or with an approval that waits or may still be used, is kept. No write is forgotten: an
    idle run with one loses only its arguments and its results of more than 1 KB. With `max_writes`
    of them new writes are refused, and reads go on.
    """

    url = "memory://"
    durable = False

    def __init__(
        self,
        *,
        clock: Clock = time.time,
        key: bytes | None = None,
        max_writes: int = 100_000,
    ) -> None:
        if key is not None and len(key) != 32:
            raise StoreError(f"memory://: key= must be 32 bytes, not {len(key)}")
        self.key = secrets.token_bytes(32) if key is None else key
        self._clock = clock
        self._lock = threading.RLock()
        self._held: list[Lock] = []
        self._posted: deque[tuple[Operation[Any], float]] = deque()
        self._tables = _Tables((table.name, MemoryTable(table)) for table in TABLES)
        self._idle = IdleRuns(self._tables, most=_RUN_LIMIT, seconds=_RUN_SECONDS)
        self._tx = _MemoryTransaction(
            self._tables, self._idle, _new_owner_id(), self.key, max_writes
        )
        self._tx.uptime = Uptime.beside(clock)
        self._busy = False
        self._closed = False
        watch_forks(self)

    @property
    def owner_id(self) -> str:
        """Identifies this process as the owner of rows: new at every start and after a fork."""
        return self._tx.owner_id

    async def write(self, op: Operation[T]) -> T:
        """Run `op` whole or not at all, after everything posted."""
        with self._lock:
            self._drain()
            return self._run(op, self._clock())

    def post(self, op: Operation[Any]) -> None:
        """Queue `op`; it runs before the next write, read or flush, with the time of now."""
        if self._closed:
            raise _closed()
        posted = self._posted
        posted.append((op, self._clock()))
        if len(posted) > _POSTED_LIMIT:
            with self._lock:
                if not self._busy:
                    self._drain(_SLICE)

    async def read(self, op: Operation[T]) -> T:
        """Run `op` after everything posted; one that writes is taken back and refused."""
        with self._lock:
            self._drain()
            return self._run(op, self._clock(), writes=False)

    async def flush(self) -> None:
        """Run everything posted so far."""
        with self._lock:
            self._drain()

    async def aclose(self) -> None:
        """Run what is posted and forget everything; a second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._drain()
            self._closed = True
            for table in TABLES:
                self._tables[table.name] = MemoryTable(table)

    def _drain(self, most: int | None = None) -> None:
        """Run what is posted, oldest first: all of it, or only `most` operations."""
        if self._closed:
            raise _closed()
        posted = self._posted
        for _ in range(min(len(posted), most) if most is not None else len(posted)):
            op, at = posted.popleft()
            try:
                self._run(op, at)
            except Exception:
                _log.exception("a posted operation failed")

    def _run(self, op: Operation[T], now: float, *, writes: bool = True) -> T:
        if self._busy:
            raise StoreError("memory://: an operation may not start another one")
        tx = self._tx
        tx.now = now
        for run_id in [name for name in tx.memo if type(name) is str]:
            del tx.memo[run_id]  # the seals of chains are looked at again
        self._busy = True
        try:
            value = ledger.run(op, tx)
            if not writes and tx.undo:
                raise StoreError("memory://: an operation of read() may not write; use write()")
            tx.undo.clear()
            for run_id in self._idle.tick(now):
                ledger.run(partial(shrink, run_id=run_id), tx)
            tx.undo.clear()
            return value
        except BaseException as error:
            tx.roll_back()
            tx.memo.clear()
            fallback: Operation[T] | None = getattr(op, "fallback", None)
            if fallback is None or not isinstance(error, PydanticSerializationError):
                raise
        finally:
            self._busy = False
        return self._run(fallback, now, writes=writes)

    def before_fork(self) -> None:
        """Stand still while the process is copied."""
        self._held = take_all([self._lock])

    def after_fork_in_parent(self) -> None:
        """Go on."""
        release_all(self._held)

    def after_fork_in_child(self) -> None:
        """A child is another process: new locks, a new owner id, a copy of the rows."""
        self._lock = threading.RLock()
        self._held = []
        self._tx.owner_id = _new_owner_id()
        self._tx.memo.clear()


def open_memory(url: str, *, clock: Clock = time.time, key: bytes | None = None) -> MemoryStore:
    """A fresh store; `StoreError` for a URL that names one, since none can be found again."""
    if url != "memory://":
        raise StoreError(f"{url}: a memory store has no name; write memory://")
    return MemoryStore(clock=clock, key=key)


def _closed() -> StoreError:
    return StoreError("memory://: this store is closed; open another")


def _new_owner_id() -> str:
    return f"epo_{secrets.token_hex(8)}"
