"""LangGraph: a graph pauses until two of its three calls are decided, in any order.

The model is a scripted one, so this runs without a key and without a network:

    python examples/langgraph_tools.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import agent_adapter as aa
from agent_adapter.integrations.langgraph import (
    langgraph_tools,
    pending_records,
    resume_command,
)

registry = aa.ToolRegistry()


@registry.tool(effects="read")
def balance(account: str) -> str:
    """What is on an account."""
    return "100.00"


@registry.tool(confirm=True)
def transfer(account: str, amount: int) -> str:
    """Sends money."""
    return f"sent {amount} to {account}"


store = aa.open_store("memory://")
inbox = aa.Inbox(store)


def build_graph(model: Any) -> Any:
    """A model and one `ToolNode` in a loop, with a checkpointer so that it can pause."""
    executor = aa.Executor(registry, store=store)
    tools = langgraph_tools(registry, executor=executor, approval=aa.DeferredApproval(store))
    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=InMemorySaver())


async def run_with_approvals(graph: Any, prompt: str, thread: str) -> dict[str, Any]:
    """The end of a run; each record that it pauses for is decided on the way."""
    config = {"configurable": {"thread_id": thread}}
    output = await graph.ainvoke({"messages": [("user", prompt)]}, config)
    while records := pending_records(output):
        for record in records:  # a person decides these, in `agent-adapter approvals`, say
            await decide(record)
        # What the graph is resumed with decides nothing: the calls ask their records again.
        output = await graph.ainvoke(resume_command(output), config)
    return dict(output)


async def decide(record: str) -> None:
    """Allow small amounts."""
    asked = await inbox.get(record)
    print(f"asked: {asked.tool} {asked.arguments}")
    if asked.arguments["amount"] <= 10:
        await inbox.approve(record, reviewer="ann")
    else:
        await inbox.deny(record, reviewer="ann", reason="too much")


def script(state: MessagesState) -> dict[str, list[AIMessage]]:
    """A model that makes three calls at once, and then ends."""
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": [AIMessage("One transfer was made, the other was refused.")]}
    calls = [
        {"id": "c1", "name": "balance", "args": {"account": "DE01"}},
        {"id": "c2", "name": "transfer", "args": {"account": "DE02", "amount": 5}},
        {"id": "c3", "name": "transfer", "args": {"account": "DE03", "amount": 500}},
    ]
    return {"messages": [AIMessage("", tool_calls=calls)]}


async def main() -> None:
    """Run the script and print what each tool answered."""
    output = await run_with_approvals(build_graph(script), "Pay both.", "thread-1")
    for message in output["messages"]:
        if isinstance(message, ToolMessage):
            print(f"{message.tool_call_id} {message.name}: {message.content}")


if __name__ == "__main__":
    asyncio.run(main())
