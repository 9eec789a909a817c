"""Which call is this: the rows of the identity page that the executor itself decides."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import ApprovalDenied, ApprovalPending, RunLimitExceeded, ToolInDoubt
from agent_adapter.core.identity import Identity, Reentry
from agent_adapter.exec.executor import Executor
from agent_adapter.store import open_store

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """Both stores."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 's.db'}"
    opened = open_store(url)
    yield opened
    await opened.aclose()


class Garden:
    """Tools that count what they did."""

    def __init__(self, **policy: Any) -> None:
        self.done: list[str] = []
        self.registry = aa.ToolRegistry()

        @self.registry.tool(**policy)
        async def water(bed: str) -> str:
            """Water a bed."""
            self.done.append(bed)
            return f"watered {bed} ({len(self.done)})"

    @property
    def spec(self) -> aa.ToolSpec:
        """The tool."""
        return self.registry.get("water")


def at(*position: str | int, run: str | None = "r", **more: Any) -> aa.ToolContext:
    """A context whose integration knows run and position."""
    ctx = aa.ToolContext(call_id="call_0", run_id=run, thread_id=more.pop("thread", "t"))
    reentry = more.pop("reentry", Reentry.NEW)
    ctx.identity = Identity(
        run=run,
        conversation=ctx.thread_id,
        position=position or None,
        reentry=reentry,
        attempt=more.pop("attempt", 1),
    )
    ctx.principal = more.pop("principal", None)
    ctx.tenant = more.pop("tenant", "")
    return ctx


# -- positions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("effects", ["read", "idempotent", "write"])
async def test_i1_equal_ids_in_new_messages_are_new_calls(store: Any, effects: Any) -> None:
    """I1, I2: another position is another call, whatever ids and arguments it repeats."""
    garden = Garden(effects=effects)
    executor = Executor(garden.registry, store=store)
    for message in ("m1", "m2", "m3"):
        await executor.run_spec(garden.spec, {"bed": "north"}, at(message, 0))
    assert len(garden.done) == 3


@pytest.mark.parametrize("effects", ["read", "idempotent", "write"])
async def test_the_same_position_is_the_same_call(store: Any, effects: Any) -> None:
    """A position that comes again gives the recorded outcome."""
    garden = Garden(effects=effects)
    executor = Executor(garden.registry, store=store)
    first = await executor.run_spec(garden.spec, {"bed": "north"}, at("m1", 0))
    await executor.aclose()
    again = await executor.run_spec(garden.spec, {"bed": "north"}, at("m1", 0))
    assert (again, garden.done) == (first, ["north"])


async def test_a_write_with_other_arguments_at_a_position_asks(store: Any) -> None:
    """The node has gone another way: without a port that is a doubt, and nothing runs."""
    garden = Garden()
    executor = Executor(garden.registry, store=store)
    await executor.run_spec(garden.spec, {"bed": "north"}, at("m1", 0))
    with pytest.raises(ToolInDoubt):
        await executor.run_spec(garden.spec, {"bed": "south"}, at("m1", 0))
    assert garden.done == ["north"]


async def test_a_read_with_other_arguments_at_a_position_runs(store: Any) -> None:
    """Reading again harms nobody."""
    garden = Garden(effects="read")
    executor = Executor(garden.registry, store=store)
    for bed in ("north", "south"):
        await executor.run_spec(garden.spec, {"bed": bed}, at("m1", 0))
    assert garden.done == ["north", "south"]


async def test_i3_equal_calls_at_two_positions_are_asked_about_each(store: Any) -> None:
    """I3: two sub-agents with equal ids and arguments: two questions, two runs."""
    asked: list[str] = []

    def reviewer(request: aa.ApprovalRequest) -> bool:
        asked.append(request.call_key)
        return True

    garden = Garden(confirm=True)
    executor = Executor(garden.registry, store=store, approval=aa.CallbackApproval(reviewer))
    calls = [
        executor.run_spec(garden.spec, {"bed": "north"}, at(agent, 0)) for agent in ("one", "two")
    ]
    await asyncio.gather(*calls)
    assert (len(set(asked)), len(garden.done)) == (2, 2)


async def test_i8_an_empty_call_id_is_no_id(store: Any) -> None:
    """I8: calls with the id "" are asked about and run once each."""
    garden = Garden(confirm=True)
    executor = Executor(garden.registry, store=store, approval=aa.CallbackApproval(lambda r: True))
    for _ in range(2):
        ctx = aa.ToolContext(call_id="", run_id="r")
        await executor.run_spec(garden.spec, {"bed": "north"}, ctx, call_id="")
        assert ctx.call_id
    assert len(garden.done) == 2


# -- approvals follow the work -------------------------------------------------------------------


async def test_i25_an_approval_is_used_by_the_call_that_asks_again(store: Any) -> None:
    """I25: the model asks again in a new message and a new run; the yes runs once."""
    garden, inbox = Garden(confirm=True), aa.Inbox(store)
    executor = Executor(garden.registry, store=store, approval=aa.DeferredApproval(store))
    with pytest.raises(ApprovalPending) as held:
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m1", 0, run="r1"))
    await inbox.approve(held.value.id, reviewer="ann")
    await executor.run_spec(garden.spec, {"bed": "north"}, at("m2", 0, run="r2"))
    with pytest.raises(ApprovalPending) as asked_anew:
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m3", 0, run="r2"))
    assert garden.done == ["north"] and asked_anew.value.id != held.value.id


@pytest.mark.parametrize("other", [{"thread": "u"}, {"principal": "eve"}, {"tenant": "acme"}])
async def test_an_approval_follows_into_no_other_dialogue(
    store: Any, other: dict[str, Any]
) -> None:
    """Another conversation, principal or tenant asks for itself."""
    garden, inbox = Garden(confirm=True), aa.Inbox(store)
    executor = Executor(garden.registry, store=store, approval=aa.DeferredApproval(store))
    with pytest.raises(ApprovalPending) as held:
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m1", 0, run="r1"))
    await inbox.approve(held.value.id, reviewer="ann")
    with pytest.raises(ApprovalPending) as asked:
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m2", 0, run="r2", **other))
    assert garden.done == [] and asked.value.id != held.value.id


async def test_i10_a_denial_ends_with_its_run(store: Any) -> None:
    """I10: denied in one user turn, asked about again in the next."""
    garden, inbox = Garden(confirm=True), aa.Inbox(store)
    executor = Executor(garden.registry, store=store, approval=aa.DeferredApproval(store))
    with pytest.raises(ApprovalPending) as held:
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m1", 0, run="r1"))
    await inbox.deny(held.value.id, reviewer="ann", reason="not today")
    with pytest.raises(ApprovalDenied):
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m2", 0, run="r1"))
    with pytest.raises(ApprovalPending):
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m3", 0, run="r2"))


async def test_i12_an_unknown_run_keeps_one_open_question(store: Any) -> None:
    """I12: without a run one record stands for equal calls, and `resume` runs it once."""
    garden, inbox = Garden(confirm=True), aa.Inbox(store)
    executor = Executor(garden.registry, store=store, approval=aa.DeferredApproval(store))
    ids = set()
    for _ in range(3):
        with pytest.raises(ApprovalPending) as held:
            await executor.run("water", {"bed": "north"})
        ids.add(held.value.id)
    (id,) = ids
    await inbox.approve(id, reviewer="ann")
    with pytest.raises(ApprovalPending, match=id):
        await executor.run("water", {"bed": "north"})
    await executor.resume(id)
    assert garden.done == ["north"]


# -- rules kept per run --------------------------------------------------------------------------


async def test_i13_a_tainted_rule_without_a_run_asks(store: Any) -> None:
    """I13: an untrusted read, then a write, both without a run: a person is asked."""
    asked: list[str] = []

    def reviewer(request: aa.ApprovalRequest) -> bool:
        asked.append(request.reason)
        return True

    garden, page = Garden(confirm="tainted"), Garden(effects="read", trust="untrusted")
    executor = Executor(store=store, approval=aa.CallbackApproval(reviewer))
    await executor.run_spec(page.spec, {"bed": "north"})
    await executor.run_spec(garden.spec, {"bed": "north"})
    assert len(asked) == 1 and "no run or conversation is given" in asked[0]


async def test_i13_labels_last_as_long_as_the_conversation(store: Any) -> None:
    """What one run of a conversation has read counts in the next."""
    garden, page = Garden(confirm="tainted"), Garden(effects="read", trust="untrusted")
    executor = Executor(store=store)
    await executor.run_spec(page.spec, {"bed": "north"}, at("m1", 0, run="r1"))
    with pytest.raises(ApprovalDenied, match="nobody to ask"):
        await executor.run_spec(garden.spec, {"bed": "north"}, at("m2", 0, run="r2"))


async def test_i14_limits_without_a_run_refuse(store: Any) -> None:
    """I14: a limit that nobody can count is no limit: the error names the rule and the fix."""
    garden = Garden()
    executor = Executor(garden.registry, store=store, limits=aa.RunLimits(max_calls=1))
    with pytest.raises(RunLimitExceeded, match=r"no run is known here; .*run_scope") as refused:
        await executor.run("water", {"bed": "north"})
    assert refused.value.kind == "run-unknown" and garden.done == []
    async with executor.run_scope("r"):
        await executor.run("water", {"bed": "north"})
    assert garden.done == ["north"]


async def test_i17_tenants_share_nothing(store: Any) -> None:
    """I17: equal and crafted names in two tenants share no labels, limits or once keys."""
    garden, page = Garden(confirm="tainted"), Garden(effects="read", trust="untrusted")
    once = Garden(once_key=lambda args: "k")
    executor = Executor(store=store, limits=aa.RunLimits(max_calls=2))
    await executor.run_spec(page.spec, {"bed": "n"}, at(thread="x", tenant="acme:evil"))
    for tenant, thread in (("acme", "evil:x"), ("", "acme:evil:x")):
        await executor.run_spec(garden.spec, {"bed": "n"}, at(thread=thread, tenant=tenant))
        await executor.run_spec(once.spec, {"bed": "n"}, at(thread=thread, tenant=tenant))
    assert len(garden.done) == 2 and len(once.done) == 2


async def test_unclear_writes_of_one_asker_are_found_in_other_runs(store: Any) -> None:
    """A write with unknown outcome is asked about in the principal's next run, too."""

    class Lost(Exception):
        pass

    done: list[str] = []
    registry = aa.ToolRegistry()

    @registry.tool
    async def pay(to: str) -> str:
        """Pay."""
        done.append(to)
        if len(done) == 1:
            raise Lost
        return "paid"

    executor = Executor(registry, store=store)
    spec = registry.get("pay")
    with pytest.raises(aa.ToolFailed):
        await executor.run_spec(spec, {"to": "bob"}, at("m", 0, run="r1", principal="ann"))
    with pytest.raises(ToolInDoubt):
        await executor.run_spec(
            spec, {"to": "bob"}, at("m", 0, run="r2", thread="u", principal="ann")
        )
    await executor.run_spec(spec, {"to": "bob"}, at("m", 0, run="r3", thread="v", principal="eve"))
    assert len(done) == 2


# -- tools that call tools -----------------------------------------------------------------------


class Trip:
    """An outer write that books and then launches, where launching needs a person."""

    def __init__(self, store: Any, **outer: Any) -> None:
        self.done: list[str] = []
        registry = aa.ToolRegistry()
        port = aa.DeferredApproval(store)
        self.inbox = aa.Inbox(store)
        self.executor = Executor(registry, store=store, approval=port)
        executor, done = self.executor, self.done

        @registry.tool
        async def book() -> str:
            """Book."""
            done.append("book")
            return "booked"

        @registry.tool(confirm=True)
        async def launch() -> str:
            """Launch."""
            done.append("launch")
            return "launched"

        @registry.tool(**outer)
        async def trip() -> str:
            """Book, then launch."""
            await executor.run("book", {})
            return str(await executor.run("launch", {}))

    async def go(self, message: str) -> Any:
        """Make the outer call."""
        spec = self.executor.registry.get("trip")  # type: ignore[union-attr]
        return await self.executor.run_spec(spec, {}, at(message, 0, run=f"run of {message}"))


@pytest.mark.parametrize("effects", ["write", "idempotent", "read"])
@pytest.mark.parametrize("again", ["m1", "m2"])
async def test_i4_a_tool_whose_inner_call_waits_goes_on(
    store: Any, effects: Any, again: str
) -> None:
    """I4, R11: one booking, one question, one launch, at its place or asked for anew."""
    trip = Trip(store, effects=effects)
    with pytest.raises(ApprovalPending) as held:
        await trip.go("m1")
    record = await trip.inbox.get(held.value.id)
    if effects == "write":
        assert "approving runs trip again from its start" in record.why
    await trip.inbox.approve(held.value.id, reviewer="ann")
    await trip.executor.aclose()
    assert await trip.go(again) == "launched"
    assert trip.done == ["book", "launch"]


async def test_i5_a_retried_tool_repeats_no_inner_write(store: Any) -> None:
    """I5: idempotent outer, three tries, one inner write."""
    done: list[str] = []
    tries: list[int] = []
    registry = aa.ToolRegistry()
    executor = Executor(registry, store=store)

    @registry.tool
    async def pay() -> str:
        """Pay."""
        done.append("pay")
        return "paid"

    @registry.tool(effects="idempotent", retries=aa.RetryPolicy(attempts=3, wait_initial=0))
    async def outer() -> str:
        """Pay, then fail twice."""
        await executor.run("pay", {})
        tries.append(1)
        if len(tries) < 3:
            raise OSError
        return "done"

    assert await executor.run_spec(registry.get("outer"), {}, at("m1", 0)) == "done"
    assert (len(tries), done) == (3, ["pay"])


# -- attempts ------------------------------------------------------------------------------------


async def test_r3_an_aborted_call_answers_for_no_later_one(store: Any) -> None:
    """R3: cancelled before it began, made again and done: attempt 2 gets the recorded outcome."""
    garden = Garden()
    gate = asyncio.Event()

    class Hold:
        async def before(self, call: Any) -> None:
            if not gate.is_set():
                gate.set()
                raise asyncio.CancelledError

    executor = Executor(garden.registry, store=store, hooks=[Hold()])
    context = {"run_id": "r", "thread_id": "t"}
    with pytest.raises(asyncio.CancelledError):
        await executor.run("water", {"bed": "north"}, ctx=aa.ToolContext(**context))
    first = await executor.run("water", {"bed": "north"}, ctx=aa.ToolContext(**context))
    again = aa.ToolContext(**context, attempt=2)
    assert await executor.run("water", {"bed": "north"}, ctx=again) == first
    assert garden.done == ["north"]


async def test_i6_a_replayed_run_repeats_no_write(store: Any) -> None:
    """I6: the run is made again under fresh ids and positions; the write is handed out."""
    garden = Garden()
    executor = Executor(garden.registry, store=store)
    first = await executor.run_spec(garden.spec, {"bed": "north"}, at("m1", 0))
    replayed = {"reentry": Reentry.REPLAYED, "attempt": 2}
    again = at("m7", 0, **replayed)
    again.call_id = "fresh"
    assert await executor.run_spec(garden.spec, {"bed": "north"}, again) == first
    with pytest.raises(ToolInDoubt):
        await executor.run_spec(
            garden.spec, {"bed": "south"}, at("m8", 0, reentry=Reentry.REPLAYED, attempt=3)
        )
    assert garden.done == ["north"]
