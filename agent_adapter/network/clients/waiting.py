"""Waiting for an event of a channel: the log from its start, then what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_adapter.core.errors import NetworkError, NotFoundError
from agent_adapter.flow.envelope import Envelope, visible_to
from agent_adapter.network.adapters.base import HUB_EVENTS
from agent_adapter.network.links.operations import HubLike

Predicate = Callable[[Envelope], bool]
"""Whether an envelope is the one that is waited for."""

_PAGE = 256


class Wakes:
    """Wakes those who wait for a channel when something has come for it."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self.ended: str | None = None

    def wake(self, channel_id: str) -> None:
        """Something has come for `channel_id`."""
        for event in self._waiting.get(channel_id, ()):
            event.set()

    def end(self, why: str) -> None:
        """No more messages will come: every waiter gets a `NetworkError` that says `why`."""
        self.ended = why
        for events in self._waiting.values():
            for event in events:
                event.set()

    def join(self, channel_id: str) -> asyncio.Event:
        """An event that `wake` sets."""
        event = asyncio.Event()
        self._waiting.setdefault(channel_id, set()).add(event)
        return event

    def part(self, channel_id: str, event: asyncio.Event) -> None:
        """Undo `join`."""
        events = self._waiting.get(channel_id, set())
        events.discard(event)
        if not events:
            self._waiting.pop(channel_id, None)


def from_elsewhere(envelope: Envelope, agent_id: str) -> bool:
    """Whether `envelope` comes to `agent_id` from others or from the hub, and is for it to see."""
    if envelope.sender_id == agent_id and envelope.event_type not in HUB_EVENTS:
        return False
    return visible_to(envelope, agent_id)


async def wait_for_event(
    hub: HubLike,
    wakes: Wakes,
    *,
    agent_id: str,
    channel_id: str,
    predicate: Predicate,
    timeout: float,  # noqa: ASYNC109  # its public name, and asyncio.timeout is inside
) -> Envelope:
    """The first envelope of the channel, from its start, that comes to `agent_id` and fits.

    Each waiter reads for itself, so that none takes an event from another. `TimeoutError` after
    `timeout` seconds, and at once when the channel has ended without such an event.
    """
    event = wakes.join(channel_id)
    try:
        async with asyncio.timeout(timeout):
            metadata = await hub.get_channel(channel_id)
            if agent_id not in metadata.participant_ids():
                raise NotFoundError(f"there is no channel {channel_id!r} that {agent_id} is in")
            at = 0
            while True:
                event.clear()
                found, at = await _scanned(hub, channel_id, at, agent_id, predicate)
                if found is not None:
                    return found
                if wakes.ended is not None:
                    raise NetworkError(wakes.ended)
                if metadata.is_terminal():
                    why = metadata.close_reason or metadata.state.value
                    raise TimeoutError(
                        f"channel {channel_id} has ended ({why}) without such an event"
                    )
                metadata = await hub.get_channel(channel_id)
                if not metadata.is_terminal():
                    await event.wait()
    finally:
        wakes.part(channel_id, event)


async def _scanned(
    hub: HubLike, channel_id: str, at: int, agent_id: str, predicate: Predicate
) -> tuple[Envelope | None, int]:
    """The first fitting envelope from entry `at` on, or `None`; and the entry after the last."""
    while True:
        page = await hub.read_wal(channel_id, at, at + _PAGE)
        for envelope in page:
            if from_elsewhere(envelope, agent_id) and predicate(envelope):
                return envelope, at
        at += len(page)
        if len(page) < _PAGE:
            return None, at
