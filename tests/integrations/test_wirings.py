"""Rules kept per run, in every way to wire tools into a program: they hold, or they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("ag2")
pytest.importorskip("agno")
pytest.importorskip("anthropic")
pytest.importorskip("autogen_agentchat")
pytest.importorskip("fastmcp")
pytest.importorskip("google.genai")
pytest.importorskip("langchain")
pytest.importorskip("langgraph")
pytest.importorskip("mcp")
pytest.importorskip("openai")

from fastmcp import Client as FastMcpClient
from fastmcp import FastMCP
from mcp import Client

import agent_adapter as aa
from agent_adapter.integrations import anthropic, google_genai, openai
from agent_adapter.integrations.ag2 import ag2_tools
from agent_adapter.integrations.agno import agno_functions
from agent_adapter.integrations.autogen import autogen_tools
from agent_adapter.integrations.fastmcp import fastmcp_tools
from agent_adapter.integrations.generic import generic_tools
from agent_adapter.integrations.langchain import langchain_tools
from agent_adapter.integrations.langgraph import langgraph_tools

from . import _ag2_agent, _agno_agent, _autogen_agent, _langchain_agent, _langgraph_graph
from ._mcp_wire import over_http
from .test_provider_calls import Provider

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

Turns = list[list[tuple[str, str, dict[str, Any]]]]
Wiring = Callable[[aa.ToolRegistry, aa.Executor, Turns], Awaitable[Any]]

LOOK: tuple[str, str, Any] = ("c1", "look", {})
WATER = ("c2", "water", {"bed": "north"})


class Garden:
    """An untrusted read and a write, and what they did."""

    def __init__(self, *, limits: aa.RunLimits | None = None, **policy: Any) -> None:
        self.done: list[str] = []
        self.looked = 0
        self.registry = aa.ToolRegistry()
        store = aa.open_store("memory://")
        self.executor = aa.Executor(self.registry, store=store, limits=limits)

        @self.registry.tool(effects="read", trust="untrusted")
        async def look() -> str:
            """Read a page."""
            self.looked += 1
            return "a page"

        @self.registry.tool(**policy)
        async def water(bed: str) -> str:
            """Water a bed."""
            self.done.append(bed)
            return f"watered {bed}"


async def langchain(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """An agent without a thread."""
    await _langchain_agent.run(
        _langchain_agent.agent_of(langchain_tools(registry, executor=executor), *turns)
    )


async def langgraph(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """A graph without a checkpointer."""
    tools = langgraph_tools(registry, executor=executor)
    await _langgraph_graph.run(_langgraph_graph.graph_of(tools, *turns))


async def alone(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """LangChain's tools, called by the program."""
    tools = {tool.name: tool for tool in langchain_tools(registry, executor=executor)}
    for turn in turns:
        for _, name, args in turn:
            await tools[name].ainvoke(args)


async def autogen(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """An agent without a run scope."""
    await _autogen_agent.run(autogen_tools(registry, executor=executor), *turns)


async def fastmcp(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """A FastMCP server in process."""
    server: FastMCP[Any] = FastMCP("garden")
    for tool in fastmcp_tools(registry, executor=executor):
        server.add_tool(tool)
    async with FastMcpClient(server) as client:
        for turn in turns:
            for _, name, args in turn:
                await client.call_tool(name, args, raise_on_error=False)


async def mcp_over_http(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """Each request for itself."""
    async with over_http(registry, executor) as url, Client(url, mode="2026-07-28") as client:
        for turn in turns:
            await asyncio.gather(*(client.call_tool(name, args) for _, name, args in turn))


def helper(provider: str) -> Wiring:
    """A provider's helper, told nothing of the run."""

    async def wired(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
        run: Any = {
            "messages": anthropic.run_tool_calls,
            "contents": google_genai.function_responses,
        }.get(provider, openai.run_tool_calls)
        for number, turn in enumerate(turns, 1):
            response = Provider(provider).response(*turn, number=number)
            await run(response, registry, executor=executor)

    return wired


async def generic(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """A program's own loop over `generic_tools`."""
    tools = {tool.name: tool for tool in generic_tools(registry, executor=executor)}
    for turn in turns:
        await asyncio.gather(*(tools[name](args, call_id=id) for id, name, args in turn))


async def plain(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """`executor.run`."""
    for turn in turns:
        for _, name, args in turn:
            with suppress(aa.AgentAdapterError):
                await executor.run(name, args)


async def agno(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """An agent without a session; a pause stays one."""
    tools = agno_functions(registry, executor=executor)
    await _agno_agent.agent_of(tools, *turns).arun("go")


async def ag2(registry: aa.ToolRegistry, executor: aa.Executor, turns: Turns) -> None:
    """An agent's ask."""
    events = [[_ag2_agent.call_event(n, a, call_id=i) for i, n, a in turn] for turn in turns]
    await _ag2_agent.ask(ag2_tools(registry, executor=executor), *events)


WIRINGS: dict[str, Wiring] = {
    "langchain": langchain,
    "langgraph": langgraph,
    "langchain tools alone": alone,
    "autogen": autogen,
    "fastmcp": fastmcp,
    "mcp over http": mcp_over_http,
    "openai chat": helper("chat"),
    "openai responses": helper("responses"),
    "anthropic": helper("messages"),
    "gemini": helper("contents"),
    "generic_tool": generic,
    "executor.run": plain,
    "agno": agno,
    "ag2": ag2,
}

every_wiring = pytest.mark.parametrize("wiring", list(WIRINGS))


@every_wiring
async def test_i13_no_wiring_runs_a_tainted_write_unasked(wiring: str) -> None:
    """I13: an untrusted read, then a `confirm="tainted"` write: it does not run unasked."""
    garden = Garden(confirm="tainted")
    await WIRINGS[wiring](garden.registry, garden.executor, [[LOOK], [WATER]])
    assert (garden.looked, garden.done) == (1, [])


@every_wiring
async def test_i14_a_limit_of_calls_holds_or_refuses(wiring: str) -> None:
    """I14: `max_calls=1` and three calls in two turns: at most one runs."""
    garden = Garden(limits=aa.RunLimits(max_calls=1))
    turns: Turns = [[WATER, ("c3", *WATER[1:])], [("c4", *WATER[1:])]]
    await WIRINGS[wiring](garden.registry, garden.executor, turns)
    assert len(garden.done) <= 1


@every_wiring
async def test_i14_a_limit_of_cost_holds_or_refuses(wiring: str) -> None:
    """I14: eight parallel calls of cost 10 each with `max_cost=10`: at most one runs."""
    garden = Garden(cost=10, limits=aa.RunLimits(max_cost=10))
    turn = [(f"c{n}", *WATER[1:]) for n in range(8)]
    await WIRINGS[wiring](garden.registry, garden.executor, [turn])
    assert len(garden.done) <= 1


@every_wiring
async def test_a_rule_that_needs_no_run_refuses_nothing(wiring: str) -> None:
    """The other side: without rules per run, equal calls run in every wiring, each once."""
    garden = Garden()
    turns: Turns = [[WATER], [WATER]]
    await WIRINGS[wiring](garden.registry, garden.executor, turns)
    assert garden.done == ["north"] * 2


@every_wiring
async def test_i12_one_question_stands_for_equal_calls_without_a_run(wiring: str) -> None:
    """I12: a waiting question is filed once for each call that is one, and never runs by itself."""
    garden = Garden(confirm=True)
    garden.executor.approval = aa.DeferredApproval(garden.executor.store)
    for _ in range(2):
        with suppress(aa.ApprovalPending):
            await WIRINGS[wiring](garden.registry, garden.executor, [[WATER]])
    waiting = await aa.Inbox(garden.executor.store).list()
    assert garden.done == [] and len(waiting) <= 2
