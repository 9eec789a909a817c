"""Step 6: one execution for identical reads, at the same time or soon after."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from agent_adapter.core.canonical import digest
from agent_adapter.core.types import CachePolicy
from agent_adapter.exec.call import Call
from agent_adapter.exec.record import post_shared
from agent_adapter.exec.taint import labels, mark
from agent_adapter.store.base import Row, Transaction

__all__ = ["shared"]


async def shared(call: Call, policy: CachePolicy, execute: Callable[[], Awaitable[Any]]) -> Any:
    """The cached value, the value of an identical call in flight, or what `execute` gives.

    Everybody gets a copy of their own. Failures are not shared beyond the callers in flight, and a
    caller that is cancelled leaves the execution to the others.
    """
    key = _key(call, policy)
    kept = await call.executor.store.read(lambda tx: _kept(tx, key))
    if kept is not None:
        for label in json.loads(kept["labels"]):
            await mark(call, label)
        return _handed_out(call, *_split(kept["result"]))
    flights = call.executor.flights
    task = flights.get(key)
    if task is None:
        task = asyncio.get_running_loop().create_task(_fly(call, key, policy.ttl, execute))
        flights[key] = task
        task.add_done_callback(lambda done: _landed(flights, key, done))
        return call.spec.decode_result(*await asyncio.shield(task))
    tag, data = await asyncio.shield(task)
    if call.spec.trust == "untrusted":
        await mark(call)
    return _handed_out(call, tag, data)


async def _fly(
    call: Call, key: str, seconds: float, execute: Callable[[], Awaitable[Any]]
) -> tuple[str, bytes]:
    value = await execute()
    tag, data = call.spec.encode_result(value)
    if tag != "opaque":
        found = await labels(call) if call.spec.trust == "untrusted" else ()
        await call.executor.store.write(lambda tx: _keep(tx, key, tag, data, found, seconds))
    return tag, data


def _landed(
    flights: dict[str, asyncio.Task[tuple[str, bytes]]],
    key: str,
    done: asyncio.Task[tuple[str, bytes]],
) -> None:
    if flights.get(key) is done:
        del flights[key]
    if not done.cancelled():
        done.exception()  # a caller that left early must not make it "never retrieved"


def _handed_out(call: Call, tag: str, data: bytes) -> Any:
    """A copy for a caller for whom nothing ran; it has a ledger row of its own."""
    post_shared(call, tag, data)
    return call.spec.decode_result(tag, data)


def _key(call: Call, policy: CachePolicy) -> str:
    """Over tool, arguments, tenant, principal and scope: never joined text."""
    scope = {"run": call.run_id, "thread": call.ctx.thread_id or call.run_id, "global": None}
    parts = [call.spec.fingerprint, call.digest, call.ctx.tenant, call.ctx.principal]
    return digest([*parts, policy.scope, scope[policy.scope]])


def _kept(tx: Transaction, key: str) -> Row | None:
    row = tx.get("cache", key)
    return row if row is not None and row["expires_at"] > tx.now else None


def _keep(
    tx: Transaction, key: str, tag: str, data: bytes, labels: tuple[str, ...], seconds: float
) -> None:
    tx.delete("cache", {"expires_at <=": tx.now})
    tx.delete("cache", {"key": key})
    result = f"{tag}\n{data.decode()}"
    row = {"key": key, "result": result, "labels": json.dumps(labels)}
    tx.insert("cache", row | {"expires_at": tx.now + seconds})


def _split(kept: str) -> tuple[str, bytes]:
    tag, _, data = kept.partition("\n")
    return tag, data.encode()
