"""Plays a script through a real LangGraph graph: a scripted model and one `ToolNode` in a loop."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from agent_adapter import Executor
from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.langgraph import langgraph_tool
from workloads.agentdojo.scripted import Call, Played, Script

__all__ = ["build_graph", "call_turn", "play", "played_of"]


def build_graph(
    script: Script,
    specs: Sequence[ToolSpec],
    executor: Executor,
    *,
    approval: ApprovalPort | None = None,
) -> Any:
    """A graph with those tools whose model says `script`: one call per turn, then the output."""
    turns = iter([*map(call_turn, script.calls), AIMessage(script.output)])

    def model(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [next(turns)]}

    tools = [langgraph_tool(spec, executor=executor, approval=approval) for spec in specs]
    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=InMemorySaver())


def call_turn(call: Call) -> AIMessage:
    """A model's turn with one call."""
    made = {"id": call.id, "name": call.tool, "args": dict(call.arguments)}
    return AIMessage("", tool_calls=[made])


async def play(
    script: Script,
    specs: Sequence[ToolSpec],
    executor: Executor,
    *,
    approval: ApprovalPort | None = None,
) -> Played:
    """Run the graph to its end, or to its first pause, and read its history."""
    graph = build_graph(script, specs, executor, approval=approval)
    config = {
        "configurable": {"thread_id": uuid.uuid4().hex},
        "recursion_limit": 2 * len(script.calls) + 5,
    }
    output = await graph.ainvoke({"messages": [("user", script.prompt)]}, config)
    return played_of(output["messages"])


def played_of(messages: Sequence[Any]) -> Played:
    """What the messages of a run say."""
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    return Played(
        output=str(messages[-1].content),
        calls=tuple(
            Call(id=call["id"], tool=call["name"], arguments=call["args"])
            for message in messages
            for call in getattr(message, "tool_calls", ())
        ),
        errors=tuple(f"{a.name}: {a.content}" for a in answers if a.status == "error"),
    )
