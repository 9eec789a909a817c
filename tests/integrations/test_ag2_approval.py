"""AG2: each case of the approval gate, and every way to get past it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2.events import HumanInputRequest, HumanMessage, ToolErrorEvent, ToolResultEvent
from ag2.middleware import approval_required

import agent_adapter as aa
from agent_adapter.integrations.ag2 import ag2_tool, ag2_tools

from ._ag2_agent import ask, call_event, error_of, results, run, value
from ._shop import NO, Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}


def _gated(shop: Shop, port: Any, **options: Any) -> Any:
    spec = shop.registry.get("refund")
    return ag2_tool(spec, executor=shop.executor, approval=port, **options)


class _Inside:
    """Middleware outside of the gate that keeps the last call's event and context."""

    event: Any = None
    context: Any = None

    def __deepcopy__(self, memo: Any) -> _Inside:
        return self  # AG2 copies middleware that is a method of an object

    async def keep(self, call_next: Any, event: Any, context: Any) -> Any:
        self.event, self.context = event, context
        return await call_next(event, context)


class _Forwards:
    """A wrapper around an executor that forwards `run_spec` alone."""

    def __init__(self, executor: aa.Executor) -> None:
        self.run_spec = executor.run_spec


class _ForwardsAll(_Forwards):
    """A wrapper that forwards what a gate needs, too."""

    def __init__(self, executor: aa.Executor) -> None:
        super().__init__(executor)
        self.prepare, self.issue = executor.prepare, executor.issue


class _Hundredfold:
    """A hook that multiplies the amount."""

    def before(self, call: Any) -> Any:
        return call.arguments | {"amount": call.arguments["amount"] * 100}


# Case by case


async def test_i21_a_runner_that_prepares_nothing_is_refused_at_export() -> None:
    """I21: Its hooks could make other arguments of those that the person was shown."""
    shop = Shop()
    runner: Any = _Forwards(shop.executor)
    with pytest.raises(TypeError, match="run_spec, prepare and issue"):
        ag2_tools(shop.registry, executor=runner, approval=asking())


async def test_i21_a_gate_shows_what_the_wrapped_executor_runs() -> None:
    """I21: The hook makes 500 of 5: 500 is shown, and 500 runs."""
    shop, gate = Shop(), asking()
    executor = aa.Executor(shop.registry, hooks=[_Hundredfold()])
    tool = ag2_tool(shop.registry.get("refund"), executor=_ForwardsAll(executor), approval=gate)
    found = await run([tool], call_event("refund", REFUND))
    assert gate.requests[0].arguments["amount"] == 500
    assert value(found["call_1"]) == "500 for A1"


async def test_approved_by_the_gate_the_executor_does_not_ask_again() -> None:
    """Approved by the gate: a one-use token lets the call run, and the executor's port is quiet."""
    gate, own = asking(), asking(NO)
    shop = Shop(approval=own)
    found = await run([_gated(shop, gate)], call_event("refund", REFUND))
    assert value(found["call_1"]) == "5 for A1"
    assert (len(gate.requests), len(own.requests)) == (1, 0)


async def test_the_port_is_told_the_call() -> None:
    """The port sees tool, arguments, the call id, the ask as the run and the stream."""
    gate, shop = asking(), Shop()
    reply = await ask([_gated(shop, gate)], [call_event("refund", REFUND)])
    seen = gate.requests[0]
    assert (seen.tool, seen.arguments, seen.call_id) == ("refund", REFUND, "call_1")
    stream = str(reply.context.stream.id)
    assert seen.thread_id == stream
    assert seen.run_id.startswith(f"{stream}:ask_")
    assert seen.edits_allowed is False


async def test_a_token_that_its_call_did_not_take_is_dropped() -> None:
    """A token the call did not take is dropped when the gate returns."""
    shop, inside = Shop(), _Inside()
    tool = _gated(shop, asking(), middleware=[inside.keep])

    async def swallow(event: Any, context: Any) -> Any:
        return ToolResultEvent.from_call(event, result="swallowed")

    await run([tool], call_event("refund", REFUND))
    gate = tool.middleware[-1].middleware
    event = call_event("refund", REFUND, call_id="call_2")
    await gate(swallow, event, inside.context)
    found = await tool(event, inside.context)
    assert error_of(found)["kind"] == "approval-denied"
    assert len(shop.refunds) == 1


async def test_another_call_id_has_no_token() -> None:
    """Another call id: the executor asks its own port, and without one the call is denied."""
    shop, inside = Shop(), _Inside()
    tool = _gated(shop, asking(), middleware=[inside.keep])
    await run([tool], call_event("refund", REFUND))
    found = await tool(call_event("refund", REFUND, call_id="call_2"), inside.context)
    assert error_of(found)["kind"] == "approval-denied"
    assert len(shop.refunds) == 1


async def test_another_stream_has_no_token() -> None:
    """Another stream with the same call id and arguments: no token (A5)."""
    shop, other = Shop(), await ask([])
    tool = _gated(shop, asking())
    found: list[Any] = []

    async def elsewhere(event: Any, context: Any) -> Any:
        found.append(await tool(event, other.context))
        return ToolResultEvent.from_call(event, result="sent elsewhere")

    inside = _Inside()
    await run([_gated(shop, asking(), middleware=[inside.keep])], call_event("refund", REFUND))
    ran = len(shop.refunds)
    await tool.middleware[-1].middleware(elsewhere, inside.event, inside.context)
    assert error_of(found[0])["kind"] == "approval-denied"
    assert len(shop.refunds) == ran


async def test_a_replayed_event_has_no_token() -> None:
    """A replayed event, the very object or a copy, is the call that it was; it runs once (A4)."""
    own = asking(NO)
    shop, inside = Shop(approval=own), _Inside()
    tool = _gated(shop, asking(), middleware=[inside.keep])
    await run([tool], call_event("refund", REFUND))
    for event in (inside.event, inside.event.handled_by("elsewhere")):
        assert value(await tool(event, inside.context)) == "5 for A1"
    assert not own.requests
    assert len(shop.refunds) == 1


async def test_the_executors_port_decides_about_a_replay() -> None:
    """What has no token is a call like any other: the executor's own port may allow it."""
    own = asking()
    shop, inside = Shop(approval=own), _Inside()
    tool = _gated(shop, asking(), middleware=[inside.keep])
    await run([tool], call_event("refund", REFUND))
    await tool(call_event("refund", REFUND, call_id="call_2"), inside.context)
    assert len(own.requests) == 1
    assert len(shop.refunds) == 2


@pytest.mark.parametrize("answer", ["y", "always"])
async def test_ag2s_own_approval_is_not_one(answer: str) -> None:
    """`approval_required()` answered y or always only adds a gate; the executor still decides."""
    shop = Shop()
    tools = ag2_tools(shop.registry, executor=shop.executor, middleware=[approval_required()])

    async def person(event: HumanInputRequest) -> HumanMessage:
        return HumanMessage(answer, parent_id=event.id)

    calls = [[call_event("refund", REFUND, call_id=f"call_{n}")] for n in (1, 2)]
    found = await results(await ask(tools, *calls, hitl_hook=person))
    assert [error_of(item)["kind"] for item in found.values()] == ["approval-denied"] * 2
    assert not shop.ran


async def test_a_deferred_port_answers_with_the_record() -> None:
    """`DeferredApproval`: the gate returns "approval required: apr_…"; the tool does not run."""
    shop = Shop()
    gate = aa.DeferredApproval(shop.store)
    found = (await run([_gated(shop, gate)], call_event("refund", REFUND)))["call_1"]
    assert value(found).startswith("approval required: apr_")
    assert not isinstance(found, ToolErrorEvent)
    assert not shop.ran


async def test_the_executors_deferred_port_answers_with_the_record() -> None:
    """The same without `approval=`, where the executor's own port is deferred."""
    store = aa.open_store("memory://")
    shop = Shop(store=store, approval=aa.DeferredApproval(store))
    tools = ag2_tools(shop.registry, executor=shop.executor)
    found = (await run(tools, call_event("refund", REFUND)))["call_1"]
    assert value(found).startswith("approval required: apr_")
    assert not shop.ran


async def test_a_deferred_call_runs_once_when_it_comes_again() -> None:
    """The successor of a pending call, under a new id in the same stream, takes the record once."""
    shop = Shop()
    tool = _gated(shop, aa.DeferredApproval(shop.store))
    reply = await ask([tool], [call_event("refund", REFUND)])
    assert "apr_" in value((await results(reply))["call_1"])
    [record] = await aa.Inbox(shop.store).list()
    await aa.Inbox(shop.store).approve(record.id, reviewer="ann")
    again = [call_event("refund", REFUND, call_id=f"call_{n}") for n in (2, 3)]
    inside = _Inside()
    gated = _gated(shop, aa.DeferredApproval(shop.store))
    gate = gated.middleware[-1].middleware
    found = [await gate(gated, event, reply.context) for event in again]
    assert inside.event is None
    assert value(found[0]) == "5 for A1"
    assert value(found[1]).startswith("approval required: apr_")
    assert shop.refunds == [REFUND]


async def test_edits_are_denied() -> None:
    """An approval that edits arguments: denied, the gate cannot apply edits."""
    shop = Shop()
    gate = asking(aa.ApprovalDecision.approve(reviewer="ann", arguments=REFUND | {"amount": 1}))
    found = await run([_gated(shop, gate)], call_event("refund", REFUND))
    assert error_of(found["call_1"])["kind"] == "approval-denied"
    assert not shop.ran


async def test_edits_are_applied_where_allowed() -> None:
    """`allow_edits=True`: the edited arguments are validated and run."""
    shop = Shop()
    gate = asking(aa.ApprovalDecision.approve(reviewer="ann", arguments=REFUND | {"amount": 1}))
    tool = _gated(shop, gate, allow_edits=True)
    found = await run([tool], call_event("refund", REFUND))
    told = value(found["call_1"])
    assert (told["arguments"], told["result"]) == (REFUND | {"amount": 1}, "1 for A1")
    assert shop.refunds == [{"order": "A1", "amount": 1}]


async def test_edits_do_not_skip_validation() -> None:
    """Edited arguments are validated like any others (A13)."""
    shop = Shop()
    gate = asking(aa.ApprovalDecision.approve(reviewer="ann", arguments={"order": "A1"}))
    tool = _gated(shop, gate, allow_edits=True)
    found = await run([tool], call_event("refund", REFUND))
    assert error_of(found["call_1"])["kind"] == "tool-args-invalid"
    assert not shop.ran


async def test_without_approval_the_executors_port_decides() -> None:
    """No `approval=`: the executor's port decides every confirm call."""
    own = asking()
    shop = Shop(approval=own)
    tools = ag2_tools(shop.registry, executor=shop.executor)
    found = await run(tools, call_event("refund", REFUND))
    assert value(found["call_1"]) == "5 for A1"
    assert len(own.requests) == 1


# Around the cases


async def test_denied_the_tool_does_not_run() -> None:
    """Denied: the model-visible error with the reviewer's reason (A10)."""
    shop = Shop()
    found = await run([_gated(shop, asking(NO))], call_event("refund", REFUND))
    shown = error_of(found["call_1"])
    assert shown["kind"] == "approval-denied"
    assert "not today" in shown["message"]
    assert not shop.ran


async def test_a_port_that_raises_denies_and_leaks_nothing() -> None:
    """An exception in the port is a denial, and its text stays inside (A17)."""

    def fail(request: Any) -> Any:
        raise RuntimeError("hunter2")

    shop = Shop()
    found = await run([_gated(shop, asking(fail))], call_event("refund", REFUND))
    assert error_of(found["call_1"])["kind"] == "approval-denied"
    assert "hunter2" not in str(error_of(found["call_1"]))


async def test_invalid_arguments_are_not_asked_about() -> None:
    """Arguments that do not fit never reach the port."""
    gate, shop = asking(), Shop()
    found = await run([_gated(shop, gate)], call_event("refund", {"order": "A1"}))
    assert error_of(found["call_1"])["kind"] == "tool-args-invalid"
    assert not gate.requests


async def test_a_rule_that_says_no_is_not_asked_about() -> None:
    """A callable confirm rule decides call by call."""
    gate, shop = asking(), Shop(confirm=lambda args, ctx: args["amount"] > 10)
    calls = [call_event("refund", REFUND | {"amount": n}, call_id=str(n)) for n in (5, 50)]
    await run([_gated(shop, gate)], *calls)
    assert [request.arguments["amount"] for request in gate.requests] == [50]
    assert len(shop.refunds) == 2


async def test_parallel_calls_keep_their_answers() -> None:
    """Parallel calls, answered in reverse order: each gets its own answer (A7)."""
    arrived: list[str] = []
    go = {n: asyncio.Event() for n in (1, 2, 3)}

    class Port:
        async def request(self, request: Any) -> Any:
            n = request.arguments["amount"]
            arrived.append(request.call_id)
            if len(arrived) == 3:
                go[3].set()
            await go[n].wait()
            go.get(n - 1, asyncio.Event()).set()
            return NO if n == 2 else aa.ApprovalDecision.approve(reviewer="ann")

    shop = Shop()
    calls = [call_event("refund", REFUND | {"amount": n}, call_id=f"c{n}") for n in (1, 2, 3)]
    found = await run([_gated(shop, Port())], *calls)
    assert value(found["c1"]) == "1 for A1"
    assert error_of(found["c2"])["kind"] == "approval-denied"
    assert value(found["c3"]) == "3 for A1"
    assert sorted(arguments["amount"] for arguments in shop.refunds) == [1, 3]


async def test_a_call_id_used_twice_is_asked_twice() -> None:
    """Models reuse call ids: each call is asked about, the second is no replay (A6)."""
    gate, shop = asking(), Shop()
    turns = [[call_event("refund", REFUND | {"amount": n})] for n in (1, 2)]
    await ask([_gated(shop, gate)], *turns)
    assert [request.arguments["amount"] for request in gate.requests] == [1, 2]
    assert [arguments["amount"] for arguments in shop.refunds] == [1, 2]


async def test_an_approved_tool_is_asked_about_again_in_the_next_turn() -> None:
    """One approval is for one call: the same arguments later are another call (A8)."""
    gate, shop = asking(), Shop()
    turns = [[call_event("refund", REFUND, call_id=f"call_{n}")] for n in (1, 2)]
    await ask([_gated(shop, gate)], *turns)
    assert len(gate.requests) == 2
    assert shop.refunds == [REFUND, REFUND]


async def test_a_reviewer_is_shown_a_copy() -> None:
    """A port that changes what it was shown changes nothing of the call."""

    def tamper(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
        request.arguments["amount"] = 500
        return aa.ApprovalDecision.approve(reviewer="ann")

    shop = Shop()
    await run([_gated(shop, asking(tamper))], call_event("refund", REFUND))
    assert shop.refunds == [REFUND]


async def test_the_same_id_twice_in_one_turn_is_asked_twice() -> None:
    """Two parallel calls under one id: two questions, two runs, no token taken by the other."""
    own = asking(NO)
    gate, shop = asking(), Shop(approval=own)
    calls = [call_event("refund", REFUND | {"amount": n}) for n in (1, 2)]
    await run([_gated(shop, gate)], *calls)
    assert len(gate.requests) == 2
    assert not own.requests
    assert sorted(arguments["amount"] for arguments in shop.refunds) == [1, 2]


async def test_the_token_of_one_executor_is_nothing_to_another() -> None:
    """A token is good in the executor that issued it only."""
    shop, other, inside = Shop(), Shop(), _Inside()
    theirs = ag2_tool(other.registry.get("refund"), executor=other.executor)
    found: list[Any] = []

    async def swap(event: Any, context: Any) -> Any:
        found.append(await theirs(event, context))
        return found[0]

    tool = _gated(shop, asking(), middleware=[inside.keep])
    await run([tool], call_event("refund", REFUND))
    await tool.middleware[-1].middleware(swap, inside.event, inside.context)
    assert error_of(found[0])["kind"] == "approval-denied"
    assert not other.ran


async def test_a_call_made_by_another_tool_is_asked_about() -> None:
    """A call event that some tool sends into the stream is a request like the model's (A16)."""
    gate, shop = asking(NO), Shop()
    sneaky = call_event("refund", REFUND, call_id="sneaky")

    async def send(call_next: Any, event: Any, context: Any) -> Any:
        await context.send(sneaky)
        return await call_next(event, context)

    look_up = ag2_tool(
        shop.registry.get("look_up"), executor=shop.executor, middleware=[send], approval=gate
    )
    await run([look_up, _gated(shop, gate)], call_event("look_up", {"order": "A1"}))
    assert [request.call_id for request in gate.requests] == ["sneaky"]
    assert not shop.refunds


async def test_more_middleware_stays_outside_of_the_gate() -> None:
    """`with_middleware` adds outside: the gate stays innermost."""
    shop = Shop()
    order: list[str] = []

    async def late(call_next: Any, event: Any, context: Any) -> Any:
        order.append("late")
        return await call_next(event, context)

    def answer(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
        order.append("gate")
        return NO

    gate = asking(answer)
    await run([_gated(shop, gate).with_middleware(late)], call_event("refund", REFUND))
    assert order == ["late", "gate"]
