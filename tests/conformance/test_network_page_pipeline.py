"""The smallest network program: a pipeline by `sequence`; and the factories it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import (
    EV_CHANNEL_CLOSED,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Resume,
    TransitionGraph,
)

from ._network import STORES, closed, run_on, told

pytestmark = pytest.mark.anyio


async def smallest(store: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Researcher, writer, editor; the opener's message is the researcher's turn."""
    hub = await Hub.open(store, ttl_sweep_interval=0)
    link = LocalLink(hub)

    rhc, whc, ehc = (HubClient(link, hub=hub) for _ in range(3))

    researcher = await rhc.register(
        Agent("researcher", prompt="Give three facts.", config=TestConfig("never asked")),
        Passport(name="researcher"),
        Resume(),
        attach_plugin=False,
    )
    writer = await whc.register(
        Agent("writer", prompt="Write one paragraph.", config=TestConfig("a paragraph")),
        Passport(name="writer"),
        Resume(),
        attach_plugin=False,
    )
    editor = await ehc.register(
        Agent("editor", prompt="Tighten it.", config=TestConfig("the final text")),
        Passport(name="editor"),
        Resume(),
        attach_plugin=False,
    )

    graph = TransitionGraph.sequence([researcher.agent_id, writer.agent_id, editor.agent_id])

    channel = await researcher.open(
        type="workflow",
        target=[writer.agent_id, editor.agent_id],
        knobs={"graph": graph.to_dict()},
    )
    await channel.send("Topic: how do tides work?")

    close_env = await researcher.wait_for_channel_event(
        channel_id=channel.channel_id,
        predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED,
        timeout=60.0,
    )
    lines = await told(hub, channel.channel_id)

    for hc in (rhc, whc, ehc):
        await hc.close()
    await hub.close()
    return close_env.event_data.get("reason"), lines


@pytest.mark.parametrize("kind", STORES)
async def test_the_smallest_program(kind: str, tmp_path: Path) -> None:
    """The kick-off is the first speaker's turn, the others think, and the sequence completes."""
    for reason, lines in await run_on(kind, tmp_path, smallest):
        assert reason == "sequence_complete"
        assert lines == [
            ("researcher", "Topic: how do tides work?"),
            ("writer", "a paragraph"),
            ("editor", "the final text"),
        ]


async def round_robin(store: Any) -> tuple[Any, list[str], list[str]]:
    """Three agents in a circle until the limit of turns; then the checks of a migration."""
    hub = await Hub.open(store)
    hc = HubClient(LocalLink(hub), hub=hub)
    alice, bob, carol = [
        await hc.register(
            Agent(name, config=TestConfig(f"{name} speaks")),
            Passport(name=name),
            Resume(),
            attach_plugin=False,
        )
        for name in ("alice", "bob", "carol")
    ]
    graph = TransitionGraph.round_robin(
        participants=[alice.agent_id, bob.agent_id, carol.agent_id],
        max_turns=6,
    )
    channel = await alice.open(
        type="workflow",
        target=[bob.agent_id, carol.agent_id],
        knobs={"graph": graph.to_dict()},
    )
    await channel.send("Topic: tides")
    end = await alice.wait_for_channel_event(
        channel_id=channel.channel_id, predicate=closed, timeout=60.0
    )
    speakers = [name for name, _ in await told(hub, channel.channel_id)]
    records = await hub._audit_log.read_all()
    await hub.close()
    mine = [item["kind"] for item in records if item.get("channel_id") == channel.channel_id]
    return end.event_data["reason"], speakers, mine


@pytest.mark.parametrize("kind", STORES)
async def test_round_robin(kind: str, tmp_path: Path) -> None:
    """The circle ends at `max_turns`, its default target is never reached, and it is audited."""
    for reason, speakers, audited in await run_on(kind, tmp_path, round_robin):
        assert reason == "max_turns"
        assert speakers == ["alice", "bob", "carol"] * 2
        assert audited == ["channel_created", "channel_closed"]
