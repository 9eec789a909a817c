"""The ledger for people: verified, listed and repaired."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic_core import to_json

from agent_adapter.core.canonical import tagged
from agent_adapter.core.errors import AgentAdapterError, StoreError, ToolError
from agent_adapter.core.inert import short
from agent_adapter.exec import large
from agent_adapter.exec.in_flight import in_flight_of
from agent_adapter.store import cache, doubt, ledger, pruning, queries
from agent_adapter.store.approvals import Refusal
from agent_adapter.store.base import Row, Store, Transaction
from agent_adapter.store.chain_check import ChainCheck, beyond_chains
from agent_adapter.store.witness import CHANNEL, is_run

Anchor = tuple[int, str]
"""The length of a chain and its newest link, in hexadecimal: to be kept outside the store."""

_LOOKED_AT = 1_000

CANNOT_SEE = (
    "a run that was deleted together with its chain head, and a chain that was cut back together "
    "with an older head, unless anchors from outside are given",
    "use of the store's key, which is stored next to a local store",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a verification found; `ok` unless there are `problems`.

    `trusted_from` is when a store of an older version was opened by this one (seconds since the
    epoch): rows that were there then are compared with what they were at that time. `pruned_runs`
    and `pruned_channels` are gone by retention, and the chains say so.
    """

    ok: bool
    runs: int
    entries: int
    calls: int
    payloads: int
    erased: int
    in_doubt: int
    channels: int = 0
    pruned_runs: int = 0
    pruned_channels: int = 0
    trusted_from: float | None = None
    problems: tuple[str, ...] = ()
    cannot_see: tuple[str, ...] = CANNOT_SEE


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One link of a run's chain; `at` is seconds since the epoch."""

    run_id: str
    seq: int
    at: float
    kind: str
    call_key: str | None
    facts: dict[str, Any] = field(default_factory=dict)


async def verify(
    store: Store, run_id: str | None = None, *, anchored: dict[str, Anchor] | None = None
) -> Report:
    """Check every chain (or one run's): links, head, payloads, and the calls against them."""
    await store.flush()
    heads = await store.read(lambda tx: _heads(tx, run_id))
    if run_id is not None and not await store.read(
        lambda tx: tx.count("ledger", {"run_id": run_id})
    ):
        raise AgentAdapterError(f"no run {short(run_id)} in {store.url}")
    totals = dict.fromkeys(("entries", "calls", "payloads", "erased", "pruned_channels"), 0)
    problems: list[str] = []
    seen: Counter[str] = Counter()
    since: list[float] = []
    gone = await store.read(pruning.gone)
    wanted = {
        name: anchor
        for name, anchor in (anchored or {}).items()
        if not _was_pruned(anchor, gone.get(name))
    }
    for name in heads:
        await store.read(_check_of(name, totals, problems, seen, since, wanted.get(name)))
    if run_id is None:
        problems += await store.read(lambda tx: beyond_chains(tx, seen, heads))
        problems += [f"cached result {key} was changed" for key in await store.read(cache.broken)]
        problems += await asyncio.to_thread(_of_the_file, store)
    problems += [f"{name}: the run is gone" for name in wanted if name not in heads]
    found = await store.read(doubt.in_doubt)
    doubts = sum(run_id is None or row["run_id"] == run_id for row in found)
    return Report(
        ok=not problems,
        runs=sum(map(is_run, heads)),
        channels=sum(name.startswith(CHANNEL) for name in heads),
        entries=totals["entries"],
        calls=totals["calls"],
        payloads=totals["payloads"],
        erased=totals["erased"],
        pruned_runs=len(gone) if run_id is None else 0,
        pruned_channels=totals["pruned_channels"],
        in_doubt=doubts,
        trusted_from=max(since, default=None),
        problems=tuple(problems),
    )


async def anchors(store: Store) -> dict[str, Anchor]:
    """The head of every chain, to be kept outside the store."""
    await store.flush()
    rows = await store.read(lambda tx: tx.select("chain_heads", order_by="run_id"))
    return {row["run_id"]: (row["seq"], row["hash"].hex()) for row in rows}


async def entries(
    store: Store, run_id: str | None = None, *, limit: int = 1000, since: float | None = None
) -> list[Entry]:
    """The entries of one run, or the newest of all, in the order in which they were written.

    Those that only name rows (`changed`) are left out of the newest of all.
    With `since`: those written at that time (seconds since the epoch) or later, the oldest first.
    """
    await store.flush()
    where: dict[str, Any] = {"kind !=": "changed"} if run_id is None else {"run_id": run_id}
    if since is not None:
        where["at >="] = since
    order = "seq" if run_id is not None else "at"
    newest = run_id is None and since is None
    rows = await store.read(
        lambda tx: tx.select("ledger", where, order_by=order, descending=newest, limit=limit)
    )
    return [_entry(row) for row in (reversed(rows) if newest else rows)]


async def of_tenant(store: Store, found: Sequence[Entry], tenant: str) -> list[Entry]:
    """Those of the entries that belong to runs of the tenant."""
    names = {entry.run_id for entry in found}
    mine = await store.read(
        lambda tx: {name for name in names if queries.run_line(tx, name, tenant) is not None}
    )
    return [entry for entry in found if entry.run_id in mine]


async def newest(store: Store, tenant: str, limit: int) -> list[Entry]:
    """The newest entries of a tenant's runs, in the order in which they were written."""
    await store.flush()
    found: list[Entry] = []
    start: float | None = None
    while len(found) < limit:
        page = await store.read(partial(_page, start=start))
        found += await of_tenant(store, [_entry(row) for row in page.rows], tenant)
        start = page.next
        if start is None:
            break
    return found[:limit][::-1]


def _page(tx: Transaction, start: float | None) -> queries.Page:
    where = {"kind !=": "changed"}
    return queries.paged(tx, "ledger", where, by="at", limit=_LOOKED_AT, start=start)


async def in_doubt(store: Store, tenant: str | None = None) -> list[Row]:
    """Every write that a person has to look at, oldest first."""
    in_flight = in_flight_of(store)
    in_flight.abandon_closed()
    with suppress(StoreError, ToolError):  # what cannot be written now is listed all the same
        await in_flight.settle_lost()
        await store.flush()

    async def listed() -> list[Row]:
        under_way = in_flight.under_way()
        return await store.read(lambda tx: doubt.in_doubt(tx, tenant, under_way))

    rows, own = await listed(), store.owner_id
    if any(row["owner_id"] == own and row["state"] == "open" for row in rows):
        # One that began or ended meanwhile looks like one that was left: it does so only once.
        keys = {row["call_key"] for row in rows}
        rows = [row for row in await listed() if row["call_key"] in keys]
    return rows


async def resolve(
    store: Store,
    call_key: str,
    *,
    reviewer: str,
    happened: bool,
    result: Any = None,
    reason: str | None = None,
    tenant: str | None = None,
) -> Row:
    """Record a person's decision on a write with unknown outcome; `result` is the value to replay.

    A write that did not happen may run again; one that did is replayed. With a `tenant` a call of
    another one is unknown.
    """
    encoded = ("tagged", to_json(tagged(result))) if happened else None
    row = await store.write(
        lambda tx: doubt.resolve(
            tx,
            call_key,
            reviewer=reviewer,
            happened=happened,
            result=encoded,
            reason=reason,
            tenant=tenant,
        )
    )
    if isinstance(row, Refusal):
        raise AgentAdapterError(f"{row.reason}; nothing was changed")
    return row


async def erase(store: Store, run_id: str) -> int:
    """Delete the arguments and results of a run; its chain stays valid. How many were erased."""
    erased = await store.write(lambda tx: ledger.erase(tx, run_id))
    await large.sweep(store)
    return erased


def _heads(tx: Transaction, run_id: str | None) -> list[str]:
    if run_id is not None:
        return [run_id]
    heads = {row["run_id"]: row["seq"] for row in tx.select("chain_heads")}
    known = set(heads) | {row["run_id"] for row in tx.select("ledger", {"seq": 1})}
    if tx.count("ledger") != sum(seq or 0 for seq in heads.values()):
        # An entry too many or too few: only then is it worth reading all to find whose it is.
        known |= {row["run_id"] for row in tx.select("ledger")}
    return sorted(known)


def _check_of(
    run_id: str,
    totals: dict[str, int],
    problems: list[str],
    seen: Counter[str],
    since: list[float],
    anchor: Anchor | None,
) -> Any:
    def op(tx: Transaction) -> None:
        found = ChainCheck(tx, run_id)
        found.check(anchor)
        named = run_id.replace(CHANNEL, "channel ", 1) if run_id.startswith(CHANNEL) else run_id
        problems.extend(f"{named}: {problem}" for problem in found.problems)
        for name in totals:
            totals[name] += getattr(found, name)
        seen.update(found.seen)
        if found.trusted_from is not None:
            since.append(found.trusted_from)

    return op


def _was_pruned(anchor: Anchor, tombstone: Anchor | None) -> bool:
    """Whether the anchored entry was in a chain that was pruned, as its tombstone says."""
    if tombstone is None or anchor[0] > tombstone[0]:
        return False
    return anchor[0] < tombstone[0] or anchor[1] == tombstone[1]


def _of_the_file(store: Store) -> list[str]:
    """What the database's own check of its pages and indexes finds."""
    check = getattr(store, "integrity_problems", None)
    return [] if check is None else [f"the database file: {problem}" for problem in check()]


def _entry(row: Row) -> Entry:
    facts = json.loads(row["body"])
    known = {"v", "run", "seq", "at", "kind", "call", "rows"}
    return Entry(
        run_id=row["run_id"],
        seq=row["seq"],
        at=row["at"],
        kind=row["kind"],
        call_key=row["call_key"],
        facts={name: value for name, value in facts.items() if name not in known},
    )
