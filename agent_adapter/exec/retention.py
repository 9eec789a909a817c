"""Retention carried out: in small steps beside other work, and the space given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec import large
from agent_adapter.store import pruning, retention
from agent_adapter.store.base import Operation, Store, Transaction
from agent_adapter.store.retention import Hold, HoldKind, Retention

_RUNS_AT_ONCE = 20
_RECORDS_AT_ONCE = 200
_PAGES_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What went, or would go: numbers of runs, runs whose payloads, channels, audit records."""

    runs: int = 0
    payloads: int = 0
    channels: int = 0
    audit: int = 0


async def set_retention(store: Store, wanted: Mapping[str, Retention], *, by: str) -> None:
    """Set how long the records of each of these tenants are kept; `""` is that of none."""
    await store.write(lambda tx: retention.set_policies(tx, wanted, by=by))


async def policies(store: Store) -> dict[str, Retention]:
    """The policy of each tenant that has one."""
    return await store.read(retention.policies)


async def hold(
    store: Store, kind: HoldKind, name: str, *, tenant: str = "", by: str, reason: str = ""
) -> None:
    """Keep a run, a conversation (or channel) of `tenant`, or a tenant, until it is released."""
    await store.write(
        lambda tx: retention.hold(tx, kind, name, tenant=tenant, by=by, reason=reason)
    )


async def release(store: Store, kind: HoldKind, name: str, *, tenant: str = "", by: str) -> None:
    """End a hold; `AgentAdapterError` where there is none."""
    if not await store.write(lambda tx: retention.release(tx, kind, name, tenant=tenant, by=by)):
        raise AgentAdapterError(
            f"no {kind} {name!r} of tenant {tenant!r} is held; `agent-adapter db holds` lists all"
        )


async def holds(store: Store) -> list[Hold]:
    """Every hold."""
    return await store.read(retention.holds)


async def apply(store: Store, *, by: str, dry: bool = False) -> dict[str, Pruned]:
    """Delete what is older than its tenant's policy; by tenant, what went.

    Each step is a transaction of its own, so others write in between. What is held, under way,
    in doubt or waiting stays. `dry` only counts. The file's free space is given back.
    """
    await store.flush()
    done = {}
    for tenant, policy in (await policies(store)).items():
        done[tenant] = await _Step(store, tenant, policy, by, dry=dry).all()
    if not dry and done:
        await give_back(store)
    return done


async def give_back(store: Store) -> int:
    """Give free pages of a database file back, some at a time; how many bytes it became smaller.

    Nothing for a store in memory, and for a file of an older version that was never compacted.
    """
    free: Callable[[int], int] | None = getattr(store, "give_back", None)
    if free is None:
        return 0
    freed = 0
    while some := await asyncio.to_thread(free, _PAGES_AT_ONCE):
        freed += some
    return freed


class _Step:
    """One tenant's policy carried out."""

    def __init__(self, store: Store, tenant: str, policy: Retention, by: str, *, dry: bool) -> None:
        self._store = store
        self._tenant = tenant
        self._policy = policy
        self._by = by
        self._dry = dry

    async def all(self) -> Pruned:
        """Runs before payloads: those of a run that goes need not be erased first."""
        pruned = Pruned(
            runs=await self._runs(),
            payloads=await self._payloads(),
            channels=await self._channels(),
            audit=await self._audit(),
        )
        await large.sweep(self._store)
        return pruned

    async def _before(self, kept: retention.Kept) -> float | None:
        now = await self._store.read(lambda tx: tx.now)
        return self._policy.before(kept, now)

    async def _runs(self) -> int:
        before = await self._before("runs")
        if before is None:
            return 0
        find = partial(pruning.old_runs, before=before, tenant=self._tenant)
        delete = partial(pruning.prune, before=before, by=self._by)
        return await self._in_steps(find, delete, _RUNS_AT_ONCE)

    async def _payloads(self) -> int:
        before = await self._before("payloads")
        if before is None:
            return 0
        find = partial(pruning.old_payloads, before=before, tenant=self._tenant)
        erase = partial(pruning.erase_old, before=before)
        return await self._in_steps(find, erase, _RUNS_AT_ONCE)

    async def _channels(self) -> int:
        before = await self._before("channels")
        if before is None:
            return 0
        find = partial(pruning.old_channels, before=before, tenant=self._tenant)

        def fold(tx: Transaction, some: list[str]) -> int:
            return sum(bool(pruning.fold_channel(tx, id, before, by=self._by)) for id in some)

        return await self._in_steps(find, fold, 1)

    async def _audit(self) -> int:
        before = await self._before("audit")
        if before is None:
            return 0
        find = partial(pruning.old_audit, before=before, tenant=self._tenant)
        delete = partial(pruning.delete_audit, before=before)
        return await self._in_steps(find, delete, _RECORDS_AT_ONCE)

    async def _in_steps(
        self,
        find: Operation[list[str]],
        delete: Callable[[Transaction, list[str]], int],
        at_once: int,
    ) -> int:
        """Look once for what is old, then delete so many at a time."""
        found = await self._store.read(find)
        if self._dry:
            return len(found)
        done = 0
        for start in range(0, len(found), at_once):
            some = found[start : start + at_once]
            done += await self._store.write(_deleting(delete, some))
            await asyncio.sleep(0)
        return done


def _deleting(delete: Callable[[Transaction, list[str]], int], some: list[str]) -> Operation[int]:
    return lambda tx: delete(tx, some)
