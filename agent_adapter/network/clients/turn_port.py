"""`HubTurnPort`: one attempt's access to its hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_adapter.core.errors import NetworkError, StaleTurn
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.links.operations import HubLike
from agent_adapter.network.turns import turn_queue
from agent_adapter.network.turns.turn import Staged
from agent_adapter.network.turns.turn_types import TurnRef
from agent_adapter.store.base import Operation, Store, Transaction
from agent_adapter.store.witness import keys_of_channel


class HubTurnPort:
    """The `TurnPort` of an attempt; each of its writes names the attempt."""

    __slots__ = ("_hub", "ref")

    def __init__(self, hub: HubLike, ref: TurnRef) -> None:
        self._hub = hub
        self.ref = ref

    async def stage(self, staged: Staged) -> None:
        """Store a change of this attempt durably, in the order of the calls."""
        await self._hub.stage(self.ref, staged.call_key, staged.body)

    async def finish(self, packet: Envelope | None, adopted: Sequence[str]) -> None:
        """End the turn with `packet`, or without one."""
        if packet is None:
            await self._hub.end_silent_turn(self.ref, adopted)
        else:
            await self._hub.post_envelope(packet, turn=self.ref, adopted=adopted)

    async def park(self, waits_for: Sequence[str]) -> None:
        """Park the turn until one of these approvals or calls is decided."""
        await self._hub.park_turn(self.ref, waits_for)

    async def fail(self, error: BaseException) -> None:
        """Count a failed attempt."""
        await self._hub.fail_turn(self.ref, error)

    async def fence(self, store: Store) -> Operation[str | None] | None:
        """The check of the attempt's row for a transaction in the hub's own store.

        Another store has no transaction in common with the hub, so the hub is asked instead. A hub
        reassigns the turn of a lost connection only after a grace period, so that its answer still
        holds when the intent is written.
        """
        if getattr(self._hub, "store", None) is store:
            return _Fence(self.ref)
        try:
            await self._hub.check_turn(self.ref)
        except StaleTurn:
            raise
        except NetworkError as exc:
            # Another process may run the turn by now, so this one must not write.
            raise StaleTurn(
                f"attempt {self.ref.attempt} of turn {self.ref.turn_id} may not write: its hub "
                f"cannot be asked ({exc})"
            ) from exc
        return None


@dataclass(frozen=True, slots=True)
class _Fence:
    """Why an attempt may not write any more; depends on its channel alone."""

    ref: TurnRef

    def __call__(self, tx: Transaction) -> str | None:
        return turn_queue.stale_reason(tx, self.ref)

    def keys(self) -> frozenset[str]:
        """What it looks at."""
        return keys_of_channel(self.ref.channel_id)
