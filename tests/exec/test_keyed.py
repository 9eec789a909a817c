"""`Executor.run(call_id=…)` with an explicit run: an idempotency key."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec.executor import Executor
from agent_adapter.store.sqlite import SqliteStore
from tests.exec.shop import is_whole

pytestmark = pytest.mark.anyio

R17 = "r17"


class Bank:
    """Tools of every kind of effects that count what they did."""

    def __init__(self, store: Any, **options: Any) -> None:
        self.done: list[Any] = []
        registry = aa.ToolRegistry()
        self.executor = executor = Executor(registry, store=store, **options)

        def add(name: str, **policy: Any) -> None:
            def tool(to: str, amount: int = 5) -> str:
                """Does it."""
                self.done.append((name, to, amount))
                return f"{name} {to} {amount} ({len(self.done)})"

            registry.tool(name=name, **policy)(tool)

        for effects in ("write", "idempotent", "read"):
            add(effects, effects=effects)
        add("asked", confirm=True)

        @registry.tool
        async def outer(to: str) -> str:
            """Writes twice from inside, under one native id."""
            for _ in range(2):
                await executor.run("write", {"to": to}, call_id="c1")
            return "done"

    async def run(
        self, name: str = "write", to: str = "bob", call_id: str | None = "c1", **known: Any
    ) -> Any:
        """Make the call in run r17."""
        ctx = aa.ToolContext(run_id=known.pop("run", R17), **known)
        return await self.executor.run(name, {"to": to}, ctx=ctx, call_id=call_id)


@pytest.mark.parametrize("name", ["write", "idempotent", "read"])
async def test_i9_the_same_key_gives_the_recorded_outcome(store: Any, name: str) -> None:
    """I9: the same tool and arguments under one `call_id` of one run: one effect."""
    bank = Bank(store)
    first = await bank.run(name)
    assert await bank.run(name) == first
    assert len(bank.done) == 1 and await is_whole(store)


@pytest.mark.parametrize("named_by", ["context", "scope"])
async def test_i9_in_two_processes(tmp_path: Path, named_by: str) -> None:
    """I9: the second process gets the first one's outcome, whoever names the run."""
    found, done = [], []
    for _ in range(2):
        store = SqliteStore(tmp_path / "state.db")
        bank = Bank(store)
        if named_by == "context":
            found.append(await bank.run())
        else:
            async with bank.executor.run_scope(R17):
                found.append(await bank.executor.run("write", {"to": "bob"}, call_id="c1"))
        await store.aclose()
        done += bank.done
    assert found[0] == found[1] and len(done) == 1


@pytest.mark.parametrize(
    ("first", "name", "to"),
    [
        ("write", "write", "eve"),
        ("write", "idempotent", "bob"),
        ("write", "read", "eve"),
        ("read", "read", "eve"),
        ("read", "write", "bob"),
        ("idempotent", "write", "bob"),
    ],
)
async def test_i9_another_call_under_the_key_is_refused(
    store: Any, first: str, name: str, to: str
) -> None:
    """I9: other arguments or another tool are a `CallConflict`, and nothing runs."""
    bank = Bank(store)
    await bank.run(first)
    with pytest.raises(aa.CallConflict, match=r"'c1' names .* in run 'r17' already") as refused:
        await bank.run(name, to)
    assert refused.value.kind == "call-conflict" and len(bank.done) == 1
    assert await is_whole(store)


async def test_a_key_is_good_for_its_run_and_tenant_alone(memory: Any) -> None:
    """Another run, another tenant and another key are other calls."""
    bank = Bank(memory)
    await bank.run()
    await bank.run(to="eve", run="r18")
    await bank.run(to="eve", tenant="acme")
    await bank.run(to="eve", call_id="c2")
    await bank.run()
    assert len(bank.done) == 4


async def test_a_key_names_a_question_too(memory: Any) -> None:
    """While a call waits for a person its key is taken; approved, it runs once."""
    bank = Bank(memory, approval=aa.DeferredApproval(memory))
    with pytest.raises(aa.ApprovalPending) as held:
        await bank.run("asked")
    with pytest.raises(aa.CallConflict):
        await bank.run("asked", "eve")
    await aa.Inbox(memory).approve(held.value.id, reviewer="ann")
    assert await bank.run("asked") == await bank.run("asked")
    assert len(bank.done) == 1


async def test_two_calls_at_once_under_one_key_run_once(memory: Any) -> None:
    """The second waits for the first one's outcome."""
    bank = Bank(memory)
    first, second = await asyncio.gather(bank.run(), bank.run())
    assert first == second and len(bank.done) == 1


async def test_a_doubt_under_a_key_is_not_repeated(memory: Any) -> None:
    """A write of that key with unknown outcome is in doubt, as any other."""
    bank = Bank(memory)
    registry = bank.executor.registry
    assert registry is not None

    @registry.tool
    def lose(to: str) -> str:
        """Loses its answer."""
        bank.done.append(to)
        raise OSError

    with pytest.raises(aa.ToolFailed):
        await bank.run("lose")
    with pytest.raises(aa.ToolInDoubt):
        await bank.run("lose")
    assert len(bank.done) == 1


@pytest.mark.parametrize("run", [None, R17])
async def test_elsewhere_a_call_id_is_a_native_name(memory: Any, run: str | None) -> None:
    """Without a run, for `run_spec`, and inside a tool equal ids are calls of their own."""
    bank = Bank(memory)
    spec = bank.executor._named("write")
    for _ in range(2):
        if run is None:
            await bank.run(run=None)
        else:
            ctx = aa.ToolContext(run_id=run)
            await bank.executor.run_spec(spec, {"to": "bob"}, ctx, call_id="c1")
    await bank.run("outer", call_id=None)
    assert len(bank.done) == 4
