"""Plays a script through a real LangChain agent with a scripted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage

from agent_adapter import Executor
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.langchain import langchain_tool
from workloads.agentdojo.langgraph_agent import call_turn, played_of
from workloads.agentdojo.scripted import Played, Script

__all__ = ["ScriptedModel", "play"]


class ScriptedModel(FakeMessagesListChatModel):
    """A LangChain model that says a script."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Itself: what it is offered does not matter."""
        return self


async def play(script: Script, specs: Sequence[ToolSpec], executor: Executor) -> Played:
    """Run the agent to its end and read its history."""
    turns: list[BaseMessage] = [*map(call_turn, script.calls), AIMessage(script.output)]
    tools = [langchain_tool(spec, executor=executor) for spec in specs]
    agent: Any = create_agent(ScriptedModel(responses=turns), tools)
    config = {"recursion_limit": 2 * len(script.calls) + 5}
    output = await agent.ainvoke({"messages": [("user", script.prompt)]}, config)
    return played_of(output["messages"])
