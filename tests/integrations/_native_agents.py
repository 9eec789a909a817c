"""Agents of every framework that takes part in channels, each with tools of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import agent_adapter as aa
from agent_adapter.core.native import NativePolicies
from agent_adapter.integrations.discovery import driver_for
from agent_adapter.network.turns.turn_runner import run_round
from tests.network._turns import FakePort, executor_of, turn_of_ann

Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""


def ag2_agent(tools: Sequence[Callable[..., Any]], *turns: Any) -> Any:
    """An AG2 agent; errors of its tools are shown to the model."""
    import json

    from ag2 import Agent
    from ag2.events import ToolCallEvent
    from ag2.testing import TestConfig

    script = [
        turn if isinstance(turn, str) else ToolCallEvent(turn[0], arguments=json.dumps(turn[1]))
        for turn in turns
    ]
    agent = Agent("ann", config=TestConfig(*script, "done", raise_tool_errors=False))
    for tool in tools:
        agent.tool(tool)
    return agent


def agno_agent(tools: Sequence[Callable[..., Any]], *turns: Any) -> Any:
    """An Agno agent, which shows its tools' errors to the model."""
    from ._agno_agent import agent_of

    return agent_of(list(tools), *_numbered(turns))


def langgraph_agent(tools: Sequence[Callable[..., Any]], *turns: Any) -> Any:
    """A graph with a tool node that shows errors to the model."""
    from langgraph.prebuilt import ToolNode

    from ._langgraph_graph import graph_of

    node = ToolNode(list(tools), handle_tool_errors=True)
    return graph_of([], *_numbered(turns), node=node)


def langchain_agent(tools: Sequence[Callable[..., Any]], *turns: Any) -> Any:
    """A LangChain agent whose middleware shows errors to the model."""
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage

    from ._langchain_agent import agent_of

    @wrap_tool_call
    async def shown(request: Any, handler: Any) -> Any:
        """Show an error of a tool as its message."""
        try:
            return await handler(request)
        except ValueError as exc:
            return ToolMessage(f"error: {exc}", tool_call_id=request.tool_call["id"])

    return agent_of(list(tools), *_numbered(turns), middleware=[shown])


def _numbered(turns: Sequence[Any]) -> list[Any]:
    return [
        turn if isinstance(turn, str) else [(f"c{number}", *turn)]
        for number, turn in enumerate(turns, 1)
    ]


MAKERS = {
    "ag2": ag2_agent,
    "agno": agno_agent,
    "langgraph": langgraph_agent,
    "langchain": langchain_agent,
}
"""An agent of each framework: `maker(tools, *turns)`; a turn is a text or a call."""

INSTALLED = [name for name in MAKERS if importlib.util.find_spec(name) is not None]


class Desk:
    """An agent whose own tool `charge` does what a test says, and what it has done."""

    def __init__(self, framework: str, *, failures: int = 0, declared: Any = None) -> None:
        self.done: list[int] = []
        self.entered = 0
        self._maker = MAKERS[framework]
        self._failures = failures
        self._declared = declared
        self.executor = executor_of()

    def agent(self, *turns: Any) -> Any:
        """The agent, whose model plays these turns."""

        def charge(amount: int) -> str:
            """Charge an amount."""
            self.entered += 1
            if self.entered <= self._failures:
                raise ValueError("no luck")
            self.done.append(amount)
            return f"charged {amount}"

        return self._maker([self._declared(charge) if self._declared else charge], *turns)

    async def round(
        self, *turns: Any, tools: dict[str, aa.Policy] | None = None, **options: Any
    ) -> FakePort:
        """One attempt of a round."""
        port, agent = FakePort(), self.agent(*turns)
        driver = driver_for(agent)
        assert driver is not None
        turn = turn_of_ann(port, executor=self.executor, native=NativePolicies(tools), **options)
        await run_round(agent, turn, driver.drive)
        return port

    async def calls(self) -> list[tuple[str, str]]:
        """The effects and the ending of every recorded call."""
        await self.executor.store.flush()
        rows = await self.executor.store.read(
            lambda tx: tx.select("calls", {}, order_by="started_at")
        )
        return [(row["effects"], row["ending"]) for row in rows]
