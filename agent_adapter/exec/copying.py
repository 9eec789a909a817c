"""Moves a store to another back end: every row as of one moment, verified on both sides."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, StoreError
from agent_adapter.exec import ledger
from agent_adapter.store import copying
from agent_adapter.store.base import Row, Store, Transaction
from agent_adapter.store.opening import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What was copied: rows in all, chains and entries as they verified in the new store."""

    rows: int
    runs: int
    entries: int
    key: str


async def copy_store(source: Store, to: str) -> Copied:
    """Copy every row of `source` to the empty store at `to`, which is made with the same key.

    Writes of other processes to `source` that begin after the copy are not in it. Where anything
    fails, what was added is removed again.
    """
    if not source.durable:
        raise StoreError(f"{source.url} keeps nothing: give a store that lasts")
    await _verified(source, "nothing was copied")
    target = open_store(to, key=source.key)
    try:
        if not target.durable:
            raise StoreError(f"{target.url} keeps nothing: give a store that lasts")
        found = await target.read(copying.filled)
        if found:
            raise StoreError(
                f"{target.url} is not empty (it has rows in {', '.join(found[:5])}); nothing was"
                " copied: give a database or a path where no store is"
            )
        key = _keep_key(target)
        try:
            wanted = await _copy(source, target)
            return await _checked(target, wanted, key)
        except BaseException:
            await asyncio.shield(target.write(copying.wipe))
            raise
    finally:
        await target.aclose()


async def _copy(source: Store, target: Store) -> dict[str, int]:
    """Copy page by page, all of them from one snapshot; how many rows each table has there."""
    loop = asyncio.get_running_loop()

    def read(tx: Transaction) -> dict[str, int]:
        # In a thread of the source's readers: the snapshot is held while the pages are written.
        for table, rows in copying.pages(tx):
            written = target.write(_adding(table, rows))
            asyncio.run_coroutine_threadsafe(written, loop).result()
        return copying.counts(tx)

    return await source.read(read)


def _adding(table: str, rows: list[Row]) -> Any:
    return partial(copying.add, table=table, rows=rows)


async def _checked(target: Store, wanted: dict[str, int], key: str) -> Copied:
    found = await target.read(copying.counts)
    different = sorted(name for name in wanted if found[name] != wanted[name])
    if different:
        raise StoreError(
            f"{target.url} got other rows than there were in {', '.join(different)}: does another"
            " program write to it? The copy was removed"
        )
    report = await _verified(target, "the copy was removed")
    return Copied(rows=sum(found.values()), runs=report.runs, entries=report.entries, key=key)


async def _verified(store: Store, so: str) -> ledger.Report:
    report = await ledger.verify(store)
    if not report.ok:
        raise AgentAdapterError(
            f"{store.url} does not verify ({report.problems[0]}), so {so}:"
            " see `agent-adapter ledger verify`"
        )
    return report


def _keep_key(target: Store) -> str:
    """Put the key where the store at this URL is looked for one; the path."""
    from agent_adapter.store.sql.keyfile import keep_key

    path: Path | None = getattr(target, "key_path", None)
    if path is None:
        return ""  # a store of a plug-in keeps its key itself
    keep_key(path, target.key)
    return str(path)
