"""The part of a hub that goes back in time, and the part that comes back with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from agent_adapter.core.errors import StoreError, ToolError
from agent_adapter.exec.ids import new_id
from agent_adapter.network.channels import expectations, forking, lifecycle
from agent_adapter.network.channels.forking import ReplayReport
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.channels.snapshot import ChannelSnapshot
from agent_adapter.network.channels.transaction import Change, HubContext
from agent_adapter.network.hub import commands, leases
from agent_adapter.network.turns import turn_queue
from agent_adapter.network.turns.turn_types import RunTurn
from agent_adapter.store.base import Row, Transaction

if TYPE_CHECKING:
    from agent_adapter.exec.executor import Executor
    from agent_adapter.network.hub.channel_service import ChannelService
    from agent_adapter.network.hub.hub import Hub
    from agent_adapter.network.turns.dispatcher import Dispatcher

__all__ = ["HubTime"]

_BEAT_SECONDS = 5.0


class HubTime:
    """Forks and replays; deadlines, lifetimes, decisions and commands that others wrote."""

    dispatch: Dispatcher
    executor: Executor
    _board: ChannelService
    _desk: HubContext
    _holder: str
    _loop: asyncio.AbstractEventLoop
    _beaten_at: float

    def runner_of(self, agent_id: str) -> RunTurn | None:
        """Who runs the turns of that participant here; `None` where nobody does."""
        raise NotImplementedError

    # --- going back ---------------------------------------------------------------------------

    async def fork(self, channel_id: str, at: str, *, new_channel_id: str | None = None) -> str:
        """A new channel whose log is that of `channel_id` up to the envelope `at`; its id.

        It is paused until `resume_channel`; `writes_after` lists what it does not undo.
        """
        made = new_channel_id or new_id("chn")
        await self._board.change(
            made, lambda tx, cached: forking.fork(tx, self._desk, channel_id, at, made)
        )
        return made

    async def resume_channel(self, channel_id: str) -> ChannelMetadata:
        """Let a fork go on with the turn that it stands at."""
        change: Change = await self._board.change(
            channel_id, lambda tx, cached: forking.resume(tx, self._desk, channel_id, cached)
        )
        return change.known.metadata

    async def writes_after(self, channel_id: str, at: str) -> list[dict[str, Any]]:
        """Write calls of the channel's turns after the envelope `at`, oldest first."""
        return await self._board.read(lambda tx: forking.writes_after(tx, channel_id, at))

    async def replay(self, channel_id: str) -> ReplayReport:
        """Fold the channel's log again and compare it with what is kept beside it."""
        return await self._board.read(lambda tx: forking.replay(tx, self._desk, channel_id))

    # --- what comes back ----------------------------------------------------------------------

    async def expire_due(self) -> None:
        """Close the channels whose time is over, as expired."""
        for channel_id in await self._board.read(lifecycle.expire_due):
            await self._board.change(channel_id, _expiry(self._desk, channel_id))

    async def run_expectations(self) -> None:
        """Act on every deadline that has passed: warn, close, or note it."""
        if await self._board.read(turn_queue.has_expired_waits):
            await self._board.write(turn_queue.wake_expired)
            await self.run_due()
        for row in await self._board.read(expectations.due):
            await self._board.change(row["channel_id"], _firing(self._desk, row))

    async def run_due(self) -> None:
        """Start the turns that are due of everybody who is attached."""
        hosted = [item for item in self._board.attached() if self.runner_of(item) is not None]
        if hosted:
            for row in await self._board.read(lambda tx: turn_queue.due_turns(tx, hosted)):
                self.dispatch.offer(row)

    async def poll(self) -> None:
        """Look for what others have written: decisions, commands; and renew the lease."""
        now = self._loop.time()
        if now - self._beaten_at >= _BEAT_SECONDS:
            self._beaten_at = now
            await self._board.write(lambda tx: leases.beat(tx, self._holder))
        if self.executor.in_flight.has_lost:
            # Parked turns may wait for just this.
            with suppress(ToolError):
                await self.executor.in_flight.settle_lost()
        lost = self.dispatch.take_lost()
        for turn_id in lost:
            await self._reclaim(turn_id)
        await self.run_due()
        await self.run_commands()

    async def _reclaim(self, turn_id: str) -> None:
        try:
            await self._board.write(lambda tx: turn_queue.reclaim(tx, turn_id))
        except StoreError:
            self.dispatch.lose(turn_id)
            raise

    async def run_commands(self) -> None:
        """Do what other processes have queued in the store."""
        for row in await self._board.read(commands.queued):
            state, result = await commands.run(cast("Hub", self), row)
            await self._board.write(_settling(row["id"], state, result))

    async def idle(self) -> None:
        """Return when no round is under way and nothing waits to be delivered."""
        while True:
            await self.dispatch.idle()
            await self._board.drained()
            await asyncio.sleep(0)
            if not self.dispatch.running:
                return


def _expiry(
    desk: HubContext, channel_id: str
) -> Callable[[Transaction, ChannelSnapshot | None], Change]:
    return lambda tx, cached: lifecycle.expire(tx, desk, channel_id, cached)


def _firing(desk: HubContext, row: Row) -> Callable[[Transaction, ChannelSnapshot | None], Any]:
    return lambda tx, cached: lifecycle.fire(tx, desk, row, cached)[0]


def _settling(id: str, state: str, result: Mapping[str, Any]) -> Callable[[Transaction], None]:
    return lambda tx: commands.settle(tx, id, state, result)
