"""Results with more bytes than a store keeps: withheld, and kept in a file where asked."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Container
from pathlib import Path

from agent_adapter.core.errors import GuardrailBlocked
from agent_adapter.exec import replay
from agent_adapter.exec.call import Call
from agent_adapter.exec.record import withheld
from agent_adapter.store.base import Store, Transaction

_ENDING = ".result"
_NEW_SECONDS = 60.0
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def folder(store: Store) -> Path | None:
    """Where the large results of a store lie; `None` for one that is no file."""
    path = getattr(store, "path", None)
    return path.with_name(f"{path.name}.results") if isinstance(path, Path) else None


async def keep_back(call: Call, data: bytes) -> GuardrailBlocked:
    """Why the encoded result is withheld, after it was kept where that was asked for."""
    most = call.runtime.max_result_bytes
    reason = f"it has {len(data):,} bytes, and at most {most:,} are kept"
    if call.runtime.keeps_large_results:
        reason += f"; {await _kept(call, data)}"
    return withheld(GuardrailBlocked(reason))


async def sweep(store: Store) -> int:
    """Delete the files of calls that were erased or deleted; how many."""
    within = folder(store)
    if within is None or not within.is_dir():
        return 0
    files = {file.name.removesuffix(_ENDING): file for file in within.glob(f"*{_ENDING}")}
    # The call of a new file may not be recorded yet.
    old = {key for key, file in files.items() if time.time() - file.stat().st_mtime > _NEW_SECONDS}
    gone = await store.read(lambda tx: [key for key in files if _is_gone(tx, key, old)])
    for key in gone:
        files[key].unlink(missing_ok=True)
    return len(gone)


async def _kept(call: Call, data: bytes) -> str:
    within = folder(call.runtime.store)
    if within is None:
        return "the store has no place for files"
    if call.call_key is None:
        await replay.enter(call)  # a read has no name before it is recorded
    file = within / f"{call.key()}{_ENDING}"
    try:
        await asyncio.to_thread(_write, file, data)
    except OSError as exc:
        return f"it could not be written to {file.name} either ({exc.strerror})"
    return f"it is in {within.name}/{file.name} (SHA-256 {hashlib.sha256(data).hexdigest()})"


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _is_gone(tx: Transaction, call_key: str, old: Container[str]) -> bool:
    arguments = tx.get("payloads", f"{call_key}.arguments")
    return call_key in old if arguments is None else arguments["data"] is None
