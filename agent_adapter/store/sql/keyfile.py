"""The store's secret in a file beside the database, readable by its owner alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from agent_adapter.core.errors import StoreError
from agent_adapter.store.base import Transaction

KEY_BYTES = 32
_LONGEST = 4096
_CHECK = "key-check"


def checked_key(key: bytes, where: str) -> bytes:
    """`key`, if it is 32 bytes long."""
    if len(key) != KEY_BYTES:
        raise StoreError(
            f"{where}: the key has {len(key)} bytes in place of {KEY_BYTES};"
            " make one with secrets.token_bytes(32)"
        )
    return key


def file_key(path: Path, *, may_create: bool) -> bytes:
    """The key in `path`; made there for a new store, once, however many open it at a time."""
    found = _read(path)
    if found is None and may_create:
        _create(path)
        found = _read(path)
    if found is None:
        raise StoreError(
            f"the key {path} is missing, and the store was made with one;"
            " put the file back, or pass key="
        )
    return found


def keep_key(path: Path, key: bytes) -> None:
    """Put this key into the file, unless it is there; `StoreError` if another one is."""
    if _read(path) is None:
        _create(path, key)
    if _read(path) != key:
        raise StoreError(
            f"{path} holds another key than the store that is copied; move it away,"
            " or choose another place"
        )


def _read(path: Path) -> bytes | None:
    """The key in the file; `None` if there is no file, `StoreError` if others may read it."""
    try:
        with path.open("rb") as file:
            key, mode = file.read(_LONGEST), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            f"cannot read the key {path}: {error.strerror}; run as its owner, or pass key="
        ) from error
    checked_key(key, str(path))
    if os.name == "posix" and mode & 0o077:
        raise StoreError(
            f"the key {path} can be read or changed by others, who could forge the ledger:"
            f" run `chmod 600 {path}`, or pass key="
        )
    return key


def _create(path: Path, key: bytes | None = None) -> None:
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        made = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(made, "wb") as file:
            file.write(key or secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(unfinished, path)
        except FileExistsError:
            return
    except OSError as error:
        raise StoreError(
            f"cannot write the key {path}: {error.strerror};"
            " choose a folder that you may write, or pass key="
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)


def is_marked(tx: Transaction) -> bool:
    """Whether the store says which key it was made with."""
    return tx.get("meta", _CHECK) is not None


def mark_key(tx: Transaction) -> None:
    """Leave a mark of the key in a new store."""
    tx.insert("meta", {"name": _CHECK, "value": _mark(tx.key)})


def refuse_other_key(tx: Transaction, where: str) -> None:
    """Raise `StoreError` if the store was made with another key."""
    row = tx.get("meta", _CHECK)
    if row is None or not hmac.compare_digest(str(row["value"]), _mark(tx.key)):
        raise StoreError(
            f"{where} was made with another key; pass the key it was made with as key=,"
            " or put its key file back"
        )


def _mark(key: bytes) -> str:
    return hmac.new(key, b"agent-adapter key check 1", hashlib.sha256).hexdigest()
