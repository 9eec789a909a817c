"""What is looked at before a database file is touched; a refusal leaves it as it was."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from agent_adapter.core.errors import StoreError
from agent_adapter.store.sql.revisions import REVISIONS
from agent_adapter.store.sqlite.connection import error_code

APPLICATION_ID = 0x41414450
"""SQLite's mark of whose file it is: `AADP`."""

Found = str | None
"""The schema's revision, or `None` where there is no schema yet."""

_CHECKED_UP_TO = 256 * 1024 * 1024
_NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "smb", "smb2", "smb3", "smbfs", "fuse.ceph", "fuse.davfs2"),
        *("fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    )
)


def inspect(path: Path) -> Found:
    """What lies at `path`; `StoreError` with the reason and the fix if no store can be there.

    Files up to 256 MB are checked for damage throughout, larger ones where they are read.
    """
    refuse_network_file_system(path)
    _refuse_place(path)
    if not path.exists() or path.stat().st_size == 0:
        return None
    # Through SQLite alone: closing a file of one's own would drop the locks that another
    # connection of this process holds on it (POSIX).
    try:
        with closing(_looking(path)) as connection:
            return _content(path, connection)
    except sqlite3.DatabaseError as error:
        if error_code(error) == sqlite3.SQLITE_NOTADB:
            raise StoreError(
                f"{path} is not a SQLite file;"
                " give the path of a store, or one where nothing is yet"
            ) from error
        raise _damaged(path, str(error)) from error


def _refuse_place(path: Path) -> None:
    folder = path.parent
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoreError(f"{path} is a device or a pipe; give the path of a file")
    if path.is_dir():
        raise StoreError(
            f"{path} is a folder; give the path of a file, such as {path / 'state.db'}"
        )
    if not folder.is_dir():
        raise StoreError(f"cannot open {path}: the folder {folder} does not exist; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(
            f"cannot write in the folder {folder}: permission denied or read-only; SQLite keeps"
            " files beside the database: choose another folder, or change its permissions"
        )
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        raise StoreError(
            f"cannot write {path}: permission denied or read-only; change its permissions,"
            " or choose another path"
        )


def _looking(path: Path) -> sqlite3.Connection:
    # Where nothing is left to bring into the file, a connection that might write clears the files
    # beside it when it closes; one that only reads would leave them there.
    unfinished = any(Path(f"{path}{ending}").exists() for ending in ("-wal", "-journal"))
    mode = "ro" if unfinished else "rw"
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None)
    connection.execute("PRAGMA query_only = 1")
    connection.execute("PRAGMA busy_timeout = 10000")
    return connection


def _content(path: Path, connection: sqlite3.Connection) -> Found:
    # One snapshot: another process may be bringing a new file to its schema just now.
    connection.execute("BEGIN")
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    if owner != APPLICATION_ID:
        if tables or owner:
            raise StoreError(
                f"{path} is a SQLite database of another program; it is left alone:"
                " choose another path"
            )
        return None
    if path.stat().st_size <= _CHECKED_UP_TO:
        answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise _damaged(path, answer)
    if "alembic_version" not in tables:
        raise _damaged(path, "it has no schema version")
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None:
        raise _damaged(path, "it has no schema version")
    if row[0] not in REVISIONS:
        raise StoreError(
            f"{path} was written by a newer version of this library (its schema is {row[0]}, this"
            f" one knows up to {REVISIONS[-1]}); upgrade agent-adapter, or choose another path"
        )
    return str(row[0])


def _damaged(path: Path, reason: str) -> StoreError:
    reason = " ".join(reason.split())
    return StoreError(
        f"{path} is damaged or cannot be read ({reason});"
        " restore it from a backup, or move it away to begin anew"
    )


def refuse_network_file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> None:
    """Raise `StoreError` where locks are not to be trusted; says nothing without `/proc`."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    place = Path(os.path.realpath(path))
    best, kind = -1, ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    if kind in _NETWORK:
        raise StoreError(
            f"{path} is on a network file system ({kind}), whose locks SQLite cannot rely on;"
            " choose a path on a local disk"
        )
