"""The part of a hub that is about turns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_adapter.network.channels import log
from agent_adapter.network.channels.metadata import ChannelState
from agent_adapter.network.channels.snapshot import ChannelSnapshot, channel_row, iso, load_snapshot
from agent_adapter.network.channels.transaction import Change, HubContext
from agent_adapter.network.hub import leases
from agent_adapter.network.turns import turn_queue
from agent_adapter.network.turns.turn_types import PendingTurn, StartedTurn, TurnRef
from agent_adapter.store.base import Row, Transaction

if TYPE_CHECKING:
    from agent_adapter.network.hub.channel_service import ChannelService
    from agent_adapter.network.turns.dispatcher import Dispatcher

__all__ = ["HubTurns"]


class HubTurns:
    """Turns started for their participants, and how each attempt ended."""

    dispatch: Dispatcher
    _board: ChannelService
    _desk: HubContext
    _holder: str

    async def pending_turns_for(self, agent_id: str) -> list[PendingTurn]:
        """Turns of a participant that have not ended, oldest first."""

        def op(tx: Transaction) -> list[PendingTurn]:
            where = {"agent_id": agent_id, "state in": ["due", "running", "parked"]}
            return [_pending(tx, row) for row in tx.select("turns", where)]

        found = await self._board.read(op)
        return sorted(found, key=lambda item: item.expected_at)

    async def start_turn(self, turn_id: str) -> StartedTurn | None:
        """Start a due turn, one attempt more; `None` where it is not due, or its channel paused."""

        def op(tx: Transaction) -> StartedTurn | None:
            leases.check(tx, self._holder)
            turn = tx.get("turns", turn_id)
            row = None if turn is None else tx.get("channels", turn["channel_id"])
            if row is None or row["paused"] or row["state"] != ChannelState.ACTIVE.value:
                return None
            started = turn_queue.start(tx, turn_id)
            cached = self._board.cached(row["channel_id"])
            return None if started is None else _started(tx, started, row, self._desk, cached)

        return await self._board.write(op)

    async def stage(self, ref: TurnRef, call_key: str | None, body: Mapping[str, Any]) -> None:
        """Keep a change of the running round until its packet.

        `ProtocolError` for a variable that the speaker may not change, `StaleTurn` when another
        attempt has begun.
        """
        await self._board.write(lambda tx: turn_queue.stage(tx, ref, call_key, body))

    async def end_silent_turn(self, ref: TurnRef, adopted: Collection[str] = ()) -> None:
        """End a round that says nothing; what it staged is written."""
        await self._board.change(
            ref.channel_id,
            lambda tx, cached: log.end_silent_turn(
                tx, self._desk, ref, cached=cached, adopted=adopted
            ),
        )
        self.dispatch.told(ref)

    async def park_turn(self, ref: TurnRef, waits_for: Sequence[str]) -> None:
        """Set a turn aside until a person has decided; its clocks stand still."""
        row = await self._board.write(lambda tx: log.park_turn(tx, self._desk, ref, waits_for))
        self.dispatch.told(ref)
        if row["state"] == "due":
            self.dispatch.offer(row)

    async def fail_turn(self, ref: TurnRef, error: BaseException) -> None:
        """Count a failed attempt: it is tried again, or the channel closes with `turn_failed`."""
        result: Row | Change = await self._board.change(
            ref.channel_id,
            lambda tx, cached: log.fail_turn(tx, self._desk, ref, error, cached=cached),
        )
        self.dispatch.told(ref)
        if isinstance(result, dict):
            self.dispatch.offer(result, turn_queue.RETRY_AFTER[result["fails"] - 1])

    async def release_turn(self, ref: TurnRef) -> None:
        """Give a turn back without counting the attempt; it is due at once."""
        row = await self._board.write(lambda tx: turn_queue.release(tx, ref))
        self.dispatch.told(ref)
        self.dispatch.offer(row)


def _started(
    tx: Transaction, turn: Row, row: Row, desk: HubContext, cached: ChannelSnapshot | None
) -> StartedTurn:
    known = load_snapshot(tx, row, desk.adapters, cached)
    ref = TurnRef(
        turn_id=turn["turn_id"],
        channel_id=turn["channel_id"],
        attempt=turn["attempt"],
        owner_id=turn["owner_id"],
    )
    return StartedTurn(
        ref=ref,
        agent_id=turn["agent_id"],
        n=turn["n"],
        trigger=log.envelope_of(tx, turn["trigger"]),
        metadata=known.metadata,
        state=known.state,
        seq=row["seq"],
        spoken=row["spoken"],
        staged=turn_queue.staged_changes(tx, turn["turn_id"]) if turn["attempt"] > 1 else (),
    )


def _pending(tx: Transaction, row: Row) -> PendingTurn:
    since = row["due_at"] or row["started_at"]
    if since is None:
        since = channel_row(tx, row["channel_id"])["created_at"]
    return PendingTurn(
        channel_id=row["channel_id"],
        triggering_envelope_id=row["trigger"],
        expected_at=iso(since),
        turn_id=row["turn_id"],
        state=row["state"],
    )
