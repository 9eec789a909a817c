"""Calls of which only validation, the function and the record are left."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any
from weakref import ref

import pytest

from agent_adapter import (
    AgentAdapterError,
    Executor,
    RunLimits,
    ToolArgsInvalid,
    ToolContext,
    ToolError,
    ToolFailed,
    ToolSpec,
)
from agent_adapter.core.types import CachePolicy, RetryPolicy
from agent_adapter.exec import ledger
from agent_adapter.exec.runtime import Plan
from agent_adapter.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

FRAMES = 25
"""The most frames of the package that a bare read enters before its caller has the value."""

OTHER_POLICY: dict[str, Any] = {
    "effects": "idempotent",
    "trust": "untrusted",
    "confirm": True,
    "timeout": 5,
    "retries": RetryPolicy(attempts=2),
    "cache": CachePolicy(scope="run", ttl=60),
    "cost": 1.0,
    "once_key": lambda args: "once",
    "json_text": True,
    "source": True,
}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    if a == b:
        raise ToolError("equal")
    return a // (b - 7)


def read(**policy: Any) -> ToolSpec:
    """The tool as a read with this policy."""
    return ToolSpec.from_function(add, **{"effects": "read", **policy})


class _Guard:
    def after(self, call: Any, result: Any) -> Any:
        return result


def test_a_read_of_scalars_is_direct() -> None:
    """Names, tags and a version change nothing about that."""
    assert Plan(read(), (), None).direct
    assert Plan(read(tags=("x",), version="2", egress=True), (), None).direct


@pytest.mark.parametrize("option", OTHER_POLICY)
def test_any_policy_takes_the_whole_pipeline(option: str) -> None:
    """No step that has work is left out."""
    assert not Plan(read(**{option: OTHER_POLICY[option]}), (), None).direct


def test_hooks_limits_and_contexts_take_the_whole_pipeline() -> None:
    """Neither guards nor limits are passed by, and a tool that sees its context keeps it."""

    async def seeing(a: int, ctx: ToolContext) -> int:
        """Sees."""
        return a

    assert not Plan(read(), (_Guard(),), None).direct
    assert not Plan(read(), (), RunLimits(max_calls=3)).direct
    assert not Plan(ToolSpec.from_function(seeing, effects="read"), (), None).direct


@pytest.mark.parametrize(
    "arguments", [{"a": 20, "b": 9}, {"a": 1, "b": 1}, {"a": 1, "b": 7}, {"a": "1"}]
)
async def test_a_bare_call_is_recorded_as_any_other(arguments: dict[str, Any]) -> None:
    """A subscriber makes it take every step: value, error and entry are the same."""
    spec, told = read(), []
    for watched in (False, True):
        executor = Executor(store=MemoryStore())
        if watched:
            executor.subscribe(lambda event: None)
        ctx = ToolContext("call_1", "run_1", principal="ann")
        end: Any
        try:
            end = await executor.run_spec(spec, arguments, ctx)
        except (ToolError, ToolFailed, ToolArgsInvalid) as exc:
            end = (type(exc), str(exc), type(exc.__cause__))
        entries = await ledger.entries(executor.store)
        salted = {"arguments", "result", "owner_id", "rows"}
        facts = [{k: v for k, v in e.facts.items() if k not in salted} for e in entries]
        told.append((end, [(e.run_id, e.kind, e.call_key) for e in entries], facts))
        assert (await ledger.verify(executor.store)).ok
    assert told[0] == told[1]


async def test_a_bare_call_leaves_nothing_to_the_garbage_collector() -> None:
    """Its context is gone as soon as its caller lets go of it."""
    executor, spec, ctx = Executor(store=MemoryStore()), read(), ToolContext("call_1")

    class Extras(dict[str, Any]):
        pass

    ctx.extras = Extras()
    gone = ref(ctx.extras)
    gc.disable()
    try:
        await executor.run_spec(spec, {"a": 20, "b": 9}, ctx)
        del ctx
        assert gone() is None
    finally:
        gc.enable()


async def test_a_context_that_served_a_bare_call_serves_no_other() -> None:
    """Neither a call nor a step, which would not be recorded."""
    executor, spec, ctx = Executor(store=MemoryStore()), read(), ToolContext("call_1")
    await executor.run_spec(spec, {"a": 20, "b": 9}, ctx)
    with pytest.raises(AgentAdapterError, match="served a call"):
        await executor.run_spec(spec, {"a": 20, "b": 9}, ctx)
    with pytest.raises(AgentAdapterError, match="has ended"):
        await ctx.step("late", lambda: 1)


async def test_a_bare_call_enters_few_frames() -> None:
    """The cost of a call with nothing to do is counted, so that it does not grow unseen."""
    executor, spec = Executor(store=MemoryStore()), read()
    await executor.run_spec(spec, {"a": 20, "b": 9})
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and "agent_adapter" in frame.f_code.co_filename:
            entered.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await executor.run_spec(spec, {"a": 20, "b": 9})
    finally:
        sys.setprofile(before)
    assert len(entered) <= FRAMES, entered
