"""A turn without a hub: what a round does to its port is written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import agent_adapter as aa
from agent_adapter.flow.envelope import Envelope
from agent_adapter.flow.graph import TransitionGraph
from agent_adapter.network.adapters.workflow import WorkflowAdapter
from agent_adapter.network.channels.metadata import (
    ChannelMetadata,
    ChannelState,
    Participant,
    ParticipantRole,
)
from agent_adapter.network.turns.turn import Staged, Turn
from agent_adapter.store.memory import MemoryStore


class FakePort:
    """Remembers how a round ended."""

    def __init__(self) -> None:
        self.staged: list[Staged] = []
        self.packets: list[Envelope | None] = []
        self.adopted: list[str] = []
        self.waits_for: list[str] = []
        self.errors: list[BaseException] = []

    async def stage(self, staged: Staged) -> None:
        """Keep a change."""
        self.staged.append(staged)

    async def finish(self, packet: Envelope | None, adopted: Sequence[str]) -> None:
        """Keep the packet."""
        self.packets.append(packet)
        self.adopted.extend(adopted)

    async def park(self, waits_for: Sequence[str]) -> None:
        """Keep what is waited for."""
        self.waits_for.extend(waits_for)

    async def fail(self, error: BaseException) -> None:
        """Keep the error."""
        self.errors.append(error)

    async def fence(self, store: Any) -> None:
        """Every attempt is current."""

    @property
    def body(self) -> Any:
        """The text of the only packet."""
        return self._packet["body"]

    @property
    def routing(self) -> Any:
        """The routing of the only packet."""
        return self._packet["routing"]

    @property
    def _packet(self) -> dict[str, Any]:
        assert not self.errors, self.errors
        [packet] = self.packets
        assert packet is not None
        return packet.event_data


def executor_of(store: Any = None, **options: Any) -> aa.Executor:
    """An executor that does not warn about its memory."""
    return aa.Executor(store=store or MemoryStore(), **options)


def turn_of_ann(
    port: FakePort | None = None,
    *,
    graph: TransitionGraph | None = None,
    knobs: dict[str, Any] | None = None,
    **options: Any,
) -> Turn:
    """A turn of ann (`A`) in a workflow channel with bob (`B`)."""
    drawn = graph or TransitionGraph.sequence(["A", "B"])
    metadata = ChannelMetadata(
        channel_id="chn_1",
        manifest=WorkflowAdapter.manifest,
        creator_id="A",
        participants=[
            Participant("A", ParticipantRole.INITIATOR, 0, name="ann"),
            Participant("B", ParticipantRole.PARTICIPANT, 1, name="bob"),
        ],
        state=ChannelState.ACTIVE,
        created_at="",
        knobs={"graph": drawn.to_dict(), **(knobs or {})},
    )
    adapter = WorkflowAdapter()
    given: dict[str, Any] = {
        "turn_id": "trn_1",
        "executor": options.pop("executor", None) or executor_of(),
        "input_text": "[bob]: hello",
        **options,
    }
    return Turn(
        channel_id="chn_1",
        agent_id="A",
        agent_name="ann",
        state=adapter.initial_state(metadata),
        participants=metadata.ids_by_name(),
        port=port or FakePort(),
        adapter=adapter,
        metadata=metadata,
        **given,
    )
