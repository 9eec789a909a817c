"""Shapes of AG2's network that programs rely on: events of views, stores, endpoints, refusals."""

from __future__ import annotations

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent, Context
from ag2.compact import CompactionSummary
from ag2.events import DataInput, ModelMessage, ModelRequest, TextInput, ToolCallEvent
from ag2.knowledge import DiskKnowledgeStore, MemoryKnowledgeStore
from ag2.stream import MemoryStream
from ag2.testing import TestConfig

from agent_adapter.core.errors import StoreError
from agent_adapter.network import (
    CHANNEL_DEP,
    EV_CHANNEL_INVITE,
    AccessBlock,
    AccessDeniedError,
    Envelope,
    FullTranscript,
    Hub,
    LimitsBlock,
    LocalLink,
    NamedWindowedSummary,
    NotFoundError,
    NotifyFrame,
    Passport,
    ProtocolError,
    Resume,
    Rule,
    default_render_envelope,
)
from agent_adapter.network.compat.paths.hub import layout
from agent_adapter.network.compat.tools import make_context_tool, make_tasks_tool

pytestmark = pytest.mark.anyio


def _text(sender: str, text: str) -> Envelope:
    return Envelope("chn", sender, None, "ag2.msg.text", {"text": text}, envelope_id=f"env-{text}")


LOG = [_text("cat", "one"), _text("dog", "two"), _text("cat", "three")]


async def test_an_awaited_view_gives_events() -> None:
    """What others said is a request, what the reader said is a message."""
    seen = await FullTranscript().project(
        LOG, participant_id="dog", render_envelope=default_render_envelope
    )
    assert seen == [
        ModelRequest([TextInput("one")]),
        ModelMessage("two"),
        ModelRequest([TextInput("three")]),
    ]


async def test_a_summary_is_a_compaction() -> None:
    """Messages before the window are one summary with their number and their senders' names."""
    view = NamedWindowedSummary(recent_n=1)
    first, last = await view.project(
        LOG, participant_id="owl", render_envelope=default_render_envelope, name_for=str.title
    )
    assert isinstance(first, CompactionSummary)
    assert first.event_count == 2
    assert "Cat, Dog" in first.summary
    assert last == ModelRequest([TextInput("[Cat]: three")])


async def test_parts_beside_the_text_stay() -> None:
    """A renderer's other parts reach the reader after the labelled text."""
    chart = DataInput({"bars": 3})

    def render(envelope: Envelope) -> list[Any]:
        return [TextInput(envelope.event_data["text"]), chart]

    view = NamedWindowedSummary(recent_n=1)
    seen = await view.project(LOG[:1], participant_id="owl", render_envelope=render)
    assert seen == [ModelRequest([TextInput("[cat]: one"), chart])]


async def test_a_view_over_texts_stays_as_it_is() -> None:
    """A renderer of texts gets messages of this package, awaited or not."""
    view = FullTranscript()
    seen = view.project(
        LOG, participant_id="dog", render_envelope=lambda envelope: envelope.event_data["text"]
    )
    assert await seen == seen
    assert [item.text for item in seen] == ["one", "two", "three"]


async def test_a_disk_store_holds_the_hub(tmp_path: Path) -> None:
    """A hub over the folder of a `DiskKnowledgeStore` finds its participants again."""
    async with await Hub.open(DiskKnowledgeStore(tmp_path / "hub"), ttl_sweep_interval=0) as hub:
        resume = Resume(claimed_capabilities=["soup"])
        cook = await hub.register(Agent("cook", config=TestConfig()), resume=resume)
        chosen = cook.agent_id
    async with await Hub.open(DiskKnowledgeStore(tmp_path / "hub"), ttl_sweep_interval=0) as hub:
        await hub.hydrate()
        found = await hub.list_agents(capability="soup")
        assert [item.agent_id for item in found] == [chosen]


async def test_a_disk_store_of_ag2_is_imported_first(tmp_path: Path) -> None:
    """A folder with a hub of AG2's own is not taken for an empty one."""
    store = DiskKnowledgeStore(tmp_path)
    await store.write(layout.passport_path("a1"), "{}")
    with pytest.raises(StoreError, match="agent-adapter import-ag2"):
        await Hub.open(store)
    assert not (tmp_path / "agent-adapter.db").exists()


async def test_paths_of_ag2_s_files() -> None:
    """The paths are those of AG2's installed release."""
    from ag2.network.hub import layout as theirs

    ours = importlib.import_module("agent_adapter.network.hub.layout")
    for name in theirs.__all__:
        ids = () if "_id" not in str(getattr(theirs, name).__annotations__) else ("x1",)
        assert getattr(ours, name)(*ids) == getattr(theirs, name)(*ids)
    assert (layout.wal_path("c"), layout.spans_path()) == (
        "/channels/c/wal.jsonl",
        "/telemetry/spans.jsonl",
    )


async def test_binding_an_endpoint_needs_no_await() -> None:
    """An endpoint is bound when `bind_endpoint` returns; an unknown one is refused at once."""
    async with await Hub.open(MemoryKnowledgeStore(), ttl_sweep_interval=0) as hub:
        cat = await hub.register(Agent("cat", config=TestConfig()))
        dog = (await hub.register_identity(Passport(name="dog"), Resume())).agent_id or ""
        with pytest.raises(NotFoundError, match="endpoint not attached"):
            hub.bind_endpoint("nowhere", dog)
        raw = LocalLink(hub).client()
        hub.bind_endpoint(raw.endpoint_id, dog)
        assert hub.is_connected(dog)
        opening = asyncio.create_task(cat.open(type="conversation", target="dog"))
        first = await anext(raw.frames())
        assert isinstance(first, NotifyFrame)
        assert first.envelope.event_type == EV_CHANNEL_INVITE
        opening.cancel()
        await raw.close()


async def test_refusals_name_the_rule() -> None:
    """A refusal names the field of the rule that caused it."""
    async with await Hub.open(MemoryKnowledgeStore(), ttl_sweep_interval=0) as hub:
        one = Rule(limits=LimitsBlock(max_concurrent_channels=1))
        cat = await hub.register(Agent("cat", config=TestConfig()), rule=one)
        shy = Rule(access=AccessBlock(inbound_from=["nobody"]))
        await hub.register(Agent("dog", config=TestConfig()))
        await hub.register(Agent("owl", config=TestConfig()), rule=shy)
        with pytest.raises(AccessDeniedError, match="does not accept inbound"):
            await cat.open(type="conversation", target="owl")
        await cat.open(type="conversation", target="dog")
        with pytest.raises(AccessDeniedError, match="max_concurrent_channels"):
            await cat.open(type="conversation", target="dog")
        with pytest.raises(ProtocolError, match="already registered"):
            await hub.register(Agent("dog", config=TestConfig()))
        with pytest.raises(NotFoundError, match="no adapter"):
            await hub.create_channel(
                creator_id=cat.agent_id, manifest_type="choir", participants=[]
            )


async def _result(tool: Any, args: dict[str, Any], **dependencies: Any) -> Any:
    event = ToolCallEvent(name=tool.name, arguments=json.dumps(args))
    context = Context(stream=MemoryStream(), dependencies=dependencies)
    first = (await tool(event, context)).result.parts[0]
    return getattr(first, "content", None) or first.data


async def test_tools_of_a_program_know_its_channel() -> None:
    """`context` searches the channel that the conversation depends on; `tasks` says what lacks."""
    async with await Hub.open(MemoryKnowledgeStore(), ttl_sweep_interval=0) as hub:
        cat = await hub.register(Agent("cat", config=TestConfig()))
        await hub.register(Agent("dog", config=TestConfig()))
        channel = await cat.open(type="conversation", target="dog")
        await channel.send("the red ball")
        at = {CHANNEL_DEP: channel}
        found = await _result(make_context_tool(cat), {"action": "search", "query": "RED"}, **at)
        assert [item["excerpt"] for item in found] == ["the red ball"]
        tasks = make_tasks_tool(cat)
        assert "requires `task_id`" in await _result(tasks, {"action": "cancel"})
        unknown = {"action": "wait", "task_id": "t0", "timeout": 1, "poll_interval": 0.1}
        assert "not found" in await _result(tasks, unknown)
