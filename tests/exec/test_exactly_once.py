"""Exactly once: what the ledger says decides whether a call runs."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    ApprovalDenied,
    StoreError,
    ToolError,
    ToolFailed,
    ToolInDoubt,
    ToolInFlight,
    ToolTimeout,
)
from agent_adapter.core.inject import Secret
from agent_adapter.core.routing import Finish, Handoff
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import RetryPolicy, RunLimits
from agent_adapter.exec import ledger
from agent_adapter.exec.approval.inbox import Inbox
from agent_adapter.exec.approval.ports.deferred import DeferredApproval
from agent_adapter.exec.call import Call
from agent_adapter.exec.executor import Executor
from agent_adapter.store import MemoryStore
from agent_adapter.store.calls import begin_call
from agent_adapter.store.intents import Intent, Reserve
from tests.exec.shop import (
    ARGS,
    NO,
    YES,
    Till,
    another_process,
    endings,
    in_run,
    is_whole,
    kinds,
    rows,
    turns,
    until,
)
from tests.fakes.approval import FakeApproval
from tests.fakes.store import FaultyStore

pytestmark = pytest.mark.anyio

EFFECTS = ["read", "idempotent", "write"]


async def left_open(
    store: Any, spec: ToolSpec, *, limits: RunLimits | None = None, **known: Any
) -> None:
    """Begin a call of `spec` in the name of this store's owner and leave it open."""
    call = Call(Executor(store=store).runtime, spec, ARGS, in_run(**known), None)
    call.values = spec.validate(ARGS)
    intent = call.intent()
    reserve = Reserve(limits=limits, run_id="run_1") if limits is not None else None
    begun = await store.write(lambda tx: begin_call(tx, intent, reserve=reserve))
    assert begun.state == "started"


# -- the table -------------------------------------------------------------------------------


@pytest.mark.parametrize("effects", EFFECTS)
async def test_nothing_recorded_the_call_runs(store: Any, effects: str) -> None:
    """A new call runs and is recorded."""
    till = Till(effects=effects)
    assert await Executor(store=store).run_spec(till.spec, ARGS, in_run()) == "charged"
    assert await endings(store) == ["ok"] and await is_whole(store)


@pytest.mark.parametrize("effects", EFFECTS)
async def test_finished_the_recorded_outcome_is_returned(store: Any, effects: str) -> None:
    """A second attempt of the run gets what the first one got."""
    till, executor = Till(effects=effects), Executor(store=store)
    await executor.run_spec(till.spec, ARGS, in_run())
    till.then = "something else"
    assert await executor.run_spec(till.spec, ARGS, in_run(attempt=2)) == "charged"
    assert len(till.ran) == 1


async def test_finished_elsewhere_the_recorded_outcome_is_returned(sqlite: Any, clock: Any) -> None:
    """Another process finds it, too."""
    till = Till()
    async with another_process(sqlite, clock) as other:
        await Executor(store=other).run_spec(till.spec, ARGS, in_run())
    assert await Executor(store=sqlite).run_spec(till.spec, ARGS, in_run(attempt=2)) == "charged"
    assert len(till.ran) == 1


@pytest.mark.parametrize("effects", ["idempotent", "write"])
async def test_open_here_the_running_call_is_awaited(store: Any, effects: str) -> None:
    """A re-executed call joins the one that is under way."""
    gate = asyncio.Event()
    till = Till(gate.wait, effects=effects)
    executor = Executor(store=store)
    known: Any = {"call_id": "c", "reexecutes": True}
    first = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(**known)))
    await until(lambda: len(till.ran) == 1)
    second = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(**known)))
    await turns()
    gate.set()
    assert await asyncio.gather(first, second) == [True, True]
    assert len(till.ran) == 1


@pytest.mark.parametrize("effects", EFFECTS)
async def test_open_in_another_live_process_is_in_flight(
    sqlite: Any, clock: Any, effects: str
) -> None:
    """The caller is told to wait."""
    till = Till(effects=effects)
    async with another_process(sqlite, clock) as other:
        await left_open(other, till.spec)
        with pytest.raises(ToolInFlight, match="another process"):
            await Executor(store=sqlite).run_spec(till.spec, ARGS, in_run(attempt=2))
    assert till.ran == []


@pytest.mark.parametrize("effects", ["read", "idempotent"])
async def test_open_in_a_dead_process_a_repeatable_call_runs_again(
    sqlite: Any, clock: Any, effects: str
) -> None:
    """Under the same idempotency key."""
    till = Till(effects=effects)
    async with another_process(sqlite, clock) as other:
        await left_open(other, till.spec)
    (row,) = await rows(sqlite)
    await Executor(store=sqlite).run_spec(till.spec, ARGS, in_run(attempt=2))
    assert await endings(sqlite) == ["ok"] and await is_whole(sqlite)
    assert till.keys == [row["call_key"]] or effects == "read"


async def test_open_in_a_dead_process_a_write_is_in_doubt(sqlite: Any, clock: Any) -> None:
    """It is never run again by itself; the error names the command and the call."""
    till = Till()
    async with another_process(sqlite, clock) as other:
        await left_open(other, till.spec)
    (row,) = await rows(sqlite)
    executor = Executor(store=sqlite, approval=FakeApproval(YES))
    with pytest.raises(ToolInDoubt, match=f"ledger resolve {row['call_key']}") as caught:
        await executor.run_spec(till.spec, ARGS, in_run(attempt=2))
    assert caught.value.call_key == row["call_key"] and till.ran == []


# -- identity --------------------------------------------------------------------------------


async def test_the_nth_call_has_its_own_identity(store: Any) -> None:
    """The same call twice in a run is two calls, at the second attempt, too."""
    till, executor = Till(), Executor(store=store)
    for attempt in (1, 1, 2, 2):
        await executor.run_spec(till.spec, ARGS, in_run(attempt=attempt))
    assert len(set(till.keys)) == len(till.ran) == 2


@pytest.mark.parametrize("effects", EFFECTS)
async def test_calls_one_after_the_other_have_different_keys(store: Any, effects: str) -> None:
    """Whether or not the first is on the disk by then."""
    till, executor = Till(effects=effects), Executor(store=store)
    for _ in range(5):
        await executor.run_spec(till.spec, ARGS, in_run())
    assert len(await rows(store)) == 5
    if effects != "read":
        assert len(set(till.keys)) == 5


async def test_a_reused_native_id_is_a_new_call(store: Any) -> None:
    """Models reuse ids; only a caller that re-executes repeats one."""
    till, executor = Till(), Executor(store=store)
    for _ in range(2):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c"))
    assert len(till.ran) == 2


async def test_a_caller_that_reexecutes_gets_the_record(store: Any) -> None:
    """Same native id, same arguments: the recorded outcome."""
    till, executor = Till(), Executor(store=store)
    for _ in range(3):
        await executor.run_spec(till.spec, ARGS, in_run(call_id="c", reexecutes=True))
    await executor.run_spec(till.spec, ARGS, in_run(call_id="d", reexecutes=True))
    assert len(till.ran) == 2


@pytest.mark.parametrize("other", [{"principal": "eve"}, {"tenant": "theirs"}])
async def test_a_replay_needs_the_same_principal_and_tenant(store: Any, other: Any) -> None:
    """Nobody gets somebody else's outcome."""
    till = Till()
    executor = Executor(store=store, approval=FakeApproval(YES))
    known: dict[str, Any] = {"principal": "bob", "tenant": "ours"}
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c", reexecutes=True, **known))
    await executor.run_spec(
        till.spec, ARGS, in_run(call_id="c", reexecutes=True, **(known | other))
    )
    assert len(till.ran) == 2


async def test_the_key_is_known_to_the_tool_before_it_runs(store: Any) -> None:
    """`ctx.idempotency_key` is the row's key."""
    till = Till()
    await Executor(store=store).run_spec(till.spec, ARGS, in_run())
    assert till.keys == [(await rows(store))[0]["call_key"]]


async def test_a_once_key_makes_a_write_once_over_all_runs(store: Any) -> None:
    """Identity is tenant, tool and key, whatever the run."""
    till = Till(once_key=lambda args: args["order"])
    executor = Executor(store=store)
    for run in ("a", "b", "c"):
        assert await executor.run_spec(till.spec, ARGS, in_run(run)) == "charged"
    await executor.run_spec(till.spec, ARGS, in_run("a", tenant="other"))
    await executor.run_spec(till.spec, {"order": "B2", "amount": 5}, in_run("a"))
    assert len(till.ran) == 3


async def test_a_once_key_at_the_same_time(store: Any) -> None:
    """The second waits for the first and gets its outcome."""
    gate = asyncio.Event()
    till = Till(gate.wait, once_key=lambda args: args["order"])
    executor = Executor(store=store)
    both = [asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(r))) for r in "ab"]
    await until(lambda: len(till.ran) == 1)
    gate.set()
    assert await asyncio.gather(*both) == [True, True] and len(till.ran) == 1


async def test_an_approved_repeat_of_a_once_key_is_recorded(store: Any) -> None:
    """The unclear write's place is taken by the new one; the next call gets its outcome."""
    till = Till(ValueError("?"), once_key=lambda args: args["order"])
    executor = Executor(store=store, approval=FakeApproval(YES))
    with pytest.raises(ToolFailed):
        await executor.run_spec(till.spec, ARGS, in_run("a"))
    till.then = "charged"
    assert await executor.run_spec(till.spec, ARGS, in_run("b")) == "charged"
    assert await executor.run_spec(till.spec, ARGS, in_run("c")) == "charged"
    assert len(till.ran) == 2 and await endings(store) == ["ok"] and await is_whole(store)


# -- the endings of a write ------------------------------------------------------------------


async def test_a_write_that_returns_is_ok(store: Any) -> None:
    """The first ending."""
    await Executor(store=store).run_spec(Till().spec, ARGS, in_run())
    assert await endings(store) == ["ok"]


async def test_a_write_that_raises_a_tool_error_had_no_effect(store: Any) -> None:
    """The second: its author's promise; a repeat runs without a question."""
    till, executor = Till(ToolError("sold out")), Executor(store=store)
    with pytest.raises(ToolError, match="sold out"):
        await executor.run_spec(till.spec, ARGS, in_run())
    till.then = "charged"
    assert await executor.run_spec(till.spec, ARGS, in_run()) == "charged"
    assert await endings(store) == ["no-effect", "ok"]


async def test_a_promise_is_replayed_as_it_was_made(store: Any) -> None:
    """Kind and text of an author's own error come back."""

    class SoldOut(ToolError):
        kind = "sold-out"

    executor, till = Executor(store=store), Till(SoldOut("no A1 left"))
    with pytest.raises(SoldOut):
        await executor.run_spec(till.spec, ARGS, in_run())
    with pytest.raises(ToolError, match="no A1 left") as caught:
        await executor.run_spec(till.spec, ARGS, in_run(attempt=2))
    assert caught.value.kind == "sold-out" and not isinstance(caught.value, ToolFailed)


@pytest.mark.parametrize("error", [ValueError("x"), ToolFailed("x"), ToolTimeout("x")])
async def test_a_write_that_raises_anything_else_is_unknown(store: Any, error: Exception) -> None:
    """The third: nobody promised anything."""
    with pytest.raises(ToolError):
        await Executor(store=store).run_spec(Till(error).spec, ARGS, in_run())
    assert await endings(store) == ["unknown"]


async def test_a_write_that_times_out_is_unknown(store: Any) -> None:
    """It may have happened before it was stopped."""
    till = Till(lambda: asyncio.Event().wait(), timeout=0.01)
    with pytest.raises(ToolTimeout):
        await Executor(store=store).run_spec(till.spec, ARGS, in_run())
    assert await endings(store) == ["unknown"]


async def test_a_write_cancelled_after_entry_is_unknown(store: Any) -> None:
    """The cancellation passes through, after the ledger was told."""
    till = Till(lambda: asyncio.Event().wait())
    task = asyncio.create_task(Executor(store=store).run_spec(till.spec, ARGS, in_run()))
    await until(lambda: bool(till.ran))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await endings(store) == ["unknown"]


async def test_a_write_cancelled_before_entry_is_aborted(sqlite: Any) -> None:
    """While its intent is being written it has had no effect, holds nothing and may run again."""
    till, executor = Till(), Executor(store=sqlite, limits=RunLimits(max_calls=1))
    task = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run()))
    await turns(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = await rows(sqlite)
    assert [row["ending"] for row in found] in ([], ["aborted"]) and till.ran == []
    assert await executor.run_spec(till.spec, ARGS, in_run()) == "charged"


async def test_a_caller_that_leaves_during_the_intent_aborts_it(memory: Any) -> None:
    """Whatever the store does meanwhile, no call is left open."""

    class Slow(FaultyStore):
        """Answers only after its writes are done and the loop has turned."""

        async def write(self, op: Any) -> Any:
            done = await self.inner.write(op)
            await asyncio.Event().wait() if self.count == 0 else None
            return done

        def _is_due(self) -> bool:
            return False

    till = Till()
    task = asyncio.create_task(Executor(store=Slow(memory)).run_spec(till.spec, ARGS, in_run()))
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await endings(memory) == ["aborted"] and till.ran == []
    assert await is_whole(memory)


async def test_a_sync_write_that_no_thread_took_is_aborted(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out in the queue is no effect."""
    from agent_adapter.exec import run
    from agent_adapter.exec.threads import WorkerPool

    pool, gate = WorkerPool(2), threading.Event()
    monkeypatch.setattr(run, "pool", pool)
    busy = [asyncio.create_task(pool.run(gate.wait)) for _ in range(2)]
    await turns()
    ran: list[int] = []

    def act() -> None:
        """Acts."""
        ran.append(1)

    spec = ToolSpec.from_function(act, timeout=0.02)
    with pytest.raises(ToolTimeout):
        await Executor(store=store).run_spec(spec, {}, in_run())
    gate.set()
    await asyncio.gather(*busy)
    assert await endings(store) == ["aborted"] and ran == []


# -- errors of other calls -------------------------------------------------------------------


async def test_anothers_promise_is_not_this_tools(store: Any) -> None:
    """A tool that lets an inner call's error out has promised nothing about itself."""
    executor = Executor(store=store)
    inner = Till(ToolError("sold out"))
    outer = Till(lambda: executor.run_spec(inner.spec, ARGS, ToolContext()))
    with pytest.raises(ToolError, match="sold out"):
        await executor.run_spec(outer.spec, ARGS, in_run())
    assert [row["ending"] for row in await rows(store, run_id="run_1")] == ["unknown"]


async def test_anothers_refusal_is_not_this_tools_promise(store: Any) -> None:
    """Nor one that came before the inner function: a failed dependency, a busy pool, a replay."""
    from agent_adapter.core.errors import ToolBusy
    from agent_adapter.core.inject import Depends

    def broken() -> str:
        raise ValueError

    async def needy(x: Annotated[str, Depends(broken)]) -> None:
        """Needs something."""

    executor = Executor(store=store)
    spec = ToolSpec.from_function(needy)
    outer = Till(lambda: executor.run_spec(spec, {}, ToolContext()))
    with pytest.raises(ToolError, match="dependency"):
        await executor.run_spec(outer.spec, ARGS, in_run("a"))
    with pytest.raises(ToolBusy):
        await executor.run_spec(Till(ToolBusy("busy")).spec, ARGS, in_run("b"))
    assert await endings(store) == ["unknown", "unknown"]


async def test_hiding_a_secret_does_not_turn_a_doubt_into_a_promise(store: Any) -> None:
    """An inner time-out whose text holds this call's secret stays unknown."""

    async def pay(pin: Annotated[str, Secret()]) -> None:
        """Pays."""
        raise ToolTimeout("charge did not end within 1 s")

    with pytest.raises(ToolError) as caught:
        await Executor(store=store).run_spec(ToolSpec.from_function(pay), {"pin": "1"}, in_run())
    assert "1" not in str(caught.value) and caught.value.kind == "tool-timeout"
    assert await endings(store) == ["unknown"]


# -- unknown, repeated -----------------------------------------------------------------------


async def unknown_write(store: Any) -> Till:
    """A till whose first charge in `run_1` ended unknown."""
    till = Till(ValueError("?"))
    with pytest.raises(ToolFailed):
        await Executor(store=store).run_spec(till.spec, ARGS, in_run())
    till.then = "charged"
    return till


async def test_a_repeat_of_an_unknown_write_without_a_port_is_in_doubt(store: Any) -> None:
    """Nobody can be asked: it does not run."""
    till = await unknown_write(store)
    with pytest.raises(ToolInDoubt, match=r"nobody to ask.*ledger resolve call_"):
        await Executor(store=store).run_spec(till.spec, ARGS, in_run())
    assert len(till.ran) == 1


async def test_an_approved_repeat_runs_once_under_its_own_identity(store: Any) -> None:
    """The person was shown the earlier write."""
    till = await unknown_write(store)
    port = FakeApproval(YES)
    assert await Executor(store=store, approval=port).run_spec(till.spec, ARGS, in_run())
    (request,) = port.requests
    (first, second) = await rows(store)
    assert first["call_key"] in request.earlier[0] and "unknown" in request.earlier[0]
    assert (first["ending"], second["ending"]) == ("unknown", "ok")
    assert till.keys[1] == second["call_key"] != first["call_key"]


async def test_a_denied_repeat_does_not_run(store: Any) -> None:
    """No is no."""
    till = await unknown_write(store)
    with pytest.raises(ApprovalDenied, match="not today"):
        await Executor(store=store, approval=FakeApproval(NO)).run_spec(till.spec, ARGS, in_run())
    assert len(till.ran) == 1


async def test_other_arguments_and_other_runs_are_no_repeat(store: Any) -> None:
    """Only the same tool and digest in the run."""
    till, executor = await unknown_write(store), Executor(store=store)
    await executor.run_spec(till.spec, {"order": "B2", "amount": 5}, in_run())
    await executor.run_spec(till.spec, ARGS, in_run("run_2"))
    assert len(till.ran) == 3


async def test_one_question_covers_the_rule_and_the_repeat(store: Any) -> None:
    """A tool that always asks shows the earlier write in that question."""
    till = Till(ValueError("?"), confirm=True)
    port = FakeApproval(YES)
    executor = Executor(store=store, approval=port)
    with pytest.raises(ToolFailed):
        await executor.run_spec(till.spec, ARGS, in_run())
    till.then = "charged"
    await executor.run_spec(till.spec, ARGS, in_run())
    assert [len(request.earlier) for request in port.requests] == [0, 1]


async def test_an_approval_given_before_the_doubt_does_not_cover_it(store: Any) -> None:
    """A record that did not show the unclear write is not taken for the repeat."""
    till = Till(ValueError("?"), confirm=True)
    executor = Executor(store=store, approval=DeferredApproval(store))
    inbox = Inbox(store)
    loose = Executor(store=store, approval=FakeApproval(YES))
    gate = asyncio.Event()

    async def fail_late() -> None:
        await gate.wait()
        raise ValueError("?")

    till.then = fail_late
    first = asyncio.create_task(loose.run_spec(till.spec, ARGS, in_run()))
    await until(lambda: len(till.ran) == 1)
    with pytest.raises(Exception, match="approval required"):
        await executor.run_spec(till.spec, ARGS, in_run())
    (record,) = await inbox.list()
    await inbox.approve(record.id, reviewer="ann")
    gate.set()
    with pytest.raises(ToolFailed):
        await first
    till.then = "charged"
    with pytest.raises(Exception, match="approval required"):
        await executor.run_spec(till.spec, ARGS, in_run())
    (second,) = await inbox.list()
    assert second.earlier and len(till.ran) == 1


async def test_a_deferred_repeat_runs_after_its_approval(store: Any) -> None:
    """Pending, approved, then once."""
    till = await unknown_write(store)
    executor = Executor(store=store, approval=DeferredApproval(store))
    with pytest.raises(Exception, match="approval required"):
        await executor.run_spec(till.spec, ARGS, in_run())
    (record,) = await Inbox(store).list()
    assert record.earlier
    await Inbox(store).approve(record.id, reviewer="ann")
    assert await executor.run_spec(till.spec, ARGS, in_run()) == "charged"
    assert len(till.ran) == 2 and await is_whole(store)


async def test_a_resolved_write_that_happened_is_answered_from_the_record(store: Any) -> None:
    """With the result that the person gave."""
    till = await unknown_write(store)
    (row,) = await ledger.in_doubt(store)
    await ledger.resolve(store, row["call_key"], reviewer="ann", happened=True, result="was ok")
    executor = Executor(store=store)
    assert await executor.run_spec(till.spec, ARGS, in_run(attempt=2)) == "was ok"
    assert len(till.ran) == 1 and await is_whole(store)


async def test_a_resolved_write_that_did_not_happen_runs_again(store: Any) -> None:
    """Under the same key."""
    till = await unknown_write(store)
    (row,) = await ledger.in_doubt(store)
    await ledger.resolve(store, row["call_key"], reviewer="ann", happened=False)
    executor = Executor(store=store)
    assert await executor.run_spec(till.spec, ARGS, in_run(attempt=2)) == "charged"
    assert till.keys[0] == till.keys[1] and await is_whole(store)


# -- attempts --------------------------------------------------------------------------------

OTHER = {"order": "B2", "amount": 1}


async def test_a_diverging_attempt_without_a_port_is_in_doubt(store: Any) -> None:
    """A write that matches nothing while earlier ones stand alone."""
    till, executor = Till(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS, in_run())
    with pytest.raises(ToolInDoubt, match="diverges from an earlier one"):
        await executor.run_spec(till.spec, OTHER, in_run(attempt=2))
    assert till.ran == [("A1", 5)]


async def test_a_diverging_attempt_shows_the_earlier_writes(store: Any) -> None:
    """A person sees what stands and may let it run."""
    till, port = Till(), FakeApproval(YES)
    executor = Executor(store=store, approval=port)
    await executor.run_spec(till.spec, ARGS, in_run())
    await executor.run_spec(till.spec, OTHER, in_run(attempt=2))
    (request,) = port.requests
    assert "charge" in request.earlier[0] and "ok" in request.earlier[0]
    assert till.ran == [("A1", 5), ("B2", 1)]


async def test_an_attempt_that_repeats_everything_first_does_not_diverge(store: Any) -> None:
    """What the first attempt did not come to runs after what it did."""
    till, executor = Till(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS, in_run())
    await executor.run_spec(till.spec, ARGS, in_run(attempt=2))
    await executor.run_spec(till.spec, OTHER, in_run(attempt=2))
    assert till.ran == [("A1", 5), ("B2", 1)]


async def test_writes_without_effect_do_not_count_as_earlier_ones(store: Any) -> None:
    """A refused write does not make the next attempt diverge."""
    till, executor = Till(ToolError("sold out")), Executor(store=store)
    with pytest.raises(ToolError):
        await executor.run_spec(till.spec, ARGS, in_run())
    till.then = "charged"
    assert await executor.run_spec(till.spec, OTHER, in_run(attempt=2)) == "charged"


async def test_a_cancelled_read_is_run_again_at_the_next_attempt(store: Any) -> None:
    """A cancellation is no outcome to repeat for ever."""
    till = Till(lambda: asyncio.Event().wait(), effects="read")
    task = asyncio.create_task(Executor(store=store).run_spec(till.spec, ARGS, in_run()))
    await until(lambda: bool(till.ran))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    till.then = "found"
    assert await Executor(store=store).run_spec(till.spec, ARGS, in_run(attempt=2)) == "found"


async def test_a_failed_read_is_replayed_as_it_failed(store: Any) -> None:
    """An outcome is an outcome."""
    till, executor = Till(ValueError("x"), effects="read"), Executor(store=store)
    for attempt in (1, 2):
        with pytest.raises(ToolFailed, match="charge failed: ValueError"):
            await executor.run_spec(till.spec, ARGS, in_run(attempt=attempt))
    assert len(till.ran) == 1


# -- an outcome that cannot be recorded ------------------------------------------------------


async def test_an_outcome_that_cannot_be_recorded_is_a_doubt_with_the_value(memory: Any) -> None:
    """The developer gets what the tool returned; the model does not."""
    executor = Executor(store=FaultyStore(memory, fail_at=2))
    with pytest.raises(ToolInDoubt, match="do not repeat it") as caught:
        await executor.run_spec(Till("secret receipt").spec, ARGS, in_run())
    assert caught.value.value == "secret receipt" and "receipt" not in str(caught.value)
    assert caught.value.call_key == (await rows(memory))[0]["call_key"]


async def test_later_writes_are_refused_before_their_intent(memory: Any) -> None:
    """While the outcome is not recorded nothing else is begun."""
    executor = Executor(store=FaultyStore(memory, fail_at=2, lasting=True))
    with pytest.raises(ToolInDoubt):
        await executor.run_spec(Till().spec, ARGS, in_run())
    later = Till()
    with pytest.raises(ToolError, match="writes are refused"):
        await executor.run_spec(later.spec, OTHER, in_run())
    assert later.ran == [] and len(await rows(memory)) == 1


async def test_writes_go_on_once_the_outcome_is_recorded(memory: Any) -> None:
    """The store recovers: first what was lost, then the new call."""
    executor = Executor(store=FaultyStore(memory, fail_at=2))
    with pytest.raises(ToolInDoubt):
        await executor.run_spec(Till().spec, ARGS, in_run())
    assert await executor.run_spec(Till().spec, OTHER, in_run()) == "charged"
    assert await endings(memory) == ["ok", "ok"] and await is_whole(memory)


async def test_many_writes_at_once_settle_what_was_lost(memory: Any) -> None:
    """Two lost outcomes and two callers: each is written, neither is dropped."""
    gate = asyncio.Event()
    faulty = FaultyStore(memory)
    till, executor = Till(gate.wait), Executor(store=faulty)
    lost = [asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(name))) for name in "ab"]
    await until(lambda: len(till.ran) == 2)
    faulty._fail_at, faulty._lasting = faulty.count + 1, True
    gate.set()
    assert all(
        isinstance(e, ToolInDoubt) for e in await asyncio.gather(*lost, return_exceptions=True)
    )
    faulty._fail_at = None
    till.then = "charged"
    again = [executor.run_spec(till.spec, OTHER, in_run(name)) for name in "cde"]
    assert await asyncio.gather(*again) == ["charged"] * 3
    assert await endings(memory) == ["ok"] * 5


async def test_an_intent_that_cannot_be_written_starts_nothing(memory: Any) -> None:
    """The store's error comes out and the function was not entered."""
    till = Till()
    with pytest.raises(StoreError):
        await Executor(store=FaultyStore(memory, fail_at=1)).run_spec(till.spec, ARGS, in_run())
    assert till.ran == []


async def test_a_cancellation_passes_though_the_ledger_cannot_be_told(memory: Any) -> None:
    """The store's trouble never takes its place; the outcome is kept for later."""
    faulty = FaultyStore(memory)
    till, executor = Till(lambda: asyncio.Event().wait()), Executor(store=faulty)
    task = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run()))
    await until(lambda: bool(till.ran))
    faulty._fail_at = faulty.count + 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    till.then = "charged"
    await executor.run_spec(till.spec, OTHER, in_run())
    assert sorted(map(str, await endings(memory))) == ["ok", "unknown"]


# -- who waits -------------------------------------------------------------------------------


async def test_a_waiter_that_leaves_disturbs_nobody(store: Any) -> None:
    """The running call and the other waiters go on."""
    gate = asyncio.Event()
    till, executor = Till(gate.wait), Executor(store=store)
    known: Any = {"call_id": "c", "reexecutes": True}
    tasks = []
    for _ in range(3):
        tasks.append(asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(**known))))
        await until(lambda: len(till.ran) == 1)
        await turns(10)
    tasks[1].cancel()
    gate.set()
    assert await asyncio.gather(*tasks, return_exceptions=True) != [True] * 3
    assert tasks[0].result() is tasks[2].result() is True and len(till.ran) == 1


async def test_a_waiter_for_a_cancelled_write_is_told_of_the_doubt(store: Any) -> None:
    """It does not get an outcome that nobody knows."""
    till, executor = Till(lambda: asyncio.Event().wait()), Executor(store=store)
    known: Any = {"call_id": "c", "reexecutes": True}
    first = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(**known)))
    await until(lambda: len(till.ran) == 1)
    second = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run(**known)))
    await turns(10)
    first.cancel()
    with pytest.raises(ToolInDoubt):
        await second


def test_a_closed_loop_leaves_the_call_for_the_next(tmp_path: Any) -> None:
    """A loop that ends in the middle of a write leaves it unknown, never open."""
    from agent_adapter.store.sqlite import SqliteStore

    store, till = SqliteStore(tmp_path / "state.db"), Till(lambda: asyncio.Event().wait())

    async def start() -> None:
        task = asyncio.create_task(Executor(store=store).run_spec(till.spec, ARGS, in_run()))
        await until(lambda: bool(till.ran))
        del task

    asyncio.run(start())

    async def look() -> list[str | None]:
        found = await endings(store)
        await store.aclose()
        return found

    assert asyncio.run(look()) == ["unknown"]


def test_an_executor_serves_one_loop_after_the_other() -> None:
    """Nothing of a closed loop is left in its way."""
    executor, till = Executor(store=MemoryStore()), Till()
    for _ in range(3):
        asyncio.run(executor.run_spec(till.spec, ARGS, in_run()))
    assert len(till.ran) == 3


# -- results ---------------------------------------------------------------------------------


class Receipt(BaseModel):
    """A model."""

    total: Decimal


@dataclass
class Note:
    """A dataclass."""

    text: str


@pytest.mark.parametrize(
    "value",
    [
        Handoff("support", "angry"),
        Finish("done", "ok"),
        Receipt(total=Decimal("1.10")),
        Note("x"),
        Decimal("1.10"),
        {"a": [1, 1.0, True, None, "1"]},
        [b"\x00\xff", {1, 2}],
        2**70,
        float("inf"),
        None,
    ],
    ids=repr,
)
async def test_a_replay_gives_the_same_typed_value(store: Any, value: Any) -> None:
    """Of the same type, equal, and not the same object where it can change."""

    async def give() -> type(value):  # type: ignore[valid-type]
        """Gives."""
        return value

    give.__annotations__["return"] = type(value)
    spec, executor = ToolSpec.from_function(give), Executor(store=store)
    await executor.run_spec(spec, {}, in_run())
    again = await executor.run_spec(spec, {}, in_run(attempt=2))
    assert type(again) is type(value) and again == value


async def test_a_result_that_cannot_be_kept_is_given_once(store: Any) -> None:
    """The first caller gets the object; a replay says that it was done."""
    till, executor = Till(object()), Executor(store=store)
    assert await executor.run_spec(till.spec, ARGS, in_run()) is till.then
    with pytest.raises(ToolInDoubt, match="was done; its result could not be kept"):
        await executor.run_spec(till.spec, ARGS, in_run(attempt=2))


async def test_an_erased_result_is_still_known_to_be_done(store: Any) -> None:
    """A replay does not run it again."""
    till, executor = Till(), Executor(store=store)
    await executor.run_spec(till.spec, ARGS, in_run())
    assert await ledger.erase(store, "run_1") == 2
    with pytest.raises(ToolInDoubt, match="no longer kept"):
        await executor.run_spec(till.spec, ARGS, in_run(attempt=2))
    assert len(till.ran) == 1 and await is_whole(store)


async def test_retries_are_one_call(store: Any) -> None:
    """One row, one entry, however many tries."""
    tries: list[int] = []

    async def fetch(ctx: ToolContext) -> int:
        """Fetches."""
        tries.append(ctx.try_number)
        if len(tries) < 3:
            raise ConnectionError
        return len(tries)

    policy = RetryPolicy(wait_initial=0, wait_max=0)
    spec = ToolSpec.from_function(fetch, effects="idempotent", retries=policy)
    assert await Executor(store=store).run_spec(spec, {}, in_run()) == 3
    assert await kinds(store) == ["call"]


async def test_the_stop_switch_stops_writes_before_their_intent(store: Any) -> None:
    """Reads go on."""
    await store.write(lambda tx: tx.insert("meta", {"name": "writes-stopped", "value": "audit"}))
    write, read = Till(), Till(effects="read")
    with pytest.raises(ApprovalDenied, match=r"all writes are stopped \(audit\)"):
        await Executor(store=store).run_spec(write.spec, ARGS, in_run())
    assert await Executor(store=store).run_spec(read.spec, ARGS, in_run()) == "charged"
    assert write.ran == []


async def test_an_intent_is_all_or_nothing(store: Any) -> None:
    """A limit that is passed leaves neither a row nor a taken approval."""
    intent = Intent(
        run_id="r", tool="t", digest="d", effects="write", fingerprint="f", arguments=b"{}"
    )
    from agent_adapter.store.intents import Reserve

    reserve = Reserve(limits=RunLimits(max_calls=0), run_id="r")
    begun = await store.write(lambda tx: begin_call(tx, intent, reserve=reserve))
    assert begun.state == "limit" and await rows(store) == [] and await kinds(store, "r") == []
