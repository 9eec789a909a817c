"""Approvals through LangGraph: nothing that comes with a resumed graph approves a call."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, interrupt

import agent_adapter as aa
from agent_adapter.integrations.langgraph import (
    langgraph_tool,
    langgraph_tools,
    pending_records,
    resume_command,
)

from ._langgraph_graph import (
    answers,
    error_of,
    graph_of,
    resume,
    rewrite_calls,
    run,
    saver,
    thread,
)
from ._shop import Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}
CALL = ("c1", "refund", REFUND)
THREE = [
    ("c1", "look_up", {"order": "A1"}),
    ("c2", "refund", {"order": "A2", "amount": 2}),
    ("c3", "refund", {"order": "A3", "amount": 3}),
]


class Waiting:
    """A shop whose refunds wait in an inbox, in a graph with a checkpointer."""

    def __init__(self, *turns: Any, shop: Shop | None = None, kept: Any = None) -> None:
        self.shop = shop or Shop()
        self.port = aa.DeferredApproval(self.shop.store)
        self.inbox = aa.Inbox(self.shop.store)
        self.saver = kept or saver()
        tools = langgraph_tools(self.shop.registry, executor=self.shop.executor, approval=self.port)
        self.graph = graph_of(tools, *turns, saver=self.saver)

    async def start(self) -> Any:
        """The run up to its first pause."""
        return await run(self.graph, thread())

    async def go_on(self, answer: Any = True) -> Any:
        """The run from its pause on."""
        return await self.graph.ainvoke(resume(answer), thread())

    async def record_of(self, order: str) -> str:
        """The record that waits for a refund of `order`."""
        found = await self.inbox.list()
        [record] = [r.id for r in found if r.arguments.get("order") == order]
        return record


# Three calls of one `ToolNode`


@pytest.mark.parametrize("order", list(itertools.permutations(["A2", "A3"])))
@pytest.mark.parametrize("stepwise", [True, False])
async def test_each_answer_reaches_its_own_call(order: Any, stepwise: bool) -> None:
    """Two of three parallel calls wait: whatever the order of the answers, each runs once."""
    waiting = Waiting(THREE)
    output = await waiting.start()
    for name in order:
        await waiting.inbox.approve(await waiting.record_of(name), reviewer="ann")
        if stepwise:
            output = await waiting.go_on()
    if not stepwise:
        output = await waiting.go_on()
    assert sorted(r["amount"] for r in waiting.shop.refunds) == [2, 3]
    told = {call_id: json.loads(a.content) for call_id, a in answers(output).items()}
    assert told == {"c1": {"order": "A1"}, "c2": "2 for A2", "c3": "3 for A3"}


@pytest.mark.parametrize("denied", ["A2", "A3"])
async def test_a_denial_reaches_its_own_call(denied: str) -> None:
    """One of the two is denied first: only the other runs (A7, A10)."""
    waiting = Waiting(THREE)
    await waiting.start()
    await waiting.inbox.deny(await waiting.record_of(denied), reviewer="ann")
    await waiting.go_on()
    [other] = {"A2", "A3"} - {denied}
    await waiting.inbox.approve(await waiting.record_of(other), reviewer="ann")
    output = await waiting.go_on()
    assert [r["order"] for r in waiting.shop.refunds] == [other]
    assert error_of(output, f"c{denied[1]}")["kind"] == "approval-denied"


async def test_a_late_call_does_not_get_the_answer_of_another() -> None:
    """The port is slow about one call, so they interrupt in another order (langgraph 6533)."""

    class Slow(aa.DeferredApproval):
        async def request(self, request: Any) -> Any:
            for _ in range(20 if request.arguments["order"] == "A2" else 0):
                await asyncio.sleep(0)
            return await super().request(request)

    waiting = Waiting(THREE)
    port = Slow(waiting.shop.store)
    tools = langgraph_tools(waiting.shop.registry, executor=waiting.shop.executor, approval=port)
    waiting.graph = graph_of(tools, THREE, saver=waiting.saver)
    await waiting.start()
    await waiting.inbox.approve(await waiting.record_of("A2"), reviewer="ann")
    await waiting.inbox.deny(await waiting.record_of("A3"), reviewer="ann")
    output = await waiting.go_on()
    assert waiting.shop.refunds == [{"order": "A2", "amount": 2}]
    assert error_of(output, "c3")["kind"] == "approval-denied"


async def test_one_pause_names_every_record() -> None:
    """A `ToolNode` shows one interrupt: it names the records of all its calls, no arguments."""
    waiting = Waiting(THREE)
    output = await waiting.start()
    records = pending_records(output)
    assert sorted(records) == sorted(r.id for r in await waiting.inbox.list())
    [shown] = output["__interrupt__"]
    assert set(shown.value) == {"type", "tool", "records"}


async def test_a_finished_write_is_not_run_again() -> None:
    """The node runs again after the pause: a write of it that has run gives its result (A25)."""
    shop = Shop(confirm=lambda args, ctx: args["amount"] > 2)
    waiting = Waiting(THREE, shop=shop)
    await waiting.start()
    await waiting.inbox.approve(await waiting.record_of("A3"), reviewer="ann")
    output = await waiting.go_on()
    assert sorted(r["amount"] for r in shop.refunds) == [2, 3]
    assert json.loads(answers(output)["c2"].content) == "2 for A2"


async def test_a_pause_waits_for_the_other_calls() -> None:
    """A call that runs is not cut off because another one waits for a person (U14, U15)."""
    ended: list[str] = []
    shop = Shop()

    @shop.registry.tool
    async def slow(order: str) -> str:
        """Takes its time."""
        for _ in range(30):
            await asyncio.sleep(0)
        ended.append(order)
        return "ended"

    waiting = Waiting([CALL, ("c2", "slow", {"order": "A1"})], shop=shop)
    output = await waiting.start()
    assert output["__interrupt__"] and ended == ["A1"]
    await waiting.inbox.approve(await waiting.record_of("A1"), reviewer="ann")
    output = await waiting.go_on()
    assert ended == ["A1"] and set(answers(output)) == {"c1", "c2"}


# What comes with a resumed graph is a request


@pytest.mark.parametrize(
    "answer",
    [True, "approve", {"decisions": [{"type": "approve"}]}, {"approved": True, "reviewer": "ann"}],
)
async def test_a_resume_value_approves_nothing(answer: Any) -> None:
    """`Command(resume=…)` is what a client sends: the call still waits (A1, A2)."""
    waiting = Waiting([CALL])
    first = await waiting.start()
    output = await waiting.go_on(answer)
    assert not waiting.shop.ran
    assert pending_records(output) == pending_records(first)


async def test_arguments_changed_before_the_answer_are_asked_about() -> None:
    """`update_state` while it waits: the old record approves nothing of the new call (A3)."""
    waiting = Waiting([CALL])
    output = await waiting.start()
    [record] = pending_records(output)
    await rewrite_calls(waiting.graph, thread(), args=REFUND | {"amount": 999})
    await waiting.inbox.approve(record, reviewer="ann")
    output = await waiting.go_on()
    assert not waiting.shop.ran
    assert pending_records(output) != [record]


async def test_arguments_changed_after_the_answer_are_asked_about() -> None:
    """Approved for 5, then rewritten to 999: 999 never runs (A2)."""
    waiting = Waiting([CALL])
    [record] = pending_records(await waiting.start())
    await waiting.inbox.approve(record, reviewer="ann")
    await rewrite_calls(waiting.graph, thread(), args=REFUND | {"amount": 999})
    output = await waiting.go_on()
    assert not waiting.shop.ran
    assert len(pending_records(output)) == 1 and pending_records(output) != [record]


async def test_an_approval_of_one_thread_is_nothing_in_another() -> None:
    """The same call id and arguments in another thread: asked about there (A5)."""
    waiting = Waiting([CALL], [CALL])
    [record] = pending_records(await waiting.start())
    await waiting.inbox.approve(record, reviewer="ann")
    output = await run(waiting.graph, thread("t2"))
    assert pending_records(output) not in ([], [record])
    assert not waiting.shop.ran


async def test_an_answer_is_used_once() -> None:
    """The graph is resumed from its old checkpoint: the result is given, nothing runs (A4, A11)."""
    waiting = Waiting([CALL], "done", "done again")
    [record] = pending_records(await waiting.start())
    before = await waiting.graph.aget_state(thread())
    await waiting.inbox.approve(record, reviewer="ann")
    await waiting.go_on()
    output = await waiting.graph.ainvoke(resume(), before.config)
    assert waiting.shop.refunds == [REFUND]
    assert json.loads(answers(output)["c1"].content) == "5 for A1"


async def test_an_id_that_a_model_uses_again_is_another_call() -> None:
    """A later turn repeats id and arguments: asked again, run again (A6, A8, U13)."""
    port, shop = asking(), Shop()
    tools = langgraph_tools(shop.registry, executor=shop.executor, approval=port)
    await run(graph_of(tools, [CALL], [CALL], saver=saver()), thread())
    assert len(port.requests) == 2
    assert shop.refunds == [REFUND, REFUND]


async def test_an_id_used_again_is_still_one_call_after_a_pause() -> None:
    """The repeated id is told apart by its message, so a re-run of the node changes nothing."""
    waiting = Waiting([CALL], [CALL], "done")
    for expected in (0, 1):
        output = await (waiting.go_on() if expected else waiting.start())
        assert len(waiting.shop.refunds) == expected
        [record] = pending_records(output)
        await waiting.inbox.approve(record, reviewer="ann")
    await waiting.go_on()
    assert waiting.shop.refunds == [REFUND, REFUND]


async def test_another_process_goes_on_where_the_first_stopped(tmp_path: Any) -> None:
    """A new executor, store and graph over the same database and checkpoints: run once."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    first = Waiting([CALL], shop=Shop(store=aa.open_store(url)))
    [record] = pending_records(await first.start())
    await first.shop.store.aclose()
    second = Waiting(shop=Shop(store=aa.open_store(url)), kept=first.saver)
    await second.inbox.approve(record, reviewer="ann")
    output = await second.go_on()
    assert second.shop.refunds == [REFUND]
    assert json.loads(answers(output)["c1"].content) == "5 for A1"
    await second.shop.store.aclose()


# The port of the executor, and graphs that cannot pause


async def test_the_executors_port_pauses_a_graph_too() -> None:
    """Without `approval=` the executor's own port decides, in the same way."""
    store = aa.open_store("memory://")
    shop = Shop(approval=aa.DeferredApproval(store), store=store)
    tools = langgraph_tools(shop.registry, executor=shop.executor)
    graph = graph_of(tools, [CALL], saver=saver())
    [record] = pending_records(await run(graph, thread()))
    await aa.Inbox(store).approve(record, reviewer="ann")
    await graph.ainvoke(resume(), thread())
    assert shop.refunds == [REFUND]


@pytest.mark.parametrize("config", [None, thread()])
async def test_without_a_checkpointer_the_run_ends(config: Any) -> None:
    """A graph that cannot pause raises `ApprovalPending` with the record to decide."""
    waiting = Waiting()
    tools = langgraph_tools(
        waiting.shop.registry, executor=waiting.shop.executor, approval=waiting.port
    )
    with pytest.raises(aa.ApprovalPending) as caught:
        await run(graph_of(tools, [CALL]), config)
    assert caught.value.ids == tuple(r.id for r in await waiting.inbox.list())
    assert not waiting.shop.ran


async def test_no_port_denies() -> None:
    """Nobody can be asked: denied (A17)."""
    shop = Shop()
    output = await run(graph_of(langgraph_tools(shop.registry, executor=shop.executor), [CALL]))
    assert error_of(output)["kind"] == "approval-denied"
    assert not shop.ran


async def test_edits_apply_only_where_they_are_allowed() -> None:
    """Edited arguments: refused, or with `allow_edits=True` run as edited."""
    edit = aa.ApprovalDecision.approve(reviewer="ann", arguments=REFUND | {"amount": 1})
    for allowed, refunds in ((False, []), (True, [REFUND | {"amount": 1}])):
        shop = Shop()
        tools = langgraph_tools(
            shop.registry, executor=shop.executor, approval=asking(edit), allow_edits=allowed
        )
        await run(graph_of(tools, [CALL]))
        assert shop.refunds == refunds


async def test_a_function_is_no_port() -> None:
    """A reviewer function in place of a port is refused with the fix in the message."""
    with pytest.raises(TypeError, match="CallbackApproval"):
        langgraph_tool(Shop().registry.get("refund"), approval=lambda request: True)  # type: ignore[arg-type]  # what is tested


async def test_a_resume_command_answers_approvals_only() -> None:
    """Interrupts of the graph's own stay open."""

    async def own(state: Any) -> Any:
        interrupt("what colour?")

    waiting = Waiting()
    graph = graph_of([], [CALL], saver=saver(), node=own)
    output = await run(graph, thread())
    assert pending_records(output) == []
    assert resume_command(output).resume == {}
    pausing = Waiting([CALL])
    output = await pausing.start()
    await pausing.inbox.approve(pending_records(output)[0], reviewer="ann")
    await pausing.graph.ainvoke(resume_command(output), thread())
    assert pausing.shop.refunds == [REFUND] and not waiting.shop.ran


# What LangGraph runs again by itself


async def test_a_retried_node_does_not_repeat_its_writes() -> None:
    """A retry policy runs all calls of the node again: the write that succeeded is not repeated."""
    shop = Shop(confirm=False)
    tools = langgraph_tools(shop.registry, executor=shop.executor)
    node, fails = ToolNode(tools), [OSError("first time")]

    async def flaky(state: Any) -> Any:
        output = await node.ainvoke(state)
        if fails:
            raise fails.pop()
        return output

    graph = graph_of(
        [],
        [CALL],
        node=flaky,
        retry=RetryPolicy(retry_on=OSError, jitter=False, initial_interval=0.0),
    )
    await run(graph)
    assert shop.refunds == [REFUND]


async def test_a_sync_graph_runs_the_same_calls() -> None:
    """`graph.invoke` in a thread: what each pause waits for is asked once, and runs once."""
    waiting = Waiting(THREE)
    state = {"messages": [("user", "go")]}
    output = await asyncio.to_thread(waiting.graph.invoke, state, thread())
    asked: list[str] = []
    # LangGraph 1.2 gives each call a thread by `Executor.map`: when a call pauses, one whose thread
    # has not begun is cancelled. It is asked about after the next resume, so one or two pauses.
    while pending := await waiting.inbox.list():
        for record in pending:
            await waiting.inbox.approve(record.id, reviewer="ann")
            asked.append(record.arguments["order"])
        assert output["__interrupt__"]
        output = await asyncio.to_thread(waiting.graph.invoke, resume(), thread())
    assert sorted(asked) == ["A2", "A3"]
    assert sorted(r["amount"] for r in waiting.shop.refunds) == [2, 3]
    told = {call_id: json.loads(a.content) for call_id, a in answers(output).items()}
    assert told == {"c1": {"order": "A1"}, "c2": "2 for A2", "c3": "3 for A3"}


async def test_a_direct_sync_call_inside_a_loop_is_refused() -> None:
    """`tool.invoke` where a loop runs says what to use instead."""
    shop = Shop()
    tool = langgraph_tool(shop.registry.get("look_up"), executor=shop.executor)
    with pytest.raises(aa.AgentAdapterError, match="ainvoke"):
        tool.invoke({"order": "A1"})


async def test_a_command_to_the_parent_graph_passes() -> None:
    """A tool may give LangGraph a command; its handoffs and interrupts are not failures."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    async def transfer(ctx: aa.ToolContext) -> Any:
        """Hands over."""
        from langchain_core.messages import ToolMessage

        message = ToolMessage("handed over", tool_call_id=ctx.call_id, name="transfer")
        return Command(goto="model", update={"messages": [message]})

    executor = aa.Executor(registry)
    tools = langgraph_tools(registry, executor=executor)
    output = await run(graph_of(tools, [("c1", "transfer", {})]))
    assert answers(output)["c1"].content == "handed over"


async def test_a_read_tool_may_ask_the_graphs_user() -> None:
    """`interrupt` inside of a tool that only reads leaves the node, and gives what it is told."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    async def colour() -> str:
        """Asks for a colour."""
        return str(interrupt("which?"))

    tools = langgraph_tools(registry, executor=aa.Executor(registry))
    graph = graph_of(tools, [("c1", "colour", {})], saver=saver())
    output = await run(graph, thread())
    assert [item.value for item in output["__interrupt__"]] == ["which?"]
    output = await graph.ainvoke(resume("red"), thread())
    assert json.loads(answers(output)["c1"].content) == "red"


async def test_no_setting_of_the_node_shows_a_foreign_exception() -> None:
    """`handle_tool_errors=True` shows a model `repr(exc)`: there is nothing foreign in it."""
    registry = aa.ToolRegistry()

    @registry.tool(effects="read")
    async def broken() -> str:
        """Breaks."""
        raise RuntimeError("secret")

    class Foreign:
        async def run_spec(self, *args: Any, **options: Any) -> Any:
            raise LookupError("secret")

    for executor in (aa.Executor(registry), Foreign()):
        tools = langgraph_tools(registry, executor=executor)
        node = ToolNode(tools, handle_tool_errors=True)
        output = await run(graph_of([], [("c1", "broken", {})], node=node))
        assert "secret" not in str(answers(output)["c1"].content)
        assert error_of(output)["kind"] == "tool-failed"
