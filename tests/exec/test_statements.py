"""The statements of a durable call are what it costs: they are counted, and may only go down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_adapter import Executor, ToolContext, ToolRegistry, open_store
from agent_adapter.core.errors import ApprovalDenied
from agent_adapter.exec import ledger, upkeep
from tests.exec.costs import Counter

pytestmark = pytest.mark.anyio

TRANSACTION = 3
"""BEGIN, the look for other processes' changes, and COMMIT; a call makes two transactions."""

FIRST_OF_A_RUN = 10
LATER = 9


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncIterator[Executor]:
    """An executor on a SQLite file, warm."""
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    registry = ToolRegistry()

    @registry.tool(effects="write")
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    executor = Executor(registry, store=store)
    await pay_in(executor, "warm")
    yield executor
    await store.aclose()


async def pay_in(executor: Executor, run_id: str, amount: int = 1) -> Any:
    """A write in a run."""
    return await executor.run("pay", {"amount": amount}, ctx=ToolContext(run_id=run_id))


async def counted(executor: Executor, run_id: str) -> int:
    """The statements of one write."""
    with Counter(executor.store) as counter:
        await pay_in(executor, run_id)
        return counter.statements


async def test_a_durable_call_takes_few_statements(executor: Executor) -> None:
    """Neither what is stopped nor what is unfinished is asked again for every call."""
    assert await counted(executor, "r") <= 2 * TRANSACTION + FIRST_OF_A_RUN
    assert await counted(executor, "r") <= 2 * TRANSACTION + LATER


async def test_what_is_stopped_is_known_at_once(executor: Executor) -> None:
    """What is remembered is forgotten when it changes: in this process, and by another one."""
    store, other = executor.store, open_store(executor.store.url)
    for each, run in ((store, "first"), (other, "second")):
        await upkeep.stop_writes(each, by="kim")
        with pytest.raises(ApprovalDenied, match="all writes are stopped"):
            await pay_in(executor, "r")
        await upkeep.allow_writes(each, by="kim")
        assert await pay_in(executor, "r") == 1
        await pay_in(executor, run, 2)
        await upkeep.cancel_run(each, run, by="kim")
        with pytest.raises(ApprovalDenied, match="the run was cancelled"):
            await pay_in(executor, run, 3)
        assert await pay_in(executor, "r", 4) == 4
    await other.aclose()


@pytest.mark.parametrize("name", ["unclear", "suspended", "halts", "#events"])
async def test_a_run_may_have_any_name(executor: Executor, name: str) -> None:
    """No name of a run is taken for something that the store remembers."""
    assert await pay_in(executor, name) == 1
    assert await pay_in(executor, name) == 1
    assert (await ledger.verify(executor.store, name)).ok
