"""`max_seconds` counts the tool's and the model's time, never a person's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.exec.executor import Executor
from tests.exec.shop import FakeClock, in_run, is_whole

pytestmark = pytest.mark.anyio


class Desk:
    """A run with `max_seconds=1`: a free tool, and one that asks."""

    def __init__(self, store: Any, approval: Any) -> None:
        self.done: list[str] = []
        registry = aa.ToolRegistry()
        self.executor = Executor(
            registry, store=store, approval=approval, limits=aa.RunLimits(max_seconds=1)
        )

        @registry.tool
        async def free(n: str) -> str:
            """Needs nobody."""
            self.done.append(n)
            return n

        @registry.tool(confirm=True)
        async def asked(n: str) -> str:
            """Needs a person."""
            self.done.append(n)
            return n

    async def run(self, tool: str, n: str) -> Any:
        """Make the call."""
        return await self.executor.run(tool, {"n": n}, ctx=in_run())


def slow(clock: FakeClock, answer: bool = True) -> aa.CallbackApproval:
    """A person who takes 1.2 seconds."""

    async def reviewer(request: aa.ApprovalRequest) -> bool:
        clock.pass_(1.2)
        return answer

    return aa.CallbackApproval(reviewer)


@pytest.mark.parametrize("answer", [True, False])
async def test_i11_a_slow_person_uses_no_seconds(store: Any, clock: Any, answer: bool) -> None:
    """I11: an answer after 1.2 s under `max_seconds=1`: the call runs, and so does the next."""
    desk = Desk(store, slow(clock, answer))
    await desk.run("free", "a")
    clock.pass_(0.5)
    if answer:
        await desk.run("asked", "b")
    else:
        with pytest.raises(aa.ApprovalDenied):
            await desk.run("asked", "b")
    await desk.run("free", "c")
    clock.pass_(0.6)
    with pytest.raises(aa.RunLimitExceeded, match="max_seconds"):
        await desk.run("free", "d")
    assert desk.done == (["a", "b", "c"] if answer else ["a", "c"])
    assert await is_whole(store)


@pytest.mark.parametrize("way", ["again", "resume"])
async def test_i11_a_record_s_time_is_the_person_s(store: Any, clock: Any, way: str) -> None:
    """From the question to the use of its answer nobody works, in hours and over processes."""
    desk, inbox = Desk(store, aa.DeferredApproval(store)), aa.Inbox(store)
    await desk.run("free", "a")
    with pytest.raises(aa.ApprovalPending) as held:
        await desk.run("asked", "b")
    clock.pass_(3600)
    await inbox.approve(held.value.id, reviewer="ann")
    clock.pass_(3600)
    if way == "again":
        await desk.run("asked", "b")
    else:
        await desk.executor.resume(held.value.id)
    await desk.run("free", "c")
    clock.pass_(1.1)
    with pytest.raises(aa.RunLimitExceeded):
        await desk.run("free", "d")
    assert desk.done == ["a", "b", "c"]


async def test_a_question_of_before_the_first_call_gives_no_seconds(
    memory: Any, clock: Any
) -> None:
    """The run's time begins with its first call; what was waited before is not taken off."""
    desk, inbox = Desk(memory, aa.DeferredApproval(memory)), aa.Inbox(memory)
    with pytest.raises(aa.ApprovalPending) as held:
        await desk.run("asked", "a")
    clock.pass_(3600)
    await inbox.approve(held.value.id, reviewer="ann")
    await desk.run("asked", "a")
    clock.pass_(1.1)
    with pytest.raises(aa.RunLimitExceeded):
        await desk.run("free", "b")


async def test_an_open_question_stops_no_clock(memory: Any, clock: Any) -> None:
    """What a run does beside a question that nobody has answered is its own time."""
    desk = Desk(memory, aa.DeferredApproval(memory))
    await desk.run("free", "a")
    with pytest.raises(aa.ApprovalPending):
        await desk.run("asked", "b")
    clock.pass_(1.1)
    with pytest.raises(aa.RunLimitExceeded):
        await desk.run("free", "c")


async def test_questions_at_the_same_time_count_once(memory: Any, clock: Any) -> None:
    """Two answers that both took a second give the run one second, not two."""
    both = asyncio.Event()
    waiting: list[str] = []

    async def reviewer(request: aa.ApprovalRequest) -> bool:
        waiting.append(request.tool)
        if len(waiting) == 2:
            clock.pass_(1.0)
            both.set()
        await both.wait()
        return True

    desk = Desk(memory, aa.CallbackApproval(reviewer))
    await desk.run("free", "a")
    await asyncio.gather(desk.run("asked", "b"), desk.run("asked", "c"))
    clock.pass_(1.1)
    with pytest.raises(aa.RunLimitExceeded):
        await desk.run("free", "d")
