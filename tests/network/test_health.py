"""Health, sweepers and traces of a hub."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import agent_adapter as aa
from agent_adapter.network import BaseHubListener
from tests.network._scene import TransitionGraph, scene

pytestmark = pytest.mark.anyio


async def _echo(text: str) -> str:
    return text


async def test_health_counts_what_is_going_on() -> None:
    """At once from memory, and awaited from the store."""
    async with scene() as at:
        ana, bot = await at.person("ana"), await at.agent("bot", _echo)
        await ana.open(type="conversation", target=["bot"])
        channel = await at.open("ana", ["bot"], TransitionGraph.sequence(at.names("ana", "bot")))
        at.hub.register_listener(BaseHubListener())
        await bot.disconnect()
        await channel.send("go")
        at.clock.pass_by(1)
        now = at.hub.health()
        assert (now["active_channels"], now["registered_agents"]) == (2, 2)
        assert (now["reachable_agents"], now["registered_listeners"]) == (1, 2)
        assert (now["pending_inbox_total"], now["max_pending_inbox_depth"]) == (1, 1)
        assert now["adapters_loaded"] >= 4
        assert now["audit_log_bytes"] > 0
        whole = await at.hub.health()
        assert whole["channels"]["active"] == 2
        assert (whole["turns"]["due"], whole["parked_turns"], whole["stuck_turns"]) == (1, 0, 1)
        await channel.close("enough")
        assert at.hub.health()["active_channels"] == 1
        assert (await at.hub.health())["channels"]["closed"] == 1


async def test_a_sweeper_is_called_again_and_again() -> None:
    """Also one that raises, until it is unregistered."""
    called = asyncio.Event()
    times = 0

    async def sweep() -> None:
        nonlocal times
        times += 1
        if times == 3:
            called.set()
        raise ValueError("not this time")

    async with scene() as at:
        at.hub.register_sweeper("mine", 0.001, sweep)
        assert "mine" in at.hub.health()["sweepers"]
        await asyncio.wait_for(called.wait(), 30)
        with pytest.raises(ValueError, match="sweeper 'mine' is already registered"):
            at.hub.register_sweeper("mine", 1, sweep)
        await at.hub.unregister_sweeper("mine")
        await at.hub.unregister_sweeper("mine")
        assert "mine" not in at.hub.health()["sweepers"]
        at.hub.register_sweeper("mine", 3600, sweep)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
async def test_an_interval_is_above_zero(seconds: float) -> None:
    """And finite."""
    async with scene() as at:
        with pytest.raises(ValueError, match="a positive number"):
            at.hub.register_sweeper("mine", seconds, lambda: None)


async def test_a_turn_is_a_span_around_its_calls() -> None:
    """Named after the participant, with the ids of channel and turn; the calls are inside it."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    @aa.tool(effects="read")
    async def look() -> str:
        """Look."""
        return "seen"

    async def scout(turn: Any) -> str:
        return str(await turn.call(look))

    async def writer(text: str) -> str:
        raise RuntimeError("out of ink")

    async with scene(tracer_provider=provider) as at:
        await at.person("ana")
        await at.agent("scout", scout)
        await at.agent("writer", writer)
        graph = TransitionGraph.sequence(at.names("ana", "scout", "writer"))
        channel = await at.open("ana", ["scout", "writer"], graph)
        await channel.send("go")
        await at.settle()
    spans = {span.name: span for span in exporter.get_finished_spans()}
    turn, call = spans["invoke_agent scout"], spans["execute_tool look"]
    assert turn.attributes is not None and turn.context is not None
    assert turn.attributes["gen_ai.conversation.id"] == channel.channel_id
    assert call.parent is not None and call.parent.span_id == turn.context.span_id
    failed = spans["invoke_agent writer"]
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "RuntimeError"
    assert not failed.status.is_ok
    assert [link.context.span_id for link in failed.links] == [turn.context.span_id]


async def test_without_a_provider_nothing_is_traced() -> None:
    """An envelope carries no trace that nobody made."""
    async with scene() as at:
        await at.person("ana")
        await at.agent("bot", _echo)
        channel = await at.open("ana", ["bot"], TransitionGraph.sequence(at.names("ana", "bot")))
        await channel.send("go")
        await at.settle()
        assert {item.trace_id for item in await at.log(channel)} == {None}
