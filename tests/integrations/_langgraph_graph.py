"""Real LangGraph graphs: one `ToolNode`, or a node for a scripted model in a loop with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from ._langchain_model import scripted


def graph_of(
    tools: Iterable[Any], *turns: Any, saver: Any = None, node: Any = None, retry: Any = None
) -> Any:
    """A loop of a model, which plays `turns` and then says "done", and one node for all tools."""
    model = scripted(*turns)

    def ask(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", node or ToolNode(list(tools)), retry_policy=retry)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def saver() -> InMemorySaver:
    """A checkpointer that keeps serialised checkpoints in memory."""
    return InMemorySaver()


def thread(name: str = "t1") -> Any:
    """The configuration that names a thread."""
    return {"configurable": {"thread_id": name}}


async def run(graph: Any, config: Any = None) -> Any:
    """What the graph makes of one message."""
    return await graph.ainvoke({"messages": [("user", "go")]}, config)


def resume(answer: Any = True) -> Any:
    """What a client sends to go on."""
    return Command(resume=answer)


def answers(output: Any) -> dict[str, ToolMessage]:
    """The tool messages of a run by call id."""
    found = [m for m in output["messages"] if isinstance(m, ToolMessage)]
    return {m.tool_call_id: m for m in found}


def error_of(output: Any, call_id: str = "c1") -> dict[str, str]:
    """`{"kind", "message"}` as the model reads it of one call."""
    answer = answers(output)[call_id]
    assert answer.status == "error", answer
    error: dict[str, str] = json.loads(str(answer.content))["error"]
    return error


async def rewrite_calls(graph: Any, config: Any, **changes: Any) -> None:
    """Change every tool call of the last message in the stored state of a thread."""
    state = await graph.aget_state(config)
    message = state.values["messages"][-1]
    calls = [{**call, **changes} for call in message.tool_calls]
    message = AIMessage(message.content, id=message.id, tool_calls=calls)
    await graph.aupdate_state(config, {"messages": [message]}, as_node="model")
