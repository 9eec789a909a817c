"""A store with some of everything, and every change that one statement can make to it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ApprovalPending, ToolError, ToolFailed
from agent_adapter.core.types import CachePolicy, RunLimits
from agent_adapter.exec import ledger, upkeep
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.approval.ports.quorum import QuorumApproval
from agent_adapter.exec.executor import Executor
from agent_adapter.network.hub import commands
from agent_adapter.store import access
from agent_adapter.store.base import Store
from tests.exec.shop import ARGS, Till, in_run, no_key
from tests.network._scene import FakeClock, TransitionGraph, scene

OTHER = {"order": "B2", "amount": 7}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One statement that changes a cell or deletes a row, and the row that takes it back."""

    table: str
    column: str | None
    sql: str
    values: tuple[Any, ...]
    row: dict[str, Any]

    def apply(self, connection: sqlite3.Connection) -> None:
        """Make the change."""
        connection.execute(self.sql, self.values)

    def undo(self, connection: sqlite3.Connection) -> None:
        """Put the row back, under its own rowid."""
        names = ", ".join(f'"{name}"' for name in self.row)
        marks = ", ".join("?" for _ in self.row)
        connection.execute(f"DELETE FROM {self.table} WHERE rowid = ?", (self.row["rowid"],))
        connection.execute(
            f"INSERT INTO {self.table} ({names}) VALUES ({marks})",
            tuple(self.row.values()),
        )


async def fill(store: Store) -> None:
    """Writes, reads, errors, labels, limits, records in every state, votes, switches, tokens.

    And a channel with a finished turn, a parked one with what it staged, a task and a command.
    """
    plain = Executor(store=store)
    for effects in ("write", "read", "idempotent"):
        await plain.run_spec(Till(effects=effects).spec, ARGS, _of("run_1"))
    for error in (ToolError("sold out"), ValueError("broken")):
        with contextlib.suppress(ToolError):
            await plain.run_spec(Till(error).spec, OTHER, _of("run_1"))
    await _limited(store)
    page = Till(
        "text",
        effects="read",
        trust="untrusted",
        cache=CachePolicy(scope="global"),
        cache_key=no_key,
    )
    await plain.run_spec(page.spec, ARGS, _of("run_1"))
    await _asked(store)
    await _talk(store)
    (doubt, *_) = await ledger.in_doubt(store)
    await ledger.resolve(store, doubt["call_key"], reviewer="ann", happened=True, result="paid")
    await plain.run_spec(Till().spec, ARGS, in_run("run_4"))
    await ledger.erase(store, "run_4")
    await upkeep.cancel_run(store, "run_4", by="ann", reason="enough")
    await upkeep.stop_writes(store, by="ann", reason="a fire")
    await store.write(lambda tx: access.create_token(tx, "kim", "admin", "aat_secret", by="os:me"))


def _of(run_id: str) -> ToolContext:
    return in_run(run_id, thread_id="th", principal="kim", tenant="acme")


async def _limited(store: Store) -> None:
    executor = Executor(store=store, limits=RunLimits(max_calls=9, max_cost=50))
    inner = Till(cost=2.0)
    outer = Till(lambda: executor.run_spec(inner.spec, OTHER, ToolContext()), effects="read")
    await executor.run_spec(outer.spec, ARGS, in_run("run_2"))
    hanging = Till(ValueError(), cost=1.5)
    with contextlib.suppress(ToolFailed):
        await executor.run_spec(hanging.spec, OTHER, in_run("run_2"))


async def _asked(store: Store) -> None:
    """One record in each state: pending, approved, denied, taken after edits, one with votes."""
    inbox = Inbox(store)
    spec = Till(confirm=True).spec
    asking = Executor(store=store, approval=DeferredApproval(store))
    ids = []
    for i in range(4):
        try:
            await asking.run_spec(spec, {"order": f"A{i}", "amount": i}, in_run("run_3"))
        except ApprovalPending as pending:
            ids.append(pending.id)
    await inbox.approve(ids[1], reviewer="ann", reason="fine")
    await inbox.deny(ids[2], reviewer="ann", reason="no")
    edited = {"order": "A3", "amount": 1}
    await inbox.approve(ids[3], reviewer="ann", arguments=edited)
    await asking.run_spec(spec, {"order": "A3", "amount": 3}, in_run("run_3"))
    council = Executor(store=store, approval=QuorumApproval(2, store=store))
    try:
        ctx = in_run("run_3", principal="kim")
        await council.run_spec(spec, {"order": "Q", "amount": 9}, ctx)
    except ApprovalPending as pending:
        await inbox.approve(pending.id, reviewer="ann", reason="one of two")


async def _talk(store: Store) -> None:
    """A channel whose second turn is parked and waits for a person, after it staged a change."""
    async with scene(store, clock=FakeClock(1_000_000.0)) as at:
        ana = await at.person("ana")

        async def bot(turn: Any) -> str:
            return "yes"

        await at.agent("bot", bot)
        graph = TransitionGraph.round_robin(at.names("ana", "bot"))
        channel = await at.open("ana", ["bot"], graph, context_vars={"n": 5})
        await channel.send("one")
        await at.hub.idle()
        await at.hub.detach(at.id("bot"))
        await channel.send("two")
        (turn,) = await at.hub.pending_turns_for(at.id("bot"))
        started = await at.hub.start_turn(turn.turn_id)
        assert started is not None
        await at.hub.stage(started.ref, "call_x", {"set": {"n": 6}})
        (record, *_) = await store.read(lambda tx: tx.select("approvals", {"state": "pending"}))
        await at.hub.park_turn(started.ref, [record["id"]])
        await at.hub.start_task("task_1", ana.agent_id, "sort it", channel.channel_id)
        await store.write(
            lambda tx: commands.queue(tx, "close", {"channel_id": channel.channel_id}, by="ana")
        )


def changes(connection: sqlite3.Connection, tables: list[str]) -> Iterator[Change]:
    """Every change of one cell, to another value and to nothing, and every deletion of a row."""
    connection.row_factory = sqlite3.Row
    for table in tables:
        for found in connection.execute(f"SELECT rowid AS rowid, * FROM {table}").fetchall():
            row = dict(found)
            at = row["rowid"]
            yield Change(
                table=table,
                column=None,
                sql=f"DELETE FROM {table} WHERE rowid = ?",
                values=(at,),
                row=row,
            )
            for column, value in row.items():
                if column == "rowid":
                    continue
                for other in _others(value):
                    yield Change(
                        table=table,
                        column=column,
                        sql=f'UPDATE {table} SET "{column}" = ? WHERE rowid = ?',
                        values=(other, at),
                        row=row,
                    )


def _others(value: Any) -> list[Any]:
    if value is None:
        return ["1"]
    if isinstance(value, str):
        return [value + "x", None]
    if isinstance(value, bytes):
        return [value[:-1] + bytes([value[-1] ^ 1]), None] if value else [b"x"]
    return [value + 1, None]
