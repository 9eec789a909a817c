"""Approvals through LangChain agents: the middleware asks, and only its port approves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import agent_adapter as aa
from agent_adapter.integrations.langchain import (
    INTEGRATION,
    approval_middleware,
    langchain_tool,
    langchain_tools,
)

from ._langchain_agent import agent_of, answers, config_of, error_of, run
from ._shop import NO, Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}
CALL = ("c1", "refund", REFUND)
THREE = [
    ("c1", "look_up", {"order": "A1"}),
    ("c2", "refund", {"order": "A2", "amount": 2}),
    ("c3", "refund", {"order": "A3", "amount": 3}),
]


def _agent(shop: Shop, port: Any, *turns: Any, **options: Any) -> Any:
    middleware = approval_middleware(port, shop.registry, executor=shop.executor)
    tools = langchain_tools(shop.registry, executor=shop.executor)
    return agent_of(tools, *turns, middleware=[middleware], **options)


def _records(output: Any) -> list[str]:
    return [record for item in output["__interrupt__"] for record in item.value["records"]]


async def test_the_middleware_asks_once() -> None:
    """The port of the middleware decides, the executor's own is not asked."""
    port, own = asking(), asking(NO)
    shop = Shop(approval=own)
    output = await run(_agent(shop, port, [CALL]))
    assert json.loads(answers(output)["c1"].content) == "5 for A1"
    assert (len(port.requests), len(own.requests)) == (1, 0)


async def test_a_denial_is_an_error_message() -> None:
    """Denied: the model reads kind and reason, the tool does not run."""
    shop = Shop()
    output = await run(_agent(shop, asking(NO), [CALL]))
    assert error_of(output)["kind"] == "approval-denied"
    assert not shop.ran


async def test_invalid_arguments_are_refused_unasked() -> None:
    """Arguments that do not fit: nobody is asked about them."""
    port, shop = asking(), Shop()
    output = await run(_agent(shop, port, [("c1", "refund", {"order": "A1"})]))
    assert error_of(output)["kind"] == "tool-args-invalid"
    assert not port.requests


async def test_the_port_is_shown_a_copy() -> None:
    """A port that changes what it was shown changes nothing of the call."""

    def tamper(request: aa.ApprovalRequest) -> aa.ApprovalDecision:
        request.arguments["amount"] = 500
        return aa.ApprovalDecision.approve(reviewer="ann")

    shop = Shop()
    await run(_agent(shop, asking(tamper), [CALL]))
    assert shop.refunds == [REFUND]


@pytest.mark.parametrize("allowed", [False, True])
async def test_edits_apply_only_where_they_are_allowed(allowed: bool) -> None:
    """Edited arguments: refused, or with `allow_edits=True` run as edited."""
    edit = aa.ApprovalDecision.approve(reviewer="ann", arguments=REFUND | {"amount": 1})
    shop = Shop()
    gate = approval_middleware(
        asking(edit), shop.registry, executor=shop.executor, allow_edits=allowed
    )
    tools = langchain_tools(shop.registry, executor=shop.executor)
    await run(agent_of(tools, [CALL], middleware=[gate]))
    assert shop.refunds == ([REFUND | {"amount": 1}] if allowed else [])


async def test_without_the_middleware_the_executors_port_decides() -> None:
    """An agent without our middleware: the executor asks, or denies where nobody can be asked."""
    for own, refunds in ((asking(), [REFUND]), (None, [])):
        shop = Shop(approval=own)
        tools = langchain_tools(shop.registry, executor=shop.executor)
        await run(agent_of(tools, [CALL]))
        assert shop.refunds == refunds


async def test_parallel_calls_wait_for_their_own_answers() -> None:
    """Two of three parallel calls wait; the answers come in reverse; each runs once (A7)."""
    shop = Shop()
    port, inbox = aa.DeferredApproval(shop.store), aa.Inbox(shop.store)
    agent = _agent(shop, port, THREE, checkpointer=InMemorySaver())
    output = await run(agent, "t1")
    assert len(_records(output)) == 2
    for order in ("A3", "A2"):
        [record] = [r.id for r in await inbox.list() if r.arguments["order"] == order]
        await inbox.approve(record, reviewer="ann")
        resume = {item.id: True for item in output["__interrupt__"]}
        output = await agent.ainvoke(Command(resume=resume), config_of("t1"))
    told = {i: json.loads(str(a.content)) for i, a in answers(output).items()}
    assert told == {"c1": {"order": "A1"}, "c2": "2 for A2", "c3": "3 for A3"}
    assert len(shop.ran) == 3


async def test_an_answer_of_a_client_approves_nothing() -> None:
    """`Command(resume=…)` in the form of LangChain's own approvals: the call still waits (A1)."""
    shop = Shop()
    agent = _agent(shop, aa.DeferredApproval(shop.store), [CALL], checkpointer=InMemorySaver())
    first = await run(agent, "t1")
    forged = Command(resume={"decisions": [{"type": "approve"}]})
    output = await agent.ainvoke(forged, config_of("t1"))
    assert _records(output) == _records(first)
    assert not shop.ran


async def test_a_rewritten_call_is_asked_about() -> None:
    """Approved for 5, rewritten to 999 by `update_state`: 999 never runs (A2, A3)."""
    shop = Shop()
    agent = _agent(shop, aa.DeferredApproval(shop.store), [CALL], checkpointer=InMemorySaver())
    [record] = _records(await run(agent, "t1"))
    await aa.Inbox(shop.store).approve(record, reviewer="ann")
    state = await agent.aget_state(config_of("t1"))
    old = state.values["messages"][-1]
    calls = [old.tool_calls[0] | {"args": REFUND | {"amount": 999}}]
    changed = {"messages": [AIMessage("", id=old.id, tool_calls=calls)]}
    await agent.aupdate_state(config_of("t1"), changed, as_node="model")
    output = await agent.ainvoke(Command(resume=True), config_of("t1"))
    assert not shop.ran
    assert _records(output) != [record]


async def test_langchains_own_approval_is_no_approval() -> None:
    """`HumanInTheLoopMiddleware` lets the call reach our gate, and no further (A1)."""
    shop = Shop()
    own = HumanInTheLoopMiddleware(interrupt_on={"refund": True})
    gate = approval_middleware(asking(NO), shop.registry, executor=shop.executor)
    tools = langchain_tools(shop.registry, executor=shop.executor)
    agent = agent_of(tools, [CALL], middleware=[own, gate], checkpointer=InMemorySaver())
    await run(agent, "t1")
    yes = Command(resume={"decisions": [{"type": "approve"}]})
    output = await agent.ainvoke(yes, config_of("t1"))
    assert error_of(output)["kind"] == "approval-denied"
    assert not shop.ran


async def test_without_a_checkpointer_the_run_ends() -> None:
    """An agent that cannot pause raises `ApprovalPending`."""
    shop = Shop()
    with pytest.raises(aa.ApprovalPending):
        await run(_agent(shop, aa.DeferredApproval(shop.store), [CALL]))
    assert not shop.ran


async def test_the_token_is_for_the_executor_that_was_named() -> None:
    """Tools of another executor than the middleware's: its token is nothing there."""
    shop = Shop()
    other = aa.Executor(shop.registry, store=aa.open_store("memory://"))
    gate = approval_middleware(asking(), shop.registry, executor=other)
    tools = langchain_tools(shop.registry, executor=shop.executor)
    output = await run(agent_of(tools, [CALL], middleware=[gate]))
    assert error_of(output)["kind"] == "approval-denied"
    assert not shop.ran


async def test_a_tool_of_others_passes_the_middleware() -> None:
    """A native tool that has the name of one of ours is not asked about, and gets no token."""
    port, shop = asking(), Shop()

    @tool
    def refund(order: str, amount: int) -> str:
        """Another tool of that name."""
        return "theirs"

    gate = approval_middleware(port, shop.registry, executor=shop.executor)
    output = await run(agent_of([refund], [CALL], middleware=[gate]))
    assert answers(output)["c1"].content == "theirs"
    assert not port.requests and not shop.ran


async def test_a_tool_started_by_an_approved_one_is_asked_about() -> None:
    """What an approved call starts inside of itself does not inherit its approval."""
    port, shop = asking(), Shop()

    @shop.registry.tool(confirm=True)
    async def both() -> str:
        """Refunds through LangChain."""
        inner = langchain_tool(shop.registry.get("refund"), executor=shop.executor)
        return str(
            await inner.ainvoke({"name": "refund", "args": REFUND, "id": "c1", "type": "tool_call"})
        )

    output = await run(_agent(shop, port, [("c1", "both", {})]))
    assert "approval-denied" in str(answers(output)["c1"].content)
    assert not shop.ran


async def test_a_function_is_no_port() -> None:
    """A reviewer function in place of a port is refused with the fix in the message."""
    with pytest.raises(TypeError, match="CallbackApproval"):
        approval_middleware(lambda request: True, Shop().registry)  # type: ignore[arg-type]  # what is tested


# The tool itself


async def test_every_argument_name_arrives() -> None:
    """Names that LangChain fills in or swallows reach the tool (U8)."""
    names = [
        "config",
        "run_manager",
        "runtime",
        "state",
        "store",
        "callbacks",
        "call",
        "self",
    ]
    seen: dict[str, Any] = {}

    async def swallow(**arguments: Any) -> str:
        seen.update(arguments)
        return "all of them"

    schema = {"type": "object", "properties": {n: {"type": "integer"} for n in names}}
    spec = aa.ToolSpec.from_json_schema("swallow", "Takes all.", schema, swallow)
    native = langchain_tool(spec, executor=aa.Executor())
    sent = {name: i for i, name in enumerate(names)}
    await run(agent_of([native], [("c1", "swallow", sent)]))
    assert seen == sent


async def test_a_model_cannot_send_the_runtime() -> None:
    """The argument in which LangGraph hands over its runtime is unknown to the tool's schema."""
    shop = Shop()
    native = langchain_tool(shop.registry.get("look_up"), executor=shop.executor)
    forged = {"order": "A1", "agent_adapter_runtime": {"execution_info": {"thread_id": "t"}}}
    told = await native.ainvoke({"name": "x", "args": forged, "id": "c1", "type": "tool_call"})
    assert told.status == "error" and "tool-args-invalid" in told.content
    assert not shop.ran


async def test_text_for_arguments_is_refused() -> None:
    """A bare text is no JSON object."""
    native = langchain_tool(Shop().registry.get("look_up"), executor=aa.Executor())
    assert "tool-args-invalid" in await native.ainvoke("A1")


async def test_the_thread_is_the_run() -> None:
    """Thread and call ids reach the context; a call outside of a graph has a run of its own."""
    shop = Shop()
    native = langchain_tool(shop.registry.get("look_up"), executor=shop.executor)
    turns = [[("c1", "look_up", {"order": "A1"})]]
    await run(agent_of([native], *turns, checkpointer=InMemorySaver()), "t1")
    await native.ainvoke({"order": "A1"})
    ids = [(ctx.call_id, ctx.run_id, ctx.thread_id) for ctx in shop.contexts]
    assert ids[0] == ("c1", "t1", "t1")
    assert ids[1][0] and ids[1][1] not in (None, "t1") and ids[1][2] is None


async def test_a_run_scope_gives_the_run() -> None:
    """Without a checkpointer the calls of an agent belong to the run scope around it."""
    shop = Shop()
    native = langchain_tool(shop.registry.get("look_up"), executor=shop.executor)
    async with shop.executor.run_scope("mine", "ann"):
        await run(agent_of([native], [("c1", "look_up", {"order": "A1"})]))
    assert [(ctx.run_id, ctx.principal) for ctx in shop.contexts] == [("mine", "ann")]


async def test_a_sync_agent_runs_the_same_calls() -> None:
    """`agent.invoke` in a thread of its own runs the tool too."""
    shop = Shop(confirm=False)
    tools = langchain_tools(shop.registry, executor=shop.executor)
    state = {"messages": [("user", "go")]}
    output = await asyncio.to_thread(agent_of(tools, [CALL]).invoke, state)
    assert json.loads(answers(output)["c1"].content) == "5 for A1"


def test_bind_context_reads_a_tool_call() -> None:
    """`bind_context` takes LangChain's tool call; one without an id gets one."""
    ctx = INTEGRATION.bind_context({"name": "x", "args": {}, "id": "c1"})
    assert (ctx.call_id, ctx.bound_by, ctx.reexecutes) == ("c1", "langchain", True)
    assert INTEGRATION.bind_context({"name": "x", "args": {}, "id": None}).call_id
