"""Programs whose calls wait for a person; each is a process of its own and prints what it saw.

python -m tests.browser._programs NAME STORE-URL
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from typing import Any

import agent_adapter as aa

registry = aa.ToolRegistry()
refunds: list[dict[str, Any]] = []


@registry.tool(confirm=True, effects="write")
def refund(order_id: str, amount: float, urgent: bool = False) -> str:
    """Pay money back for an order.

    Args:
        order_id: The number on the receipt.
        amount: In euros.
        urgent: Whether it is paid today.
    """
    refunds.append({"order_id": order_id, "amount": amount, "urgent": urgent})
    return f"{amount:.2f} EUR paid back for {order_id}"


@registry.tool(confirm=False, effects="write")
def ship(order_id: str) -> str:
    """Send an order; the process dies before it can tell."""
    os.kill(os.getpid(), signal.SIGKILL)
    return order_id


def say(**facts: Any) -> None:
    """One line for whoever started this process."""
    print(json.dumps(facts), flush=True)


async def ag2(store: Any) -> None:
    """An AG2 agent whose one call waits in the inbox while the agent runs."""
    from ag2 import Agent
    from ag2.events import ToolCallEvent
    from ag2.testing import TestConfig

    from agent_adapter.integrations.ag2 import ag2_tools

    port = aa.DeferredApproval(store, wait=1_200)
    executor = aa.Executor(registry, approval=port, store=store)
    call = ToolCallEvent("refund", id="c1", arguments='{"order_id": "AG2", "amount": 40}')
    config = TestConfig(call, "done", raise_tool_errors=False)
    agent = Agent("shop", config=config, tools=ag2_tools(registry, executor=executor))
    reply = await agent.ask("go")
    say(body=str(reply.body), refunds=refunds)


async def langgraph(store: Any) -> None:
    """A LangGraph graph that is interrupted, and resumed once its record is decided."""
    from agent_adapter.integrations.langgraph import langgraph_tools, pending_records
    from tests.integrations._langgraph_graph import answers, graph_of, resume, run, saver, thread

    port = aa.DeferredApproval(store)
    executor = aa.Executor(registry, approval=port, store=store)
    tools = langgraph_tools(registry, executor=executor, approval=port)
    graph = graph_of(tools, [("c1", "refund", {"order_id": "LG", "amount": 7})], saver=saver())
    mine = thread(f"thread-{os.getpid()}")
    await run(graph, mine)
    [record] = pending_records(await graph.aget_state(mine))
    say(waits=str(getattr(record, "id", record)), refunds=refunds)
    inbox = aa.Inbox(store)
    while (await inbox.list("pending")) != []:
        await asyncio.sleep(0.05)
    output = await graph.ainvoke(resume(), mine)
    say(said=answers(output)["c1"].content, refunds=refunds)


async def workflow(store: Any) -> None:
    """A channel of kim, who is a person, and a worker whose call must be approved."""
    from agent_adapter.network import Hub, HubClient, LocalLink, Passport, TransitionGraph, Turn

    async def worker(turn: Turn) -> str:
        paid = await turn.call(refund, order_id=turn.input_text.split()[-1], amount=3)
        return f"Done: {paid}"

    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    async with await Hub.open(store, executor=executor) as hub:
        hc = HubClient(LocalLink(hub))
        kim = await hc.register_human(Passport(name="kim", kind="human"))
        await hc.register(worker, Passport(name="worker"), attach_plugin=False)
        graph = TransitionGraph.sequence([kim.agent_id, hub.find_agent_id("worker") or ""])
        knobs = {"graph": graph.to_dict(), "context_vars": {"shop": "lamps"}}
        channel = await kim.open(type="workflow", target="worker", knobs=knobs)
        say(channel=channel.channel_id)
        end = await kim.wait_for_channel_event(
            channel_id=channel.channel_id,
            predicate=lambda e: "reason" in e.event_data,
            timeout=1_200,
        )
        say(reason=end.event_data["reason"], refunds=refunds)


async def die(store: Any) -> None:
    """A write that begins and whose process is killed."""
    executor = aa.Executor(registry, store=store)
    await executor.run("ship", {"order_id": "S1"})


async def ask(store: Any) -> None:
    """One call for each line of stdin, a JSON object of arguments; prints the records."""
    executor = aa.Executor(registry, approval=aa.DeferredApproval(store), store=store)
    for line in sys.stdin:
        try:
            run = aa.ToolContext(run_id=f"run_{uuid.uuid4().hex}")
            await executor.run("refund", json.loads(line), ctx=run)
        except aa.ApprovalPending as pending:
            say(id=pending.id)


PROGRAMS = {each.__name__: each for each in (ag2, langgraph, workflow, die, ask)}


async def main(name: str, url: str) -> None:
    """Run one program over the store."""
    store = aa.open_store(url)
    try:
        await PROGRAMS[name](store)
    finally:
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
