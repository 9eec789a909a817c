"""One execution for identical reads, and whose it is."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agent_adapter.core.errors import ToolArgsInvalid, ToolFailed
from agent_adapter.core.types import CachePolicy, RunLimits
from agent_adapter.exec.executor import Executor
from tests.exec.shop import ARGS, Till, in_run, is_whole, no_key, rows, turns, until

pytestmark = pytest.mark.anyio


def reading(then: Any = "found", scope: Any = "global", **policy: Any) -> Till:
    """A cached read tool."""
    return Till(
        then, effects="read", cache=CachePolicy(ttl=60, scope=scope), cache_key=no_key, **policy
    )


async def test_a_second_read_is_answered_from_the_cache(store: Any) -> None:
    """With a ledger row of its own, and nothing run."""
    till, executor = reading(), Executor(store=store)
    for run in "ab":
        assert await executor.run_spec(till.spec, ARGS, in_run(run)) == "found"
    assert len(till.ran) == 1 and len(await rows(store)) == 2 and await is_whole(store)


async def test_an_old_result_is_not_reused(store: Any, clock: Any) -> None:
    """After its time the tool runs again."""
    till, executor = reading(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS)
    clock.pass_(61)
    await executor.run_spec(till.spec, ARGS)
    assert len(till.ran) == 2


@pytest.mark.parametrize(
    "known",
    [
        {"tenant": "theirs", "principal": "bob"},
        {"tenant": "ours", "principal": "eve"},
        {"tenant": "a", "principal": "b"},
    ],
)
async def test_a31_nobody_gets_anothers_result(store: Any, known: Any) -> None:
    """A31: Tenant and principal are in the key, never joined text."""
    till, executor = reading(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS, in_run(tenant="ours", principal="bob"))
    await executor.run_spec(till.spec, ARGS, in_run(**known))
    await executor.run_spec(till.spec, ARGS, in_run(tenant="ab", principal=""))
    assert len(till.ran) == 3


async def test_a31_another_version_has_another_result(store: Any) -> None:
    """A31: The fingerprint is in the key."""
    till, executor = reading(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS)
    await executor.run_spec(till.spec.replace(version="2"), ARGS)
    assert len(till.ran) == 2


@pytest.mark.parametrize(("scope", "runs"), [("run", 3), ("thread", 2), ("global", 1)])
async def test_the_scope_says_how_far_a_result_goes(store: Any, scope: str, runs: int) -> None:
    """A run, a thread, or everywhere."""
    till, executor = reading(scope=scope), Executor(store=store)
    for run, thread in (("a", "t"), ("b", "t"), ("c", "u")):
        for _ in range(2):
            await executor.run_spec(till.spec, ARGS, in_run(run, thread_id=thread))
    assert len(till.ran) == runs


async def test_types_are_told_apart(store: Any) -> None:
    """What validation refuses is refused with a full cache, too."""
    till, executor = reading(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS)
    with pytest.raises(ToolArgsInvalid):
        await executor.run_spec(till.spec, {"order": "A1", "amount": "5"})


async def test_identical_calls_in_flight_share_one_execution(store: Any) -> None:
    """Each with its own row."""
    gate = asyncio.Event()
    till, executor = reading(gate.wait), Executor(store=store)
    tasks = [asyncio.create_task(executor.run_spec(till.spec, ARGS)) for _ in range(4)]
    await until(lambda: len(till.ran) == 1)
    gate.set()
    assert await asyncio.gather(*tasks) == [True] * 4
    assert len(till.ran) == 1 and len(await rows(store)) == 4


async def test_everybody_has_a_copy(store: Any) -> None:
    """Changing one changes no other."""
    till, executor = reading(lambda: {"items": [1]}), Executor(store=store)
    first = await executor.run_spec(till.spec, ARGS)
    first["items"].append(2)
    assert await executor.run_spec(till.spec, ARGS) == {"items": [1]}


async def test_a_failure_is_not_shared(store: Any) -> None:
    """Who waited for it tries for itself."""
    gate = asyncio.Event()
    till, executor = reading(), Executor(store=store)

    async def once() -> str:
        if len(till.ran) > 1:
            return "found"
        await gate.wait()
        raise ValueError

    till.then = once
    tasks = [asyncio.create_task(executor.run_spec(till.spec, ARGS)) for _ in range(3)]
    await until(lambda: len(till.ran) == 1)
    await turns(10)
    gate.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [one for one in found if isinstance(one, ToolFailed)]
    assert len(failed) == 1 and found.count("found") == 2 and len(till.ran) == 2


async def test_a_failure_is_not_kept(store: Any) -> None:
    """The next call runs."""
    till, executor = reading(ValueError()), Executor(store=store)
    with pytest.raises(ToolFailed):
        await executor.run_spec(till.spec, ARGS)
    till.then = "found"
    assert await executor.run_spec(till.spec, ARGS) == "found"


async def test_a_leader_that_leaves_hurts_nobody(store: Any) -> None:
    """The execution goes on for the others."""
    gate = asyncio.Event()
    till, executor = reading(gate.wait), Executor(store=store)
    first = asyncio.create_task(executor.run_spec(till.spec, ARGS))
    await until(lambda: len(till.ran) == 1)
    second = asyncio.create_task(executor.run_spec(till.spec, ARGS))
    await turns(10)
    first.cancel()
    await turns()
    gate.set()
    assert await second is True and len(till.ran) == 1


async def test_a_value_that_cannot_be_copied_is_not_shared(store: Any) -> None:
    """Every caller gets an object of the tool's, never its class name."""
    till, executor = reading(object), Executor(store=store)
    first = await executor.run_spec(till.spec, ARGS)
    second = await executor.run_spec(till.spec, ARGS)
    assert type(first) is type(second) is object and first is not second


def test_loops_in_different_threads_do_not_share_flights() -> None:
    """Each flies for itself; nobody waits for a future of another loop."""
    from agent_adapter.store import MemoryStore

    till, executor = reading(lambda: asyncio.sleep(0.05, "found")), Executor(store=MemoryStore())
    found: list[Any] = []

    def run() -> None:
        found.append(asyncio.run(executor.run_spec(till.spec, ARGS)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["found"] * 4


async def test_a_cached_answer_is_free(store: Any) -> None:
    """Only the execution counts against the limits."""
    till = reading()
    executor = Executor(store=store, limits=RunLimits(max_calls=2))
    for _ in range(2):
        await executor.run_spec(till.spec, ARGS, in_run())
    await executor.run_spec(Till(effects="read").spec, ARGS, in_run())
