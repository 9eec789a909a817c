"""Repeats of unclear writes, and records of nested calls: durability rows R4, R5, R6 and R8."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Annotated, Any

import pytest

import agent_adapter as aa
from agent_adapter.core.identity import Identity, Reentry
from agent_adapter.exec import ledger, upkeep
from agent_adapter.exec.executor import Executor
from tests.exec.shop import Till, in_run, is_whole, rows

pytestmark = pytest.mark.anyio

ARGS = {"order": "A1", "amount": 5}


class Lost(Exception):
    """What a till raises where nobody knows whether it charged."""


class Reviewer:
    """Says yes to everything and remembers what it was shown."""

    def __init__(self) -> None:
        self.asked: list[aa.ApprovalRequest] = []

    def __call__(self, request: aa.ApprovalRequest) -> bool:
        """Yes."""
        self.asked.append(request)
        return True


def desk(store: Any, till: Till, **known: Any) -> tuple[Executor, Reviewer]:
    """An executor whose reviewer agrees."""
    reviewer = Reviewer()
    return Executor(store=store, approval=aa.CallbackApproval(reviewer), **known), reviewer


WAYS: dict[str, Any] = {
    "attempt": lambda n: in_run(attempt=n, call_id="c1"),
    "reexecutes": lambda n: in_run(call_id="c1", reexecutes=True),
    "position": lambda n: at_place(),
}
"""The ways in which a call comes again as itself; `n` counts its comings."""


def at_place() -> aa.ToolContext:
    """The context of a call at one known place of the run."""
    ctx = in_run(call_id="c1")
    ctx.identity = Identity(
        run="run_1", conversation="t", position=("m1", 0), reentry=Reentry.RESUMED
    )
    return ctx


async def resolve(store: Any, call_key: str, *, happened: bool, result: Any = None) -> None:
    """A person says what became of the write."""
    await ledger.resolve(store, call_key, reviewer="ann", happened=happened, result=result)


@pytest.mark.parametrize("way", WAYS)
async def test_r4_a_repeat_that_did_not_happen_answers_for_nothing(store: Any, way: str) -> None:
    """R4: the repeat's own doubt is resolved "not happened": the first call is asked about."""
    till = Till(then=Lost())
    executor, reviewer = desk(store, till)
    for n in (1, 2):
        with pytest.raises(aa.ToolFailed):
            await executor.run_spec(till.spec, ARGS, WAYS[way](n))
    first, repeat = await rows(store)
    assert repeat["replaces"] == first["call_key"] and len(reviewer.asked) == 1
    await resolve(store, repeat["call_key"], happened=False)
    till.then = "charged"
    assert await executor.run_spec(till.spec, ARGS, WAYS[way](3)) == "charged"
    assert len(reviewer.asked) == 2 and len(till.ran) == 3
    assert await is_whole(store)


@pytest.mark.parametrize("way", WAYS)
async def test_r4_a_repeat_that_was_done_answers(memory: Any, way: str) -> None:
    """The repeat was done and the first call's doubt is resolved: nobody is asked, nothing runs."""
    till = Till(then=Lost())
    executor, reviewer = desk(memory, till)
    with pytest.raises(aa.ToolFailed):
        await executor.run_spec(till.spec, ARGS, WAYS[way](1))
    till.then = "charged"
    await executor.run_spec(till.spec, ARGS, WAYS[way](2))
    await resolve(memory, (await rows(memory))[0]["call_key"], happened=False)
    assert await executor.run_spec(till.spec, ARGS, WAYS[way](3)) == "charged"
    assert (len(reviewer.asked), len(till.ran)) == (1, 2)


@pytest.mark.parametrize("way", WAYS)
async def test_r6_the_repeat_that_worked_is_the_answer(memory: Any, way: str) -> None:
    """R6: a call that comes again and again is asked about once more only while it is unclear."""
    till = Till(then=Lost())
    executor, reviewer = desk(memory, till)
    with pytest.raises(aa.ToolFailed):
        await executor.run_spec(till.spec, ARGS, WAYS[way](1))
    till.then = "charged"
    found = [await executor.run_spec(till.spec, ARGS, WAYS[way](n)) for n in (2, 3, 4)]
    assert found == ["charged"] * 3
    assert (len(reviewer.asked), len(till.ran)) == (1, 2)


@pytest.mark.parametrize("way", WAYS)
async def test_r6_a_repeat_of_a_repeat_shows_both(memory: Any, way: str) -> None:
    """Two unclear calls are shown in one question, and what is agreed to answers for both."""
    till = Till(then=Lost())
    executor, reviewer = desk(memory, till)
    for n in (1, 2):
        with pytest.raises(aa.ToolFailed):
            await executor.run_spec(till.spec, ARGS, WAYS[way](n))
    till.then = "charged"
    for n in (3, 4):
        assert await executor.run_spec(till.spec, ARGS, WAYS[way](n)) == "charged"
    assert [len(request.earlier) for request in reviewer.asked] == [1, 2]
    assert len(till.ran) == 3


CONNECTING: ContextVar[Any] = ContextVar("connecting")
"""What happens while the connection is made."""


async def connection() -> str:
    """The dependency of a tool."""
    await CONNECTING.get()()
    return "connection"


Connected = Annotated[str, aa.Depends(connection)]


class Connecting:
    """A write that is lost, and whose doubt is settled while its dependency connects."""

    def __init__(self, store: Any, *, confirm: bool, deferred: bool) -> None:
        self.store = store
        self.ran: list[str] = []
        self.inbox = aa.Inbox(store)
        registry, ran = aa.ToolRegistry(), self.ran

        @registry.tool(confirm=confirm)
        async def charge(order: str, db: Connected) -> str:
            """Charges."""
            ran.append(order)
            raise Lost

        port: Any = aa.DeferredApproval(store) if deferred else aa.CallbackApproval(lambda _: True)
        self.executor = Executor(registry, store=store, approval=port)
        CONNECTING.set(self._settle)

    async def _settle(self) -> None:
        for row in await rows(self.store):
            await resolve(self.store, row["call_key"], happened=True, result="by hand")

    async def charge(self, context: Any) -> Any:
        """Make the call; a record that it leaves is approved, and the call made again."""
        try:
            return await self.executor.run("charge", {"order": "A1"}, ctx=context())
        except aa.ApprovalPending as held:
            await self.inbox.approve(held.id, reviewer="ann")
        return await self.executor.run("charge", {"order": "A1"}, ctx=context())


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize(
    ("way", "confirm"),
    [*((way, asks) for way in WAYS for asks in (False, True)), ("arrival", True)],
)
async def test_r5_a_doubt_that_is_settled_meanwhile_is_the_answer(
    memory: Any, way: str, deferred: bool, confirm: bool
) -> None:
    """R5: resolved "happened" while the agreed repeat's dependency connects: nothing runs."""
    shop = Connecting(memory, confirm=confirm, deferred=deferred)
    context = {**WAYS, "arrival": lambda n: in_run(call_id=f"c{n}")}[way]
    with pytest.raises(aa.ToolFailed):
        await shop.charge(lambda: context(1))
    assert await shop.charge(lambda: context(2)) == "by hand"
    assert shop.ran == ["A1"]
    assert await is_whole(memory)
    assert {record.state for record in await shop.inbox.list(None)} <= {"taken", "withdrawn"}


async def test_r5_a_resumed_repeat_looks_at_the_doubt_again(store: Any) -> None:
    """The record of an agreed repeat is resumed after the doubt was settled: nothing runs."""
    till = Till(then=Lost(), confirm=False)
    registry = aa.ToolRegistry()
    registry.add(till.spec)
    executor = Executor(registry, store=store, approval=aa.DeferredApproval(store))
    with pytest.raises(aa.ToolFailed):
        await executor.run("charge", ARGS, ctx=at_place())
    with pytest.raises(aa.ApprovalPending) as held:
        await executor.run("charge", ARGS, ctx=at_place())
    await aa.Inbox(store).approve(held.value.id, reviewer="ann")
    await resolve(store, (await rows(store))[0]["call_key"], happened=True, result="by hand")
    assert await executor.resume(held.value.id) == "by hand"
    assert len(till.ran) == 1


class Outer:
    """A tool `trip` whose inner call `pay` (cost 5) waits for a person."""

    def __init__(self, store: Any, **options: Any) -> None:
        self.paid: list[str] = []
        self.inbox = aa.Inbox(store)
        registry = aa.ToolRegistry()
        self.executor = executor = Executor(
            registry, store=store, approval=aa.DeferredApproval(store), **options
        )

        @registry.tool(confirm=True, cost=5)
        async def pay(to: str) -> str:
            """Pays."""
            self.paid.append(to)
            return f"paid {to}"

        @registry.tool
        async def trip(to: str) -> str:
            """Pays from inside."""
            return str(await executor.run("pay", {"to": to}))

    async def approved(self, to: str, *, inside: bool = True) -> str:
        """The approved record of the inner call, or of the same one made directly."""
        with pytest.raises(aa.ApprovalPending) as held:
            await self.executor.run("trip" if inside else "pay", {"to": to}, ctx=in_run("root"))
        await self.inbox.approve(held.value.id, reviewer="ann")
        return held.value.id


async def test_r8_a_record_of_a_cancelled_root_does_not_run(store: Any) -> None:
    """R8: a nested call's record is resumed after its root run was cancelled: refused."""
    outer = Outer(store)
    record = await outer.approved("bob")
    await upkeep.cancel_run(store, "root", by="ann", reason="stop")
    with pytest.raises(aa.ApprovalDenied, match="run was cancelled"):
        await outer.executor.resume(record)
    assert outer.paid == []


@pytest.mark.parametrize("inside", [True, False])
async def test_r8_resumes_count_against_the_roots_limit(store: Any, inside: bool) -> None:
    """R8: four resumes under `max_cost=12` at a cost of 5 each: two run."""
    outer = Outer(store, limits=aa.RunLimits(max_cost=12))
    records = [await outer.approved(str(n), inside=inside) for n in range(4)]
    refused = 0
    for record in records:
        try:
            await outer.executor.resume(record)
        except aa.RunLimitExceeded:
            refused += 1
    assert (outer.paid, refused) == (["0", "1"], 2)


async def test_r8_a_scopes_limit_holds_when_its_record_is_resumed(store: Any) -> None:
    """The limit of the scope in which a call was asked about is kept with its record."""
    outer = Outer(store)
    async with outer.executor.run_scope("root", limits=aa.RunLimits(max_calls=1)):
        with pytest.raises(aa.ApprovalPending) as held:
            await outer.executor.run("pay", {"to": "a"})
    other = aa.ToolContext(run_id="root")
    async with outer.executor.run_scope("root", limits=aa.RunLimits(max_calls=1)):
        with pytest.raises(aa.ApprovalPending) as second:
            await outer.executor.run("pay", {"to": "b"}, ctx=other)
    for record in (held.value.id, second.value.id):
        await outer.inbox.approve(record, reviewer="ann")
    await outer.executor.resume(held.value.id)
    with pytest.raises(aa.RunLimitExceeded):
        await outer.executor.resume(second.value.id)
    assert outer.paid == ["a"]
