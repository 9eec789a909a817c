"""Which processes run: each opened store locks a file, which the system unlocks at process end.

Each also keeps a heartbeat row; it decides only where the system has no file locks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Transaction

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]  # its absence is looked for below

DEAD_AFTER_SECONDS = 30.0
"""The age at which a row counts as dead if there are no file locks."""

_FORGET_AFTER_SECONDS = 86_400.0
_OPENING = ".opening"
_UNFINISHED = ".new-"


class Locks(Protocol):
    """The used part of `fcntl`; `None` in its place means that only rows show liveness."""

    LOCK_EX: int
    LOCK_NB: int
    LOCK_SH: int

    def flock(self, fd: int, operation: int, /) -> None:
        """Lock a file, or raise `BlockingIOError`."""
        ...


class Owner:
    """One opened store in one process: the lock file and the row that show it is alive."""

    def __init__(self, folder: Path, *, locks: Locks | None = fcntl) -> None:
        self.id = f"epo_{secrets.token_hex(8)}"
        self._folder = folder
        self._locks = locks
        self._host = socket.gethostname()
        self._held: int | None = None
        self.needs_beats = locks is None
        """Whether an idle store must renew its row, too."""
        if locks is not None:
            self._held = self._hold(locks)
            self._clean(locks)

    def is_live(self, tx: Transaction, other: str) -> bool:
        """Whether the process with the owner id `other` still runs."""
        if other == self.id:
            return self._locks is None or self._held is not None
        if self._locks is None:
            row = tx.get("owners", other)
            return row is not None and tx.now - row["heartbeat_at"] <= DEAD_AFTER_SECONDS
        if not other.startswith("epo_") or not other[4:].isalnum():
            return False
        return self._is_locked(self._locks, self._folder / other)

    def beat(self, tx: Transaction) -> None:
        """Renew the row of this owner; making it first deletes the rows of long dead owners."""
        values = {"heartbeat_at": tx.now}
        if tx.update("owners", {"id": self.id}, values):
            return
        tx.delete("owners", {"heartbeat_at <": tx.now - _FORGET_AFTER_SECONDS})
        row = {"id": self.id, "host": self._host, "pid": os.getpid(), "started_at": tx.now}
        tx.insert("owners", {**row, **values})

    def release(self) -> None:
        """Unlock: from now on other processes see this owner as dead."""
        if self._held is not None:
            held, self._held = self._held, None
            with contextlib.suppress(OSError):
                (self._folder / self.id).unlink()
            os.close(held)

    def disown(self) -> None:
        """In a forked child: close the parent's file without releasing its lock."""
        if self._held is not None:
            held, self._held = self._held, None
            # flock belongs to the open file, which parent and child share: closing keeps the lock.
            os.close(held)

    def _hold(self, locks: Locks) -> int:
        # Locked before it gets its name, so that no process sees it unlocked.
        unfinished = self._folder / f"{_UNFINISHED}{self.id}"
        try:
            held = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            locks.flock(held, locks.LOCK_EX | locks.LOCK_NB)
            unfinished.rename(self._folder / self.id)
        except OSError as error:
            raise StoreError(
                f"cannot lock a file in {self._folder}: {error.strerror};"
                " put the store on a local disk in a folder that you may write"
            ) from error
        return held

    def _is_locked(self, locks: Locks, path: Path) -> bool:
        try:
            found = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            locks.flock(found, locks.LOCK_SH | locks.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(found)
        return False

    def _clean(self, locks: Locks) -> None:
        for path in self._folder.iterdir():
            if path.name == _OPENING or path.name == self.id or self._is_locked(locks, path):
                continue
            # Another process may be between creating this file and locking it.
            if path.name.startswith(_UNFINISHED) and _is_recent(path):
                continue
            path.unlink(missing_ok=True)


def _is_recent(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < DEAD_AFTER_SECONDS
    except OSError:
        return True


@contextlib.contextmanager
def opening_lock(folder: Path) -> Iterator[None]:
    """Only one process at a time opens the store of this folder; the others wait."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder / _OPENING, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot write {folder}: {error.strerror};"
            " choose a folder that you may write, or change its permissions"
        ) from error
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
