"""What a record's own state and binding refuse, whatever the steps before have checked."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.store import approvals
from agent_adapter.store.approvals import Take
from agent_adapter.store.base import Store
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

registry = aa.ToolRegistry()


@registry.tool(confirm=True)
async def refund(order: str) -> str:
    """Pay back."""
    return order


async def held(store: Store, principal: str) -> str:
    """The record of a refund that waits for a person."""
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    with pytest.raises(aa.ApprovalPending) as caught:
        ctx = aa.ToolContext(run_id="run", principal=principal)
        await executor.run("refund", {"order": "A1"}, ctx=ctx)
    return caught.value.id


async def use_of(store: Store, id: str) -> Take:
    """The use that the record was approved for."""
    row: Any = await store.read(lambda tx: approvals.get(tx, id))
    bound = ("tenant", "call_key", "principal", "fingerprint", "digest")
    return Take(record_id=id, **{name: row[name] for name in bound})


async def take(store: Store, use: Take) -> str:
    """Take it in a step of its own; `""`, or the state that refuses."""
    refusal = await store.write(lambda tx: approvals.take(tx, use))
    return "" if refusal is None else refusal.state or "refused"


async def test_a4_an_approved_record_is_taken_once() -> None:
    """A4: Not before the yes, then once, then never again."""
    store = MemoryStore()
    id = await held(store, "bo")
    use = await use_of(store, id)
    assert await take(store, use) == "pending"
    await aa.Inbox(store).approve(id, reviewer="ann")
    assert await take(store, use) == ""
    assert await take(store, use) == "taken"


@pytest.mark.parametrize("field", ["call_key", "principal", "fingerprint", "digest", "tenant"])
async def test_a_record_is_taken_for_its_own_call_only(field: str) -> None:
    """Whatever differs refuses, and leaves the record to be used."""
    store = MemoryStore()
    id = await held(store, "bo")
    await aa.Inbox(store).approve(id, reviewer="ann")
    use = await use_of(store, id)
    assert await take(store, dataclasses.replace(use, **{field: "another"})) == "refused"
    assert await take(store, use) == ""


async def test_a_denial_holds_for_whoever_makes_the_call_next() -> None:
    """The same tool and arguments in the same run are denied, also on behalf of another person."""
    store = MemoryStore()
    await aa.Inbox(store).deny(await held(store, "bo"), reviewer="ann", reason="no")
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    ctx = aa.ToolContext(run_id="run", principal="cy")
    with pytest.raises(aa.ApprovalDenied, match="denied by ann: no"):
        await executor.run("refund", {"order": "A1"}, ctx=ctx)
    assert await aa.Inbox(store).list() == []
