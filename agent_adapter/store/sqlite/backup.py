"""A copy of a SQLite store, made while others write to it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
from pathlib import Path

from agent_adapter.core.errors import StoreError
from agent_adapter.store.sqlite.connection import create_private, read_only_connection


def copy_store(path: Path, to: Path) -> None:
    """Write one moment of the store at `path` to `to`, without gaps, and its key beside it.

    `StoreError` where something lies at `to` already; nothing is overwritten. A store opened with a
    key of its own has no key file, and its copy needs that key again.
    """
    key, copied_key = (file.with_name(f"{file.name}.key") for file in (path, to))
    for file in (to, copied_key):
        if os.path.lexists(file):
            raise StoreError(f"{file} exists already; give a path where nothing is")
    unfinished = to.with_name(f"{to.name}.{secrets.token_hex(8)}")
    try:
        create_private(unfinished)
        with contextlib.closing(read_only_connection(path)) as connection:
            # The file itself stays opened for reading only.
            connection.execute("PRAGMA query_only = 0")
            connection.execute("VACUUM INTO ?", (str(unfinished),))
        _keep(unfinished, to)
        if key.exists():
            unfinished_key = copied_key.with_name(f"{copied_key.name}.{secrets.token_hex(8)}")
            create_private(unfinished_key)
            shutil.copyfile(key, unfinished_key)
            _keep(unfinished_key, copied_key)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"cannot write a copy of {path} to {to}: {error};"
            " choose a folder that exists, may be written and has room"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _keep(unfinished: Path, to: Path) -> None:
    """Give a whole, durable file its name; an error if there is one of that name."""
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    os.link(unfinished, to)
    unfinished.unlink()
