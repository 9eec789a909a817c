"""The file is the file: a database that was moved, deleted or replaced takes no more writes."""

from __future__ import annotations

import os
from pathlib import Path

from agent_adapter.store.sql.jobs import StorePlaceLost


class FileMoved(StorePlaceLost):
    """What lies at the path is not the file that was opened."""


class DatabaseFile:
    """The file of an opened store, known by its device and inode."""

    __slots__ = ("opened", "path")

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self.opened = _identity(self.path)

    def check(self) -> None:
        """Raise `FileMoved` unless the same file is still at its path."""
        found = _identity(self.path)
        if found == self.opened:
            return
        what = "was moved or deleted" if found is None else "was replaced by another file"
        raise FileMoved(
            f"{self.path} {what} while this process had it open; nothing is written any more:"
            " put the file back, or end this process and start it again"
        )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
