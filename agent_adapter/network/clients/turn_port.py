"""`HubTurnPort`: how one attempt of one turn reaches its hub."""

from __future__ import annotations

from collections.abc import Sequence

from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.links.operations import HubLike
from agent_adapter.network.turns.turn import Staged
from agent_adapter.network.turns.turn_types import TurnRef


class HubTurnPort:
    """The `TurnPort` of an attempt; each of its writes names the attempt."""

    __slots__ = ("_hub", "ref")

    def __init__(self, hub: HubLike, ref: TurnRef) -> None:
        self._hub = hub
        self.ref = ref

    async def stage(self, staged: Staged) -> None:
        """Keep a change of this attempt durably, in the order of the calls."""
        await self._hub.stage(self.ref, staged.call_key, staged.body)

    async def finish(self, packet: Envelope | None, adopted: Sequence[str]) -> None:
        """End the turn with `packet`, or without one."""
        if packet is None:
            await self._hub.end_silent_turn(self.ref, adopted)
        else:
            await self._hub.post_envelope(packet, turn=self.ref, adopted=adopted)

    async def park(self, waits_for: Sequence[str]) -> None:
        """Set the turn aside until one of these approvals or calls is decided."""
        await self._hub.park_turn(self.ref, waits_for)

    async def fail(self, error: BaseException) -> None:
        """Count a failed attempt."""
        await self._hub.fail_turn(self.ref, error)
