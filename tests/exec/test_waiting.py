"""Who waits where: threads, time-outs, and questions of several event loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import ApprovalDenied, ToolTimeout
from agent_adapter.core.events import LateOutcome
from agent_adapter.exec import ledger, run, sync, timing
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.threads import SIZE, WorkerPool
from tests.exec.shop import ARGS, YES, Till, in_run, kinds, rows, until

pytestmark = pytest.mark.anyio

PARALLEL = SIZE + 1


@pytest.fixture
def executor(memory: Any, monkeypatch: pytest.MonkeyPatch) -> Executor:
    """The default executor of `aa.call`, over a memory store."""
    made = Executor(store=memory)
    monkeypatch.setattr(sync, "runner_for", lambda _: made)
    return made


async def together(make: Callable[[int], Coroutine[Any, Any, Any]], count: int) -> list[Any]:
    """What so many coroutines give, within a minute."""
    async with asyncio.timeout(60):
        return await asyncio.gather(*(make(number) for number in range(count)))


def nest(depth: int, all_in: threading.Barrier | None = None) -> aa.ToolSpec:
    """A sync tool that calls another one, and so on; the outermost wait for each other first."""
    inner = nest(depth - 1) if depth > 1 else None

    def call(n: int) -> int:
        """Count the tools below."""
        if all_in is not None:
            all_in.wait(30)
        return 1 + aa.call(inner, n=n) if inner is not None else 1

    return aa.ToolSpec.from_function(call, name=f"level{depth}", effects="read")


@pytest.mark.parametrize("depth", [2, 3])
async def test_i15_sync_tools_that_call_sync_tools_end(executor: Executor, depth: int) -> None:
    """I15: where every thread is held by a caller, its own calls run in its slot."""
    tool = nest(depth, threading.Barrier(SIZE))
    found = await together(lambda n: executor.run_spec(tool, {"n": n}), 2 * SIZE)
    assert found == [depth] * 2 * SIZE


async def test_i15_calls_that_one_tool_makes_at_once_end(executor: Executor) -> None:
    """I15: also where each caller makes several calls at the same time."""
    leaf = nest(1)
    all_in = threading.Barrier(SIZE)

    def fan(n: int) -> int:
        """Call three tools at once."""
        all_in.wait(30)
        return sum(asyncio.run(together(lambda i: aa.acall(leaf, n=i), 3)))

    outer = aa.ToolSpec.from_function(fan, effects="read")
    found = await together(lambda n: executor.run_spec(outer, {"n": n}), SIZE)
    assert found == [3] * SIZE


async def test_i15_reviewers_that_wait_hold_up_no_tool_and_no_hook(memory: Any) -> None:
    """I15: 32 people think; another user's read, with its rule and its guard, ends."""
    answered, asked = threading.Event(), threading.Semaphore(0)

    def reviewer(request: Any) -> bool:
        asked.release()
        return answered.wait(60)

    class Guard:
        def after(self, call: Any, result: Any) -> Any:
            return result

    port = aa.CallbackApproval(reviewer)
    executor = Executor(store=memory, approval=port, hooks=[Guard()])
    asking = Till(confirm=True)
    waiting = [
        asyncio.create_task(executor.run_spec(asking.spec, ARGS, in_run(f"r{n}")))
        for n in range(PARALLEL)
    ]
    for _ in range(SIZE):
        assert await asyncio.to_thread(asked.acquire, timeout=30)

    def look(n: int) -> int:
        """Look."""
        return n

    spec = aa.ToolSpec.from_function(look, effects="read", confirm=lambda args, ctx: False)
    async with asyncio.timeout(30):
        assert await executor.run_spec(spec, {"n": 1}) == 1
        answered.set()
        assert await asyncio.gather(*waiting) == ["charged"] * PARALLEL


async def test_a_hanging_call_in_a_slot_holds_up_no_later_one(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller goes on to the next call after its time-out, in a full pool, too."""
    monkeypatch.setattr(run, "pool", pool := WorkerPool(2))
    gate, leaf, all_in = threading.Event(), nest(1), threading.Barrier(2)

    def hang() -> None:
        """Hang."""
        gate.wait(60)

    hanging = aa.ToolSpec.from_function(hang, effects="read", timeout=0.05)

    def outer(first: bool) -> int:
        """Call one that hangs, or wait for who does."""
        all_in.wait(30)
        if first:
            with pytest.raises(ToolTimeout):
                aa.call(hanging)
            monkeypatch.setattr(pool, "lost", 0)  # two threads are half of none
        try:
            return int(aa.call(leaf, n=1))
        finally:
            all_in.wait(30)

    tool = aa.ToolSpec.from_function(outer, effects="read")
    found = await together(lambda n: executor.run_spec(tool, {"first": n == 0}), 2)
    gate.set()
    assert found == [1, 1]


# -- time-outs -----------------------------------------------------------------------------------


async def test_a_time_out_ends_a_call_that_swallows_its_cancellation(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller goes on; how the tool ended is evidence in the ledger, and an event."""
    monkeypatch.setattr(timing, "GRACE_SECONDS", 0.01)
    gate = asyncio.Event()
    told: list[LateOutcome] = []

    def tell(event: Any) -> None:
        if isinstance(event, LateOutcome):
            told.append(event)

    async def stubborn() -> str:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    executor, till = Executor(store=store), Till(stubborn, timeout=0.05)
    executor.subscribe(tell)
    with pytest.raises(ToolTimeout):
        await executor.run_spec(till.spec, ARGS, in_run())
    assert [row["ending"] for row in await ledger.in_doubt(store)] == ["unknown"]
    gate.set()
    await until(lambda: bool(told))
    assert told[0].ending == "ok" and await kinds(store) == ["intent", "outcome", "late-outcome"]
    assert [row["ending"] for row in await rows(store)] == ["unknown"]


async def test_a_value_after_the_time_is_up_is_late(store: Any) -> None:
    """A tool that answers its cancellation with a value has still timed out."""

    async def late() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "never"

    with pytest.raises(ToolTimeout):
        await Executor(store=store).run_spec(Till(late, timeout=0.05).spec, ARGS, in_run())
    assert "late-outcome" in await kinds(store)


async def test_a_stubborn_hook_rule_or_reviewer_holds_up_no_call(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ends in its time: the guard blocks, the rule asks, the reviewer denies."""
    monkeypatch.setattr(timing, "GRACE_SECONDS", 0.01)
    monkeypatch.setattr("agent_adapter.exec.hooks.HOOK_SECONDS", 0.02)
    monkeypatch.setattr("agent_adapter.exec.approval.confirm.CONFIRM_SECONDS", 0.02)
    gate = asyncio.Event()

    async def stubborn(*given: Any) -> bool:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return False

    class Guard:
        before = staticmethod(stubborn)

    port = aa.CallbackApproval(stubborn, timeout=0.02)
    async with asyncio.timeout(30):
        with pytest.raises(aa.GuardrailBlocked, match="in time"):
            await Executor(store=memory, hooks=[Guard()]).run_spec(Till().spec, ARGS)
        with pytest.raises(ApprovalDenied, match="in time"):
            asking = Till(confirm=stubborn)
            await Executor(store=memory, approval=port).run_spec(asking.spec, ARGS)
    gate.set()


@pytest.mark.parametrize("sync_outer", [False, True])
async def test_a_time_out_stands_still_while_an_inner_call_waits_for_a_person(
    memory: Any, monkeypatch: pytest.MonkeyPatch, sync_outer: bool
) -> None:
    """The person answers after the outer's time; it then has what was left of it."""
    contexts: list[ToolContext] = []

    async def reviewer(request: Any) -> Any:
        deadline = contexts[0].deadline
        assert deadline is not None
        while asyncio.get_running_loop().time() < deadline + 0.05:
            await asyncio.sleep(0.01)
        return YES

    executor = Executor(store=memory, approval=aa.CallbackApproval(reviewer))
    monkeypatch.setattr(sync, "runner_for", lambda _: executor)
    inner = Till(confirm=True)

    async def in_async(ctx: ToolContext) -> Any:
        """Charge, in async code."""
        contexts.append(ctx)
        return await executor.run_spec(inner.spec, ARGS)

    def in_sync(ctx: ToolContext) -> Any:
        """Charge, in sync code."""
        contexts.append(ctx)
        return aa.call(inner.spec, **ARGS)

    outer = aa.ToolSpec.from_function(in_sync if sync_outer else in_async, timeout=0.3)
    assert await executor.run_spec(outer, {}) == "charged"
    deadline = contexts[0].deadline
    assert deadline is not None and deadline > asyncio.get_running_loop().time()


async def test_what_an_async_hook_sets_is_set_for_the_tool(memory: Any) -> None:
    """Its context variables are those of the call."""
    import contextvars

    seen: list[Any] = []
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")

    class Names:
        async def before(self, call: Any) -> None:
            user.set("ann")

    till = Till(lambda: seen.append(user.get()))
    await Executor(store=memory, hooks=[Names()]).run_spec(till.spec, ARGS)
    assert seen == ["ann"]


# -- questions of several event loops ------------------------------------------------------------


async def test_a_question_of_several_event_loops_is_answered_in_each(memory: Any) -> None:
    """Equal calls of two loops ask once, and both hear the answer."""
    asked: list[Any] = []
    gate = threading.Event()

    def reviewer(request: Any) -> bool:
        asked.append(request)
        gate.wait(30)
        return False

    executor = Executor(store=memory, approval=aa.CallbackApproval(reviewer))
    till = Till(confirm=True)

    def call(_: int) -> str:
        context = in_run(call_id="c", thread_id="t")
        with pytest.raises(ApprovalDenied):
            asyncio.run(executor.run_spec(till.spec, ARGS, context))
        return "denied"

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(call, n) for n in range(2)]
        await until(lambda: len(asked) == 1)
        gate.set()
        async with asyncio.timeout(30):
            found = [await asyncio.wrap_future(each) for each in both]
    assert found == ["denied", "denied"] and executor.runtime.asking == {}


async def test_a_question_whose_event_loop_ends_is_asked_again(memory: Any) -> None:
    """A caller in another loop is not left waiting."""
    asked: list[Any] = []
    gate = threading.Event()

    async def reviewer(request: Any) -> bool:
        asked.append(request)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return True

    executor = Executor(store=memory, approval=aa.CallbackApproval(reviewer))
    till = Till(confirm=True)

    async def first() -> None:
        calling = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(call_id="c")))
        await asyncio.to_thread(gate.wait, 30)
        calling.cancel()

    leaving = asyncio.create_task(asyncio.to_thread(asyncio.run, first()))
    await until(lambda: bool(asked))
    second = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(call_id="c")))
    await asyncio.sleep(0)
    gate.set()
    async with asyncio.timeout(30):
        await leaving
        assert await second == "charged"
    assert len(asked) == 2
