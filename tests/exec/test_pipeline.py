"""The steps of one call, in their order."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as validated

from agent_adapter.core.context import ToolContext
from agent_adapter.core.errors import (
    AgentAdapterError,
    GuardrailBlocked,
    RunLimitExceeded,
    ToolArgsInvalid,
    ToolBusy,
    ToolDefinitionError,
    ToolError,
    ToolFailed,
    ToolNotFound,
    ToolTimeout,
)
from agent_adapter.core.events import (
    CallFinished,
    CallReplayed,
    CallStarted,
    ToolEmitted,
)
from agent_adapter.core.inject import Depends
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import RetryPolicy, RunLimits
from agent_adapter.exec import hooks as hooks_module
from agent_adapter.exec import ledger
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.threads import WorkerPool, pool
from tests.exec.shop import (
    ARGS,
    YES,
    Till,
    another_process,
    endings,
    in_run,
    kinds,
    rows,
    turns,
    until,
)
from tests.fakes.approval import FakeApproval
from tests.fakes.hooks import RaisingHook, RecordingHook

pytestmark = pytest.mark.anyio


class Rewrite:
    """A hook that changes the arguments, and the result."""

    def __init__(self, change: Any = None, result: Any = None) -> None:
        self.change = change
        self.result = result

    def before(self, call: Any) -> Any:
        """The arguments with the change, where there is one."""
        return None if self.change is None else {**call.arguments, **self.change}

    async def after(self, call: Any, result: Any) -> Any:
        """The result, or what stands for it."""
        return result if self.result is None else self.result


# -- the order -------------------------------------------------------------------------------


async def test_the_steps_come_in_their_order(memory: Any) -> None:
    """Hook, then person, then intent, then function, then hook, then outcome."""
    order: list[str] = []
    till = Till(lambda: order.append("function"), confirm=True)

    class Watch(RecordingHook):
        def before(self, call: Any) -> None:
            order.append("before")

        def after(self, call: Any, result: Any) -> Any:
            order.append("after")

    port = FakeApproval(lambda request: order.append("person") or YES)
    await Executor(approval=port, store=memory, hooks=[Watch()]).run_spec(till.spec, ARGS, in_run())
    assert order == ["before", "person", "function", "after"]
    assert await kinds(memory) == ["intent", "outcome"]


async def test_limits_come_before_validation(memory: Any) -> None:
    """A run without calls left does not even look at the arguments."""
    executor = Executor(store=memory, limits=RunLimits(max_calls=0))
    with pytest.raises(RunLimitExceeded):
        await executor.run_spec(Till().spec, {"order": 1}, in_run())


async def test_validation_comes_before_hooks(memory: Any) -> None:
    """A hook never sees arguments that do not fit."""
    hook = RecordingHook()
    with pytest.raises(ToolArgsInvalid):
        await Executor(store=memory, hooks=[hook]).run_spec(Till().spec, {"order": "A1"})
    assert hook.seen == []


async def test_nobody_is_asked_about_a_blocked_call(memory: Any) -> None:
    """A guard comes before the person."""
    port = FakeApproval(YES)
    hook = RaisingHook("before", GuardrailBlocked("no"))
    with pytest.raises(GuardrailBlocked):
        await Executor(store=memory, approval=port, hooks=[hook]).run_spec(
            Till(confirm=True).spec, ARGS
        )
    assert port.requests == []


async def test_validation_runs_once(memory: Any) -> None:
    """What validation gave is what is shown, recorded and passed."""
    looked: list[int] = []

    @validated
    class Line:
        count: int

        @field_validator("count")
        @classmethod
        def _look(cls, value: int) -> int:
            looked.append(value)
            return value

    async def order(line: Line) -> int:
        """Orders."""
        return line.count

    spec = ToolSpec.from_function(order)
    assert await Executor(store=memory).run_spec(spec, {"line": {"count": 3}}) == 3
    assert looked == [3]


# -- hooks -----------------------------------------------------------------------------------


async def test_a_hook_may_rewrite_the_arguments(memory: Any) -> None:
    """The function gets what the hook gave."""
    till = Till()
    await Executor(store=memory, hooks=[Rewrite({"amount": 7})]).run_spec(till.spec, ARGS)
    assert till.ran == [("A1", 7)]


async def test_rewritten_arguments_are_validated_again(memory: Any) -> None:
    """A hook cannot pass what the schema refuses."""
    till = Till()
    executor = Executor(store=memory, hooks=[Rewrite({"amount": "seven"})])
    with pytest.raises(ToolArgsInvalid, match="amount"):
        await executor.run_spec(till.spec, ARGS)
    assert till.ran == []


async def test_a_hook_that_gives_no_arguments_blocks(memory: Any) -> None:
    """Anything but a mapping in the place of arguments is a refusal."""

    class Odd:
        def before(self, call: Any) -> Any:
            return "yes"

    with pytest.raises(GuardrailBlocked, match="str"):
        await Executor(store=memory, hooks=[Odd()]).run_spec(Till().spec, ARGS)


async def test_a_hook_gets_a_copy(memory: Any) -> None:
    """Changing the view changes nothing."""
    till = Till()

    class Sly:
        def before(self, call: Any) -> None:
            call.arguments["amount"] = 999

    await Executor(store=memory, hooks=[Sly()]).run_spec(till.spec, ARGS)
    assert till.ran == [("A1", 5)]


@pytest.mark.parametrize("error", [ValueError("x"), TimeoutError(), ToolError("x")])
async def test_a35_a_guard_that_raises_blocks(memory: Any, error: Exception) -> None:
    """A35: Whatever a guard raises, the call is refused and nothing runs."""
    till = Till()
    executor = Executor(store=memory, hooks=[RaisingHook("before", error)])
    with pytest.raises(GuardrailBlocked):
        await executor.run_spec(till.spec, ARGS)
    assert till.ran == []


async def test_a35_a_guard_that_hangs_blocks(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A35: A guard that does not answer refuses."""
    monkeypatch.setattr(hooks_module, "HOOK_SECONDS", 0.01)
    till = Till()

    class Hang:
        async def before(self, call: Any) -> None:
            await asyncio.Event().wait()

    with pytest.raises(GuardrailBlocked, match="in time"):
        await Executor(store=memory, hooks=[Hang()]).run_spec(till.spec, ARGS)
    assert till.ran == []


async def test_after_hooks_redact_and_the_record_holds_the_redacted(store: Any) -> None:
    """A replay gives what the hook gave."""
    till = Till("4111 1111")
    executor = Executor(store=store, hooks=[Rewrite(result="[redacted]")])
    assert await executor.run_spec(till.spec, ARGS, in_run()) == "[redacted]"
    again = in_run(attempt=2)
    assert await Executor(store=store).run_spec(till.spec, ARGS, again) == "[redacted]"
    assert len(till.ran) == 1


async def test_after_hooks_run_last_first(memory: Any) -> None:
    """The outermost hook has the last word."""
    executor = Executor(store=memory, hooks=[Rewrite(result="outer"), Rewrite(result="inner")])
    assert await executor.run_spec(Till().spec, ARGS) == "outer"


async def test_a_failing_after_hook_withholds_the_result(store: Any) -> None:
    """The write is done, never in doubt, and a replay gives the same."""
    till = Till()
    executor = Executor(store=store, hooks=[RaisingHook("after", ValueError("x"))])
    with pytest.raises(GuardrailBlocked, match="the call was done; its result is withheld"):
        await executor.run_spec(till.spec, ARGS, in_run())
    assert await endings(store) == ["ok"]
    with pytest.raises(GuardrailBlocked, match="the call was done; its result is withheld"):
        await Executor(store=store).run_spec(till.spec, ARGS, in_run(attempt=2))
    assert len(till.ran) == 1


async def test_a_call_cancelled_in_its_after_hook_is_done(store: Any) -> None:
    """What happened has happened; its replay says so and does not call it a failure."""
    till = Till()
    inside = asyncio.Event()

    class Slow:
        async def after(self, call: Any, result: Any) -> Any:
            inside.set()
            await asyncio.Event().wait()

    executor = Executor(store=store, hooks=[Slow()])
    task = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run()))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await endings(store) == ["ok"]
    with pytest.raises(GuardrailBlocked, match="was done"):
        await Executor(store=store).run_spec(till.spec, ARGS, in_run(attempt=2))


async def test_a_hook_says_to_which_tools_it_applies(memory: Any) -> None:
    """`applies_to` is asked once per tool."""
    asked: list[str] = []

    class Picky(RecordingHook):
        def applies_to(self, spec: ToolSpec) -> bool:
            asked.append(spec.name)
            return False

    hook, till = Picky(), Till()
    executor = Executor(store=memory, hooks=[hook])
    await executor.run_spec(till.spec, ARGS)
    await executor.run_spec(till.spec, ARGS)
    assert hook.seen == [] and set(asked) == {"charge"} and len(asked) <= 2


# -- threads and time ------------------------------------------------------------------------

_who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


async def test_a_sync_tool_runs_in_a_thread_with_the_context(memory: Any) -> None:
    """Context variables reach it; the loop stays free."""

    def whoami() -> list[str]:
        """Who."""
        return [_who.get(), threading.current_thread().name]

    _who.set("ann")
    who, thread = await Executor(store=memory).run_spec(ToolSpec.from_function(whoami), {})
    assert who == "ann" and thread.startswith("agent-adapter-tool")


async def test_sync_tools_at_the_same_time_have_threads_of_their_own(memory: Any) -> None:
    """Two calls that wait for each other both get on, with one idle thread or none."""
    meet = threading.Barrier(2, timeout=60)

    def wait() -> int:
        """Meets the other."""
        return meet.wait()

    def nothing() -> None:
        """Leaves one idle thread."""

    executor = Executor(store=memory)
    await executor.run_spec(ToolSpec.from_function(nothing), {})
    spec = ToolSpec.from_function(wait, effects="read")
    both = await asyncio.gather(executor.run_spec(spec, {}), executor.run_spec(spec, {}))
    assert sorted(both) == [0, 1]


async def test_a_pool_gives_every_waiting_job_a_thread() -> None:
    """One idle thread does not hold up two jobs."""
    small = WorkerPool(4)
    await small.run(lambda: None)
    await until(lambda: small._idle == 1)
    meet = threading.Barrier(2, timeout=60)
    assert sorted(await asyncio.gather(small.run(meet.wait), small.run(meet.wait))) == [0, 1]


async def test_a_job_given_up_before_it_began_never_runs() -> None:
    """A full pool does not run later what nobody waits for any more."""
    pool, gate, ran = WorkerPool(2), threading.Event(), []
    busy = [asyncio.create_task(pool.run(gate.wait)) for _ in range(2)]
    await turns()
    second = asyncio.create_task(pool.run(lambda: ran.append(1)))
    await turns()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    await asyncio.gather(*busy)
    await pool.run(lambda: None)
    assert ran == [] and pool.lost == 0


async def test_an_async_tool_times_out(memory: Any) -> None:
    """The error says after how long."""
    till = Till(lambda: asyncio.Event().wait(), timeout=0.01)
    with pytest.raises(ToolTimeout, match=r"within 0\.01 s"):
        await Executor(store=memory).run_spec(till.spec, ARGS)


async def test_the_tools_own_timeout_error_is_a_failure(memory: Any) -> None:
    """A `TimeoutError` that the tool raises is not our time-out."""
    with pytest.raises(ToolFailed, match="TimeoutError"):
        await Executor(store=memory).run_spec(Till(TimeoutError(), timeout=5).spec, ARGS)


async def test_a_sync_tool_that_timed_out_reports_late(store: Any) -> None:
    """The call is unknown; what the thread did afterwards is evidence, not an outcome."""
    gate, ended = threading.Event(), threading.Event()

    def slow() -> str:
        """Slow."""
        gate.wait(60)
        ended.set()
        return "done after all"

    spec = ToolSpec.from_function(slow, timeout=0.5)
    with pytest.raises(ToolTimeout):
        await Executor(store=store).run_spec(spec, {}, in_run())
    assert await endings(store) == ["unknown"]
    gate.set()
    async with asyncio.timeout(60):
        while "late-outcome" not in await kinds(store):
            await asyncio.sleep(0.001)
    assert await endings(store) == ["unknown"]


async def test_a_late_report_to_a_closed_store_is_dropped(memory: Any) -> None:
    """The worker thread survives and serves the next tool."""
    gate, done = threading.Event(), threading.Event()

    def slow() -> None:
        """Slow."""
        gate.wait(60)
        done.set()

    with pytest.raises(ToolTimeout):
        await Executor(store=memory).run_spec(ToolSpec.from_function(slow, timeout=0.5), {})
    await memory.aclose()
    lost = pool.lost
    gate.set()
    await until(lambda: done.is_set() and pool.lost == lost - 1)
    assert await pool.run(lambda: "next") == "next"


async def test_a_busy_pool_refuses(memory: Any) -> None:
    """With half the threads lost to tools that timed out, new work is refused."""
    pool = WorkerPool(2)
    begun, gate = threading.Event(), threading.Event()
    lost = asyncio.ensure_future(pool.run(lambda: begun.set() or gate.wait()))
    await asyncio.to_thread(begun.wait, 60)
    lost.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lost
    with pytest.raises(ToolBusy, match="1 of 2"):
        await pool.run(lambda: None)
    gate.set()


async def test_the_deadline_is_on_the_loops_clock(memory: Any) -> None:
    """A tool can see how long it has."""
    till = Till(timeout=30)
    await Executor(store=memory).run_spec(till.spec, ARGS)
    deadline = till.contexts[0].deadline
    assert deadline is not None and 0 < deadline - asyncio.get_running_loop().time() <= 30


# -- retries ---------------------------------------------------------------------------------

AT_ONCE = RetryPolicy(attempts=3, wait_initial=0, wait_max=0)


class Flaky:
    """Fails a number of times, then gives the number of the try."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures = failures
        self.tries: list[int] = []
        self.keys: set[str | None] = set()
        self.error = error or ConnectionError("gone")

    def spec(self, **policy: Any) -> ToolSpec:
        """The tool, under that policy."""

        async def fetch(ctx: ToolContext) -> int:
            """Fetches."""
            self.tries.append(ctx.try_number)
            self.keys.add(ctx.idempotency_key)
            if len(self.tries) <= self.failures:
                raise self.error
            return ctx.try_number

        return ToolSpec.from_function(fetch, **policy)


@pytest.mark.parametrize("effects", ["read", "idempotent"])
async def test_a_repeatable_tool_is_tried_again(memory: Any, effects: str) -> None:
    """Within one call: one row, one key, a number per try."""
    flaky = Flaky(2)
    spec = flaky.spec(effects=effects, retries=AT_ONCE)
    assert await Executor(store=memory).run_spec(spec, {}) == 3
    assert flaky.tries == [1, 2, 3] and len(flaky.keys) == 1
    assert await endings(memory) == ["ok"]


async def test_the_last_failure_is_the_calls(memory: Any) -> None:
    """After the last try its error comes out."""
    flaky = Flaky(9)
    with pytest.raises(ToolFailed, match="ConnectionError"):
        await Executor(store=memory).run_spec(flaky.spec(effects="read", retries=AT_ONCE), {})
    assert flaky.tries == [1, 2, 3]


async def test_what_the_model_may_read_is_not_tried_again(memory: Any) -> None:
    """A `ToolError` is an answer."""
    flaky = Flaky(9, ToolError("no such order"))
    with pytest.raises(ToolError, match="no such order"):
        await Executor(store=memory).run_spec(flaky.spec(effects="read", retries=AT_ONCE), {})
    assert flaky.tries == [1]


async def test_only_the_named_exceptions_are_tried_again(memory: Any) -> None:
    """`on` chooses."""
    flaky = Flaky(9, KeyError("x"))
    policy = RetryPolicy(attempts=3, wait_initial=0, wait_max=0, on=(ConnectionError,))
    with pytest.raises(ToolFailed):
        await Executor(store=memory).run_spec(flaky.spec(effects="read", retries=policy), {})
    assert flaky.tries == [1]


async def test_waits_are_jittered_and_bounded(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between tries the call waits up to `wait_max`, never the same each time."""
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("asyncio.sleep", note)
    policy = RetryPolicy(attempts=6, wait_initial=1, wait_max=4)
    await Executor(store=memory).run_spec(Flaky(5).spec(effects="read", retries=policy), {})
    assert len(waits) == 5 and all(0 <= wait <= 4 for wait in waits) and len(set(waits)) > 1


# -- contexts and ids ------------------------------------------------------------------------


async def test_a_context_serves_one_call(memory: Any) -> None:
    """A second use says what to do."""
    ctx, executor = in_run(), Executor(store=memory)
    await executor.run_spec(Till().spec, ARGS, ctx)
    with pytest.raises(AgentAdapterError, match="make a new one for each call"):
        await executor.run_spec(Till().spec, ARGS, ctx)


async def test_missing_ids_are_made(memory: Any) -> None:
    """A call without a run has a fresh one."""
    till, executor = Till(), Executor(store=memory)
    await executor.run_spec(till.spec, ARGS)
    await executor.run_spec(till.spec, ARGS)
    first, second = till.contexts
    assert first.run_id != second.run_id and first.call_id != second.call_id
    assert (first.run_id or "").startswith("run_")


async def test_a_given_call_id_wins(memory: Any) -> None:
    """`call_id=` names the call."""
    till = Till()
    await Executor(store=memory).run_spec(till.spec, ARGS, in_run(call_id="a"), call_id="b")
    assert till.contexts[0].call_id == "b"


async def test_an_unknown_tool_is_not_found(memory: Any) -> None:
    """Without a registry, too, the error says what to do."""
    with pytest.raises(ToolNotFound, match="no registry"):
        await Executor(store=memory).run("charge", {})
    with pytest.raises(ToolNotFound, match="charge"):
        await Executor(ToolRegistry(), store=memory).run("charge", {})


# -- nested runs -----------------------------------------------------------------------------


async def test_a_tool_starts_a_run_of_its_own(memory: Any) -> None:
    """The inner call inherits principal, tenant, thread and attempt, and has a parent."""
    inner = Till()
    executor = Executor(store=memory)
    outer = Till(lambda: executor.run_spec(inner.spec, ARGS, ToolContext()))
    ctx = in_run(principal="bob", tenant="t", thread_id="th", attempt=2)
    await executor.run_spec(outer.spec, ARGS, ctx)
    found = inner.contexts[0]
    assert (found.principal, found.tenant, found.thread_id) == ("bob", "t", "th")
    assert found.attempt == 2 and found.parent_call_id == outer.contexts[0].call_id
    assert found.run_id not in (None, "run_1")


async def test_a_sub_run_is_the_same_when_its_call_is_run_again(sqlite: Any, clock: Any) -> None:
    """The second attempt of a whole run finds what its tools did before the process died."""
    inner = Till(effects="write")
    outer = Till(effects="read")

    async def through(store: Any, attempt: int) -> Any:
        executor = Executor(store=store)
        outer.then = lambda: executor.run_spec(inner.spec, ARGS, ToolContext())
        return await executor.run_spec(outer.spec, ARGS, in_run(attempt=attempt))

    async with another_process(sqlite, clock) as other:
        first = await through(other, 1)
        await other.write(lambda tx: tx.delete("calls", {"run_id": "run_1"}))
    assert await through(sqlite, 2) == first
    assert len(inner.ran) == 1


async def test_a_nested_call_cannot_choose_its_principal(memory: Any) -> None:
    """A tool acts for whom it was called."""
    inner = Till()
    executor = Executor(store=memory)
    nested = ToolContext(run_id="theirs", principal="root")
    outer = Till(lambda: executor.run_spec(inner.spec, ARGS, nested))
    await executor.run_spec(outer.spec, ARGS, in_run(principal="bob"))
    assert inner.contexts[0].principal == "bob"
    assert inner.contexts[0].extras["native_run_id"] == "theirs"


async def test_a_run_scope_names_the_run(memory: Any) -> None:
    """Calls without a run of their own belong to it; others keep theirs."""
    till, executor = Till(), Executor(store=memory)
    async with executor.run_scope("run_s", "bob", thread_id="th", tenant="t"):
        await executor.run_spec(till.spec, ARGS)
        await executor.run_spec(till.spec, ARGS, in_run("mine"))
    await executor.run_spec(till.spec, ARGS)
    runs = [ctx.run_id for ctx in till.contexts]
    assert runs[:2] == ["run_s", "mine"] and runs[2] not in ("run_s", "mine")
    assert till.contexts[0].principal == "bob" and till.contexts[2].principal is None


async def test_a_run_scope_brings_limits(memory: Any) -> None:
    """They hold for the calls inside."""
    executor = Executor(store=memory)
    async with executor.run_scope("run_s", limits=RunLimits(max_calls=1)):
        await executor.run_spec(Till().spec, ARGS)
        with pytest.raises(RunLimitExceeded, match="max_calls=1"):
            await executor.run_spec(Till().spec, ARGS)


# -- events ----------------------------------------------------------------------------------


async def test_watchers_hear_of_a_call(memory: Any) -> None:
    """Started and finished, with how it ended; until they stop."""
    executor, heard = Executor(store=memory), []
    stop = executor.subscribe(heard.append)
    await executor.run_spec(Till().spec, ARGS, in_run(call_id="c"))
    assert [type(event) for event in heard] == [CallStarted, CallFinished]
    assert heard[1].ending == "ok" and heard[1].call_id == "c" and heard[1].call_key
    stop()
    await executor.run_spec(Till().spec, ARGS)
    assert len(heard) == 2


async def test_watchers_hear_of_a_failure_and_of_a_replay(memory: Any) -> None:
    """The kind of the error, not its text."""
    executor, heard = Executor(store=memory), []
    executor.subscribe(heard.append)
    with pytest.raises(ToolFailed):
        await executor.run_spec(Till(ValueError("x")).spec, ARGS, in_run("a"))
    assert (heard[-1].ending, heard[-1].error_kind) == ("unknown", "tool-failed")
    till = Till()
    await executor.run_spec(till.spec, ARGS, in_run())
    await executor.run_spec(till.spec, ARGS, in_run(attempt=2))
    assert CallReplayed in [type(event) for event in heard]


async def test_a_watcher_that_raises_is_only_logged(memory: Any) -> None:
    """Watching never breaks a call."""
    executor = Executor(store=memory)
    executor.subscribe(lambda event: 1 / 0)
    assert await executor.run_spec(Till().spec, ARGS) == "charged"


async def test_a_tool_emits_events(memory: Any) -> None:
    """They reach the watchers with the call they came from."""
    executor, heard = Executor(store=memory), []
    executor.subscribe(heard.append)
    till = Till()
    till.then = lambda: till.contexts[0].emit({"done": 0.5})
    await executor.run_spec(till.spec, ARGS, in_run(call_id="c"))
    emitted = [event for event in heard if isinstance(event, ToolEmitted)]
    assert [(event.event, event.call_id) for event in emitted] == [({"done": 0.5}, "c")]


# -- dependencies and generators -------------------------------------------------------------


async def test_dependencies_resolve_before_the_intent_and_end_after_the_outcome(
    sqlite: Any,
) -> None:
    """What the ledger holds at each moment says so."""
    seen: list[list[str]] = []

    async def connection() -> AsyncIterator[str]:
        seen.append(await kinds(sqlite))
        yield "connected"
        seen.append(await kinds(sqlite))

    async def send(link: Annotated[str, Depends(connection)]) -> str:
        """Sends."""
        return link

    spec = ToolSpec.from_function(send)
    assert await Executor(store=sqlite).run_spec(spec, {}, in_run()) == "connected"
    assert seen == [[], ["intent", "outcome"]]


async def test_a_failing_dependency_stops_the_call(memory: Any) -> None:
    """Nothing ran: the error is one that the model may read, without the provider's text."""

    def broken() -> str:
        raise ValueError("postgres://user:pw@host")

    async def send(link: Annotated[str, Depends(broken)]) -> str:
        """Sends."""
        return link

    with pytest.raises(ToolError, match=r"a dependency failed \(ValueError\)") as caught:
        await Executor(store=memory).run_spec(ToolSpec.from_function(send), {}, in_run())
    assert "pw" not in str(caught.value) and await kinds(memory) == ["refused"]


async def test_a_failing_tear_down_is_only_logged(
    memory: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The call has ended by then."""

    def link() -> Iterator[str]:
        yield "x"
        raise ValueError("late")

    async def send(link: Annotated[str, Depends(link)]) -> str:
        """Sends."""
        return link

    assert await Executor(store=memory).run_spec(ToolSpec.from_function(send), {}) == "x"
    assert "torn down" in caplog.text


async def test_generators_are_collected(memory: Any) -> None:
    """Sync and async ones give one list, one outcome."""

    def count(to: int) -> Iterator[int]:
        """Counts."""
        yield from range(to)

    async def acount(to: int) -> AsyncIterator[int]:
        """Counts."""
        for number in range(to):
            yield number

    executor = Executor(store=memory)
    for fn in (count, acount):
        assert await executor.run_spec(ToolSpec.from_function(fn), {"to": 3}) == [0, 1, 2]
    assert await endings(memory) == ["ok", "ok"]


# -- errors ----------------------------------------------------------------------------------


async def test_a_foreign_exception_shows_only_its_class(memory: Any) -> None:
    """The original is the cause."""
    boom = ValueError("password=hunter2")
    with pytest.raises(ToolFailed) as caught:
        await Executor(store=memory).run_spec(Till(boom).spec, ARGS)
    assert str(caught.value) == "charge failed: ValueError" and caught.value.__cause__ is boom


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
async def test_other_base_exceptions_pass_after_the_ledger_was_told(
    memory: Any, error: type[BaseException]
) -> None:
    """They are never turned into an error of ours."""

    def run() -> None:
        async def main() -> None:
            await Executor(store=memory).run_spec(Till(error()).spec, ARGS, in_run())

        asyncio.run(main())

    with pytest.raises(error):
        await asyncio.to_thread(_raised, run)
    assert await endings(memory) == ["unknown"]


def _raised(run: Any) -> None:
    box: list[BaseException] = []

    def caught() -> None:
        try:
            run()
        except BaseException as exc:
            box.append(exc)

    thread = threading.Thread(target=caught)
    thread.start()
    thread.join()
    if box:
        raise box[0]


async def test_a_cost_that_cannot_be_worked_out_is_a_clear_error(memory: Any) -> None:
    """The tool's name is in it, and nothing ran."""
    till = Till(cost=lambda args: 1 / 0)
    with pytest.raises(ToolDefinitionError, match=r"charge.*cost.*ZeroDivisionError"):
        await Executor(store=memory).run_spec(till.spec, ARGS)
    assert till.ran == []


async def test_a_once_key_that_cannot_be_worked_out_is_a_clear_error(memory: Any) -> None:
    """Neither an exception nor an empty text makes an identity."""
    for once_key in (lambda args: args["nope"], lambda args: ""):
        till = Till(once_key=once_key)
        with pytest.raises(ToolDefinitionError, match=r"charge.*once_key"):
            await Executor(store=memory).run_spec(till.spec, ARGS)
        assert till.ran == []


async def test_a_refused_call_leaves_a_trace(memory: Any) -> None:
    """The kind of the refusal is in the run's chain."""
    with pytest.raises(ToolArgsInvalid):
        await Executor(store=memory).run_spec(Till().spec, {"order": 1}, in_run())
    (entry,) = await ledger.entries(memory, "run_1")
    assert entry.kind == "refused" and entry.facts["error"] == "tool-args-invalid"


# -- what is recorded ------------------------------------------------------------------------


async def test_a_read_is_recorded_in_one_entry(store: Any) -> None:
    """In the background, with its arguments and its result."""
    till = Till(effects="read")
    await Executor(store=store).run_spec(till.spec, ARGS, in_run())
    assert await endings(store) == ["ok"] and await kinds(store) == ["call"]


async def test_the_record_holds_the_arguments_before_the_tool_changed_them(store: Any) -> None:
    """A tool that empties its list does not empty the record."""

    async def drain(items: list[int]) -> int:
        """Drains."""
        items.clear()
        return 0

    spec = ToolSpec.from_function(drain, effects="read")
    await Executor(store=store).run_spec(spec, {"items": [1, 2]}, in_run())
    (row,) = await rows(store)
    kept = await store.read(lambda tx: tx.get("payloads", row["arguments"]))
    assert kept["data"] == b'{"items":[1,2]}'


async def test_a_retry_gets_the_arguments_that_were_validated(memory: Any) -> None:
    """What the first try did to them does not reach the second."""
    seen: list[list[int]] = []

    async def drain(items: list[int]) -> int:
        """Drains."""
        seen.append(list(items))
        items.clear()
        if len(seen) == 1:
            raise ConnectionError
        return 0

    spec = ToolSpec.from_function(drain, effects="read", retries=AT_ONCE)
    await Executor(store=memory).run_spec(spec, {"items": [1, 2]})
    assert seen == [[1, 2], [1, 2]]


async def test_defaults_are_recorded(memory: Any) -> None:
    """The record shows what ran, not only what was given."""

    async def ping(times: Annotated[int, Field(ge=1)] = 2) -> int:
        """Pings."""
        return times

    assert await Executor(store=memory).run_spec(ToolSpec.from_function(ping), {}, in_run()) == 2
    (row,) = await rows(memory)
    kept = await memory.read(lambda tx: tx.get("payloads", row["arguments"]))
    assert kept["data"] == b'{"times":2}'


async def test_the_first_write_without_a_store_warns_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Reads do not; a chosen store does not."""
    executor = Executor()
    await executor.run_spec(Till(effects="read").spec, ARGS)
    assert caplog.records == []
    await executor.run_spec(Till().spec, ARGS)
    await executor.run_spec(Till().spec, ARGS)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_the_time_of_a_bare_call_is_small() -> None:
    """A thousand bare calls take well under two seconds of processor time."""

    async def main() -> float:
        executor, spec = Executor(), Till(effects="read").spec
        begun = time.process_time()
        for _ in range(1000):
            await executor.run_spec(spec, ARGS)
        return time.process_time() - begun

    assert asyncio.run(main()) < 2
