"""Parked turns whose decision is written to this process's store instead of the hub's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from agent_adapter.core.errors import NetworkError
from agent_adapter.network.clients.turn_port import HubTurnPort
from agent_adapter.network.links.operations import HubLike
from agent_adapter.network.turns.turn_types import TurnRef
from agent_adapter.store import waits
from agent_adapter.store.base import Store

_log = logging.getLogger("agent_adapter.network")

_FIRST, _SLOWEST = 0.2, 2.0


class ParkedTurns:
    """Polls the store for the decisions of parked turns and wakes the decided ones.

    Any process that shares the store may write a decision, so nothing can notify this one.
    `wake(turn_id)` tells the hub.
    """

    def __init__(self, store: Store, wake: Callable[[str], Awaitable[None]]) -> None:
        self._store = store
        self._wake = wake
        self._watching: dict[str, asyncio.Task[None]] = {}

    def watch(self, turn_id: str, waits_for: Sequence[str]) -> None:
        """Wake the turn when one of these approvals or calls is decided."""
        if turn_id in self._watching:
            self._watching[turn_id].cancel()
        self._watching[turn_id] = asyncio.create_task(self._watched(turn_id, tuple(waits_for)))

    async def close(self) -> None:
        """Stop polling."""
        tasks = list(self._watching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watching.clear()

    async def _watched(self, turn_id: str, waits_for: tuple[str, ...]) -> None:
        pause = _FIRST
        try:
            while not await self._store.read(
                lambda tx: any(waits.is_settled(tx, item) for item in waits_for)
            ):
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _SLOWEST)
            await self._wake(turn_id)
        except NetworkError as exc:
            _log.info("the hub was not notified that turn %s can continue: %s", turn_id, exc)
        finally:
            if self._watching.get(turn_id) is asyncio.current_task():
                del self._watching[turn_id]


class WatchingPort(HubTurnPort):
    """The port of a round whose approvals are in a store other than the hub's."""

    __slots__ = ("_parked",)

    def __init__(self, hub: HubLike, ref: TurnRef, parked: ParkedTurns) -> None:
        super().__init__(hub, ref)
        self._parked = parked

    async def park(self, waits_for: Sequence[str]) -> None:
        """Park the turn and poll for its decision."""
        await super().park(waits_for)
        self._parked.watch(self.ref.turn_id, waits_for)
