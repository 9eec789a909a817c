"""A tool that calls tools is a small workflow: what it has done is not done again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import (
    ApprovalPending,
    ToolDefinitionError,
    ToolError,
    ToolFailed,
    ToolInDoubt,
    ToolTimeout,
)
from agent_adapter.exec import ledger
from agent_adapter.exec.executor import Executor
from tests.exec.shop import another_process, is_whole, rows, until
from tests.exec.test_identity import at

pytestmark = pytest.mark.anyio


class Trip:
    """An outer tool that books, then does what `then` says, then launches.

    `then` is an exception to raise, or a coroutine function to await; it is used once.
    """

    def __init__(
        self,
        store: Any,
        then: Any = None,
        *,
        ask: bool = True,
        launch: Any = None,
        first_timeout: float | None = None,
        **outer: Any,
    ) -> None:
        self.done: list[str] = []
        self.then = then
        self.first_timeout = first_timeout
        self.inbox = aa.Inbox(store)
        self.registry = aa.ToolRegistry()
        port = aa.DeferredApproval(store) if ask else None
        self.executor = Executor(self.registry, store=store, approval=port)

        @self.registry.tool
        async def book() -> str:
            """Book."""
            self.done.append("book")
            return "booked"

        @self.registry.tool(confirm=launch is None)
        async def start() -> str:
            """Launch."""
            self.done.append("launch")
            if launch is not None and self.done.count("launch") == 1:
                raise launch
            return "launched"

        @self.registry.tool(name="trip", **outer)
        async def trip() -> str:
            """Book, then launch."""
            await self.executor.run("book", {})
            self.done.append("own")
            then, self.then = self.then, None
            if isinstance(then, BaseException):
                raise then
            if then is not None:
                await then()
            return str(await self.executor.run("start", {}))

    async def go(self, message: str) -> Any:
        """Make the outer call, in a run of its own."""
        timeout, self.first_timeout = self.first_timeout, None
        spec = self.registry.get("trip").replace(timeout=timeout)
        return await self.executor.run_spec(spec, {}, at(message, 0, run=f"run of {message}"))

    async def approve(self, pending: ApprovalPending) -> None:
        """A person says yes."""
        await self.inbox.approve(pending.id, reviewer="ann")

    async def outers(self, store: Any) -> list[tuple[str, str]]:
        """How the outer calls ended."""
        return [(row["ending"], row["error_kind"]) for row in await rows(store, tool="trip")]


FREE = [{"workflow": True}, {"effects": "idempotent"}, {"effects": "read"}]


@pytest.mark.parametrize("outer", FREE, ids=str)
@pytest.mark.parametrize("how", ["cancelled", "timed out", "failed"])
@pytest.mark.parametrize("again", ["m1", "m2"])
async def test_an_unfinished_workflow_is_gone_on_with(
    store: Any, outer: Any, how: str, again: str
) -> None:
    """R11: read, idempotent and `workflow=True`: the next equal call adopts what it has done."""
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    then = ValueError() if how == "failed" else hang
    trip = Trip(store, then, **outer, first_timeout=1 if how == "timed out" else None)
    if how == "cancelled":
        task = asyncio.create_task(trip.go("m1"))
        await begun.wait()
        task.cancel()
    else:
        task = asyncio.create_task(trip.go("m1"))
    with pytest.raises((asyncio.CancelledError, ToolFailed, ToolTimeout)):
        await task
    assert [ending for ending, _ in await trip.outers(store)] == ["suspended"]
    with pytest.raises(ApprovalPending) as held:
        await trip.go(again)
    assert "again from its start" not in (await trip.inbox.get(held.value.id)).why
    await trip.approve(held.value)
    await trip.executor.aclose()
    assert await trip.go(again) == "launched"
    assert trip.done.count("book") == trip.done.count("launch") == 1
    assert [ending for ending, _ in await trip.outers(store)] == ["ok"] and await is_whole(store)


@pytest.mark.parametrize("how", ["timed out", "failed"])
async def test_an_unfinished_write_that_is_no_workflow_is_in_doubt(store: Any, how: str) -> None:
    """What it did outside of recorded calls is not known, so nothing is done again unasked."""
    then = ValueError() if how == "failed" else asyncio.Event().wait
    trip = Trip(store, then, ask=False, first_timeout=1 if how == "timed out" else None)
    with pytest.raises(ToolError):
        await trip.go("m1")
    with pytest.raises(ToolInDoubt):
        await trip.go("m2")
    assert trip.done == ["book", "own"]
    assert [row["tool"] for row in await ledger.in_doubt(store)] == ["trip"]


async def test_an_authors_error_ends_a_workflow(store: Any) -> None:
    """It promises that nothing happened: the same call gives it again, a new one begins anew."""
    trip = Trip(store, ToolError("sold out"), workflow=True)
    for _ in range(2):
        with pytest.raises(ToolError, match="sold out"):
            await trip.go("m1")
    assert trip.done == ["book", "own"]
    assert await trip.outers(store) == [("no-effect", "tool-error")]


async def test_an_outer_call_that_was_approved_is_asked_about_once(store: Any) -> None:
    """I4: one question about the outer call, one about the inner; edits of the outer stay."""
    trip = Trip(store, confirm=True)
    asked = []
    for _ in range(2):
        with pytest.raises(ApprovalPending) as held:
            await trip.go("m1")
        asked.append((await trip.inbox.get(held.value.id)).tool)
        await trip.approve(held.value)
    assert await trip.go("m1") == "launched"
    assert asked == ["trip", "start"] and trip.done == ["book", "own", "own", "launch"]


@pytest.mark.parametrize("ask", [True, False])
async def test_a_write_suspended_without_a_question_is_not_entered_unasked(
    store: Any, ask: bool
) -> None:
    """Its inner call was in doubt: a person is told what runs again, or nobody is there to ask."""
    trip = Trip(store, launch=ValueError(), ask=False, workflow=True)
    with pytest.raises(ToolFailed):
        await trip.go("m1")
    plain = trip.registry.get("trip").replace(workflow=False)
    with pytest.raises(ToolInDoubt):  # its inner call is in doubt
        await trip.go("m1")
    assert await trip.outers(store) == [("suspended", "tool-in-doubt")]
    (doubt,) = await ledger.in_doubt(store)
    await ledger.resolve(store, doubt["call_key"], reviewer="ann", happened=True, result="late")

    async def go() -> Any:
        return await trip.executor.run_spec(plain, {}, at("m1", 0, run="run of m1"))

    if not ask:
        with pytest.raises(ToolInDoubt, match="nobody to ask whether to go on"):
            await go()
        return
    trip.executor.approval = aa.DeferredApproval(store)
    with pytest.raises(ApprovalPending) as held:
        await go()
    assert "approving runs trip again from its start" in (await trip.inbox.get(held.value.id)).why
    await trip.approve(held.value)
    assert await go() == "late"
    assert trip.done.count("book") == trip.done.count("launch") == 1


async def test_a_workflow_of_a_process_that_died_is_gone_on_with(sqlite: Any, clock: Any) -> None:
    """Also in a new message of the conversation; its own calls that ended are handed out."""
    async with another_process(sqlite, clock) as other:
        dying = Trip(other, asyncio.Event().wait, ask=False, launch=KeyError(), workflow=True)
        task = asyncio.create_task(dying.go("m1"))
        await until(lambda: "own" in dying.done)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is left on purpose
        left = task
    trip = Trip(sqlite, workflow=True)
    with pytest.raises(ApprovalPending):
        await trip.go("m2")
    assert trip.done == ["own"]
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)


# -- steps ---------------------------------------------------------------------------------------


class Steps:
    """A tool with two steps, sync and async, that fails until it is told not to."""

    def __init__(self, store: Any, **policy: Any) -> None:
        self.ran: list[Any] = []
        self.values: list[Any] = []
        self.fails = True
        self.executor = Executor(store=store)

        def charge(order: str, amount: int) -> dict[str, Any]:
            self.ran.append((order, amount))
            return {"charge": len(self.ran)}

        async def mail(to: str) -> str:
            self.ran.append(to)
            return f"mailed {to}"

        async def order(ctx: aa.ToolContext) -> list[Any]:
            """Charge, then mail."""
            values = [
                await ctx.step("charge", charge, "A1", 5),
                await ctx.step("mail", mail, "bob"),
            ]
            self.values.append(values)
            if self.fails:
                raise OSError
            return values

        self.spec = aa.ToolSpec.from_function(order, **policy)

    async def go(self) -> Any:
        """The call."""
        return await self.executor.run_spec(self.spec, {}, at("m1", 0))


@pytest.mark.parametrize("policy", FREE, ids=str)
async def test_a_step_happens_once_however_often_its_tool_is_entered(
    store: Any, policy: Any
) -> None:
    """Its recorded value is given again, and each is a call of the tool's own run."""
    steps = Steps(store, **policy)
    for _ in range(2):
        with pytest.raises(ToolFailed):
            await steps.go()
        await steps.executor.aclose()
    steps.fails = False
    assert await steps.go() == [{"charge": 1}, "mailed bob"]
    assert steps.ran == [("A1", 5), "bob"] and steps.values == [steps.values[0]] * 3
    inner = [row["tool"] for row in await rows(store) if row["tool"] != "order"]
    assert inner == ["charge", "mail"] and await is_whole(store)


async def test_equal_steps_of_one_entry_are_several(store: Any) -> None:
    """They are told apart by their order."""
    ran: list[int] = []

    async def twice(ctx: aa.ToolContext) -> list[int]:
        """Count twice."""

        def count() -> int:
            ran.append(1)
            return len(ran)

        return [await ctx.step("count", count), await ctx.step("count", count)]

    spec = aa.ToolSpec.from_function(twice, workflow=True)
    assert await Executor(store=store).run_spec(spec, {}, at("m1", 0)) == [1, 2]


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("count", (object(),), r"ctx.step\('count'\): argument 1 is a object, which cannot be"),
        ("two words", (), "ctx.step: tool 'two words': a name has"),
        ("value", (), r"ctx.step\('value'\) ran, and its value is a object, which cannot be"),
    ],
)
async def test_a_step_that_cannot_be_recorded_is_an_error(
    store: Any, name: str, args: Any, text: str
) -> None:
    """It names the step, the value and the fix."""
    ran: list[str] = []

    def effect(*given: Any) -> Any:
        ran.append(name)
        return object()

    async def outer(ctx: aa.ToolContext) -> Any:
        """Make the step."""
        return await ctx.step(name, effect, *args)

    spec = aa.ToolSpec.from_function(outer)
    with pytest.raises(ToolDefinitionError, match=text):
        await Executor(store=store).run_spec(spec, {}, at("m1", 0))
    assert ran == (["value"] if name == "value" else [])


async def test_a_step_that_fails_is_in_doubt(store: Any) -> None:
    """What it did is not known: it is not done again, and the tool may handle the first error."""
    ran, causes = [], []

    async def outer(ctx: aa.ToolContext) -> Any:
        """Make the step."""

        def effect() -> None:
            ran.append(1)
            raise OSError("line cut")

        try:
            return await ctx.step("effect", effect)
        except ToolFailed as exc:
            causes.append(type(exc.__cause__))
            raise

    spec = aa.ToolSpec.from_function(outer, workflow=True)
    executor = Executor(store=store)
    with pytest.raises(ToolFailed, match="effect failed: OSError"):
        await executor.run_spec(spec, {}, at("m1", 0))
    with pytest.raises(ToolInDoubt, match="effect"):
        await executor.run_spec(spec, {}, at("m1", 0))
    assert (ran, causes) == ([1], [OSError])
    assert [row["tool"] for row in await ledger.in_doubt(store)] == ["effect"]


async def test_a_step_without_an_executor_just_runs() -> None:
    """A tool that is invoked directly has no record."""

    async def outer(ctx: aa.ToolContext) -> Any:
        """Make the step."""
        return await ctx.step("double", lambda n: 2 * n, 21)

    assert await aa.ToolSpec.from_function(outer).invoke({}, aa.ToolContext()) == 42


@pytest.mark.parametrize("sync", [False, True])
async def test_calls_of_the_shorthand_inside_a_tool_go_through_its_executor(
    store: Any, sync: bool
) -> None:
    """I4: their rows, approvals and outcomes are in the store of the tool that makes them."""
    inner = aa.ToolSpec.from_function(_count, effects="write")

    def outer_sync() -> int:
        """Call the inner tool."""
        return int(aa.call(inner, n=2))

    async def outer() -> int:
        """Call the inner tool."""
        return int(await aa.acall(inner, n=2))

    spec = aa.ToolSpec.from_function(outer_sync if sync else outer, name="outer", effects="write")
    assert await Executor(store=store).run_spec(spec, {}) == 2
    assert sorted(row["tool"] for row in await rows(store)) == ["_count", "outer"]


def _count(n: int) -> int:
    """Give it back."""
    return n
