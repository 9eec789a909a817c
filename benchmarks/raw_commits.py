"""The floor for a durable call: the same two group commits over sqlite3, and nothing else."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["RawCommits"]

_TABLES = """
CREATE TABLE calls (call_key TEXT PRIMARY KEY, run_id TEXT, tool TEXT, digest TEXT, state TEXT,
    ending TEXT, started_at REAL, finished_at REAL);
CREATE TABLE ledger (run_id TEXT, seq INTEGER, kind TEXT, body BLOB, hash BLOB,
    PRIMARY KEY (run_id, seq));
CREATE TABLE heads (run_id TEXT PRIMARY KEY, seq INTEGER, hash BLOB);
CREATE TABLE payloads (id TEXT PRIMARY KEY, data BLOB);
"""
_BODY = b"x" * 300
_HASH = b"h" * 32
_LARGEST_BATCH = 256

_Work = Callable[[sqlite3.Connection], object]
_Job = tuple[_Work, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class RawCommits:
    """One writer thread that commits whatever has queued, in one transaction, synchronous=FULL."""

    def __init__(self, path: Path) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._path = path
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    async def call(self, key: str, run: str, seq: int) -> None:
        """An intent, then an outcome: each is durable when its await returns."""
        await self._commit(lambda db: _intent(db, key, run, seq))
        await self._commit(lambda db: _outcome(db, key, run, seq + 1))

    def close(self) -> None:
        """Stop the thread when all that is queued is written."""
        self._jobs.put(None)
        self._thread.join()

    async def _commit(self, work: _Work) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._jobs.put((work, loop, done))
        await done

    def _run(self) -> None:
        db = sqlite3.connect(self._path, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.executescript(_TABLES)
        while batch := self._next_batch():
            db.execute("BEGIN IMMEDIATE")
            for work, _, _ in batch:
                work(db)
            db.execute("COMMIT")
            batch[0][1].call_soon_threadsafe(_finish, [done for _, _, done in batch])
        db.close()

    def _next_batch(self) -> list[_Job]:
        batch: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) == _LARGEST_BATCH:
                return batch
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._jobs.put(None)
        return batch


def _finish(waiting: list[asyncio.Future[None]]) -> None:
    for done in waiting:
        if not done.done():
            done.set_result(None)


def _intent(db: sqlite3.Connection, key: str, run: str, seq: int) -> None:
    db.execute(
        "INSERT INTO calls VALUES (?, ?, 'add', 'digest', 'open', NULL, 1.0, NULL)", (key, run)
    )
    db.execute("INSERT INTO payloads VALUES (?, ?)", (f"{key}/a", _BODY))
    _chain(db, run, seq)


def _outcome(db: sqlite3.Connection, key: str, run: str, seq: int) -> None:
    db.execute(
        "UPDATE calls SET state = 'done', ending = 'ok', finished_at = 2.0 WHERE call_key = ?",
        (key,),
    )
    db.execute("INSERT INTO payloads VALUES (?, ?)", (f"{key}/r", _BODY))
    _chain(db, run, seq)


def _chain(db: sqlite3.Connection, run: str, seq: int) -> None:
    db.execute("INSERT INTO ledger VALUES (?, ?, 'intent', ?, ?)", (run, seq, _BODY, _HASH))
    db.execute("INSERT OR REPLACE INTO heads VALUES (?, ?, ?)", (run, seq, _HASH))
