"""What is written after somebody changed the ledger does not make it look whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_adapter.core.context import ToolContext
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.exec import ledger
from agent_adapter.exec.executor import Executor
from agent_adapter.store.base import Transaction
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

Change = Callable[[Transaction], object]


def cut_the_tail(tx: Transaction) -> None:
    """Remove the newest entry and put the head back by one."""
    tx.delete("ledger", {"run_id": "r", "seq": 2})
    (first,) = tx.select("ledger", {"run_id": "r"})
    tx.update("chain_heads", {"run_id": "r"}, {"seq": 1, "hash": first["hash"]})


def lose_the_head(tx: Transaction) -> None:
    """Remove the head and leave the entries."""
    tx.delete("chain_heads", {"run_id": "r"})


def forge_the_head(tx: Transaction) -> None:
    """Write a head without the key."""
    tx.update("chain_heads", {"run_id": "r"}, {"mac": b"\x00" * 32})


@pytest.mark.parametrize("change", [cut_the_tail, lose_the_head, forge_the_head])
async def test_a28_a_changed_chain_is_never_sealed_again(change: Change) -> None:
    """A28: Writes after the change are all recorded, and the report still names the change."""
    registry = ToolRegistry()

    @registry.tool
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    executor = Executor(registry, store=MemoryStore())
    await executor.run("pay", {"amount": 1}, ctx=ToolContext("a", "r"))
    await executor.store.write(change)
    before = len(await ledger.entries(executor.store, "r"))
    await executor.run("pay", {"amount": 2}, ctx=ToolContext("b", "r"))
    assert len(await ledger.entries(executor.store, "r")) == before + 2
    report = await ledger.verify(executor.store, "r")
    assert any("head" in problem for problem in report.problems)
