"""Which call is this, through real LangChain agents: the rows of the identity page."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import agent_adapter as aa
from agent_adapter.integrations.langchain import approval_middleware, langchain_tools

from ._langchain_agent import agent_of, answers, config_of, error_of, run
from ._shop import Shop, asking

pytestmark = pytest.mark.anyio

REFUND = {"order": "A1", "amount": 5}
CALL = ("call_0", "refund", REFUND)


def _tools(shop: Shop) -> list[Any]:
    return langchain_tools(shop.registry, executor=shop.executor)


def _gated(shop: Shop, port: Any, *turns: Any, **options: Any) -> Any:
    gate = approval_middleware(port, shop.registry, executor=shop.executor)
    return agent_of(_tools(shop), *turns, middleware=[gate], **options)


def _records(output: Any) -> list[str]:
    found = output.get("__interrupt__", ())
    return [record for item in found for record in item.value["records"]]


async def _runs(shop: Shop) -> set[str]:
    await shop.store.flush()
    rows = await shop.store.read(lambda tx: tx.select("calls", {}))
    return {row["run_id"] for row in rows}


async def test_i1_each_user_message_makes_its_own_call() -> None:
    """I1: three messages in a thread, one id and one set of arguments: three effects."""
    shop = Shop(confirm=False)
    agent = agent_of(_tools(shop), [CALL], "ok", [CALL], "ok", [CALL], checkpointer=InMemorySaver())
    for _ in range(3):
        await run(agent, "t1")
    assert shop.refunds == [REFUND] * 3 and len(await _runs(shop)) == 3


@pytest.mark.parametrize("call_id", ["", "call_0"])
@pytest.mark.parametrize("kept", [True, False])
async def test_i8_each_call_runs_once_after_its_yes(call_id: str, kept: bool) -> None:
    """I8: the middleware and its tool agree on the call, whatever its id: asked 2, ran 2."""
    port, shop = asking(), Shop()
    turn = [(call_id, "refund", REFUND)]
    agent = _gated(shop, port, turn, turn, checkpointer=InMemorySaver() if kept else None)
    await run(agent, "t1" if kept else None)
    assert (len(port.requests), shop.refunds) == (2, [REFUND] * 2)


@pytest.mark.parametrize("call_id", ["", "call_0"])
async def test_i8_a_call_without_an_id_waits_and_runs_once(call_id: str) -> None:
    """I8: the agent pauses; what is resumed is the call that was asked about."""
    shop = Shop()
    port = aa.DeferredApproval(shop.store)
    agent = _gated(shop, port, [(call_id, "refund", REFUND)], checkpointer=InMemorySaver())
    [record] = _records(await run(agent, "t1"))
    await aa.Inbox(shop.store).approve(record, reviewer="ann")
    output = await agent.ainvoke(Command(resume=True), config_of("t1"))
    assert (_records(output), shop.refunds) == ([], [REFUND])


async def test_the_middleware_and_the_tool_have_one_identity() -> None:
    """What the port is asked about is the very call that runs."""
    port, shop = asking(), Shop()
    await run(_gated(shop, port, [CALL], checkpointer=InMemorySaver()), "t1")
    [request], [ctx] = port.requests, shop.contexts
    assert ctx.identity.position is not None
    assert (request.run_id, request.call_key) == (ctx.identity.run, ctx.idempotency_key)


async def test_i10_a_denial_ends_with_the_users_turn() -> None:
    """I10: denied in one turn, asked for again in the next: asked."""
    shop = Shop()
    port = aa.DeferredApproval(shop.store)
    agent = _gated(shop, port, [CALL], "ok", [CALL], checkpointer=InMemorySaver())
    [record] = _records(await run(agent, "t1"))
    await aa.Inbox(shop.store).deny(record, reviewer="ann", reason="not today")
    output = await agent.ainvoke(Command(resume=True), config_of("t1"))
    assert error_of(output, "call_0")["kind"] == "approval-denied"
    [again] = _records(await run(agent, "t1"))
    assert again != record


async def test_i13_labels_hold_without_a_thread() -> None:
    """I13: an untrusted read, then a write that asks when tainted: asked."""
    port, shop = asking(), Shop(confirm="tainted")

    @shop.registry.tool(effects="read", trust="untrusted")
    async def page() -> str:
        """Reads a page."""
        return "text"

    await run(_gated(shop, port, [("call_0", "page", {})], [CALL]))
    assert len(port.requests) == 1


async def test_i14_limits_hold_without_a_thread() -> None:
    """I14: `max_calls=1` and two calls: one runs; another run of the agent has its own limit."""
    shop = Shop(confirm=False)
    shop.executor = aa.Executor(shop.registry, store=shop.store, limits=aa.RunLimits(max_calls=1))
    agent = agent_of(_tools(shop), [CALL], [("c2", "refund", REFUND)], "ok", [CALL])
    output = await run(agent)
    assert error_of(output, "c2")["kind"] == "run-limit-exceeded"
    await run(agent)
    assert shop.refunds == [REFUND] * 2


async def test_i14_a_tool_that_is_called_alone_has_no_run() -> None:
    """Limits cannot be counted there: refused, with the fix in the message."""
    shop = Shop(confirm=False)
    shop.executor = aa.Executor(shop.registry, store=shop.store, limits=aa.RunLimits(max_calls=1))
    [refund] = [tool for tool in _tools(shop) if tool.name == "refund"]
    said = await refund.ainvoke(REFUND)
    assert "run_scope" in said and not shop.ran
    async with shop.executor.run_scope("r1"):
        await refund.ainvoke(REFUND)
    assert shop.refunds == [REFUND] and await _runs(shop) == {"r1"}


async def test_a_chain_is_a_run() -> None:
    """Calls in one chain of LangChain's belong to the run of its root."""
    shop = Shop(confirm=False)
    [refund] = [tool for tool in _tools(shop) if tool.name == "refund"]

    async def twice(order: str) -> None:
        for _ in range(2):
            await refund.ainvoke({"order": order, "amount": 5})

    chain = RunnableLambda(lambda order: order) | RunnableLambda(twice)
    await chain.ainvoke("A1")
    assert shop.refunds == [REFUND] * 2 and len(await _runs(shop)) == 1


async def test_runs_that_ended_are_forgotten() -> None:
    """What is recorded of callback runs goes when they end, also by a pause or an error."""
    from agent_adapter.integrations.langchain_core.roots import _recorder

    shop = Shop()
    agent = _gated(shop, aa.DeferredApproval(shop.store), [CALL], checkpointer=InMemorySaver())
    before = len(_recorder().root_of)
    assert _records(await run(agent, "t1"))
    with pytest.raises(aa.ApprovalPending):
        await run(_gated(shop, aa.DeferredApproval(shop.store), [CALL]))
    assert len(_recorder().root_of) == before


async def test_a_run_scope_names_the_run_of_an_agent_that_keeps_nothing() -> None:
    """Without a checkpointer the program's own run goes before the callback run."""
    shop = Shop(confirm=False)
    async with shop.executor.run_scope("r1"):
        await run(agent_of(_tools(shop), [CALL], [CALL]))
    assert shop.refunds == [REFUND] * 2 and await _runs(shop) == {"r1"}


async def test_i6_a_tool_that_middleware_retries_repeats_no_inner_write() -> None:
    """I6: a repeated write with unknown outcome is not made again."""
    made: list[str] = []
    registry = aa.ToolRegistry()

    @registry.tool
    async def pay(to: str) -> str:
        """Pays, and loses the answer."""
        made.append(to)
        raise OSError("connection lost")

    tools = langchain_tools(registry, executor=aa.Executor(registry))
    again = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    agent = agent_of(tools, [("call_0", "pay", {"to": "bob"})], middleware=[again])
    output = await run(agent)
    assert made == ["bob"] and answers(output)["call_0"].status == "error"
