"""Giving the free pages of a SQLite file back to the disk."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from agent_adapter.store.sqlite.connection import is_busy, writing_connection

_INCREMENTAL = 2


def give_back(path: Path, pages: int) -> int:
    """Give up to so many free pages back, in one short transaction; how many bytes there were.

    0 where none is free, another process writes just now, or the file cannot shrink in steps.
    """
    with contextlib.closing(writing_connection(path)) as connection:
        connection.execute("PRAGMA busy_timeout = 2000")
        (mode,) = connection.execute("PRAGMA auto_vacuum").fetchone()
        (before,) = connection.execute("PRAGMA freelist_count").fetchone()
        if mode != _INCREMENTAL or before == 0:
            return 0
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        try:
            connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError as error:
            if is_busy(error):
                return 0
            raise
        (after,) = connection.execute("PRAGMA freelist_count").fetchone()
        return max(0, int(before - after) * int(size))


def compact(path: Path) -> bool:
    """Rewrite the file so that it can shrink in steps from now on; `False` if others use it."""
    with contextlib.closing(writing_connection(path)) as connection:
        (mode,) = connection.execute("PRAGMA auto_vacuum").fetchone()
        if mode == _INCREMENTAL:
            return True
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        try:
            connection.execute("VACUUM")
        except sqlite3.OperationalError as error:
            if is_busy(error):
                return False
            raise
        return True
