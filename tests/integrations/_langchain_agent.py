"""Real LangChain agents around the scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage

from ._langchain_model import scripted


def agent_of(tools: Iterable[Any], *turns: Any, **options: Any) -> Any:
    """An agent whose model plays `turns` and then says "done"."""
    return create_agent(scripted(*turns), list(tools), **options)


async def run(agent: Any, thread: str | None = None) -> Any:
    """What the agent makes of one message; in a thread where it has a checkpointer."""
    return await agent.ainvoke({"messages": [("user", "go")]}, config_of(thread))


def config_of(thread: str | None) -> Any:
    """The configuration that names a thread."""
    return {"configurable": {"thread_id": thread}} if thread is not None else None


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
